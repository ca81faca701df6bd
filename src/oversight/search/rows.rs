//! Deliveries, accounts and API keys have no page under their identifiers. These queries find what
//! has a page instead: the endpoint of a delivery, or the account.

use crate::kernel::id::kind;
use crate::kernel::{AnyId, Id, ObjectKind, Scope, StoreError};
use crate::store::Tx;
use crate::values;

/// The endpoint of a delivery; `None` if the endpoint was deleted, or there is no such delivery.
/// The query looks the delivery up at each endpoint, and endpoints are few.
pub fn endpoint_of(
    tx: &mut dyn Tx,
    delivery: AnyId,
) -> Result<Option<(Scope, Id<kind::WebhookEndpoint>)>, StoreError> {
    if delivery.kind != ObjectKind::WebhookDelivery {
        return Ok(None);
    }
    let sql = "SELECT q.scope, q.endpoint_id FROM webhook_queues q JOIN webhook_deliveries d ON \
               d.endpoint_id = q.endpoint_id AND d.id = ?1 WHERE NOT q.closed";
    let row = tx.row(sql, values![&delivery.to_bytes()])?;
    row.map(|mut row| Ok((row.scope()?, row.id()?))).transpose()
}

/// The number of an account, by its own identifier or that of one of its keys.
pub fn account_of(tx: &mut dyn Tx, id: AnyId) -> Result<Option<i64>, StoreError> {
    let bytes = id.to_bytes();
    match id.kind {
        ObjectKind::Account => {
            let row = tx.row("SELECT number FROM accounts WHERE id = ?1", values![&bytes])?;
            row.map(|mut row| row.int()).transpose()
        }
        ObjectKind::ApiKey => {
            let row = tx.row("SELECT scope FROM api_keys WHERE id = ?1", values![&bytes])?;
            row.map(|mut row| Ok(row.scope()?.account_number())).transpose()
        }
        _ => Ok(None),
    }
}
