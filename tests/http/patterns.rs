//! What the OpenAPI document says that a field or a parameter takes is what the server takes: its
//! pattern, lengths, ranges, words and counts are tried from both sides over the real router.

mod grammar;

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use http::Method;
use hundi::http::openapi;
use hundi::kernel::Mode;
use hundi::routes::{resource_paths, routes};
use serde_json::{Map, Value, json};

use crate::support::{Answer, Client, Server, id, payout_id};
use grammar::Pattern;

/// Values that are tried for one field at most.
const PROBES_MAX: usize = 60;
/// The codes that say that a value has the wrong form.
const FORM_CODES: [&str; 6] = [
    "parameter_empty",
    "parameter_value_invalid",
    "parameter_min_length_invalid",
    "parameter_max_length_invalid",
    "parameter_range_invalid",
    "request_query_parameter_invalid",
];
/// Parameters that are tried alone, because they are not combined with others.
const ALONE: [&str; 2] = ["ending_before", "wait"];

/// Where the document cannot say what the server takes, and why.
struct Exception {
    /// How the place ends: operation and field.
    place: &'static str,
    /// Whether the server refuses what the document takes, or the other way round.
    refuses: bool,
    applies: fn(&Value) -> bool,
    reason: &'static str,
}

const fn always(place: &'static str, refuses: bool, reason: &'static str) -> Exception {
    Exception { place, refuses, applies: |_| true, reason }
}

/// A field that is optional by itself, and needed beside others.
const fn left_out(place: &'static str, reason: &'static str) -> Exception {
    Exception { place, refuses: true, applies: is_left_out, reason }
}

fn is_left_out(value: &Value) -> bool {
    value.is_null() || value == ""
}

fn is_zero(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.bytes().all(|byte| matches!(byte, b'0' | b'.')))
}

