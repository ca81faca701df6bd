//! The versions of the rows that a payer's page shows, in one statement.

use crate::kernel::id::kind;
use crate::kernel::{Id, Scope, StoreError};
use crate::store::Tx;
use crate::values;

/// Versions of a page's rows; of several rows, the sum of their versions. While all stay the same,
/// the page's state changes only with the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    transfer: i64,
    deposits: i64,
    deposits_count: i64,
    refunds: i64,
    payout: i64,
    /// The end of the time to pay, as business time in Unix seconds.
    pub expires_at: i64,
}

/// The versions of a transfer and of what belongs to it; `None` for one that is gone.
pub fn versions(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Transfer>,
) -> Result<Option<Versions>, StoreError> {
    let row = tx.row(
        "SELECT t.version, \
         (SELECT CAST(COALESCE(SUM(d.version), 0) AS BIGINT) FROM deposits d WHERE d.scope = \
         t.scope AND d.transfer_id = t.id), \
         (SELECT COUNT(*) FROM deposits d WHERE d.scope = t.scope AND d.transfer_id = t.id), \
         (SELECT CAST(COALESCE(SUM(r.version), 0) AS BIGINT) FROM refunds r WHERE r.scope = \
         t.scope AND r.transfer_id = t.id), \
         (SELECT CAST(COALESCE(SUM(p.version), 0) AS BIGINT) FROM payouts p WHERE p.scope = \
         t.scope AND p.transfer_id = t.id), \
         t.expires_at \
         FROM transfers t WHERE t.scope = ?1 AND t.id = ?2",
        values![scope, id],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    Ok(Some(Versions {
        transfer: row.int()?,
        deposits: row.int()?,
        deposits_count: row.int()?,
        refunds: row.int()?,
        payout: row.int()?,
        expires_at: row.int()?,
    }))
}
