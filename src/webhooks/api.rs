//! Webhook endpoints and their deliveries over HTTP.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::deliveries::{ATTEMPTS_KEPT_MAX, AttemptRow, Delivery};
use super::replay::{self, Counted, Replay};
use super::state::{DeliveryStatus, EndpointDisabledReason, EndpointStatus};
use super::{
    ENABLED_EVENTS_MAX, Endpoint, EndpointChange, EventFilters, NewEndpoint,
    ROTATION_OVERLAP_SECONDS_DEFAULT, ROTATION_OVERLAP_SECONDS_MAX, is_filter, rows, url_policy,
    url_refusal,
};
use crate::http::body::Node;
use crate::http::fields::{EnumField, Int, NamedId, Text, TextList};
use crate::http::form::{Field, Replace, read_alone};
use crate::http::preflight::{Asking, PreflightFuture, PreflightResult};
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, ResourcePath, Route};
use crate::kernel::clock::TIME_MAX;
use crate::kernel::id::{Minter, kind};
use crate::kernel::page::Page;
use crate::kernel::{
    Code, Id, Metadata, MetadataPatch, Mode, Now, ObjectKind, OperationError, Patch, Refusal,
    RefusalEntry, Scope, StoreError,
};
use crate::keys;
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::webhooks::sending::vet::{self, URL_CHARACTERS_MAX, UrlPolicy};

pub const PATH: ResourcePath = ResourcePath {
    name: "webhook_endpoints",
    description: "Receivers of events, and the deliveries to them.",
};

crate::string_enum!(WebhookEndpointWord { WebhookEndpoint "webhook_endpoint" });
crate::string_enum!(WebhookDeliveryWord { WebhookDelivery "webhook_delivery" });
crate::string_enum!(WebhookReplayWord { WebhookReplay "webhook_replay" });
crate::string_enum!(
    /// The one status that a caller can ask for.
    EnableWord { Enabled "enabled" }
);
crate::enum_fields!(EnableWord);

/// A URL of a valid form. [`url_faults`] judges whether it is allowed in the caller's mode.
#[derive(Clone)]
pub struct WebhookUrlText(pub String);

impl Field for WebhookUrlText {
    fn schema() -> Value {
        json!({ "type": "string", "format": "uri", "minLength": 1, "maxLength": URL_CHARACTERS_MAX,
            "examples": ["https://example.com/webhooks"] })
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let Text(text) = Text::<1, URL_CHARACTERS_MAX>::parse(node, name, faults)?;
        match vet::parse_new_url(&text, UrlPolicy { loopback_allowed: true }) {
            Ok(_) => Some(WebhookUrlText(text)),
            Err(fault) => {
                faults.push(url_refusal(fault, name));
                None
            }
        }
    }
}

/// Which events are wanted: full types, `*`, or prefixes such as `transfer.status.*`.
#[derive(Clone)]
pub struct EnabledEvents(pub EventFilters);

impl Field for EnabledEvents {
    fn schema() -> Value {
        let mut schema = TextList::<ENABLED_EVENTS_MAX>::schema();
        schema["examples"] = json!([["transfer.status.*", "payout.status.settled"]]);
        schema
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        let TextList(filters) = TextList::<ENABLED_EVENTS_MAX>::parse(node, name, faults)?;
        let catalogue = super::event_types();
        let faults_before = faults.len();
        for (index, filter) in filters.iter().enumerate() {
            if !is_filter(filter, &catalogue) {
                let name = format!("{name}.{index}");
                let message = format!(
                    "{name} must be an event type, a prefix such as transfer.status.*, or *. \
                     The page /docs/webhooks lists the types."
                );
                faults.push(RefusalEntry::field(Code::ParameterValueInvalid, name, message));
            }
        }
        (faults.len() == faults_before).then(|| EnabledEvents(EventFilters::from_list(&filters)))
    }
}

crate::form! {
    /// Registers a receiver of events.
    CreateWebhookEndpoint {
        url: WebhookUrlText,
        enabled_events: Option<EnabledEvents>,
        description: Option<Text<1, 500>>,
        metadata: Metadata,
    }
}

crate::form! {
    /// Changes a webhook endpoint, or enables it again.
    at_least_one UpdateWebhookEndpoint {
        url: Replace<WebhookUrlText>,
        enabled_events: Patch<EnabledEvents>,
        description: Patch<Text<1, 500>>,
        metadata: MetadataPatch,
        status: Replace<EnumField<EnableWord>>,
    }
}

