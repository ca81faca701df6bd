//! The OpenAPI 3.1 document, made from the same forms, views, filters and codes that serve the
//! requests.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::incoming::{IDEMPOTENCY_KEY_LENGTH_MAX, IDEMPOTENCY_KEY_LENGTH_MIN};
use crate::http::query::{FilterKind, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX};
use crate::http::route::{ResourcePath, Route, Verb};
use crate::kernel::{Code, ObjectKind};

mod descriptions;

/// A request and an answer of each operation. `tests/openapi/examples.sh --write` writes the
/// answers. Sent in the order of the file, the requests lead to a settled payout.
const EXAMPLES: &str = include_str!("examples.json");

/// Schemas whose name in the document differs from that in the code: the name in the code would
/// collide with another one in generated clients, or would say nothing to callers.
const RENAMED: &[(&str, &str)] = &[
    ("Address", "PostalAddress"),
    ("Nothing", "EmptyBody"),
    ("StatusChange", "RefundStatusChange"),
    // Its member `currency` and the member `payout_currency` of Transfer would both be called
    // TransferPayoutCurrencyEnum.
    ("TransferPayout", "SettledPayout"),
];

/// The tag of webhooks. No resource may have the same tag: generators make one file for each tag,
/// and would write that file twice.
const WEBHOOKS_TAG: &str = "webhooks";

/// The document, for a server at `public_url`. `resources` describes the first segments of the
/// routes' paths, which become the tags.
pub fn document(routes: &[Route], resources: &[ResourcePath], public_url: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut bodies = Map::new();
    // A test fails for an operation without an example.
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
    for route in routes {
        let response = (route.response)(&mut generator);
        let mut operation = operation(route, response.to_value(), &mut bodies);
        add_examples(&mut operation, &examples);
        if route.verb == Verb::Post && !route.path.contains("{id}") {
            operation["responses"]["200"]["links"] = links(route, routes);
        }
        paths.entry(route.path).or_default().insert(route.verb.as_str().to_lowercase(), operation);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.append(&mut bodies);
    schemas.insert("ApiError".into(), error_schema());
    schemas.insert("ApiErrorEntry".into(), error_entry_schema());
    schemas.insert("ApiErrorMetadata".into(), error_metadata_schema());
    for (name, renamed) in RENAMED {
        if let Some(schema) = schemas.remove(*name) {
            schemas.insert((*renamed).into(), schema);
        }
    }
    let mut tags: BTreeMap<&str, &str> =
        resources.iter().map(|resource| (resource.name, resource.description)).collect();
    tags.insert(WEBHOOKS_TAG, "What receivers are sent.");
    let tags: Vec<Value> = tags
        .into_iter()
        .map(|(name, description)| json!({ "name": name, "description": description }))
        .collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "hundi",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Pays Indian rupees into NRE bank accounts, funded by stablecoin \
             deposits. Times are Unix seconds, amounts are decimal strings. Clients ignore fields \
             and event types that they do not know.",
            "license": { "name": "MIT", "identifier": "MIT" },
            "contact": { "name": "The operator of this server" },
        },
        "servers": [{ "url": public_url }],
        "security": [{ "api_key": [] }],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks(routes),
        "components": {
            "pathItems": deliveries(routes),
            "securitySchemes": { "api_key": { "type": "http", "scheme": "bearer",
                "description": "sk_test_…, sk_live_…, rk_test_… or rk_live_…" } },
            "schemas": schemas,
            "headers": headers(),
        },
    });
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        for (name, schema) in schemas {
            finish(schema, name);
        }
    }
    finish(&mut document, "");
    document
}

fn add_examples(operation: &mut Value, examples: &Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let example = examples[id].clone();
    for (place, name) in [
        ("/requestBody/content/application~1json", "request"),
        ("/responses/200/content/application~1json", "response"),
    ] {
        if let Some(media) = operation.pointer_mut(place)
            && !example[name].is_null()
        {
            media["example"] = example[name].clone();
        }
    }
}

/// Renames references, describes each property that has no description of its own, and writes a
/// property's description of one paragraph in one line. `place` is where the node stands, such as
/// `CreateTransfer.funding`.
fn finish(node: &mut Value, place: &str) {
    match node {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                for (name, renamed) in RENAMED {
                    if *reference == format!("#/components/schemas/{name}") {
                        *reference = format!("#/components/schemas/{renamed}");
                    }
                }
            }
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for (name, schema) in properties {
                    let here = format!("{place}.{name}");
                    let known =
                        descriptions::of_place(&here).or_else(|| descriptions::of_name(name));
                    if let (Value::Object(schema), Some(description)) = (&mut *schema, known) {
                        schema.entry("description").or_insert(description.into());
                    }
                    // A description of several paragraphs is Markdown, and needs its line breaks.
                    if let Some(Value::String(description)) = schema.get_mut("description")
                        && !description.contains("\n\n")
                    {
                        *description = description.replace('\n', " ");
                    }
                    finish(schema, &here);
                }
            }
            members
                .iter_mut()
                .filter(|(name, _)| *name != "properties")
                .for_each(|(_, member)| finish(member, place));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| finish(item, place)),
        _ => {}
    }
}

