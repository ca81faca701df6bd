//! Webhook endpoints: where an account's events are delivered to, with which secrets they are
//! signed, and which events are wanted.
//!
//! `sequencer` gives events their identifiers, and `fan_out` makes a delivery for each endpoint
//! that wants the event. `worker` makes the attempts with `sending`, at the times of `schedule`.
//! `deliveries` has the rules of a delivery. `replay` begins deliveries again, and `drill` tests a
//! receiver.

pub mod api;
pub mod deliveries;
pub mod drill;
pub mod fan_out;
pub mod handover;
pub mod queue_leases;
pub mod replay;
pub mod rows;
pub mod schedule;
pub mod sending;
pub mod sequencer;
pub mod state;
pub mod worker;

use serde::{Deserialize, Serialize};

use crate::events;
use crate::kernel::id::kind;
use crate::kernel::seal::SealedPlace;
use crate::kernel::state::Status;
use crate::kernel::{
    Code, Id, Metadata, MetadataPatch, Now, OperationError, Patch, Refusal, RefusalEntry, Scope,
    StoreError,
};
use crate::services::{Services, Settings};
use crate::store::Tx;
use crate::webhooks::sending::sign;
use crate::webhooks::sending::vet::{UrlError, UrlPolicy};
use crate::{keys, resource, resources};
use schedule::EndpointHealth;
use state::{EndpointDisabledReason, EndpointStatus};

/// The most webhook endpoints that an account may have in one mode.
pub const ENDPOINTS_MAX: i64 = 16;
/// The most secrets of one endpoint that sign at the same time. Each adds two signatures to the
/// header `Webhook-Signature`.
pub const SECRETS_ACTIVE_MAX: usize = 16;
/// The most entries of `enabled_events`.
pub const ENABLED_EVENTS_MAX: usize = 50;
/// How long an old secret goes on signing after a rotation, unless the caller says otherwise, in
/// seconds.
pub const ROTATION_OVERLAP_SECONDS_DEFAULT: i64 = 24 * 3_600;
/// The longest time an old secret goes on signing, in seconds.
pub const ROTATION_OVERLAP_SECONDS_MAX: i64 = 7 * 24 * 3_600;

#[derive(Clone)]
pub struct Endpoint {
    pub scope: Scope,
    pub id: Id<kind::WebhookEndpoint>,
    pub version: i64,
    /// As the caller gave it. It was allowed then; the operator's settings may forbid it by now.
    pub url: String,
    pub description: Option<String>,
    pub enabled_events: EventFilters,
    pub status: EndpointStatus,
    pub disabled_reason: Option<EndpointDisabledReason>,
    /// When it was disabled, by the store's clock; `None` while it is not disabled. A delivery
    /// whose schedule begins later is sent all the same, because somebody asked for a replay.
    pub disabled_milliseconds: Option<i64>,
    pub secrets_sealed: Vec<u8>,
    pub metadata: Metadata,
    pub created: i64,
    /// The key whose chaos profile attacks the endpoint.
    pub chaos_key_id: Option<Id<kind::ApiKey>>,
}

/// One secret of an endpoint. The type has no `Debug`, so that no log line prints it by mistake.
#[derive(Clone, Serialize, Deserialize)]
pub struct SigningSecret {
    pub secret: String,
    /// When it stops signing, in Unix seconds of the store's clock; `None` for the current secret.
    pub expires_at: Option<i64>,
}

impl SigningSecret {
    pub fn is_active(&self, now_seconds: i64) -> bool {
        self.expires_at.is_none_or(|expires_at| now_seconds < expires_at)
    }
}

/// Which events an endpoint takes: full types, `*`, or prefixes that end in `.*`, separated by
/// spaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventFilters(String);

impl EventFilters {
    pub fn all() -> EventFilters {
        EventFilters("*".into())
    }
    /// Takes filters that [`is_filter`] has accepted.
    pub fn from_list(filters: &[String]) -> EventFilters {
        EventFilters(filters.join(" "))
    }
    /// Takes the form that is stored, as [`EventFilters::as_text`] gives it.
    pub const fn from_text(text: String) -> EventFilters {
        EventFilters(text)
    }
    pub fn as_text(&self) -> &str {
        &self.0
    }
    pub fn to_list(&self) -> Vec<String> {
        self.0.split(' ').map(str::to_owned).collect()
    }
    pub fn matches(&self, event_type: &str) -> bool {
        self.0.split(' ').any(|filter| filter_matches(filter, event_type))
    }
}

