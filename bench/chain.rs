//! What following a chain costs: a node of the bench's own serves blocks as busy as the main net's
//! over real HTTP, and the service, a process of its own, catches up with them. Databases with
//! different numbers of watched addresses take turns.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hundi::chains::derivation::AccountXpub;
use hundi::store::sqlite;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::Scale;
use crate::machine::{self, CpuCost, CpuSpan};
use crate::server::{Folder, Server};
use crate::table::{Table, median};

/// Token movements in a block: 73 to 76 on TRON's main net.
const TRANSFERS_COUNT: u64 = 80;
/// Transactions in a block of the main net, of which some move the token.
const TRANSACTIONS_COUNT: u64 = 300;
/// A day of blocks, one every 3 s.
const DAY_BLOCKS: f64 = 28_800.0;
const FIRST_BLOCK: u64 = 80_000_000;
const FINALITY_BLOCKS: u64 = 18;
/// USDT on the main net.
const TOKEN: &str = "a614f803b6fd780986a42c78ec9c7f77e6ded13c";
const TRANSFER_TOPIC: &str = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ACCOUNT_KEY: &str = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd";
/// How long the service may take for anything.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Addresses that are derived in one measurement.
const DERIVED_COUNT: u32 = 20_000;

/// A number that looks like any other: SplitMix64.
const fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes numbers as hexadecimal digits, 16 each.
fn push_hex(text: &mut String, numbers: &[u64]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for number in numbers {
        for shift in (0..16).rev() {
            text.push(char::from(DIGITS[(number >> (shift * 4)) as usize & 15]));
        }
    }
}

fn push_block_hash(text: &mut String, number: u64) {
    // As on TRON: the height, then a hash.
    push_hex(text, &[number, mixed(number), mixed(number ^ 1 << 40), mixed(number ^ 1 << 41)]);
}

fn push_transaction_hash(text: &mut String, number: u64, index: u64) {
    let seed = number << 16 | index;
    push_hex(
        text,
        &[mixed(seed), mixed(seed ^ 1 << 60), mixed(seed ^ 1 << 61), mixed(seed ^ 1 << 62)],
    );
}

/// The address of a stranger, as a topic.
fn push_topic(text: &mut String, seed: u64) {
    push_hex(text, &[0]);
    text.push_str("00000000");
    let (high, low) = (mixed(seed), mixed(seed ^ 1 << 63));
    push_hex(text, &[high, low]);
    let _ = write!(text, "{:08x}", (high ^ low) as u32);
}

fn block_time(number: u64) -> u64 {
    1_790_000_000 + (number - FIRST_BLOCK) * 3
}

