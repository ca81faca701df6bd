//! Drills of a webhook receiver, in test mode: hundi sends the receiver the requests that networks,
//! attackers and retries can bring about, and keeps a report that grades its answers.
//!
//! A request writes a row. A worker claims the row, does the steps one after another, and stores
//! the report, which is kept until the next drill of the endpoint. A drill sends the account's own
//! latest events, and a copy of one with an unknown type. So a receiver can fetch the objects that
//! the events name. Nothing that a drill sends counts as a delivery: it is not listed, not retried,
//! and does not change the endpoint's health.

pub mod api;
pub mod rows;
pub mod steps;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app_state::AppState;
use crate::background::{Stop, is_stopped};
use crate::events::rows::EventRow;
use crate::kernel::{Code, Now, OperationError, Refusal, Scope, StoreError};
use crate::store::{Cost, Tx};
use crate::webhooks::rows::EndpointId;
use crate::webhooks::sending::attempt::{AttemptOutcome, DeliveryAttempt, USER_AGENT_TEXT};
use crate::webhooks::sending::client::WebhookClient;
use crate::webhooks::sending::vet::{self, WebhookUrl};
use crate::webhooks::{self, Endpoint};
use steps::{DrillDelivery, DrillStep};

/// How many events an account needs before it can have a drill.
pub const EVENTS_MIN: usize = 2;
/// How long a drill belongs to the worker that claimed it, in milliseconds: longer than all steps
/// can take.
const LEASE_MILLISECONDS: i64 = 10 * 60 * 1000;
/// The most drills that a worker runs at the same time, each of another account.
const RUNNING_MAX: usize = 4;
/// The most drills that one look finds.
const LOOKED_MAX: i64 = 1_000;
/// How often a worker looks for drills.
const LOOK_MILLISECONDS: u64 = 500;

crate::string_enum!(
    /// Where a drill stands.
    DrillStatus { Running "running", Completed "completed" }
);
crate::string_enum!(
    /// `passed` if every check passed, otherwise `failed`.
    DrillGrade { Passed "passed", Failed "failed" }
);

/// What one step found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrillCheck {
    /// What was tried.
    pub name: String,
    /// Whether the receiver answered as it should.
    pub passed: bool,
    /// The answer that is right: `2xx` or `4xx`. `any` where only the time counts.
    pub expected: String,
    /// Type of the event in each delivery, in the order in which they were sent.
    // Reports that were stored before this field was added do not have it.
    #[serde(default)]
    #[schemars(!default)]
    pub event_types: Vec<String>,
    /// HTTP statuses of the answers; 0 where none came.
    pub http_statuses: Vec<u16>,
    /// The longest time to an answer, in milliseconds.
    pub duration_milliseconds: u32,
    /// What the check is for, and what to correct if it failed.
    pub message: String,
}

/// The newest drill of an endpoint.
pub struct Drill {
    pub scope: Scope,
    pub endpoint_id: EndpointId,
    pub status: DrillStatus,
    pub checks: Vec<DrillCheck>,
    /// When the claim of the node that runs the drill ends, in milliseconds of the store's clock;
    /// 0 before any node has claimed it. After that time another node may run the drill.
    pub lease_ends_milliseconds: i64,
    pub created: i64,
    pub completed_at: Option<i64>,
}

impl Drill {
    /// `None` while the drill runs.
    pub fn grade(&self) -> Option<DrillGrade> {
        (self.status == DrillStatus::Completed).then(|| {
            let is_passed = self.checks.iter().all(|check| check.passed);
            if is_passed { DrillGrade::Passed } else { DrillGrade::Failed }
        })
    }
}

/// Begins a drill, which replaces the report of the endpoint's last one. Refused in live mode,
/// while a drill of the endpoint runs, and if the account has fewer than [`EVENTS_MIN`] events.
pub fn begin(tx: &mut dyn Tx, now: &Now, endpoint: &Endpoint) -> Result<Drill, OperationError> {
    let scope = endpoint.scope;
    if scope.livemode() {
        let message = "A drill sends forged deliveries, so it needs a test key.";
        return Err(Refusal::new(Code::TestmodeActionOnly, message).into());
    }
    let refuse = |message: &str| Refusal::new(Code::TestHelperNotApplicable, message);
    let before = rows::find(tx, scope, endpoint.id)?;
    let is_running = before.as_ref().is_some_and(|drill| drill.status == DrillStatus::Running);
    if is_running {
        return Err(refuse(
            "A drill of this endpoint is running. Wait until its status is completed.",
        )
        .into());
    }
    if events_of(tx, scope)?.len() < EVENTS_MIN {
        let message = "A drill sends the account's own latest events, and there are fewer than \
                       two yet. Create a beneficiary first.";
        return Err(refuse(message).into());
    }
    let drill = Drill {
        scope,
        endpoint_id: endpoint.id,
        status: DrillStatus::Running,
        checks: Vec::new(),
        lease_ends_milliseconds: 0,
        created: now.business(),
        completed_at: None,
    };
    if before.is_some() {
        rows::remove(tx, scope, endpoint.id)?;
    }
    rows::insert(tx, &drill)?;
    Ok(drill)
}

/// The latest events of an account, at most [`EVENTS_MIN`], oldest first.
fn events_of(tx: &mut dyn Tx, scope: Scope) -> Result<Vec<EventRow>, StoreError> {
    rows::latest_events(tx, scope, EVENTS_MIN as i64)
}

