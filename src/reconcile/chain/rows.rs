//! The queries for what the book has of a real chain, and the rows of the differences that were
//! found.

use super::{AddressHolding, BookMovement, FoundDifference, LogPosition, MovementRole};
use crate::chains::ChainName;
use crate::chains::address::AddressBytes;
use crate::deposits::rows::stored_address;
use crate::kernel::id::kind;
use crate::kernel::{Id, InternalId, Mode, Now, Scope, StoreError};
use crate::reconcile::DifferenceKind;
use crate::store::{Row, Tx};
use crate::values;

/// Completed deposits, each with whether its address was handed out to its transfer. Deposits of a
/// simulated chain are left out, because test mode may have simulated a chain of the same name
/// before.
const DEPOSITS: &str = "SELECT d.id, d.transaction_hash, d.log_index, d.from_address, \
 d.to_address, d.units, d.block_number, d.block_time, \
    CASE WHEN a.scope = d.scope AND a.transfer_id = d.transfer_id THEN 1 ELSE 0 END \
    FROM deposits d LEFT JOIN deposit_addresses a ON a.address = d.to_address \
    WHERE d.status = 'completed' AND d.chain = ?1 AND d.scope % 2 = ?2 AND NOT EXISTS ( \
      SELECT 1 FROM simulated_transactions x WHERE x.scope = d.scope AND x.transaction_hash = \
      d.transaction_hash)";

/// Sweeps. A sweep belongs to the mode in which the address that it left was handed out. A sweep
/// from an address that was never handed out counts in both modes.
const SWEEPS: &str = "SELECT s.transaction_hash, s.log_index, s.from_address, s.to_address, \
 s.units, s.block_number, s.block_time \
    FROM chain_sweeps s LEFT JOIN deposit_addresses a ON a.address = s.from_address \
    WHERE s.chain = ?1 AND (a.scope IS NULL OR a.scope % 2 = ?2)";

/// What `scope % 2` is in a mode.
const fn parity(mode: Mode) -> i64 {
    mode.is_live() as i64
}

fn log_position(row: &mut Row) -> Result<LogPosition, StoreError> {
    Ok(LogPosition { transaction_hash: row.text()?, log_index: row.int()? })
}

fn deposit(mut row: Row) -> Result<BookMovement, StoreError> {
    let row = &mut row;
    Ok(BookMovement {
        role: MovementRole::Deposit(row.id()?),
        place: log_position(row)?,
        from_address: Some(stored_address(row.bytes()?)?),
        to_address: stored_address(row.bytes()?)?,
        units: row.int()?,
        block: Some((row.int_or_null()?.unwrap_or(0), row.int_or_null()?.unwrap_or(0))),
        is_at_own_address: row.bool()?,
    })
}

fn sweep(mut row: Row) -> Result<BookMovement, StoreError> {
    let row = &mut row;
    Ok(BookMovement {
        role: MovementRole::Sweep,
        place: log_position(row)?,
        from_address: Some(stored_address(row.bytes()?)?),
        to_address: stored_address(row.bytes()?)?,
        units: row.int()?,
        block: Some((row.int()?, row.int()?)),
        is_at_own_address: true,
    })
}

/// Completed deposits and sweeps of the blocks `from` to `to`.
pub fn in_blocks(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    from: i64,
    to: i64,
) -> Result<Vec<BookMovement>, StoreError> {
    let values = values![chain.as_str(), parity(mode), from, to];
    let deposits = tx.rows(
        &format!(
            "{DEPOSITS} AND d.block_number >= ?3 AND d.block_number <= ?4 ORDER BY d.scope, d.id"
        ),
        values,
    )?;
    let sweeps = tx.rows(
        &format!(
            "{SWEEPS} AND s.block_number >= ?3 AND s.block_number <= ?4 ORDER BY \
         s.block_number, s.log_index"
        ),
        values,
    )?;
    deposits.into_iter().map(deposit).chain(sweeps.into_iter().map(sweep)).collect()
}