crate::form! {
    /// Asks for a new secret. Each old secret also signs until this overlap ends, or the overlap of
    /// an earlier rotation, whichever ends first.
    RotateWebhookSecret {
        overlap_seconds: Option<Int<0, ROTATION_OVERLAP_SECONDS_MAX>>,
    }
}

crate::form! {
    /// Asks for deliveries to be made again: those of one event, or those of the events that were
    /// created in a range of time.
    ReplayWebhooks {
        event_id: Option<NamedId<kind::Event>>,
        since: Option<Int<0, TIME_MAX>>,
        until: Option<Int<0, TIME_MAX>>,
        only_failed: Option<bool>,
    }
}

/// A registered receiver of events.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WebhookEndpoint")]
pub struct WebhookEndpointView {
    pub object: WebhookEndpointWord,
    pub id: Id<kind::WebhookEndpoint>,
    pub url: String,
    pub description: Option<String>,
    pub enabled_events: Vec<String>,
    pub status: EndpointStatus,
    pub disabled_reason: Option<EndpointDisabledReason>,
    /// Shown when the endpoint is created and when its secret is rotated, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    pub metadata: Metadata,
    pub created: i64,
    pub livemode: bool,
}

fn view(endpoint: Endpoint, secret: Option<String>) -> WebhookEndpointView {
    WebhookEndpointView {
        object: WebhookEndpointWord::WebhookEndpoint,
        id: endpoint.id,
        url: endpoint.url,
        description: endpoint.description,
        enabled_events: endpoint.enabled_events.to_list(),
        status: endpoint.status,
        disabled_reason: endpoint.disabled_reason,
        secret,
        metadata: endpoint.metadata,
        created: endpoint.created,
        livemode: endpoint.scope.livemode(),
    }
}

/// What is left of a deleted endpoint.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedWebhookEndpoint")]
pub struct DeletedView {
    pub object: WebhookEndpointWord,
    pub id: Id<kind::WebhookEndpoint>,
    pub deleted: bool,
}

/// One attempt of a delivery.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WebhookAttempt")]
pub struct AttemptView {
    pub attempted_at: i64,
    /// The status of the answer; `null` where none came.
    pub http_status: Option<i64>,
    pub duration_milliseconds: i64,
    /// Why no answer came, such as `connect_timeout`.
    pub error: Option<String>,
    /// The beginning of the answer's body, at most 2 KiB.
    pub answer: String,
}

/// The delivery of one event to one endpoint.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WebhookDelivery")]
pub struct WebhookDeliveryView {
    pub object: WebhookDeliveryWord,
    pub id: Id<kind::WebhookDelivery>,
    pub webhook_endpoint_id: Id<kind::WebhookEndpoint>,
    pub event_id: Id<kind::Event>,
    pub status: DeliveryStatus,
    pub attempts: Vec<AttemptView>,
    /// When the next attempt is due, in Unix seconds; null where none is. A test clock does not
    /// move it. A time that is past says that the attempt waits for its turn, or is under way.
    /// During an attempt, the time can also be that of the attempt after it, which begins if the
    /// present one gives no result.
    pub next_attempt_at: Option<i64>,
    pub created: i64,
    pub livemode: bool,
}

/// How many deliveries a replay begins.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WebhookReplay")]
pub struct WebhookReplayView {
    pub object: WebhookReplayWord,
    pub webhook_endpoint_id: Id<kind::WebhookEndpoint>,
    pub deliveries_count: u64,
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<EndpointStatus>)),
];

fn delivery_statuses() -> Vec<&'static str> {
    DeliveryStatus::WORDS.to_vec()
}

const DELIVERY_FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(delivery_statuses)),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::post_with_secret(
            "/v1/webhook_endpoints",
            "Register a webhook endpoint",
            true,
            route::nothing,
            create,
        )
        .codes(&[Code::WebhookEndpointLimitExceeded])
        .checking_form(url_faults),
        route::list(
            "/v1/webhook_endpoints",
            "List webhook endpoints",
            ObjectKind::WebhookEndpoint,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/webhook_endpoints/{id}", "Get a webhook endpoint", |context| {
            Ok(view(locate(context)?, None))
        }),
        route::post(
            "/v1/webhook_endpoints/{id}",
            "Update a webhook endpoint, or enable it again",
            locate,
            update,
        )
        .checking_form(url_faults),
        route::delete("/v1/webhook_endpoints/{id}", "Delete a webhook endpoint", delete),
        route::post_with_secret(
            "/v1/webhook_endpoints/{id}/rotate_secret",
            "Give a webhook endpoint a new secret",
            true,
            locate,
            rotate_secret,
        )
        .codes(&[Code::WebhookEndpointLimitExceeded]),
        route::list(
            "/v1/webhook_endpoints/{id}/deliveries",
            "List the deliveries to a webhook endpoint",
            ObjectKind::WebhookDelivery,
            DELIVERY_FILTERS,
            locate,
            deliveries_index,
        ),
        route::post("/v1/webhook_endpoints/{id}/replay", "Deliver events again", locate, replay)
            .one_at_a_time(|body| body.get("since").is_some())
            .preflight(count_before_transaction),
    ]
}

