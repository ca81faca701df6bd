//! Typed forms: one declaration gives the parser that finds all faults, the typed value, and the
//! JSON Schema.

use serde_json::{Map, Value, json};

use super::body::Node;
use crate::kernel::{Code, Patch, Refusal, RefusalEntry};

/// A field's type: it parses itself and describes itself.
pub trait Field: Sized + Clone + Send + 'static {
    /// Whether the schema lists it under `required`.
    const REQUIRED: bool = true;
    /// Its JSON Schema (2020-12), as used by OpenAPI 3.1.
    fn schema() -> Value;
    /// Reads a value that is there; faults go to `faults` under `name`, nested names joined with
    /// dots.
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self>;
    /// Reads the member of an object: absent, `null` and `""` of a required field are
    /// `parameter_empty`.
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None | Some(Node::Null) => empty(name, faults),
            Some(Node::Text(text)) if text.is_empty() => empty(name, faults),
            Some(node) => Self::parse(node, name, faults),
        }
    }
}

fn empty<T>(name: &str, faults: &mut Vec<RefusalEntry>) -> Option<T> {
    faults.push(RefusalEntry::field(Code::ParameterEmpty, name, format!("{name} is required.")));
    None
}

/// An optional field: absent and `null` are `None`.
impl<T: Field> Field for Option<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable(T::schema())
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::parse(node, name, faults).map(Some)
    }
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None | Some(Node::Null) => Some(None),
            Some(node) => Self::parse(node, name, faults),
        }
    }
}

fn nullable(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) => match members.get("type").cloned() {
            Some(Value::String(one)) => {
                members.insert("type".into(), json!([one, "null"]));
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
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::read(Some(node), name, faults).map(|value| Replace(Some(value)))
    }
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        node.map_or(Some(Replace(None)), |node| Self::parse(node, name, faults))
    }
}

impl<T: Field> Field for Patch<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable(T::schema())
    }
    fn parse(node: &Node, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        T::parse(node, name, faults).map(Patch::Set)
    }
    fn read(node: Option<&Node>, name: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None => Some(Patch::Keep),
            Some(Node::Null) => Some(Patch::Clear),
            Some(node) => Self::parse(node, name, faults),
        }
    }
}

/// The fields of a request body.
pub trait Form: Sized + Clone + Send + 'static {
    const NAME: &'static str;
    /// Members a body must have at least, beyond those that are required.
    const MEMBERS_MIN: usize = 0;
    /// Whether an empty body counts as `{}`.
    fn takes_empty_body() -> bool;
    fn schema() -> Value;
    fn read_members(node: &Node, prefix: &str, faults: &mut Vec<RefusalEntry>) -> Option<Self>;

    /// Reads a whole body; all problems come together, those behind what `more` says.
    fn read_body(node: &Node, more: Vec<RefusalEntry>) -> Result<Self, Refusal> {
        let mut faults = Vec::new();
        let form = Self::read_members(node, "", &mut faults);
        faults.extend(more);
        if matches!(node, Node::Object(members) if members.len() < Self::MEMBERS_MIN) {
            faults.push(RefusalEntry::new(Code::ParameterEmpty, "Send at least one field."));
        }
        Refusal::check(faults)?;
        form.ok_or_else(Refusal::internal)
    }
}

/// A member's value, where it has the form that it should; for rules that look at one member alone.
pub fn read_alone<T: Field>(node: Option<&Node>) -> Option<T> {
    let mut faults = Vec::new();
    let value = T::read(node, "", &mut faults);
    value.filter(|_| faults.is_empty())
}

/// The dotted name of a member.
pub fn member_name(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Refuses members that the form does not have.
pub fn refuse_unknown(node: &Node, known: &[&str], prefix: &str, faults: &mut Vec<RefusalEntry>) {
    const NAME_SHOWN_LENGTH_MAX: usize = 100;
    let Node::Object(members) = node else { return };
    for (key, _) in members {
        if !known.contains(&key.as_str()) {
            let shown: String =
                key.chars().filter(|c| !c.is_control()).take(NAME_SHOWN_LENGTH_MAX).collect();
            let name = member_name(prefix, &shown);
            faults.push(RefusalEntry::field(
                Code::ParameterUnexpected,
                &name,
                format!("{name} is not a field of this request."),
            ));
        }
    }
}

/// Assembles the schema of a form.
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

/// Declares a form: a struct of typed fields in the order in which faults are told.
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
                faults: &mut Vec<$crate::kernel::RefusalEntry>) -> Option<Self> {
                $crate::http::form::refuse_unknown(node,
                    &[$(stringify!($field).trim_start_matches("r#")),*], prefix, faults);
                $(
                    let name = stringify!($field).trim_start_matches("r#");
                    let $field = <$type as $crate::http::form::Field>::read(node.get(name),
                        &$crate::http::form::member_name(prefix, name), faults);
                )*
                Some(Self { $($field: $field?),* })
            }
        }
        impl $crate::http::form::Field for $name {
            fn schema() -> serde_json::Value {
                <Self as $crate::http::form::Form>::schema()
            }
            fn parse(node: &$crate::http::body::Node, name: &str,
                faults: &mut Vec<$crate::kernel::RefusalEntry>) -> Option<Self> {
                if !matches!(node, $crate::http::body::Node::Object(_)) {
                    faults.push($crate::kernel::RefusalEntry::field($crate::kernel::Code::ParameterValueInvalid, name, format!("{name} must be an object.")));
                    return None;
                }
                <Self as $crate::http::form::Form>::read_members(node, name, faults)
            }
        }
    };
}

form! {
    /// A body without fields.
    Nothing {}
}
