//! Delivers webhooks: finds what is due, takes it under a lease, sends it, and writes down what
//! became of it.
//!
//! One task owns all that is known. It has at most one step with the store under way, which is
//! either a look for endpoints with something due or a turn: one transaction that writes finished
//! attempts down and takes new deliveries. Meanwhile it goes on sending what it holds, so that
//! commits and attempts do not wait for one another.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::app_state::AppState;
use crate::events::rows::EventRow;
use crate::kernel::{Now, OperationError, Scope, StoreError};
use crate::services::Services;
use crate::store::Cost;
use crate::store::Tx;
use crate::webhooks::deliveries::{self, DueDelivery, Finished, LEASE_MILLISECONDS};
use crate::webhooks::rows::{self, DueQueue, EndpointId};
use crate::webhooks::schedule::Health;
use crate::webhooks::sending::send::{
    Attempt, DeliveryError, Outcome, TOTAL_SECONDS_MAX, USER_AGENT_TEXT, WebhookClient,
};
use crate::webhooks::sending::sign::signature_header;
use crate::webhooks::sending::vet::{self, WebhookUrl};
use crate::webhooks::state::{DeliveryStatus, EndpointStatus};
use crate::webhooks::{self as endpoints, Endpoint, Secret};

/// Attempts that run at the same time.
const IN_FLIGHT_MAX: usize = 512;
/// Of these, the most that endpoints may have whose last attempt did not end well and in time, and
/// those of which nothing is known yet together with them: what is left always serves endpoints
/// that work.
const IN_FLIGHT_SUSPECT_MAX: usize = IN_FLIGHT_MAX / 2;
const IN_FLIGHT_UNTRIED_MAX: usize = IN_FLIGHT_MAX / 4 * 3;
/// Attempts that one endpoint has running at the same time.
const ENDPOINT_IN_FLIGHT_MAX: usize = 8;
/// The same before its first success, and after an attempt that failed slowly.
const ENDPOINT_IN_FLIGHT_UNTRIED_MAX: usize = 2;
/// Failures in a row after which an endpoint is only probed: one attempt at a time.
const PROBED_FAILURES_MIN: i64 = 5;
/// From the end of a failed probe to the next, in milliseconds.
const PROBE_GAP_MILLISECONDS: u64 = 250;
/// An attempt that runs longer makes its endpoint a suspect, in milliseconds.
const SLOW_MILLISECONDS: u64 = 2_000;

/// Deliveries that one turn takes.
const CLAIMED_MAX: usize = 1_024;
/// Deliveries of one endpoint that are held ahead of their attempts, where it works and where that
/// is not known. A suspect holds none ahead: what it cannot send soon would only wait for its lease
/// to end.
const ENDPOINT_HELD_MAX: usize = 128;
const ENDPOINT_HELD_UNTRIED_MAX: usize = 8;
/// Deliveries held in all.
const HELD_MAX: usize = 8_192;
/// What must be left of a lease for an attempt to begin, in milliseconds: the longest attempt, and
/// time to write it down.
const LEASE_LEFT_MILLISECONDS_MIN: i64 = TOTAL_SECONDS_MAX as i64 * 1_000 + 5_000;
/// Finished attempts that one turn writes down.
const RECORDED_MAX: usize = 256;

/// How long an endpoint's URL, secrets and status are used without another look, in milliseconds.
const TARGET_KEPT_MILLISECONDS: u64 = 1_000;
/// Endpoints that one look finds.
const LOOKED_MAX: i64 = 10_000;
/// The longest time without a look, in milliseconds, and how far a look sees ahead.
const LOOK_MILLISECONDS_MAX: u64 = 1_000;
/// How far a look goes back behind the one before it, in milliseconds: longer than a commit takes
/// to become visible.
const LOOK_OVERLAP_MILLISECONDS: i64 = 5_000;
/// How often a look goes through all that is due, whatever earlier ones saw, in seconds.
const LOOK_FULL_SECONDS: u64 = 30;
/// Endpoints that are remembered.
const LANES_MAX: usize = 20_000;
/// How long the worker waits after a fault of the store, in milliseconds.
const FAULT_PAUSE_MILLISECONDS: u64 = 1_000;
/// How long an endpoint is left alone whose rows do not read, in seconds.
const BROKEN_PAUSE_SECONDS: u64 = 60;
/// How long running attempts are awaited at the end, in seconds: the longest attempt and a little.
const STOP_SECONDS_MAX: u64 = TOTAL_SECONDS_MAX + 1;

/// Delivers until `stop`, then lets running attempts end. What was taken and not sent is given
/// back; what cannot be given back is sent again when its lease ends.
pub async fn run(app: Arc<AppState>, client: WebhookClient, mut stop: watch::Receiver<bool>) {
    if !app.store.is_shared() {
        // The database's lock says that this is its only server, so claims of an earlier one are
        // nobody's. Elsewhere an earlier one may still send what it claimed, and its leases end
        // within a minute.
        match app.store.write(|tx, now| Ok(deliveries::release_abandoned(tx, now)?)).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(count, "took up deliveries that an earlier run had claimed")
            }
            Err(failure) => {
                tracing::error!(
                    ?failure,
                    "claimed deliveries of an earlier run could not be taken up; their leases end \
                     within a minute"
                )
            }
        }
    }
    let mut worker = DeliveryWorker::new(app, client);
    worker.work(&mut stop).await;
    worker.finish().await;
}

