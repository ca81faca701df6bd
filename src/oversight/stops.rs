//! What operators have stopped: paused operations, for everybody or for one account, and suspended
//! accounts. Each stop says who set it, when and why.

use super::AccountNames;
use crate::decisions;
use crate::kernel::{Scope, StoreError};
use crate::keys;
use crate::operator;
use crate::pauses::{self, Operation};
use crate::store::Tx;

/// What is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    Paused(Operation),
    /// All keys of an account.
    Suspended,
}

/// One stop that an operator has set and nobody has ended.
#[derive(Clone, Debug)]
pub struct OperatorStop {
    pub kind: StopKind,
    /// Number and name of the account; `None` for all accounts.
    pub account: Option<(i64, String)>,
    /// Who set it and why; each is empty if nobody said so.
    pub actor: String,
    pub reason: String,
    /// Unix seconds of the store's clock; `None` for an account that was suspended before decisions
    /// were recorded.
    pub since: Option<i64>,
}

impl OperatorStop {
    /// Whether it stops this account alone.
    pub fn is_of_account(&self, scope: Scope) -> bool {
        self.account.as_ref().is_some_and(|(number, _)| *number == scope.account_number())
    }
}

/// Everything that is stopped: pauses, then suspended accounts.
pub fn read(tx: &mut dyn Tx, accounts: &AccountNames) -> Result<Vec<OperatorStop>, StoreError> {
    let mut stops = Vec::new();
    for pause in pauses::rows::all(tx)? {
        let named = |number| (number, accounts.named(number).to_owned());
        stops.push(OperatorStop {
            kind: StopKind::Paused(pause.operation),
            account: pause.account_number.map(named),
            actor: pause.actor,
            reason: pause.reason,
            since: Some(pause.paused_at),
        });
    }
    for (number, name) in keys::rows::suspended(tx)? {
        let subject = operator::account_subject(&name);
        let decision = decisions::rows::last_of(tx, &subject, "suspend")?;
        let by = decision.as_ref().map(|decision| &decision.by);
        stops.push(OperatorStop {
            kind: StopKind::Suspended,
            account: Some((number, name)),
            actor: by.map_or_else(String::new, |by| by.actor().to_owned()),
            reason: by.map_or_else(String::new, |by| by.reason().to_owned()),
            since: decision.map(|decision| decision.decided_at),
        });
    }
    Ok(stops)
}
