//! Events: handlers write an outbox row in their transaction; one sequencer gives the row its
//! identifier, in the order in which events become visible, and fans it out to webhook deliveries.

pub mod api;
pub mod rows;

use crate::kernel::state::Status;
use crate::kernel::{AnyId, Id, Now, Scope, StoreError};
use crate::store::{self, Signal, Tx, Value};
use crate::values;

/// Seconds an event is kept.
pub const EVENT_KEPT_SECONDS: i64 = 30 * 24 * 3600;
/// Events that one run of the sequencer takes.
const SEQUENCED_MAX: i64 = 2_000;

pub const BENEFICIARY_PAYOUTS_ENABLED_UPDATED: &str = "beneficiary.payouts_enabled.updated";
pub const DEPOSIT_COMPLETED: &str = "deposit.status.completed";
pub const PAYMENT_ADVICE_AVAILABLE: &str = "payout.payment_advice.available";

/// Every event type there is, sorted.
pub fn catalogue() -> Vec<&'static str> {
    fn of<S: Status>() -> impl Iterator<Item = &'static str> {
        S::ALL.iter().map(|status| status.event_type())
    }
    let mut types: Vec<_> = of::<crate::transfers::state::TransferStatus>()
        .chain(of::<crate::beneficiaries::state::BeneficiaryStatus>())
        .chain(of::<crate::payouts::state::PayoutStatus>())
        .chain(of::<crate::refunds::state::RefundStatus>())
        .chain(of::<crate::webhook_endpoints::state::EndpointStatus>())
        .chain([BENEFICIARY_PAYOUTS_ENABLED_UPDATED, DEPOSIT_COMPLETED, PAYMENT_ADVICE_AVAILABLE])
        .collect();
    types.sort_unstable();
    types
}

/// Writes an event's outbox row; the event is visible once the sequencer has seen it, within the
/// same commit here.
pub fn emit(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    event_type: &'static str,
    linked: AnyId,
) -> Result<(), StoreError> {
    // Events become visible in the order of commits, not of their identifiers.
    if store::plants("sequence_in_handler") {
        let event = rows::EventRow {
            id: now.mint(),
            event_type: event_type.to_owned(),
            linked,
            created: now.business(),
        };
        return rows::insert_all(tx, &[(scope, event)]);
    }
    let id: Id<crate::kernel::id::kind::Request> = now.mint();
    tx.execute_one(
        "INSERT INTO outbox (id, scope, type, linked_id, linked_object, created) VALUES (?1, ?2, \
         ?3, ?4, ?5, ?6)",
        values![id, scope, event_type, linked, linked.kind.as_str(), now.business()],
    )?;
    tx.signal(Signal::Outbox);
    Ok(())
}

/// Emits the event of a status that an object just took.
pub fn emit_status<S: Status>(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    status: S,
    linked: AnyId,
) -> Result<(), StoreError> {
    emit(tx, now, scope, status.event_type(), linked)
}

/// Turns outbox rows into events with strictly rising identifiers, and into deliveries. Runs at the
/// end of every group that wrote outbox rows, inside its commit.
pub fn sequence(tx: &mut dyn Tx, now: &mut Now) -> Result<(), StoreError> {
    let is_shared = tx.is_shared();
    // The clocks of two nodes differ by a little, so there the order is the database's.
    let order = if is_shared { "place, id" } else { "id" };
    let sql = format!(
        "SELECT id, scope, type, linked_id, linked_object, created FROM outbox ORDER BY {order} \
         LIMIT ?1"
    );
    let outbox = tx.rows(&sql, values![SEQUENCED_MAX])?;
    let mut outbox_ids = Vec::with_capacity(outbox.len());
    let mut events = Vec::with_capacity(outbox.len());
    for mut row in outbox {
        outbox_ids.push(row.bytes()?);
        let scope = row.scope()?;
        let event_type = row.text()?;
        let linked = row.any_id()?;
        events.push((
            scope,
            rows::EventRow { id: now.mint(), event_type, linked, created: row.int()? },
        ));
    }
    rows::insert_all(tx, &events)?;
    let mut subscribers = crate::webhook_endpoints::fan_out::Subscribers::default();
    for (scope, event) in &events {
        subscribers.fan_out(tx, now, *scope, event)?;
    }
    if is_shared {
        // Rows with lower identifiers may become visible at any moment, so exactly those that were
        // read go.
        let ids: Vec<Value<'_>> = outbox_ids.iter().map(Value::from).collect();
        store::delete_all(tx, "outbox", "id", &ids)?;
    } else if let Some(last_id) = outbox_ids.last() {
        tx.execute("DELETE FROM outbox WHERE id <= ?1", values![last_id])?;
    }
    Ok(())
}
