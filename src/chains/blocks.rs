//! Blocks, logs and receipts, as types that hold only what is well formed. Chains that are not of
//! Ethereum's kind have them too; only the content of a log differs, see [`LogContent`].

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::address_bytes::AddressBytes;
use crate::kernel::hex;

/// `keccak256("Transfer(address,address,uint256)")`.
pub const TRANSFER_TOPIC: Hash = Hash([
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa,
    0x95, 0x2b, 0xa7, 0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
]);

/// `keccak256("Deprecate(address)")`: the topic of the log in which USDT's contract announces the
/// contract that replaces it.
pub const DEPRECATE_TOPIC: Hash = Hash([
    0xcc, 0x35, 0x86, 0x99, 0x80, 0x5e, 0x9a, 0x8b, 0x7f, 0x77, 0xb5, 0x22, 0x62, 0x8c, 0x7c, 0xb9,
    0xab, 0xd0, 0x7d, 0x9e, 0xfb, 0x86, 0xb6, 0xfb, 0x61, 0x6a, 0xf1, 0x60, 0x90, 0x36, 0xa9, 0x9e,
]);

/// 32 bytes: the hash of a block or transaction, or a topic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Reads 64 hexadecimal digits, with or without `0x`.
    pub fn parse(text: &str) -> Option<Hash> {
        hex::decode_exact(text.strip_prefix("0x").unwrap_or(text)).map(Hash)
    }
    /// The address in the last 20 bytes, if the first 12 are zero as they are in a topic.
    pub fn as_address(&self) -> Option<AddressBytes> {
        let (padding, address) = self.0.split_at(12);
        padding.iter().all(|byte| *byte == 0).then(|| AddressBytes::new(address)).flatten()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0x{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Hash::parse(&text).ok_or_else(|| de::Error::custom("32 bytes in hexadecimal were expected"))
    }
}

/// A number that is written in hexadecimal, such as `0x1b4`: 0 to `i64::MAX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quantity(pub i64);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").filter(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let number = digits.and_then(|digits| i64::from_str_radix(digits, 16).ok());
        number
            .map(Quantity)
            .ok_or_else(|| de::Error::custom("a number in hexadecimal was expected"))
    }
}

/// Bytes in hexadecimal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Data(pub Vec<u8>);

impl Data {
    /// Reads a number of 256 bits. `None` if there are not 32 bytes, or if the number is
    /// `u128::MAX` or more.
    pub fn as_number(&self) -> Option<u128> {
        self.as_amount().filter(|amount| *amount < u128::MAX)
    }

    /// Reads a number of 256 bits. `u128::MAX` stands for itself and every larger number. `None` if
    /// there are not 32 bytes.
    pub fn as_amount(&self) -> Option<u128> {
        let (high, low) = <&[u8; 32]>::try_from(self.0.as_slice()).ok()?.split_at(16);
        let low = low.try_into().ok().map(u128::from_be_bytes);
        if high.iter().all(|byte| *byte == 0) { low } else { Some(u128::MAX) }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Data, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.strip_prefix("0x")
            .and_then(hex::decode)
            .map(Data)
            .ok_or_else(|| de::Error::custom("bytes in hexadecimal were expected"))
    }
}

/// An address of 20 bytes. The byte `41` that TRON's own interfaces put before them is left out.
#[derive(Clone, Copy)]
pub(super) struct AddressOf20(pub AddressBytes);

impl<'de> Deserialize<'de> for AddressOf20 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AddressOf20, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let bytes = hex::decode(text.strip_prefix("0x").unwrap_or(&text)).unwrap_or_default();
        let bytes = if bytes.len() == 21 && bytes[0] == 0x41 { &bytes[1..] } else { &bytes[..] };
        <[u8; 20]>::try_from(bytes)
            .map(|bytes| AddressOf20(AddressBytes::of_20(bytes)))
            .map_err(|_| de::Error::custom("20 bytes in hexadecimal were expected"))
    }
}

