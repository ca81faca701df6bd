//! The sandbox that attacks its caller, over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use crate::chaos::grade::{self, ChaosCheck, ChaosGrade};
use crate::chaos::{
    self, ChaosStatus, DELAY_MILLISECONDS_DEFAULT, DELAY_MILLISECONDS_MAX,
    DURATION_SECONDS_DEFAULT, DURATION_SECONDS_MAX, EVENTS_MAX, NewProfile, PERCENTAGE_DEFAULT,
    Profile, REQUESTS_MAX, RequestAttack, SEED_MAX, WEBHOOK_DELAY_MILLISECONDS_DEFAULT,
    WEBHOOK_DELAY_MILLISECONDS_MAX, WebhookAttack, rows,
};
use crate::http::fields::{EnumList, Int, NamedId};
use crate::http::form::Nothing;
use crate::http::route::{self, Context, Route};
use crate::kernel::id::kind;
use crate::kernel::{Code, Id, OperationError, Refusal, RefusalEntry};

crate::string_enum!(ChaosProfileWord { ChaosProfile "chaos_profile" });
crate::string_enum!(ChaosReportWord { ChaosReport "chaos_report" });
crate::enum_fields!(RequestAttack, WebhookAttack);

crate::form! {
    /// Begins to attack the requests of this key, and the deliveries to one webhook endpoint.
    StartChaos {
        duration_seconds: Option<Int<1, DURATION_SECONDS_MAX>>,
        seed: Option<Int<0, SEED_MAX>>,
        percentage: Option<Int<1, 100>>,
        request_attacks: Option<EnumList<RequestAttack>>,
        delay_milliseconds: Option<Int<0, DELAY_MILLISECONDS_MAX>>,
        webhook_endpoint_id: Option<NamedId<kind::WebhookEndpoint>>,
        webhook_attacks: Option<EnumList<WebhookAttack>>,
        webhook_delay_milliseconds: Option<Int<0, WEBHOOK_DELAY_MILLISECONDS_MAX>>,
    }
}

/// How this key is attacked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChaosProfile")]
pub struct ChaosProfileView {
    pub object: ChaosProfileWord,
    pub status: ChaosStatus,
    pub seed: i64,
    pub percentage: i64,
    pub request_attacks: Vec<RequestAttack>,
    pub delay_milliseconds: i64,
    pub webhook_endpoint_id: Option<Id<kind::WebhookEndpoint>>,
    pub webhook_attacks: Vec<WebhookAttack>,
    pub webhook_delay_milliseconds: i64,
    pub started_at: i64,
    pub ends_at: i64,
    pub livemode: bool,
}

/// What this key's caller did under the attacks, with a grade.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChaosReport")]
pub struct ChaosReportView {
    pub object: ChaosReportWord,
    pub status: ChaosStatus,
    /// Null until the status is `completed`.
    pub grade: Option<ChaosGrade>,
    pub seed: i64,
    pub started_at: i64,
    pub ends_at: i64,
    /// POSTs with different idempotency keys, and GETs.
    pub requests_count: i64,
    pub requests_attacked_count: i64,
    /// Events for the attacked webhook endpoint.
    pub events_count: i64,
    pub events_attacked_count: i64,
    /// What was looked for, each with its own result.
    pub checks: Vec<ChaosCheck>,
    pub livemode: bool,
}

pub fn routes() -> Vec<Route> {
    vec![
        route::post(
            "/v1/test_helpers/chaos",
            "Attack this key's requests and webhooks for a while",
            route::nothing,
            start,
        )
        .codes(&[Code::ObjectNotFound, Code::TestHelperNotApplicable])
        .renewing_caller(),
        route::get("/v1/test_helpers/chaos", "Get the chaos profile of this key", show)
            .codes(&[Code::ObjectNotFound]),
        route::post(
            "/v1/test_helpers/chaos/stop",
            "End the attacks now and complete the report",
            found,
            stop,
        )
        .codes(&[Code::ObjectNotFound])
        .renewing_caller(),
        route::get(
            "/v1/test_helpers/chaos/report",
            "Get the graded report of what this key's caller did",
            report,
        )
        .codes(&[Code::ObjectNotFound]),
    ]
}

