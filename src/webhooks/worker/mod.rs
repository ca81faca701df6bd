//! The delivery worker: finds due deliveries, takes them, sends them, and records the results.
//!
//! One task owns all state. `scheduler` decides what to take and what to send, and `attempt` sends
//! one delivery to its `target`. The worker uses the store in two kinds of steps. A look (`looks`)
//! finds endpoints with due deliveries. A turn (`turn`) takes these deliveries and records finished
//! attempts.
//!
//! At most two steps run at the same time: one turn for endpoints with a backlog, and one look or
//! turn for all other endpoints. So a long turn for a backlog does not delay the other endpoints.
//! Attempts run meanwhile, so that commits and attempts do not wait for one another. A backlog
//! yields to "the others" (`backlog_yield`): looks, turns for endpoints without a backlog, and the
//! sequencer of this node.
//!
//! A turn takes a delivery in one of two ways. Usually it claims the delivery: the delivery gets a
//! lease of its own. On PostgreSQL, if the endpoint works, the turn takes the deliveries of a
//! backlog under a lease of the endpoint's queue instead, all but the last part (`queue_leases`).
//! Also on PostgreSQL, the sequencer of this node hands over deliveries that it wrote as claimed
//! (`handover`). The worker sends these without a step.

mod attempt;
mod backlog_yield;
mod ending;
mod finished_attempts;
mod known_endpoint;
mod looks;
mod requests;
mod scheduler;
mod scheduler_leases;
mod target;
mod turn;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::app_state::AppState;
use crate::kernel::{Now, OperationError, StoreError};
use crate::store::{Cost, Tx, failpoint};
use crate::webhooks::deliveries::{self, FinishedAttempt};
use crate::webhooks::handover::Handover;
use crate::webhooks::queue_leases::LEASES_UNKNOWN;
use crate::webhooks::rows::{self, DueQueue, EndpointId};
use crate::webhooks::sending::client::WebhookClient;
use attempt::AttemptReport;
use finished_attempts::FinishedAttempts;
use known_endpoint::Share;
use looks::{LOOK_MILLISECONDS_MAX, LOOKED_MAX, Looks};
use scheduler::{RUNNING_MAX, Scheduler};
use turn::TurnResult;

/// The most deliveries that one turn takes.
const TAKEN_MAX: usize = 1_024;
/// The most finished attempts that one turn records.
const ATTEMPTS_WRITTEN_MAX: usize = 512;
/// Replaces both limits in a backlog's turn on PostgreSQL, if the others have worked in the last
/// second: a larger turn would compete with them for processors and the write-ahead log. On the
/// embedded store one transaction runs at a time, so small turns would only cost more commits.
const SMALL_TURN_MAX: usize = 64;
/// How long no step begins after a step failed, in milliseconds.
const ERROR_PAUSE_MILLISECONDS: u64 = 1_000;

/// Delivers until `stop`. Then gives back the deliveries that are taken and not sent, and waits for
/// running attempts (see `ending`).
pub async fn run(
    app: Arc<AppState>,
    client: WebhookClient,
    handover: Arc<Handover>,
    mut stop: watch::Receiver<bool>,
) {
    if !app.store.is_shared() {
        // The database's lock proves that no other server runs, so nobody sends what an earlier run
        // claimed. On PostgreSQL an earlier process may still send what it claimed.
        match app.store.write(|tx, now| Ok(deliveries::release_abandoned(tx, now)?)).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "released deliveries that an earlier run had claimed")
            }
            Err(failure) => {
                tracing::error!(
                    ?failure,
                    "cannot release deliveries that an earlier run claimed; their leases end \
                     within a minute"
                )
            }
        }
    }
    let mut worker = DeliveryWorker::new(app, client, handover);
    worker.work(&mut stop).await;
    worker.finish().await;
}

/// Removes expired deliveries and those of deleted endpoints, up to `rows_max`. Answers how many,
/// or `rows_max` if there may be more.
pub fn purge(tx: &mut dyn Tx, now: &Now, rows_max: i64) -> Result<u64, StoreError> {
    let removed = deliveries::purge(tx, now, rows_max)?;
    Ok(removed + deliveries::purge_deleted(tx, rows_max - removed as i64)?)
}

/// The result of a step.
enum StepResult {
    /// A look for queues whose due time is above `above_milliseconds`.
    Looked {
        above_milliseconds: i64,
        /// When the look began. It also finds due times up to [`LOOK_MILLISECONDS_MAX`] later.
        began_milliseconds: i64,
        queues: Result<Vec<DueQueue>, OperationError>,
    },
    Turned {
        turn: TurnResult,
        was_cautious: bool,
    },
}

