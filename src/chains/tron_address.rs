//! A TRON address as a value: read from and written as base58check `T…`, kept as 20 bytes.
//!
//! [`TronAddress::parse`] refuses anything but the one canonical spelling, whose checksum catches
//! typing mistakes. Logs and contract calls carry the same 20 bytes without prefix and checksum;
//! for those there are [`TronAddress::from_evm`] and [`TronAddress::as_evm`].

use std::fmt;

use sha2::{Digest, Sha256};

use super::address_bytes::AddressBytes;

/// Every TRON address is this long when written.
pub const ADDRESS_LENGTH_CHARS: usize = 34;

/// The byte in front of the 20; it makes the text begin with `T`.
const ADDRESS_PREFIX: u8 = 0x41;

/// Prefix, 20 bytes, checksum.
const ADDRESS_DECODED_LENGTH_BYTES: usize = 25;

pub(super) const CHECKSUM_LENGTH_BYTES: usize = 4;

/// The base58 digits in rising order: no `0`, `O`, `I` and `l`, which are mistaken for one another.
pub(super) const BASE58_ALPHABET: &[u8; 58] =
    b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Marks the bytes that are not base58 digits in [`BASE58_DIGIT_OF_BYTE`].
const BASE58_NO_DIGIT: u8 = 0xff;

const BASE58_DIGIT_OF_BYTE: [u8; 256] = {
    let mut digits = [BASE58_NO_DIGIT; 256];
    let mut digit = 0;
    while digit < BASE58_ALPHABET.len() {
        digits[BASE58_ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

/// The value of one base58 character, or `None` when base58 does not use that character.
pub(super) fn base58_digit(character: u8) -> Option<u8> {
    let digit = BASE58_DIGIT_OF_BYTE[usize::from(character)];
    (digit != BASE58_NO_DIGIT).then_some(digit)
}

/// The four bytes that base58check puts behind `payload`.
pub(super) fn base58_checksum(payload: &[u8]) -> [u8; CHECKSUM_LENGTH_BYTES] {
    let digest = Sha256::digest(Sha256::digest(payload));
    [digest[0], digest[1], digest[2], digest[3]]
}

/// The address of a TRON account or contract.
///
/// `Display` writes it as base58check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TronAddress([u8; 20]);

/// Why a text is not a TRON address. The message tells a person what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TronAddressError {
    #[error(
        "a TRON address has {ADDRESS_LENGTH_CHARS} characters and this has {found_chars}; \
         copy the whole address, beginning with T, without blanks"
    )]
    Length { found_chars: usize },

    /// `position` counts from 1.
    #[error(
        "character {position} ({found:?}) cannot be part of a TRON address, which has digits and \
         Latin letters except 0, O, I and l; copy the address again"
    )]
    Characters { position: usize, found: char },

    #[error(
        "the checksum of this address does not match, so a character is wrong or in the wrong \
         case; copy the address again and keep capital and small letters"
    )]
    Checksum,

    #[error(
        "this is an address of another network (prefix {found:#04x}); \
         give a TRON address, which begins with T"
    )]
    Prefix { found: u8 },
}

impl TronAddress {
    /// Reads base58check text. The case of letters matters and nothing is trimmed.
    ///
    /// `Err` is the first fault, in the order length, characters, checksum, prefix. The text may
    /// have any length.
    pub fn parse(text: &str) -> Result<TronAddress, TronAddressError> {
        let characters: &[u8; ADDRESS_LENGTH_CHARS] = match text.as_bytes().try_into() {
            Ok(characters) if text.is_ascii() => characters,
            _ => return Err(fault_of_odd_text(text)),
        };
        let decoded = decode(characters)?;
        let (payload, checksum) =
            decoded.split_at(ADDRESS_DECODED_LENGTH_BYTES - CHECKSUM_LENGTH_BYTES);
        if checksum != base58_checksum(payload) {
            return Err(TronAddressError::Checksum);
        }
        if payload[0] != ADDRESS_PREFIX {
            return Err(TronAddressError::Prefix { found: payload[0] });
        }
        let mut evm = [0; 20];
        evm.copy_from_slice(&payload[1..]);
        Ok(TronAddress(evm))
    }

    /// The address with these 20 bytes, as logs and contract calls carry it.
    pub const fn from_evm(evm: [u8; 20]) -> TronAddress {
        TronAddress(evm)
    }

    /// The 20 bytes without prefix and checksum.
    pub const fn as_evm(&self) -> &[u8; 20] {
        &self.0
    }

    /// The 20 bytes as [`AddressBytes`], the type that all kinds of chains share.
    pub const fn bytes(&self) -> AddressBytes {
        AddressBytes::of_20(self.0)
    }

