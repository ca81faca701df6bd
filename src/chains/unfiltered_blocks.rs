//! Reads blocks and receipts of one node without its filter of logs. [`blocks`] answers only what
//! is consistent. The caller has to judge what [`of_logs`] answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::address_bytes::AddressBytes;
use super::blocks::{Hash, Header, Log, Receipt};
use super::port::{BlockRange, ChainNode, NodeError};
use super::verify::{self, VerifyError};

/// Why blocks could not be read, or were not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Node(#[from] NodeError),
    #[error("it is not believed: {0}")]
    VerifyError(#[from] VerifyError),
}

/// Headers by height, and receipts by the hash of their transaction.
#[derive(Default)]
pub struct BlockData {
    pub headers: BTreeMap<i64, Header>,
    pub receipts: HashMap<Hash, Receipt>,
}

/// Reads blocks without a filter and compares them with what the filter showed of them.
pub async fn blocks(
    node: &dyn ChainNode,
    contracts: &[AddressBytes],
    range: &BlockRange,
    numbers: &BTreeSet<i64>,
) -> Result<BlockData, ReadError> {
    let mut known = BlockData::default();
    let numbers: Vec<i64> = numbers.iter().copied().collect();
    let headers = node.headers(&numbers).await?;
    for (number, header) in numbers.into_iter().zip(headers) {
        let header = header.ok_or(VerifyError::Stale(number))?;
        let shown: Vec<&Log> =
            range.logs.iter().filter(|log| log.block_number.0 == number).collect();
        if header.number.0 != number || shown.iter().any(|log| log.block_hash != header.hash) {
            return Err(VerifyError::WrongFork(number).into());
        }
        let mut receipts = Vec::new();
        if !header.transactions.is_empty() {
            receipts =
                node.receipts_in(&header).await?.ok_or(VerifyError::ReceiptsMissing(number))?;
        }
        verify::check_whole_block(&header, &receipts, contracts, &shown)?;
        known.headers.insert(number, header);
        known
            .receipts
            .extend(receipts.into_iter().map(|receipt| (receipt.transaction_hash, receipt)));
    }
    Ok(known)
}

/// Reads the receipts and headers of some logs' transactions and blocks. Leaves out what the node
/// does not have.
pub async fn of_logs(node: &dyn ChainNode, logs: &[&Log]) -> Result<BlockData, NodeError> {
    if logs.is_empty() {
        return Ok(BlockData::default());
    }
    let transactions: Vec<Hash> =
        logs.iter().map(|log| log.transaction_hash).collect::<BTreeSet<_>>().into_iter().collect();
    let receipts = node.receipts_of(&transactions).await?;
    let numbers: Vec<i64> =
        logs.iter().map(|log| log.block_number.0).collect::<BTreeSet<_>>().into_iter().collect();
    let headers = node.headers(&numbers).await?;
    Ok(BlockData {
        headers: headers.into_iter().flatten().map(|header| (header.number.0, header)).collect(),
        receipts: receipts
            .into_iter()
            .flatten()
            .map(|receipt| (receipt.transaction_hash, receipt))
            .collect(),
    })
}
