//! A kind of chain that is not Ethereum's, for tests: addresses are public keys of 32 bytes, and
//! nodes report token movements themselves. The chain is in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future;
use sha2::{Digest, Sha256};

use super::address_bytes::AddressBytes;
use super::blocks::{Hash, Header, Log, LogContent, Quantity, Receipt, TokenMovement};
use super::budget::RequestLimits;
use super::derivation::AccountXpub;
use super::port::{
    AddressGrammar, BlockRange, ChainKind, ChainNode, FinalBlock, NodeAnswer, NodeError, TextError,
};
use super::timer::Timer;
use crate::kernel::hex;
use crate::outbound::{Client, OutboundEndpoint};

pub const CHAIN_ID: u64 = 77;
pub const DECIMALS: u8 = 9;
/// Blocks above the final view.
pub const FINAL_DEPTH: usize = 3;
const PREFIX: &str = "stub1";

/// The made-up address with this number. Number 0 is the token's contract, and number 1 pays.
pub fn address(number: u8) -> AddressBytes {
    derived(&[number])
}

fn derived(bytes: &[u8]) -> AddressBytes {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    AddressBytes::new(&digest).unwrap()
}

pub struct Stub;

impl ChainKind for Stub {
    fn names(&self) -> &'static [&'static str] {
        &["stub"]
    }
    fn claims(&self, text: &str) -> bool {
        text.starts_with(PREFIX)
    }
    fn parse_address(&self, text: &str) -> Result<AddressBytes, TextError> {
        let digits = text.strip_prefix(PREFIX).and_then(hex::decode_exact::<32>);
        digits
            .and_then(|bytes| AddressBytes::new(&bytes))
            .ok_or_else(|| TextError("an address of this chain is stub1 and 64 digits".into()))
    }
    fn write_address(&self, bytes: &AddressBytes) -> String {
        format!("{PREFIX}{}", hex::encode(bytes))
    }
    fn address_grammar(&self) -> AddressGrammar {
        AddressGrammar { length_min: 69, length_max: 69, pattern: "stub1[0-9a-f]{64}" }
    }
    fn address_rule(&self) -> &'static str {
        "must be an address that begins with stub1."
    }
    fn deposit_address(&self, key: &AccountXpub, index: u32) -> Option<AddressBytes> {
        Some(derived(key.address(index).ok()?.as_evm()))
    }
    fn node(
        &self,
        _: &Client,
        endpoint: &OutboundEndpoint,
        _: RequestLimits,
        _: &Timer,
    ) -> Box<dyn ChainNode> {
        Box::new(StubNode { label: endpoint.label(), fits: Mutex::new(false) })
    }
}

struct StubBlock {
    header: Header,
    receipts: Vec<Receipt>,
}

static CHAIN: Mutex<Vec<StubBlock>> = Mutex::new(Vec::new());

fn chain() -> MutexGuard<'static, Vec<StubBlock>> {
    CHAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn digest(text: &str) -> Hash {
    Hash(Sha256::digest(text).into())
}

/// Adds blocks without a transaction, all at this time (Unix seconds).
pub fn mine(count: usize, time: i64) {
    (0..count).for_each(|_| add(time, &[]));
}

/// Adds a block with one transaction of these movements: to whom, and how many smallest units.
/// Answers the transaction.
pub fn pay(time: i64, movements: &[(AddressBytes, u128)]) -> Hash {
    add(time, movements);
    chain().last().unwrap().receipts[0].transaction_hash
}

fn add(time: i64, movements: &[(AddressBytes, u128)]) {
    let mut chain = chain();
    let number = chain.len() as i64;
    let (hash, transaction) = (digest(&format!("block {number}")), digest(&format!("tx {number}")));
    let log = |(index, (to, value)): (usize, &(AddressBytes, u128))| Log {
        contract: address(0),
        content: LogContent::Movement(TokenMovement { from: address(1), to: *to, value: *value }),
        block_number: Quantity(number),
        block_hash: hash,
        transaction_hash: transaction,
        log_index: Quantity(index as i64),
        removed: false,
    };
    let receipt = Receipt {
        transaction_hash: transaction,
        block_hash: hash,
        block_number: Quantity(number),
        status: Quantity(1),
        logs: movements.iter().enumerate().map(log).collect(),
    };
    let receipts = if movements.is_empty() { Vec::new() } else { vec![receipt] };
    let header = Header {
        number: Quantity(number),
        hash,
        parent_hash: chain.last().map_or(digest("nothing"), |block| block.header.hash),
        timestamp: Quantity(time),
        transactions: receipts.iter().map(|receipt| receipt.transaction_hash).collect(),
    };
    chain.push(StubBlock { header, receipts });
}