/// Every type of event: the values that the filter `type` of the list of events takes.
fn event_types(routes: &[Route]) -> &'static [&'static str] {
    let lists = routes.iter().filter_map(|route| route.list);
    let mut filters = lists.filter(|(kind, _)| *kind == ObjectKind::Event).flat_map(|list| list.1);
    let types = filters.find_map(|filter| match filter.kind {
        FilterKind::OneOf(types) if filter.name == "type" => Some(types),
        _ => None,
    });
    types.unwrap_or_default()
}

/// What receivers are sent: one entry for each type of event. Each entry only refers to a component
/// with the description. If the description stood here, openapi-generator would make methods that
/// call the receiver, and those in Python would not compile.
fn webhooks(routes: &[Route]) -> Map<String, Value> {
    let entry = |event_type: &&'static str| {
        let reference = format!("#/components/pathItems/{event_type}");
        ((*event_type).to_owned(), json!({ "$ref": reference }))
    };
    event_types(routes).iter().map(entry).collect()
}

/// The request that a receiver gets, for each type of event.
fn deliveries(routes: &[Route]) -> Map<String, Value> {
    let header = |name: &str, description: &str| {
        json!({ "name": name, "in": "header", "required": true, "description": description,
            "schema": { "type": "string" } })
    };
    let entry = |event_type: &&'static str| {
        let operation = json!({
            "operationId": format!("on_{}", event_type.replace('.', "_")),
            "summary": format!("Receive {event_type}"),
            "description": "Answer with 2xx at once and work on the event afterwards: fetch the \
                            object that linked_id names. Deliveries can come twice and out of \
                            order.",
            "tags": [WEBHOOKS_TAG],
            "security": [],
            "parameters": [
                header("Webhook-Id", "ID of the event, the same on every attempt."),
                header("Webhook-Timestamp", "Unix seconds of the attempt."),
                header("Webhook-Signature", "Entries v1,<base64> separated by spaces."),
            ],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Event" } } } },
            "responses": {
                "2XX": { "description": "The event was received." },
                "4XX": { "description": "The signature is wrong; the event is sent again later." },
            },
        });
        ((*event_type).to_owned(), json!({ "post": operation }))
    };
    event_types(routes).iter().map(entry).collect()
}

/// Headers of answers.
fn headers() -> Value {
    let header = |schema: &str, description: &str| {
        let schema = json!({ "type": schema });
        json!({ "description": description, "schema": schema })
    };
    json!({
        "Request-Id": header("string", "Finds the request in the operator's log."),
        "RateLimit": header("string", "What is left of the key's rate, and when it is full again."),
        "RateLimit-Policy": header("string", "The key's rate."),
        "Retry-After": header("integer", "Seconds to wait before the request is sent again."),
        "Idempotent-Replayed": header("string", "`true` where the answer of an earlier request \
            with the same idempotency key is sent again."),
        "WWW-Authenticate": header("string", "The scheme that keys are sent with: `Bearer`."),
    })
}

/// References to the headers that answers of a status carry.
fn headers_of(status: u16, is_post: bool) -> Map<String, Value> {
    let mut names = vec!["Request-Id", "RateLimit", "RateLimit-Policy"];
    match status {
        401 => names = vec!["Request-Id", "WWW-Authenticate"],
        409 | 429 | 503 => names.push("Retry-After"),
        200 | 400 | 403 | 404 if is_post => names.push("Idempotent-Replayed"),
        _ => {}
    }
    let reference = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    names.into_iter().map(|name| (name.to_owned(), reference(name))).collect()
}

fn operation(route: &Route, response: Value, bodies: &mut Map<String, Value>) -> Value {
    let (resource, action) = route.permission();
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": format!("Permission: `{resource}:{action}`."),
        "tags": [resource],
        "parameters": parameters(route),
        "responses": responses(route, response),
    });
    if let Some(body) = &route.body {
        bodies.insert(body.name.into(), body.schema.clone());
        operation["requestBody"] = json!({
            "required": body.is_required,
            "content": { "application/json": { "schema": {
                "$ref": format!("#/components/schemas/{}", body.name) } } },
        });
    }
    operation
}

