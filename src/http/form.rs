//! Typed forms: one declaration gives the parser that finds every problem, the typed value,
//! and the JSON Schema.

use serde_json::{Map, Value, json};

use super::body::Node;
use super::near;
use crate::kernel::refusal::ENTRIES_MAX;
use crate::kernel::{Code, Now, Patch, Refusal, RefusalEntry};

/// A field's type: it parses itself and describes itself.
pub trait Field: Sized + Clone + Send + 'static {
    /// Whether the schema lists it under `required`.
    const REQUIRED: bool = true;
    /// Its JSON Schema (2020-12), as used by OpenAPI 3.1.
    fn schema() -> Value;
    /// Reads a value that was sent; problems go to `entries` under `name`, nested names joined
    /// with dots.
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self>;
    /// Reads a member of an object. A required field that is absent, `null` or `""` is a problem
    /// with the code `parameter_empty`.
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            Some(node) if !is_left_out(node) => Self::parse(node, name, entries),
            _ => empty(name, entries),
        }
    }
}

fn empty<T>(name: &str, entries: &mut Vec<RefusalEntry>) -> Option<T> {
    entries.push(RefusalEntry::field(Code::ParameterEmpty, name, format!("{name} is required.")));
    None
}

/// Whether a field counts as left out: `null`, or the empty text that an HTML form has for a field
/// that was not filled in.
pub(crate) fn is_left_out(node: &Node) -> bool {
    match node {
        Node::Null => true,
        Node::Text(text) => text.is_empty(),
        _ => false,
    }
}

/// An optional field: absent, `null` and `""` are `None`.
impl<T: Field> Field for Option<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable(T::schema())
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::parse(node, name, entries).map(Some)
    }
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            Some(node) if !is_left_out(node) => Self::parse(node, name, entries),
            _ => Some(None),
        }
    }
}

/// The schema of a field that may be left out: see [`is_left_out`].
fn nullable(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) => match members.get("type").cloned() {
            Some(Value::String(one)) => {
                members.insert("type".into(), json!([one, "null"]));
                members.remove("minLength");
                if let Some(Value::String(pattern)) = members.get_mut("pattern") {
                    *pattern = format!("^$|{pattern}");
                }
                if let Some(Value::Array(words)) = members.get_mut("enum") {
                    words.push(Value::Null);
                }
                Value::Object(members)
            }
            _ => json!({ "oneOf": [Value::Object(members), { "type": "null" }] }),
        },
        other => other,
    }
}

/// A field of an update that can be replaced but not cleared.
#[derive(Clone)]
pub struct Replace<T>(pub Option<T>);

impl<T: Field> Field for Replace<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        T::schema()
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::read(Some(node), name, entries).map(|value| Replace(Some(value)))
    }
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        node.map_or(Some(Replace(None)), |node| Self::parse(node, name, entries))
    }
}

impl<T: Field> Field for Patch<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable(T::schema())
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::parse(node, name, entries).map(Patch::Set)
    }
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None => Some(Patch::Keep),
            Some(node) if is_left_out(node) => Some(Patch::Clear),
            Some(node) => Self::parse(node, name, entries),
        }
    }
}

/// The fields of a request body.
pub trait Form: Sized + Clone + Send + 'static {
    const NAME: &'static str;
    /// How many members a body must have at least, whichever they are.
    const MEMBERS_MIN: usize = 0;
    /// Whether an empty body counts as `{}`.
    fn takes_empty_body() -> bool;
    fn schema() -> Value;
    fn read_members(node: &Node, prefix: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self>;

    /// Reads a whole body, and reports all problems together: those of the fields, then `more`.
    fn read_body(node: &Node, more: Vec<RefusalEntry>) -> Result<Self, Refusal> {
        let mut entries = Vec::new();
        let form = Self::read_members(node, "", &mut entries);
        entries.extend(more);
        if matches!(node, Node::Object(members) if members.len() < Self::MEMBERS_MIN) {
            entries.push(RefusalEntry::new(Code::ParameterEmpty, "Send at least one field."));
        }
        Refusal::check(entries)?;
        form.ok_or_else(Refusal::internal)
    }
}

/// A member's value, if it is valid; for rules that look at one member alone.
pub fn read_alone<T: Field>(node: Option<&Node>) -> Option<T> {
    let mut entries = Vec::new();
    let value = T::read(node, "", &mut entries);
    value.filter(|_| entries.is_empty())
}

/// Judges a form by the account's business time, which only the transaction knows.
pub type TimedCheck = Box<dyn Fn(&Now) -> Result<(), Refusal> + Send>;