/// Runs drills until `stop`. A drill that a stop or a crash interrupted runs again when its claim
/// ends; on the embedded store, at the next start.
pub async fn run(app: Arc<AppState>, client: WebhookClient, mut stop: Stop) {
    if !app.store.is_shared() {
        // No other process runs drills, so those that an earlier process began can begin again at
        // once.
        let released = app.store.write(|tx, _| Ok(rows::release(tx)?)).await;
        if let Err(failure) = released {
            tracing::warn!(?failure, "drills of an earlier run begin again when their claims end");
        }
    }
    let mut running = FuturesUnordered::new();
    let mut accounts = HashSet::new();
    while !is_stopped(&stop) {
        let now_milliseconds = app.store.clock.milliseconds();
        let due =
            app.store.read(Cost::Point, move |tx| Ok(rows::due(tx, now_milliseconds, LOOKED_MAX)?));
        for drill in due.await.unwrap_or_default() {
            let scope = drill.scope;
            if running.len() < RUNNING_MAX && accounts.insert(scope) {
                let (app, client) = (app.clone(), &client);
                running.push(async move {
                    run_one(&app, client, drill).await;
                    scope
                });
            }
        }
        tokio::select! {
            Some(scope) = running.next() => {
                accounts.remove(&scope);
            }
            () = tokio::time::sleep(Duration::from_millis(LOOK_MILLISECONDS)) => {}
            _ = stop.changed() => return,
        }
    }
}

/// What a drill needs to know of an endpoint and its account.
struct DrillTarget {
    /// `None` if the endpoint's URL is no longer allowed.
    url: Option<WebhookUrl>,
    loopback_allowed: bool,
    secret: String,
    events: Vec<EventRow>,
    /// How far the account's test clock is ahead of the store's clock.
    clock_offset_seconds: i64,
}

async fn run_one(app: &AppState, client: &WebhookClient, drill: Drill) {
    let (scope, id) = (drill.scope, drill.endpoint_id);
    let lease_ends_milliseconds = drill.lease_ends_milliseconds;
    let services = app.services.clone();
    let claim = move |tx: &mut dyn Tx, now: &mut Now| {
        let ends_milliseconds = now.instant_milliseconds() + LEASE_MILLISECONDS;
        let Some(endpoint) = webhooks::rows::find(tx, scope, id)? else {
            rows::remove(tx, scope, id)?;
            return Ok(None);
        };
        if !rows::claim(tx, scope, id, lease_ends_milliseconds, ends_milliseconds)? {
            return Ok(None);
        }
        let policy = webhooks::url_policy(&services.settings, scope);
        let secrets = webhooks::open_secrets(&services, &endpoint)?;
        Ok(Some(DrillTarget {
            url: vet::parse_url(&endpoint.url, policy).ok(),
            loopback_allowed: policy.loopback_allowed,
            // The newest secret is first.
            secret: secrets.into_iter().next().map_or(String::new(), |secret| secret.secret),
            events: events_of(tx, scope)?,
            clock_offset_seconds: crate::keys::rows::clock_offset_seconds(tx, scope)?,
        }))
    };
    let target = match app.store.write(claim).await {
        Ok(Some(target)) => target,
        Ok(None) => return,
        Err(failure) => {
            tracing::warn!(?failure, "a drill could not be claimed; trying again");
            // The drill is still due: without a pause, the next look would claim it at once.
            tokio::time::sleep(Duration::from_millis(LOOK_MILLISECONDS)).await;
            return;
        }
    };
    let mut checks = Vec::new();
    for step in steps::steps(&target.events, scope.livemode()) {
        checks.push(run_step(app, client, &target, step).await);
    }
    steps::conclude(&mut checks);
    let clock_offset_seconds = target.clock_offset_seconds;
    let store = move |tx: &mut dyn Tx, now: &mut Now| {
        Ok(rows::complete(tx, scope, id, &checks, now.instant() + clock_offset_seconds)?)
    };
    if let Err(failure) = app.store.write(store).await {
        tracing::warn!(?failure, "a drill's report could not be stored; the drill runs again");
    }
}

/// Sends a step's deliveries, at the same time or one after another, and judges the answers.
async fn run_step(
    app: &AppState,
    client: &WebhookClient,
    target: &DrillTarget,
    step: DrillStep,
) -> DrillCheck {
    let now_seconds = app.store.clock.milliseconds().div_euclid(1000);
    let sent = step.deliveries(&target.secret, now_seconds);
    let outcomes: Vec<Option<AttemptOutcome>> = if step.is_at_once {
        join_all(sent.iter().map(|one| send(client, target, one, now_seconds))).await
    } else {
        let mut outcomes = Vec::new();
        for one in &sent {
            outcomes.push(send(client, target, one, now_seconds).await);
        }
        outcomes
    };
    step.judge(&outcomes)
}

/// Sends one delivery; `None` if the endpoint's URL is no longer allowed.
async fn send(
    client: &WebhookClient,
    target: &DrillTarget,
    sent: &DrillDelivery,
    now_seconds: i64,
) -> Option<AttemptOutcome> {
    let url = target.url.as_ref()?;
    let attempt = DeliveryAttempt {
        url,
        loopback_allowed: target.loopback_allowed,
        id: &sent.id,
        timestamp_seconds: sent.timestamp_seconds,
        signature: sent.signature.clone(),
        body: Bytes::from(sent.body.clone()),
        is_slow: sent.is_slow,
        user_agent: USER_AGENT_TEXT,
        now_seconds,
    };
    Some(client.send(attempt).await)
}
