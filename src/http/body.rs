//! Request bodies as a tree that keeps number tokens as they were written. A body with
//! duplicate keys is refused.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::kernel::{Code, Refusal};

/// The largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// How deep objects and arrays may be nested; the outermost counts as 1.
pub const BODY_DEPTH_MAX: usize = 8;

/// A JSON value.
#[derive(Clone, PartialEq, Eq)]
pub enum Node {
    Null,
    Bool(bool),
    /// The token as it was written: `1.0` and `1` stay different.
    Number(String),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    pub fn get(&self, name: &str) -> Option<&Node> {
        match self {
            Node::Object(members) => {
                members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// One text for all spellings of a value: keys sorted, white space and escapes gone, number
    /// tokens literal.
    pub fn canonical(&self) -> Vec<u8> {
        let mut text = Vec::new();
        self.write_canonical(&mut text);
        text
    }

    fn write_canonical(&self, out: &mut Vec<u8>) {
        let write_text = |out: &mut Vec<u8>, text: &str| {
            // The length comes first, so that no two trees have the same text.
            out.extend_from_slice(format!("\"{}:", text.len()).as_bytes());
            out.extend_from_slice(text.as_bytes());
        };
        match self {
            Node::Null => out.push(b'n'),
            Node::Bool(value) => out.push(if *value { b't' } else { b'f' }),
            Node::Number(token) => {
                out.push(b'#');
                out.extend_from_slice(token.as_bytes());
                out.push(b';');
            }
            Node::Text(text) => write_text(out, text),
            Node::Array(items) => {
                out.push(b'[');
                items.iter().for_each(|item| item.write_canonical(out));
                out.push(b']');
            }
            Node::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                out.push(b'{');
                for (key, value) in sorted {
                    write_text(out, key);
                    value.write_canonical(out);
                }
                out.push(b'}');
            }
        }
    }
}

struct Members<'a>(Vec<(String, &'a RawValue)>);
struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CollectMembers<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for CollectMembers<'a> {
            type Value = Members<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    members.push(entry);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(CollectMembers(std::marker::PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CollectItems<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for CollectItems<'a> {
            type Value = Items<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = sequence.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(CollectItems(std::marker::PhantomData))
    }
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::RequestBodyInvalid, message)
}

/// Parses a body: one JSON object in UTF-8, without duplicate keys, at most eight deep.
pub fn parse(bytes: &[u8]) -> Result<Node, Refusal> {
    if bytes.is_empty() {
        return Err(invalid("The body is empty. Send a JSON object."));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("The body is not valid UTF-8."))?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        // Only the position, because the parser's message may quote the body.
        invalid(format!(
            "The body is not valid JSON (line {}, column {}).",
            error.line(),
            error.column()
        ))
    })?;
    let node = build(raw, 1)?;
    match node {
        Node::Object(_) => Ok(node),
        _ => Err(invalid("The body must be a JSON object.")),
    }
}

fn build(raw: &RawValue, depth: usize) -> Result<Node, Refusal> {
    let text = raw.get();
    let malformed = |_| invalid("The body is not valid JSON.");
    if depth > BODY_DEPTH_MAX && text.starts_with(['{', '[']) {
        return Err(invalid(format!("The body is nested more than {BODY_DEPTH_MAX} deep.")));
    }
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let Members(raw_members) = serde_json::from_str(text).map_err(malformed)?;
            let mut members: Vec<(String, Node)> = Vec::with_capacity(raw_members.len());
            let mut seen = std::collections::HashSet::with_capacity(raw_members.len());
            for (key, value) in raw_members {
                if !seen.insert(key.clone()) {
                    return Err(invalid("The body holds the same key twice in one object."));
                }
                members.push((key, build(value, depth + 1)?));
            }
            Node::Object(members)
        }
        Some(b'[') => {
            let Items(items) = serde_json::from_str(text).map_err(malformed)?;
            Node::Array(
                items.into_iter().map(|item| build(item, depth + 1)).collect::<Result<_, _>>()?,
            )
        }
        Some(b'"') => Node::Text(serde_json::from_str(text).map_err(malformed)?),
        Some(b't') => Node::Bool(true),
        Some(b'f') => Node::Bool(false),
        Some(b'n') => Node::Null,
        _ => Node::Number(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Vec<u8> {
        parse(text.as_bytes()).map_err(|refusal| refusal.to_string()).unwrap().canonical()
    }

    #[test]
    fn spellings_of_one_value_are_equal_and_values_differ() {
        for (a, b, equal) in [
            (r#"{"a":1,"b":2}"#, " {\"b\" : 2,\n\"a\":1} ", true),
            (r#"{"a":"A\/"}"#, r#"{"a":"\u0041/"}"#, true),
            (r#"{"a":1.0}"#, r#"{"a":1}"#, false),
            (r#"{"a":1e0}"#, r#"{"a":1.0}"#, false),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#, false),
            (r#"{"a":null}"#, "{}", false),
            (r#"{"a":"1"}"#, r#"{"a":1}"#, false),
            (r#"{"a":["1","2"]}"#, r#"{"a":["2","1"]}"#, false),
            ("{\"a\":\"\u{e9}\"}", "{\"a\":\"e\u{301}\"}", false),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"c","d":null}}"#, false),
        ] {
            assert_eq!(canonical(a) == canonical(b), equal, "{a} against {b}");
        }
    }

    #[test]
    fn what_is_not_one_plain_object_is_refused() {
        let deep = format!("{}1{}", "{\"a\":".repeat(9), "}".repeat(9));
        let many: &[&[u8]] = &[
            b"",
            b" ",
            b"[]",
            b"1",
            b"null",
            b"\"a\"",
            b"{",
            b"{}x",
            b"{} {}",
            b"{\"a\":1,}",
            b"{'a':1}",
            b"{\"a\":01}",
            b"{\"a\":+1}",
            b"{\"a\":1,\"a\":1}",
            b"{\"a\":1,\"\\u0061\":1}",
            b"{\"b\":{\"a\":1,\"a\":2}}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":\"\\ud800\"}",
            b"{\"a\":\"\n\"}",
            b"{\"a\":NaN}",
            deep.as_bytes(),
        ];
        for body in many {
            let refusal = parse(body).err().map(|refusal| refusal.entries()[0].code);
            assert_eq!(
                refusal,
                Some(Code::RequestBodyInvalid),
                "{:?}",
                String::from_utf8_lossy(body)
            );
        }
        let eight = format!("{}1{}", "{\"a\":".repeat(8), "}".repeat(8));
        assert!(parse(eight.as_bytes()).is_ok());
    }
}