    /// The base58check text as ASCII.
    fn encode(&self) -> [u8; ADDRESS_LENGTH_CHARS] {
        let mut payload = [ADDRESS_PREFIX; 21];
        payload[1..].copy_from_slice(&self.0);
        let checksum = base58_checksum(&payload);

        let mut sums = GROUPS_OF_PREFIX;
        sums[GROUP_COUNT - 1] += u64::from(u32::from_be_bytes(checksum));
        let (limbs, _) = self.0.as_chunks::<4>();
        for (limb, weights) in limbs.iter().zip(&GROUPS_OF_ADDRESS_LIMB) {
            let limb = u64::from(u32::from_be_bytes(*limb));
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += limb * weight;
            }
        }
        for group in (1..GROUP_COUNT).rev() {
            sums[group - 1] += sums[group] / GROUP_RADIX;
            sums[group] %= GROUP_RADIX;
        }

        let mut text = [0; GROUP_COUNT * GROUP_DIGITS];
        for (characters, sum) in text.chunks_exact_mut(GROUP_DIGITS).zip(sums) {
            let mut rest = sum as u32;
            for character in characters.iter_mut().rev() {
                *character = BASE58_ALPHABET[(rest % 58) as usize];
                rest /= 58;
            }
        }
        // 25 bytes that begin with 0x41 need 34 digits, so the first of the 35 is always zero.
        let mut address = [0; ADDRESS_LENGTH_CHARS];
        address.copy_from_slice(&text[1..]);
        address
    }
}

impl fmt::Display for TronAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.encode();
        formatter.pad(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for TronAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TronAddress({self})")
    }
}

// Writing works with groups of five base58 digits. The decoded bytes are one big number, cut into
// 32-bit limbs. What a limb contributes to each group is known beforehand. So the text takes one
// pass of independent multiplications and one of carries, instead of a long division for every
// digit.

const GROUP_DIGITS: usize = 5;
const GROUP_COUNT: usize = 7;
const GROUP_RADIX: u64 = 58_u64.pow(GROUP_DIGITS as u32);

/// The number 2^(32 * `limb`) in groups, highest first.
const fn groups_of_limb(limb: usize) -> [u64; GROUP_COUNT] {
    let mut groups = [0; GROUP_COUNT];
    groups[GROUP_COUNT - 1] = 1;
    let mut shift = 0;
    while shift < limb {
        let mut carry = 0;
        let mut group = GROUP_COUNT;
        while group > 0 {
            group -= 1;
            let value = (groups[group] << 32) + carry;
            groups[group] = value % GROUP_RADIX;
            carry = value / GROUP_RADIX;
        }
        shift += 1;
    }
    groups
}

/// What a 1 in each of the five limbs of the 20 bytes contributes, highest limb first. The checksum
/// is the limb below them.
const GROUPS_OF_ADDRESS_LIMB: [[u64; GROUP_COUNT]; 5] =
    [groups_of_limb(5), groups_of_limb(4), groups_of_limb(3), groups_of_limb(2), groups_of_limb(1)];

/// What the prefix byte contributes. It is the limb above the 20 bytes, and the same in every
/// address.
const GROUPS_OF_PREFIX: [u64; GROUP_COUNT] = {
    let mut groups = groups_of_limb(6);
    let mut group = 0;
    while group < GROUP_COUNT {
        groups[group] *= ADDRESS_PREFIX as u64;
        group += 1;
    }
    groups
};

// A sum takes the prefix, five full limbs, the checksum and a carry, and must not overflow.
const _: () = assert!(
    (ADDRESS_PREFIX as u128 + 5 * u32::MAX as u128 + 1) * GROUP_RADIX as u128 + (1 << 36)
        < u64::MAX as u128
);

/// The number that 34 base58 digits spell, most significant byte first.
fn decode(
    characters: &[u8; ADDRESS_LENGTH_CHARS],
) -> Result<[u8; ADDRESS_DECODED_LENGTH_BYTES], TronAddressError> {
    // 58^34 is less than 2^200, so four 64-bit limbs (lowest first) and 25 bytes are always enough.
    let mut limbs = [0_u64; 4];
    // Ten digits fit into one limb, which saves nine of ten passes over the limbs.
    for (chunk_index, chunk) in characters.chunks(10).enumerate() {
        let mut value = 0;
        let mut scale = 1_u64;
        for (offset, &character) in chunk.iter().enumerate() {
            let digit = base58_digit(character).ok_or(TronAddressError::Characters {
                position: chunk_index * 10 + offset + 1,
                found: char::from(character),
            })?;
            value = value * 58 + u64::from(digit);
            scale *= 58;
        }
        let mut carry = value;
        for limb in &mut limbs {
            let product = u128::from(*limb) * u128::from(scale) + u128::from(carry);
            *limb = product as u64;
            carry = (product >> 64) as u64;
        }
    }
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.chunks_exact_mut(8).zip(limbs.iter().rev()) {
        chunk.copy_from_slice(&limb.to_be_bytes());
    }
    let mut decoded = [0; ADDRESS_DECODED_LENGTH_BYTES];
    decoded.copy_from_slice(&bytes[32 - ADDRESS_DECODED_LENGTH_BYTES..]);
    Ok(decoded)
}