pub fn locate(context: &mut Context<'_>) -> Result<Endpoint, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

/// What is wrong with the body's `url` for this account and mode, although its form is valid.
fn url_faults(services: &Services, scope: Scope, body: &Node) -> Vec<RefusalEntry> {
    let url = read_alone::<WebhookUrlText>(body.get("url"));
    let judged = url.map(|url| vet::parse_url(&url.0, url_policy(&services.settings, scope)));
    Vec::from_iter(judged.and_then(Result::err).map(|fault| url_refusal(fault, "url")))
}

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateWebhookEndpoint,
) -> Result<WebhookEndpointView, OperationError> {
    let scope = context.scope();
    let new = NewEndpoint {
        url: form.url.0,
        description: form.description.map(|description| description.0),
        enabled_events: form.enabled_events.map_or_else(EventFilters::all, |events| events.0),
        metadata: form.metadata,
    };
    let (endpoint, secret) = super::create(context.tx, context.now, context.services, scope, new)?;
    Ok(view(endpoint, Some(secret)))
}

fn index(
    context: &mut Context<'_>,
    _: (),
    page: Page,
) -> Result<List<WebhookEndpointView>, OperationError> {
    let scope = context.scope();
    Ok(List::map(rows::list(context.tx, scope, &page)?, |row| Ok(view(rows::read(row)?, None)))?)
}

fn update(
    context: &mut Context<'_>,
    found: Endpoint,
    form: UpdateWebhookEndpoint,
) -> Result<WebhookEndpointView, OperationError> {
    let change = EndpointChange {
        url: form.url.0.map(|url| url.0),
        description: form.description.map(|description| description.0),
        enabled_events: form.enabled_events.map(|events| events.0),
        metadata: form.metadata,
        enables: form.status.0.is_some(),
    };
    Ok(view(super::update(context.tx, context.now, found, change)?, None))
}

fn delete(context: &mut Context<'_>) -> Result<DeletedView, OperationError> {
    let found = locate(context)?;
    super::delete(context.tx, &found)?;
    Ok(DeletedView { object: WebhookEndpointWord::WebhookEndpoint, id: found.id, deleted: true })
}

fn rotate_secret(
    context: &mut Context<'_>,
    found: Endpoint,
    form: RotateWebhookSecret,
) -> Result<WebhookEndpointView, OperationError> {
    let overlap_seconds =
        form.overlap_seconds.map_or(ROTATION_OVERLAP_SECONDS_DEFAULT, |overlap| overlap.0);
    let (endpoint, secret) =
        super::rotate_secret(context.tx, context.now, context.services, found, overlap_seconds)?;
    Ok(view(endpoint, Some(secret)))
}

fn deliveries_index(
    context: &mut Context<'_>,
    found: Endpoint,
    page: Page,
) -> Result<List<WebhookDeliveryView>, OperationError> {
    let rows = rows::deliveries(context.tx, found.id, &page)?;
    let livemode = found.scope.livemode();
    Ok(List::map(rows, |row| {
        let delivery = rows::read_delivery(row)?;
        let attempts =
            rows::attempts(context.tx, delivery.endpoint_id, delivery.id, ATTEMPTS_KEPT_MAX)?;
        Ok::<_, StoreError>(delivery_view(delivery, attempts, livemode))
    })?)
}

fn delivery_view(
    delivery: Delivery,
    attempts: Vec<AttemptRow>,
    livemode: bool,
) -> WebhookDeliveryView {
    let attempt_view = |attempt: AttemptRow| AttemptView {
        attempted_at: attempt.attempted_at,
        http_status: attempt.http_status,
        duration_milliseconds: attempt.duration_milliseconds,
        error: attempt.error,
        answer: attempt.answer,
    };
    WebhookDeliveryView {
        object: WebhookDeliveryWord::WebhookDelivery,
        id: delivery.id,
        webhook_endpoint_id: delivery.endpoint_id,
        event_id: delivery.event_id,
        status: delivery.status,
        attempts: attempts.into_iter().map(attempt_view).collect(),
        next_attempt_at: delivery
            .due_milliseconds
            .map(|milliseconds| milliseconds.div_euclid(1_000)),
        created: delivery.created,
        livemode,
    }
}