fn is_empty_text(value: &Value) -> bool {
    value == ""
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

const EXCEPTIONS: &[Exception] = &[
    always("refund_address", true, "the last four bytes of an address are a checksum"),
    always("to_address", true, "the last four bytes of an address are a checksum"),
    always(".url", true, "URLs have a grammar of their own: `format` says so"),
    always(".return_url", true, "URLs have a grammar of their own"),
    always(".enabled_events", true, "the set of event types is open"),
    always("funding.chain", true, "GET /v1/corridors says which chains the mode has"),
    always("create_quote_lock.amount", true, "GET /v1/corridors says the limits of an amount"),
    always("test_deposit_transfer.amount", true, "the simulated chain has a limit of its own"),
    always("test_deposit_transfer.block_time", true, "the simulated chain's last block decides"),
    always("list_events.starting_after", true, "a place before all that is kept is refused"),
    left_out("test_chaos.webhook_endpoint_id", "attacks on webhooks need it"),
    left_out("resolve_transfer_funding.quote_lock_id", "the action requote needs it"),
    left_out("replay_webhook_endpoint.event_id", "an event or a period is needed"),
    always("get_statements.from", true, "it is compared with `to`"),
    Exception {
        place: "amount",
        refuses: true,
        applies: is_zero,
        reason: "zero has the form of an amount; a pattern that leaves it out is hard to read",
    },
    Exception {
        place: "",
        refuses: false,
        applies: is_empty_text,
        reason: "an empty text counts as null for optional words; generators name each word",
    },
];

/// A value, and whether the document takes it.
#[derive(Clone, Debug)]
struct Probe {
    value: Value,
    is_taken: bool,
}

fn probe(value: impl Into<Value>, is_taken: bool) -> Probe {
    Probe { value: value.into(), is_taken }
}

fn has_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Values on both sides of everything that a schema says.
fn probes(schema: &Value) -> Vec<Probe> {
    let mut found = vec![probe(Value::Null, has_type(schema, "null"))];
    if let Some(words) = schema["enum"].as_array() {
        for word in words.iter().filter_map(Value::as_str) {
            found.push(probe(word, true));
            found.push(probe(format!("{word}x"), false));
            found.push(probe(word.to_uppercase(), words.contains(&word.to_uppercase().into())));
        }
        found.push(probe("", false));
    } else if has_type(schema, "string") {
        found.extend(texts(schema).into_iter().map(|(text, is_taken)| probe(text, is_taken)));
    } else if has_type(schema, "integer") {
        for (bound, outwards) in [("minimum", -1), ("maximum", 1)] {
            if let Some(bound) = schema[bound].as_i64() {
                found.push(probe(bound, true));
                found.push(probe(bound + outwards, false));
            }
        }
        found.extend([probe(1.5, false), probe("one", false)]);
    } else if has_type(schema, "boolean") {
        found.extend([
            probe(true, true),
            probe(false, true),
            probe("true", false),
            probe(0, false),
        ]);
    } else if has_type(schema, "array") {
        arrays(schema, &mut found);
    } else if has_type(schema, "object") {
        maps(schema, &mut found);
    } else {
        panic!("no probes for {schema}");
    }
    // What is taken and what is not stay balanced where there are many.
    let (taken, refused): (Vec<Probe>, Vec<Probe>) =
        found.into_iter().partition(|probe| probe.is_taken);
    let mut kept: Vec<Probe> = taken.into_iter().take(PROBES_MAX / 2).collect();
    kept.extend(refused.into_iter().take(PROBES_MAX / 2));
    kept
}

/// Texts on both sides of a pattern and of lengths.
fn texts(schema: &Value) -> Vec<(String, bool)> {
    let pattern = Pattern::parse(schema["pattern"].as_str().unwrap_or("^.*$"));
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let most = schema["maxLength"].as_u64().unwrap_or(300) as usize;
    let is_taken = |text: &str| {
        let length = text.chars().count();
        // An empty text is left out, whatever the length.
        let has_length = (least..=most).contains(&length) || text.is_empty();
        has_length && pattern.matches(text) && (least == 0 || !text.is_empty())
    };
    let samples = pattern.samples();
    let mut found: Vec<String> = samples.clone();
    for sample in samples.iter().filter(|sample| !sample.is_empty()).take(3) {
        for length in [least.saturating_sub(1), least, most, most + 1] {
            found.push(grammar::of_length(sample, length));
        }
        found.extend(grammar::mutants(sample));
    }
    let mut seen = BTreeSet::new();
    found.retain(|text| seen.insert(text.clone()));
    let judged = found.into_iter().map(|text| {
        let is_taken = is_taken(&text);
        (text, is_taken)
    });
    judged.collect()
}

fn arrays(schema: &Value, found: &mut Vec<Probe>) {
    let items: Vec<Probe> =
        probes(&schema["items"]).into_iter().filter(|item| !item.value.is_null()).collect();
    found.extend(items.iter().map(|item| probe(json!([item.value]), item.is_taken)));
    found.push(probe(json!([]), schema["minItems"].as_u64().unwrap_or(0) == 0));
    let taken: Vec<&Value> =
        items.iter().filter(|item| item.is_taken).map(|item| &item.value).collect();
    if schema["uniqueItems"] == true {
        found.push(probe(json!([taken[0], taken[0]]), false));
        found.push(probe(json!(taken), true));
    }
    if let Some(most) = schema["maxItems"].as_u64() {
        found.push(probe(json!(vec![taken[0]; most as usize]), true));
        found.push(probe(json!(vec![taken[0]; most as usize + 1]), false));
    }
}

/// Objects whose names the caller invents.
fn maps(schema: &Value, found: &mut Vec<Probe>) {
    let of_count = |count: u64| -> Value {
        (0..count)
            .map(|index| (format!("key {index}"), json!("value")))
            .collect::<Map<_, _>>()
            .into()
    };
    if let Some(most) = schema["maxProperties"].as_u64() {
        found.extend([probe(of_count(most), true), probe(of_count(most + 1), false)]);
    }
    for (name, is_taken) in texts(&schema["propertyNames"]) {
        found.push(probe(json!({ name: "value" }), is_taken));
    }
    for value in probes(&schema["additionalProperties"]) {
        found.push(probe(json!({ "key": value.value }), value.is_taken));
    }
    found.push(probe("text", false));
}

/// The smallest value that an object with these fields takes.
fn smallest(schema: &Value) -> Value {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let members = required.iter().filter_map(Value::as_str);
        return members
            .map(|name| (name.to_owned(), smallest(&properties[name])))
            .collect::<Map<_, _>>()
            .into();
    }
    let taken = probes(schema).into_iter().find(|probe| probe.is_taken && !probe.value.is_null());
    taken.unwrap_or_else(|| panic!("nothing is taken: {schema}")).value
}

