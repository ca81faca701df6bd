//! Metadata: the caller's own names and values.

use serde_json::{Value, json};

use super::{PLAIN_PATTERN, text, wrong};
use crate::http::body::Node;
use crate::http::form::{Field, is_left_out, shown_name};
use crate::kernel::metadata::{
    METADATA_KEY_LENGTH_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_LENGTH_MAX,
};
use crate::kernel::{Code, Metadata, MetadataPatch, RefusalEntry};

fn metadata_schema(value: Value) -> Value {
    json!({ "type": "object", "maxProperties": METADATA_PAIRS_MAX,
        "propertyNames": { "minLength": 1, "maxLength": METADATA_KEY_LENGTH_MAX,
        "pattern": PLAIN_PATTERN }, "additionalProperties": value })
}

/// Reads the pairs. A `None` value is a `null`, which only an update accepts (`takes_null`).
fn metadata_pairs(
    node: &Node,
    takes_null: bool,
    name: &str,
    entries: &mut Vec<RefusalEntry>,
) -> Option<Vec<(String, Option<String>)>> {
    let Node::Object(members) = node else {
        return wrong(Code::ParameterValueInvalid, name, "must be an object of strings.", entries);
    };
    let entries_before = entries.len();
    let mut pairs = Vec::with_capacity(members.len());
    for (key, value) in members {
        let pair_name = format!("{name}.{}", shown_name(key));
        if text(&Node::Text(key.clone()), 1, METADATA_KEY_LENGTH_MAX, &pair_name, entries).is_none()
        {
            continue;
        }
        match value {
            Node::Null if takes_null => pairs.push((key.clone(), None)),
            value => {
                if let Some(value) = text(value, 1, METADATA_VALUE_LENGTH_MAX, &pair_name, entries)
                {
                    pairs.push((key.clone(), Some(value.to_owned())));
                }
            }
        }
    }
    if members.len() > METADATA_PAIRS_MAX {
        return wrong(
            Code::ParameterMaxLengthInvalid,
            name,
            format_args!("must have at most {METADATA_PAIRS_MAX} pairs."),
            entries,
        );
    }
    (entries.len() == entries_before).then_some(pairs)
}

impl Field for Metadata {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable_metadata(metadata_schema(
            json!({ "type": "string", "minLength": 1, "maxLength": METADATA_VALUE_LENGTH_MAX,
                "pattern": PLAIN_PATTERN }),
        ))
    }
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            Some(node) if !is_left_out(node) => Self::parse(node, name, entries),
            _ => Some(Metadata::default()),
        }
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let pairs = metadata_pairs(node, false, name, entries)?;
        let values = pairs.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Some(Metadata(values.collect()))
    }
}

fn nullable_metadata(mut schema: Value) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema
}

impl Field for MetadataPatch {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        nullable_metadata(metadata_schema(json!({ "type": ["string", "null"], "minLength": 1,
                "maxLength": METADATA_VALUE_LENGTH_MAX, "pattern": PLAIN_PATTERN })))
    }
    fn read(node: Option<&Node>, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        match node {
            None => Some(MetadataPatch::default()),
            Some(node) if is_left_out(node) => {
                Some(MetadataPatch { clears: true, pairs: Vec::new() })
            }
            Some(node) => Self::parse(node, name, entries),
        }
    }
    fn parse(node: &Node, name: &str, entries: &mut Vec<RefusalEntry>) -> Option<Self> {
        let pairs = metadata_pairs(node, true, name, entries)?;
        Some(MetadataPatch { clears: false, pairs })
    }
}