/// The dotted name of a member.
pub fn member_name(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// The longest name chosen by a caller that a message repeats, in characters.
pub const NAME_SHOWN_LENGTH_MAX: usize = 40;
/// This many digits without a letter between them may be an account, card or telephone number.
pub const NAME_MASKED_DIGITS_MIN: usize = 5;
/// What a message shows instead of a name that it does not repeat.
const NAME_MASKED: &str = "[masked]";

/// A name chosen by a caller, as a message shows it. A name that is long or has many digits could
/// be personal data in the wrong place, so it is masked, and so is one with control characters.
/// Digits count together until the next letter, because account numbers are also written in groups.
pub fn shown_name(name: &str) -> String {
    let longest = name
        .split(char::is_alphabetic)
        .map(|between| between.chars().filter(|character| character.is_numeric()).count())
        .max();
    let is_shown = name.chars().count() <= NAME_SHOWN_LENGTH_MAX
        && longest.is_none_or(|count| count < NAME_MASKED_DIGITS_MIN)
        && !name.chars().any(char::is_control);
    if is_shown { name.to_owned() } else { NAME_MASKED.to_owned() }
}

/// Refuses members that the form does not have.
pub fn refuse_unknown(node: &Node, known: &[&str], prefix: &str, entries: &mut Vec<RefusalEntry>) {
    let Node::Object(members) = node else { return };
    for (key, _) in members.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        // A refusal lists no more entries, and a body can have thousands of unknown members.
        if entries.len() >= ENTRIES_MAX {
            return;
        }
        let shown = shown_name(key);
        let name = member_name(prefix, &shown);
        // A masked name may be a value in the wrong place, so nothing is suggested for it.
        let meant = if shown == *key { near::meant(key, known) } else { None };
        let hint = meant.map_or(String::new(), |meant| {
            format!(" Did you mean {}?", member_name(prefix, meant))
        });
        let message = if known.is_empty() {
            format!("{name} is not a field of this request, which takes none.")
        } else {
            let known = known.join(", ");
            format!("{name} is not a field of this request.{hint} It takes: {known}.")
        };
        entries.push(RefusalEntry::field(Code::ParameterUnexpected, &name, message));
    }
}

/// Assembles the schema of a form. Each field is its name, whether it is required, and its schema.
pub fn object_schema(members_min: usize, fields: Vec<(&str, bool, Value)>) -> Value {
    let required: Vec<_> = fields.iter().filter(|field| field.1).map(|field| field.0).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false });
    if members_min > 0 {
        schema["minProperties"] = json!(members_min);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = Value::Object(
        fields
            .into_iter()
            .map(|(name, _, schema)| (name.to_owned(), schema))
            .collect::<Map<_, _>>(),
    );
    schema
}

/// Declares a form: a struct of typed fields in the order in which problems are reported. With
/// `at_least_one`, a body without members is refused.
#[macro_export]
macro_rules! form {
    ($(#[$doc:meta])* at_least_one $name:ident { $($fields:tt)* }) => {
        $crate::form!(@form 1, $(#[$doc])* $name { $($fields)* });
    };
    ($(#[$doc:meta])* $name:ident { $($fields:tt)* }) => {
        $crate::form!(@form 0, $(#[$doc])* $name { $($fields)* });
    };
    (@form $members_min:literal,
        $(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }

        impl $crate::http::form::Form for $name {
            const NAME: &'static str = stringify!($name);
            const MEMBERS_MIN: usize = $members_min;
            fn takes_empty_body() -> bool {
                $members_min == 0 $(&& !<$type as $crate::http::form::Field>::REQUIRED)*
            }
            fn schema() -> serde_json::Value {
                $crate::http::form::object_schema($members_min, vec![$((
                    stringify!($field).trim_start_matches("r#"),
                    <$type as $crate::http::form::Field>::REQUIRED,
                    <$type as $crate::http::form::Field>::schema(),
                )),*])
            }
            #[allow(unused_variables)]
            fn read_members(node: &$crate::http::body::Node, prefix: &str,
                entries: &mut Vec<$crate::kernel::RefusalEntry>) -> Option<Self> {
                $crate::http::form::refuse_unknown(node,
                    &[$(stringify!($field).trim_start_matches("r#")),*], prefix, entries);
                $(
                    let name = stringify!($field).trim_start_matches("r#");
                    let $field = <$type as $crate::http::form::Field>::read(node.get(name),
                        &$crate::http::form::member_name(prefix, name), entries);
                )*
                Some(Self { $($field: $field?),* })
            }
        }
        impl $crate::http::form::Field for $name {
            fn schema() -> serde_json::Value {
                <Self as $crate::http::form::Form>::schema()
            }
            fn parse(node: &$crate::http::body::Node, name: &str,
                entries: &mut Vec<$crate::kernel::RefusalEntry>) -> Option<Self> {
                if !matches!(node, $crate::http::body::Node::Object(_)) {
                    entries.push($crate::kernel::RefusalEntry::field($crate::kernel::Code::ParameterValueInvalid, name, format!("{name} must be an object.")));
                    return None;
                }
                <Self as $crate::http::form::Form>::read_members(node, name, entries)
            }
        }
    };
}

form! {
    /// A body without fields.
    Nothing {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_personal_are_masked() {
        for (name, shown) in [
            ("colour", "colour"),
            ("", ""),
            ("line_1234", "line_1234"),
            (&"a".repeat(NAME_SHOWN_LENGTH_MAX), &*"a".repeat(NAME_SHOWN_LENGTH_MAX)),
            (&"a".repeat(NAME_SHOWN_LENGTH_MAX + 1), NAME_MASKED),
            ("account 50100", NAME_MASKED),
            ("address_1_2_3", "address_1_2_3"),
            ("1234 5678 9012", NAME_MASKED),
            ("account 501-00", NAME_MASKED),
            ("5.0.1.0.0", NAME_MASKED),
            ("12\u{a0}34\u{2011}5", NAME_MASKED),
            ("12ab34cd5", "12ab34cd5"),
            ("\u{665}\u{660}\u{661}\u{660}\u{660}", NAME_MASKED),
            ("a\u{7}b", NAME_MASKED),
        ] {
            assert_eq!(shown_name(name), shown, "{name:?}");
        }
    }
}
