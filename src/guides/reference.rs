//! The reference of the API: one page for each resource, made from the OpenAPI document. Each
//! operation can be tried on the page with a key.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::markdown::{Heading, SearchSection, escape};

/// Objects inside objects that are shown in full.
const DEPTH_MAX: usize = 4;
const REFERENCE: &str = "#/components/schemas/";

/// The page of a resource.
pub struct ResourcePage {
    pub name: String,
    pub title: String,
    pub html: String,
    pub headings: Vec<Heading>,
    pub sections: Vec<SearchSection>,
}

impl ResourcePage {
    pub fn path(&self) -> String {
        format!("/docs/api/{}", self.name)
    }
}

/// Pages in the order of the document's tags.
pub fn resources(document: &Value) -> Vec<ResourcePage> {
    let tags = document["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
    tags.iter().filter_map(|tag| page(document, tag)).collect()
}

/// `webhook_endpoints` becomes `Webhook endpoints`.
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn page(document: &Value, tag: &Value) -> Option<ResourcePage> {
    let name = tag["name"].as_str()?;
    let mut page = ResourcePage {
        name: name.to_owned(),
        title: title(name),
        html: String::new(),
        headings: Vec::new(),
        sections: Vec::new(),
    };
    let html = &mut page.html;
    // Writing to a text cannot fail.
    let _ = writeln!(
        html,
        "<h1>{}</h1>\n<p>{}</p>",
        escape(&page.title),
        escape(tag["description"].as_str().unwrap_or_default())
    );
    let renderer = Renderer { schemas: &document["components"]["schemas"] };
    for (path, operations) in members(&document["paths"]) {
        for (verb, operation) in members(operations) {
            if operation["tags"][0] != tag["name"] {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap_or_default();
            let summary = operation["summary"].as_str().unwrap_or_default();
            renderer.operation(html, path, verb, operation);
            page.headings.push(Heading { anchor: id.to_owned(), text: summary.to_owned() });
            page.sections.push(SearchSection {
                heading: summary.to_owned(),
                anchor: id.to_owned(),
                text: format!("{} {path} {id}", verb.to_uppercase()),
            });
        }
    }
    Some(page)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten()
}

struct Renderer<'a> {
    schemas: &'a Value,
}

impl Renderer<'_> {
    /// Follows a reference to a schema, with the schema's name.
    fn resolve<'v>(&'v self, schema: &'v Value) -> (Option<&'v str>, &'v Value) {
        match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(REFERENCE)) {
            Some(name) => (Some(name), &self.schemas[name]),
            None => (None, schema),
        }
    }

    fn operation(&self, html: &mut String, path: &str, verb: &str, operation: &Value) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let summary = escape(operation["summary"].as_str().unwrap_or_default());
        let body = &operation["requestBody"]["content"]["application/json"];
        let answer = &operation["responses"]["200"]["content"]["application/json"];
        let _ = writeln!(
            html,
            "<section class=\"operation\"><h2 id=\"{id}\"><a class=\"anchor\" \
             href=\"#{id}\">{summary}</a></h2>\n\
             <p class=\"route\"><span class=\"verb {verb}\">{}</span> <code>{}</code></p>",
            verb.to_uppercase(),
            escape(path)
        );
        let _ = writeln!(
            html,
            "<p>{}</p>",
            code_words(operation["description"].as_str().unwrap_or_default())
        );
        self.parameters(html, operation);
        if !body.is_null() {
            html.push_str("<h3>Body</h3>\n");
            self.properties(html, &body["schema"], 0);
        }
        html.push_str("<h3>Answer</h3>\n");
        if let (Some(name), _) = self.resolve(&answer["schema"]) {
            let _ = writeln!(html, "<p>A <code>{}</code>.</p>", escape(name));
        }
        html.push_str("<details><summary>Fields of the answer</summary>\n");
        self.properties(html, &answer["schema"], 0);
        html.push_str("</details>\n");
        errors(html, operation);
        examples(html, body, answer);
        try_it(html, path, verb, operation, body);
        html.push_str("</section>\n");
    }

    fn parameters(&self, html: &mut String, operation: &Value) {
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown: Vec<&Value> =
            parameters.iter().filter(|parameter| parameter["in"] != "header").collect();
        if shown.is_empty() {
            return;
        }
        html.push_str("<h3>Parameters</h3>\n<dl class=\"fields\">\n");
        for parameter in shown {
            let schema = &parameter["schema"];
            field(
                html,
                parameter["name"].as_str().unwrap_or_default(),
                &self.type_of(schema),
                parameter["required"] == true,
                parameter["description"].as_str().unwrap_or_default(),
                schema,
            );
            html.push_str("</dd>\n");
        }
        html.push_str("</dl>\n");
    }

    /// What a value may be, in words.
    fn type_of(&self, schema: &Value) -> String {
        let (_, schema) = self.resolve(schema);
        let of = |schema: &Value| -> String {
            let schema = self.resolve(schema).1;
            match &schema["type"] {
                Value::String(name) if name == "array" => {
                    format!("array of {}", self.type_of(&schema["items"]))
                }
                Value::String(name) => name.clone(),
                Value::Array(names) => {
                    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
                }
                _ => String::new(),
            }
        };
        match ["anyOf", "oneOf"].iter().find_map(|name| schema[*name].as_array()) {
            Some(choices) => choices.iter().map(of).collect::<Vec<_>>().join(" or "),
            None => of(schema),
        }
    }

    /// The object in a schema: itself, an item of an array, or one choice of several.
    fn object_in<'v>(&'v self, schema: &'v Value) -> Option<&'v Value> {
        let (_, schema) = self.resolve(schema);
        if schema["properties"].is_object() {
            return Some(schema);
        }
        if schema["items"].is_object() {
            return self.object_in(&schema["items"]);
        }
        ["anyOf", "oneOf", "allOf"]
            .iter()
            .filter_map(|name| schema[*name].as_array())
            .flatten()
            .find_map(|choice| self.object_in(choice))
    }

    fn properties(&self, html: &mut String, schema: &Value, depth: usize) {
        let Some(object) = self.object_in(schema) else { return };
        let required = object["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        html.push_str("<dl class=\"fields\">\n");
        for (name, property) in members(&object["properties"]) {
            let resolved = self.resolve(property).1;
            let description = property["description"]
                .as_str()
                .or_else(|| resolved["description"].as_str())
                .unwrap_or_default();
            let is_required = required.iter().any(|word| word == name);
            field(html, name, &self.type_of(property), is_required, description, resolved);
            if depth + 1 < DEPTH_MAX && self.object_in(property).is_some() {
                self.properties(html, property, depth + 1);
            }
            html.push_str("</dd>\n");
        }
        html.push_str("</dl>\n");
    }
}