type StepFuture = Pin<Box<dyn Future<Output = StepResult> + Send>>;

struct DeliveryWorker {
    app: Arc<AppState>,
    client: WebhookClient,
    handover: Arc<Handover>,
    scheduler: Scheduler,
    finished: FinishedAttempts,
    /// Brings what running attempts report.
    reports: UnboundedReceiver<AttemptReport>,
    /// The other end of `reports`. Each attempt gets a clone.
    reporter: UnboundedSender<AttemptReport>,
    /// A look, or a turn for endpoints without a backlog.
    step: Option<StepFuture>,
    /// A turn for endpoints with a backlog.
    backlog_step: Option<StepFuture>,
    /// Whether this node's sequencer is at work. Backlogs yield to it.
    sequencing: watch::Receiver<bool>,
    /// Until when backlogs begin nothing; `None` if they do not yield.
    yields_until: Option<Instant>,
    /// A commit has signalled that deliveries became due, and `take_signals` has not noted it yet.
    is_signalled: bool,
    looks: Looks,
    /// No step begins before this moment, because a step failed.
    rests_until: Instant,
    /// Set by an error of a turn that is not temporary. Then a turn records one attempt and does
    /// nothing else, so that an attempt that cannot be recorded does not block other attempts.
    is_cautious: bool,
    /// The last result of [`DeliveryWorker::milliseconds`].
    clock_milliseconds: i64,
}

impl DeliveryWorker {
    fn new(app: Arc<AppState>, client: WebhookClient, handover: Arc<Handover>) -> DeliveryWorker {
        let (reporter, reports) = unbounded_channel();
        let now = Instant::now();
        let sequencing = app.store.signals.is_sequencing.subscribe();
        let mut scheduler = Scheduler::default();
        scheduler.leases_queues = app.store.is_shared() && !failpoint(LEASES_UNKNOWN);
        DeliveryWorker {
            app,
            client,
            handover,
            scheduler,
            finished: FinishedAttempts::default(),
            reports,
            reporter,
            step: None,
            backlog_step: None,
            sequencing,
            yields_until: None,
            is_signalled: false,
            looks: Looks::new(now),
            rests_until: now,
            is_cautious: false,
            clock_milliseconds: i64::MIN,
        }
    }

    async fn work(&mut self, stop: &mut watch::Receiver<bool>) {
        loop {
            if !failpoint("handed_deliveries_wait") && self.take_handed() {
                // The deliveries that were handed over are sent first: backlogs yield to them.
                self.scheduler.note_others(true, Instant::now());
                self.begin_attempts();
            }
            self.note_others();
            self.begin_attempts();
            self.begin_steps();
            self.publish_offers();
            let has_work = self.looks.is_woken || self.is_signalled;
            let wakes_at =
                if has_work { self.rests_until } else { self.looks.wakes_at.max(self.rests_until) };
            tokio::select! {
                biased;
                // If the sender of `stop` is gone, the worker stops too.
                _ = stop.wait_for(|is_stopped| *is_stopped) => return,
                step = ended(&mut self.step) => {
                    self.step = None;
                    self.note_step(step);
                }
                step = ended(&mut self.backlog_step) => {
                    self.backlog_step = None;
                    self.note_step(step);
                }
                Some(report) = self.reports.recv() => self.note_reports(report),
                () = self.app.store.signals.deliveries.notified(),
                    if !self.is_signalled => self.is_signalled = true,
                () = self.handover.notified() => {}
                Ok(()) = self.sequencing.changed() => {}
                () = sleep_until(self.yields_until.unwrap_or(wakes_at)),
                    if self.yields_until.is_some() => {}
                () = sleep_until(wakes_at), if self.step.is_none() => self.looks.is_woken = true,
            }
        }
    }

    /// The instant, in milliseconds. On the embedded store it never runs backwards here, as it
    /// never does in transactions.
    fn milliseconds(&mut self) -> i64 {
        let store = &self.app.store;
        let milliseconds = store.clock.milliseconds();
        self.clock_milliseconds = if store.is_shared() {
            milliseconds
        } else {
            self.clock_milliseconds.max(milliseconds)
        };
        self.clock_milliseconds
    }

    /// Makes backlogs yield while one of the others works or is about to work.
    fn note_others(&mut self) {
        let is_sequencing = *self.sequencing.borrow_and_update();
        let is_woken = self.looks.is_woken || self.is_signalled;
        let others_work = self.step.is_some() || is_woken || is_sequencing;
        self.yields_until = self.scheduler.note_others(others_work, Instant::now());
    }

