//! Chains of Ethereum's kind: addresses in hexadecimal with the checksum of EIP-55, and nodes with
//! the Ethereum JSON-RPC.

use sha3::{Digest, Keccak256};

use super::address_bytes::AddressBytes;
use super::budget::RequestLimits;
use super::port::{AddressGrammar, ChainKind, ChainNode, TextError};
use super::rpc::RpcNode;
use super::timer::Timer;
use crate::kernel::hex;
use crate::outbound::{Client, OutboundEndpoint};

pub struct Evm;

impl ChainKind for Evm {
    fn names(&self) -> &'static [&'static str] {
        &["ethereum", "polygon", "base", "arbitrum", "bnb"]
    }

    fn claims(&self, text: &str) -> bool {
        text.starts_with("0x")
    }

    fn parse_address(&self, text: &str) -> Result<AddressBytes, TextError> {
        let shape = "an address in hexadecimal has 0x and 40 digits; copy the whole address";
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let bytes = self.listed_address(text).ok_or_else(|| TextError(shape.into()))?;
        let is_one_case = |is_case: fn(&u8) -> bool| {
            digits.bytes().filter(u8::is_ascii_alphabetic).all(|byte| is_case(&byte))
        };
        // Text in one case carries no checksum.
        let has_checksum =
            !is_one_case(u8::is_ascii_lowercase) && !is_one_case(u8::is_ascii_uppercase);
        if has_checksum && self.write_address(&bytes)[2..] != *digits {
            return Err(TextError(
                "the capital and small letters of this address do not match its checksum \
                 (EIP-55); copy the address again"
                    .into(),
            ));
        }
        Ok(bytes)
    }

    fn write_address(&self, bytes: &AddressBytes) -> String {
        let digits = hex::encode(bytes);
        let hash = Keccak256::digest(digits.as_bytes());
        let nibble = |index: usize| {
            let byte = hash.get(index / 2).copied().unwrap_or(0);
            if index.is_multiple_of(2) { byte >> 4 } else { byte & 15 }
        };
        let cased = digits.chars().enumerate().map(|(index, digit)| {
            if nibble(index) >= 8 { digit.to_ascii_uppercase() } else { digit }
        });
        "0x".chars().chain(cased).collect()
    }

    fn address_grammar(&self) -> AddressGrammar {
        AddressGrammar { length_min: 42, length_max: 42, pattern: "0x[0-9A-Fa-f]{40}" }
    }

    fn listed_address(&self, text: &str) -> Option<AddressBytes> {
        text.strip_prefix("0x").and_then(hex::decode_exact).map(AddressBytes::of_20)
    }

    fn address_rule(&self) -> &'static str {
        "must be an address in hexadecimal, which begins with 0x."
    }

    fn node(
        &self,
        client: &Client,
        endpoint: &OutboundEndpoint,
        limits: RequestLimits,
        timer: &Timer,
    ) -> Box<dyn ChainNode> {
        Box::new(RpcNode::new(client.clone(), endpoint.clone(), limits, timer.clone(), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_and_write() {
        // The examples of EIP-55.
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            let address = Evm.parse_address(text).unwrap();
            assert_eq!(Evm.write_address(&address), text);
            assert_eq!(Evm.parse_address(&text.to_lowercase()), Ok(address));
            let place = text.rfind(|digit: char| digit.is_ascii_alphabetic()).unwrap();
            let digit = char::from(text.as_bytes()[place]);
            let other = if digit.is_ascii_lowercase() {
                digit.to_ascii_uppercase()
            } else {
                digit.to_ascii_lowercase()
            };
            let wrong = format!("{}{other}{}", &text[..place], &text[place + 1..]);
            assert!(Evm.parse_address(&wrong).unwrap_err().0.contains("EIP-55"));
            assert_eq!(Evm.listed_address(&wrong), Some(address));
        }
        for text in [
            "0x",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xé",
            "",
        ] {
            assert!(Evm.parse_address(text).is_err(), "{text:?}");
        }
    }
}
