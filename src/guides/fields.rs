//! Lists of fields in the reference, for browsers and as Markdown.

use std::fmt::Write;

use serde_json::Value;

use super::markdown::escape;

/// The longest pattern that people are shown, in bytes.
const PATTERN_SHOWN_MAX: usize = 80;

/// One field in a list of fields.
pub struct FieldLine {
    pub name: String,
    pub type_name: String,
    pub is_required: bool,
    pub description: String,
    /// The words that the value may be, if these are fixed.
    pub words: Vec<String>,
    /// The limits of the value, in words.
    pub bounds: Vec<String>,
    /// The fields of the object that the value is or holds.
    pub inside: Vec<FieldLine>,
}

impl FieldLine {
    /// What the field means and which values it takes; code stands between backticks.
    fn text(&self) -> String {
        let mut text = self.description.clone();
        if !self.words.is_empty() {
            let words: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
            let _ = write!(text, " One of {}.", words.join(", "));
        }
        if !self.bounds.is_empty() {
            let _ = write!(text, " ({})", self.bounds.join(", "));
        }
        text
    }
}

pub fn fields_html(html: &mut String, fields: &[FieldLine]) {
    html.push_str("<dl class=\"fields\">\n");
    for field in fields {
        let required =
            if field.is_required { " <span class=\"required\">required</span>" } else { "" };
        let _ = write!(
            html,
            "<dt><code>{}</code> <span class=\"type\">{}</span>{required}</dt><dd>{}",
            escape(&field.name),
            escape(&field.type_name),
            code_words(&field.text())
        );
        if !field.inside.is_empty() {
            fields_html(html, &field.inside);
        }
        html.push_str("</dd>\n");
    }
    html.push_str("</dl>\n");
}

pub fn fields_markdown(markdown: &mut String, fields: &[FieldLine], depth: usize) {
    for field in fields {
        let indent = "  ".repeat(depth);
        let required = if field.is_required { ", required" } else { "" };
        let _ = writeln!(
            markdown,
            "{indent}- `{}` ({}{required}): {}",
            field.name,
            field.type_name,
            field.text()
        );
        fields_markdown(markdown, &field.inside, depth + 1);
    }
}

pub fn words(schema: &Value) -> Vec<String> {
    let words = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    words.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The limits of a value, in words.
pub fn bounds(schema: &Value) -> Vec<String> {
    let text = |name: &str| match &schema[name] {
        Value::Null => None,
        Value::String(text) => Some(format!("`{text}`")),
        value => Some(value.to_string()),
    };
    let range = |least: &str, most: &str, unit: &str| match (text(least), text(most)) {
        (Some(least), Some(most)) if least == most => Some(format!("{least}{unit}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    [
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters"),
        range("minItems", "maxItems", " items"),
        // A long pattern, or one that excludes control characters, does not help people.
        text("pattern")
            .filter(|pattern| !pattern.contains("\\u") && pattern.len() <= PATTERN_SHOWN_MAX)
            .map(|pattern| format!("pattern {pattern}")),
        text("default").map(|default| format!("default {default}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// HTML of a text, with what stands between backticks as code.
pub fn code_words(text: &str) -> String {
    text.split('`')
        .enumerate()
        .map(
            |(place, part)| {
                if place % 2 == 1 { format!("<code>{}</code>", escape(part)) } else { escape(part) }
            },
        )
        .collect()
}
