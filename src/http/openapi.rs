//! The OpenAPI 3.1 document, made from the same forms, views, filters and codes that serve the
//! requests.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::incoming::{IDEMPOTENCY_KEY_LENGTH_MAX, IDEMPOTENCY_KEY_LENGTH_MIN};
use super::query::{PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX};
use super::route::{Route, Verb};
use crate::kernel::{Code, ObjectKind};

/// The document, for a server at `public_url`.
pub fn document(routes: &[Route], public_url: &str) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut bodies = Map::new();
    for route in routes {
        let response = (route.response)(&mut generator);
        let mut operation = operation(route, response.to_value(), &mut bodies);
        if route.verb == Verb::Post && !route.path.contains("{id}") {
            operation["responses"]["200"]["links"] = links(route, routes);
        }
        paths.entry(route.path).or_default().insert(route.verb.as_str().to_lowercase(), operation);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.append(&mut bodies);
    schemas.insert("Error".into(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "hundi",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Pays Indian rupees into NRE bank accounts, funded by stablecoin \
             deposits. Times are Unix seconds, amounts are decimal strings. Clients ignore fields \
             and event types that they do not know.",
        },
        "servers": [{ "url": public_url }],
        "security": [{ "api_key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "api_key": { "type": "http", "scheme": "bearer",
                "description": "sk_test_…, sk_live_…, rk_test_… or rk_live_…" } },
            "schemas": schemas,
        },
    })
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

/// What can be asked about an object that a creation answers.
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

fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/v1/").replace("/{id}", "_by_id").replace('/', "_");
    format!("{}_{path}", route.verb.as_str().to_lowercase())
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut parameters = Vec::new();
    if route.path.contains("{id}") {
        // A text that is no identifier refers to nothing: 404, not 400.
        parameters.push(json!({ "name": "id", "in": "path", "required": true,
            "schema": { "type": "string", "minLength": 1 } }));
    }
    if let Some((cursor, filters)) = route.list {
        let cursor_schema = json!({ "type": "string", "pattern": id_pattern(cursor) });
        parameters.push(json!({ "name": "limit", "in": "query", "schema": { "type": "integer",
            "minimum": 1, "maximum": PAGE_LIMIT_MAX, "default": PAGE_LIMIT_DEFAULT } }));
        parameters.push(json!({ "name": "starting_after", "in": "query", "schema": cursor_schema,
            "description": "The page after this ID. Not combined with ending_before." }));
        parameters.push(json!({ "name": "ending_before", "in": "query", "schema": cursor_schema,
            "description": "The page before this ID. Not combined with starting_after." }));
        parameters.push(json!({ "name": "order", "in": "query", "schema": { "type": "string",
                "enum": ["asc", "desc"], "default": "asc" } }));
        for filter in filters {
            parameters
                .push(json!({ "name": filter.name, "in": "query", "schema": filter.schema() }));
        }
    }
    for parameter in route.parameters {
        parameters
            .push(json!({ "name": parameter.name, "in": "query", "schema": parameter.schema() }));
    }
    if route.verb == Verb::Post {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": true,
            "description": "One key per operation, generated once and reused on every retry. A \
             UUID is recommended.",
            "schema": { "type": "string", "minLength": IDEMPOTENCY_KEY_LENGTH_MIN,
                "maxLength": IDEMPOTENCY_KEY_LENGTH_MAX, "pattern": r#"^[!#-~]+$"# },
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
        Code::RequestQueryParameterInvalid,
        Code::RequestBodyInvalid,
    ];
    if route.path.contains("{id}") {
        codes.push(Code::ObjectNotFound);
    }
    if route.is_test_helper() {
        codes.push(Code::TestmodeActionOnly);
    }
    if route.verb == Verb::Post {
        codes.extend([
            Code::ParameterEmpty,
            Code::ParameterValueInvalid,
            Code::ParameterMinLengthInvalid,
            Code::ParameterMaxLengthInvalid,
            Code::ParameterRangeInvalid,
            Code::ParameterUnexpected,
            Code::RequestBodyInvalid,
            Code::IdempotencyKeyReuse,
            Code::ResourceLocked,
        ]);
    }
    codes.extend_from_slice(route.codes);
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        let words = by_status.entry(code.http_status()).or_default();
        if !words.contains(&code.as_str()) {
            words.push(code.as_str());
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
    let request_id = json!({ "Request-Id": { "description": "Finds the request in the log.",
        "schema": { "type": "string" } } });
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        json!({ "description": "Done.", "headers": request_id, "content": content }),
    );
    for (status, words) in by_status {
        responses.insert(
            status.to_string(),
            json!({
                "description": words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
                "headers": request_id,
                "content": { "application/json": { "schema": {
                    "$ref": "#/components/schemas/Error" } } },
            }),
        );
    }
    responses
}

fn error_schema() -> Value {
    let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    json!({
        "type": "object",
        "required": ["object", "errors", "http_status_code"],
        "properties": {
            "object": { "type": "string", "enum": ["error"] },
            "errors": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["code", "message", "metadata"],
                    "properties": {
                        "code": { "type": "string", "enum": codes },
                        "message": { "type": "string" },
                        "metadata": { "type": "object",
                            "properties": { "field_name": { "type": "string" } } },
                    },
                },
            },
            "http_status_code": { "type": "integer" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::router::Router;
    use super::*;
    use crate::keys;
    use crate::routes::routes;

    #[test]
    fn every_route_is_listed_once_and_its_resource_has_permissions() {
        let router = Router::new(routes()).unwrap();
        for route in &router.routes {
            assert!(keys::RESOURCES.contains(&route.permission().0), "{}", route.path);
        }
        let document = document(&router.routes, "http://127.0.0.1:8080");
        let listed: usize = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .map(|path| path.as_object().unwrap().len())
            .sum();
        assert_eq!(listed, router.routes.len());
    }
}
