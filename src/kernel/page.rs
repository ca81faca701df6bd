//! One page of a list, as it was asked for.

/// The value of a filter that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterValue {
    Int(i64),
    Id([u8; 16]),
    Text(String),
}

/// One page that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub limit: i64,
    pub starting_after: Option<[u8; 16]>,
    pub ending_before: Option<[u8; 16]>,
    pub descending: bool,
    /// Conditions and values, each condition with one `?`.
    pub filters: Vec<(&'static str, FilterValue)>,
}