    /// Takes what the sequencer has handed over; answers whether there was anything.
    fn take_handed(&mut self) -> bool {
        let handed = self.handover.take();
        let has_some = !handed.is_empty();
        if has_some {
            let now_milliseconds = self.milliseconds();
            self.scheduler.take_handed(handed, Instant::now(), now_milliseconds);
        }
        has_some
    }

    /// Tells the sequencer how many deliveries could be sent at once. While a signal about due
    /// deliveries waits, there are no new offers: what is handed over would overtake those
    /// deliveries. While the store fails, there is no room at all.
    fn publish_offers(&mut self) {
        let now = Instant::now();
        let store = &self.app.store;
        if !store.is_shared() {
            // The embedded store has no handover: this only empties the list of changed endpoints.
            self.scheduler.drain_offers(now);
            return;
        }
        let is_failing = self.is_cautious || now < self.rests_until;
        let offers_none = is_failing || failpoint("nothing_is_offered");
        let room_total = if offers_none { 0 } else { self.scheduler.room_total() };
        let offers = match store.signals.deliveries.has_untaken() {
            true => Vec::new(),
            false => self.scheduler.drain_offers(now),
        };
        self.handover.publish(offers, room_total);
    }

    fn begin_attempts(&mut self) {
        let now_milliseconds = self.milliseconds();
        for start in self.scheduler.begin_attempts(Instant::now(), now_milliseconds) {
            attempt::start(self.app.clone(), self.client.clone(), self.reporter.clone(), start);
        }
    }

    fn begin_steps(&mut self) {
        let now = Instant::now();
        if now < self.rests_until {
            return;
        }
        let no_step_runs = self.step.is_none() && self.backlog_step.is_none();
        // Once no attempt waits to be recorded, none can block the others, and the caution ends.
        if no_step_runs && self.finished.is_empty() {
            self.is_cautious = false;
        }
        self.begin_step(now);
        self.note_others();
        if self.backlog_step.is_none() && !self.is_cautious {
            self.backlog_step = self.turn(Share::Backlog, now);
        }
    }

    fn begin_step(&mut self, now: Instant) {
        if self.step.is_some() {
            return;
        }
        self.take_signals(now);
        if self.looks.turn_goes_first(now) {
            self.step = self.turn(Share::CaughtUp, now);
        }
        if self.step.is_none() && self.looks.is_woken {
            self.step = Some(self.look(now));
        }
    }