/// What the book has of one movement, in any block: completed deposits and sweeps. `owner` is the
/// account and mode of the recipient's address; without an owner, no deposit is looked for.
pub fn at_place(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    owner: Option<Scope>,
    place: &LogPosition,
) -> Result<Vec<BookMovement>, StoreError> {
    let mut found = Vec::new();
    if let Some(owner) = owner {
        let sql = format!(
            "{DEPOSITS} AND d.scope = ?3 AND d.transaction_hash = ?4 AND d.log_index = ?5 ORDER \
             BY d.id"
        );
        let rows = tx.rows(
            &sql,
            values![chain.as_str(), parity(mode), owner, &place.transaction_hash, place.log_index],
        )?;
        found = rows.into_iter().map(deposit).collect::<Result<_, _>>()?;
    }
    let sql = format!("{SWEEPS} AND s.transaction_hash = ?3 AND s.log_index = ?4");
    for row in tx.rows(
        &sql,
        values![chain.as_str(), parity(mode), &place.transaction_hash, place.log_index],
    )? {
        found.push(sweep(row)?);
    }
    Ok(found)
}

/// Refunds that a real chain confirmed, and that were completed at or after `since` (Unix seconds
/// of business time). One page, ordered by account and identifier, after the refund `after`.
pub fn refunds(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    since: i64,
    after: Option<(Scope, Id<kind::Refund>)>,
    rows_max: i64,
) -> Result<Vec<(Scope, BookMovement)>, StoreError> {
    let (scope, id) = after.map_or((0, [0; 16]), |(scope, id)| (scope.code(), id.to_bytes()));
    let rows = tx.rows(
        "SELECT scope, id, transaction_hash, log_index, to_address, units FROM refunds \
         WHERE chain = ?1 AND scope % 2 = ?2 AND status = 'completed' AND log_index IS NOT NULL \
         AND completed_at >= ?3 \
         AND (scope > ?4 OR (scope = ?4 AND id > ?5)) ORDER BY scope, id LIMIT ?6",
        values![chain.as_str(), parity(mode), since, scope, &id, rows_max],
    )?;
    let read = |mut row: Row| {
        let row = &mut row;
        let scope = row.scope()?;
        let written = BookMovement {
            role: MovementRole::Refund(row.id()?),
            place: log_position(row)?,
            from_address: None,
            // A completed refund has an address. If the row lost it, the refund counts as sent to
            // the zero address. That shows as a difference, and the other refunds are compared.
            to_address: row
                .bytes_or_null()?
                .map_or(Ok(AddressBytes::of_20([0; 20])), stored_address)?,
            units: row.int()?,
            block: None,
            is_at_own_address: true,
        };
        Ok((scope, written))
    };
    rows.into_iter().map(read).collect()
}

/// The parts of what each address holds by the book (`AddressHolding`): completed deposits, sweeps
/// into it and sweeps out of it.
const HELD: &str = "SELECT t.id, t.deposit_address, t.token_contract, \
    (SELECT CAST(COALESCE(SUM(d.units), 0) AS BIGINT) FROM deposits d WHERE d.scope = t.scope AND \
    d.transfer_id = t.id AND d.status = 'completed' \
     AND NOT EXISTS (SELECT 1 FROM simulated_transactions x WHERE x.scope = d.scope AND \
     x.transaction_hash = d.transaction_hash)), \
    (SELECT CAST(COALESCE(SUM(s.units), 0) AS BIGINT) FROM chain_sweeps s WHERE s.to_address = \
    t.deposit_address AND s.chain = t.chain), \
    (SELECT CAST(COALESCE(SUM(s.units), 0) AS BIGINT) FROM chain_sweeps s WHERE s.from_address = \
    t.deposit_address AND s.chain = t.chain) \
    FROM transfers t WHERE t.scope = ?1 AND t.chain = ?2";

