//! The reference of the API: one page for each resource, made from the OpenAPI document, for
//! browsers and as Markdown. Each operation can be tried on the page with a key.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::fields::{FieldLine, bounds, code_words, fields_html, fields_markdown, words};
use super::markdown::{Heading, SearchSection, escape};

/// How many levels of fields are shown; the fields of a body or an answer are the first.
const DEPTH_MAX: usize = 4;
/// What a `$ref` to a schema begins with.
const SCHEMA_PREFIX: &str = "#/components/schemas/";

/// The page of a resource.
pub struct ResourcePage {
    pub name: String,
    pub title: String,
    pub html: String,
    pub markdown: String,
    pub headings: Vec<Heading>,
    pub sections: Vec<SearchSection>,
}

impl ResourcePage {
    pub fn path(&self) -> String {
        format!("/docs/api/{}", self.name)
    }
    pub fn markdown_path(&self) -> String {
        format!("/docs/api/{}.md", self.name)
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
        markdown: String::new(),
        headings: Vec::new(),
        sections: Vec::new(),
    };
    let html = &mut page.html;
    // Writing to a text cannot fail.
    let _ = writeln!(
        html,
        "<h1>{}</h1>\n<p>{}</p>\n\
         <p class=\"key\"><label>Test key for “Try it” <input id=\"key\" type=\"password\" \
         autocomplete=\"off\" spellcheck=\"false\" placeholder=\"sk_test_…\"></label> <span>It \
         stays in this tab.</span></p>",
        escape(&page.title),
        escape(tag["description"].as_str().unwrap_or_default())
    );
    let _ = writeln!(
        page.markdown,
        "# {}\n\n{}",
        page.title,
        tag["description"].as_str().unwrap_or_default()
    );
    let mut renderer =
        Renderer { schemas: &document["components"]["schemas"], shown: HashMap::new() };
    for (path, operations) in members(&document["paths"]) {
        for (verb, operation) in members(operations) {
            if operation["tags"][0] != tag["name"] {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap_or_default();
            let summary = operation["summary"].as_str().unwrap_or_default();
            let operation = ApiOperation { path, verb, id, summary, value: operation };
            let fields = renderer.operation(html, &mut page.markdown, &operation);
            page.headings.push(Heading { anchor: id.to_owned(), text: summary.to_owned() });
            page.sections.push(SearchSection {
                heading: summary.to_owned(),
                anchor: id.to_owned(),
                text: format!("{} {path} {id} {fields}", verb.to_uppercase()),
            });
        }
    }
    // A tag without routes has no page: the events that receivers are sent have such a tag.
    (!page.sections.is_empty()).then_some(page)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten()
}

/// One operation of the document.
struct ApiOperation<'a> {
    path: &'a str,
    /// In lower case, as the document has it.
    verb: &'a str,
    id: &'a str,
    summary: &'a str,
    value: &'a Value,
}

impl ApiOperation<'_> {
    fn text(&self, name: &str) -> &str {
        self.value[name].as_str().unwrap_or_default()
    }
    fn body(&self) -> &Value {
        &self.value["requestBody"]["content"]["application/json"]
    }
    fn answer(&self) -> &Value {
        &self.value["responses"]["200"]["content"]["application/json"]
    }
    /// The parameters of the path and the query. Headers are left out: the guides explain them.
    fn parameters(&self) -> impl Iterator<Item = &Value> {
        let parameters = self.value["parameters"].as_array().map(Vec::as_slice);
        parameters.unwrap_or_default().iter().filter(|parameter| parameter["in"] != "header")
    }
    /// Status, code and meaning of each refusal.
    fn errors(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        members(&self.value["responses"]).filter(|(status, _)| *status != "200").flat_map(
            |(status, response)| {
                let lines = response["description"].as_str().unwrap_or_default().lines();
                lines.filter_map(move |line| {
                    let (code, meaning) = line.strip_prefix("- `")?.split_once("`: ")?;
                    Some((status.as_str(), code, meaning))
                })
            },
        )
    }
    /// The identifier that replaces `{id}` in the example's path: the one of the example's answer
    /// if it belongs to the resource that the path names before `{id}`, otherwise the prefix of
    /// such identifiers and `…`.
    fn example_id(&self) -> String {
        let resource = self.path.split("/{id}").next().and_then(|path| path.rsplit('/').next());
        let resource = resource.unwrap_or_default();
        let kind = match resource.strip_suffix("ies") {
            Some(stem) => format!("{stem}y"),
            None => resource.trim_end_matches('s').to_owned(),
        };
        let example = &self.answer()["example"];
        let prefix = format!("{kind}_");
        [&example["id"], &example[format!("{prefix}id")]]
            .into_iter()
            .filter_map(Value::as_str)
            .find(|id| id.starts_with(&prefix))
            .map_or_else(|| format!("{prefix}…"), str::to_owned)
    }
    /// The request of the example as a command for a shell.
    fn curl(&self) -> String {
        let path = self.path.replace("{id}", &self.example_id());
        let verb = match self.verb {
            "get" | "post" => String::new(),
            verb => format!(" -X {}", verb.to_uppercase()),
        };
        let mut text = format!(
            "curl -sS{verb} \"$HUNDI_BASE_URL{path}\" \\\n  -H \"Authorization: Bearer \
             $HUNDI_API_KEY\""
        );
        if self.verb == "post" {
            text.push_str(
                " \\\n  -H \"Content-Type: application/json\" \\\n  -H \"Idempotency-Key: \
                 $(openssl rand -hex 16)\"",
            );
            let body = match &self.body()["example"] {
                Value::Null => "{}".to_owned(),
                example => pretty(example).replace('\'', "'\\''"),
            };
            let _ = write!(text, " \\\n  -d '{body}'");
        }
        text
    }
}

