//! The fields of a form or of a query, in the order in which they came.

/// The most fields of one form or query; a request with more is refused.
const FIELDS_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads a query, or a form as browsers send it. `None` if it has too many fields.
    pub fn read(bytes: &[u8]) -> Option<Fields> {
        let fields: Vec<_> =
            url::form_urlencoded::parse(bytes).into_owned().take(FIELDS_MAX + 1).collect();
        (fields.len() <= FIELDS_MAX).then_some(Fields(fields))
    }
    /// The first field of this name, or "".
    pub fn get(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or("")
    }
    /// Every field of this name: several rows can be ticked.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
