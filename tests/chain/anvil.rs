//! A chain of a test's own: anvil, a local EVM node whose finality trails its head by 18 blocks, as
//! TRON's does.
//!
//! Nothing is mined by itself. A transaction waits until the test mines, all that wait go into the
//! next block in the order in which they were sent, and each block is 3 s later than the one
//! before, whatever the wall clock says. So a test decides what stands in which block, at which log
//! index and at what time:
//!
//! ```ignore
//! let chain = Anvil::start().await;
//! let token = chain.deploy_token().await;
//! let first = token.transfer(to, 1_000_000).await;     // from the treasury, `chain.accounts()[0]`
//! let pair = token.transfer_many(&[(to, 5), (to, 6)]).await; // two logs, one transaction
//! chain.mine(1).await;                                 // both in one block
//! chain.reorg(1, &[Kept::at(first, 0)]).await;         // the same height without `pair`
//! chain.mine(18).await;                                // that block is final now
//! assert_eq!(token.transfers(1, chain.finalized().await).await.len(), ...);
//! chain.restart().await;                               // the same chain at the same address
//! ```
//!
//! A new chain stands at block 1, which creates the multisend contract; `deploy_token` mines two
//! more. Transactions cost nothing. Whatever goes wrong inside panics, with a message that says
//! what.

#![allow(dead_code, reason = "each scenario uses its own part of the harness")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hundi::chains::tron_address::TronAddress;
use hundi::outbound::OutboundEndpoint;
use serde_json::{Value, json};

use crate::rpc::{Rpc, RpcError};
use crate::wire::{
    Argument, Contract, Hash, TRANSFER_TOPIC, address_of, evm, nobody, number_of, quantity,
};

/// TRON's main net.
pub const CHAIN_ID: u64 = 728_126_428;
/// A block every so many seconds.
pub const BLOCK_SECONDS: i64 = 3;
/// How far finality trails the head: two epochs of 9 slots.
pub const FINALITY_BLOCKS: u64 = 18;
/// Block 0's time, where a test does not choose: a fixed one, so that runs repeat.
pub const GENESIS_TIME: i64 = 1_790_000_000;
/// What each of `accounts()` holds of every new token, in its smallest units.
pub const HOLDING_UNITS: u64 = 1_000_000_000_000_000;
/// Transfers that fit into one `transfer_many`.
pub const TRANSFERS_MAX: usize = 2_000;

const START_PATIENCE: Duration = Duration::from_secs(180);
const POLL_EVERY: Duration = Duration::from_millis(5);
const STARTS_MAX: u32 = 5;
/// The first of the accounts that anvil makes from its fixed words.
const FIRST_ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BLOCK_GAS: u64 = 3_000_000_000;

/// How a chain begins.
#[derive(Clone, Debug)]
pub struct Options {
    /// Block 0's time in Unix seconds; block `n` is `3 * n` seconds later unless the test says
    /// otherwise.
    pub genesis_time: i64,
    pub chain_id: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { genesis_time: GENESIS_TIME, chain_id: CHAIN_ID }
    }
}

/// A running chain; clones are the same one. The process ends with the last of them.
#[derive(Clone)]
pub struct Anvil(Arc<Node>);

struct Node {
    process: Mutex<Option<Child>>,
    port: u16,
    directory: PathBuf,
    chain_id: u64,
    /// What the first account holds of the chain's own coin; it tells this node from another one on
    /// the same port.
    coins: u64,
    rpc: Rpc,
    accounts: Mutex<Vec<TronAddress>>,
    multisend: Mutex<Option<TronAddress>>,
    impersonated: Mutex<BTreeSet<[u8; 20]>>,
    /// The time of the last block on the disk.
    kept_time: Mutex<Option<i64>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a block's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub number: u64,
    pub hash: Hash,
    pub parent_hash: Hash,
    /// Unix seconds.
    pub time: i64,
    pub transactions: Vec<Hash>,
}

