//! Deposit addresses from a watch-only account key (BIP-32): the keys `0/index` below it.
//!
//! The service hands out a fresh address for every transfer, but it must not be able to spend what
//! arrives there. So it knows only the extended public key of the account: [`AccountXpub::parse`]
//! refuses private keys, and no function here returns one.
//!
//! One key has the same 20 address bytes on TRON and on the chains of Ethereum's kind. An xpub does
//! not contain the path above its account: `m/44'/195'/0'` is usual on TRON and `m/44'/60'/0'` on
//! Ethereum. So the paths here begin below the account key.
//!
//! The account key is confidential all the same. Whoever has it can list every address. Whoever
//! also has a single private key below it can compute all the others. `Debug` shows only the
//! fingerprint.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use ripemd::Ripemd160;
use secp256k1::{PublicKey, Scalar, SecretKey};
use sha2::{Digest, Sha256, Sha512};
use sha3::Keccak256;

use super::generator_multiples::GENERATOR_MULTIPLES;
use super::tron_address::{
    BASE58_ALPHABET, CHECKSUM_LENGTH_BYTES, TronAddress, base58_checksum, base58_digit,
};

/// The last index that can be derived from a public key. Larger numbers stand for hardened keys,
/// which only a private key can derive (BIP-32).
pub const ADDRESS_INDEX_MAX: u32 = HARDENED_BIT - 1;

const HARDENED_BIT: u32 = 1 << 31;
/// [`AccountXpub::generate_for_test_mode`] makes keys with the path `m/44'/195'/0'`. Other account
/// keys may have another purpose and coin type, but have to be of account `0'` too.
const PURPOSE: u32 = 44;
const COIN_TYPE: u32 = 195;
const ACCOUNT: u32 = 0;
/// BIP-44's number for the keys whose addresses are given to payers.
const EXTERNAL_CHAIN: u32 = 0;
const ACCOUNT_DEPTH: u8 = 3;

const XPUB_VERSION: [u8; 4] = [0x04, 0x88, 0xb2, 0x1e];
/// Version, depth, parent fingerprint, child number, chain code, public key.
const XPUB_LENGTH_BYTES: usize = 4 + 1 + 4 + 4 + 32 + 33;
const XPUB_WITH_CHECKSUM_LENGTH_BYTES: usize = XPUB_LENGTH_BYTES + CHECKSUM_LENGTH_BYTES;
const XPUB_LENGTH_CHARS: usize = 111;

/// The BIP-32 path of the address with this index, below the account key.
///
/// Does not check whether the index can be derived; [`AccountXpub::address`] does.
pub fn derivation_path(index: u32) -> String {
    format!("{EXTERNAL_CHAIN}/{index}")
}

/// The extended public key of an account: enough to derive every deposit address, not enough to
/// spend.
///
/// `Display` writes the xpub, which belongs in no log; `Debug` is safe to log.
#[derive(Clone)]
pub struct AccountXpub {
    node: PublicNode,
    parent_fingerprint: [u8; 4],
    external_chain: ExternalChain,
}