/// Removes deliveries of deleted endpoints and those past their time, a bounded number at once;
/// answers how many.
pub fn purge(tx: &mut dyn Tx, now: &Now, rows_max: i64) -> Result<u64, StoreError> {
    let removed = deliveries::purge_deleted(tx, rows_max)?;
    Ok(removed + deliveries::purge(tx, now, rows_max - removed as i64)?)
}

/// What an attempt needs of an endpoint, as it was read a moment ago.
struct Target {
    scope: Scope,
    version: i64,
    status: EndpointStatus,
    /// None where the operator no longer allows what the URL points at.
    url: Option<WebhookUrl>,
    loopback_allowed: bool,
    secrets: Vec<Secret>,
}

impl Target {
    fn read(services: &Services, endpoint: &Endpoint) -> Result<Target, StoreError> {
        let policy = endpoints::url_policy(&services.settings, endpoint.scope);
        Ok(Target {
            scope: endpoint.scope,
            version: endpoint.version,
            status: endpoint.status,
            url: vet::parse_url(&endpoint.url, policy).ok(),
            loopback_allowed: policy.loopback_http_allowed,
            secrets: endpoints::open_secrets(services, endpoint)?,
        })
    }
}

/// What the last attempts say of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Trusted,
    Untried,
    Suspect,
}

/// A delivery taken under a lease.
struct Held {
    due: DueDelivery,
    lease_milliseconds: i64,
}

/// One endpoint.
struct Lane {
    scope: Scope,
    target: Option<Arc<Target>>,
    target_ends_at: Instant,
    standing: Standing,
    /// Its last attempt failed, and took long to.
    hangs: bool,
    /// Failed attempts since the last success.
    failures_count: i64,
    held: VecDeque<Held>,
    in_flight: usize,
    /// The store has deliveries due that are not held.
    has_due: bool,
    /// No delivery is taken before this moment.
    rests_until: Instant,
    /// It stands in `due_lanes`.
    is_due_listed: bool,
    /// It stands in `sending_lanes`.
    is_sending_listed: bool,
}

impl Lane {
    fn new(scope: Scope, now: Instant) -> Lane {
        Lane {
            scope,
            target: None,
            target_ends_at: now,
            standing: Standing::Untried,
            hangs: false,
            failures_count: 0,
            held: VecDeque::new(),
            in_flight: 0,
            has_due: false,
            rests_until: now,
            is_due_listed: false,
            is_sending_listed: false,
        }
    }

    fn is_probed(&self) -> bool {
        is_probed(
            self.failures_count,
            self.target.as_ref().map_or(EndpointStatus::Enabled, |target| target.status),
        )
    }

    fn is_idle(&self) -> bool {
        self.held.is_empty() && self.in_flight == 0 && !self.has_due
    }

    fn in_flight_max(&self) -> usize {
        match self.standing {
            _ if self.is_probed() => 1,
            _ if self.hangs => ENDPOINT_IN_FLIGHT_UNTRIED_MAX,
            Standing::Untried => ENDPOINT_IN_FLIGHT_UNTRIED_MAX,
            Standing::Trusted | Standing::Suspect => ENDPOINT_IN_FLIGHT_MAX,
        }
    }

    /// How many deliveries to take now.
    fn wanted(&self, now: Instant) -> usize {
        if now < self.rests_until {
            return 0;
        }
        let held_max = match self.standing {
            _ if self.is_probed() => {
                return usize::from(self.held.is_empty() && self.in_flight == 0);
            }
            Standing::Trusted => ENDPOINT_HELD_MAX,
            Standing::Untried => ENDPOINT_HELD_UNTRIED_MAX,
            Standing::Suspect => {
                return self.in_flight_max().saturating_sub(self.held.len() + self.in_flight);
            }
        };
        // Only from half on, so that turns take many at once.
        if self.held.len() * 2 > held_max { 0 } else { held_max - self.held.len() }
    }
}

fn is_probed(failures_count: i64, status: EndpointStatus) -> bool {
    failures_count >= PROBED_FAILURES_MIN || status != EndpointStatus::Enabled
}

/// How many attempts run, by the standing of their endpoints.
#[derive(Default)]
struct InFlight {
    trusted: usize,
    untried: usize,
    suspect: usize,
}

impl InFlight {
    fn of(&mut self, standing: Standing) -> &mut usize {
        match standing {
            Standing::Trusted => &mut self.trusted,
            Standing::Untried => &mut self.untried,
            Standing::Suspect => &mut self.suspect,
        }
    }
    const fn total(&self) -> usize {
        self.trusted + self.untried + self.suspect
    }
    const fn has_room(&self, standing: Standing) -> bool {
        self.total() < IN_FLIGHT_MAX
            && match standing {
                Standing::Trusted => true,
                Standing::Untried => self.untried + self.suspect < IN_FLIGHT_UNTRIED_MAX,
                Standing::Suspect => self.suspect < IN_FLIGHT_SUSPECT_MAX,
            }
    }
}

/// What a running attempt tells.
enum Report {
    /// It takes long.
    Slow(EndpointId),
    /// It ended; without an outcome where it was cut off by a fault of ours.
    Ended(EndpointId, Option<Finished>),
}

/// What a turn asks of one endpoint.
struct Ask {
    endpoint_id: EndpointId,
    scope: Scope,
    count: usize,
    known: Option<Arc<Target>>,
}