/// The fields of a body with their dotted names; fields of objects inside, in the objects' place.
fn fields(prefix: &str, schema: &Value, found: &mut Vec<(String, Vec<Probe>)>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if field["properties"].is_object() {
            fields(&name, field, found);
        } else {
            found.push((name, probes(field)));
        }
    }
}

/// The schema of a field by its dotted name.
fn field_schema<'a>(schema: &'a Value, name: &str) -> &'a Value {
    name.split('.').fold(schema, |schema, part| &schema["properties"][part])
}

/// Sets a field by its dotted name, with the objects around it.
fn set(body: &mut Value, schema: &Value, name: &str, value: Value) {
    let mut around = String::new();
    let mut here = body;
    for part in name.split('.') {
        if !here.is_object() {
            *here = smallest(field_schema(schema, &around));
        }
        here = &mut here[part];
        if !around.is_empty() {
            around.push('.');
        }
        around.push_str(part);
    }
    *here = value;
}

/// The fields that an answer refuses for their form.
fn refused(answer: &Answer) -> BTreeSet<String> {
    let body = answer.json();
    let entries = body["errors"].as_array().cloned().unwrap_or_default();
    let of_form = entries.iter().filter(|entry| {
        FORM_CODES.iter().any(|code| entry["code"] == *code) && answer.status == 400
    });
    of_form.filter_map(|entry| Some(entry["metadata"]["field_name"].as_str()?.to_owned())).collect()
}

/// A value that the document and the server judge differently.
struct Difference {
    place: String,
    value: Value,
    /// Whether the server refuses what the document takes.
    refuses: bool,
    answer: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { place, value, refuses, answer } = self;
        let does = if *refuses { "refuses" } else { "takes" };
        write!(f, "{place}: the server {does} {value}: {answer}")
    }
}

/// Tries the document on the server.
struct Trial<'a> {
    client: &'a Client,
    /// Whose requests the sandbox may attack.
    attacked: &'a Client,
    document: &'a Value,
    /// What stands for `{id}` below a resource.
    ids: Vec<(&'static str, String)>,
    differences: Vec<Difference>,
    probes_count: usize,
}

