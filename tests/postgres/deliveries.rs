//! What tests of deliveries share.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::postgres::Database;
use crate::support::{steps, until};

const SUCCEEDED: &str = "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'succeeded'";

/// Has so many events of the newest endpoint's account happen, in one commit of another process.
pub fn emit(database: &Database, count: u64) {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let first = NUMBER.fetch_add(count, Ordering::Relaxed);
    database.sql(&format!(
        "INSERT INTO outbox (id, scope, type, linked_id, linked_object, created) SELECT \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), e.scope, 'transfer.status.funded', \
         decode(lpad(to_hex(g), 32, '0'), 'hex'), 'transfer', EXTRACT(EPOCH FROM now())::bigint \
         FROM generate_series({first}, {}) g, (SELECT scope FROM webhook_endpoints ORDER BY id \
         DESC LIMIT 1) e",
        first + count - 1
    ));
}

/// Waits until exactly so many deliveries have succeeded.
pub fn until_succeeded(database: &Database, count: u64) {
    until("the deliveries to succeed", steps::PATIENCE, || {
        (database.value(SUCCEEDED) == count.to_string()).then_some(())
    });
}