/// One `Transfer` log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferLog {
    pub contract: TronAddress,
    pub from: TronAddress,
    pub to: TronAddress,
    pub units: u64,
    pub block_number: u64,
    pub block_hash: Hash,
    pub transaction: Hash,
    /// Its place among the block's logs.
    pub log_index: u64,
}

impl TransferLog {
    /// Reads a log as JSON-RPC shows it; `None` where it is no ERC-20 transfer.
    pub fn read(log: &Value) -> Option<TransferLog> {
        let topics = log["topics"].as_array()?;
        if topics.len() != 3 || topics[0] != TRANSFER_TOPIC {
            return None;
        }
        let digits = log["data"].as_str()?.strip_prefix("0x")?.trim_start_matches('0');
        Some(TransferLog {
            contract: address_of(&log["address"]),
            from: address_of(&topics[1]),
            to: address_of(&topics[2]),
            units: if digits.is_empty() { 0 } else { u64::from_str_radix(digits, 16).ok()? },
            block_number: number_of(&log["blockNumber"]),
            block_hash: Hash::of(&log["blockHash"]),
            transaction: Hash::of(&log["transactionHash"]),
            log_index: number_of(&log["logIndex"]),
        })
    }
}

/// What became of a transaction that a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub is_successful: bool,
    pub block_number: u64,
    pub block_hash: Hash,
    pub transaction_index: u64,
    pub contract_address: Option<TronAddress>,
    pub transfers: Vec<TransferLog>,
}

/// A transaction that a reorganisation takes over, and where to: `offset` 0 is the first block that
/// it replaces. Those of one offset stand in the block in the order of the list. Transactions of
/// one sender have to keep their order.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub transaction: Hash,
    pub offset: u64,
}

impl Kept {
    pub fn at(transaction: Hash, offset: u64) -> Kept {
        Kept { transaction, offset }
    }
}

/// A state of the chain to come back to, once.
#[derive(Debug)]
pub struct Snapshot(Value);

impl Anvil {
    pub async fn start() -> Anvil {
        Anvil::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Anvil {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        let chain = loop {
            tries += 1;
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("anvil-{}-{count}", std::process::id()));
            // What an earlier process of the same number left behind would be loaded.
            let _ = std::fs::remove_dir_all(&directory);
            std::fs::create_dir_all(&directory).expect("a directory for the chain");
            let port = free_port(count);
            let endpoint = OutboundEndpoint::new(&format!("http://127.0.0.1:{port}/"), None)
                .expect("an address");
            let chain = Anvil(Arc::new(Node {
                process: Mutex::default(),
                port,
                directory,
                chain_id: options.chain_id,
                coins: fresh_number() % 1_000_000_000,
                rpc: Rpc::new(endpoint),
                accounts: Mutex::default(),
                multisend: Mutex::default(),
                impersonated: Mutex::default(),
                kept_time: Mutex::default(),
            }));
            match chain.launch(&["--timestamp", &options.genesis_time.to_string()]).await {
                Ok(()) => break chain,
                // Somebody else may have taken the port in between.
                Err(problem) => assert!(tries < STARTS_MAX, "anvil did not start: {problem}"),
            }
        };
        *locked(&chain.0.accounts) = chain
            .rpc("eth_accounts", json!([]))
            .await
            .as_array()
            .expect("accounts")
            .iter()
            .map(address_of)
            .collect();
        let made = chain
            .submit(chain.treasury(), None, Contract::named("Multisend").creation(&[]), 5_000_000)
            .await;
        chain.mine(1).await;
        *locked(&chain.0.multisend) =
            chain.receipt(made).await.expect("the multisend contract").contract_address;
        chain
    }