/// What a turn found of one endpoint.
struct Found {
    endpoint_id: EndpointId,
    asked_count: usize,
    /// None where the endpoint is gone.
    target: Option<Arc<Target>>,
    /// Its rows do not read, so that it is left alone for a while.
    is_broken: bool,
    health: Health,
    due: Vec<DueDelivery>,
    is_drained: bool,
    /// Due, but only to be kept: the endpoint is disabled.
    recorded: Vec<DueDelivery>,
    /// Due, but the event is past its time.
    lost: Vec<DueDelivery>,
}

/// A turn that ended.
struct Turn {
    asked: Vec<EndpointId>,
    finished: Arc<Vec<(EndpointId, Finished)>>,
    outcome: Result<(Arc<Vec<Found>>, Claimed), OperationError>,
}

/// The end of the lease, and for each endpoint which of its deliveries were taken.
type Claimed = (i64, Vec<Vec<bool>>);

enum Step {
    Looked {
        above_milliseconds: i64,
        until_milliseconds: i64,
        queues: Result<Vec<DueQueue>, OperationError>,
    },
    Turned(Turn),
}

type StepFuture = Pin<Box<dyn Future<Output = Step> + Send>>;

struct DeliveryWorker {
    app: Arc<AppState>,
    client: WebhookClient,
    lanes: HashMap<EndpointId, Lane>,
    /// Lanes with something due, in the order in which they are asked.
    due_lanes: VecDeque<EndpointId>,
    /// Lanes that hold something they may send, in the order in which they send.
    sending_lanes: VecDeque<EndpointId>,
    /// Lanes that hold something but whose target is too old.
    stale_lanes: Vec<EndpointId>,
    held_count: usize,
    in_flight: InFlight,
    finished: Vec<(EndpointId, Finished)>,
    reports: UnboundedReceiver<Report>,
    reporter: UnboundedSender<Report>,
    step: Option<StepFuture>,
    /// Something may have become due.
    is_woken: bool,
    has_just_looked: bool,
    wakes_at: Instant,
    rests_until: Instant,
    /// After a fault a turn writes one attempt down and nothing else, so that a broken one does not
    /// stop the others.
    is_cautious: bool,
    looked_until_milliseconds: i64,
    looks_fully_at: Instant,
    clock_milliseconds: i64,
}

impl DeliveryWorker {
    fn new(app: Arc<AppState>, client: WebhookClient) -> DeliveryWorker {
        let (reporter, reports) = unbounded_channel();
        let now = Instant::now();
        DeliveryWorker {
            app,
            client,
            lanes: HashMap::new(),
            due_lanes: VecDeque::new(),
            sending_lanes: VecDeque::new(),
            stale_lanes: Vec::new(),
            held_count: 0,
            in_flight: InFlight::default(),
            finished: Vec::new(),
            reports,
            reporter,
            step: None,
            is_woken: true,
            has_just_looked: false,
            wakes_at: now,
            rests_until: now,
            is_cautious: false,
            looked_until_milliseconds: i64::MIN,
            looks_fully_at: now,
            clock_milliseconds: i64::MIN,
        }
    }

    async fn work(&mut self, stop: &mut watch::Receiver<bool>) {
        loop {
            self.send_held();
            self.begin_step();
            let alarm_at =
                if self.is_woken { self.rests_until } else { self.wakes_at.max(self.rests_until) };
            tokio::select! {
                biased;
                // A stop whose sender is gone is a stop too.
                _ = stop.wait_for(|is_stopped| *is_stopped) => return,
                step = ended(&mut self.step) => self.take_step(step),
                Some(report) = self.reports.recv() => self.take_reports(report),
                () = self.app.store.signals.deliveries.notified(),
                    if !self.is_woken => self.is_woken = true,
                () = sleep_until(alarm_at), if self.step.is_none() => self.is_woken = true,
            }
        }
    }

    /// Ends in order: what is held is given back, and running attempts are awaited and written
    /// down.
    async fn finish(mut self) {
        let deadline = Instant::now() + Duration::from_secs(STOP_SECONDS_MAX);
        if let Some(step) = self.step.take()
            && let Ok(step) = timeout_at(deadline, step).await
            && matches!(step, Step::Turned(_))
        {
            self.take_step(step);
        }
        self.release_held().await;
        while self.in_flight.total() > 0 {
            let Ok(Some(report)) = timeout_at(deadline, self.reports.recv()).await else { break };
            self.take_reports(report);
            if self.finished.len() >= RECORDED_MAX {
                self.record_finished().await;
            }
        }
        self.record_finished().await;
        if self.in_flight.total() > 0 {
            tracing::warn!(
                attempts = self.in_flight.total(),
                "webhook attempts were cut off at the end; they are made again after a minute"
            );
        }
    }

    async fn release_held(&mut self) {
        let mut held = Vec::new();
        for (endpoint_id, lane) in &mut self.lanes {
            let lane_held: Vec<_> =
                lane.held.drain(..).map(|held| (held.due, held.lease_milliseconds)).collect();
            if !lane_held.is_empty() {
                held.push((*endpoint_id, lane_held));
            }
        }
        self.held_count = 0;
        if held.is_empty() {
            return;
        }
        let released = self
            .app
            .store
            .write(move |tx, _| {
                for (endpoint_id, held) in &held {
                    deliveries::release(tx, *endpoint_id, held)?;
                }
                Ok(())
            })
            .await;
        if let Err(failure) = released {
            tracing::error!(
                ?failure,
                "webhook deliveries could not be given back; they are sent after a minute"
            );
        }
    }

