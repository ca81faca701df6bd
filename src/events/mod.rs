//! Events. A transaction that changes an object writes an outbox row for the event. One sequencer
//! (`webhooks::sequencer`) turns each row into an event. It mints the events' identifiers in the
//! order in which the events become visible.

pub mod api;
pub mod chain;
pub mod rows;
pub mod watch;

use crate::kernel::state::Status;
use crate::kernel::{AnyId, InternalId, Now, Scope, StoreError};
use crate::store::{self, Signal, Tx};

/// How long an event is kept, in seconds.
pub const EVENT_KEPT_SECONDS: i64 = 30 * 24 * 3600;

pub const BENEFICIARY_PAYOUTS_ENABLED_UPDATED: &str = "beneficiary.payouts_enabled.updated";
pub const DEPOSIT_COMPLETED: &str = "deposit.status.completed";
pub const REFUND_PAYER_ADDRESS_UPDATED: &str = "refund.payer_address.updated";
pub const PAYMENT_ADVICE_AVAILABLE: &str = "payout.payment_advice.available";

/// Writes an event's outbox row. The event becomes visible once the sequencer has given it an
/// identifier: on the embedded store usually in the same commit, on PostgreSQL in a later
/// transaction.
pub fn emit(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    event_type: &'static str,
    linked: AnyId,
) -> Result<(), StoreError> {
    // Planted fault: with identifiers minted here, events become visible out of the order of their
    // identifiers. The test of the order must notice.
    if store::failpoint("sequence_in_handler") {
        let event = rows::EventRow {
            id: now.mint(),
            event_type: event_type.to_owned(),
            linked,
            created: now.business(),
        };
        return rows::insert_all(tx, &[(scope, event)]);
    }
    let id: InternalId = now.mint();
    rows::insert_outbox(tx, scope, id, event_type, linked, now.business())?;
    tx.signal(Signal::Outbox);
    Ok(())
}

/// Emits the event of an object's new status.
pub fn emit_status<S: Status>(
    tx: &mut dyn Tx,
    now: &mut Now,
    scope: Scope,
    status: S,
    linked: AnyId,
) -> Result<(), StoreError> {
    emit(tx, now, scope, status.event_type(), linked)
}
