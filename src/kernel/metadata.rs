//! The caller's own names and values: at most 10 pairs, names (keys) of 1-40 characters, values of
//! 1-500.

use std::collections::BTreeMap;

use super::refusal::{Code, RefusalEntry};

pub const METADATA_PAIRS_MAX: usize = 10;
pub const METADATA_KEY_LENGTH_MAX: usize = 40;
pub const METADATA_VALUE_LENGTH_MAX: usize = 500;

/// The caller's own names and values.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[schemars(inline)]
#[serde(transparent)]
pub struct Metadata(pub BTreeMap<String, String>);

impl Metadata {
    /// The stored form; `{}` is stored as the empty text to keep rows small.
    pub fn to_text(&self) -> String {
        if self.0.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&self.0).unwrap_or_default()
        }
    }
    pub fn from_text(text: &str) -> Option<Metadata> {
        if text.is_empty() {
            return Some(Metadata::default());
        }
        serde_json::from_str(text).ok().map(Metadata)
    }
}

/// What an update does to the metadata.
#[derive(Clone, Default)]
pub struct MetadataPatch {
    /// Whether all old pairs are removed, because the request has `null` in place of an object.
    pub clears: bool,
    /// Pairs to set. A key with `None` (`null` in the request) is removed.
    pub pairs: Vec<(String, Option<String>)>,
}

impl MetadataPatch {
    /// The merged pairs. Refused if they would be more than [`METADATA_PAIRS_MAX`].
    pub fn over(&self, old: &Metadata) -> Result<Metadata, RefusalEntry> {
        let mut merged = if self.clears { Metadata::default() } else { old.clone() };
        for (key, value) in &self.pairs {
            match value {
                Some(value) => merged.0.insert(key.clone(), value.clone()),
                None => merged.0.remove(key),
            };
        }
        if merged.0.len() > METADATA_PAIRS_MAX {
            let message = format!(
                "metadata would have more than {METADATA_PAIRS_MAX} pairs. Send null for the keys \
                 that are no longer needed."
            );
            return Err(RefusalEntry::field(Code::ParameterMaxLengthInvalid, "metadata", message));
        }
        Ok(merged)
    }
}
