//! What is true: the chain's own unfiltered receipts against what the service wrote down.
//!
//! Every final movement of the token to a handed-out address is exactly one completed deposit, with
//! its amount, transaction, place, block and time; none is missed and none invented. What left our
//! addresses is a sweep, other tokens are failed deposits, the book balances, and events tell what
//! the histories tell. It reads the database, so it judges a service in any process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hundi::chains::tron_address::TronAddress;
use hundi::store::Tx;
use hundi::store::sqlite::{SqliteTx, open_reader};
use hundi::verify_book;
use serde_json::{Value, json};

use crate::anvil::{Anvil, Token, TransferLog};
use crate::rpc::Rpc;
use crate::wire::{Hash, number_of, quantity};

/// Blocks that one request to the node asks for.
const BLOCKS_AT_ONCE: u64 = 250;

/// A token movement, as the chain shows it or as the service wrote it down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    pub block: i64,
    pub log_index: i64,
    pub transaction: String,
    pub time: i64,
    pub from: [u8; 20],
    pub to: [u8; 20],
    pub units: i64,
    pub asset: String,
}

/// How far the service says that it followed the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    pub height: i64,
    pub hash: Hash,
}

/// `None` before the first start.
pub fn followed(database: &Path) -> Option<Followed> {
    let connection = open_reader(database).ok()?;
    let mut tx = SqliteTx::new(&connection);
    let mut row =
        tx.row("SELECT height, block_hash FROM chain_cursors WHERE mode = 'test'", &[]).ok()??;
    Some(Followed { height: row.int().ok()?, hash: row.word(Hash::parse).ok()? })
}

/// What the oracle looks at.
pub struct Oracle<'a> {
    pub chain: &'a Anvil,
    pub token: &'a Token,
    /// Other tokens that the service looks out for, by their symbol.
    pub others: &'a [(String, Token)],
    pub database: &'a Path,
    /// Transactions of which the nodes told the service that they failed: they must not be
    /// credited.
    pub failed: BTreeSet<Hash>,
}

/// What was compared, for a test to see that it was not nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub deposits: usize,
    pub sweeps: usize,
    pub unsupported: usize,
}

impl Oracle<'_> {
    /// Ends the test with what is wrong; answers what was compared.
    #[track_caller]
    pub fn verify(&self) -> impl Future<Output = Compared> {
        let caller = std::panic::Location::caller();
        async move {
            let (compared, faults) = self.faults().await;
            assert!(
                faults.is_empty(),
                "at {caller}: {} faults, such as\n{}",
                faults.len(),
                faults[..faults.len().min(12)].join("\n")
            );
            compared
        }
    }

    /// Everything that is wrong.
    pub async fn faults(&self) -> (Compared, Vec<String>) {
        let mut faults = Vec::new();
        let connection = open_reader(self.database).expect("the database opens");
        let mut tx = SqliteTx::new(&connection);
        tx.run("BEGIN").expect("one view");
        let cursor = followed(self.database).expect("a followed chain");
        let block = self.chain.block(cursor.height as u64).await;
        if block.as_ref().is_none_or(|block| block.hash != cursor.hash) {
            faults.push(format!(
                "the cursor stands at {cursor:?}, and the chain there at {:?}",
                block.map(|block| block.hash)
            ));
        }
        if cursor.height as u64 > self.chain.finalized().await {
            faults.push(format!("the cursor stands at {} above the final view", cursor.height));
        }

        let ours = addresses(&mut tx);
        let (mut deposits, mut sweeps, mut unsupported) = (Vec::new(), Vec::new(), Vec::new());
        for (log, time) in self.final_transfers(cursor.height as u64).await {
            let symbol = self
                .others
                .iter()
                .find(|(_, other)| other.address == log.contract)
                .map(|(symbol, _)| symbol.as_str());
            let asset = if log.contract == self.token.address { Some("USDT") } else { symbol };
            let Some(asset) =
                asset.filter(|_| log.units > 0 && !self.failed.contains(&log.transaction))
            else {
                continue;
            };
            let moved = Moved {
                block: log.block_number as i64,
                log_index: log.log_index as i64,
                transaction: log.transaction.plain(),
                time,
                from: *log.from.as_evm(),
                to: *log.to.as_evm(),
                units: log.units as i64,
                asset: asset.to_owned(),
            };
            match (asset, ours.contains_key(log.from.as_evm()), ours.contains_key(log.to.as_evm()))
            {
                ("USDT", true, _) => sweeps.push(moved),
                ("USDT", false, true) => deposits.push(moved),
                (_, false, true) => unsupported.push(moved),
                _ => {}
            }
        }
        let columns = "block_number, log_index, transaction_hash, block_time, from_address, \
         to_address, units, asset";
        let completed =
            moved(&mut tx, &format!("SELECT {columns} FROM deposits WHERE status = 'completed'"));
        let failed = moved(
            &mut tx,
            &format!("SELECT {columns} FROM deposits WHERE reason_code = 'asset_unsupported'"),
        );
        let swept = moved(
            &mut tx,
            &format!("SELECT {} FROM chain_sweeps", columns.replace("asset", "'USDT'")),
        );
        compare("deposit", &deposits, completed, &mut faults);
        compare("sweep", &sweeps, swept, &mut faults);
        compare("deposit of another token", &unsupported, failed, &mut faults);

        let strangers = tx
            .rows(
                "SELECT hex(d.id) FROM deposits d LEFT JOIN deposit_addresses a ON a.address = \
                 d.to_address \
                 WHERE a.transfer_id IS NULL OR a.transfer_id <> d.transfer_id OR a.scope <> \
                 d.scope",
                &[],
            )
            .expect("a query");
        faults.extend(strangers.into_iter().map(|mut row| {
            format!("deposit {} is of another transfer's address", row.text().unwrap())
        }));
        events(&mut tx, &mut faults);
        let report = verify_book::run(&hundi::store::Database::Sqlite(self.database.to_path_buf()))
            .expect("a check");
        faults.extend(report.faults.into_iter().map(|fault| format!("hundi check: {fault}")));
        (
            Compared {
                deposits: deposits.len(),
                sweeps: sweeps.len(),
                unsupported: unsupported.len(),
            },
            faults,
        )
    }

    /// All transfers of all contracts in successful transactions up to a height, from unfiltered
    /// receipts, with their blocks' times.
    async fn final_transfers(&self, to: u64) -> Vec<(TransferLog, i64)> {
        let rpc = Rpc::new(self.chain.endpoint());
        let mut found = Vec::new();
        let mut from = 1;
        while from <= to {
            let end = to.min(from + BLOCKS_AT_ONCE - 1);
            let mut calls = Vec::new();
            for number in from..=end {
                calls.push(("eth_getBlockByNumber", json!([quantity(number), false])));
                calls.push(("eth_getBlockReceipts", json!([quantity(number)])));
            }
            let answers = rpc.batch(&calls).await.expect("the chain's receipts");
            for pair in answers.chunks(2) {
                let [Ok(block), Ok(Value::Array(receipts))] = pair else {
                    panic!("a block without receipts")
                };
                let time = number_of(&block["timestamp"]) as i64;
                for receipt in receipts.iter().filter(|receipt| receipt["status"] == "0x1") {
                    let logs = receipt["logs"].as_array().expect("logs");
                    found.extend(logs.iter().filter_map(TransferLog::read).map(|log| (log, time)));
                }
            }
            from = end + 1;
        }
        found
    }
}