/// Why an account key cannot be used or an address cannot be derived from it. The message tells the
/// operator what to do. It never repeats the given text, which may be a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountXpubError {
    #[error(
        "this is an extended private key, which this service must never hold; treat it as exposed \
         and configure the public key (xpub) of the account instead"
    )]
    PrivateKey,

    #[error(
        "an account key has {XPUB_LENGTH_CHARS} characters and this has {found_chars}; \
         copy the whole xpub of the account, without blanks"
    )]
    Length { found_chars: usize },

    /// `position` counts from 1.
    #[error(
        "character {position} cannot be part of an account key, which has digits and Latin letters \
         except 0, O, I and l; copy the xpub again"
    )]
    Characters { position: usize },

    #[error(
        "the checksum of the account key does not match, so a character is wrong or in the wrong \
         case; copy the xpub again"
    )]
    Checksum,

    #[error(
        "this is not an xpub (its version bytes are {found:#010x}); export the account key \
         in the format that begins with xpub"
    )]
    Version { found: u32 },

    #[error(
        "this xpub is {found} levels below the master key, but an account is {ACCOUNT_DEPTH} \
         levels below; export the key of account 0', which is m/44'/195'/0' on TRON and \
         m/44'/60'/0' on Ethereum"
    )]
    Depth { found: u8 },

    #[error(
        "this xpub belongs to the account {found}; export the key of account 0', which is \
         m/44'/195'/0' on TRON and m/44'/60'/0' on Ethereum"
    )]
    Account { found: ChildNumber },

    #[error(
        "the checksum of this xpub matches but there is no public key in it, so it was made by \
         faulty software; export it again with another wallet"
    )]
    Point,

    #[error(
        "the address index {index} is above {ADDRESS_INDEX_MAX}; hardened addresses cannot be \
         derived from a public key"
    )]
    IndexHardened { index: u32 },

    /// Expected once in 2^127 indices.
    #[error("there is no address with the index {index} in this account; take the next index")]
    IndexUnusable { index: u32 },
}

/// The number of a key below its parent. Written as in paths: `0'` if hardened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildNumber(u32);

impl ChildNumber {
    const fn hardened(number: u32) -> ChildNumber {
        ChildNumber(number | HARDENED_BIT)
    }
}

impl fmt::Display for ChildNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.0 & HARDENED_BIT == 0 { "" } else { "'" };
        write!(formatter, "{}{mark}", self.0 & !HARDENED_BIT)
    }
}

impl AccountXpub {
    /// Reads the xpub of the account.
    ///
    /// Accepts only a key of account `0'` three levels below the master key. An xpub does not name
    /// the two levels above it, such as `44'/195'`, so they are not checked. A text that looks like
    /// a private key is refused before it is decoded. The first call in a process takes about ten
    /// milliseconds longer, to make the table of `generator_multiples`.
    pub fn parse(xpub: &str) -> Result<AccountXpub, AccountXpubError> {
        if matches!(xpub.trim_start().as_bytes(), [_, b'p', b'r', b'v', ..]) {
            return Err(AccountXpubError::PrivateKey);
        }
        let with_checksum = decode(xpub)?;
        let (fields, checksum) = with_checksum.split_at(XPUB_LENGTH_BYTES);
        if checksum != base58_checksum(fields) {
            return Err(AccountXpubError::Checksum);
        }

        let mut fields = KeyReader(fields);
        let version: [u8; 4] = fields.take();
        let [depth] = fields.take();
        let parent_fingerprint = fields.take();
        let child_number = ChildNumber(u32::from_be_bytes(fields.take()));
        let chain_code = fields.take();
        let point: [u8; 33] = fields.take();

        // A serialized private key begins with a zero byte, so it is refused whatever the version
        // says.
        if point[0] == 0 {
            return Err(AccountXpubError::PrivateKey);
        }
        if version != XPUB_VERSION {
            return Err(AccountXpubError::Version { found: u32::from_be_bytes(version) });
        }
        if depth != ACCOUNT_DEPTH {
            return Err(AccountXpubError::Depth { found: depth });
        }
        if child_number != ChildNumber::hardened(ACCOUNT) {
            return Err(AccountXpubError::Account { found: child_number });
        }
        let node = PublicNode {
            chain_code,
            point: PublicKey::from_byte_array_compressed(point)
                .map_err(|_| AccountXpubError::Point)?,
        };
        AccountXpub::new(node, parent_fingerprint)
    }

    /// The deposit address with this index: the key `0/index` below the account.
    ///
    /// The same index always gives the same address. `index` goes up to [`ADDRESS_INDEX_MAX`].
    pub fn address(&self, index: u32) -> Result<TronAddress, AccountXpubError> {
        let point = self.external_chain.point_at(index)?;
        let uncompressed = point.serialize_uncompressed();
        let hash = Keccak256::digest(&uncompressed[1..]);
        let mut evm = [0; 20];
        evm.copy_from_slice(&hash[12..]);
        Ok(TronAddress::from_evm(evm))
    }