fn view(profile: Profile, now_milliseconds: i64) -> ChaosProfileView {
    ChaosProfileView {
        object: ChaosProfileWord::ChaosProfile,
        status: profile.status(now_milliseconds),
        seed: profile.seed,
        percentage: profile.percentage,
        request_attacks: profile.request_attacks,
        delay_milliseconds: profile.delay_milliseconds,
        webhook_endpoint_id: profile.endpoint_id,
        webhook_attacks: profile.webhook_attacks,
        webhook_delay_milliseconds: profile.webhook_delay_milliseconds,
        started_at: profile.started_milliseconds.div_euclid(1_000),
        ends_at: profile.ends_milliseconds.div_euclid(1_000),
        livemode: profile.scope.livemode(),
    }
}

fn start(
    context: &mut Context<'_>,
    _: (),
    form: StartChaos,
) -> Result<ChaosProfileView, OperationError> {
    let scope = context.scope();
    let endpoint_id = match form.webhook_endpoint_id {
        None => None,
        Some(reference) => {
            let missing = || reference.missing("webhook_endpoint_id", scope.mode());
            let id = reference.id.ok_or_else(missing)?;
            if !rows::has_endpoint(context.tx, scope, id)? {
                return Err(missing().into());
            }
            Some(id)
        }
    };
    let webhook_attacks = match (form.webhook_attacks, endpoint_id) {
        (Some(EnumList(attacks)), None) if !attacks.is_empty() => {
            let message = "webhook_attacks needs the webhook_endpoint_id that is attacked.";
            let code = Code::ParameterEmpty;
            return Err(RefusalEntry::field(code, "webhook_endpoint_id", message).into());
        }
        (_, None) => Vec::new(),
        (Some(EnumList(attacks)), Some(_)) => attacks,
        (None, Some(_)) => WebhookAttack::ALL.to_vec(),
    };
    let new = NewProfile {
        duration_seconds: form.duration_seconds.map_or(DURATION_SECONDS_DEFAULT, |int| int.0),
        seed: form.seed.map(|int| int.0),
        percentage: form.percentage.map_or(PERCENTAGE_DEFAULT, |int| int.0),
        request_attacks: form.request_attacks.map_or(RequestAttack::ALL.to_vec(), |list| list.0),
        webhook_attacks,
        delay_milliseconds: form.delay_milliseconds.map_or(DELAY_MILLISECONDS_DEFAULT, |int| int.0),
        webhook_delay_milliseconds: form
            .webhook_delay_milliseconds
            .map_or(WEBHOOK_DELAY_MILLISECONDS_DEFAULT, |int| int.0),
        endpoint_id,
    };
    let profile = chaos::begin(context.tx, context.now, scope, context.caller.key_id, new)?;
    Ok(view(profile, context.now.instant_milliseconds()))
}

fn found(context: &mut Context<'_>) -> Result<Profile, OperationError> {
    let (scope, key_id) = (context.scope(), context.caller.key_id);
    let found = rows::find(context.tx, scope, key_id)?;
    Ok(found.ok_or_else(Refusal::not_found)?)
}

fn stop(
    context: &mut Context<'_>,
    _: Profile,
    _: Nothing,
) -> Result<ChaosProfileView, OperationError> {
    let (scope, key_id) = (context.scope(), context.caller.key_id);
    let profile = chaos::stop(context.tx, context.now, scope, key_id)?;
    Ok(view(profile, context.now.instant_milliseconds()))
}

fn show(context: &mut Context<'_>) -> Result<ChaosProfileView, OperationError> {
    Ok(view(found(context)?, context.now.instant_milliseconds()))
}

fn report(context: &mut Context<'_>) -> Result<ChaosReportView, OperationError> {
    let profile = found(context)?;
    let (scope, key_id) = (profile.scope, profile.key_id);
    let requests = rows::requests(context.tx, scope, key_id, REQUESTS_MAX)?;
    let events = rows::events(context.tx, scope, key_id, EVENTS_MAX)?;
    let now_milliseconds = context.now.instant_milliseconds();
    let (grade, checks) = grade::grade(&profile, &requests, &events, now_milliseconds);
    Ok(ChaosReportView {
        object: ChaosReportWord::ChaosReport,
        status: profile.status(now_milliseconds),
        grade,
        seed: profile.seed,
        started_at: profile.started_milliseconds.div_euclid(1_000),
        ends_at: profile.ends_milliseconds.div_euclid(1_000),
        requests_count: profile.writes.count + profile.reads.count,
        requests_attacked_count: profile.writes.attacked + profile.reads.attacked,
        events_count: profile.events.count,
        events_attacked_count: profile.events.attacked,
        checks,
        livemode: profile.scope.livemode(),
    })
}