fn addresses(tx: &mut SqliteTx<'_>) -> BTreeMap<[u8; 20], Vec<u8>> {
    let rows = tx.rows("SELECT address, transfer_id FROM deposit_addresses", &[]).expect("a query");
    rows.into_iter()
        .map(|mut row| (row.bytes().unwrap().try_into().expect("20 bytes"), row.bytes().unwrap()))
        .collect()
}

fn moved(tx: &mut SqliteTx<'_>, sql: &str) -> Vec<Moved> {
    let rows = tx.rows(sql, &[]).expect("a query");
    rows.into_iter()
        .map(|mut row| Moved {
            block: row.int().expect("a final deposit has a block"),
            log_index: row.int().unwrap(),
            // Chains differ in how they write it.
            transaction: row.text().unwrap().trim_start_matches("0x").to_owned(),
            time: row.int().expect("a final deposit has a time"),
            from: row.bytes().unwrap().try_into().expect("20 bytes"),
            to: row.bytes().unwrap().try_into().expect("20 bytes"),
            units: row.int().unwrap(),
            asset: row.text().unwrap(),
        })
        .collect()
}

fn compare(what: &str, truth: &[Moved], mut written: Vec<Moved>, faults: &mut Vec<String>) {
    for moved in truth {
        match written.iter().position(|one| one == moved) {
            Some(place) => drop(written.swap_remove(place)),
            None => faults.push(format!(
                "a {what} is missing or wrong: {} to {}",
                told(moved),
                TronAddress::from_evm(moved.to)
            )),
        }
    }
    faults.extend(
        written
            .iter()
            .map(|moved| format!("a {what} that the chain does not show: {}", told(moved))),
    );
}

fn told(moved: &Moved) -> String {
    format!(
        "{} {} in block {} at {} of {}",
        moved.units, moved.asset, moved.block, moved.log_index, moved.transaction
    )
}

/// The events of each object say its history, and each completed deposit has one.
fn events(tx: &mut SqliteTx<'_>, faults: &mut Vec<String>) {
    let mut told: BTreeMap<(i64, Vec<u8>), Vec<String>> = BTreeMap::new();
    for mut row in tx
        .rows("SELECT scope, linked_id, type FROM events ORDER BY scope, id", &[])
        .expect("a query")
    {
        let key = (row.int().unwrap(), row.bytes().unwrap());
        told.entry(key).or_default().push(row.text().unwrap());
    }
    for (table, kind) in [("transfers", "transfer"), ("payouts", "payout"), ("refunds", "refund")] {
        let sql = format!("SELECT scope, id, status_history FROM {table}");
        for mut row in tx.rows(&sql, &[]).expect("a query") {
            let (key, history) = ((row.int().unwrap(), row.bytes().unwrap()), row.text().unwrap());
            let taken: Vec<&str> = history
                .split(' ')
                .map(|taken| taken.split('@').next().unwrap_or_default())
                .collect();
            let prefix = format!("{kind}.status.");
            let told: Vec<&str> = told
                .get(&key)
                .into_iter()
                .flatten()
                .filter_map(|told| told.strip_prefix(&prefix))
                .collect();
            if taken != told {
                faults.push(format!("a {kind} went {taken:?} and its events say {told:?}"));
            }
        }
    }
    for mut row in tx.rows("SELECT scope, id, status FROM deposits", &[]).expect("a query") {
        let (key, status) = ((row.int().unwrap(), row.bytes().unwrap()), row.text().unwrap());
        let told: Vec<&str> = told.get(&key).into_iter().flatten().map(String::as_str).collect();
        let expected: &[&str] =
            if status == "completed" { &["deposit.status.completed"] } else { &[] };
        if told != expected {
            faults.push(format!("a deposit that is {status} has the events {told:?}"));
        }
    }
}