/// Links from a creation's answer to the operations on the created object.
fn links(creation: &Route, routes: &[Route]) -> Value {
    let below = format!("{}/{{id}}", creation.path);
    let helpers = below.replacen("/v1/", "/v1/test_helpers/", 1);
    let about = |route: &&Route| route.path.starts_with(&below) || route.path.starts_with(&helpers);
    let link = |route: &Route| {
        let id = operation_id(route);
        (id.clone(), json!({ "operationId": id, "parameters": { "id": "$response.body#/id" } }))
    };
    Value::Object(routes.iter().filter(about).map(link).collect())
}

/// `create_transfer`, `list_transfers`, `rotate_webhook_endpoint_secret`, `test_settle_payout`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/v1/");
    let (prefix, path) = match path.strip_prefix("test_helpers/") {
        Some(path) => ("test_", path),
        None => ("", path),
    };
    let (resource, below) = match path.split_once("/{id}") {
        Some(parts) => parts,
        // An operation on the resource as a whole, such as events/checkpoint.
        None => path.split_once('/').unwrap_or((path, "")),
    };
    let one = match resource.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if resource == "chaos" => resource.to_owned(),
        None => resource.strip_suffix('s').unwrap_or(resource).to_owned(),
    };
    let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
    let id = match (route.verb, parts.as_slice()) {
        (Verb::Post, []) if !prefix.is_empty() => resource.to_owned(),
        (Verb::Get, []) if route.list.is_some() => format!("list_{resource}"),
        (Verb::Get, [part]) if route.list.is_some() => format!("list_{one}_{part}"),
        (Verb::Get, []) if route.path.contains("{id}") => format!("get_{one}"),
        (Verb::Get, []) => format!("get_{resource}"),
        (Verb::Get, parts) => format!("get_{one}_{}", parts.join("_")),
        (Verb::Delete, _) => format!("delete_{one}"),
        (Verb::Post, []) if route.path.contains("{id}") => format!("update_{one}"),
        (Verb::Post, []) => format!("create_{one}"),
        // The last part begins with a verb, such as `rotate_secret`.
        (Verb::Post, [parts @ .., last]) => {
            let (verb, rest) = last.split_once('_').unwrap_or((last, ""));
            let rest = if rest.is_empty() { None } else { Some(rest) };
            let words: Vec<&str> = parts.iter().copied().chain(rest).collect();
            [vec![verb, one.as_str()], words].concat().join("_")
        }
    };
    format!("{prefix}{id}")
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        // A text that is no identifier refers to nothing: 404, not 400.
        parameters.push(json!({ "name": "id", "in": "path", "required": true,
            "description": "ID of the object.",
            "schema": { "type": "string", "minLength": 1 } }));
    }
    if let Some((cursor, filters)) = route.list {
        let cursor_schema = json!({ "type": "string", "pattern": id_pattern(cursor) });
        parameters.push(json!({ "name": "limit", "in": "query",
            "description": "Objects on a page.", "schema": { "type": "integer",
            "minimum": 1, "maximum": PAGE_LIMIT_MAX, "default": PAGE_LIMIT_DEFAULT } }));
        parameters.push(json!({ "name": "starting_after", "in": "query", "schema": cursor_schema,
            "description": "The page after this ID. Not combined with ending_before." }));
        parameters.push(json!({ "name": "ending_before", "in": "query", "schema": cursor_schema,
            "description": "What lies before this ID, nearest first. Not combined with \
                starting_after." }));
        parameters.push(json!({ "name": "order", "in": "query",
            "description": "Oldest first (asc) or newest first (desc).",
            "schema": { "type": "string", "enum": ["asc", "desc"], "default": "asc" } }));
        for filter in filters {
            let description = match filter.name.split_once('.') {
                Some((_, comparison)) => format!(
                    "Only objects that were created {} this time, in Unix seconds.",
                    descriptions::of_comparison(comparison)
                ),
                None if matches!(filter.kind, FilterKind::Wait) => {
                    "Seconds to wait for an object where the page would be empty; the answer comes \
                     as soon as there is one. Not combined with ending_before or order=desc."
                        .to_owned()
                }
                None => format!("Only objects with this {}.", filter.name),
            };
            parameters.push(json!({ "name": filter.name, "in": "query",
                "description": description, "schema": filter.schema() }));
        }
    }
    for parameter in route.parameters {
        let description = descriptions::of_parameter(parameter.name);
        parameters.push(json!({ "name": parameter.name, "in": "query",
            "description": description, "schema": parameter.schema() }));
    }
    if route.verb == Verb::Post {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": true,
            "description": "One key per operation, generated once and reused on every retry. A \
             UUID is recommended.",
            "schema": { "type": "string", "minLength": IDEMPOTENCY_KEY_LENGTH_MIN,
                "maxLength": IDEMPOTENCY_KEY_LENGTH_MAX,
                "pattern": r#"^[!#-~]([ -~]*[!#-~])?$"# },
        }));
    }
    parameters
}