    async fn record_finished(&mut self) {
        while !self.finished.is_empty() {
            let finished =
                Arc::new(self.finished.drain(..self.finished.len().min(RECORDED_MAX)).collect());
            let turn = turn(self.app.clone(), Vec::new(), finished, self.clock_milliseconds).await;
            if let Err(failure) = turn.outcome {
                tracing::error!(
                    ?failure,
                    "webhook attempts could not be written down; they are made again"
                );
                return;
            }
        }
    }

    /// The store's clock. Where there is one process only it never runs backwards here, as it does
    /// not in the write lane.
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

    fn begin_step(&mut self) {
        let now = Instant::now();
        if self.step.is_some() || now < self.rests_until {
            return;
        }
        // Looks and turns alternate, or a stream of commits would leave no time for turns.
        if self.is_woken && !self.has_just_looked {
            self.step = Some(self.look(now));
            return;
        }
        let finished_max = if self.is_cautious { 1 } else { RECORDED_MAX };
        let finished: Vec<_> =
            self.finished.drain(..self.finished.len().min(finished_max)).collect();
        let asks =
            if self.is_cautious && !finished.is_empty() { Vec::new() } else { self.asks(now) };
        self.has_just_looked = false;
        if !asks.is_empty() || !finished.is_empty() {
            let until_milliseconds = self.milliseconds();
            let (app, finished) = (self.app.clone(), Arc::new(finished));
            self.step = Some(Box::pin(async move {
                Step::Turned(turn(app, asks, finished, until_milliseconds).await)
            }));
        } else if self.is_woken {
            self.step = Some(self.look(now));
        }
    }

    /// Looks for endpoints whose due time has come since the last look; those found earlier are
    /// remembered.
    fn look(&mut self, now: Instant) -> StepFuture {
        self.is_woken = false;
        self.has_just_looked = true;
        let mut above_milliseconds =
            self.looked_until_milliseconds.saturating_sub(LOOK_OVERLAP_MILLISECONDS);
        if now >= self.looks_fully_at {
            self.looks_fully_at = now + Duration::from_secs(LOOK_FULL_SECONDS);
            above_milliseconds = i64::MIN;
        }
        let until_milliseconds = self.milliseconds();
        let store = self.app.store.clone();
        Box::pin(async move {
            let horizon_milliseconds = until_milliseconds + LOOK_MILLISECONDS_MAX as i64;
            let queues = store
                .read(Cost::Point, move |tx| {
                    Ok(rows::queues_due(tx, above_milliseconds, horizon_milliseconds, LOOKED_MAX)?)
                })
                .await;
            Step::Looked { above_milliseconds, until_milliseconds, queues }
        })
    }

