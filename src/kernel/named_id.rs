//! The identifiers by which a request names other objects.

use super::{AnyId, Code, Id, IdKind, Mode, ObjectKind, RefusalEntry};

/// The identifier by which a request names an object of the kind `K`. A text that is no identifier
/// of this kind gets the same code as the identifier of an object that does not exist.
#[derive(Clone, Copy, Debug)]
pub struct NamedId<K: IdKind> {
    pub id: Option<Id<K>>,
    /// The kind of object that the text names, if that is not `K`.
    other_kind: Option<ObjectKind>,
}

impl<K: IdKind> NamedId<K> {
    pub fn parse(text: &str) -> NamedId<K> {
        let id = Id::parse(text);
        let other_kind = AnyId::parse(text).map(|id| id.kind).filter(|kind| *kind != K::KIND);
        NamedId { id, other_kind }
    }

    /// The refusal if the account has no such object in this mode. It reads the same for an object
    /// that never existed and for one of another account or mode.
    pub fn missing(&self, field_name: &str, mode: Mode) -> RefusalEntry {
        let kind = K::KIND.as_str();
        let message = match (self.other_kind, self.id) {
            (Some(other), _) => {
                let other = other.as_str();
                format!("{field_name} takes the id of a {kind}; this is the id of a {other}.")
            }
            (None, None) => format!(
                "{field_name} takes the id of a {kind}: {kind}_ and 26 upper-case letters and \
                 digits."
            ),
            (None, Some(_)) => {
                let mode = if mode.is_live() { "live" } else { "test" };
                format!(
                    "{field_name}: no {kind} with this id exists for this key's account in {mode} \
                     mode."
                )
            }
        };
        RefusalEntry::field(Code::ObjectNotFound, field_name, message)
    }
}

impl<K: IdKind> From<Id<K>> for NamedId<K> {
    fn from(id: Id<K>) -> NamedId<K> {
        NamedId { id: Some(id), other_kind: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::id::kind;

    #[test]
    fn the_refusal_of_an_identifier_says_what_is_wrong_with_it() {
        let ulid = "01JDK3Y5M8Q2X7N4V6T9R0ABCD";
        for (text, part) in [
            (format!("sender_{ulid}"), "this is the id of a sender"),
            (format!("beneficiary_{ulid}"), "no beneficiary with this id exists"),
            ("12345".to_owned(), "beneficiary_ and 26"),
        ] {
            let named = NamedId::<kind::Beneficiary>::parse(&text);
            let entry = named.missing("beneficiary_id", Mode::Test);
            assert!(entry.message.contains(part), "{text}: {}", entry.message);
            assert!(!entry.message.contains(&text));
        }
    }
}
