//! Makes most transfers of a filled database ones that were paid out: each with its deposit, its
//! payout, a posting and an event, all copied from one that the service paid out itself.

use std::path::Path;

use hundi::store::sqlite;

use crate::cluster::Database;
use crate::server::Api;

/// Of a hundred transfers, those that wait for money; the newest ones.
const WAITING_PERCENT: usize = 2;

/// Pays one out, which the others are copied from.
pub async fn pay_one(api: &mut Api) {
    crate::payouts::payout(api).await;
}

/// Statements that settle all but the newest of so many transfers. `columns_of` names the columns
/// of a table, and `hash` writes the identifier of the transfer `t` as text.
fn statements(count: usize, hash: &str, columns_of: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let place = count - count * WAITING_PERCENT / 100;
    let newest = format!("(SELECT id FROM transfers ORDER BY id LIMIT 1 OFFSET {place})");
    let pattern = "(SELECT id FROM transfers WHERE status = 'payout_settled' ORDER BY id LIMIT 1)";
    // Identifiers of different tables may be the same: each copy gets that of its transfer.
    let copy = |table: &str, which: &str, own: &[(&str, &str)]| {
        let columns = columns_of(table);
        let values = columns.iter().map(|column| {
            let value = own.iter().find(|(name, _)| name == column);
            value.map_or_else(|| format!("x.{column}"), |(_, value)| (*value).to_owned())
        });
        format!(
            "INSERT INTO {table} ({}) SELECT {} FROM transfers t, (SELECT * FROM {table} WHERE \
             {which} ORDER BY id LIMIT 1) AS x WHERE t.status = 'funding' AND t.id < {newest}",
            columns.join(", "),
            values.collect::<Vec<_>>().join(", ")
        )
    };
    let of_pattern = format!("transfer_id = {pattern}");
    let event = "type = 'transfer.status.payout_settled'";
    let own = [("scope", "t.scope"), ("id", "t.id"), ("created", "t.created")];
    let of_transfer = [&own[..], &[("transfer_id", "t.id")]].concat();
    let taken = ["status_history", "received_units", "version"]
        .map(|column| format!("{column} = (SELECT {column} FROM transfers WHERE id = {pattern})"));
    vec![
        copy("deposits", &of_pattern, &[&of_transfer[..], &[("transaction_hash", hash)]].concat()),
        copy(
            "payouts",
            &of_pattern,
            &[
                &of_transfer[..],
                &[("beneficiary_id", "t.beneficiary_id"), ("unique_transaction_reference", hash)],
            ]
            .concat(),
        ),
        copy("ledger_postings", &of_pattern, &of_transfer),
        copy("events", event, &[&own[..], &[("linked_id", "t.id")]].concat()),
        format!(
            "UPDATE transfers SET {}, status = 'payout_settled', payout_id = id WHERE status = \
             'funding' AND id < {newest}",
            taken.join(", ")
        ),
    ]
}

/// Settles them in an embedded database that no service uses.
pub fn settle(path: &Path, count: usize) {
    let connection = sqlite::open_writer(path).expect("the database to settle in");
    let columns_of = |table: &str| {
        let mut statement = connection
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .expect("a table's columns");
        let names = statement.query_map([], |row| row.get(0)).expect("a table's columns");
        names.map(|name| name.expect("a name")).collect()
    };
    for statement in statements(count, "lower(hex(t.id))", columns_of) {
        connection.execute_batch(&statement).expect("transfers are settled");
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
}

/// Settles them on PostgreSQL.
pub fn settle_on_postgres(database: &Database, count: usize) {
    let columns_of = |table: &str| {
        let names = database.sql(&format!(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND \
             table_name = '{table}' ORDER BY ordinal_position"
        ));
        names.into_iter().flatten().collect()
    };
    for statement in statements(count, "encode(t.id, 'hex')", columns_of) {
        database.sql(&statement);
    }
    database.sql("VACUUM ANALYZE");
}
