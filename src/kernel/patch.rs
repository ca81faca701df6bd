//! A change of one optional field.

/// What an update does to an optional field; `null` clears it.
#[derive(Clone)]
pub enum Patch<T> {
    Keep,
    Clear,
    Set(T),
}

impl<T> Patch<T> {
    /// What the field becomes.
    pub fn over(self, old: Option<T>) -> Option<T> {
        match self {
            Patch::Keep => old,
            Patch::Clear => None,
            Patch::Set(value) => Some(value),
        }
    }
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(value) => Patch::Set(change(value)),
        }
    }
}