    /// The BIP-32 fingerprint. It tells account keys apart, and no address can be derived from it.
    pub fn fingerprint(&self) -> u32 {
        u32::from_be_bytes(fingerprint_of(&self.node.point))
    }

    /// An account key made from seed bytes, for tests and for test mode.
    ///
    /// The same seed gives the same account in any wallet that takes it as a BIP-39 seed. The
    /// private keys on the way are dropped but not wiped from memory, so never use a seed that
    /// protects money.
    pub fn generate_for_test_mode(seed: &[u8; 64]) -> AccountXpub {
        let mut seed = *seed;
        loop {
            if let Some(key) = AccountXpub::from_seed(&seed) {
                return key;
            }
            // One seed in 2^125 has no account, and none is known. Such a seed is replaced by its
            // hash.
            seed = Sha512::digest(seed).into();
        }
    }

    fn from_seed(seed: &[u8; 64]) -> Option<AccountXpub> {
        let (secret, mut chain_code) = split(hmac_sha512(b"Bitcoin seed").chain_update(seed));
        let mut secret = SecretKey::from_secret_bytes(secret).ok()?;
        let mut parent_fingerprint = [0; 4];
        for number in [PURPOSE, COIN_TYPE, ACCOUNT] {
            parent_fingerprint = fingerprint_of(&secret.public_key());
            let (tweak, child_chain_code) = split(
                hmac_sha512(&chain_code)
                    .chain_update([0])
                    .chain_update(secret.as_secret_bytes())
                    .chain_update(ChildNumber::hardened(number).0.to_be_bytes()),
            );
            secret = secret.add_tweak(&Scalar::from_be_bytes(tweak).ok()?).ok()?;
            chain_code = child_chain_code;
        }
        let node = PublicNode { chain_code, point: secret.public_key() };
        AccountXpub::new(node, parent_fingerprint).ok()
    }

    fn new(node: PublicNode, parent_fingerprint: [u8; 4]) -> Result<AccountXpub, AccountXpubError> {
        let external_chain = ExternalChain::new(&node.child(EXTERNAL_CHAIN)?);
        Ok(AccountXpub { node, parent_fingerprint, external_chain })
    }
}

impl fmt::Display for AccountXpub {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.node.xpub(
            ACCOUNT_DEPTH,
            self.parent_fingerprint,
            ChildNumber::hardened(ACCOUNT),
        ))
    }
}

impl fmt::Debug for AccountXpub {
    /// Shows the BIP-32 fingerprint, which wallets show for the account too.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AccountXpub(fingerprint {:08x})", self.fingerprint())
    }
}

/// A public key that has children: a node of BIP-32's tree of keys, which an extended public key
/// writes down.
#[derive(Clone)]
struct PublicNode {
    chain_code: [u8; 32],
    point: PublicKey,
}

impl PublicNode {
    fn child(&self, index: u32) -> Result<PublicNode, AccountXpubError> {
        let mac = hmac_sha512(&self.chain_code)
            .chain_update(self.point.serialize())
            .chain_update(index.to_be_bytes());
        let (tweak, chain_code) = split(mac);
        let point = GENERATOR_MULTIPLES
            .add_to(&self.point, &tweak)
            .ok_or(AccountXpubError::IndexUnusable { index })?;
        Ok(PublicNode { chain_code, point })
    }

    fn xpub(&self, depth: u8, parent_fingerprint: [u8; 4], number: ChildNumber) -> String {
        let mut bytes = Vec::with_capacity(XPUB_WITH_CHECKSUM_LENGTH_BYTES);
        bytes.extend(XPUB_VERSION);
        bytes.push(depth);
        bytes.extend(parent_fingerprint);
        bytes.extend(number.0.to_be_bytes());
        bytes.extend(self.chain_code);
        bytes.extend(self.point.serialize());
        let checksum = base58_checksum(&bytes);
        bytes.extend(checksum);
        encode(bytes)
    }
}

