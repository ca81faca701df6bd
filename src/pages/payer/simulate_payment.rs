//! "Simulate payment" on the payer's page, in test mode: `POST /pay/{token}/simulate_payment` sends
//! the missing amount on the account's simulated chain. It does nothing for a live transfer, or on
//! a real chain.

use std::sync::Arc;

use super::sent::{SentForm, back_to_page};
use crate::app_state::AppState;
use crate::http::dispatch::{self, Reply};
use crate::kernel::{Mode, OperationError};
use crate::keys;
use crate::test_helpers::deposits::simulate;
use crate::transfers::state::TransferStatus;
use crate::transfers::{self, Transfer, funding};

/// Whether a payment can be simulated: the transfer is of test mode, and its chain is simulated.
pub(super) fn is_possible(app: &AppState, transfer: &Transfer) -> bool {
    transfer.scope.mode() == Mode::Test && transfer.is_simulated(&app.services)
}

/// Sends the amount that is neither received nor on its way, if there is one, and leads back to the
/// page. `None` if the transfer is gone.
pub(super) async fn take(
    app: &Arc<AppState>,
    sent: &SentForm<'_>,
) -> Result<Option<Reply>, OperationError> {
    let (shared, id) = (app.clone(), sent.id);
    let work = app.store.write(move |tx, now| {
        let Some(transfer) = transfers::rows::find_anywhere(tx, id)? else { return Ok(false) };
        if transfer.status != TransferStatus::Funding || !is_possible(&shared, &transfer) {
            return Ok(true);
        }
        now.enter_account(keys::rows::clock_offset_seconds(tx, transfer.scope)?);
        let missing = funding::still_to_send(tx, &transfer)?;
        if !missing.is_zero() {
            simulate(tx, now, &shared.services, &transfer, missing, &transfer.asset, None)?;
        }
        Ok(true)
    });
    let is_found = dispatch::within(app, dispatch::answer_end(), work).await?;
    Ok(is_found.then(|| back_to_page(sent)))
}