/// The header of a block.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub number: Quantity,
    pub hash: Hash,
    pub parent_hash: Hash,
    /// Unix seconds.
    pub timestamp: Quantity,
    /// Hashes of its transactions.
    pub transactions: Vec<Hash>,
}

/// A log of a contract.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "EvmLog")]
pub struct Log {
    pub contract: AddressBytes,
    pub content: LogContent,
    pub block_number: Quantity,
    pub block_hash: Hash,
    pub transaction_hash: Hash,
    pub log_index: Quantity,
    /// Whether the node says that the log's block was replaced.
    pub removed: bool,
}

/// The content of a log, in the form of its chain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LogContent {
    /// Of a contract on Ethereum's virtual machine, or TRON's.
    Evm { topics: Vec<Hash>, data: Data },
    /// Of a chain that reports token movements itself.
    Movement(TokenMovement),
}

/// A log as the Ethereum JSON-RPC writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EvmLog {
    address: AddressOf20,
    topics: Vec<Hash>,
    data: Data,
    block_number: Quantity,
    block_hash: Hash,
    transaction_hash: Hash,
    log_index: Quantity,
    #[serde(default)]
    removed: bool,
}

impl From<EvmLog> for Log {
    fn from(log: EvmLog) -> Log {
        Log {
            contract: log.address.0,
            content: LogContent::Evm { topics: log.topics, data: log.data },
            block_number: log.block_number,
            block_hash: log.block_hash,
            transaction_hash: log.transaction_hash,
            log_index: log.log_index,
            removed: log.removed,
        }
    }
}

/// What became of a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub transaction_hash: Hash,
    pub block_hash: Hash,
    pub block_number: Quantity,
    pub status: Quantity,
    pub logs: Vec<Log>,
}

impl Receipt {
    pub fn has_succeeded(&self) -> bool {
        self.status == Quantity(1)
    }
}

/// A token movement as a log tells it, in the token's smallest units.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TokenMovement {
    pub from: AddressBytes,
    pub to: AddressBytes,
    /// `u128::MAX` stands for itself and every larger number: anybody may make a token that moves
    /// amounts of any size.
    pub value: u128,
}

impl Log {
    /// Whether the log says that a token moved, even if [`Log::movement`] cannot read it.
    pub fn is_transfer(&self) -> bool {
        match &self.content {
            LogContent::Evm { topics, .. } => topics.first() == Some(&TRANSFER_TOPIC),
            LogContent::Movement(_) => true,
        }
    }

    /// Whether the log announces that another contract replaces the log's contract.
    pub fn is_deprecation(&self) -> bool {
        match &self.content {
            LogContent::Evm { topics, .. } => topics.first() == Some(&DEPRECATE_TOPIC),
            LogContent::Movement(_) => false,
        }
    }

    /// The movement that the log reports. `None` for any other log, and for a `Transfer` that does
    /// not follow the standard (ERC-20).
    pub fn movement(&self) -> Option<TokenMovement> {
        let (topics, data) = match &self.content {
            LogContent::Evm { topics, data } => (topics, data),
            LogContent::Movement(movement) => return Some(movement.clone()),
        };
        let [topic, from, to] = topics.as_slice() else { return None };
        if *topic != TRANSFER_TOPIC {
            return None;
        }
        Some(TokenMovement {
            from: from.as_address()?,
            to: to.as_address()?,
            value: data.as_amount()?,
        })
    }
}

/// Converts a value in a token's smallest units to millionths, the unit of the book. The rest below
/// a millionth is dropped. `None` for more than the book holds, and for `u128::MAX`, which may
/// stand for more.
pub fn millionths(value: u128, decimals: u8) -> Option<i64> {
    const DECIMALS_OF_BOOK: u32 = 6;
    if value == u128::MAX {
        return None;
    }
    let decimals = u32::from(decimals);
    let units = if decimals >= DECIMALS_OF_BOOK {
        value.checked_div(10_u128.checked_pow(decimals - DECIMALS_OF_BOOK)?)?
    } else {
        value.checked_mul(10_u128.pow(DECIMALS_OF_BOOK - decimals))?
    };
    i64::try_from(units).ok()
}