fn filter_matches(filter: &str, event_type: &str) -> bool {
    match filter.strip_suffix('*') {
        Some(prefix) => event_type.starts_with(prefix),
        None => event_type == filter,
    }
}

/// Every event type there is, sorted.
pub fn event_types() -> Vec<&'static str> {
    let mut types: Vec<_> =
        resources::event_types().chain(resource::status_event_types::<EndpointStatus>()).collect();
    types.sort_unstable();
    types
}

/// Whether a text is a filter that matches at least one event type. A star may stand only alone, or
/// at the end after a dot.
pub fn is_filter(text: &str, catalogue: &[&str]) -> bool {
    let has_form = match text.strip_suffix('*') {
        Some(prefix) => prefix.is_empty() || prefix.ends_with('.'),
        None => true,
    };
    has_form && catalogue.iter().any(|event_type| filter_matches(text, event_type))
}

/// Where a webhook URL of this account and mode may point.
pub const fn url_policy(settings: &Settings, scope: Scope) -> UrlPolicy {
    UrlPolicy { loopback_allowed: settings.loopback_webhooks_allowed && !scope.livemode() }
}

/// The refusal of a URL, for its owner.
pub fn url_refusal(fault: UrlError, name: &str) -> RefusalEntry {
    let code = match fault {
        UrlError::TooLong => Code::ParameterMaxLengthInvalid,
        _ => Code::ParameterValueInvalid,
    };
    RefusalEntry::field(code, name, fault.to_string())
}

pub struct NewEndpoint {
    /// One that [`url_policy`] allows.
    pub url: String,
    pub description: Option<String>,
    pub enabled_events: EventFilters,
    pub metadata: Metadata,
}

/// Registers an endpoint. Answers the endpoint and its secret, which is never shown again. Refused
/// if the account has [`ENDPOINTS_MAX`] endpoints in this mode.
pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    new: NewEndpoint,
) -> Result<(Endpoint, String), OperationError> {
    crate::keys::rows::lock_account(tx, scope)?;
    if rows::count(tx, scope)? >= ENDPOINTS_MAX {
        let message = format!(
            "An account has at most {ENDPOINTS_MAX} webhook endpoints in each mode. Delete one \
             first."
        );
        return Err(Refusal::new(Code::WebhookEndpointLimitExceeded, message).into());
    }
    let id: Id<kind::WebhookEndpoint> = now.mint();
    let secret = sign::secret_text(now.random_bytes());
    let secrets = [SigningSecret { secret: secret.clone(), expires_at: None }];
    let endpoint = Endpoint {
        scope,
        id,
        version: 1,
        url: new.url,
        description: new.description,
        enabled_events: new.enabled_events,
        status: EndpointStatus::Enabled,
        disabled_reason: None,
        disabled_milliseconds: None,
        secrets_sealed: seal_secrets(tx, now, services, id, &secrets)?,
        metadata: new.metadata,
        created: now.business(),
        chaos_key_id: None,
    };
    rows::insert(tx, &endpoint)?;
    rows::queue_insert(tx, scope, id)?;
    Ok((endpoint, secret))
}

pub struct EndpointChange {
    /// One that [`url_policy`] allows.
    pub url: Option<String>,
    pub description: Patch<String>,
    pub enabled_events: Patch<EventFilters>,
    pub metadata: MetadataPatch,
    /// Whether to enable the endpoint again and forget its failures.
    pub enables: bool,
}

/// Changes an endpoint. What `change` does not name stays as it is.
pub fn update(
    tx: &mut dyn Tx,
    now: &mut Now,
    mut endpoint: Endpoint,
    change: EndpointChange,
) -> Result<Endpoint, OperationError> {
    if let Some(url) = change.url {
        endpoint.url = url;
    }
    endpoint.metadata = change.metadata.over(&endpoint.metadata)?;
    endpoint.description = change.description.over(endpoint.description);
    endpoint.enabled_events = match change.enabled_events {
        Patch::Keep => endpoint.enabled_events,
        Patch::Clear => EventFilters::all(),
        Patch::Set(filters) => filters,
    };
    if change.enables {
        rows::queue_set_health(tx, endpoint.id, EndpointHealth::default())?;
    }
    if change.enables && endpoint.status != EndpointStatus::Enabled {
        become_status(tx, now, &mut endpoint, EndpointStatus::Enabled)?;
    } else {
        let status = endpoint.status;
        rows::update(tx, &mut endpoint, status)?;
    }
    Ok(endpoint)
}

