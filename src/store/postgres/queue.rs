//! Jobs that wait for a lane.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::TRANSACTION_SECONDS_MAX;
use crate::kernel::StoreError;
use crate::store::jobs::QUEUE_JOBS_MAX;

/// How long a job may take from its entry into the queue: its wait and all its runs.
pub(super) const JOB_MAX: Duration = Duration::from_secs(TRANSACTION_SECONDS_MAX);

/// Jobs that wait for a lane, each with its deadline.
pub(super) struct Queue<J: ?Sized> {
    waiting: Mutex<QueuedJobs<J>>,
    ready: Condvar,
}

struct QueuedJobs<J: ?Sized> {
    jobs: VecDeque<(Box<J>, Instant)>,
    is_closing: bool,
}

impl<J: ?Sized> Queue<J> {
    pub(super) fn new() -> Queue<J> {
        Queue {
            waiting: Mutex::new(QueuedJobs { jobs: VecDeque::new(), is_closing: false }),
            ready: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueuedJobs<J>> {
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
        drop(waiting);
        self.ready.notify_one();
        Ok(())
    }

    /// The next job with its deadline; `None` once the queue has closed.
    pub(super) fn take(&self) -> Option<(Box<J>, Instant)> {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.is_closing {
                return None;
            }
            waiting = self.ready.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.ready.notify_all();
    }
}