    /// What to ask of the store: deliveries for the lanes that want some, in turn, and targets that
    /// are too old.
    fn asks(&mut self, now: Instant) -> Vec<Ask> {
        let mut asks = Vec::new();
        let mut count_left = CLAIMED_MAX.min(HELD_MAX.saturating_sub(self.held_count));
        for _ in 0..self.due_lanes.len() {
            if count_left == 0 {
                break;
            }
            let Some(endpoint_id) = self.due_lanes.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint_id) else { continue };
            if !lane.has_due {
                lane.is_due_listed = false;
                continue;
            }
            self.due_lanes.push_back(endpoint_id);
            if lane.rests_until > now {
                self.wakes_at = self.wakes_at.min(lane.rests_until);
            }
            let count = if self.in_flight.has_room(lane.standing) {
                lane.wanted(now).min(count_left)
            } else {
                0
            };
            if count > 0 {
                count_left -= count;
                asks.push(Ask {
                    endpoint_id,
                    scope: lane.scope,
                    count,
                    known: lane.target.clone(),
                });
            }
        }
        for endpoint_id in std::mem::take(&mut self.stale_lanes) {
            let Some(lane) = self.lanes.get(&endpoint_id) else { continue };
            if !asks.iter().any(|ask| ask.endpoint_id == endpoint_id) {
                asks.push(Ask {
                    endpoint_id,
                    scope: lane.scope,
                    count: 0,
                    known: lane.target.clone(),
                });
            }
        }
        asks
    }

    fn take_step(&mut self, step: Step) {
        self.step = None;
        match step {
            Step::Looked { above_milliseconds, until_milliseconds, queues } => match queues {
                Ok(queues) => self.take_look(above_milliseconds, until_milliseconds, &queues),
                Err(failure) => {
                    tracing::error!(
                        ?failure,
                        "due webhook deliveries could not be looked for; tried again"
                    );
                    self.looks_fully_at = Instant::now();
                    self.is_woken = true;
                    self.rest();
                }
            },
            Step::Turned(turn) => self.take_turn(turn),
        }
    }

    fn rest(&mut self) {
        self.rests_until = Instant::now() + Duration::from_millis(FAULT_PAUSE_MILLISECONDS);
    }

    fn take_look(&mut self, above_milliseconds: i64, until_milliseconds: i64, queues: &[DueQueue]) {
        let now = Instant::now();
        self.wakes_at = now + Duration::from_millis(LOOK_MILLISECONDS_MAX);
        self.looked_until_milliseconds = until_milliseconds;
        for queue in queues {
            if queue.due_milliseconds > until_milliseconds {
                let ahead_milliseconds = queue.due_milliseconds.abs_diff(until_milliseconds);
                self.wakes_at = self.wakes_at.min(now + Duration::from_millis(ahead_milliseconds));
                break;
            }
            if self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&queue.endpoint_id) {
                self.lanes.retain(|_, lane| !lane.is_idle());
                if self.lanes.len() >= LANES_MAX {
                    // The next full look finds it again.
                    continue;
                }
            }
            let lane =
                self.lanes.entry(queue.endpoint_id).or_insert_with(|| Lane::new(queue.scope, now));
            lane.has_due = true;
            if !lane.is_due_listed {
                lane.is_due_listed = true;
                self.due_lanes.push_back(queue.endpoint_id);
            }
        }
        if queues.len() as i64 >= LOOKED_MAX
            && let Some(last) =
                queues.last().filter(|last| last.due_milliseconds <= until_milliseconds)
        {
            // The rest follows from there. Endpoints that are due in the same millisecond may come
            // twice.
            let reached = (last.due_milliseconds - 1).max(above_milliseconds.saturating_add(1));
            self.looked_until_milliseconds = reached.saturating_add(LOOK_OVERLAP_MILLISECONDS);
            self.is_woken = true;
        }
    }

    fn take_turn(&mut self, turn: Turn) {
        let (found, (lease_milliseconds, claimed)) = match turn.outcome {
            Ok(outcome) => outcome,
            Err(failure) => return self.take_fault(&failure, turn.asked, &turn.finished),
        };
        if self.is_cautious && self.finished.is_empty() {
            self.is_cautious = false;
        }
        // Behind what was taken, the next delivery of the same endpoint may be due sooner than the
        // next look.
        self.is_woken |= found.iter().any(|found| found.asked_count > 0 && found.is_drained);
        for (found, claimed) in found.iter().zip(claimed) {
            self.take_found(found, lease_milliseconds, &claimed);
        }
    }

    fn take_found(&mut self, found: &Found, lease_milliseconds: i64, claimed: &[bool]) {
        let now = Instant::now();
        let Some(lane) = self.lanes.get_mut(&found.endpoint_id) else { return };
        let is_new = lane.target.is_none();
        if found.is_broken {
            lane.rests_until = now + Duration::from_secs(BROKEN_PAUSE_SECONDS);
            self.held_count -= lane.held.len();
            lane.held.clear();
            return;
        }
        lane.target = found.target.clone();
        lane.target_ends_at = now + Duration::from_millis(TARGET_KEPT_MILLISECONDS);
        if found.target.is_none() {
            self.held_count -= lane.held.len();
            lane.held.clear();
            lane.has_due = false;
            return;
        }
        if is_new && found.health.failures_count > 0 {
            lane.failures_count = found.health.failures_count;
            DeliveryWorker::set_standing(&mut self.in_flight, lane, Standing::Suspect);
        }
        if found.asked_count > 0 {
            lane.has_due = !found.is_drained || claimed.contains(&false);
        }
        let taken = found.due.iter().zip(claimed).filter(|(_, is_claimed)| **is_claimed);
        let held_before = lane.held.len();
        lane.held.extend(taken.map(|(due, _)| Held { due: due.clone(), lease_milliseconds }));
        self.held_count += lane.held.len() - held_before;
        DeliveryWorker::list_sending(&mut self.sending_lanes, found.endpoint_id, lane);
    }

    fn take_fault(
        &mut self,
        failure: &OperationError,
        asked: Vec<EndpointId>,
        finished: &[(EndpointId, Finished)],
    ) {
        tracing::error!(?failure, "a turn of webhook deliveries kept nothing; tried again");
        self.rest();
        self.is_woken = true;
        self.stale_lanes.extend(&asked);
        let is_passing = matches!(failure, OperationError::Store(StoreError::Unavailable(_)));
        if is_passing || !self.is_cautious {
            self.is_cautious |= !is_passing;
            self.finished.splice(..0, finished.iter().cloned());
            return;
        }
        // The one attempt that this turn tried to write down is what is broken.
        for (endpoint_id, attempt) in finished {
            tracing::error!(%endpoint_id, delivery_id = %attempt.delivery_id, "a webhook attempt \
             cannot be written down and is made again");
        }
    }

    fn take_reports(&mut self, first: Report) {
        self.take_report(first);
        for _ in 0..IN_FLIGHT_MAX {
            let Ok(report) = self.reports.try_recv() else { return };
            self.take_report(report);
        }
    }

    fn take_report(&mut self, report: Report) {
        let (endpoint_id, finished) = match report {
            Report::Slow(endpoint_id) => {
                if let Some(lane) = self.lanes.get_mut(&endpoint_id) {
                    DeliveryWorker::set_standing(&mut self.in_flight, lane, Standing::Suspect);
                }
                return;
            }
            Report::Ended(endpoint_id, finished) => (endpoint_id, finished),
        };
        // A lane with running attempts is never forgotten.
        let Some(lane) = self.lanes.get_mut(&endpoint_id) else { return };
        lane.in_flight -= 1;
        *self.in_flight.of(lane.standing) -= 1;
        let is_success = finished.as_ref().is_some_and(|finished| finished.is_success);
        let is_quick = finished
            .as_ref()
            .is_some_and(|finished| u64::from(finished.duration_milliseconds) < SLOW_MILLISECONDS);
        lane.failures_count = if is_success { 0 } else { lane.failures_count + 1 };
        lane.hangs = !is_success && !is_quick;
        let standing = if is_success && is_quick { Standing::Trusted } else { Standing::Suspect };
        DeliveryWorker::set_standing(&mut self.in_flight, lane, standing);
        if lane.is_probed() {
            lane.rests_until = Instant::now() + Duration::from_millis(PROBE_GAP_MILLISECONDS);
        }
        if is_success {
            lane.rests_until = Instant::now();
        }
        DeliveryWorker::list_sending(&mut self.sending_lanes, endpoint_id, lane);
        if let Some(finished) = finished {
            self.app.metrics.webhook_attempt(finished.is_success);
            self.finished.push((endpoint_id, finished));
        }
    }

    fn set_standing(in_flight: &mut InFlight, lane: &mut Lane, standing: Standing) {
        *in_flight.of(lane.standing) -= lane.in_flight;
        *in_flight.of(standing) += lane.in_flight;
        lane.standing = standing;
    }

    fn list_sending(
        sending_lanes: &mut VecDeque<EndpointId>,
        endpoint_id: EndpointId,
        lane: &mut Lane,
    ) {
        if !lane.is_sending_listed && !lane.held.is_empty() && lane.in_flight < lane.in_flight_max()
        {
            lane.is_sending_listed = true;
            sending_lanes.push_back(endpoint_id);
        }
    }

    /// Begins attempts, one endpoint after the other, as far as there is room.
    fn send_held(&mut self) {
        if self.sending_lanes.is_empty() {
            return;
        }
        let now = Instant::now();
        let now_milliseconds = self.milliseconds();
        let mut waiting_count = 0;
        while waiting_count < self.sending_lanes.len() && self.in_flight.total() < IN_FLIGHT_MAX {
            let Some(endpoint_id) = self.sending_lanes.pop_front() else { break };
            let Some(lane) = self.lanes.get_mut(&endpoint_id) else { continue };
            lane.is_sending_listed = false;
            if lane.in_flight >= lane.in_flight_max() || lane.held.is_empty() {
                continue;
            }
            if !self.in_flight.has_room(lane.standing) {
                lane.is_sending_listed = true;
                self.sending_lanes.push_back(endpoint_id);
                waiting_count += 1;
                continue;
            }
            let Some(target) = lane.target.clone().filter(|_| now < lane.target_ends_at) else {
                self.stale_lanes.push(endpoint_id);
                continue;
            };
            waiting_count = 0;
            if let Some(held) = lane.held.pop_front() {
                self.held_count -= 1;
                // What waited too long is due again when its lease ends.
                if held.lease_milliseconds - now_milliseconds >= LEASE_LEFT_MILLISECONDS_MIN {
                    lane.in_flight += 1;
                    *self.in_flight.of(lane.standing) += 1;
                    let (client, reporter) = (self.client.clone(), self.reporter.clone());
                    send(self.app.clone(), client, reporter, endpoint_id, target, held);
                }
            }
            DeliveryWorker::list_sending(&mut self.sending_lanes, endpoint_id, lane);
        }
    }
}