/// Gives an endpoint a new secret, which is never shown again. The old secrets go on signing for
/// `overlap_seconds` (0 to [`ROTATION_OVERLAP_SECONDS_MAX`]), unless an earlier rotation ends them
/// sooner. Refused if more than [`SECRETS_ACTIVE_MAX`] would sign.
pub fn rotate_secret(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    mut endpoint: Endpoint,
    overlap_seconds: i64,
) -> Result<(Endpoint, String), OperationError> {
    let secret = sign::secret_text(now.random_bytes());
    let secrets =
        rotated(open_secrets(services, &endpoint)?, secret.clone(), now.instant(), overlap_seconds);
    // No old secret is dropped to make room: receivers may still verify with it until the overlap
    // ends.
    if secrets.len() > SECRETS_ACTIVE_MAX {
        let message = format!(
            "An endpoint has at most {SECRETS_ACTIVE_MAX} secrets that sign. Wait until the \
             overlap of one is over, or send overlap_seconds 0, which ends all old secrets at once."
        );
        return Err(Refusal::new(Code::WebhookEndpointLimitExceeded, message).into());
    }
    endpoint.secrets_sealed = seal_secrets(tx, now, services, endpoint.id, &secrets)?;
    let status = endpoint.status;
    rows::update(tx, &mut endpoint, status)?;
    Ok((endpoint, secret))
}

/// The secrets after a rotation, the newest first. No old secret outlives the overlap. So a zero
/// overlap, for leaked secrets, ends all old ones at once.
fn rotated(
    old: Vec<SigningSecret>,
    secret: String,
    now_seconds: i64,
    overlap_seconds: i64,
) -> Vec<SigningSecret> {
    let overlap_ends_at = now_seconds + overlap_seconds;
    let shortened = old.into_iter().map(|old| SigningSecret {
        expires_at: Some(
            old.expires_at.map_or(overlap_ends_at, |expires_at| expires_at.min(overlap_ends_at)),
        ),
        ..old
    });
    std::iter::once(SigningSecret { secret, expires_at: None })
        .chain(shortened.filter(|old| old.is_active(now_seconds)))
        .collect()
}

/// Removes an endpoint with its secrets. The delivery worker may still begin attempts for about a
/// second, until it reads the endpoint again. The deliveries are purged later.
pub fn delete(tx: &mut dyn Tx, endpoint: &Endpoint) -> Result<(), StoreError> {
    rows::remove(tx, endpoint)?;
    rows::queue_close(tx, endpoint.id)?;
    drill::rows::remove(tx, endpoint.scope, endpoint.id)?;
    // The row of a replay is removed last. `queue_close` has locked the queue, and so has waited
    // for any replay that was about to begin. So the next statement sees the row of that replay.
    rows::replay_drop(tx, endpoint.scope, endpoint.id)
}

fn seal_secrets(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    id: Id<kind::WebhookEndpoint>,
    secrets: &[SigningSecret],
) -> Result<Vec<u8>, StoreError> {
    let plain = serde_json::to_vec(secrets)
        .map_err(|_| StoreError::Broken("webhook secrets do not serialise".into()))?;
    let key = services.sealing_key(tx)?;
    key.seal(now.random_bytes(), &SealedPlace::WEBHOOK_SECRETS, &id.to_bytes(), &plain)
}

/// All stored secrets of an endpoint, the newest first. Some may have expired.
pub fn open_secrets(
    services: &Services,
    endpoint: &Endpoint,
) -> Result<Vec<SigningSecret>, StoreError> {
    let plain = services.open(
        &SealedPlace::WEBHOOK_SECRETS,
        &endpoint.id.to_bytes(),
        &endpoint.secrets_sealed,
    )?;
    // The parser's message may quote a secret, so it is not passed on.
    serde_json::from_slice(&plain)
        .map_err(|_| StoreError::Broken("stored webhook secrets cannot be read".into()))
}

fn become_status(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &mut Endpoint,
    to: EndpointStatus,
) -> Result<(), StoreError> {
    let from = endpoint.status;
    if !from.can_become(to) {
        return Err(StoreError::Broken(format!(
            "a webhook endpoint cannot go from {} to {}",
            from.as_str(),
            to.as_str()
        )));
    }
    let is_disabled = to == EndpointStatus::Disabled;
    endpoint.status = to;
    endpoint.disabled_reason = is_disabled.then_some(EndpointDisabledReason::DeliveryFailures);
    endpoint.disabled_milliseconds = is_disabled.then(|| now.instant_milliseconds());
    rows::update(tx, endpoint, from)?;
    events::emit_status(tx, now, endpoint.scope, to, endpoint.id.any())
}