/// The fault of a text that is not 34 ASCII characters.
#[cold]
fn fault_of_odd_text(text: &str) -> TronAddressError {
    let found_chars = text.chars().count();
    if found_chars != ADDRESS_LENGTH_CHARS {
        return TronAddressError::Length { found_chars };
    }
    let foreign = text
        .chars()
        .enumerate()
        .find(|(_, character)| !character.is_ascii() || base58_digit(*character as u8).is_none());
    match foreign {
        Some((offset, found)) => TronAddressError::Characters { position: offset + 1, found },
        None => TronAddressError::Checksum,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;

    const SAMPLE: &str = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH";

    fn vectors() -> Value {
        serde_json::from_str(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/vectors/tron_addresses.json"
        )))
        .unwrap()
    }

    fn evm_from_hex(hex: &str) -> [u8; 20] {
        let digits = hex.strip_prefix("0x").unwrap_or(hex);
        assert_eq!(digits.len(), 40, "{hex}");
        std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
    }

    /// Base58check by long division, digit by digit, to compare the fast way with.
    fn encode_slowly(prefix: u8, evm: [u8; 20]) -> String {
        let mut bytes = vec![prefix];
        bytes.extend(evm);
        bytes.extend(base58_checksum(&bytes.clone()));
        let leading_zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let mut digits = Vec::new();
        while bytes.iter().any(|byte| *byte != 0) {
            let mut rest = 0;
            for byte in &mut bytes {
                let value = rest * 256 + u32::from(*byte);
                *byte = (value / 58) as u8;
                rest = value % 58;
            }
            digits.push(BASE58_ALPHABET[rest as usize]);
        }
        digits.extend(std::iter::repeat_n(b'1', leading_zeros));
        digits.reverse();
        String::from_utf8(digits).unwrap()
    }

    /// Many different addresses, the same in every run.
    fn addresses_spread(count: usize) -> impl Iterator<Item = [u8; 20]> {
        (0..count).map(|i| {
            let digest = Sha256::digest(i.to_be_bytes());
            std::array::from_fn(|byte| digest[byte])
        })
    }

    #[test]
    fn vectors_read_and_write() {
        let vectors = vectors();
        let derived = vectors["addresses"].as_array().unwrap();
        let contracts = vectors["usdt_contracts"].as_array().unwrap();
        assert_eq!((derived.len(), contracts.len()), (7, 3));
        let pairs = derived
            .iter()
            .map(|entry| (&entry["address_base58check"], &entry["address_evm20"]))
            .chain(contracts.iter().map(|entry| (&entry["base58check"], &entry["evm20"])));
        for (text, evm) in pairs {
            let text = text.as_str().unwrap();
            let evm = evm_from_hex(evm.as_str().unwrap());
            let address = TronAddress::parse(text).unwrap();
            assert_eq!(address.as_evm(), &evm);
            assert_eq!(address, TronAddress::from_evm(evm));
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn vectors_with_prefix_agree() {
        for entry in vectors()["addresses"].as_array().unwrap() {
            let evm = evm_from_hex(entry["address_evm20"].as_str().unwrap());
            let hex21 = entry["address_hex21"].as_str().unwrap();
            assert_eq!(hex21[..2], format!("{ADDRESS_PREFIX:x}"));
            assert_eq!(evm_from_hex(&hex21[2..]), evm);
            let topic = entry["log_topic32"].as_str().unwrap();
            assert_eq!(evm_from_hex(&topic[topic.len() - 40..]), evm);
        }
    }

    #[test]
    fn vectors_of_invalid_text_are_refused() {
        let expected = [
            ("TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdh", TronAddressError::Checksum),
            ("tuezsdksodhqmezwihtdobin46zxhgwydh", TronAddressError::Checksum),
            ("TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYd", TronAddressError::Length { found_chars: 33 }),
            (
                "0xc8599111f29c1e1e061265b4af93ea1f274ad78a",
                TronAddressError::Length { found_chars: 42 },
            ),
            ("1BoatSLRHtKNngkdXEeobR76b53LETtpyT", TronAddressError::Prefix { found: 0 }),
            ("", TronAddressError::Length { found_chars: 0 }),
            ("TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH ", TronAddressError::Length { found_chars: 35 }),
        ];
        let vectors = vectors();
        let listed: Vec<&str> = vectors["invalid_base58_addresses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["input"].as_str().unwrap())
            .collect();
        assert_eq!(listed, expected.map(|(text, _)| text));
        for (text, fault) in expected {
            assert_eq!(TronAddress::parse(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn characters_outside_base58_are_named() {
        for found in ['0', 'O', 'I', 'l', ' ', '\n', '\0', '+', '\u{7f}'] {
            for offset in [0, 9, 10, 20, 33] {
                let mut text = SAMPLE.to_string();
                text.replace_range(offset..=offset, &found.to_string());
                let fault = TronAddressError::Characters { position: offset + 1, found };
                assert_eq!(TronAddress::parse(&text), Err(fault));
            }
        }
    }

    #[test]
    fn text_outside_ascii_is_measured_in_characters() {
        let cyrillic = SAMPLE.replacen('T', "Т", 1);
        assert_eq!(
            TronAddress::parse(&cyrillic),
            Err(TronAddressError::Characters { position: 1, found: 'Т' })
        );
        let seventeen_chars_in_34_bytes = "Т".repeat(17);
        assert_eq!(
            TronAddress::parse(&seventeen_chars_in_34_bytes),
            Err(TronAddressError::Length { found_chars: 17 })
        );
        let long = "T".repeat(100_000);
        assert_eq!(
            TronAddress::parse(&long),
            Err(TronAddressError::Length { found_chars: 100_000 })
        );
    }

    #[test]
    fn extreme_digits_do_not_overflow() {
        for character in ['1', 'z'] {
            let text = character.to_string().repeat(ADDRESS_LENGTH_CHARS);
            assert_eq!(TronAddress::parse(&text), Err(TronAddressError::Checksum));
        }
    }

    #[test]
    fn every_single_wrong_character_is_noticed() {
        for offset in 0..ADDRESS_LENGTH_CHARS {
            for &character in BASE58_ALPHABET {
                let mut text = SAMPLE.to_string();
                text.replace_range(offset..=offset, &char::from(character).to_string());
                if text != SAMPLE {
                    assert_eq!(TronAddress::parse(&text), Err(TronAddressError::Checksum));
                }
            }
        }
    }

    #[test]
    fn writing_equals_long_division_and_reads_back() {
        let extremes = [[0; 20], [0xff; 20], [0x80; 20]].into_iter();
        let single_bits = (0..160).map(|bit| {
            let mut evm = [0; 20];
            evm[bit / 8] = 1 << (bit % 8);
            evm
        });
        for evm in extremes.chain(single_bits).chain(addresses_spread(2_000)) {
            let address = TronAddress::from_evm(evm);
            let text = address.to_string();
            assert_eq!(text, encode_slowly(ADDRESS_PREFIX, evm));
            assert!(text.starts_with('T'));
            assert_eq!(TronAddress::parse(&text), Ok(address));
        }
    }

    #[test]
    fn other_prefixes_of_the_same_length_are_refused() {
        let mut refused_count = 0;
        for prefix in (0..=u8::MAX).filter(|prefix| *prefix != ADDRESS_PREFIX) {
            for evm in addresses_spread(4) {
                let text = encode_slowly(prefix, evm);
                if text.len() == ADDRESS_LENGTH_CHARS {
                    let fault = TronAddressError::Prefix { found: prefix };
                    assert_eq!(TronAddress::parse(&text), Err(fault));
                    refused_count += 1;
                }
            }
        }
        assert!(refused_count > 400, "{refused_count}");
    }

    #[test]
    fn value_is_ordered_hashed_and_printed() {
        let low = TronAddress::from_evm([1; 20]);
        let high = TronAddress::from_evm([2; 20]);
        assert!(low < high);
        assert_eq!(HashSet::from([low, high, low]).len(), 2);
        let sample = TronAddress::parse(SAMPLE).unwrap();
        assert_eq!(format!("{sample:?}"), format!("TronAddress({SAMPLE})"));
        assert_eq!(format!("{sample:>36}"), format!("  {SAMPLE}"));
    }

    #[test]
    fn faults_tell_what_to_do() {
        let messages = [
            TronAddressError::Length { found_chars: 33 },
            TronAddressError::Characters { position: 7, found: '\n' },
            TronAddressError::Checksum,
            TronAddressError::Prefix { found: 0 },
        ]
        .map(|fault| fault.to_string());
        assert!(messages[0].contains("34 characters and this has 33"));
        assert!(messages[1].contains(r"character 7 ('\n')"));
        assert!(messages[2].contains("copy the address again"));
        assert!(messages[3].contains("(prefix 0x00)"));
        assert_eq!(HashSet::from(messages).len(), 4);
    }
}
