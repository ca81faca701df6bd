//! A page of a list as a request asks for it: position, direction, size and filters.

/// The value of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterValue {
    Int(i64),
    Id([u8; 16]),
    Text(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub limit: i64,
    pub starting_after: Option<[u8; 16]>,
    pub ending_before: Option<[u8; 16]>,
    pub descending: bool,
    /// The filters that were given, by the names of their parameters.
    pub filters: Vec<(&'static str, FilterValue)>,
}
