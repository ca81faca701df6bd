//! The operator's stop switch: what the service does not do for now, for everybody or for one
//! account.
//!
//! A pause takes effect when its transaction commits. While quotes or transfers are paused, callers
//! are refused with 503 `service_paused`, which is not stored under their idempotency key. While
//! payouts are paused, callers are not refused. A payout waits, unless its file for the bank is
//! already in the folder `outbox`. Files in `outbox` still go to the bank.

pub mod rows;

use crate::kernel::{
    Code, DecidedBy, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::store::Tx;

crate::string_enum!(
    /// What can be paused.
    Operation { Quotes "quotes", Transfers "transfers", Payouts "payouts" }
);

/// The `Retry-After` of a refusal, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 60;

/// One pause as the operator set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub operation: Operation,
    /// The account that it stops; `None` stops all of them.
    pub account_number: Option<i64>,
    pub reason: String,
    pub actor: String,
    /// Unix seconds.
    pub paused_at: i64,
}

impl Pause {
    pub fn stops(&self, operation: Operation, scope: Scope) -> bool {
        self.operation == operation
            && self.account_number.is_none_or(|number| number == scope.account_number())
    }
}

/// Whether an operation is paused for an account.
pub fn is_paused(tx: &mut dyn Tx, scope: Scope, operation: Operation) -> Result<bool, StoreError> {
    Ok(rows::all(tx)?.iter().any(|pause| pause.stops(operation, scope)))
}

/// Refuses what is paused. The operator's reason is not shown: it is not written for callers.
pub fn refuse_paused(
    tx: &mut dyn Tx,
    scope: Scope,
    operation: Operation,
) -> Result<(), OperationError> {
    if !is_paused(tx, scope, operation)? {
        return Ok(());
    }
    let message = format!(
        "The operator has paused {}. Retry later with the same idempotency key.",
        operation.as_str()
    );
    let entry = RefusalEntry::new(Code::ServicePaused, message).with("paused", operation.as_str());
    let mut refusal = Refusal::one(entry);
    refusal.retry_after_seconds = Some(RETRY_AFTER_SECONDS);
    Err(refusal.into())
}

/// Sets a pause. It replaces an earlier one of the same operation and account.
pub fn pause(
    tx: &mut dyn Tx,
    now: &Now,
    operation: Operation,
    account_number: Option<i64>,
    by: &DecidedBy,
) -> Result<(), StoreError> {
    let pause = Pause {
        operation,
        account_number,
        reason: by.reason().to_owned(),
        actor: by.actor().to_owned(),
        paused_at: now.instant(),
    };
    rows::remove(tx, operation, account_number)?;
    rows::insert(tx, &pause)
}

/// Ends a pause; returns whether there was one.
pub fn resume(
    tx: &mut dyn Tx,
    operation: Operation,
    account_number: Option<i64>,
) -> Result<bool, StoreError> {
    rows::remove(tx, operation, account_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Mode;

    #[test]
    fn a_pause_stops_what_it_names() {
        let pause = |account_number| Pause {
            operation: Operation::Payouts,
            account_number,
            reason: String::new(),
            actor: String::new(),
            paused_at: 0,
        };
        let scope = Scope::new(7, Mode::Live);
        assert!(pause(None).stops(Operation::Payouts, scope));
        assert!(pause(Some(7)).stops(Operation::Payouts, scope));
        assert!(!pause(Some(8)).stops(Operation::Payouts, scope));
        assert!(!pause(None).stops(Operation::Transfers, scope));
    }
}