/// Made-up blocks for tests: block `n` has the hash `hash(n)` and the time `3 n`.
#[cfg(test)]
pub mod samples {
    use super::{Hash, Header, Quantity};

    pub fn hash(number: i64) -> Hash {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&number.to_be_bytes());
        Hash(bytes)
    }

    pub fn header(number: i64) -> Header {
        Header {
            number: Quantity(number),
            hash: hash(number),
            parent_hash: hash(number - 1),
            timestamp: Quantity(number * 3),
            transactions: vec![hash(number * 1000)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha3::{Digest, Keccak256};

    #[test]
    fn topics_are_the_hashes_of_their_signatures() {
        assert_eq!(
            TRANSFER_TOPIC.0[..],
            Keccak256::digest(b"Transfer(address,address,uint256)")[..]
        );
        assert_eq!(DEPRECATE_TOPIC.0[..], Keccak256::digest(b"Deprecate(address)")[..]);
    }

    fn log(text: &str) -> Log {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_malformed_log_or_movement_is_not_read() {
        let good = r#"{"address":"0xa614f803b6fd780986a42c78ec9c7f77e6ded13c","topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
            "0x0000000000000000000000001111111111111111111111111111111111111111","0x0000000000000000000000002222222222222222222222222222222222222222"],
            "data":"0x00000000000000000000000000000000000000000000000000000000000f4240","blockNumber":"0x10","blockHash":"0x0101010101010101010101010101010101010101010101010101010101010101",
            "transactionHash":"0x0202020202020202020202020202020202020202020202020202020202020202","logIndex":"0x3","stateRoot":"0x"}"#;
        let movement = log(good).movement().unwrap();
        assert_eq!(
            (movement.from, movement.to, movement.value),
            (AddressBytes::of_20([0x11; 20]), AddressBytes::of_20([0x22; 20]), 1_000_000)
        );
        assert!(
            log(&good.replace("0x0000000000000000000000001111", "0x0000000000000000000000011111"))
                .movement()
                .is_none(),
            "a topic with more than an address in it"
        );
        let huge = log(&good.replace(
            "\"0x0000000000000000000000000000000000000000000000",
            "\"0x0100000000000000000000000000000000000000000000",
        ));
        assert_eq!(
            huge.movement().map(|movement| movement.value),
            Some(u128::MAX),
            "beyond 128 bits"
        );
        assert!(log(&good.replace("000f4240", "000f42")).movement().is_none(), "31 bytes");
        for (from, to) in [
            ("\"0x10\"", "\"10\""),
            ("\"0x10\"", "null"),
            ("\"0x3\"", "\"0x\""),
            ("0xa614", "0xa6"),
            ("\"0x10\"", "\"0xffffffffffffffff\""),
        ] {
            assert!(serde_json::from_str::<Log>(&good.replace(from, to)).is_err(), "{to}");
        }
        assert_eq!(Data(vec![1; 32]).as_number(), None);
        assert_eq!(Hash::parse(&"0é".repeat(32)), None);
    }

    #[test]
    fn values_become_millionths() {
        for (value, decimals, units) in [
            (1_000_000, 6, Some(1_000_000)),
            (1, 6, Some(1)),
            (1_999_999_999_999, 18, Some(1)),
            (999_999_999_999, 18, Some(0)),
            (5, 0, Some(5_000_000)),
            (u128::MAX, 6, None),
            (u128::MAX - 1, 30, Some(340_282_366_920_938)),
            (u128::MAX, 30, None),
            (u128::MAX, 0, None),
        ] {
            assert_eq!(millionths(value, decimals), units, "{value} {decimals}");
        }
    }
}
