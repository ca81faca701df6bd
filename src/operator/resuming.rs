//! Ends pauses, and continues the payouts that waited for the end.

use super::OperatorResult;
use super::four_eyes::{RequestedAction, keep_for_second_person, number_of_account};
use crate::kernel::{DecidedBy, Mode, Now, OperationError, Role, Scope};
use crate::pauses::{self, Operation};
use crate::services::Settings;
use crate::store::{Cost, Store, Tx};
use crate::transfers::paying;
use crate::{decisions, keys};

/// How the record of decisions names a pause.
pub fn pause_subject(operation: Operation, account: &Option<String>) -> String {
    match account {
        None => operation.as_str().to_owned(),
        Some(name) => format!("{} of account {name}", operation.as_str()),
    }
}

fn whom(account: &Option<String>) -> String {
    account.as_ref().map_or_else(|| "everybody".to_owned(), |name| format!("account {name:?}"))
}

/// Ends a pause for everybody or for one account. The caller has to call [`submit_waiting`] after
/// the commit, so that payouts that waited go on. Declined if there is no such pause.
pub fn resume(
    tx: &mut dyn Tx,
    now: &mut Now,
    settings: &Settings,
    operation: Operation,
    account: Option<String>,
    by: &DecidedBy,
) -> OperatorResult {
    decisions::require_operator(tx, by, Role::Operator)?;
    let number = number_of_account(tx, account.as_deref())?;
    let is_it =
        |pause: &pauses::Pause| (pause.operation, pause.account_number) == (operation, number);
    if !pauses::rows::all(tx)?.iter().any(is_it) {
        return Err(OperationError::Declined(format!(
            "{} were not paused for {}: `hundi doctor` shows what is",
            operation.as_str(),
            whom(&account)
        )));
    }
    let asked = RequestedAction::Resume { operation, account: account.clone() };
    if let Some(waits) = keep_for_second_person(tx, now, settings, None, &asked, by)? {
        return Ok(waits);
    }
    decisions::record(tx, now, &pause_subject(operation, &account), "resume", by)?;
    pauses::resume(tx, operation, number)?;
    Ok(format!("{} go on for {}", operation.as_str(), whom(&account)))
}

/// Schedules every payout that was not instructed yet, also those on hold: each account and mode in
/// a transaction of its own. Accounts whose payouts are still paused are left out.
pub async fn submit_waiting(store: &Store) -> Result<(), OperationError> {
    let count = store.read(Cost::Point, |tx| Ok(keys::rows::accounts_count(tx)?)).await?;
    for number in 1..=count {
        for mode in [Mode::Test, Mode::Live] {
            let scope = Scope::new(number, mode);
            let submit = move |tx: &mut dyn Tx, now: &mut Now| {
                if pauses::is_paused(tx, scope, Operation::Payouts)? {
                    return Ok(());
                }
                now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
                paying::submit_waiting(tx, now, scope)?;
                Ok(())
            };
            store.write(submit).await?;
        }
    }
    Ok(())
}