fn pretty(value: &Value) -> String {
    // A value that was read can be written.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

struct Renderer<'a> {
    schemas: &'a Value,
    /// The schemas of answers whose fields are on the page already, and the operation that shows
    /// them.
    shown: HashMap<String, String>,
}

impl Renderer<'_> {
    /// The schema that a `$ref` names, and its name. A schema without `$ref` is answered as it is.
    fn resolve<'v>(&'v self, schema: &'v Value) -> (Option<&'v str>, &'v Value) {
        match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMA_PREFIX)) {
            Some(name) => (Some(name), &self.schemas[name]),
            None => (None, schema),
        }
    }

    /// Writes an operation into both forms of the page, and answers the names of its fields.
    fn operation(
        &mut self,
        html: &mut String,
        markdown: &mut String,
        operation: &ApiOperation<'_>,
    ) -> String {
        let ApiOperation { path, id, .. } = operation;
        let summary = escape(operation.summary);
        let verb = operation.verb.to_uppercase();
        let description = operation.text("description");
        let _ = writeln!(
            html,
            "<section class=\"operation\"><h2 id=\"{id}\"><a class=\"anchor\" \
             href=\"#{id}\">{summary}</a></h2>\n\
             <p class=\"route\"><span class=\"verb {}\">{verb}</span> <code>{}</code></p>\n\
             <p>{}</p>",
            operation.verb,
            escape(path),
            code_words(description)
        );
        let _ =
            writeln!(markdown, "\n## {}\n\n`{verb} {path}`\n\n{description}", operation.summary);
        let parameters: Vec<FieldLine> =
            operation.parameters().map(|parameter| self.parameter(parameter)).collect();
        let body_fields = self.fields(&operation.body()["schema"], 0);
        for (heading, fields) in [("Parameters", &parameters), ("Body", &body_fields)] {
            if !fields.is_empty() {
                let _ = writeln!(html, "<h3>{heading}</h3>");
                fields_html(html, fields);
                let _ = writeln!(markdown, "\n### {heading}\n");
                fields_markdown(markdown, fields, 0);
            }
        }
        let example = operation.curl();
        code_html(html, "Example request", "bash", &example);
        let _ = writeln!(markdown, "\n### Example\n\n```bash\n{example}\n```");
        let answer_fields = self.answer(html, markdown, operation);
        errors(html, markdown, operation);
        try_it(html, operation);
        html.push_str("</section>\n");
        let all = parameters.iter().chain(&body_fields).chain(&answer_fields);
        all.map(|field| field.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Writes what an operation answers. A page shows the fields of each kind of object once. The
    /// result is the fields that were written here.
    fn answer(
        &mut self,
        html: &mut String,
        markdown: &mut String,
        operation: &ApiOperation<'_>,
    ) -> Vec<FieldLine> {
        let answer = operation.answer();
        let name = self.resolve(&answer["schema"]).0.unwrap_or_default().to_owned();
        html.push_str("<h3>Answer</h3>\n");
        let _ = writeln!(markdown, "\n### Answer");
        let before = self.shown.get(&name).cloned();
        let mut fields = Vec::new();
        match before {
            Some(place) => {
                let _ =
                    writeln!(html, "<p>Type: <a href=\"#{place}\"><code>{name}</code></a>.</p>");
                let _ = writeln!(markdown, "\nType: `{name}`, as above.");
            }
            None => {
                fields = self.fields(&answer["schema"], 0);
                if !name.is_empty() {
                    self.shown.insert(name.clone(), operation.id.to_owned());
                    let _ = writeln!(html, "<p>Type: <code>{}</code>.</p>", escape(&name));
                    let _ = writeln!(markdown, "\nType: `{name}`.");
                }
                html.push_str("<details><summary>Fields of the answer</summary>\n");
                fields_html(html, &fields);
                html.push_str("</details>\n");
                markdown.push('\n');
                fields_markdown(markdown, &fields, 0);
            }
        }
        if !answer["example"].is_null() {
            let example = pretty(&answer["example"]);
            code_html(html, "Example answer", "json", &example);
            let _ = writeln!(markdown, "\n```json\n{example}\n```");
        }
        fields
    }

    fn parameter(&self, parameter: &Value) -> FieldLine {
        let text = |name: &str| parameter[name].as_str().unwrap_or_default().to_owned();
        let is_required = parameter["required"] == true;
        self.field(text("name"), is_required, text("description"), &parameter["schema"])
    }

    fn field(
        &self,
        name: String,
        is_required: bool,
        description: String,
        schema: &Value,
    ) -> FieldLine {
        let resolved = self.resolve(schema).1;
        FieldLine {
            name,
            type_name: self.type_of(schema),
            is_required,
            description,
            words: words(resolved),
            bounds: bounds(resolved),
            inside: Vec::new(),
        }
    }

    /// The fields of the object in a schema, in the document's order.
    fn fields(&self, schema: &Value, depth: usize) -> Vec<FieldLine> {
        let Some(object) = self.object_in(schema) else { return Vec::new() };
        let required = object["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let field = |(name, property): (&String, &Value)| {
            let resolved = self.resolve(property).1;
            let description = property["description"]
                .as_str()
                .or_else(|| resolved["description"].as_str())
                .unwrap_or_default();
            let is_required = required.iter().any(|word| word == name);
            let mut field = self.field(name.clone(), is_required, description.to_owned(), property);
            if depth + 1 < DEPTH_MAX {
                field.inside = self.fields(property, depth + 1);
            }
            field
        };
        members(&object["properties"]).map(field).collect()
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
}

fn errors(html: &mut String, markdown: &mut String, operation: &ApiOperation<'_>) {
    html.push_str(
        "<details><summary>Errors</summary>\n<table><thead><tr><th>Status</th><th>Code</th>\
         <th>Meaning</th></tr></thead><tbody>\n",
    );
    markdown.push_str("\n### Errors\n\n| Status | Code | Meaning |\n|---|---|---|\n");
    for (status, code, meaning) in operation.errors() {
        let _ = writeln!(
            html,
            "<tr><td>{status}</td><td><a \
             href=\"/docs/errors#{code}\"><code>{code}</code></a></td><td>{}</td></tr>",
            escape(meaning)
        );
        let _ = writeln!(markdown, "| {status} | `{code}` | {meaning} |");
    }
    html.push_str("</tbody></table></details>\n");
}

fn code_html(html: &mut String, heading: &str, language: &str, text: &str) {
    let _ = writeln!(
        html,
        "<details><summary>{heading}</summary><figure class=\"code\" \
         data-language=\"{language}\"><pre tabindex=\"0\"><code>{}</code></pre></figure></details>",
        escape(text)
    );
}

/// A form that sends the request; the script fills in values from earlier answers.
fn try_it(html: &mut String, operation: &ApiOperation<'_>) {
    let _ = write!(
        html,
        "<details class=\"try\"><summary>Try it</summary><form data-verb=\"{}\" data-path=\"{}\" \
         data-operation=\"{}\">",
        operation.verb.to_uppercase(),
        escape(operation.path),
        operation.id
    );
    for parameter in operation.parameters() {
        let name = escape(parameter["name"].as_str().unwrap_or_default());
        let place = parameter["in"].as_str().unwrap_or_default();
        let _ = write!(
            html,
            "<label>{name} <input name=\"{name}\" data-in=\"{place}\" autocomplete=\"off\" \
             spellcheck=\"false\"></label>"
        );
    }
    if !operation.body().is_null() {
        let text = match &operation.body()["example"] {
            Value::Null => "{}".to_owned(),
            example => pretty(example),
        };
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
