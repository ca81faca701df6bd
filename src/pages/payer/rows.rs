//! What the payer's page reads besides whole objects.

use crate::kernel::id::kind;
use crate::kernel::{Id, Scope, StoreError};
use crate::store::Tx;
use crate::values;

/// The sum of a transfer's deposits of its asset that were seen and are neither final nor failed.
pub fn pending_units(
    tx: &mut dyn Tx,
    scope: Scope,
    transfer_id: Id<kind::Transfer>,
    asset: &str,
) -> Result<i64, StoreError> {
    let row = tx.row(
        "SELECT CAST(COALESCE(SUM(units), 0) AS BIGINT) FROM deposits WHERE scope = ?1 AND \
         transfer_id = ?2 AND asset = ?3 \
         AND status IN ('initialized', 'processing')",
        values![scope, transfer_id, asset],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}