impl Trial<'_> {
    fn path(&self, path: &str) -> String {
        let id = self.ids.iter().find(|(resource, _)| path.contains(resource));
        path.replace("{id}", id.map_or("", |(_, id)| id))
    }

    fn judge(&mut self, operation: &str, tried: &[(&str, &Probe)], answer: &Answer) {
        assert!(answer.status < 500, "{operation}: {}", answer.json());
        let refused = refused(answer);
        for (name, probe) in tried {
            self.probes_count += 1;
            let below = format!("{name}.");
            let is_refused = refused.iter().any(|found| found == name || found.starts_with(&below));
            if is_refused == probe.is_taken {
                self.differences.push(Difference {
                    place: format!("{operation}.{name}"),
                    value: probe.value.clone(),
                    refuses: is_refused,
                    answer: answer.json().to_string(),
                });
            }
        }
    }

    /// Tries the n-th values of all fields together: all problems of a form come at once.
    async fn body(&mut self, path: &str, operation: &Value) {
        let name = operation["operationId"].as_str().unwrap();
        let media = &operation["requestBody"]["content"]["application/json"];
        let reference = media["schema"]["$ref"].as_str().unwrap().trim_start_matches('#');
        let schema = self.document.pointer(reference).unwrap();
        let mut tried = Vec::new();
        fields("", schema, &mut tried);
        let path = self.path(path);
        let client = if name.contains("chaos") { self.attacked } else { self.client };
        let rounds = tried.iter().map(|(_, probes)| probes.len()).max().unwrap_or(0);
        for round in 0..rounds {
            let mut body = media["example"].clone();
            let mut here: Vec<(&str, &Probe)> = Vec::new();
            for (name, probes) in &tried {
                let probe = &probes[round % probes.len()];
                set(&mut body, schema, name, probe.value.clone());
                here.push((name, probe));
            }
            let answer = client.post(&path, body).await;
            self.judge(name, &here, &answer);
        }
    }

    async fn query(&mut self, path: &str, operation: &Value) {
        let name = operation["operationId"].as_str().unwrap();
        let parameters: Vec<(&str, Vec<Probe>)> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| {
                let mut probes = probes(&parameter["schema"]);
                probes.retain(|probe| !probe.value.is_null());
                // A number in a query is a text.
                probes.retain(|probe| probe.value != 1.5);
                (parameter["name"].as_str().unwrap(), probes)
            })
            .collect();
        let path = self.path(path);
        let (alone, together): (Vec<_>, Vec<_>) =
            parameters.iter().partition(|(name, _)| ALONE.contains(name));
        let mut groups = vec![together];
        groups.extend(alone.into_iter().map(|one| vec![one]));
        for group in groups {
            let rounds = group.iter().map(|(_, probes)| probes.len()).max().unwrap_or(0);
            for round in 0..rounds {
                let mut query = url::form_urlencoded::Serializer::new(String::new());
                let mut here: Vec<(&str, &Probe)> = Vec::new();
                for (name, probes) in &group {
                    let probe = &probes[round % probes.len()];
                    let text = match &probe.value {
                        Value::String(text) => text.clone(),
                        value => value.to_string(),
                    };
                    query.append_pair(name, &text);
                    here.push((name, probe));
                }
                let answer = self.client.get(&format!("{path}?{}", query.finish())).await;
                self.judge(name, &here, &answer);
            }
        }
    }

    async fn key(&mut self, schema: &Value) {
        let body = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
        for probe in probes(schema) {
            let Some(text) = probe.value.as_str().filter(|text| text.is_ascii()) else { continue };
            if text.bytes().any(|byte| byte.is_ascii_control()) {
                continue;
            }
            let headers = [("idempotency-key", text), ("content-type", "application/json")];
            let sent = Bytes::from(body.to_string());
            let answer = self.client.send(Method::POST, "/v1/senders", &headers, sent).await;
            self.judge("any", &[("Idempotency-Key", &probe)], &answer);
        }
    }

    /// Every operation, or those that are named.
    async fn run(&mut self, only: &[&str]) {
        let document = self.document;
        let mut keys = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for operation in operations.as_object().unwrap().values() {
                let name = operation["operationId"].as_str().unwrap();
                if !only.is_empty() && !only.contains(&name) {
                    continue;
                }
                if operation["requestBody"].is_object() {
                    self.body(path, operation).await;
                }
                self.query(path, operation).await;
                let parameters = operation["parameters"].as_array().unwrap();
                let headers = parameters.iter().filter(|parameter| parameter["in"] == "header");
                keys.extend(headers.map(|header| header["schema"].to_string()));
            }
        }
        assert!(keys.len() <= 1, "one schema for the header of all: {keys:?}");
        for schema in keys {
            self.key(&serde_json::from_str(&schema).unwrap()).await;
        }
    }
}