/// What the fields of a form ask for: the replay of one event, or of a range.
fn asked(form: ReplayWebhooks, mode: Mode, now_seconds: i64) -> Result<Replay, Refusal> {
    let mut faults = Vec::new();
    if let Some(event_id) = form.event_id {
        let others = [
            ("since", form.since.is_some()),
            ("until", form.until.is_some()),
            ("only_failed", form.only_failed.is_some()),
        ];
        for (name, _) in others.into_iter().filter(|other| other.1) {
            faults.push(RefusalEntry::field(
                Code::ParameterUnexpected,
                name,
                format!("Send either event_id or {name}, not both."),
            ));
        }
        Refusal::check(faults)?;
        // A text that is not an identifier of an event names no event.
        let id = event_id.id;
        return id
            .map(Replay::Event)
            .ok_or_else(|| Refusal::one(replay::event_not_found(&event_id, mode)));
    }
    let Some(since) = form.since else {
        return Err(Refusal::field(
            Code::ParameterEmpty,
            "event_id",
            "event_id or since is required.",
        ));
    };
    let until = form.until.map_or(now_seconds, |until| until.0);
    if form.until.is_some() && until < since.0 {
        let message = "until must not be before since.";
        let entry = RefusalEntry::field(Code::ParameterRangeInvalid, "until", message);
        return Err(Refusal::one(entry.with("minimum", since.0.to_string())));
    }
    Ok(Replay::Range { since: since.0, until, only_failed: form.only_failed.unwrap_or(false) })
}

/// The preflight of a replay: counts the deliveries of a range. It uses a connection that only
/// reads, so no write waits for it.
fn count_before_transaction(asking: Asking, form: ReplayWebhooks) -> Option<PreflightFuture> {
    let id = query::path_id(asking.ids.first()?).ok()?;
    let (scope, store) = (asking.caller.scope, asking.app.store.clone());
    let milliseconds = store.clock.milliseconds();
    let count = move |tx: &mut dyn Tx| {
        let mut now = Now::new(milliseconds, Minter::above(0), [0; 32]);
        now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
        // If the endpoint does not exist, or the fields do not fit together, the handler refuses.
        let Some(endpoint) = rows::find(tx, scope, id)? else { return Ok(None) };
        let Ok(asked) = asked(form, scope.mode(), now.business()) else { return Ok(None) };
        match replay::count_before_transaction(tx, &now, &endpoint, &asked) {
            Ok(counted) => {
                Ok(counted.map(|counted| Ok((counted.deliveries_count, counted.before.as_u128()))))
            }
            // A refusal that is stored for the idempotency key goes to the transaction, which
            // stores it. Any other refusal is answered at once.
            Err(OperationError::Refused(refusal)) if refusal.is_kept() => Ok(Some(Err(refusal))),
            Err(failure) => Err(failure),
        }
    };
    Some(Box::pin(async move {
        Ok(store.read(Cost::Expensive, count).await?.map(PreflightResult::Range))
    }))
}

