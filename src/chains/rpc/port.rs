//! [`RpcNode`] as a [`ChainNode`], and reading the texts that contracts return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::RpcNode;
use super::transport::REST_SECONDS_MAX;
use crate::chains::address_bytes::AddressBytes;
use crate::chains::blocks::{Hash, Header, Receipt};
use crate::chains::port::{
    BlockRange, ChainNode, FinalBlock, NodeAnswer, NodeError, SYMBOL_LENGTH_MAX,
};

/// How a call names the functions `decimals()`, `deprecated()` and `symbol()`: the first four bytes
/// of the Keccak hash.
const DECIMALS_SELECTOR: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];
const DEPRECATED_SELECTOR: [u8; 4] = [0x0e, 0x13, 0x6b, 0x19];
const SYMBOL_SELECTOR: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];

impl ChainNode for RpcNode {
    fn label(&self) -> String {
        self.transport.endpoint.label()
    }
    fn fits(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }
    fn note_fit(&self, fits: bool) {
        self.fits.store(fits, Ordering::Relaxed);
        if !fits {
            self.transport.rest(REST_SECONDS_MAX);
        }
    }
    fn resting_for(&self) -> Option<Duration> {
        self.transport.resting_for()
    }
    fn questions_count(&self) -> u64 {
        self.transport.sent_count()
    }
    fn routine_pause(&self, count: u64) -> Duration {
        self.transport.routine_pause(count)
    }
    fn lacks(&self) -> Vec<&'static str> {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        [
            (!self.transport.takes_batches(), "batches"),
            (is(&self.lacks_finalized), "the tag `finalized`"),
            (is(&self.lacks_block_receipts), "eth_getBlockReceipts"),
        ]
        .into_iter()
        .filter_map(|(lacks, what)| lacks.then_some(what))
        .collect()
    }
    fn chain_id(&self) -> NodeAnswer<'_, u64> {
        Box::pin(self.chain_id())
    }
    fn head(&self) -> NodeAnswer<'_, Header> {
        Box::pin(self.head())
    }
    fn final_block(&self) -> NodeAnswer<'_, FinalBlock> {
        Box::pin(self.final_block())
    }
    fn header(&self, number: i64) -> NodeAnswer<'_, Option<Header>> {
        Box::pin(self.header(number))
    }
    fn headers<'a>(&'a self, numbers: &'a [i64]) -> NodeAnswer<'a, Vec<Option<Header>>> {
        Box::pin(self.headers(numbers))
    }
    fn range<'a>(
        &'a self,
        contracts: &'a [AddressBytes],
        from: i64,
        to: i64,
        last: Option<&'a Header>,
    ) -> NodeAnswer<'a, Option<BlockRange>> {
        Box::pin(self.range(contracts, from, to, last))
    }
    fn receipt<'a>(&'a self, transaction: &'a Hash) -> NodeAnswer<'a, Option<Receipt>> {
        Box::pin(self.receipt(transaction))
    }
    fn receipts_of<'a>(&'a self, transactions: &'a [Hash]) -> NodeAnswer<'a, Vec<Option<Receipt>>> {
        Box::pin(self.receipts_of(transactions))
    }
    fn receipts_in<'a>(&'a self, block: &'a Header) -> NodeAnswer<'a, Option<Vec<Receipt>>> {
        Box::pin(self.receipts_in(block))
    }
    fn balances<'a>(
        &'a self,
        contract: &'a AddressBytes,
        addresses: &'a [AddressBytes],
    ) -> NodeAnswer<'a, Vec<u128>> {
        Box::pin(self.balances(contract, addresses))
    }
    fn known_accounts<'a>(&'a self, addresses: &'a [AddressBytes]) -> NodeAnswer<'a, Vec<bool>> {
        Box::pin(self.known_accounts(addresses))
    }
    fn token_decimals<'a>(&'a self, contract: &'a AddressBytes) -> NodeAnswer<'a, Option<u128>> {
        Box::pin(self.call_number(contract, DECIMALS_SELECTOR))
    }
    fn token_is_deprecated<'a>(
        &'a self,
        contract: &'a AddressBytes,
    ) -> NodeAnswer<'a, Option<bool>> {
        Box::pin(async move {
            match self.call_number(contract, DEPRECATED_SELECTOR).await {
                Ok(told) => Ok(told.map(|told| told == 1)),
                Err(NodeError::Refused(_) | NodeError::MethodMissing(_)) => Ok(None),
                Err(fault) => Err(fault),
            }
        })
    }
    fn token_symbol<'a>(&'a self, contract: &'a AddressBytes) -> NodeAnswer<'a, Option<String>> {
        Box::pin(async move { Ok(text_of(&self.call_data(contract, SYMBOL_SELECTOR).await?.0)) })
    }
}

/// Reads a text as contracts return it: with offset and length, or as 32 bytes padded with zeros.
/// `None` if it is not 1 to [`SYMBOL_LENGTH_MAX`] characters.
fn text_of(data: &[u8]) -> Option<String> {
    let number = |at: usize| -> Option<usize> {
        let (high, low) = data.get(at..at.checked_add(32)?)?.split_at(24);
        high.iter()
            .all(|byte| *byte == 0)
            .then(|| low.try_into().ok().map(u64::from_be_bytes))?
            .and_then(|value| value.try_into().ok())
    };
    let bytes = if data.len() == 32 {
        data.split(|byte| *byte == 0).next()?
    } else {
        let at = number(0)?;
        let length = number(at)?;
        let from = at.checked_add(32)?;
        data.get(from..from.checked_add(length)?)?
    };
    let text = str::from_utf8(bytes).ok()?;
    (1..=SYMBOL_LENGTH_MAX).contains(&text.chars().count()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ABI-encoded text.
    fn encoded(text: &str) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[31] = 32;
        data[63] = text.len() as u8;
        data.extend(text.bytes());
        data.resize(data.len().next_multiple_of(32), 0);
        data
    }

    #[test]
    fn texts_read_in_both_forms_or_not_at_all() {
        let mut fixed = b"USDT".to_vec();
        fixed.resize(32, 0);
        assert_eq!(text_of(&fixed).as_deref(), Some("USDT"));
        assert_eq!(text_of(&encoded("USDT")).as_deref(), Some("USDT"));
        let mut far = encoded("USDT");
        far[24..32].copy_from_slice(&u64::MAX.to_be_bytes());
        let mut long = encoded("USDT");
        long[56..64].copy_from_slice(&u64::MAX.to_be_bytes());
        let mut dirty = encoded("USDT");
        dirty[0] = 1;
        for data in [
            far,
            long,
            dirty,
            encoded(&"x".repeat(SYMBOL_LENGTH_MAX + 1)),
            vec![],
            vec![0; 32],
            vec![1; 31],
            vec![0xFF; 64],
        ] {
            assert_eq!(text_of(&data), None, "{data:?}");
        }
        assert_eq!(
            text_of(&encoded(&"x".repeat(SYMBOL_LENGTH_MAX))).map(|text| text.len()),
            Some(SYMBOL_LENGTH_MAX)
        );
    }

    #[test]
    fn selectors_are_the_hashes_of_their_signatures() {
        use sha3::{Digest, Keccak256};
        for (signature, selector) in [
            ("symbol()", SYMBOL_SELECTOR),
            ("decimals()", DECIMALS_SELECTOR),
            ("deprecated()", DEPRECATED_SELECTOR),
        ] {
            assert_eq!(Keccak256::digest(signature.as_bytes())[..4], selector, "{signature}");
        }
    }
}