/// A line of a list of fields; its `dd` stays open for what is inside.
fn field(
    html: &mut String,
    name: &str,
    type_name: &str,
    is_required: bool,
    description: &str,
    schema: &Value,
) {
    let required = if is_required { " <span class=\"required\">required</span>" } else { "" };
    let _ = write!(
        html,
        "<dt><code>{}</code> <span class=\"type\">{}</span>{required}</dt><dd>{}",
        escape(name),
        escape(type_name),
        code_words(description)
    );
    let words: Vec<String> = schema["enum"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .map(|word| format!("<code>{}</code>", escape(word)))
        .collect();
    if !words.is_empty() {
        let _ = write!(html, " <span class=\"bounds\">One of {}.</span>", words.join(", "));
    }
    let bounds = bounds(schema);
    if !bounds.is_empty() {
        let _ = write!(html, " <span class=\"bounds\">({})</span>", bounds.join(", "));
    }
}

/// The limits of a value, in words.
fn bounds(schema: &Value) -> Vec<String> {
    let text = |name: &str| match &schema[name] {
        Value::Null => None,
        Value::String(text) => Some(format!("<code>{}</code>", escape(text))),
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
        text("pattern").map(|pattern| format!("pattern {pattern}")),
        text("default").map(|default| format!("default {default}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Text in which `words` between backticks are code.
fn code_words(text: &str) -> String {
    text.split('`')
        .enumerate()
        .map(
            |(place, part)| {
                if place % 2 == 1 { format!("<code>{}</code>", escape(part)) } else { escape(part) }
            },
        )
        .collect()
}

fn errors(html: &mut String, operation: &Value) {
    html.push_str(
        "<details><summary>Errors</summary>\n<table><thead><tr><th>Status</th><th>Code</th>\
         <th>Meaning</th></tr></thead><tbody>\n",
    );
    for (status, response) in members(&operation["responses"]) {
        if status == "200" {
            continue;
        }
        for line in response["description"].as_str().unwrap_or_default().lines() {
            let Some((code, meaning)) =
                line.strip_prefix("- `").and_then(|line| line.split_once("`: "))
            else {
                continue;
            };
            let _ = writeln!(
                html,
                "<tr><td>{status}</td><td><a \
                 href=\"/docs/errors#{code}\"><code>{code}</code></a></td><td>{}</td></tr>",
                escape(meaning)
            );
        }
    }
    html.push_str("</tbody></table></details>\n");
}

fn examples(html: &mut String, body: &Value, answer: &Value) {
    for (heading, example) in
        [("Example body", &body["example"]), ("Example answer", &answer["example"])]
    {
        if let Ok(text) = serde_json::to_string_pretty(example)
            && !example.is_null()
        {
            let _ = writeln!(
                html,
                "<details><summary>{heading}</summary><figure class=\"code\" \
                 data-language=\"json\"><pre \
                  tabindex=\"0\"><code>{}</code></pre></figure></details>",
                escape(&text)
            );
        }
    }
}

/// A form that sends the request; the script fills in what earlier answers told.
fn try_it(html: &mut String, path: &str, verb: &str, operation: &Value, body: &Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let _ = write!(
        html,
        "<details class=\"try\"><summary>Try it</summary><form data-verb=\"{}\" data-path=\"{}\" \
         data-operation=\"{id}\">",
        verb.to_uppercase(),
        escape(path)
    );
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    for parameter in parameters.iter().filter(|parameter| parameter["in"] != "header") {
        let name = escape(parameter["name"].as_str().unwrap_or_default());
        let place = parameter["in"].as_str().unwrap_or_default();
        let _ = write!(
            html,
            "<label>{name} <input name=\"{name}\" data-in=\"{place}\" autocomplete=\"off\" \
             spellcheck=\"false\"></label>"
        );
    }
    if !body.is_null() {
        let example = if body["example"].is_null() {
            Value::Object(Map::new())
        } else {
            body["example"].clone()
        };
        let text = serde_json::to_string_pretty(&example).unwrap_or_default();
        let rows = text.lines().count().clamp(3, 24);
        let _ = write!(
            html,
            "<label>Body <textarea name=\"body\" rows=\"{rows}\" \
             spellcheck=\"false\">{}</textarea></label>",
            escape(&text)
        );
    }
    html.push_str(
        "<button type=\"submit\">Send</button><output \
         aria-live=\"polite\"></output></form></details>\n",
    );
}
