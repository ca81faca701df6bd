//! Addresses of chains with Ethereum's account model: 20 bytes, written as TRON's base58check or as
//! hexadecimal.

use std::fmt;

use sha3::{Digest, Keccak256};

use super::tron_address::{TronAddress, TronAddressError};
use crate::kernel::hex;

/// How a chain writes its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AddressForm {
    /// Base58check beginning with `T`.
    Tron,
    /// `0x` and 40 hexadecimal digits with the mixed-case checksum of EIP-55.
    Hex,
}

impl AddressForm {
    /// The name decides: `tron` writes base58check, on its test nets too; every other chain writes
    /// hexadecimal.
    pub fn of_chain(name: &str) -> AddressForm {
        if name == "tron" { AddressForm::Tron } else { AddressForm::Hex }
    }
}

/// An address in the form of its chain. Two are equal if bytes and form are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    bytes: [u8; 20],
    form: AddressForm,
}

/// Why a text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(transparent)]
    Tron(#[from] TronAddressError),
    #[error("an address in hexadecimal has 0x and 40 digits; copy the whole address")]
    HexShape,
    #[error(
        "the capital and small letters of this address do not match its checksum (EIP-55); copy \
         the address again"
    )]
    HexChecksum,
}

impl Address {
    pub const fn new(form: AddressForm, bytes: [u8; 20]) -> Address {
        Address { bytes, form }
    }
    /// An address of the chain with this name.
    pub fn of_chain(name: &str, bytes: [u8; 20]) -> Address {
        Address::new(AddressForm::of_chain(name), bytes)
    }
    /// The 20 bytes, as logs and contract calls carry them.
    pub const fn bytes(&self) -> &[u8; 20] {
        &self.bytes
    }
    pub const fn form(&self) -> AddressForm {
        self.form
    }

    /// Reads either form: text that begins with `0x` is hexadecimal, anything else has to be
    /// TRON's. Nothing is trimmed.
    pub fn parse(text: &str) -> Result<Address, AddressError> {
        match text.strip_prefix("0x") {
            None => Ok(Address::new(AddressForm::Tron, *TronAddress::parse(text)?.as_evm())),
            Some(digits) => parse_hex(digits),
        }
    }
}

fn parse_hex(digits: &str) -> Result<Address, AddressError> {
    let address =
        Address::new(AddressForm::Hex, hex::decode_exact(digits).ok_or(AddressError::HexShape)?);
    let is_one_case = |is_case: fn(&u8) -> bool| {
        digits.bytes().filter(u8::is_ascii_alphabetic).all(|byte| is_case(&byte))
    };
    // Text in one case carries no checksum.
    let has_checksum = !is_one_case(u8::is_ascii_lowercase) && !is_one_case(u8::is_ascii_uppercase);
    if has_checksum && address.to_string()[2..] != *digits {
        return Err(AddressError::HexChecksum);
    }
    Ok(address)
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            AddressForm::Tron => fmt::Display::fmt(&TronAddress::from_evm(self.bytes), formatter),
            AddressForm::Hex => {
                let digits = hex::encode(self.bytes);
                let hash = Keccak256::digest(digits.as_bytes());
                let nibble = |index: usize| {
                    hash.get(index / 2).map_or(0, |byte| {
                        if index.is_multiple_of(2) { byte >> 4 } else { byte & 15 }
                    })
                };
                let text: String = digits
                    .chars()
                    .enumerate()
                    .map(
                        |(index, digit)| {
                            if nibble(index) >= 8 { digit.to_ascii_uppercase() } else { digit }
                        },
                    )
                    .collect();
                write!(formatter, "0x{text}")
            }
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_read_and_write() {
        // The examples of EIP-55.
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
            "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            if address.form() == AddressForm::Hex {
                assert_eq!(Address::parse(&text.to_lowercase()), Ok(address));
                let place = text.rfind(|digit: char| digit.is_ascii_alphabetic()).unwrap();
                let digit = char::from(text.as_bytes()[place]);
                let other = if digit.is_ascii_lowercase() {
                    digit.to_ascii_uppercase()
                } else {
                    digit.to_ascii_lowercase()
                };
                let wrong = format!("{}{other}{}", &text[..place], &text[place + 1..]);
                assert_eq!(Address::parse(&wrong), Err(AddressError::HexChecksum));
            }
        }
        assert_eq!(
            Address::parse("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap().bytes()[..2],
            [0xa6, 0x14]
        );
        for text in [
            "0x",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
            "0xé",
            "",
            "T",
        ] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_name_decides_the_form() {
        assert_eq!(AddressForm::of_chain("tron"), AddressForm::Tron);
        assert_eq!(AddressForm::of_chain("ethereum"), AddressForm::Hex);
    }
}