    /// Notes what commits made due. Do not call this while a turn for endpoints without a backlog
    /// runs: the turn may have read the store before such a commit, and its result would then
    /// overwrite what is noted here.
    fn take_signals(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_signalled) {
            let due = self.app.store.signals.deliveries.take();
            self.looks.is_woken |= due.others;
            for (scope, endpoint_id) in due.endpoints {
                self.scheduler.note_due(endpoint_id, scope, now);
            }
        }
    }

    /// A turn for the endpoints of one share; `None` if there is nothing to do, or if they yield.
    fn turn(&mut self, share: Share, now: Instant) -> Option<StepFuture> {
        if self.scheduler.yields(share) {
            return None;
        }
        let was_cautious = self.is_cautious;
        let is_small = share == Share::Backlog
            && self.app.store.is_shared()
            && self.scheduler.others_worked_lately(now);
        let [taken_max, written_max] = match is_small {
            true => [SMALL_TURN_MAX; 2],
            false => [TAKEN_MAX, ATTEMPTS_WRITTEN_MAX],
        };
        let mut requests = Vec::new();
        if !was_cautious {
            let wakes_at = &mut self.looks.wakes_at;
            requests = self.scheduler.take_requests(share, taken_max, now, wakes_at);
        }
        let finished = match was_cautious {
            true => self.finished.take_any(1),
            false => self.finished.take(share, written_max),
        };
        if requests.is_empty() && finished.is_empty() {
            return None;
        }
        let now_milliseconds = self.milliseconds();
        let (app, finished) = (self.app.clone(), Arc::new(finished));
        Some(Box::pin(async move {
            let turn = turn::run(app, requests, finished, now_milliseconds).await;
            StepResult::Turned { turn, was_cautious }
        }))
    }

    /// Looks for endpoints whose due time has come since the last look, or comes within
    /// [`LOOK_MILLISECONDS_MAX`]. The scheduler remembers the endpoints that earlier looks found.
    fn look(&mut self, now: Instant) -> StepFuture {
        let above_milliseconds = self.looks.begin(now);
        let began_milliseconds = self.milliseconds();
        let store = self.app.store.clone();
        Box::pin(async move {
            let horizon_milliseconds = began_milliseconds + LOOK_MILLISECONDS_MAX as i64;
            let queues = store
                .read(Cost::Point, move |tx| {
                    Ok(rows::queues_due(tx, above_milliseconds, horizon_milliseconds, LOOKED_MAX)?)
                })
                .await;
            StepResult::Looked { above_milliseconds, began_milliseconds, queues }
        })
    }

    fn note_step(&mut self, step: StepResult) {
        match step {
            StepResult::Looked { above_milliseconds, began_milliseconds, queues } => match queues {
                Ok(queues) => self.note_look(above_milliseconds, began_milliseconds, &queues),
                Err(failure) => {
                    tracing::error!(
                        ?failure,
                        "cannot look for due webhook deliveries; trying again"
                    );
                    self.looks.note_failure(Instant::now());
                    self.rest();
                }
            },
            StepResult::Turned { turn, was_cautious } => self.note_turn(turn, was_cautious),
        }
    }

    fn rest(&mut self) {
        self.rests_until = Instant::now() + Duration::from_millis(ERROR_PAUSE_MILLISECONDS);
    }

    fn note_look(&mut self, above_milliseconds: i64, began_milliseconds: i64, queues: &[DueQueue]) {
        let now = Instant::now();
        for queue in self.looks.take(above_milliseconds, began_milliseconds, queues, now) {
            self.scheduler.note_due(queue.endpoint_id, queue.scope, now);
        }
    }

    fn note_turn(&mut self, turn: TurnResult, was_cautious: bool) {
        let (readings, writes) = match turn.outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                return self.note_error(&failure, was_cautious, &turn.requested, &turn.finished);
            }
        };
        let now = Instant::now();
        self.note_recorded(&turn.finished);
        if readings.iter().any(|reading| reading.requested_count > 0 && reading.is_drained) {
            self.looks.soon(now);
        }
        for (reading, outcome) in readings.iter().zip(writes.by_endpoint) {
            let endpoint_id = reading.endpoint_id;
            let share_before = self.scheduler.share_of(endpoint_id);
            self.scheduler.note_reading(reading, writes.lease_ends_milliseconds, &outcome, now);
            let share = self.scheduler.share_of(endpoint_id);
            if share != share_before {
                self.finished.change_share(endpoint_id, share);
            }
        }
    }

    fn note_error(
        &mut self,
        failure: &OperationError,
        was_cautious: bool,
        requested: &[EndpointId],
        finished: &[(EndpointId, FinishedAttempt)],
    ) {
        tracing::error!(
            ?failure,
            "webhook deliveries could not be taken or recorded; trying again"
        );
        self.rest();
        self.looks.is_woken = true;
        self.scheduler.read_again(requested);
        let is_temporary = matches!(failure, OperationError::Store(StoreError::Unavailable(_)));
        if is_temporary || !was_cautious {
            self.is_cautious |= !is_temporary;
            for attempt in finished.iter().rev() {
                self.finished.give_back(self.scheduler.share_of(attempt.0), attempt.clone());
            }
            return;
        }
        // A cautious turn records only one attempt, so that is the one that cannot be recorded.
        for (endpoint_id, attempt) in finished {
            tracing::error!(%endpoint_id, delivery_id = %attempt.delivery_id, "cannot record a \
             webhook attempt; it is made again");
        }
        self.note_recorded(finished);
    }

    /// Notes that attempts are recorded, or that they never will be.
    fn note_recorded(&mut self, finished: &[(EndpointId, FinishedAttempt)]) {
        for (endpoint_id, attempt) in
            finished.iter().filter(|(_, attempt)| attempt.holder.is_some())
        {
            let delivery = (attempt.delivery_id, attempt.due_milliseconds);
            self.scheduler.forget_held(*endpoint_id, delivery);
        }
    }

    fn note_reports(&mut self, first: AttemptReport) {
        self.note_report(first);
        for _ in 0..RUNNING_MAX {
            let Ok(report) = self.reports.try_recv() else { return };
            self.note_report(report);
        }
    }

    fn note_report(&mut self, report: AttemptReport) {
        match report {
            AttemptReport::Slow(endpoint_id) => self.scheduler.note_slow_attempt(endpoint_id),
            AttemptReport::Ended(endpoint_id, finished) => {
                self.scheduler.note_ended_attempt(endpoint_id, finished.as_ref(), Instant::now());
                if let Some(finished) = finished {
                    self.app.metrics.webhook_attempt(finished.is_success);
                    let share = self.scheduler.share_of(endpoint_id);
                    self.finished.push(share, (endpoint_id, finished));
                }
            }
        }
    }
}

/// Waits for the end of a running step; forever, if none runs.
async fn ended(step: &mut Option<StepFuture>) -> StepResult {
    match step {
        Some(step) => step.await,
        None => std::future::pending().await,
    }
}