fn address_holding(mut row: Row) -> Result<AddressHolding, StoreError> {
    let (transfer_id, address, token_contract) =
        (row.id()?, stored_address(row.bytes()?)?, stored_address(row.bytes()?)?);
    let (received, moved_in, left) = (row.int()?, row.int()?, row.int()?);
    let units = received.checked_add(moved_in).and_then(|sum| sum.checked_sub(left));
    let units =
        units.ok_or_else(|| StoreError::Broken("the sums of an address overflow".into()))?;
    Ok(AddressHolding { transfer_id, address, token_contract, units })
}

/// What the addresses of one account and mode hold by the book. One page, in the order of their
/// transfers, after the transfer `after`.
pub fn held_after(
    tx: &mut dyn Tx,
    scope: Scope,
    chain: ChainName,
    after: Option<Id<kind::Transfer>>,
    rows_max: i64,
) -> Result<Vec<AddressHolding>, StoreError> {
    let after = after.map_or([0; 16], Id::to_bytes);
    let rows = tx.rows(
        &format!("{HELD} AND t.id > ?3 ORDER BY t.id LIMIT ?4"),
        values![scope, chain.as_str(), &after, rows_max],
    )?;
    rows.into_iter().map(address_holding).collect()
}

/// What the address of one transfer holds by the book.
pub fn held_of(
    tx: &mut dyn Tx,
    scope: Scope,
    chain: ChainName,
    id: Id<kind::Transfer>,
) -> Result<Option<AddressHolding>, StoreError> {
    tx.row(&format!("{HELD} AND t.id = ?3"), values![scope, chain.as_str(), id])?
        .map(address_holding)
        .transpose()
}

fn found(row: &mut Row) -> Result<FoundDifference, StoreError> {
    Ok(FoundDifference {
        kind: row.word(DifferenceKind::parse)?,
        subject: row.text()?,
        units: row.int()?,
        block_number: row.int_or_null()?,
    })
}

const FOUND: &str = "SELECT kind, subject, units, block_number FROM chain_differences WHERE mode \
 = ?1 AND chain = ?2";

/// Differences that are kept for the blocks `from` to `to`, including explained ones.
pub fn kept_in_blocks(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    from: i64,
    to: i64,
) -> Result<Vec<FoundDifference>, StoreError> {
    let sql =
        format!("{FOUND} AND block_number >= ?3 AND block_number <= ?4 ORDER BY kind, subject");
    tx.rows(&sql, values![mode.as_str(), chain.as_str(), from, to])?.iter_mut().map(found).collect()
}

/// Differences that are kept and belong to no block: those of refunds and balances. Includes
/// explained ones.
pub fn kept_without_block(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
) -> Result<Vec<FoundDifference>, StoreError> {
    let sql = format!("{FOUND} AND block_number IS NULL ORDER BY kind, subject");
    tx.rows(&sql, values![mode.as_str(), chain.as_str()])?.iter_mut().map(found).collect()
}

/// Differences that nobody has explained, oldest first.
pub fn open(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    rows_max: i64,
) -> Result<Vec<(InternalId, FoundDifference)>, StoreError> {
    let sql = "SELECT id, kind, subject, units, block_number FROM chain_differences \
               WHERE mode = ?1 AND chain = ?2 AND accepted_at IS NULL ORDER BY id LIMIT ?3";
    let rows = tx.rows(sql, values![mode.as_str(), chain.as_str(), rows_max])?;
    rows.into_iter().map(|mut row| Ok((row.id()?, found(&mut row)?))).collect()
}

/// The amount of a difference that nobody has explained, in millionths.
pub fn open_units(tx: &mut dyn Tx, id: InternalId) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT units FROM chain_differences WHERE id = ?1 AND accepted_at IS NULL";
    tx.row(sql, values![id])?.map(|mut row| row.int()).transpose()
}