fn id_pattern(kind: ObjectKind) -> String {
    format!("^{}_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$", kind.as_str())
}

fn responses(route: &Route, response: Value) -> Map<String, Value> {
    let mut codes = vec![
        Code::SecretKeyInvalid,
        Code::ActionUnauthorizedNow,
        Code::ActionUnauthorized,
        Code::RateLimitExceeded,
        Code::InternalError,
        Code::ServiceUnavailable,
        // On every route a header or the query can be wrong.
        Code::RequestQueryParameterInvalid,
        Code::ParameterEmpty,
        Code::ParameterValueInvalid,
        Code::ParameterMaxLengthInvalid,
    ];
    if route.path.contains("{id}") {
        codes.push(Code::ObjectNotFound);
    }
    if route.is_test_helper() {
        codes.push(Code::TestmodeActionOnly);
    }
    if route.verb == Verb::Post {
        codes.extend([
            Code::RequestBodyInvalid,
            Code::ParameterMinLengthInvalid,
            Code::ParameterRangeInvalid,
            Code::ParameterUnexpected,
            Code::IdempotencyKeyReuse,
            Code::ResourceLocked,
        ]);
    }
    codes.extend_from_slice(route.codes);
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        let same = by_status.entry(code.http_status()).or_default();
        if !same.contains(&code) {
            same.push(code);
        }
    }
    let mut content = json!({ "application/json": { "schema": response } });
    if route.answers_pdf {
        content["application/pdf"] =
            json!({ "schema": { "type": "string", "contentMediaType": "application/pdf" } });
    }
    if route.answers_csv {
        content["text/csv"] = json!({ "schema": { "type": "string" } });
    }
    let is_post = route.verb == Verb::Post;
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        json!({ "description": "Done.", "headers": headers_of(200, is_post), "content": content }),
    );
    for (status, codes) in by_status {
        let meanings: Vec<String> = codes.into_iter().map(meaning).collect();
        responses.insert(
            status.to_string(),
            json!({
                "description": meanings.join("\n"),
                "headers": headers_of(status, is_post),
                "content": { "application/json": { "schema": {
                    "$ref": "#/components/schemas/ApiError" } } },
            }),
        );
    }
    responses
}

/// A line of Markdown: the code, and what it means.
fn meaning(code: Code) -> String {
    format!("- `{}`: {}", code.as_str(), code.meaning())
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "Why a request was refused.",
        "required": ["object", "errors", "http_status_code"],
        "properties": {
            "object": { "type": "string", "enum": ["error"] },
            "errors": { "type": "array", "minItems": 1,
                "items": { "$ref": "#/components/schemas/ApiErrorEntry" } },
            "http_status_code": { "type": "integer" },
        },
    })
}

/// `code` is a plain string: codes are added, and generators would make a closed type of an enum.
fn error_entry_schema() -> Value {
    let meanings: Vec<String> = Code::ALL.iter().copied().map(meaning).collect();
    json!({
        "type": "object",
        "description": "One problem of a request.",
        "required": ["code", "message", "metadata"],
        "properties": {
            "code": { "type": "string", "examples": [Code::ParameterEmpty.as_str()],
                "description": format!("Stable code that programs branch on. New codes can be \
                    added: treat one that you do not know by the HTTP status.\n\nThe codes of \
                    today:\n\n{}", meanings.join("\n")) },
            "message": { "type": "string" },
            "metadata": { "$ref": "#/components/schemas/ApiErrorMetadata",
                "description": "What the problem is about." },
        },
    })
}