fn replay(
    context: &mut Context<'_>,
    found: Endpoint,
    form: ReplayWebhooks,
) -> Result<WebhookReplayView, OperationError> {
    let asked = asked(form, found.scope.mode(), context.now.business())?;
    let counted = match context.preflight_result {
        Some(PreflightResult::Range(range)) => {
            let (deliveries_count, before) = range.clone()?;
            Some(Counted { deliveries_count, before: Id::from_u128(before) })
        }
        _ => None,
    };
    let deliveries_count = replay::replay_counted(context.tx, context.now, &found, asked, counted)?;
    Ok(WebhookReplayView {
        object: WebhookReplayWord::WebhookReplay,
        webhook_endpoint_id: found.id,
        deliveries_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::form::Form;

    fn node(value: &Value) -> Node {
        crate::http::body::parse(value.to_string().as_bytes()).unwrap()
    }

    fn faults<F: Form>(value: Value) -> Vec<(String, &'static str)> {
        match F::read_body(&node(&value), Vec::new()) {
            Ok(_) => Vec::new(),
            Err(refusal) => refusal
                .entries()
                .iter()
                .map(|fault| (fault.field_name.clone().unwrap_or_default(), fault.code.as_str()))
                .collect(),
        }
    }

    #[test]
    fn all_faults_of_a_registration_come_together() {
        let long = format!("https://example.com/{}", "a".repeat(URL_CHARACTERS_MAX));
        let rows = [
            (json!({"url": "https://example.com/hook"}), vec![]),
            (json!({"url": "http://127.0.0.1:9/"}), vec![]),
            (json!({}), vec![("url", "parameter_empty")]),
            (json!({"url": ""}), vec![("url", "parameter_empty")]),
            (json!({"url": 5}), vec![("url", "parameter_value_invalid")]),
            (json!({"url": long}), vec![("url", "parameter_max_length_invalid")]),
            (json!({"url": "https://a:b@example.com/"}), vec![("url", "parameter_value_invalid")]),
            (json!({"url": "https://example.com/#x"}), vec![("url", "parameter_value_invalid")]),
            (json!({"url": "https://10.0.0.1/"}), vec![("url", "parameter_value_invalid")]),
            (
                json!({"url": "ftp://example.com/", "enabled_events": ["transfer.status.*",
                    "nothing.*", "x"], "description": 5, "more": 1}),
                vec![
                    ("more", "parameter_unexpected"),
                    ("url", "parameter_value_invalid"),
                    ("enabled_events.1", "parameter_value_invalid"),
                    ("enabled_events.2", "parameter_value_invalid"),
                    ("description", "parameter_value_invalid"),
                ],
            ),
            (
                json!({"url": "https://example.com/", "enabled_events": []}),
                vec![("enabled_events", "parameter_min_length_invalid")],
            ),
            (
                json!({"url": "https://example.com/", "enabled_events": "*"}),
                vec![("enabled_events", "parameter_value_invalid")],
            ),
            (
                json!({"url": "https://example.com/", "enabled_events": vec!["*"; 51]}),
                vec![("enabled_events", "parameter_max_length_invalid")],
            ),
            (json!({"url": "https://example.com/", "enabled_events": vec!["*"; 50]}), vec![]),
        ];
        for (body, expected) in rows {
            let found = faults::<CreateWebhookEndpoint>(body.clone());
            let found: Vec<_> = found.iter().map(|(name, code)| (name.as_str(), *code)).collect();
            assert_eq!(found, expected, "{body}");
        }
        assert_eq!(
            faults::<UpdateWebhookEndpoint>(json!({})),
            [(String::new(), "parameter_empty")]
        );
        assert_eq!(
            faults::<UpdateWebhookEndpoint>(json!({"status": "disabled"})),
            [("status".to_owned(), "parameter_value_invalid")]
        );
        assert_eq!(
            faults::<UpdateWebhookEndpoint>(json!({"url": null})),
            [("url".to_owned(), "parameter_empty")]
        );
        assert!(
            faults::<UpdateWebhookEndpoint>(
                json!({"enabled_events": null, "description": null, "metadata": null})
            )
            .is_empty()
        );
        assert!(RotateWebhookSecret::takes_empty_body());
        assert_eq!(
            faults::<RotateWebhookSecret>(json!({"overlap_seconds": 604_801})),
            [("overlap_seconds".to_owned(), "parameter_range_invalid")]
        );
    }

    #[test]
    fn a_replay_names_one_event_or_a_range() {
        let event = "event_01JDK3Y5M8Q2X7N4V6T9R0ABCD";
        let rows = [
            (json!({"event_id": event}), None),
            (json!({"since": 5}), None),
            (json!({"since": 5, "until": 5, "only_failed": true}), None),
            (json!({}), Some(("event_id", "parameter_empty"))),
            (json!({"until": 5}), Some(("event_id", "parameter_empty"))),
            (json!({"event_id": event, "since": 5}), Some(("since", "parameter_unexpected"))),
            (
                json!({"event_id": event, "only_failed": false}),
                Some(("only_failed", "parameter_unexpected")),
            ),
            (json!({"event_id": "event_1"}), Some(("event_id", "object_not_found"))),
            (json!({"since": 5, "until": 4}), Some(("until", "parameter_range_invalid"))),
        ];
        for (body, expected) in rows {
            let form = ReplayWebhooks::read_body(&node(&body), Vec::new()).unwrap();
            let found = asked(form, Mode::Test, 100).err().map(|refusal| {
                let fault = &refusal.entries()[0];
                (fault.field_name.clone().unwrap_or_default(), fault.code.as_str())
            });
            assert_eq!(
                found.as_ref().map(|(name, code)| (name.as_str(), *code)),
                expected,
                "{body}"
            );
        }
    }
}