    /// Starts the process and waits until it answers.
    async fn launch(&self, more: &[&str]) -> Result<(), String> {
        let log = std::fs::File::create(self.0.directory.join("stderr"))
            .expect("a file for what anvil says");
        let mut child = Command::new(binary())
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                &self.0.port.to_string(),
                "--silent",
                "--no-cors",
            ])
            .args([
                "--chain-id",
                &self.0.chain_id.to_string(),
                "--slots-in-an-epoch",
                &(FINALITY_BLOCKS / 2).to_string(),
            ])
            .args([
                "--no-mining",
                "--order",
                "fifo",
                "--hardfork",
                "shanghai",
                "--gas-limit",
                &BLOCK_GAS.to_string(),
            ])
            .args([
                "--gas-price",
                "0",
                "--block-base-fee-per-gas",
                "0",
                "--disable-min-priority-fee",
            ])
            .args(["--balance", &self.0.coins.to_string()])
            // Without it, states of blocks are left in the user's home for ever, gigabytes in a
            // run.
            .arg("--cache-path")
            .arg(self.0.directory.join("states"))
            .arg("--state")
            .arg(self.0.directory.join("state.json"))
            .args(more)
            .current_dir(&self.0.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{} does not start ({error}): run tests/chain/install.sh",
                    binary().display()
                )
            });
        let started = Instant::now();
        let coins = format!("0x{:x}", u128::from(self.0.coins) * 1_000_000_000_000_000_000);
        loop {
            let is_there =
                self.0.rpc.call("eth_getBalance", json!([FIRST_ACCOUNT, "latest"])).await
                    == Ok(json!(coins));
            if let Some(status) = child.try_wait().expect("a child to look at") {
                let said =
                    std::fs::read_to_string(self.0.directory.join("stderr")).unwrap_or_default();
                return Err(format!("it ended with {status}: {said}"));
            }
            if is_there {
                break;
            }
            if started.elapsed() > START_PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("not ready after {START_PATIENCE:?}"));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        *locked(&self.0.process) = Some(child);
        self.rpc("anvil_setBlockTimestampInterval", json!([BLOCK_SECONDS])).await;
        Ok(())
    }

    /// Where the node listens, for a follower without a proxy between.
    pub fn endpoint(&self) -> OutboundEndpoint {
        OutboundEndpoint::new(&self.url(), None).expect("an address")
    }
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.0.port)
    }
    pub fn process_id(&self) -> Option<u32> {
        locked(&self.0.process).as_ref().map(Child::id)
    }

    /// Any call of the node's own interface; a refusal panics.
    #[track_caller]
    pub fn rpc(&self, method: &str, params: Value) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            self.try_rpc(method, params)
                .await
                .unwrap_or_else(|error| panic!("{method} failed at {caller}: {error:?}"))
        }
    }
    pub async fn try_rpc(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.0.rpc.call(method, params).await
    }

    /// The ten accounts that hold every new token. They sign for themselves.
    pub fn accounts(&self) -> Vec<TronAddress> {
        locked(&self.0.accounts).clone()
    }
    /// The account that transfers come from where a test does not say; it owns the contracts.
    pub fn treasury(&self) -> TronAddress {
        self.account(0)
    }
    pub fn account(&self, number: usize) -> TronAddress {
        locked(&self.0.accounts)[number]
    }

    // ---- Blocks ----

    /// Mines blocks 3 s apart. The first takes all that waits. 5 000 are a few seconds.
    pub async fn mine(&self, blocks: u64) {
        self.rpc("anvil_mine", json!([blocks])).await;
    }

    /// Mines a block at each of these times (Unix seconds, each later than the one before it). The
    /// first takes all that waits.
    pub async fn mine_at(&self, times: &[i64]) {
        for time in times {
            self.set_next_block_time(*time).await;
            self.mine(1).await;
        }
    }

    /// The time of the next block, in Unix seconds; those after it follow 3 s apart.
    pub async fn set_next_block_time(&self, time: i64) {
        self.rpc("evm_setNextBlockTimestamp", json!([time])).await;
    }

    /// Whether every transaction gets a block of its own at once; off when a chain starts.
    pub async fn set_automine(&self, is_on: bool) {
        self.rpc("evm_setAutomine", json!([is_on])).await;
    }

    pub async fn head(&self) -> u64 {
        number_of(&self.rpc("eth_blockNumber", json!([])).await)
    }
    /// The last final height; 0 while the chain is shorter than its finality.
    pub async fn finalized(&self) -> u64 {
        number_of(&self.rpc("eth_getBlockByNumber", json!(["finalized", false])).await["number"])
    }
    /// `None` beyond the head.
    pub async fn block(&self, number: u64) -> Option<Block> {
        let block = self.rpc("eth_getBlockByNumber", json!([quantity(number), false])).await;
        (!block.is_null()).then(|| Block {
            number: number_of(&block["number"]),
            hash: Hash::of(&block["hash"]),
            parent_hash: Hash::of(&block["parentHash"]),
            time: number_of(&block["timestamp"]) as i64,
            transactions: block["transactions"]
                .as_array()
                .expect("transactions")
                .iter()
                .map(Hash::of)
                .collect(),
        })
    }
    pub async fn head_block(&self) -> Block {
        self.block(self.head().await).await.expect("the head")
    }

    /// `None` while no block of the present branch holds it.
    pub async fn receipt(&self, transaction: Hash) -> Option<Receipt> {
        let receipt = self.rpc("eth_getTransactionReceipt", json!([transaction.to_string()])).await;
        (!receipt.is_null()).then(|| Receipt {
            is_successful: receipt["status"] == "0x1",
            block_number: number_of(&receipt["blockNumber"]),
            block_hash: Hash::of(&receipt["blockHash"]),
            transaction_index: number_of(&receipt["transactionIndex"]),
            contract_address: receipt["contractAddress"]
                .is_string()
                .then(|| address_of(&receipt["contractAddress"])),
            transfers: receipt["logs"]
                .as_array()
                .expect("logs")
                .iter()
                .filter_map(TransferLog::read)
                .collect(),
        })
    }

    // ---- Other branches ----

    /// Replaces the last `depth` blocks by as many others, at the same heights and times. What
    /// `kept` does not name is gone for good. Every replaced block gets another hash, also where it
    /// holds the same.
    pub async fn reorg(&self, depth: u64, kept: &[Kept]) {
        let mut pairs = Vec::new();
        for Kept { transaction, offset } in kept {
            let found =
                self.rpc("eth_getTransactionByHash", json!([transaction.to_string()])).await;
            assert!(
                !found.is_null(),
                "{transaction} is not on this branch, so a reorganisation cannot keep it"
            );
            let sender = address_of(&found["from"]);
            let form = if self.accounts().contains(&sender) {
                // As it was signed, so that it keeps its hash.
                self.rpc("eth_getRawTransactionByHash", json!([transaction.to_string()])).await
            } else {
                json!({"from": found["from"], "to": found["to"], "data": found["input"],
                    "gas": found["gas"],
                       "gasPrice": found["gasPrice"], "nonce": found["nonce"]})
            };
            pairs.push(json!([form, offset]));
        }
        self.mark_branch().await;
        self.rpc("anvil_reorg", json!([depth, pairs])).await;
    }

    /// Takes the last `depth` blocks away and puts nothing in their place; what they held is gone.
    pub async fn rollback(&self, depth: u64) {
        self.rpc("anvil_rollback", json!([depth])).await;
        self.mark_branch().await;
    }

    pub async fn snapshot(&self) -> Snapshot {
        Snapshot(self.rpc("evm_snapshot", json!([])).await)
    }
    /// Goes back to a snapshot; what is mined from there is another branch.
    pub async fn revert(&self, to: Snapshot) {
        assert_eq!(
            self.rpc("evm_revert", json!([to.0])).await,
            json!(true),
            "the snapshot is gone"
        );
        self.mark_branch().await;
    }

    /// Changes who mines, so that blocks with the same content and time get other hashes than
    /// before.
    async fn mark_branch(&self) {
        static BRANCH: AtomicU64 = AtomicU64::new(1);
        let miner = nobody(u64::MAX - BRANCH.fetch_add(1, Ordering::Relaxed));
        self.rpc("anvil_setCoinbase", json!([evm(miner)])).await;
    }

    // ---- The process ----

    /// Ends the node, which keeps its chain on the disk. Calls fail until `resume`.
    pub async fn stop(&self) {
        let time = self.head_block().await.time;
        let mut child = locked(&self.0.process).take().expect("a running node");
        let asked = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
        assert!(asked.is_ok_and(|status| status.success()), "kill -s TERM failed");
        let started = Instant::now();
        while child.try_wait().expect("a child to wait for").is_none() {
            if started.elapsed() > START_PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                panic!("anvil did not end within {START_PATIENCE:?}");
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        *locked(&self.0.kept_time) = Some(time);
    }

    /// kill -9: after `resume` the chain is as it was at the last `stop`, so at least one `stop`
    /// has to come before.
    pub async fn kill(&self) {
        let mut child = locked(&self.0.process).take().expect("a running node");
        child.kill().expect("a process to kill");
        child.wait().expect("a process to wait for");
    }

    /// Starts the node again at the same address, with the chain that it kept. Transactions that
    /// waited are lost.
    pub async fn resume(&self) {
        assert!(locked(&self.0.process).is_none(), "the node runs already");
        let time = locked(&self.0.kept_time)
            .expect("no chain on the disk: stop the node once before killing it");
        // The node would otherwise go on with the wall clock's time.
        self.launch(&["--timestamp", &time.to_string()])
            .await
            .unwrap_or_else(|problem| panic!("anvil did not start again: {problem}"));
        locked(&self.0.impersonated).clear();
    }

    pub async fn restart(&self) {
        self.stop().await;
        self.resume().await;
    }

    // ---- Contracts ----

    /// Creates a token that answers like USDT (`decimals()` 6, `symbol()` "USDT", `deprecated()`
    /// false), and mines two blocks. Each of `accounts()` holds `HOLDING_UNITS` of it; their
    /// minting is ten transfers from the zero address.
    pub async fn deploy_token(&self) -> Token {
        self.deploy_token_named("Tether USD", "USDT").await
    }

    /// The same with another name and symbol; the same name and symbol again are a look-alike.
    pub async fn deploy_token_named(&self, name: &str, symbol: &str) -> Token {
        let contract = Contract::named("Token");
        let holders = self.accounts();
        let made = contract.creation(&[
            Argument::Text(name),
            Argument::Text(symbol),
            Argument::Addresses(&holders),
            Argument::Number(HOLDING_UNITS),
        ]);
        let made = self.submit(self.treasury(), None, made, 20_000_000).await;
        self.mine(1).await;
        let address = self
            .receipt(made)
            .await
            .and_then(|receipt| receipt.contract_address)
            .expect("the token's contract");
        let token = Token { chain: self.clone(), address, contract: Arc::new(contract) };
        let multisend = self.multisend();
        for holder in holders {
            let allowance = [Argument::Address(multisend), Argument::Number(u64::MAX)];
            token.call_as(holder, "approve(address,uint256)", &allowance).await;
        }
        self.mine(1).await;
        token
    }

    fn multisend(&self) -> TronAddress {
        locked(&self.0.multisend).expect("the multisend contract")
    }

    /// Sends a transaction from anyone, without asking what it would cost or whether it succeeds.
    /// It waits for a block.
    pub async fn submit(
        &self,
        from: TronAddress,
        to: Option<TronAddress>,
        data: String,
        gas: u64,
    ) -> Hash {
        if !self.accounts().contains(&from) && !locked(&self.0.impersonated).contains(from.as_evm())
        {
            self.rpc("anvil_impersonateAccount", json!([evm(from)])).await;
            locked(&self.0.impersonated).insert(*from.as_evm());
        }
        let mut transaction =
            json!({"from": evm(from), "data": data, "gas": quantity(gas), "gasPrice": "0x0"});
        if let Some(to) = to {
            transaction["to"] = evm(to).into();
        }
        Hash::of(&self.rpc("eth_sendTransaction", json!([transaction])).await)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = locked(&self.process).take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A token on a chain. Amounts are in its smallest units, a millionth.
#[derive(Clone)]
pub struct Token {
    pub chain: Anvil,
    pub address: TronAddress,
    contract: Arc<Contract>,
}

impl Token {
    /// A transfer from the treasury. Like everything here it waits for a block.
    pub async fn transfer(&self, to: TronAddress, units: u64) -> Hash {
        self.transfer_from(self.chain.treasury(), to, units).await
    }

    /// A transfer from anyone who holds enough, such as a deposit address that is emptied; else it
    /// fails in its block.
    pub async fn transfer_from(&self, from: TronAddress, to: TronAddress, units: u64) -> Hash {
        self.call_as(
            from,
            "transfer(address,uint256)",
            &[Argument::Address(to), Argument::Number(units)],
        )
        .await
    }

    /// Several transfers in one transaction, each a log of its own; at most `TRANSFERS_MAX`.
    pub async fn transfer_many(&self, transfers: &[(TronAddress, u64)]) -> Hash {
        self.multisend("send(address,address[],uint256[])", transfers).await
    }

    /// Several transfers, each in a transaction of its own, in this order.
    pub async fn transfer_each(&self, transfers: &[(TronAddress, u64)]) -> Vec<Hash> {
        let mut sent = Vec::with_capacity(transfers.len());
        for (to, units) in transfers {
            sent.push(self.transfer(*to, *units).await);
        }
        sent
    }

    /// What else goes on: `count` transfers to strangers in one transaction.
    pub async fn noise(&self, count: usize) -> Hash {
        let transfers: Vec<_> =
            (0..count as u64).map(|number| (nobody(number), number + 1)).collect();
        self.transfer_many(&transfers).await
    }

    /// A transaction that transfers and then fails as a whole: status 0, no log.
    pub async fn transfer_reverted(&self, to: TronAddress, units: u64) -> Hash {
        self.multisend("sendAndRevert(address,address[],uint256[])", &[(to, units)]).await
    }

    /// A transfer of nothing out of `victim`'s account that nobody had to allow; it succeeds and
    /// leaves a log.
    pub async fn transfer_nothing_as_stranger(
        &self,
        stranger: TronAddress,
        victim: TronAddress,
        to: TronAddress,
    ) -> Hash {
        let arguments = [Argument::Address(victim), Argument::Address(to), Argument::Number(0)];
        self.call_as(stranger, "transferFrom(address,address,uint256)", &arguments).await
    }

    /// Hands over to a successor: `deprecated()` is true from then on, and transfers move the
    /// successor's token.
    pub async fn deprecate(&self, successor: TronAddress) -> Hash {
        self.call_as(self.chain.treasury(), "deprecate(address)", &[Argument::Address(successor)])
            .await
    }

    /// Lets another one take from the treasury; the contract tells of it in a log that is no
    /// transfer.
    pub async fn approve(&self, other: TronAddress, units: u64) -> Hash {
        let arguments = [Argument::Address(other), Argument::Number(units)];
        self.call_as(self.chain.treasury(), "approve(address,uint256)", &arguments).await
    }

    /// Takes a fee off every transfer, which goes to the treasury in a log of its own.
    pub async fn set_fee(&self, basis_points: u64, units_max: u64) -> Hash {
        let arguments = [Argument::Number(basis_points), Argument::Number(units_max)];
        self.call_as(self.chain.treasury(), "setParams(uint256,uint256)", &arguments).await
    }

    /// From then on `user` still receives and cannot send.
    pub async fn add_to_black_list(&self, user: TronAddress) -> Hash {
        self.call_as(self.chain.treasury(), "addBlackList(address)", &[Argument::Address(user)])
            .await
    }

    /// Counts in other units from the next block on.
    pub async fn set_decimals(&self, count: u64) -> Hash {
        self.call_as(self.chain.treasury(), "setDecimals(uint8)", &[Argument::Number(count)]).await
    }
    pub async fn is_deprecated(&self) -> bool {
        number_of_word(&self.ask("deprecated()", &[]).await) == 1
    }
    pub async fn decimals(&self) -> u64 {
        number_of_word(&self.ask("decimals()", &[]).await)
    }
    pub async fn balance_of(&self, holder: TronAddress) -> u64 {
        number_of_word(&self.ask("balanceOf(address)", &[Argument::Address(holder)]).await)
    }
    pub async fn symbol(&self) -> String {
        let answer = self.ask("symbol()", &[]).await;
        let bytes =
            crate::wire::bytes_of(answer.as_str().expect("an answer")).expect("hexadecimal");
        String::from_utf8(bytes[64..64 + usize::from(bytes[63])].to_vec()).expect("a text")
    }

    /// All transfers of this token that the chain holds, between two heights and including both;
    /// whatever a proxy says, this is the truth that a follower is measured by.
    pub async fn transfers(&self, from: u64, to: u64) -> Vec<TransferLog> {
        let to = to.min(self.chain.head().await);
        if from > to {
            return Vec::new();
        }
        let filter = json!({"address": evm(self.address), "topics": [TRANSFER_TOPIC],
            "fromBlock": quantity(from), "toBlock": quantity(to)});
        let logs = self.chain.rpc("eth_getLogs", json!([filter])).await;
        logs.as_array()
            .expect("logs")
            .iter()
            .map(|log| TransferLog::read(log).expect("a transfer"))
            .collect()
    }

    async fn multisend(&self, signature: &str, transfers: &[(TronAddress, u64)]) -> Hash {
        assert!(
            transfers.len() <= TRANSFERS_MAX,
            "at most {TRANSFERS_MAX} transfers go into one transaction"
        );
        let (recipients, units): (Vec<_>, Vec<_>) = transfers.iter().copied().unzip();
        let arguments = [
            Argument::Address(self.address),
            Argument::Addresses(&recipients),
            Argument::Numbers(&units),
        ];
        let data = Contract::named("Multisend").call(signature, &arguments);
        let gas = 200_000 + 90_000 * transfers.len() as u64;
        self.chain.submit(self.chain.treasury(), Some(self.chain.multisend()), data, gas).await
    }

    async fn call_as(
        &self,
        from: TronAddress,
        signature: &str,
        arguments: &[Argument<'_>],
    ) -> Hash {
        self.chain
            .submit(from, Some(self.address), self.contract.call(signature, arguments), 300_000)
            .await
    }

    async fn ask(&self, signature: &str, arguments: &[Argument<'_>]) -> Value {
        let call =
            json!({"to": evm(self.address), "data": self.contract.call(signature, arguments)});
        self.chain.rpc("eth_call", json!([call, "latest"])).await
    }
}

fn number_of_word(word: &Value) -> u64 {
    let digits = word.as_str().expect("an answer").trim_start_matches("0x").trim_start_matches('0');
    if digits.is_empty() {
        0
    } else {
        u64::from_str_radix(digits, 16).expect("a number of 64 bits")
    }
}

/// Where tests/chain/install.sh puts the node: its package for this platform.
fn binary() -> PathBuf {
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-amd64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-amd64",
        ("macos", "aarch64") => "darwin-arm64",
        (system, machine) => panic!("there is no anvil for {system} on {machine}"),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("target/chain-tools/node_modules/@foundry-rs/anvil-{platform}/bin/anvil"));
    assert!(
        path.exists(),
        "the chain tests need anvil, which is not in {}: run tests/chain/install.sh",
        path.display()
    );
    path
}

/// A port that the system does not give to clients, which could otherwise sit on it while the node
/// is down.
fn free_port(count: u64) -> u16 {
    let clients_from: u16 = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_whitespace().next().and_then(|low| low.parse().ok()))
        .unwrap_or(32_768);
    let span = u64::from(clients_from.max(10_100) - 10_000);
    let first = fresh_number().wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % span;
    (0..span)
        .map(|step| 10_000 + ((first + step * 7) % span) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

/// A number that no other process is likely to come to at the same time.
fn fresh_number() -> u64 {
    let nanoseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |elapsed| elapsed.as_nanos() as u64);
    nanoseconds ^ (u64::from(std::process::id()) << 20)
}
