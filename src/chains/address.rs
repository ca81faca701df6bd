//! Addresses as people and callers write them: text in the form of their chain, which is read at
//! the border of the service. Logs and the store carry [`AddressBytes`].

use std::fmt;
use std::hash::{Hash, Hasher};

pub use super::address_bytes::AddressBytes;
use super::port::{ChainKind, TextError};
use super::{KINDS, kind_named};

/// An address with the kind of its chain, which writes and reads it. Two addresses are equal if
/// their bytes and their kinds are equal.
#[derive(Clone, Copy)]
pub struct ChainAddress {
    bytes: AddressBytes,
    kind: &'static dyn ChainKind,
}

impl ChainAddress {
    /// An address of the chain with this name.
    pub fn of_chain(name: &str, bytes: AddressBytes) -> ChainAddress {
        ChainAddress { bytes, kind: kind_named(name) }
    }
    /// The bytes, as logs, contract calls and the store carry them.
    pub const fn bytes(&self) -> &AddressBytes {
        &self.bytes
    }
    /// Whether the chain with this name writes its addresses in this form.
    pub fn is_on(&self, name: &str) -> bool {
        self.kind.names() == kind_named(name).names()
    }

    /// Whether a sanctions list's text is this address in the form of its chain. The text is read
    /// with [`ChainKind::listed_address`].
    pub fn is_listed_as(&self, text: &str) -> bool {
        self.kind.listed_address(text).is_some_and(|listed| listed == self.bytes)
    }

    /// Reads an address in the form of any chain. The first kind that claims the text reads it, and
    /// `Err` is that kind's message. Nothing is trimmed.
    pub fn parse(text: &str) -> Result<ChainAddress, TextError> {
        let kind = *KINDS.iter().find(|kind| kind.claims(text)).unwrap_or(&KINDS[0]);
        Ok(ChainAddress { bytes: kind.parse_address(text)?, kind })
    }
}

/// Reads an address as a sanctions list writes it, in the form of any chain. `None` if no kind of
/// chain can read it. A kind may read forms here that it refuses from callers, see
/// [`ChainKind::listed_address`].
pub fn listed_bytes(text: &str) -> Option<AddressBytes> {
    KINDS.iter().find_map(|kind| kind.listed_address(text))
}

impl PartialEq for ChainAddress {
    fn eq(&self, other: &ChainAddress) -> bool {
        self.bytes == other.bytes && self.kind.names() == other.kind.names()
    }
}

impl Eq for ChainAddress {}

impl Hash for ChainAddress {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.bytes.hash(hasher);
    }
}

impl fmt::Display for ChainAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.kind.write_address(&self.bytes))
    }
}

impl fmt::Debug for ChainAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ChainAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chains_name_decides_the_form_of_an_address() {
        let bytes = AddressBytes::of_20([1; 20]);
        let text = |name| ChainAddress::of_chain(name, bytes).to_string();
        assert!(text("tron").starts_with('T') && text("ethereum").starts_with("0x"));
        assert_ne!(
            ChainAddress::of_chain("tron", bytes),
            ChainAddress::of_chain("ethereum", bytes)
        );
        assert_eq!(ChainAddress::of_chain("base", bytes), ChainAddress::of_chain("bnb", bytes));
        let read = ChainAddress::parse("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
        assert_eq!(read.bytes().as_slice()[..2], [0xa6, 0x14]);
        assert!(read.is_on("tron") && !read.is_on("ethereum"));
        for text in ["", "T", "0x", "0xé", "x"] {
            assert!(ChainAddress::parse(text).is_err(), "{text:?}");
        }
    }
}
