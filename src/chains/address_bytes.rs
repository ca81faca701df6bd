//! Addresses as chains and the store carry them.

use std::fmt;

use crate::kernel::{StoreError, hex};
use crate::store::Value;

/// The longest address of any chain, such as a public key of 32 bytes.
pub const ADDRESS_LENGTH_BYTES_MAX: usize = 32;

/// An address as a chain and the store carry it: 1 to 32 bytes. Addresses are ordered as the store
/// sorts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressBytes {
    /// The address, then zeros.
    bytes: [u8; ADDRESS_LENGTH_BYTES_MAX],
    length: u8,
}

impl AddressBytes {
    /// `None` unless there are 1 to 32 bytes.
    pub fn new(bytes: &[u8]) -> Option<AddressBytes> {
        if bytes.is_empty() || bytes.len() > ADDRESS_LENGTH_BYTES_MAX {
            return None;
        }
        let mut filled = [0; ADDRESS_LENGTH_BYTES_MAX];
        filled[..bytes.len()].copy_from_slice(bytes);
        Some(AddressBytes { bytes: filled, length: bytes.len() as u8 })
    }
    /// The 20 bytes that TRON and the chains of Ethereum's kind have.
    pub const fn of_20(bytes: [u8; 20]) -> AddressBytes {
        let mut filled = [0; ADDRESS_LENGTH_BYTES_MAX];
        let mut index = 0;
        while index < bytes.len() {
            filled[index] = bytes[index];
            index += 1;
        }
        AddressBytes { bytes: filled, length: 20 }
    }
    /// Reads what a column holds. Another length than 1 to 32 bytes is [`StoreError::Broken`].
    pub fn stored(bytes: &[u8]) -> Result<AddressBytes, StoreError> {
        AddressBytes::new(bytes)
            .ok_or_else(|| StoreError::Broken("a stored address is not 1 to 32 bytes long".into()))
    }
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
    /// The 20 bytes of an address of TRON or of Ethereum's kind; `None` for another one.
    pub fn as_20(&self) -> Option<&[u8; 20]> {
        self.as_slice().try_into().ok()
    }
    /// Whether it is all zeros, an address that belongs to nobody.
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }
    /// The first 16 bytes, for a filter in memory. An address is a part of a hash or a public key,
    /// so its bytes are spread evenly and need no hash.
    pub fn first_16(&self) -> [u8; 16] {
        std::array::from_fn(|index| self.bytes[index])
    }
}

impl AsRef<[u8]> for AddressBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for AddressBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AddressBytes({})", hex::encode(self))
    }
}

impl<'a> From<&'a AddressBytes> for Value<'a> {
    fn from(address: &'a AddressBytes) -> Value<'a> {
        Value::Bytes(address.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_ordered_as_the_store_orders_them() {
        let of = |bytes: &[u8]| AddressBytes::new(bytes).unwrap();
        let mut sorted = [of(&[2]), of(&[1, 0]), of(&[1]), of(&[1, 1, 1]), of(&[0; 32])];
        sorted.sort_unstable();
        assert!(sorted.is_sorted_by(|one, other| one.as_slice() < other.as_slice()));
        assert_eq!(AddressBytes::new(&[]), None);
        assert_eq!(AddressBytes::new(&[1; 33]), None);
        assert_eq!(of(&[1; 32]).as_slice(), [1; 32]);
        assert_eq!(of(&[7; 20]), AddressBytes::of_20([7; 20]));
        assert_eq!((of(&[7; 20]).as_20(), of(&[7; 21]).as_20()), (Some(&[7; 20]), None));
    }
}
