//! The few words and encodings of the chain that the harness needs: hashes, addresses as
//! hexadecimal, calls of contracts.

#![allow(dead_code, reason = "each scenario uses its own part of the harness")]

use std::fmt;

use hundi::chains::tron_address::TronAddress;
use serde_json::Value;

/// `Transfer(address,address,uint256)`.
pub const TRANSFER_TOPIC: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// `Deprecate(address)`.
pub const DEPRECATE_TOPIC: &str =
    "0xcc358699805e9a8b7f77b522628c7cb9abd07d9efb86b6fb616af1609036a99e";

/// The hash of a block or a transaction; `Display` writes it with `0x`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Reads 64 hexadecimal digits, with or without `0x`.
    pub fn parse(text: &str) -> Option<Hash> {
        bytes_of(text)?.try_into().ok().map(Hash)
    }
    /// As TRON writes it: without `0x`.
    pub fn plain(&self) -> String {
        hex(&self.0)
    }
    pub fn of(value: &Value) -> Hash {
        value.as_str().and_then(Hash::parse).unwrap_or_else(|| panic!("no hash: {value}"))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0x{}", self.plain())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

/// A quantity as JSON-RPC writes it.
pub fn quantity(number: u64) -> String {
    format!("0x{number:x}")
}

/// Reads a quantity; `None` where the value is none.
pub fn number_in(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

#[track_caller]
pub fn number_of(value: &Value) -> u64 {
    number_in(value).unwrap_or_else(|| panic!("no quantity: {value}"))
}

/// An address as JSON-RPC writes it: 20 bytes, no `41`.
pub fn evm(address: TronAddress) -> String {
    format!("0x{}", hex(address.as_evm()))
}

/// An address as it stands in a topic.
pub fn topic(address: TronAddress) -> String {
    format!("0x{}", word_of_address(address))
}

/// Reads an address from 20 bytes, or from the 32 of a topic.
#[track_caller]
pub fn address_of(value: &Value) -> TronAddress {
    let bytes = value.as_str().and_then(bytes_of).unwrap_or_default();
    let last: [u8; 20] = bytes
        .len()
        .checked_sub(20)
        .and_then(|from| bytes[from..].try_into().ok())
        .unwrap_or_else(|| panic!("no address: {value}"));
    TronAddress::from_evm(last)
}

/// An address that nobody has, the same for the same number.
pub fn nobody(number: u64) -> TronAddress {
    let mut bytes = [0xee; 20];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    TronAddress::from_evm(bytes)
}

fn word(number: u64) -> String {
    format!("{number:064x}")
}

fn word_of_address(address: TronAddress) -> String {
    format!("{:0>64}", hex(address.as_evm()))
}

/// An argument of a contract's call.
pub enum Argument<'a> {
    Number(u64),
    Address(TronAddress),
    Text(&'a str),
    Addresses(&'a [TronAddress]),
    Numbers(&'a [u64]),
}

/// Encodes arguments by the contract ABI: fixed ones in the head, the others behind it with their
/// offset in the head.
pub fn encode(arguments: &[Argument<'_>]) -> String {
    let (mut head, mut tail) = (String::new(), String::new());
    for argument in arguments {
        let behind = match argument {
            Argument::Number(number) => {
                head += &word(*number);
                continue;
            }
            Argument::Address(address) => {
                head += &word_of_address(*address);
                continue;
            }
            Argument::Text(text) => {
                let digits = hex(text.as_bytes());
                word(text.len() as u64)
                    + &digits
                    + &"0".repeat(digits.len().next_multiple_of(64) - digits.len())
            }
            Argument::Addresses(addresses) => {
                word(addresses.len() as u64)
                    + &addresses.iter().map(|address| word_of_address(*address)).collect::<String>()
            }
            Argument::Numbers(numbers) => {
                word(numbers.len() as u64)
                    + &numbers.iter().map(|number| word(*number)).collect::<String>()
            }
        };
        head += &word((arguments.len() * 32 + tail.len() / 2) as u64);
        tail += &behind;
    }
    head + &tail
}

/// A compiled contract of the fixture.
pub struct Contract(Value);

impl Contract {
    pub fn named(name: &str) -> Contract {
        let fixture: Value = serde_json::from_str(include_str!("contracts.json"))
            .expect("contracts.json, made by tests/chain/compile.sh");
        Contract(fixture["contracts"][name].clone())
    }
    /// The data of the transaction that creates it.
    pub fn creation(&self, arguments: &[Argument<'_>]) -> String {
        format!("0x{}{}", self.0["bytecode"].as_str().expect("bytecode"), encode(arguments))
    }
    /// The data of a call; `signature` is like `transfer(address,uint256)`.
    pub fn call(&self, signature: &str, arguments: &[Argument<'_>]) -> String {
        let selector = self.0["selectors"][signature]
            .as_str()
            .unwrap_or_else(|| panic!("no {signature} in the contract"));
        format!("0x{selector}{}", encode(arguments))
    }
}

#[test]
fn arguments_are_encoded_by_the_contract_abi() {
    // Worked by hand from the ABI's rules: an offset, a fixed word, and a list behind the head.
    let encoded = encode(&[Argument::Text("ab"), Argument::Number(7), Argument::Numbers(&[1, 2])]);
    let words: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|word| std::str::from_utf8(word).unwrap()).collect();
    let short: Vec<&str> = words.iter().map(|word| word.trim_start_matches('0')).collect();
    assert_eq!(short, ["60", "7", "a0", "2", &format!("6162{}", "0".repeat(60)), "2", "1", "2"]);
    assert_eq!(evm(address_of(&Value::from(topic(nobody(5))))), evm(nobody(5)));
    assert_eq!(Hash::parse("0xzz"), None);
}
