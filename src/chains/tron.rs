//! TRON and its test nets: addresses in base58check, hashes without `0x`, nodes with the Ethereum
//! JSON-RPC and TRON's own interface beside it.

use super::address_bytes::AddressBytes;
use super::blocks::Hash;
use super::budget::RequestLimits;
use super::port::{AddressGrammar, ChainKind, ChainNode, TextError};
use super::rpc::RpcNode;
use super::timer::Timer;
use super::tron_address::{ADDRESS_LENGTH_CHARS, TronAddress};
use crate::kernel::hex;
use crate::outbound::{Client, OutboundEndpoint};

pub struct Tron;

impl ChainKind for Tron {
    fn names(&self) -> &'static [&'static str] {
        &["tron"]
    }

    /// Whatever no other kind claims.
    fn claims(&self, _: &str) -> bool {
        true
    }

    fn parse_address(&self, text: &str) -> Result<AddressBytes, TextError> {
        let address = TronAddress::parse(text).map_err(|fault| TextError(fault.to_string()))?;
        Ok(address.bytes())
    }

    fn write_address(&self, bytes: &AddressBytes) -> String {
        bytes.as_20().map_or_else(
            || crate::kernel::hex::encode(bytes),
            |bytes| TronAddress::from_evm(*bytes).to_string(),
        )
    }

    fn address_grammar(&self) -> AddressGrammar {
        AddressGrammar {
            length_min: ADDRESS_LENGTH_CHARS,
            length_max: ADDRESS_LENGTH_CHARS,
            pattern: "T[1-9A-HJ-NP-Za-km-z]{33}",
        }
    }

    fn address_rule(&self) -> &'static str {
        "must be a TRON address, which begins with T."
    }

    fn write_hash(&self, hash: &Hash) -> String {
        hex::encode(hash.0)
    }

    fn node(
        &self,
        client: &Client,
        endpoint: &OutboundEndpoint,
        limits: RequestLimits,
        timer: &Timer,
    ) -> Box<dyn ChainNode> {
        Box::new(RpcNode::new(client.clone(), endpoint.clone(), limits, timer.clone(), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_without_a_prefix() {
        assert_eq!(Tron.write_hash(&Hash([0xab; 32])), "ab".repeat(32));
    }
}