struct StubNode {
    label: String,
    fits: Mutex<bool>,
}

fn ready<'a, T: Send + 'a>(answer: T) -> NodeAnswer<'a, T> {
    Box::pin(future::ready(Ok(answer)))
}

fn header(number: i64) -> Option<Header> {
    chain().get(usize::try_from(number).ok()?).map(|block| block.header.clone())
}

fn receipt(transaction: &Hash) -> Option<Receipt> {
    let chain = chain();
    let mut receipts = chain.iter().flat_map(|block| &block.receipts);
    receipts.find(|receipt| receipt.transaction_hash == *transaction).cloned()
}

impl ChainNode for StubNode {
    fn label(&self) -> String {
        self.label.clone()
    }
    fn fits(&self) -> bool {
        *self.fits.lock().unwrap()
    }
    fn note_fit(&self, fits: bool) {
        *self.fits.lock().unwrap() = fits;
    }
    fn resting_for(&self) -> Option<Duration> {
        None
    }
    fn questions_count(&self) -> u64 {
        0
    }
    fn routine_pause(&self, _: u64) -> Duration {
        Duration::ZERO
    }
    fn lacks(&self) -> Vec<&'static str> {
        Vec::new()
    }
    fn chain_id(&self) -> NodeAnswer<'_, u64> {
        ready(CHAIN_ID)
    }
    fn head(&self) -> NodeAnswer<'_, Header> {
        ready(chain().last().unwrap().header.clone())
    }
    fn final_block(&self) -> NodeAnswer<'_, FinalBlock> {
        let header = chain().iter().rev().nth(FINAL_DEPTH).map(|block| block.header.clone());
        let no_block = || NodeError::Refused("no block is final yet".into());
        let answer = header.ok_or_else(no_block).map(|header| FinalBlock {
            number: header.number.0,
            time: header.timestamp.0,
            header: Some(header),
        });
        Box::pin(future::ready(answer))
    }
    fn header(&self, number: i64) -> NodeAnswer<'_, Option<Header>> {
        ready(header(number))
    }
    fn headers<'a>(&'a self, numbers: &'a [i64]) -> NodeAnswer<'a, Vec<Option<Header>>> {
        ready(numbers.iter().map(|number| header(*number)).collect())
    }
    fn range<'a>(
        &'a self,
        contracts: &'a [AddressBytes],
        from: i64,
        to: i64,
        _: Option<&'a Header>,
    ) -> NodeAnswer<'a, Option<BlockRange>> {
        let range = header(from).zip(header(to)).map(|(first, last)| {
            let chain = chain();
            let logs = chain[from as usize..=to as usize]
                .iter()
                .flat_map(|block| &block.receipts)
                .flat_map(|receipt| &receipt.logs)
                .filter(|log| contracts.contains(&log.contract));
            BlockRange { first, last, logs: logs.cloned().collect() }
        });
        ready(range)
    }
    fn receipt<'a>(&'a self, transaction: &'a Hash) -> NodeAnswer<'a, Option<Receipt>> {
        ready(receipt(transaction))
    }
    fn receipts_of<'a>(&'a self, transactions: &'a [Hash]) -> NodeAnswer<'a, Vec<Option<Receipt>>> {
        ready(transactions.iter().map(receipt).collect())
    }
    fn receipts_in<'a>(&'a self, block: &'a Header) -> NodeAnswer<'a, Option<Vec<Receipt>>> {
        ready(block.transactions.iter().map(receipt).collect())
    }
    fn balances<'a>(
        &'a self,
        _: &'a AddressBytes,
        addresses: &'a [AddressBytes],
    ) -> NodeAnswer<'a, Vec<u128>> {
        let chain = chain();
        let logs = || {
            let receipts = chain.iter().flat_map(|block| &block.receipts);
            receipts.flat_map(|receipt| &receipt.logs).filter_map(Log::movement)
        };
        let held = |address: &AddressBytes| {
            logs().filter(|moved| moved.to == *address).map(|moved| moved.value).sum()
        };
        ready(addresses.iter().map(held).collect())
    }
    fn known_accounts<'a>(&'a self, addresses: &'a [AddressBytes]) -> NodeAnswer<'a, Vec<bool>> {
        ready(vec![false; addresses.len()])
    }
    fn token_decimals<'a>(&'a self, _: &'a AddressBytes) -> NodeAnswer<'a, Option<u128>> {
        ready(Some(DECIMALS.into()))
    }
    fn token_is_deprecated<'a>(&'a self, _: &'a AddressBytes) -> NodeAnswer<'a, Option<bool>> {
        ready(None)
    }
    fn token_symbol<'a>(&'a self, _: &'a AddressBytes) -> NodeAnswer<'a, Option<String>> {
        ready(None)
    }
}