/// The end of the step under way; without one, never.
async fn ended(step: &mut Option<StepFuture>) -> Step {
    match step {
        Some(step) => step.await,
        None => std::future::pending().await,
    }
}

/// Reads what is due on a reading connection, and then writes everything in one transaction.
async fn turn(
    app: Arc<AppState>,
    asks: Vec<Ask>,
    finished: Arc<Vec<(EndpointId, Finished)>>,
    until_milliseconds: i64,
) -> Turn {
    let asked = asks.iter().map(|ask| ask.endpoint_id).collect();
    let outcome = turn_outcome(&app, asks, finished.clone(), until_milliseconds).await;
    Turn { asked, finished, outcome }
}

async fn turn_outcome(
    app: &Arc<AppState>,
    asks: Vec<Ask>,
    finished: Arc<Vec<(EndpointId, Finished)>>,
    until_milliseconds: i64,
) -> Result<(Arc<Vec<Found>>, Claimed), OperationError> {
    let mut found = Vec::new();
    if !asks.is_empty() {
        let services = app.services.clone();
        found = app
            .store
            .read(Cost::Scan, move |tx| Ok(read_asked(tx, &services, &asks, until_milliseconds)?))
            .await?;
    }
    let found = Arc::new(found);
    let has_work = !finished.is_empty()
        || found.iter().any(|found| found.asked_count > 0 && found.target.is_some());
    if !has_work {
        let none = found.iter().map(|_| Vec::new()).collect();
        return Ok((found, (0, none)));
    }
    let writing = found.clone();
    let claimed =
        app.store.write(move |tx, now| Ok(write_turn(tx, now, &finished, &writing)?)).await?;
    Ok((found, claimed))
}

impl Found {
    const fn nothing(ask: &Ask) -> Found {
        Found {
            endpoint_id: ask.endpoint_id,
            asked_count: ask.count,
            target: None,
            is_broken: false,
            health: Health { first_failure_milliseconds: None, failures_count: 0 },
            due: Vec::new(),
            is_drained: true,
            recorded: Vec::new(),
            lost: Vec::new(),
        }
    }
}