async fn trial<'a>(client: &'a Client, attacked: &'a Client, document: &'a Value) -> Trial<'a> {
    let beneficiary = client.beneficiary("50100000000004").await;
    let body = client.transfer_body("50100012341001", "100.00").await;
    let transfer = client.post("/v1/transfers", body).await.ok();
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let failed = client.wait_status(&path, "refund_processing").await;
    let endpoint = client
        .post("/v1/webhook_endpoints", json!({ "url": "https://receiver.example/" }))
        .await
        .ok();
    let ids = vec![
        ("beneficiaries", id(&beneficiary)),
        ("payouts", payout_id(&failed)),
        ("refunds", id(&failed["refund"])),
        ("transfers", id(&transfer)),
        ("webhook_endpoints", id(&endpoint)),
    ];
    Trial { client, attacked, document, ids, differences: Vec::new(), probes_count: 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_takes_what_the_server_takes() {
    let server = Server::start().await;
    let client = server.client().await;
    let attacked = server.client_of("attacked", Mode::Test, "").await;
    let document = openapi::document(&routes(), &resource_paths(), "http://127.0.0.1:8080");
    let mut trial = trial(&client, &attacked, &document).await;
    trial.run(&[]).await;
    println!("{} values were tried", trial.probes_count);
    assert!(trial.probes_count > 5_000, "only {} values were tried", trial.probes_count);
    let mut used = BTreeSet::new();
    let mut unknown: Vec<String> = Vec::new();
    for difference in &trial.differences {
        let excused = EXCEPTIONS.iter().position(|exception| {
            difference.place.ends_with(exception.place)
                && difference.refuses == exception.refuses
                && (exception.applies)(&difference.value)
        });
        match excused {
            Some(index) => drop(used.insert(index)),
            None => unknown.push(difference.to_string()),
        }
    }
    assert!(unknown.is_empty(), "{} differences:\n{}", unknown.len(), unknown.join("\n"));
    let stale: Vec<&str> = (0..EXCEPTIONS.len())
        .filter(|index| !used.contains(index))
        .map(|index| EXCEPTIONS[index].reason)
        .collect();
    assert!(stale.is_empty(), "exceptions that excuse nothing: {stale:?}");
}

/// What is planted into the document is found, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn control_a_document_that_is_wrong_is_found_out() {
    let server = Server::start().await;
    let client = server.client().await;
    let attacked = server.client_of("attacked", Mode::Test, "").await;
    let mut document = openapi::document(&routes(), &resource_paths(), "http://127.0.0.1:8080");
    let schemas = "/components/schemas";
    for (place, value) in [
        ("CreateBeneficiary/properties/ifsc/pattern", json!("^[A-Za-z]{4}[0-9A-Za-z]{7}$")),
        ("CreateBeneficiary/properties/phone/maxLength", json!(17)),
        ("CreateBeneficiary/properties/metadata/maxProperties", json!(11)),
        (
            "CreateBeneficiary/properties/relationship/enum",
            json!(["self", "family", "friend", null]),
        ),
        ("CreateBeneficiary/properties/account_number/minLength", json!(6)),
        ("RotateWebhookSecret/properties/overlap_seconds/maximum", json!(604_799)),
        ("CreateWebhookEndpoint/properties/enabled_events/maxItems", json!(49)),
    ] {
        let found = document.pointer_mut(&format!("{schemas}/{place}"));
        *found.unwrap_or_else(|| panic!("{place}")) = value;
    }
    let limit = document.pointer_mut("/paths/~1v1~1senders/get/parameters/0/schema/maximum");
    *limit.unwrap() = json!(101);
    let mut trial = trial(&client, &attacked, &document).await;
    let operations = [
        "create_beneficiary",
        "create_webhook_endpoint",
        "rotate_webhook_endpoint_secret",
        "list_senders",
    ];
    trial.run(&operations).await;
    let known = |place: &str| {
        EXCEPTIONS
            .iter()
            .any(|known| !known.place.is_empty() && place.ends_with(known.place) && known.refuses)
    };
    let found: BTreeSet<(&str, bool)> = trial
        .differences
        .iter()
        .filter(|difference| !difference.refuses || !known(&difference.place))
        .filter(|difference| is_text(&difference.value) || !difference.value.is_string())
        .map(|difference| (difference.place.as_str(), difference.refuses))
        .collect();
    let planted = BTreeSet::from([
        ("create_beneficiary.ifsc", true),
        ("create_beneficiary.metadata", true),
        ("create_beneficiary.relationship", true),
        ("create_beneficiary.account_number", false),
        ("rotate_webhook_endpoint_secret.overlap_seconds", false),
        ("list_senders.limit", true),
    ]);
    let all: Vec<String> = trial.differences.iter().map(Difference::to_string).collect();
    assert_eq!(found, planted, "{}", all.join("\n"));
}
