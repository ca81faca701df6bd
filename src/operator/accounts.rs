//! Suspends and resumes accounts.

use super::OperatorResult;
use super::four_eyes::{RequestedAction, keep_for_second_person};
use crate::decisions;
use crate::kernel::{DecidedBy, Now, OperationError, Role};
use crate::keys;
use crate::services::Settings;
use crate::store::Tx;

/// How the record of decisions names an account.
pub fn account_subject(name: &str) -> String {
    format!("account {name}")
}

/// Stops all keys of an account. Its running transfers go on. Declined if there is no such account,
/// or if it is suspended already.
pub fn suspend_account(
    tx: &mut dyn Tx,
    now: &mut Now,
    name: &str,
    by: &DecidedBy,
) -> OperatorResult {
    change(tx, now, name, true, by)?;
    Ok(format!("{name} is suspended; its keys stop working within a second"))
}

/// Lets the keys of a suspended account work again. Declined if there is no such account, or if it
/// is not suspended.
pub fn resume_account(
    tx: &mut dyn Tx,
    now: &mut Now,
    settings: &Settings,
    name: &str,
    by: &DecidedBy,
) -> OperatorResult {
    decisions::require_operator(tx, by, Role::Operator)?;
    if keys::rows::is_suspended(tx, name)? == Some(true) {
        let asked = RequestedAction::ResumeAccount { account: name.to_owned() };
        if let Some(waits) = keep_for_second_person(tx, now, settings, None, &asked, by)? {
            return Ok(waits);
        }
    }
    change(tx, now, name, false, by)?;
    Ok(format!("{name} is active"))
}

/// Suspends or resumes. If two persons do the same at once, one of them is told that it was done
/// already.
fn change(
    tx: &mut dyn Tx,
    now: &mut Now,
    name: &str,
    is_suspended: bool,
    by: &DecidedBy,
) -> Result<(), OperationError> {
    decisions::require_operator(tx, by, Role::Operator)?;
    if !keys::rows::set_suspended(tx, name, is_suspended)? {
        let fault = match keys::rows::is_suspended(tx, name)? {
            Some(true) => format!("{name} is suspended already"),
            Some(false) => format!("{name} is not suspended"),
            None => format!("there is no account {name:?}: `hundi accounts list` shows them"),
        };
        return Err(OperationError::Declined(fault));
    }
    let decision = if is_suspended { "suspend" } else { "resume" };
    decisions::record(tx, now, &account_subject(name), decision, by)
}