/// Reads endpoint by endpoint; one whose rows do not read does not stop the others.
fn read_asked(
    tx: &mut dyn Tx,
    services: &Services,
    asks: &[Ask],
    until_milliseconds: i64,
) -> Result<Vec<Found>, StoreError> {
    asks.iter()
        .map(|ask| match read_one(tx, services, ask, until_milliseconds) {
            Err(StoreError::Broken(reason)) => {
                tracing::error!(endpoint_id = %ask.endpoint_id, reason, "the rows of a webhook \
                 endpoint do not read; it is left alone for a minute");
                Ok(Found { is_broken: true, ..Found::nothing(ask) })
            }
            read => read,
        })
        .collect()
}

fn read_one(
    tx: &mut dyn Tx,
    services: &Services,
    ask: &Ask,
    until_milliseconds: i64,
) -> Result<Found, StoreError> {
    let mut found = Found::nothing(ask);
    let Some(endpoint) = rows::find(tx, ask.scope, ask.endpoint_id)? else { return Ok(found) };
    let unchanged = ask.known.as_ref().filter(|known| known.version == endpoint.version);
    let target = match unchanged {
        Some(known) => known.clone(),
        None => Arc::new(Target::read(services, &endpoint)?),
    };
    found.health =
        rows::queue(tx, ask.endpoint_id)?.map_or(Health::default(), |queue| queue.health);
    found.target = Some(target);
    if ask.count == 0 {
        return Ok(found);
    }
    // An endpoint met for the first time may be known to the store as one that is only probed.
    let is_first_probe =
        ask.known.is_none() && is_probed(found.health.failures_count, endpoint.status);
    let count = if is_first_probe { 1 } else { ask.count };
    let due = rows::due(tx, ask.scope, ask.endpoint_id, until_milliseconds, count as i64)?;
    found.is_drained = due.len() < count;
    for delivery in due {
        if deliveries::is_recorded_only(&endpoint, &delivery) {
            found.recorded.push(delivery);
        } else if delivery.event.is_none() {
            found.lost.push(delivery);
        } else {
            found.due.push(delivery);
        }
    }
    Ok(found)
}

/// The one transaction of a turn: attempts first, in the order in which they ended, then what is
/// taken.
fn write_turn(
    tx: &mut dyn Tx,
    now: &mut Now,
    finished: &[(EndpointId, Finished)],
    found: &[Found],
) -> Result<Claimed, StoreError> {
    let mut by_endpoint: Vec<&(EndpointId, Finished)> = finished.iter().collect();
    by_endpoint.sort_by_key(|(endpoint_id, _)| *endpoint_id);
    for attempts in by_endpoint.chunk_by(|a, b| a.0 == b.0) {
        let endpoint_id = attempts[0].0;
        let attempts: Vec<&Finished> = attempts.iter().map(|(_, attempt)| attempt).collect();
        deliveries::record_attempts(tx, now, endpoint_id, &attempts)?;
    }
    let lease_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
    let mut claimed = Vec::with_capacity(found.len());
    for found in found {
        if found.asked_count == 0 || found.target.is_none() {
            claimed.push(Vec::new());
            continue;
        }
        deliveries::settle_unsent(
            tx,
            found.endpoint_id,
            &found.recorded,
            DeliveryStatus::Recorded,
        )?;
        deliveries::settle_unsent(tx, found.endpoint_id, &found.lost, DeliveryStatus::Failed)?;
        claimed.push(deliveries::claim(
            tx,
            found.endpoint_id,
            &found.due,
            found.is_drained,
            lease_milliseconds,
        )?);
    }
    Ok((lease_milliseconds, claimed))
}

/// Tells the worker that an attempt has ended, however it ended.
struct Ending {
    app: Arc<AppState>,
    reporter: UnboundedSender<Report>,
    endpoint_id: EndpointId,
    finished: Option<Finished>,
}

impl Ending {
    fn tell(mut self, finished: Finished) {
        self.finished = Some(finished);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.app.metrics.webhook_in_flight(-1);
        // Without a receiver the service has stopped, and the lease brings the delivery back.
        let _ = self.reporter.send(Report::Ended(self.endpoint_id, self.finished.take()));
    }
}

/// Makes one attempt in a task of its own.
fn send(
    app: Arc<AppState>,
    client: WebhookClient,
    reporter: UnboundedSender<Report>,
    endpoint_id: EndpointId,
    target: Arc<Target>,
    held: Held,
) {
    app.metrics.webhook_in_flight(1);
    let ending = Ending { app, reporter, endpoint_id, finished: None };
    tokio::spawn(async move {
        let attempted_milliseconds = ending.app.store.clock.milliseconds();
        let outcome = match held.due.event.as_deref() {
            Some(event) => {
                let mut attempt = pin!(attempt(&client, &target, event, attempted_milliseconds));
                match timeout(Duration::from_millis(SLOW_MILLISECONDS), attempt.as_mut()).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        let _ = ending.reporter.send(Report::Slow(endpoint_id));
                        attempt.await
                    }
                }
            }
            None => unsent(DeliveryError::RequestInvalid),
        };
        ending.tell(Finished {
            delivery_id: held.due.id,
            schedule_start_milliseconds: held.due.schedule_start_milliseconds,
            step: held.due.step,
            attempts_count: held.due.attempts_count,
            lease_milliseconds: held.lease_milliseconds,
            attempted_milliseconds,
            is_success: outcome.is_success(),
            http_status: outcome.http_status,
            error: outcome.error.map(DeliveryError::code),
            duration_milliseconds: outcome.duration_milliseconds,
            answer: outcome.answer_excerpt,
            retry_after_seconds: outcome.retry_after_seconds,
        });
    });
}