/// A log with the fields that java-tron gives it.
fn push_log(text: &mut String, number: u64, index: u64) {
    text.push_str(r#"{"address":"0x"#);
    text.push_str(TOKEN);
    text.push_str(r#"","blockHash":"0x"#);
    push_block_hash(text, number);
    let _ = write!(
        text,
        r#"","blockNumber":"{number:#x}","blockTimestamp":"{:#x}","data":"0x"#,
        block_time(number)
    );
    push_hex(text, &[0, 0, 0, mixed(number ^ index) >> 34]);
    let _ = write!(
        text,
        r#"","logIndex":"{index:#x}","removed":false,"topics":["0x{TRANSFER_TOPIC}","0x"#
    );
    push_topic(text, number << 16 | index << 1);
    text.push_str(r#"","0x"#);
    push_topic(text, number << 16 | index << 1 | 1);
    text.push_str(r#""],"transactionHash":"0x"#);
    push_transaction_hash(text, number, index);
    let _ = write!(text, r#"","transactionIndex":"{index:#x}"}}"#);
}

fn push_logs(text: &mut String, from: u64, to: u64) {
    text.push('[');
    for number in from..=to {
        for index in 0..TRANSFERS_COUNT {
            if (number, index) != (from, 0) {
                text.push(',');
            }
            push_log(text, number, index);
        }
    }
    text.push(']');
}

fn push_header(text: &mut String, number: u64) {
    text.push_str(r#"{"hash":"0x"#);
    push_block_hash(text, number);
    text.push_str(r#"","parentHash":"0x"#);
    push_block_hash(text, number - 1);
    let _ = write!(
        text,
        r#"","number":"{number:#x}","timestamp":"{:#x}","stateRoot":"0x","gasUsed":"0x0","size":"0x5000","#,
        block_time(number)
    );
    text.push_str(r#""transactions":["#);
    for index in 0..TRANSACTIONS_COUNT {
        text.push_str(if index == 0 { "\"0x" } else { "\",\"0x" });
        push_transaction_hash(text, number, index);
    }
    text.push_str("\"]}");
}

fn push_receipts(text: &mut String, number: u64) {
    text.push('[');
    for index in 0..TRANSACTIONS_COUNT {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(r#"{"transactionHash":"0x"#);
        push_transaction_hash(text, number, index);
        text.push_str(r#"","blockHash":"0x"#);
        push_block_hash(text, number);
        let _ = write!(
            text,
            r#"","blockNumber":"{number:#x}","status":"0x1","logsBloom":"0x{:0512}","logs":["#,
            0
        );
        if index < TRANSFERS_COUNT {
            push_log(text, number, index);
        }
        text.push_str("]}");
    }
    text.push(']');
}

/// A node whose final block can be moved on. Its blocks are a function of their number.
struct FakeNode {
    address: SocketAddr,
    final_number: Arc<AtomicU64>,
}

impl FakeNode {
    /// Serves from a thread of its own.
    fn start() -> FakeNode {
        let final_number = Arc::new(AtomicU64::new(FIRST_BLOCK));
        let (tell, told) = std::sync::mpsc::channel();
        let shared = final_number.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
                tell.send(listener.local_addr().expect("its address"))
                    .expect("somebody waits for the address");
                let _ =
                    axum::serve(listener, Router::new().fallback(answer).with_state(shared)).await;
            });
        });
        FakeNode { address: told.recv().expect("the node's address"), final_number }
    }
}

async fn answer(State(final_number): State<Arc<AtomicU64>>, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).expect("a JSON-RPC request");
    let last_final = final_number.load(Ordering::Relaxed);
    let mut text = String::with_capacity(64 * 1024);
    match &asked {
        Value::Array(questions) => {
            text.push('[');
            for (place, question) in questions.iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                push_answer(&mut text, question, last_final);
            }
            text.push(']');
        }
        question => push_answer(&mut text, question, last_final),
    }
    Response::builder()
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(text))
        .expect("an answer")
}

fn number_in(value: &Value) -> u64 {
    let digits = value
        .as_str()
        .and_then(|text| text.strip_prefix("0x"))
        .unwrap_or_else(|| panic!("{value} is no block number"));
    u64::from_str_radix(digits, 16).expect("a block number")
}

fn push_answer(text: &mut String, question: &Value, last_final: u64) {
    let head = last_final + FINALITY_BLOCKS;
    let params = &question["params"];
    let _ = write!(text, r#"{{"jsonrpc":"2.0","id":{},"result":"#, question["id"]);
    match question["method"].as_str().unwrap_or_default() {
        "eth_chainId" => text.push_str("\"0x2b6653dc\""),
        "eth_blockNumber" => {
            let _ = write!(text, "\"{head:#x}\"");
        }
        // decimals(), and deprecated().
        "eth_call" => {
            let result = if params[0]["data"] == "0x313ce567" { 6 } else { 0 };
            let _ = write!(text, "\"0x{result:064x}\"");
        }
        "eth_getBlockByNumber" => match params[0].as_str() {
            Some("latest") => push_header(text, head),
            Some("finalized") => push_header(text, last_final),
            _ => match number_in(&params[0]) {
                number if number <= head => push_header(text, number),
                _ => text.push_str("null"),
            },
        },
        "eth_getLogs" => {
            let (from, to) = (number_in(&params[0]["fromBlock"]), number_in(&params[0]["toBlock"]));
            push_logs(text, from, to.min(head));
        }
        "eth_getBlockReceipts" => push_receipts(text, number_in(&params[0])),
        other => panic!("the service asks for {other}, which the bench does not serve"),
    }
    text.push('}');
}

/// One number of watched addresses, with its node and what was measured.
struct Level {
    size: usize,
    database: PathBuf,
    node: FakeNode,
    rates: Vec<f64>,
    cpu_milliseconds: Vec<f64>,
    /// CPU of a start, with everything that the service makes ready.
    start_seconds: Vec<f64>,
    cost: CpuCost,
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("chain");
    let mut levels: Vec<Level> = scale
        .watched
        .iter()
        .map(|size| {
            let level = Level {
                size: *size,
                database: folder.database(&format!("watched-{size}")),
                node: FakeNode::start(),
                rates: Vec::new(),
                cpu_milliseconds: Vec::new(),
                start_seconds: Vec::new(),
                cost: CpuCost::default(),
            };
            // A first start makes the schema and the cursor.
            let server = level.serve();
            level.await_height(FIRST_BLOCK);
            server.stop();
            watch(&level.database, *size);
            level
        })
        .collect();
    // The first round only warms up.
    for round in 0..=scale.rounds.max(2) {
        let count = levels.len();
        for turn in 0..count {
            levels[(turn + round) % count].measure(runtime, scale.blocks, round > 0);
        }
    }
    tell(table, &levels, scale);
    derive(table);
}

/// Registers addresses that nobody pays to, in the order of their bytes, which is the quickest.
fn watch(database: &Path, count: usize) {
    let mut connection = sqlite::open_writer(database).expect("the database opens");
    let mut addresses: Vec<[u8; 20]> = (0..count as u64)
        .map(|index| {
            let mut address = [0; 20];
            address[..8].copy_from_slice(&mixed(index ^ 7 << 50).to_be_bytes());
            address[8..16].copy_from_slice(&mixed(index ^ 9 << 50).to_be_bytes());
            address
        })
        .collect();
    addresses.sort_unstable();
    let transaction = connection.transaction().expect("a transaction");
    {
        let sql = "INSERT INTO deposit_addresses (address, scope, transfer_id) VALUES (?1, 2, ?2)";
        let mut insert = transaction.prepare(sql).expect("a statement");
        for (index, address) in addresses.iter().enumerate() {
            insert
                .execute((address.as_slice(), (index as u128).to_be_bytes().as_slice()))
                .expect("an address");
        }
    }
    transaction.commit().expect("the addresses are kept");
}

impl Level {
    fn serve(&self) -> Server {
        let endpoint = format!("http://{}/", self.node.address);
        let variables = [
            ("HUNDI_TEST_CHAIN_PRESET", "tron"),
            ("HUNDI_TEST_CHAIN_ENDPOINTS", endpoint.as_str()),
            ("HUNDI_TEST_CHAIN_ACCOUNT_KEY", ACCOUNT_KEY),
            ("HUNDI_TEST_CHAIN_POLL_MILLISECONDS", "100"),
        ];
        Server::start_with(&self.database, &variables)
    }

    fn height(&self) -> Option<u64> {
        let connection = sqlite::open_reader(&self.database).ok()?;
        connection
            .query_row("SELECT height FROM chain_cursors", [], |row| row.get::<_, i64>(0))
            .ok()
            .map(|height| height as u64)
    }

    fn await_height(&self, height: u64) {
        let started = Instant::now();
        let connection = sqlite::open_reader(&self.database).expect("the database opens");
        let reached = || {
            let read = connection
                .query_row("SELECT height FROM chain_cursors", [], |row| row.get::<_, i64>(0));
            read.is_ok_and(|found| found as u64 >= height)
        };
        while !reached() {
            assert!(
                started.elapsed() < PATIENCE,
                "the service does not follow; see the log beside {}",
                self.database.display()
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Lets the chain grow by some blocks at once, and the service catch up.
    fn measure(&mut self, runtime: &Runtime, blocks: u64, is_kept: bool) {
        let server = self.serve();
        let target = self.height().unwrap_or(FIRST_BLOCK) + blocks;
        // It fills its shelf of deposit addresses and reads the register of those handed out, which
        // is told apart.
        runtime.block_on(server.calm());
        let start_seconds = machine::cpu_seconds(server.process_id());
        let (span, started) = (CpuSpan::start(server.process_id()), Instant::now());
        self.node.final_number.store(target, Ordering::Relaxed);
        self.await_height(target);
        let (seconds, cost) = (started.elapsed().as_secs_f64(), span.end());
        server.stop();
        if is_kept {
            self.start_seconds.push(start_seconds);
            self.rates.push(blocks as f64 / seconds);
            self.cpu_milliseconds.push(cost.server_seconds * 1e3 / blocks as f64);
            self.cost = self.cost.plus(cost);
        }
    }
}

fn tell(table: &mut Table, levels: &[Level], scale: &Scale) {
    let mut logs = String::new();
    push_logs(&mut logs, FIRST_BLOCK, FIRST_BLOCK);
    let bytes = logs.len() as u64 / TRANSFERS_COUNT;
    let sizes = levels.iter().map(|level| level.size.to_string()).collect::<Vec<_>>().join(" / ");
    for level in levels {
        let (rate, cpu) =
            (median(level.rates.iter().copied()), median(level.cpu_milliseconds.iter().copied()));
        table.add(
            &format!(
                "catching up, {} addresses watched, {TRANSFERS_COUNT} transfers of {bytes} \
             bytes a block",
                level.size
            ),
            format!(
                "{rate:.0} blocks/s, {}; a day of {DAY_BLOCKS:.0} blocks: {:.0} s, of one core \
                 {:.0} s",
                level.cost.of_each(level.rates.len() * scale.blocks as usize),
                DAY_BLOCKS / rate.max(1e-9),
                DAY_BLOCKS * cpu / 1e3,
            ),
            "",
        );
    }
    let costs: Vec<f64> =
        levels.iter().map(|level| median(level.cpu_milliseconds.iter().copied())).collect();
    let shown = costs.iter().map(|cost| format!("{cost:.2} ms")).collect::<Vec<_>>().join(" / ");
    let growth =
        costs.last().copied().unwrap_or(0.0) / costs.first().copied().unwrap_or(1.0).max(1e-9);
    table.at_most(
        &format!("CPU of a block at {sizes} addresses watched, last to first"),
        growth,
        1.3,
        &format!(" ({shown})"),
    );
    let starts = levels
        .iter()
        .map(|level| format!("{:.2} s", median(level.start_seconds.iter().copied())))
        .collect::<Vec<_>>()
        .join(" / ");
    table.add(
        &format!("CPU of a start at {sizes} addresses watched, which reads them all"),
        starts,
        "",
    );
}

fn derive(table: &mut Table) {
    let key = AccountXpub::parse(ACCOUNT_KEY).expect("an account key");
    let started = Instant::now();
    for index in 0..DERIVED_COUNT {
        std::hint::black_box(key.address(index).expect("an address"));
    }
    let seconds = started.elapsed().as_secs_f64();
    let (rate, microseconds) =
        (f64::from(DERIVED_COUNT) / seconds, seconds * 1e6 / f64::from(DERIVED_COUNT));
    table.add(
        "deposit addresses derived, one thread",
        format!("{rate:.0}/s, {microseconds:.1} us each"),
        "",
    );
}