/// Moves an endpoint to the status `judged`, with one event for each arrow. The events are created
/// in the account's business time. A disabled endpoint stays disabled until its owner enables it.
fn follow_health(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &mut Endpoint,
    judged: EndpointStatus,
) -> Result<(), StoreError> {
    now.enter_account(keys::rows::clock_offset_seconds(tx, endpoint.scope)?);
    let followed = follow_arrows(tx, now, endpoint, judged);
    now.leave_account();
    followed
}

fn follow_arrows(
    tx: &mut dyn Tx,
    now: &mut Now,
    endpoint: &mut Endpoint,
    judged: EndpointStatus,
) -> Result<(), StoreError> {
    while let Some(next) = next_status(endpoint.status, judged) {
        become_status(tx, now, endpoint, next)?;
    }
    Ok(())
}

/// The next status on the way from `current` to `judged`; `None` at the end of the way. For an
/// endpoint that is `failing`, `deliveries` judges `enabled` only after a success.
fn next_status(current: EndpointStatus, judged: EndpointStatus) -> Option<EndpointStatus> {
    match (current, judged) {
        (EndpointStatus::Enabled, EndpointStatus::Failing | EndpointStatus::Disabled) => {
            Some(EndpointStatus::Failing)
        }
        (EndpointStatus::Failing, EndpointStatus::Disabled) => Some(EndpointStatus::Disabled),
        (EndpointStatus::Failing, EndpointStatus::Enabled) => Some(EndpointStatus::Enabled),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_types_and_prefixes() {
        let catalogue =
            ["payout.status.settled", "transfer.status.funded", "transfer.status.funding"];
        let rows = [
            ("*", true),
            ("transfer.status.funded", true),
            ("transfer.status.*", true),
            ("transfer.*", true),
            ("transfer.status.fund*", false),
            ("transfer*", false),
            ("*.status.funded", false),
            ("transfer.status.unknown", false),
            ("sender.*", false),
            (".*", false),
            ("**", false),
            ("transfer.status", false),
            ("Transfer.*", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_filter(text, &catalogue), expected, "{text}");
        }
        let filters =
            EventFilters::from_list(&["payout.status.settled".into(), "transfer.*".into()]);
        assert!(
            filters.matches("payout.status.settled") && filters.matches("transfer.status.funding")
        );
        assert!(!filters.matches("payout.status.settle") && !filters.matches("transfers.status.x"));
        assert!(EventFilters::all().matches("anything.at.all"));
        assert_eq!(EventFilters::from_text(filters.as_text().to_owned()), filters);
    }

    #[test]
    fn a_rotation_keeps_the_old_secrets_for_the_overlap() {
        let at = |secret: &str, expires_at| SigningSecret { secret: secret.into(), expires_at };
        let shown = |secrets: Vec<SigningSecret>| {
            secrets.into_iter().map(|secret| (secret.secret, secret.expires_at)).collect::<Vec<_>>()
        };
        let first = rotated(vec![at("a", None)], "b".into(), 100, 50);
        assert_eq!(shown(first.clone()), [("b".to_owned(), None), ("a".to_owned(), Some(150))]);
        let second = rotated(first, "c".into(), 120, 1_000);
        assert_eq!(
            shown(second.clone()),
            [("c".to_owned(), None), ("b".to_owned(), Some(1_120)), ("a".to_owned(), Some(150))]
        );
        let third = rotated(second.clone(), "d".into(), 130, 10);
        assert_eq!(
            shown(third),
            [
                ("d".to_owned(), None),
                ("c".to_owned(), Some(140)),
                ("b".to_owned(), Some(140)),
                ("a".to_owned(), Some(140))
            ]
        );
        assert_eq!(shown(rotated(second.clone(), "d".into(), 200, 0)), [("d".to_owned(), None)]);
        assert_eq!(
            shown(rotated(second, "d".into(), 150, 5)),
            [("d".to_owned(), None), ("c".to_owned(), Some(155)), ("b".to_owned(), Some(155))]
        );
    }

    #[test]
    fn statuses_follow_the_judgement_along_the_arrows() {
        for from in EndpointStatus::ALL {
            for judged in EndpointStatus::ALL {
                let mut status = *from;
                while let Some(next) = next_status(status, *judged) {
                    assert!(status.can_become(next));
                    status = next;
                }
                let expected = if *from == EndpointStatus::Disabled {
                    EndpointStatus::Disabled
                } else {
                    *judged
                };
                assert_eq!(status, expected, "{from:?} judged {judged:?}");
            }
        }
    }
}