fn error_metadata_schema() -> Value {
    let properties: Map<String, Value> = descriptions::ERROR_METADATA
        .iter()
        .map(|(name, schema_type, description)| {
            ((*name).to_owned(), json!({ "type": schema_type, "description": description }))
        })
        .collect();
    json!({
        "type": "object",
        "description": "What a problem is about. Members are there where they apply, and new ones \
            can be added.",
        "properties": properties,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::router::Router;
    use crate::routes::{resource_paths, routes};

    #[test]
    fn every_route_is_listed_once_and_its_resource_has_permissions() {
        let router = Router::new(routes()).unwrap();
        for route in &router.routes {
            let name = route.permission().0;
            assert!(resource_paths().iter().any(|path| path.name == name), "{}", route.path);
        }
        let document = document(&router.routes, &resource_paths(), "http://127.0.0.1:8080");
        let operations: Vec<&Value> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .collect();
        assert_eq!(operations.len(), router.routes.len());
        let ids: BTreeSet<&str> =
            operations.iter().map(|operation| operation["operationId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), operations.len(), "{ids:?}");
        for id in [
            "create_transfer",
            "list_webhook_endpoint_deliveries",
            "update_beneficiary",
            "resolve_transfer_funding",
            "diagnose_transfer_funding",
            "rotate_webhook_endpoint_secret",
            "get_payout_payment_advice",
            "test_require_beneficiary_input",
            "test_clock",
            "test_chaos",
            "test_get_chaos",
            "test_get_chaos_report",
            "test_stop_chaos",
        ] {
            assert!(ids.contains(id), "{id} of {ids:?}");
        }
    }

    /// The codes that the document lists for a route.
    fn listed<'a>(document: &'a Value, route: &Route) -> BTreeSet<&'a str> {
        let operation = &document["paths"][route.path][route.verb.as_str().to_lowercase()];
        let responses = operation["responses"].as_object().unwrap();
        let texts = responses.values().filter_map(|response| response["description"].as_str());
        let codes = texts.flat_map(str::lines).filter_map(|line| line.strip_prefix("- `"));
        codes.filter_map(|rest| rest.split('`').next()).collect()
    }

    /// On every route a header or the query can be wrong; only a POST has a body and an idempotency
    /// key.
    #[test]
    fn each_operation_lists_what_can_be_wrong_with_its_requests() {
        let document = document(&routes(), &resource_paths(), "http://127.0.0.1:8080");
        for route in routes() {
            let (listed, what) = (listed(&document, &route), (route.verb, route.path));
            for code in [
                Code::RequestQueryParameterInvalid,
                Code::ParameterEmpty,
                Code::ParameterValueInvalid,
                Code::ParameterMaxLengthInvalid,
            ] {
                assert!(listed.contains(code.as_str()), "{what:?} lacks {code:?}");
            }
            for code in [
                Code::RequestBodyInvalid,
                Code::ParameterMinLengthInvalid,
                Code::ParameterUnexpected,
                Code::IdempotencyKeyReuse,
            ] {
                let is_post = route.verb == Verb::Post;
                assert_eq!(listed.contains(code.as_str()), is_post, "{what:?} {code:?}");
            }
        }
    }

    /// Finds the properties and parameters without a description, and says where each stands.
    fn undescribed(place: &str, node: &Value, found: &mut Vec<String>) {
        let is_silent =
            |node: &Value| node["description"].as_str().is_none_or(|text| text.is_empty());
        match node {
            Value::Object(members) => {
                if let Some(Value::Object(properties)) = members.get("properties") {
                    let silent = properties.iter().filter(|(_, schema)| is_silent(schema));
                    found.extend(silent.map(|(name, _)| format!("{place}.{name}")));
                }
                if members.contains_key("in") && is_silent(node) {
                    found.push(format!("{place} {}", members["name"]));
                }
                for (name, member) in members {
                    undescribed(&format!("{place}/{name}"), member, found);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| undescribed(place, item, found)),
            _ => {}
        }
    }

    #[test]
    fn everything_is_described_and_every_event_is_a_webhook() {
        let document = document(&routes(), &resource_paths(), "http://127.0.0.1:8080");
        let mut found = Vec::new();
        undescribed("", &document["paths"], &mut found);
        undescribed("", &document["components"], &mut found);
        assert_eq!(found, Vec::<String>::new());
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (verb, operation) in operations.as_object().unwrap() {
                let answer = &operation["responses"]["200"]["content"]["application/json"];
                assert!(answer["example"].is_object(), "{verb} {path} has no example answer");
                let body = &operation["requestBody"]["content"]["application/json"];
                assert!(body.is_null() || body["example"].is_object(), "{verb} {path}");
            }
        }
        for tag in document["tags"].as_array().unwrap() {
            assert_ne!(tag["description"], "", "{tag}");
        }
        let events: BTreeSet<&str> = crate::webhooks::event_types().into_iter().collect();
        let webhooks = document["webhooks"].as_object().unwrap();
        assert_eq!(webhooks.keys().map(String::as_str).collect::<BTreeSet<_>>(), events);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in ["List", "Error", "Address", "Nothing", "TransferPayout"] {
            assert!(!schemas.contains_key(name), "{name}");
        }
        assert!(schemas.contains_key("TransferList"), "{:?}", schemas.keys());
    }
}