/// The parent of all addresses. BIP-44 calls it the external chain, which is no blockchain.
/// Everything that does not depend on an address's index is precomputed.
#[derive(Clone)]
struct ExternalChain {
    point: PublicKey,
    /// Keyed with the chain code and fed with the public key; only the index is missing.
    mac: Hmac<Sha512>,
}

impl ExternalChain {
    fn new(node: &PublicNode) -> ExternalChain {
        ExternalChain {
            point: node.point,
            mac: hmac_sha512(&node.chain_code).chain_update(node.point.serialize()),
        }
    }

    fn point_at(&self, index: u32) -> Result<PublicKey, AccountXpubError> {
        if index > ADDRESS_INDEX_MAX {
            return Err(AccountXpubError::IndexHardened { index });
        }
        let (tweak, _) = split(self.mac.clone().chain_update(index.to_be_bytes()));
        GENERATOR_MULTIPLES
            .add_to(&self.point, &tweak)
            .ok_or(AccountXpubError::IndexUnusable { index })
    }
}

/// Takes the fields of a serialized key off its front, one after the other.
struct KeyReader<'a>(&'a [u8]);

impl KeyReader<'_> {
    /// Panics past the end; the caller knows the layout.
    fn take<const LENGTH_BYTES: usize>(&mut self) -> [u8; LENGTH_BYTES] {
        let (field, rest) = self.0.split_first_chunk().expect("the fields add up to the length");
        self.0 = rest;
        *field
    }
}

/// The first four bytes of the hash by which BIP-32 names a key.
fn fingerprint_of(point: &PublicKey) -> [u8; 4] {
    let hash = Ripemd160::digest(Sha256::digest(point.serialize()));
    [hash[0], hash[1], hash[2], hash[3]]
}

fn hmac_sha512(key: &[u8]) -> Hmac<Sha512> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// The two halves of the result: what to add to the parent, and the chain code.
fn split(mac: Hmac<Sha512>) -> ([u8; 32], [u8; 32]) {
    let bytes = mac.finalize().into_bytes();
    let mut halves = [[0; 32]; 2];
    halves[0].copy_from_slice(&bytes[..32]);
    halves[1].copy_from_slice(&bytes[32..]);
    (halves[0], halves[1])
}

/// The bytes of a serialized key, checksum included, that 111 base58 characters spell.
fn decode(text: &str) -> Result<[u8; XPUB_WITH_CHECKSUM_LENGTH_BYTES], AccountXpubError> {
    let found_chars = text.chars().count();
    if found_chars != XPUB_LENGTH_CHARS {
        return Err(AccountXpubError::Length { found_chars });
    }
    let mut bytes = [0; XPUB_WITH_CHECKSUM_LENGTH_BYTES];
    for (offset, character) in text.chars().enumerate() {
        let digit = u8::try_from(character)
            .ok()
            .and_then(base58_digit)
            .ok_or(AccountXpubError::Characters { position: offset + 1 })?;
        // 58^111 is less than 2^656, so nothing is carried out of the first byte.
        let mut carry = u32::from(digit);
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
    }
    Ok(bytes)
}