/// How many differences nobody has explained.
pub fn open_count(tx: &mut dyn Tx, mode: Mode, chain: ChainName) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM chain_differences WHERE mode = ?1 AND chain = ?2 AND \
     accepted_at IS NULL";
    tx.row(sql, values![mode.as_str(), chain.as_str()])?.map_or(Ok(0), |mut row| row.int())
}

pub fn insert(
    tx: &mut dyn Tx,
    now: &mut Now,
    mode: Mode,
    chain: ChainName,
    found: &FoundDifference,
) -> Result<(), StoreError> {
    let id: InternalId = now.mint();
    tx.execute_one(
        "INSERT INTO chain_differences (mode, chain, kind, subject, id, units, block_number, \
         found_at, accepted_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL)",
        values![
            mode.as_str(),
            chain.as_str(),
            found.kind.as_str(),
            &found.subject,
            id,
            found.units,
            found.block_number,
            now.instant()
        ],
    )
}

pub fn remove(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
    kind: DifferenceKind,
    subject: &str,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM chain_differences WHERE mode = ?1 AND chain = ?2 AND kind = ?3 AND \
     subject = ?4";
    tx.execute(sql, values![mode.as_str(), chain.as_str(), kind.as_str(), subject])?;
    Ok(())
}

/// Marks a difference with a chain as explained: its row stays and is no longer listed. `false` if
/// there is no such open difference.
pub fn explain(tx: &mut dyn Tx, now: &Now, id: InternalId) -> Result<bool, StoreError> {
    let sql = "UPDATE chain_differences SET accepted_at = ?2 WHERE id = ?1 AND accepted_at IS NULL";
    Ok(tx.execute(sql, values![id, now.instant()])? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Clock;
    use crate::store::Store;
    use crate::store::handle::{Cost, no_epilogue};

    /// A comparison of a few blocks must not read whole tables. A comparison of balances must not
    /// read all sweeps for each address.
    #[tokio::test]
    async fn each_query_uses_its_index() {
        let folder = std::env::temp_dir().join(format!("hundi-audit-plans-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(&folder.join("plans.db"), Clock::System, no_epilogue).unwrap();
        let table = [
            (
                format!("{DEPOSITS} AND d.block_number >= ?3 AND d.block_number <= ?4"),
                vec!["d USING INDEX deposits_block"],
            ),
            (
                format!("{SWEEPS} AND s.block_number >= ?3 AND s.block_number <= ?4"),
                vec!["s USING INDEX chain_sweeps_block"],
            ),
            (
                format!(
                    "{DEPOSITS} AND d.scope = ?3 AND d.transaction_hash = ?4 AND d.log_index = ?5"
                ),
                vec!["d USING INDEX deposits_final"],
            ),
            (
                format!("{SWEEPS} AND s.transaction_hash = ?3 AND s.log_index = ?4"),
                vec!["s USING PRIMARY KEY"],
            ),
            (
                format!("{HELD} AND t.id > ?3 ORDER BY t.id LIMIT ?4"),
                vec![
                    "t USING PRIMARY KEY",
                    "d USING INDEX deposits_by_transfer",
                    "USING INDEX chain_sweeps_recipient",
                    "USING INDEX chain_sweeps_address",
                ],
            ),
        ];
        for (sql, wanted) in table {
            let question = format!("EXPLAIN QUERY PLAN {sql}");
            let steps = store.read(Cost::Scan, move |tx| {
                let count =
                    (1..=5).filter(|number| question.contains(&format!("?{number}"))).count();
                Ok(tx.rows(&question, &vec![crate::store::Value::Null; count])?)
            });
            let texts = steps.await.unwrap().into_iter().map(|mut row| {
                let _ = (row.int(), row.int(), row.int());
                row.text().unwrap()
            });
            let plan = texts.collect::<Vec<_>>().join("\n");
            for step in wanted {
                assert!(
                    plan.contains(step) && !plan.contains("SCAN "),
                    "{step} is not in\n{plan}\nof {sql}"
                );
            }
        }
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