async fn attempt(
    client: &WebhookClient,
    target: &Target,
    event: &EventRow,
    now_milliseconds: i64,
) -> Outcome {
    // The operator no longer allows loopback addresses; the owner sees why in the list of
    // deliveries.
    let Some(url) = &target.url else { return unsent(DeliveryError::AddressRefused) };
    let now_seconds = now_milliseconds.div_euclid(1_000);
    // The same bytes on every attempt: the event never changes, and its members have one order.
    let view = crate::events::api::view(event.clone(), target.scope.livemode());
    let Ok(body) = serde_json::to_vec(&view) else { return unsent(DeliveryError::RequestInvalid) };
    let id = event.id.to_string();
    let secrets: Vec<&str> = target
        .secrets
        .iter()
        .filter(|secret| secret.is_active(now_seconds))
        .map(|secret| secret.secret.as_str())
        .collect();
    let signature = signature_header(&secrets, &id, now_seconds, &body);
    client
        .send(Attempt {
            url,
            loopback_allowed: target.loopback_allowed,
            id: &id,
            timestamp_seconds: now_seconds,
            signature,
            body: Bytes::from(body),
            user_agent: USER_AGENT_TEXT,
            now_seconds,
        })
        .await
}

const fn unsent(error: DeliveryError) -> Outcome {
    Outcome {
        http_status: None,
        error: Some(error),
        duration_milliseconds: 0,
        answer_excerpt: String::new(),
        retry_after_seconds: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Id, Mode};

    fn lane(now: Instant) -> Lane {
        Lane::new(Scope::new(1, Mode::Test), now)
    }

    fn held(number: u128) -> Held {
        let due = DueDelivery {
            id: Id::from_u128(number),
            schedule_start_milliseconds: 0,
            step: 0,
            attempts_count: 0,
            due_milliseconds: 0,
            event: None,
        };
        Held { due, lease_milliseconds: LEASE_MILLISECONDS }
    }

    #[test]
    fn a_lane_takes_much_when_it_works_little_when_unknown_and_one_when_it_fails() {
        let now = Instant::now();
        let mut lane = lane(now);
        assert_eq!(
            (lane.wanted(now), lane.in_flight_max()),
            (ENDPOINT_HELD_UNTRIED_MAX, ENDPOINT_IN_FLIGHT_UNTRIED_MAX)
        );
        lane.standing = Standing::Trusted;
        assert_eq!(
            (lane.wanted(now), lane.in_flight_max()),
            (ENDPOINT_HELD_MAX, ENDPOINT_IN_FLIGHT_MAX)
        );
        lane.held.extend((0..65).map(held));
        assert_eq!(lane.wanted(now), 0, "not before half is sent");
        lane.held.pop_front();
        assert_eq!(lane.wanted(now), 64);
        lane.held.clear();
        lane.standing = Standing::Suspect;
        lane.failures_count = PROBED_FAILURES_MIN - 1;
        lane.in_flight = 1;
        assert_eq!(
            (lane.wanted(now), lane.in_flight_max()),
            (ENDPOINT_IN_FLIGHT_MAX - 1, ENDPOINT_IN_FLIGHT_MAX)
        );
        lane.hangs = true;
        assert_eq!((lane.wanted(now), lane.in_flight_max()), (1, ENDPOINT_IN_FLIGHT_UNTRIED_MAX));
        lane.in_flight = 0;
        lane.failures_count = PROBED_FAILURES_MIN;
        assert_eq!((lane.wanted(now), lane.in_flight_max()), (1, 1));
        lane.rests_until = now + Duration::from_millis(1);
        assert_eq!(lane.wanted(now), 0, "probes keep their distance");
        lane.rests_until = now;
        lane.in_flight = 1;
        assert_eq!(lane.wanted(now), 0, "one probe at a time");
    }

    #[test]
    fn suspects_and_strangers_leave_room_for_endpoints_that_work() {
        let mut in_flight = InFlight { trusted: 0, untried: 0, suspect: IN_FLIGHT_SUSPECT_MAX };
        assert!(!in_flight.has_room(Standing::Suspect));
        assert!(in_flight.has_room(Standing::Untried) && in_flight.has_room(Standing::Trusted));
        in_flight.untried = IN_FLIGHT_UNTRIED_MAX - IN_FLIGHT_SUSPECT_MAX;
        assert!(!in_flight.has_room(Standing::Untried));
        assert!(in_flight.has_room(Standing::Trusted));
        in_flight.trusted = IN_FLIGHT_MAX - in_flight.untried - in_flight.suspect;
        assert!(!in_flight.has_room(Standing::Trusted));

        let mut lane = lane(Instant::now());
        lane.in_flight = 3;
        let mut in_flight = InFlight { trusted: 5, untried: 3, suspect: 0 };
        DeliveryWorker::set_standing(&mut in_flight, &mut lane, Standing::Suspect);
        assert_eq!((in_flight.trusted, in_flight.untried, in_flight.suspect), (5, 0, 3));
    }
}
