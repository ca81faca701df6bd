//! Jobs that wait for a lane, and lanes that wait for a job.
//!
//! A job goes to the idle lane that worked last. So little work uses few connections: these have
//! their statements prepared and their caches filled, and the other lanes need not connect at all.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::TRANSACTION_SECONDS_MAX;
use crate::kernel::StoreError;
use crate::store::jobs::QUEUE_JOBS_MAX;

/// How long a job may take from its entry into the queue: its wait and all its runs.
pub(super) const JOB_MAX: Duration = Duration::from_secs(TRANSACTION_SECONDS_MAX);

/// Jobs that wait for a lane, each with its deadline.
pub(super) struct Queue<J: ?Sized> {
    waiting: Mutex<JobsAndLanes<J>>,
}

struct JobsAndLanes<J: ?Sized> {
    jobs: VecDeque<(Box<J>, Instant)>,
    /// The threads of lanes without a job; the one that worked last is at the end.
    idle: Vec<Thread>,
    is_closing: bool,
}

impl<J: ?Sized> Queue<J> {
    pub(super) fn new() -> Queue<J> {
        Queue {
            waiting: Mutex::new(JobsAndLanes {
                jobs: VecDeque::new(),
                idle: Vec::new(),
                is_closing: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, JobsAndLanes<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, job: Box<J>) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.is_closing {
            return Err(StoreError::Unavailable("the store is closing".into()));
        }
        if waiting.jobs.len() >= QUEUE_JOBS_MAX {
            return Err(StoreError::Unavailable("the store's queue is full".into()));
        }
        waiting.jobs.push_back((job, Instant::now() + JOB_MAX));
        let lane = waiting.idle.pop();
        drop(waiting);
        if let Some(lane) = lane {
            lane.unpark();
        }
        Ok(())
    }

    /// The next job with its deadline; `None` once the queue has closed.
    pub(super) fn take(&self) -> Option<(Box<J>, Instant)> {
        let lane = thread::current();
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.is_closing {
                return None;
            }
            waiting.idle.push(lane.clone());
            drop(waiting);
            thread::park();
            waiting = self.lock();
            // A thread may wake without having been told to, and is still on the list then.
            waiting.idle.retain(|idle| idle.id() != lane.id());
        }
    }

    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closing = true;
        for lane in waiting.idle.drain(..) {
            lane.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;

    /// A queue, and threads that carry out its jobs.
    fn with_lanes(lanes_count: usize) -> (Arc<Queue<dyn Answer>>, Vec<thread::JoinHandle<()>>) {
        let queue = Arc::new(Queue::<dyn Answer>::new());
        let lanes = (0..lanes_count)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    while let Some((job, _)) = queue.take() {
                        job.answer();
                    }
                })
            })
            .collect();
        (queue, lanes)
    }

    trait Answer: Send {
        fn answer(&self);
    }

    struct SendThread(mpsc::Sender<thread::ThreadId>);

    impl Answer for SendThread {
        fn answer(&self) {
            self.0.send(thread::current().id()).expect("the test receives");
        }
    }

    /// Waits until so many lanes have no job.
    fn await_idle(queue: &Queue<dyn Answer>, lanes_count: usize) {
        while queue.lock().idle.len() < lanes_count {
            thread::yield_now();
        }
    }

    #[test]
    fn one_job_after_the_other_goes_to_one_lane() {
        let (queue, lanes) = with_lanes(8);
        let (sender, receiver) = mpsc::channel();
        let mut used = HashSet::new();
        for _ in 0..100 {
            await_idle(&queue, 8);
            queue.put(Box::new(SendThread(sender.clone()))).expect("the queue is open");
            used.insert(receiver.recv().expect("an answer"));
        }
        assert_eq!(used.len(), 1);
        queue.close();
        lanes.into_iter().for_each(|lane| lane.join().expect("a lane ends"));
    }

    #[test]
    fn jobs_at_once_go_to_as_many_lanes_and_none_is_lost() {
        struct Meet(Arc<std::sync::Barrier>, mpsc::Sender<thread::ThreadId>);
        impl Answer for Meet {
            fn answer(&self) {
                self.0.wait();
                self.1.send(thread::current().id()).expect("the test receives");
            }
        }
        let (queue, lanes) = with_lanes(4);
        let barrier = Arc::new(std::sync::Barrier::new(4));
        let (sender, receiver) = mpsc::channel();
        for _ in 0..50 {
            for _ in 0..4 {
                let job = Box::new(Meet(barrier.clone(), sender.clone()));
                queue.put(job).expect("the queue is open");
            }
            let used: HashSet<_> = (0..4).map(|_| receiver.recv().expect("an answer")).collect();
            assert_eq!(used.len(), 4);
        }
        queue.close();
        lanes.into_iter().for_each(|lane| lane.join().expect("a lane ends"));
    }

    #[test]
    fn what_waits_when_the_queue_closes_is_still_done() {
        let queue = Arc::new(Queue::<dyn Answer>::new());
        let (sender, receiver) = mpsc::channel();
        for _ in 0..3 {
            queue.put(Box::new(SendThread(sender.clone()))).expect("the queue is open");
        }
        queue.close();
        assert!(queue.put(Box::new(SendThread(sender))).is_err());
        while let Some((job, _)) = queue.take() {
            job.answer();
        }
        assert_eq!(receiver.iter().count(), 3);
    }
}
