//! Events for the webhook endpoint that a profile attacks: what happens to each on its way, and how
//! the receiver answered.

use super::seen::{EventId, WatchedEvent};
use super::{EVENTS_MAX, EndpointId, KeyId, WebhookAttack, rows};
use crate::kernel::{Now, Scope, StoreError};
use crate::store::Tx;

/// What happens to a delivery as it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Due at once.
    Free,
    /// Due this many milliseconds later.
    Late(i64),
    /// Only recorded, as for a disabled endpoint.
    Missing,
}

/// Draws what happens to a new event of an attacked endpoint, and stores the event. Once the
/// profile's attacks have ended or it has [`EVENTS_MAX`] events, nothing is drawn or stored.
pub fn passage(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    (key_id, endpoint_id): (KeyId, EndpointId),
    event_id: EventId,
    linked_id: &str,
) -> Result<Passage, StoreError> {
    rows::lock_profile(tx, scope, key_id)?;
    let at = now.instant_milliseconds();
    let Some(mut profile) = rows::find(tx, scope, key_id)?.filter(|profile| {
        at < profile.ends_milliseconds && profile.endpoint_id == Some(endpoint_id)
    }) else {
        return Ok(Passage::Free);
    };
    if profile.events.count >= EVENTS_MAX {
        return Ok(Passage::Free);
    }
    let drawing = (profile.seed, profile.percentage);
    let attack = profile.events.next(drawing, "event", &profile.webhook_attacks);
    rows::update(tx, &profile)?;
    let event = WatchedEvent {
        event_id,
        number: profile.events.count,
        linked_id: linked_id.to_owned(),
        attack,
        http_status: None,
        attacked_http_status: None,
        duration_milliseconds: 0,
        was_read: false,
    };
    rows::event_insert(tx, scope, key_id, &event)?;
    Ok(match attack {
        Some(WebhookAttack::Late) => Passage::Late(profile.webhook_delay_milliseconds),
        Some(WebhookAttack::Missing) => Passage::Missing,
        Some(WebhookAttack::Duplicated | WebhookAttack::Forged) | None => Passage::Free,
    })
}

/// What the delivery worker has to know of an event that a profile watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedDelivery {
    pub scope: Scope,
    pub key_id: KeyId,
    pub event_id: EventId,
    /// The attack that the delivery has not met yet. `None` if there is none, or if the profile
    /// attacks no more.
    pub attack: Option<WebhookAttack>,
}

/// What the delivery worker has to know of a due delivery's event; `None` if no profile watches it.
pub fn watched_delivery(
    tx: &mut dyn Tx,
    at_milliseconds: i64,
    scope: Scope,
    key_id: KeyId,
    event_id: EventId,
) -> Result<Option<WatchedDelivery>, StoreError> {
    let Some(profile) = super::find_open(tx, at_milliseconds, scope, key_id)? else {
        return Ok(None);
    };
    let Some(event) = rows::event(tx, scope, key_id, event_id)? else { return Ok(None) };
    let is_attacking = at_milliseconds < profile.ends_milliseconds;
    let attack = event.attack.filter(|_| is_attacking && event.attacked_http_status.is_none());
    Ok(Some(WatchedDelivery { scope, key_id, event_id, attack }))
}

/// Records how the receiver answered an attempt. `attacked_http_status` is how it answered the
/// forged copy or the second delivery that was sent with the attempt, if one was. The status 0
/// stands for no answer.
pub fn delivered(
    tx: &mut dyn Tx,
    now: &Now,
    watched: WatchedDelivery,
    http_status: i64,
    attacked_http_status: Option<i64>,
    duration_milliseconds: i64,
) -> Result<(), StoreError> {
    let WatchedDelivery { scope, key_id, event_id, .. } = watched;
    if super::find_open(tx, now.instant_milliseconds(), scope, key_id)?.is_none() {
        return Ok(());
    }
    let Some(mut event) = rows::event(tx, scope, key_id, event_id)? else { return Ok(()) };
    event.http_status = Some(http_status);
    // A refused event is sent again. So of the answers to a late event, the first one counts.
    let late = (event.attack == Some(WebhookAttack::Late)).then_some(http_status);
    event.attacked_http_status =
        event.attacked_http_status.or(attacked_http_status).or(late.filter(|status| *status > 0));
    event.duration_milliseconds = event.duration_milliseconds.max(duration_milliseconds);
    // An event that the attack `missing` withheld counts as read too, if it was replayed and the
    // receiver took it.
    event.was_read |= (200..300).contains(&http_status);
    rows::event_update(tx, scope, key_id, &event)
}

/// Marks events that the attack `missing` withheld as read. `is_read` says whether the caller has
/// read an event or the object that it is about.
pub fn mark_read(
    tx: &mut dyn Tx,
    now: &Now,
    scope: Scope,
    key_id: KeyId,
    is_read: &dyn Fn(&WatchedEvent) -> bool,
) -> Result<(), StoreError> {
    if super::find_open(tx, now.instant_milliseconds(), scope, key_id)?.is_none() {
        return Ok(());
    }
    for mut event in rows::events_missing(tx, scope, key_id)? {
        if is_read(&event) {
            event.was_read = true;
            rows::event_update(tx, scope, key_id, &event)?;
        }
    }
    Ok(())
}
