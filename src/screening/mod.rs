//! Sanctions screening: published lists in memory, matched by name, identifier and blockchain address.

pub mod index;
pub mod similarity;
pub mod text;

/// What a list entry is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    Individual,
    Business,
    /// Ships and aircraft: never compared with persons or businesses.
    Vessel,
    /// The list does not say; compared with everybody.
    Any,
}
