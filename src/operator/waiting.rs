//! What goes on once payouts are resumed.

use crate::kernel::{Mode, Now, OperationError, Scope};
use crate::keys;
use crate::store::{Store, Tx};
use crate::transfers::paying;

/// Schedules the payouts that waited, account by account.
pub async fn submit_waiting(store: &Store) -> Result<(), OperationError> {
    let count = store.write(|tx, _| Ok(keys::rows::accounts_count(tx)?)).await?;
    for number in 1..=count {
        for mode in [Mode::Test, Mode::Live] {
            let scope = Scope::new(number, mode);
            let submit = move |tx: &mut dyn Tx, now: &mut Now| {
                now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
                Ok(paying::submit_waiting(tx, now, scope)?)
            };
            store.write(submit).await?;
        }
    }
    Ok(())
}