/// Base58 of a number whose first byte is not zero.
fn encode(mut number: Vec<u8>) -> String {
    let mut text = String::with_capacity(XPUB_LENGTH_CHARS);
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 58) as u8;
            rest = value % 58;
        }
        text.insert(0, char::from(BASE58_ALPHABET[rest as usize]));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The order of the curve minus one.
    const FACTOR_MAX: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xfe, 0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36,
        0x41, 0x40,
    ];

    fn vectors() -> Value {
        serde_json::from_str(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/vectors/tron_addresses.json"
        )))
        .unwrap()
    }

    fn text_of<'a>(vectors: &'a Value, name: &str) -> &'a str {
        vectors[name].as_str().unwrap()
    }

    fn bytes_from_hex(hex: &str) -> Vec<u8> {
        let digits = hex.strip_prefix("0x").unwrap_or(hex);
        (0..digits.len() / 2)
            .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
            .collect()
    }

    fn account_key() -> AccountXpub {
        AccountXpub::parse(text_of(&vectors(), "account_xpub")).unwrap()
    }

    /// The xpub of the vectors with some of its bytes replaced and a checksum that matches again.
    fn xpub_with(offset: usize, replacement: &[u8]) -> String {
        let mut bytes = decode(text_of(&vectors(), "account_xpub")).unwrap();
        bytes[offset..offset + replacement.len()].copy_from_slice(replacement);
        let checksum = base58_checksum(&bytes[..XPUB_LENGTH_BYTES]);
        bytes[XPUB_LENGTH_BYTES..].copy_from_slice(&checksum);
        encode(bytes.to_vec())
    }

    fn refusal(text: &str) -> AccountXpubError {
        AccountXpub::parse(text).unwrap_err()
    }

    fn point_times(factor: [u8; 32]) -> PublicKey {
        SecretKey::from_secret_bytes(factor).unwrap().public_key()
    }

    /// Factors of every shape, the same in every run.
    fn factors_spread() -> Vec<[u8; 32]> {
        let single_bits = (0..256).map(|bit| {
            let mut factor = [0; 32];
            factor[31 - bit / 8] = 1 << (bit % 8);
            factor
        });
        let hashes = (0..300_u32).map(|i| Sha256::digest(i.to_be_bytes()).into());
        single_bits.chain(hashes).chain([FACTOR_MAX]).collect()
    }

    #[test]
    fn vectors_are_derived() {
        let vectors = vectors();
        let key = account_key();
        let entries = vectors["addresses"].as_array().unwrap();
        let indices: Vec<u32> = entries
            .iter()
            .map(|entry| entry["index"].as_u64().unwrap().try_into().unwrap())
            .collect();
        assert_eq!(indices, [0, 1, 2, 3, 4, 1000, ADDRESS_INDEX_MAX]);
        for (entry, index) in entries.iter().zip(indices) {
            let point = key.external_chain.point_at(index).unwrap();
            assert_eq!(
                point.serialize()[..],
                bytes_from_hex(text_of(entry, "public_key_compressed"))
            );
            assert_eq!(
                point.serialize_uncompressed()[..],
                bytes_from_hex(text_of(entry, "public_key_uncompressed"))
            );
            let address = key.address(index).unwrap();
            assert_eq!(address.to_string(), text_of(entry, "address_base58check"));
            assert_eq!(address.as_evm()[..], bytes_from_hex(text_of(entry, "address_evm20")));
            assert_eq!(format!("m/44'/195'/0'/{}", derivation_path(index)), text_of(entry, "path"));
        }
    }

    #[test]
    fn vectors_of_invalid_indices_are_refused() {
        let vectors = vectors();
        let key = account_key();
        let entries = vectors["invalid_indexes"].as_array().unwrap();
        assert_eq!(entries.len(), 1);
        for entry in entries {
            let index = entry["index"].as_u64().unwrap().try_into().unwrap();
            assert_eq!(key.address(index), Err(AccountXpubError::IndexHardened { index }));
        }
        let index = u32::MAX;
        assert_eq!(key.address(index), Err(AccountXpubError::IndexHardened { index }));
    }

    #[test]
    fn account_xpub_is_read_and_written() {
        let vectors = vectors();
        let xpub = text_of(&vectors, "account_xpub");
        assert_eq!(account_key().to_string(), xpub);
        assert_eq!(account_key().clone().to_string(), xpub);
    }

    #[test]
    fn external_chain_xpub_is_derived() {
        let node = account_key().node;
        let external_chain = node.child(EXTERNAL_CHAIN).unwrap();
        assert_eq!(
            external_chain.xpub(
                ACCOUNT_DEPTH + 1,
                fingerprint_of(&node.point),
                ChildNumber(EXTERNAL_CHAIN)
            ),
            text_of(&vectors(), "external_chain_xpub")
        );
    }

    #[test]
    fn generated_key_is_the_one_of_the_seed() {
        let vectors = vectors();
        let seed: [u8; 64] =
            bytes_from_hex(text_of(&vectors, "bip39_seed_hex")).try_into().unwrap();
        let key = AccountXpub::generate_for_test_mode(&seed);
        assert_eq!(key.to_string(), text_of(&vectors, "account_xpub"));
        assert_eq!(key.address(7), account_key().address(7));

        let other = AccountXpub::generate_for_test_mode(&[7; 64]);
        assert_ne!(other.to_string(), key.to_string());
        assert_ne!(other.address(0), key.address(0));
        let read_back = AccountXpub::parse(&other.to_string()).unwrap();
        assert_eq!(read_back.address(0), other.address(0));
    }

    #[test]
    fn private_keys_are_refused() {
        let mut private_fields = vec![0x04, 0x88, 0xad, 0xe4, ACCOUNT_DEPTH];
        private_fields.resize(XPUB_LENGTH_BYTES, 0);
        private_fields[XPUB_LENGTH_BYTES - 1] = 1;
        private_fields.extend(base58_checksum(&private_fields.clone()));
        let xprv = encode(private_fields);
        assert_eq!((&xprv[..4], xprv.len()), ("xprv", XPUB_LENGTH_CHARS));
        for text in [&xprv, &format!(" {xprv}"), &xprv[..50], "tprv", "zprv with a typing mistake"]
        {
            assert_eq!(refusal(text), AccountXpubError::PrivateKey, "{text}");
        }
        let private_body = xpub_with(45, &[0; 33]);
        assert!(private_body.starts_with("xpub"));
        assert_eq!(refusal(&private_body), AccountXpubError::PrivateKey);
        let private_version = xpub_with(0, &[0x04, 0x88, 0xad, 0xe4]);
        assert_eq!(refusal(&private_version), AccountXpubError::PrivateKey);
    }

    #[test]
    fn damaged_text_is_refused() {
        let vectors = vectors();
        let xpub = text_of(&vectors, "account_xpub");
        assert_eq!(refusal(""), AccountXpubError::Length { found_chars: 0 });
        assert_eq!(refusal(&xpub[..110]), AccountXpubError::Length { found_chars: 110 });
        assert_eq!(refusal(&format!("{xpub} ")), AccountXpubError::Length { found_chars: 112 });
        assert_eq!(
            refusal(&xpub.replacen("xpub6D", "xpub60", 1)),
            AccountXpubError::Characters { position: 6 }
        );
        assert_eq!(
            refusal(&xpub.replacen('x', "х", 1)),
            AccountXpubError::Characters { position: 1 }
        );
        assert_eq!(refusal(&xpub.to_lowercase().replace('l', "m")), AccountXpubError::Checksum);
        assert_eq!(refusal(&"z".repeat(111)), AccountXpubError::Checksum);
        assert_eq!(refusal(&"1".repeat(111)), AccountXpubError::Checksum);
        for offset in 4..xpub.len() {
            let mut damaged = xpub.to_string();
            let other = if &xpub[offset..=offset] == "a" { "b" } else { "a" };
            damaged.replace_range(offset..=offset, other);
            assert_eq!(refusal(&damaged), AccountXpubError::Checksum);
        }
    }

    #[test]
    fn other_keys_than_the_account_are_refused() {
        let vectors = vectors();
        assert_eq!(
            refusal(text_of(&vectors, "external_chain_xpub")),
            AccountXpubError::Depth { found: 4 }
        );
        for found in (0..=u8::MAX).filter(|depth| *depth != ACCOUNT_DEPTH) {
            assert_eq!(refusal(&xpub_with(4, &[found])), AccountXpubError::Depth { found });
        }
        for (number, written) in [
            (HARDENED_BIT + 1, "account 1';"),
            (0, "account 0;"),
            (u32::MAX, "account 2147483647';"),
        ] {
            let fault = refusal(&xpub_with(9, &number.to_be_bytes()));
            let found = ChildNumber(number);
            assert_eq!(fault, AccountXpubError::Account { found });
            assert!(fault.to_string().contains(written), "{fault}");
        }
        let test_network = 0x0435_87cf_u32;
        let fault = refusal(&xpub_with(0, &test_network.to_be_bytes()));
        let found = test_network;
        assert_eq!(fault, AccountXpubError::Version { found });
        assert!(fault.to_string().contains("0x043587cf"), "{fault}");
    }

    #[test]
    fn bytes_that_are_no_point_are_refused() {
        for prefix in [1, 4, 6, 0xff] {
            assert_eq!(refusal(&xpub_with(45, &[prefix])), AccountXpubError::Point);
        }
        // No point of the curve has the coordinate 5, and none lies beyond the field.
        let mut coordinate = [0; 32];
        coordinate[31] = 5;
        for coordinate in [coordinate, [0xff; 32]] {
            assert_eq!(refusal(&xpub_with(46, &coordinate)), AccountXpubError::Point);
        }
    }

    #[test]
    fn debug_shows_only_the_fingerprint() {
        let key = account_key();
        let shown = format!("{key:?}");
        // The same four bytes stand in the xpub of the external chain as its parent's.
        let external_chain = decode(text_of(&vectors(), "external_chain_xpub")).unwrap();
        let fingerprint: [u8; 4] = external_chain[5..9].try_into().unwrap();
        let fingerprint = u32::from_be_bytes(fingerprint);
        assert_eq!(shown, format!("AccountXpub(fingerprint {fingerprint:08x})"));
    }

    #[test]
    fn a_fault_that_names_trons_path_names_ethereums_too() {
        let hardened = ChildNumber::hardened(1);
        for fault in [
            AccountXpubError::PrivateKey,
            AccountXpubError::Length { found_chars: 1 },
            AccountXpubError::Version { found: 1 },
            AccountXpubError::Depth { found: 4 },
            AccountXpubError::Account { found: hardened },
        ] {
            let told = fault.to_string();
            assert!(!told.contains("195'") || told.contains("60'"), "{told}");
        }
    }

    #[test]
    fn faults_never_repeat_the_text() {
        let vectors = vectors();
        let xpub = text_of(&vectors, "account_xpub");
        for text in [&xpub[..110], &xpub.replace('a', "b"), "xprvSECRET"] {
            let fault = refusal(text);
            assert!(!fault.to_string().contains(&text[4..]));
            assert!(!format!("{fault:?}").contains(&text[4..]));
        }
    }

    #[test]
    fn table_agrees_with_the_general_addition() {
        let point = account_key().node.point;
        for factor in factors_spread() {
            let expected = point.add_exp_tweak(&Scalar::from_be_bytes(factor).unwrap());
            assert_eq!(GENERATOR_MULTIPLES.add_to(&point, &factor), expected.ok(), "{factor:02x?}");
        }
    }

    #[test]
    fn table_adds_rightly_at_the_edges() {
        let mut one = [0; 32];
        one[31] = 1;
        let mut order = FACTOR_MAX;
        order[31] += 1;
        let generator = point_times(one);
        let add = |point: &PublicKey, factor| GENERATOR_MULTIPLES.add_to(point, factor);
        assert_eq!(add(&generator, &[0; 32]), Some(generator));
        // One and the greatest factor add up to the order: no public key.
        assert_eq!(add(&generator, &FACTOR_MAX), None);
        assert_eq!(add(&point_times(FACTOR_MAX), &one), None);
        assert_eq!(add(&generator, &order), None);
        assert_eq!(add(&generator, &[0xff; 32]), None);
        // Doubling, and sums that vanish on the way to the result.
        assert_eq!(add(&generator, &one), generator.add_exp_tweak(&Scalar::ONE).ok());
        let minus_one = point_times(FACTOR_MAX);
        let mut sixty_five = [0; 32];
        sixty_five[31] = 65;
        let mut sixty_four = [0; 32];
        sixty_four[31] = 64;
        assert_eq!(add(&minus_one, &sixty_five), Some(point_times(sixty_four)));
    }

    #[test]
    fn addresses_of_neighbours_differ() {
        let key = account_key();
        let addresses: std::collections::HashSet<TronAddress> =
            (0..500).map(|index| key.address(index).unwrap()).collect();
        assert_eq!(addresses.len(), 500);
    }
}
