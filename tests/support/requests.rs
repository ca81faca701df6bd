//! Requests that are wrong in every way that a test can think of: bodies, headers, paths, queries
//! and framing.

use serde_json::{Map, Value, json};

use super::steps;
use super::{Client, Random, fresh_key};

/// What has to come back.
#[derive(Clone, Debug)]
pub enum Expected {
    /// An answer in the service's shape: a refusal with a listed code, or a success where the
    /// mutation happens to be valid.
    Shaped,
    /// This refusal: the status, and a code that must be among its errors.
    Refused(u16, &'static str),
    /// The framing is broken, or past what an HTTP server has to take: also a bare 4xx or a close
    /// is right.
    Loose,
}

/// One request as bytes.
pub struct Case {
    pub what: &'static str,
    pub bytes: Vec<u8>,
    pub expected: Expected,
    /// Nothing follows on this connection, and the sending side is closed after the bytes.
    pub is_last: bool,
    /// The answer to a HEAD has no body.
    pub is_head: bool,
}

impl Case {
    pub fn new(what: &'static str, bytes: Vec<u8>, expected: Expected) -> Case {
        Case { what, bytes, expected, is_last: false, is_head: false }
    }
    fn broken(what: &'static str, bytes: Vec<u8>) -> Case {
        Case { what, bytes, expected: Expected::Loose, is_last: true, is_head: false }
    }
}

/// Objects that the requests refer to.
pub struct Fixtures {
    pub api_key: String,
    pub beneficiary_id: String,
    pub beneficiary_draft_id: String,
    pub sender_id: String,
    pub quote_lock_id: String,
    pub transfer_id: String,
    pub transfer_unfunded_id: String,
    pub deposit_id: String,
    pub payout_id: String,
    pub webhook_endpoint_id: String,
    pub event_id: String,
}

pub fn fixtures(client: &mut Client) -> Fixtures {
    let payment = steps::six_steps(client, "100.00");
    let (_, _, _, unfunded) = steps::transfer_unfunded(client, "60.00");
    let draft = {
        let mut body = steps::beneficiary_body();
        body["submit"] = json!(false);
        client.post("/v1/beneficiaries", &body).expect_success("a draft")
    };
    let endpoint = client
        // Port 9 of loopback: nobody listens there, and the failing deliveries keep the workers
        // busy.
        .post(
            "/v1/webhook_endpoints",
            &json!({ "url": "http://127.0.0.1:9/hooks",
            "enabled_events": ["webhook_endpoint.status.*"] }),
        )
        .expect_success("a webhook endpoint");
    Fixtures {
        api_key: client.api_key.clone(),
        beneficiary_draft_id: steps::text(&draft, "id"),
        quote_lock_id: steps::quote_lock(client, "70.00"),
        payout_id: steps::text(&payment.settled["payout"], "id"),
        transfer_unfunded_id: steps::text(&unfunded, "id"),
        webhook_endpoint_id: steps::text(&endpoint, "id"),
        event_id: steps::text(&client.list("/v1/events", "")[0], "id"),
        beneficiary_id: payment.beneficiary_id,
        sender_id: payment.sender_id,
        transfer_id: payment.transfer_id,
        deposit_id: payment.deposit_id,
    }
}

/// A POST and a body that is right for it.
pub fn writes(fixtures: &Fixtures) -> Vec<(String, Value)> {
    let Fixtures {
        beneficiary_id,
        beneficiary_draft_id,
        sender_id,
        quote_lock_id,
        transfer_id,
        transfer_unfunded_id,
        ..
    } = fixtures;
    let Fixtures { payout_id, webhook_endpoint_id, event_id, .. } = fixtures;
    let mut beneficiary = steps::beneficiary_body();
    for (name, value) in [
        ("pan", json!("ABCDE1234F")),
        ("passport_number", json!("Z1234567")),
        ("date_of_birth", json!("1980-02-29")),
        ("nationality", json!("IN")),
        ("relationship", json!("self")),
        ("submit", json!(true)),
    ] {
        beneficiary[name] = value;
    }
    let mut sender = steps::sender_body();
    sender["date_of_birth"] = json!("1975-12-31");
    sender["nationality"] = json!("US");
    sender["identification"] = json!({ "type": "passport", "number": "X7654321" });
    let mut transfer = steps::transfer_body(sender_id, beneficiary_id, quote_lock_id, "70.00");
    transfer["purpose_code"] = json!("P1301");
    transfer["metadata"] = json!({ "a": "b" });
    transfer["funding"]["policy"] =
        json!({ "underpaid": "hold", "overpaid": "hold", "late": "refund" });
    let mut quote = steps::quote_lock_body("33.33");
    quote["metadata"] = json!({ "a": "b" });
    vec![
        ("/v1/beneficiaries".into(), beneficiary),
        (
            format!("/v1/beneficiaries/{beneficiary_draft_id}"),
            json!({ "name": "New Name", "email": null, "metadata": { "reference": null,
                "b": "c" } }),
        ),
        ("/v1/senders".into(), sender),
        ("/v1/quote_locks".into(), quote),
        ("/v1/transfers".into(), transfer),
        (format!("/v1/transfers/{transfer_id}/cancel"), json!({})),
        (
            format!("/v1/transfers/{transfer_id}/resolve_funding"),
            json!({ "action": "requote", "quote_lock_id": quote_lock_id }),
        ),
        (
            format!("/v1/transfers/{transfer_id}/funding/diagnose"),
            json!({ "transaction_hash": "ab".repeat(32) }),
        ),
        (
            format!("/v1/refunds/refund_{}", &transfer_id["transfer_".len()..]),
            json!({ "to_address": "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW" }),
        ),
        (
            "/v1/webhook_endpoints".into(),
            json!({ "url": "https://example.com/hooks", "enabled_events": ["transfer.status.*",
                "*"], "description": "x", "metadata": {} }),
        ),
        (
            format!("/v1/webhook_endpoints/{webhook_endpoint_id}"),
            json!({ "description": "y", "metadata": { "a": "b" } }),
        ),
        (
            format!("/v1/webhook_endpoints/{webhook_endpoint_id}/rotate_secret"),
            json!({ "overlap_seconds": 60 }),
        ),
        (
            format!("/v1/webhook_endpoints/{webhook_endpoint_id}/replay"),
            json!({ "event_id": event_id }),
        ),
        (
            format!("/v1/webhook_endpoints/{webhook_endpoint_id}/replay"),
            json!({ "since": 1_790_000_000, "until": 1_790_000_010, "only_failed": true }),
        ),
        (
            format!("/v1/test_helpers/transfers/{transfer_unfunded_id}/deposit"),
            json!({ "amount": "0.01", "asset": "USDT" }),
        ),
        (format!("/v1/test_helpers/beneficiaries/{beneficiary_id}/activate"), json!({})),
        (format!("/v1/test_helpers/beneficiaries/{beneficiary_id}/require_input"), json!({})),
        (format!("/v1/test_helpers/payouts/{payout_id}/settle"), json!({})),
        (format!("/v1/test_helpers/payouts/{payout_id}/fail"), json!({})),
        ("/v1/test_helpers/clock".into(), json!({ "advance_seconds": 1 })),
    ]
}

/// GETs that answer.
pub fn reads(fixtures: &Fixtures) -> Vec<String> {
    let one = |resource: &str, id: &str| format!("/v1/{resource}/{id}");
    let mut all: Vec<String> = LISTS.iter().map(|(path, _)| (*path).to_owned()).collect();
    all.extend([
        "/v1/balance".to_owned(),
        "/v1/corridors".to_owned(),
        one("beneficiaries", &fixtures.beneficiary_id),
        one("senders", &fixtures.sender_id),
        one("quote_locks", &fixtures.quote_lock_id),
        one("transfers", &fixtures.transfer_id),
        one("deposits", &fixtures.deposit_id),
        one("payouts", &fixtures.payout_id),
        one("webhook_endpoints", &fixtures.webhook_endpoint_id),
        one("events", &fixtures.event_id),
        format!("/v1/payouts/{}/payment_advice", fixtures.payout_id),
        format!("/v1/webhook_endpoints/{}/deliveries", fixtures.webhook_endpoint_id),
    ]);
    all
}

/// Lists and the prefix of their cursors.
pub const LISTS: &[(&str, &str)] = &[
    ("/v1/beneficiaries", "beneficiary"),
    ("/v1/senders", "sender"),
    ("/v1/quote_locks", "quote_lock"),
    ("/v1/transfers", "transfer"),
    ("/v1/webhook_endpoints", "webhook_endpoint"),
    ("/v1/deposits", "deposit"),
    ("/v1/payouts", "payout"),
    ("/v1/refunds", "refund"),
    ("/v1/events", "event"),
];

/// Texts that take a value's place as they stand, JSON or not.
const RAW_VALUES: &[&[u8]] = &[
    b"null",
    b"true",
    b"false",
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"1.5",
    b"1000.00",
    b"1e999",
    b"-1e-999",
    b"1E400",
    b"01",
    b"+1",
    b".5",
    b"5.",
    b"0x10",
    b"NaN",
    b"Infinity",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"340282366920938463463374607431768211456",
    b"\"\"",
    b"\" \"",
    b"\"\\u0000\"",
    b"\"a\\u0000b\"",
    b"\"\\u001b[31m\"",
    b"\"\\ud800\"",
    b"\"\\udc00\\ud800\"",
    b"\"\\ud83d\\ude00\"",
    b"\"\\uFFFE\"",
    b"\"\\u202e\"",
    b"\"\\x41\"",
    b"\"\\u12\"",
    b"\"\xff\xfe\"",
    b"\"\xc0\xaf\"",
    b"\"\xed\xa0\x80\"",
    b"\"\xf5\x80\x80\x80\"",
    b"\"\n\"",
    b"\"\t\"",
    b"\"\x00\"",
    b"'a'",
    b"\"unterminated",
    b"[]",
    b"{}",
    b"[[]]",
    b"[null]",
    b"[\"a\"]",
    b"[1,2,]",
    b"{\"a\":1}",
    b"{\"a\":1,\"a\":2}",
    b"{\"\":\"\"}",
    b"{a:1}",
    b"{\"a\"}",
    b"tru",
    b"nul",
    b"/* */ 1",
    b"\"0\"",
    b"\"-1.00\"",
    b"\"+1.00\"",
    b"\"1e3\"",
    b"\"1,000.00\"",
    b"\"1.000\"",
    b"\"00.10\"",
    b"\".5\"",
    b"\"5.\"",
    b"\"0.00\"",
    b"\"0.01\"",
    b"\"999999999999.99\"",
    b"\"1000000000000.00\"",
    b"\"99999999999999999999999999\"",
    b"\" 10.00\"",
    b"\"10.00 \"",
    b"\"\xd9\xa1\xd9\xa0\"",
    b"\"NaN\"",
    b"\"USD\"",
    b"\"usd\"",
    b"\"XXX\"",
    b"\"nre\"",
    b"\"2024-02-30\"",
    b"\"9999-12-31\"",
    b"\"0000-01-01\"",
    b"\"../../etc/passwd\"",
    b"\"' OR 1=1 --\"",
    b"\"<script>\"",
    b"\"http://169.254.169.254/\"",
    b"\"https://[::ffff:127.0.0.1]/\"",
    b"\"https://0x7f.1/\"",
    b"\"https://user:pass@example.com/\"",
    b"\"https://\"",
    b"\"https://a..b/\"",
    b"\"https://xn--\xff/\"",
    b"\"transfer_00000000000000000000000000\"",
    b"\"transfer_8ZZZZZZZZZZZZZZZZZZZZZZZZZ\"",
    b"\"sender_zzzzzzzzzzzzzzzzzzzzzzzzzz\"",
    b"\"quote_lock_\"",
    b"\"_\"",
    b"\"TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMX\"",
    b"\"T\"",
    b"\"*\"",
    b"\"transfer.*\"",
    b"\"**\"",
    b"31536000",
    b"31536001",
    b"604800",
    b"604801",
    b"-9999999999999",
    b"1e2",
    b"1.0",
];

/// Where a raw text goes in; no valid body holds it.
const PLACE: &str = "@@place@@";

/// All places of a tree, the root left out: paths of member names and indexes.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, inner)| (name.clone(), inner)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, inner)| (index.to_string(), inner)).collect()
        }
        _ => Vec::new(),
    };
    for (name, inner) in children {
        path.push(name);
        found.push(path.clone());
        places(inner, path, found);
        path.pop();
    }
}

fn place_of<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |inner, name| match inner {
        Value::Object(members) => members.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Puts raw bytes in place of one value.
fn with_raw(body: &Value, path: &[String], raw: &[u8]) -> Vec<u8> {
    let mut marked = body.clone();
    if let Some(place) = place_of(&mut marked, path) {
        *place = json!(PLACE);
    }
    replaced(marked.to_string().as_bytes(), format!("\"{PLACE}\"").as_bytes(), raw)
}

fn replaced(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    match text.windows(what.len()).position(|window| window == what) {
        Some(at) => [&text[..at], with, &text[at + what.len()..]].concat(),
        None => text.to_vec(),
    }
}

fn nested(depth: usize, open: &str, close: &str) -> Vec<u8> {
    format!("{}1{}", open.repeat(depth), close.repeat(depth)).into_bytes()
}

const BODY_INVALID: Expected = Expected::Refused(400, "request_body_invalid");

/// A body that is wrong in one way, and what has to be said to it.
fn wrong_body(body: &Value, random: &mut Random) -> (&'static str, Vec<u8>, Expected) {
    let text = body.to_string().into_bytes();
    let mut found = Vec::new();
    places(body, &mut Vec::new(), &mut found);
    match random.below(20) {
        0 => {
            // Any part of an object that lacks its end is no JSON; nothing at all may be allowed.
            let length = random.between(1, text.len() as u64 - 1) as usize;
            ("a body that breaks off", text[..length].to_vec(), BODY_INVALID)
        }
        1 => {
            let key = found.first().map_or_else(|| "a".to_owned(), |path| path[0].clone());
            let twice = [
                format!("{{\"{key}\":\"x\",\"{key}\":\"x\"").as_bytes(),
                if text.len() > 2 { b"," } else { b"" },
                &text[1..],
            ]
            .concat();
            ("a body with a key twice", twice, BODY_INVALID)
        }
        2 => {
            let tails: &[&[u8]] = &[b"x", b"{}", b"]", b"}", b",", b"\0", b"null", b"\xef\xbb\xbf"];
            ("bytes after the body", [&text, *random.pick(tails)].concat(), BODY_INVALID)
        }
        3 => {
            let wholes: &[&[u8]] = &[
                b"[]",
                b"null",
                b"1",
                b"\"a\"",
                b"true",
                b" ",
                b"\r\n",
                b"{",
                b"}",
                b"{]",
                b"\xef\xbb\xbf{}",
                b"\xff\xfe{\x00}\x00",
                b"\0",
                b"a=b&c=d",
                b"<xml/>",
                b"{\"a\":}",
                b"{,}",
                b"{\"a\":1,}",
                b"{'a':1}",
                b"--b\r\nContent-Disposition: form-data\r\n\r\n",
                b"\xff\xff\xff",
                b"undefined",
            ];
            ("something else than an object", random.pick(wholes).to_vec(), BODY_INVALID)
        }
        4 => {
            let depth = *random.pick(&[9, 10, 50, 127, 128, 129, 1_000, 10_000]);
            let deep = if random.chance(50) {
                nested(depth, "{\"a\":", "}")
            } else {
                nested(depth, "[", "]")
            };
            let whole = if random.chance(50) {
                [b"{\"metadata\":", deep.as_slice(), b"}"].concat()
            } else {
                deep
            };
            ("a deeply nested body", whole, BODY_INVALID)
        }
        5 => {
            // Brackets that never close, as deep as a body may be long.
            let count = random.between(1_000, 60_000) as usize;
            let open: &[u8] = if random.chance(50) { b"[" } else { b"{\"a\":" };
            ("a body of open brackets", open.repeat(count / open.len()), BODY_INVALID)
        }
        6 => {
            let length = *random.pick(&[65_537, 70_000, 130_000]);
            let mut whole = body.clone();
            whole["metadata"] = json!({ "a": "" });
            let padding = length - whole.to_string().len();
            whole["metadata"]["a"] = json!("x".repeat(padding));
            ("a body past the limit", whole.to_string().into_bytes(), BODY_INVALID)
        }
        7 => {
            let mut members: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
            members.insert(format!("unknown_{}", random.below(1000)), json!("x"));
            (
                "an unknown field",
                Value::Object(members).to_string().into_bytes(),
                Expected::Refused(400, "parameter_unexpected"),
            )
        }
        8 => {
            // A text between the limits of a field and of a body.
            let long = format!(
                "\"{}\"",
                random
                    .pick(&["x", "\u{1f600}", "\\u0041", "0", "A1", "\u{e9}"])
                    .repeat(random.between(200, 5_000) as usize)
            );
            mutated_value(body, &found, long.as_bytes(), "a very long value", random)
        }
        9 => {
            let count = random.between(11, 2_000);
            let mut whole = body.clone();
            whole["metadata"] = (0..count)
                .map(|index| (format!("k{index}"), json!("v")))
                .collect::<Map<_, _>>()
                .into();
            ("metadata with many pairs", whole.to_string().into_bytes(), Expected::Shaped)
        }
        10 => {
            let amounts: Vec<&Vec<String>> = found
                .iter()
                .filter(|path| path.last().is_some_and(|name| name == "amount"))
                .collect();
            match amounts.first() {
                Some(path) => {
                    let raws: &[&[u8]] =
                        &[b"70", b"70.00", b"1e2", b"0", b"-5", b"true", b"{}", b"[\"70.00\"]"];
                    let raw = *random.pick(raws);
                    (
                        "an amount that is no text",
                        with_raw(body, path, raw),
                        Expected::Refused(400, "parameter_value_invalid"),
                    )
                }
                None => {
                    mutated_value(body, &found, b"[{\"a\":[]}]", "an array for a value", random)
                }
            }
        }
        11 => {
            let mut flipped = text;
            for _ in 0..random.between(1, 4) {
                let at = random.below(flipped.len());
                flipped[at] ^= 1 << random.below(8);
            }
            ("flipped bits", flipped, Expected::Shaped)
        }
        12 => {
            let start = random.below(text.len());
            let end = start + random.below(text.len() - start + 1);
            let cut = [&text[..start], &text[end..]].concat();
            ("a body with a hole", cut, Expected::Shaped)
        }
        13 => {
            let mut noise = vec![0; random.between(1, 300) as usize];
            noise.iter_mut().for_each(|byte| *byte = random.next() as u8);
            // No first byte of noise may open an object.
            noise[0] = b'\x80';
            ("noise", noise, BODY_INVALID)
        }
        14 => {
            let mut lacking = body.clone();
            if let (Some(members), Some(path)) = (lacking.as_object_mut(), found.first()) {
                let name = if random.chance(50) {
                    path[0].clone()
                } else {
                    random.pick(&found)[0].clone()
                };
                members.remove(&name);
            }
            ("a body without one field", lacking.to_string().into_bytes(), Expected::Shaped)
        }
        _ => {
            let raw = *random.pick(RAW_VALUES);
            mutated_value(body, &found, raw, "a wrong value", random)
        }
    }
}

fn mutated_value(
    body: &Value,
    found: &[Vec<String>],
    raw: &[u8],
    what: &'static str,
    random: &mut Random,
) -> (&'static str, Vec<u8>, Expected) {
    if found.is_empty() {
        return (what, [b"{\"a\":", raw, b"}"].concat(), Expected::Shaped);
    }
    let path = &found[random.below(found.len())];
    (what, with_raw(body, path, raw), Expected::Shaped)
}

/// A head with these lines after the request line, and a body.
fn assembled(start: &[u8], headers: &[&[u8]], body: &[u8]) -> Vec<u8> {
    let mut bytes = [start, b"\r\n"].concat();
    for header in headers {
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Makes one case after the other; with one seed and the same objects always the same ones, but for
/// the idempotency keys.
pub struct Maker<'a> {
    fixtures: &'a Fixtures,
    writes: Vec<(String, Value)>,
    reads: Vec<String>,
    random: Random,
}

impl Maker<'_> {
    pub fn new(fixtures: &Fixtures, random: Random) -> Maker<'_> {
        Maker { writes: writes(fixtures), reads: reads(fixtures), fixtures, random }
    }

    pub fn make(&mut self) -> Case {
        match self.random.below(100) {
            0..45 => self.body_case(),
            45..65 => self.header_case(),
            65..80 => self.path_case(),
            80..95 => self.query_case(),
            _ => self.framing_case(),
        }
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}", self.fixtures.api_key)
    }

    /// A well-formed request around any body.
    fn post(&self, path: &str, body: &[u8]) -> Vec<u8> {
        super::client::request_bytes(
            "POST",
            path,
            &self.fixtures.api_key,
            Some(&fresh_key()),
            Some(body),
        )
    }

    fn body_case(&mut self) -> Case {
        let (path, body) = self.random.pick(&self.writes).clone();
        let (what, text, expected) = wrong_body(&body, &mut self.random);
        // The refund in the path does not exist, which is said before the body is looked at; a body
        // past the limit is refused while it is read.
        let expected = match expected {
            Expected::Refused(..)
                if path.starts_with("/v1/refunds/") && what != "a body past the limit" =>
            {
                Expected::Refused(404, "object_not_found")
            }
            expected => expected,
        };
        if self.random.chance(10) {
            return Case::new(what, self.chunked(&path, &text), expected);
        }
        Case::new(what, self.post(&path, &text), expected)
    }

    /// The same body in chunks of random length.
    fn chunked(&mut self, path: &str, body: &[u8]) -> Vec<u8> {
        let mut chunks = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            let length = (self.random.between(1, 5_000) as usize).min(rest.len());
            chunks.extend_from_slice(format!("{length:x}\r\n").as_bytes());
            chunks.extend_from_slice(&rest[..length]);
            chunks.extend_from_slice(b"\r\n");
            rest = &rest[length..];
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        self.in_chunks(path, &chunks)
    }

    /// A POST around what are chunks or should be.
    fn in_chunks(&self, path: &str, chunks: &[u8]) -> Vec<u8> {
        let key = format!("Idempotency-Key: {}", fresh_key());
        let authorization = self.authorization();
        let headers: Vec<&[u8]> = vec![
            b"Host: a",
            authorization.as_bytes(),
            key.as_bytes(),
            b"Content-Type: application/json",
            b"Transfer-Encoding: chunked",
        ];
        assembled(format!("POST {path} HTTP/1.1").as_bytes(), &headers, chunks)
    }

    fn header_case(&mut self) -> Case {
        match self.random.below(3) {
            0 => self.idempotency_key_case(),
            1 => self.authorization_case(),
            _ => self.other_header_case(),
        }
    }

    fn idempotency_key_case(&mut self) -> Case {
        let (path, body) = self.random.pick(&self.writes).clone();
        let body = body.to_string();
        let fresh = fresh_key();
        let invalid = Expected::Refused(400, "parameter_value_invalid");
        let cases: Vec<(&'static str, Vec<Vec<u8>>, Expected)> = vec![
            ("no idempotency key", vec![], Expected::Refused(400, "parameter_empty")),
            (
                "an empty idempotency key",
                vec![b"".to_vec()],
                Expected::Refused(400, "parameter_empty"),
            ),
            (
                "an idempotency key of 15",
                vec![b"x".repeat(15)],
                Expected::Refused(400, "parameter_min_length_invalid"),
            ),
            (
                "an idempotency key of 1",
                vec![b"x".to_vec()],
                Expected::Refused(400, "parameter_min_length_invalid"),
            ),
            (
                "an idempotency key of 65",
                vec![b"x".repeat(65)],
                Expected::Refused(400, "parameter_max_length_invalid"),
            ),
            (
                "an idempotency key of 4000",
                vec![b"x".repeat(4_000)],
                Expected::Refused(400, "parameter_max_length_invalid"),
            ),
            (
                "two idempotency keys",
                vec![fresh.clone().into_bytes(), fresh_key().into_bytes()],
                invalid.clone(),
            ),
            (
                "one idempotency key twice",
                vec![fresh.clone().into_bytes(), fresh.clone().into_bytes()],
                invalid.clone(),
            ),
            (
                "an idempotency key in Latin-1",
                vec!["kéykéykéykéykéykéy".chars().map(|letter| letter as u8).collect()],
                invalid.clone(),
            ),
            (
                "an idempotency key in UTF-8",
                vec!["ключключключключ".as_bytes().to_vec()],
                invalid.clone(),
            ),
            ("an idempotency key with a tab", vec![b"aaaaaaaaaa\tbbbbbbbbbb".to_vec()], invalid),
            (
                "an idempotency key with spaces",
                vec![format!("aaaa {fresh} b").into_bytes()],
                Expected::Shaped,
            ),
            (
                "an idempotency key of punctuation",
                vec![b"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~".to_vec()],
                Expected::Shaped,
            ),
        ];
        let (what, keys, expected) = self.random.pick(&cases).clone();
        let keys: Vec<Vec<u8>> =
            keys.into_iter().map(|key| [b"Idempotency-Key: ", key.as_slice()].concat()).collect();
        let length = format!("Content-Length: {}", body.len());
        let authorization = self.authorization();
        let mut headers: Vec<&[u8]> = vec![
            b"Host: a",
            authorization.as_bytes(),
            b"Content-Type: application/json",
            length.as_bytes(),
        ];
        headers.extend(keys.iter().map(Vec::as_slice));
        Case::new(
            what,
            assembled(format!("POST {path} HTTP/1.1").as_bytes(), &headers, body.as_bytes()),
            expected,
        )
    }

    fn authorization_case(&mut self) -> Case {
        let key = self.fixtures.api_key.clone();
        let mut typo = key.clone().into_bytes();
        let at = self.random.between(8, typo.len() as u64 - 1) as usize;
        typo[at] = if typo[at] == b'a' { b'b' } else { b'a' };
        let refused = Expected::Refused(401, "secret_key_invalid");
        let cases: Vec<(&'static str, Vec<Vec<u8>>, Expected)> = vec![
            ("no authorization", vec![], refused.clone()),
            ("an empty authorization", vec![b"".to_vec()], refused.clone()),
            ("a scheme alone", vec![b"Bearer".to_vec()], refused.clone()),
            ("a scheme and a blank", vec![b"Bearer ".to_vec()], refused.clone()),
            ("basic authorization", vec![b"Basic dXNlcjpwYXNz".to_vec()], refused.clone()),
            ("the key without a scheme", vec![key.clone().into_bytes()], refused.clone()),
            ("a word for a key", vec![b"Bearer x".to_vec()], refused.clone()),
            (
                "a key with a typing error",
                vec![[b"Bearer ", typo.as_slice()].concat()],
                refused.clone(),
            ),
            (
                "a key that lacks its end",
                vec![format!("Bearer {}", &key[..key.len() - 1]).into_bytes()],
                refused.clone(),
            ),
            ("a key and more", vec![format!("Bearer {key}x").into_bytes()], refused.clone()),
            (
                "a key and another",
                vec![format!("Bearer {key} {key}").into_bytes()],
                refused.clone(),
            ),
            (
                "a key of the other mode",
                vec![format!("Bearer {}", key.replace("sk_test_", "sk_live_")).into_bytes()],
                refused.clone(),
            ),
            (
                "a long key",
                vec![[b"Bearer ", b"sk_test_".as_slice(), b"a".repeat(3_000).as_slice()].concat()],
                refused.clone(),
            ),
            ("a key in Latin-1", vec![b"Bearer sk_test_\xe9\xe9\xe9\xe9".to_vec()], refused),
            (
                "a scheme in lower case",
                vec![format!("bearer {key}").into_bytes()],
                Expected::Shaped,
            ),
            (
                "two authorizations",
                vec![format!("Bearer {key}").into_bytes(), b"Bearer x".to_vec()],
                Expected::Shaped,
            ),
        ];
        let (what, values, expected) = self.random.pick(&cases).clone();
        let lines: Vec<Vec<u8>> = values
            .into_iter()
            .map(|value| [b"Authorization: ", value.as_slice()].concat())
            .collect();
        let mut headers: Vec<&[u8]> = vec![b"Host: a"];
        headers.extend(lines.iter().map(Vec::as_slice));
        // Also where there is no such route: under /v1 nothing answers without a key.
        let target = self.random.pick(&[
            "GET /v1/senders",
            "GET /v1/nothing",
            "DELETE /v1/transfers",
            "PUT /v1/balance",
            "GET /v1/",
        ]);
        let what_expected =
            if matches!(expected, Expected::Shaped) { Expected::Shaped } else { expected };
        Case::new(
            what,
            assembled(format!("{target} HTTP/1.1").as_bytes(), &headers, b""),
            what_expected,
        )
    }

    fn other_header_case(&mut self) -> Case {
        let (path, body) = self.random.pick(&self.writes).clone();
        let body = body.to_string();
        let is_required = body != "{}" && !path.starts_with("/v1/refunds/");
        let key = format!("Idempotency-Key: {}", fresh_key());
        let length = format!("Content-Length: {}", body.len());
        let authorization = self.authorization();
        let json_type: &[u8] = b"Content-Type: application/json";
        let start = format!("POST {path} HTTP/1.1");
        let build = |more: &[&[u8]]| {
            let mut headers: Vec<&[u8]> =
                vec![b"Host: a", authorization.as_bytes(), key.as_bytes(), length.as_bytes()];
            headers.extend(more);
            assembled(start.as_bytes(), &headers, body.as_bytes())
        };
        let wrong_type = if is_required { BODY_INVALID } else { Expected::Shaped };
        match self.random.below(14) {
            0 => {
                let types: &[&[u8]] = &[
                    b"Content-Type: text/plain",
                    b"Content-Type: application/x-www-form-urlencoded",
                    b"Content-Type: application/jsonx",
                    b"Content-Type: multipart/form-data; boundary=x",
                    b"Content-Type: application/xml",
                    b"Content-Type: image/png",
                ];
                Case::new("another content type", build(&[*self.random.pick(types)]), wrong_type)
            }
            1 => {
                let types: &[&[u8]] = &[
                    b"Content-Type: application/json; charset=utf-8",
                    b"Content-Type: APPLICATION/JSON",
                    b"Content-Type: application/json;",
                    b"Content-Type:",
                    b"Content-Type: /",
                    b"Content-Type: \xff\xfe",
                    b"Content-Type: application/json, text/plain",
                    b"X: y",
                    b"Content-Type: application/problem+json",
                    b"Content-Type: application/json; charset=utf-16",
                ];
                Case::new(
                    "a doubtful content type",
                    build(&[*self.random.pick(types)]),
                    Expected::Shaped,
                )
            }
            2 => Case::new(
                "two content types",
                build(&[json_type, b"Content-Type: text/plain"]),
                Expected::Shaped,
            ),
            3 => {
                let many: Vec<Vec<u8>> = (0..self.random.between(20, 50))
                    .map(|index| format!("X-Header-{index}: {index}").into_bytes())
                    .collect();
                let mut lines: Vec<&[u8]> = vec![json_type];
                lines.extend(many.iter().map(Vec::as_slice));
                Case::new("many headers", build(&lines), Expected::Shaped)
            }
            4 => {
                let many: Vec<Vec<u8>> = (0..self.random.between(120, 3_000))
                    .map(|index| format!("X-Header-{index}: {index}").into_bytes())
                    .collect();
                let mut lines: Vec<&[u8]> = vec![json_type];
                lines.extend(many.iter().map(Vec::as_slice));
                Case {
                    is_last: true,
                    ..Case::new("far too many headers", build(&lines), Expected::Loose)
                }
            }
            5 => {
                let large = [
                    b"X-Large: ",
                    b"x".repeat(self.random.between(1_000, 3_500) as usize).as_slice(),
                ]
                .concat();
                Case::new("a large header", build(&[json_type, &large]), Expected::Shaped)
            }
            6 => {
                let large = [
                    b"X-Huge: ",
                    b"x".repeat(self.random.between(20_000, 600_000) as usize).as_slice(),
                ]
                .concat();
                Case {
                    is_last: true,
                    ..Case::new("a huge header", build(&[json_type, &large]), Expected::Loose)
                }
            }
            7 => {
                let odd: &[&[u8]] = &[
                    b"Accept: \xff",
                    b"Accept-Encoding: gzip, br",
                    b"Accept: text/html;q=0.x",
                    b"X-Forwarded-For: 127.0.0.1",
                    b"X-HTTP-Method-Override: DELETE",
                    b"Cookie: a=b; c",
                    b"Range: bytes=0-1",
                    b"If-None-Match: *",
                    b"If-Match: \"x\"",
                    b"Origin: null",
                    b"Upgrade-Insecure-Requests: 1",
                    b"Content-Encoding: gzip",
                    b"TE: trailers",
                    b"Host: b",
                    b"Host:",
                    b"Connection: keep-alive, x",
                    b"Date: never",
                    b"Max-Forwards: 0",
                    b"Request-Id: request_00000000000000000000000000",
                    b"Idempotent-Replayed: true",
                ];
                Case::new(
                    "an odd header",
                    build(&[json_type, *self.random.pick(odd)]),
                    Expected::Shaped,
                )
            }
            8 => {
                // The head says more than comes; the end of the stream says that it will never
                // come.
                let more = format!(
                    "Content-Length: {}",
                    body.len() + self.random.between(1, 5_000) as usize
                );
                let bytes = assembled(
                    start.as_bytes(),
                    &[
                        b"Host: a",
                        authorization.as_bytes(),
                        key.as_bytes(),
                        json_type,
                        more.as_bytes(),
                    ],
                    body.as_bytes(),
                );
                Case::broken("a body shorter than its length", bytes)
            }
            9 => {
                let less = format!("Content-Length: {}", self.random.below(body.len()));
                let bytes = assembled(
                    start.as_bytes(),
                    &[
                        b"Host: a",
                        authorization.as_bytes(),
                        key.as_bytes(),
                        json_type,
                        less.as_bytes(),
                    ],
                    body.as_bytes(),
                );
                Case::broken("a body longer than its length", bytes)
            }
            10 => {
                let lengths: &[&[u8]] = &[
                    b"Content-Length: -1",
                    b"Content-Length: x",
                    b"Content-Length: 99999999999999999999999",
                    b"Content-Length: 1, 2",
                    b"Content-Length:",
                    b"Content-Length: 0x10",
                    b"Content-Length: +5",
                    b"Content-Length: 18446744073709551615",
                ];
                let bytes = assembled(
                    start.as_bytes(),
                    &[
                        b"Host: a",
                        authorization.as_bytes(),
                        key.as_bytes(),
                        json_type,
                        *self.random.pick(lengths),
                    ],
                    body.as_bytes(),
                );
                Case::broken("a length that is none", bytes)
            }
            11 => Case::broken("two lengths", build(&[json_type, b"Content-Length: 1"])),
            12 => Case::broken(
                "a length and chunks",
                build(&[json_type, b"Transfer-Encoding: chunked"]),
            ),
            _ => {
                let length = if self.random.chance(50) {
                    "Content-Length: 200000000"
                } else {
                    "Content-Length: 65537"
                };
                let bytes = assembled(
                    start.as_bytes(),
                    &[
                        b"Host: a",
                        authorization.as_bytes(),
                        key.as_bytes(),
                        json_type,
                        length.as_bytes(),
                    ],
                    b"{}",
                );
                Case::broken("a length past the limit", bytes)
            }
        }
    }

    fn get(&self, method: &str, target: &[u8]) -> Vec<u8> {
        let start = [method.as_bytes(), b" ", target, b" HTTP/1.1"].concat();
        let key = format!("Idempotency-Key: {}", fresh_key());
        assembled(&start, &[b"Host: a", self.authorization().as_bytes(), key.as_bytes()], b"")
    }

    fn path_case(&mut self) -> Case {
        let ulid = &self.fixtures.transfer_id["transfer_".len()..];
        let not_found = Expected::Refused(404, "object_not_found");
        match self.random.below(7) {
            0 => {
                let unknown: Vec<String> = vec![
                    "/v1".into(),
                    "/v1/".into(),
                    "/v1/nothing".into(),
                    "/v1/transfers/".into(),
                    "/v1//transfers".into(),
                    "//v1/transfers".into(),
                    "/v1/Transfers".into(),
                    "/V1/transfers".into(),
                    "/v2/transfers".into(),
                    "/v1/transfers/../senders".into(),
                    "/v1/./senders".into(),
                    "/v1/transfers/x/y/z".into(),
                    "/v1/test_helpers".into(),
                    "/v1/test_helpers/".into(),
                    "/v1/%73enders".into(),
                    "/v1/senders%2f".into(),
                    "/v1/senders%00".into(),
                    "/v1/senders;a=b".into(),
                    "/v1/.".into(),
                    "/v1/..".into(),
                    "/v1/..%2f..%2fetc%2fpasswd".into(),
                    "/v1/balance/x".into(),
                    "/v1/transfer".into(),
                    format!("/v1/transfers/{}/cancel/", self.fixtures.transfer_id),
                    format!("/v1/{}", "a/".repeat(200)),
                    format!("/v1/{}", "x".repeat(self.random.between(100, 6_000) as usize)),
                ];
                let target = self.random.pick(&unknown).clone();
                Case::new("an unknown path", self.get("GET", target.as_bytes()), Expected::Shaped)
            }
            1 => {
                let resource = *self.random.pick(&[
                    "beneficiaries",
                    "senders",
                    "quote_locks",
                    "transfers",
                    "deposits",
                    "payouts",
                    "refunds",
                    "events",
                    "webhook_endpoints",
                ]);
                let ids: Vec<String> = vec![
                    "transfer_00000000000000000000000000".into(),
                    "event_7ZZZZZZZZZZZZZZZZZZZZZZZZZ".into(),
                    "transfer_8ZZZZZZZZZZZZZZZZZZZZZZZZZ".into(),
                    format!("transfer_{}", ulid.to_lowercase()),
                    format!("xtransfer_{ulid}"),
                    format!("transfer-{ulid}"),
                    format!("transfer__{ulid}"),
                    format!("account_{ulid}"),
                    format!("transfer_{ulid}0"),
                    format!("transfer_{}", &ulid[1..]),
                    ulid.to_owned(),
                    "transfer_".into(),
                    "_".into(),
                    "0".into(),
                    "-1".into(),
                    "null".into(),
                    "%00".into(),
                    "%ff%fe".into(),
                    "%zz".into(),
                    "%".into(),
                    "%2".into(),
                    "%2e%2e".into(),
                    "..%2f".into(),
                    "%F0%9F%98%80".into(),
                    "'%20OR%201=1".into(),
                    "transfer_%30".into(),
                    "x".repeat(self.random.between(1, 4_000) as usize),
                    "*".into(),
                    "~".into(),
                    "transfer_IIIIIIIIIIIIIIIIIIIIIIIIII".into(),
                    "transfer_UUUUUUUUUUUUUUUUUUUUUUUUUU".into(),
                ];
                let id = self.random.pick(&ids).clone();
                Case::new(
                    "an unknown ID",
                    self.get("GET", format!("/v1/{resource}/{id}").as_bytes()),
                    not_found,
                )
            }
            2 => {
                // An unknown ID under a write, with a body that would be right.
                let (path, body) = self.random.pick(&self.writes).clone();
                let mut parts: Vec<&str> = path.split('/').collect();
                let Some(at) = parts.iter().rposition(|part| part.len() > 26 && part.contains('_'))
                else {
                    return Case::new(
                        "an unknown path",
                        self.post(&format!("{path}/x/y"), body.to_string().as_bytes()),
                        not_found,
                    );
                };
                parts[at] = *self.random.pick(&[
                    "transfer_00000000000000000000000000",
                    "x",
                    "%00",
                    "%ff",
                    "webhook_endpoint_0",
                    "-",
                ]);
                Case::new(
                    "an unknown ID under a write",
                    self.post(&parts.join("/"), body.to_string().as_bytes()),
                    not_found,
                )
            }
            6 => {
                // Outside the API: pages that do not exist, and those that do with a method they do
                // not take.
                let fixture = &self.fixtures.transfer_id;
                let unknown: Vec<String> = vec![
                    "/nothing".into(),
                    "/pay/".into(),
                    "/pay/x".into(),
                    "/pay/.".into(),
                    "/pay/%00".into(),
                    "/pay/%ff.%ff".into(),
                    format!("/pay/{fixture}"),
                    format!("/pay/{fixture}."),
                    format!("/pay/{fixture}.00000000000000000000000000000000"),
                    format!("/pay/{fixture}.{}", "x".repeat(5_000)),
                    "/pay/transfer_8ZZZZZZZZZZZZZZZZZZZZZZZZZ.x".into(),
                    "/docs/nothing".into(),
                    "/docs/../Cargo.toml".into(),
                    "/docs/%2e%2e/%2e%2e/etc/passwd".into(),
                    "/docs//etc/passwd".into(),
                    "/healthz/".into(),
                    "/openapi.json/".into(),
                    "/v1x".into(),
                    "/.git/config".into(),
                ];
                if self.random.chance(20) {
                    let target = *self.random.pick(&[
                        "/healthz",
                        "/readyz",
                        "/docs/",
                        "/openapi.json",
                        "/pay/x",
                        "/",
                    ]);
                    let body = self.post(target, b"{}");
                    return Case::new(
                        "a POST to a page",
                        body,
                        Expected::Refused(405, "request_method_invalid"),
                    );
                }
                let target = self.random.pick(&unknown).clone();
                Case::new("an unknown page", self.get("GET", target.as_bytes()), not_found)
            }
            3 => {
                let method =
                    *self.random.pick(&["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "FOO"]);
                let path = self.random.pick(&self.reads).clone();
                Case::new(
                    "a method that no route has",
                    self.get(method, path.as_bytes()),
                    Expected::Refused(405, "request_method_invalid"),
                )
            }
            4 => {
                let path = self.random.pick(&self.reads).clone();
                if self.random.chance(50) {
                    return Case {
                        is_head: true,
                        ..Case::new("a HEAD", self.get("HEAD", path.as_bytes()), Expected::Shaped)
                    };
                }
                // Lists and the balance cannot be deleted.
                let target = self.random.pick(&[
                    "/v1/transfers",
                    "/v1/balance",
                    "/v1/events",
                    "/v1/senders",
                ]);
                Case::new(
                    "a DELETE of a list",
                    self.get("DELETE", target.as_bytes()),
                    Expected::Refused(405, "request_method_invalid"),
                )
            }
            _ => {
                let odd: &[&[u8]] = &[
                    b"*",
                    b"v1/senders",
                    b"/v1/senders#fragment",
                    b"/v1/send\"ers",
                    b"/v1/<senders>",
                    b"/v1/senders/\xff\xfe",
                    b"/v1/senders/{id}",
                    b"/v1/a|b",
                    b"/v1/a\\b",
                    b"/v1/a^b",
                    b"/v1/`a`",
                    b"/v1/\xf0\x9f\x98\x80",
                    b"http://127.0.0.1/v1/senders",
                    b"http://[::1/v1",
                    b"https://example.com/v1/senders",
                    b"/v1/a b",
                    b"/v1/a\x01b",
                    b"/v1/a\x7fb",
                    b"?",
                    b"//",
                    b"/../../../../etc/passwd",
                    b"/v1/senders?\xff",
                ];
                let target = *self.random.pick(odd);
                Case {
                    is_last: true,
                    ..Case::new("an odd request target", self.get("GET", target), Expected::Loose)
                }
            }
        }
    }

    fn query_case(&mut self) -> Case {
        let (path, prefix) = *self.random.pick(LISTS);
        let ulid = self.fixtures.transfer_id["transfer_".len()..].to_owned();
        let other = if prefix == "event" { "transfer" } else { "event" };
        let refused = Expected::Refused(400, "request_query_parameter_invalid");
        if self.random.chance(20) {
            // On routes that take no query at all.
            let query =
                *self.random.pick(&["limit=1", "a=b", "starting_after=x", "a=b&a=b", "expand[]=x"]);
            if self.random.chance(50) {
                let single = format!("/v1/transfers/{}?{query}", self.fixtures.transfer_id);
                return Case::new(
                    "a query where none is taken",
                    self.get("GET", single.as_bytes()),
                    refused,
                );
            }
            let body = steps::sender_body().to_string();
            return Case::new(
                "a query where none is taken",
                self.post(&format!("/v1/senders?{query}"), body.as_bytes()),
                refused,
            );
        }
        if self.random.chance(60) {
            let wrong: Vec<String> = vec![
                "limit=0".into(),
                "limit=101".into(),
                "limit=-1".into(),
                "limit=abc".into(),
                "limit=1.5".into(),
                "limit=".into(),
                "limit=1e1".into(),
                "limit=99999999999999999999".into(),
                "limit=%31%30%31".into(),
                "limit=1&limit=2".into(),
                "limit=1&limit=1".into(),
                "unknown=1".into(),
                "Limit=1".into(),
                "limit[]=1".into(),
                "limit=0x1".into(),
                "limit=%D9%A1".into(),
                "starting_after=x".into(),
                "starting_after=%00".into(),
                "starting_after=%ff%fe".into(),
                format!("starting_after={prefix}_"),
                format!("starting_after={other}_{ulid}"),
                format!("ending_before={other}_{ulid}"),
                format!("starting_after={prefix}_{ulid}&ending_before={prefix}_{ulid}"),
                format!("starting_after={prefix}_{ulid}&starting_after={prefix}_{ulid}"),
                format!("starting_after={prefix}_{ulid}0"),
                format!("starting_after={prefix}_8ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
                format!("ending_before={ulid}"),
                format!("starting_after={prefix}_{ulid}%20"),
                "order=up".into(),
                "order=DESC".into(),
                "order=desc&order=desc".into(),
                "created.gt=x".into(),
                "created.lt=1.5".into(),
                "created.gte=".into(),
                "created.lte=99999999999999999999999".into(),
                "created=1".into(),
                "created.eq=1".into(),
                format!("starting_after={}", "x".repeat(self.random.between(1, 4_000) as usize)),
                "a%00b=c".into(),
                "%zz=1".into(),
                "sort=created".into(),
            ];
            let query = self.random.pick(&wrong).clone();
            return Case::new(
                "a wrong query",
                self.get("GET", format!("{path}?{query}").as_bytes()),
                refused,
            );
        }
        let doubtful: Vec<String> = vec![
            "".into(),
            "&".into(),
            "&&&".into(),
            "=".into(),
            "=x".into(),
            "limit".into(),
            "limit=%".into(),
            "limit=+5".into(),
            "limit=05".into(),
            "limit=5%00".into(),
            "limit= 5".replace(' ', "%20"),
            "status=nope".into(),
            "status=".into(),
            "status=%ff".into(),
            "status=funding&status=funded".into(),
            "transfer_id=x".into(),
            "beneficiary_id=x".into(),
            "sender_id=%F0%9F%98%80".into(),
            "transaction_hash=%27".into(),
            "type=*".into(),
            "type=transfer.status.*".into(),
            "linked_id=x".into(),
            "linked_object=x".into(),
            "created.gt=-1".into(),
            "created.gt=9223372036854775807".into(),
            "created.lt=-9223372036854775808".into(),
            "created.gt=5&created.lt=1".into(),
            "unique_transaction_reference=%00".into(),
            format!("starting_after={prefix}_{}", "0".repeat(26)),
            format!("ending_before={prefix}_{}", "7".to_owned() + &"Z".repeat(25)),
            format!("starting_after={prefix}_{}", ulid.to_lowercase()),
            "order=desc".into(),
            format!("order=desc&ending_before={prefix}_{ulid}"),
            "a=b;c=d".into(),
            "?".into(),
            "limit=5?".into(),
            "limit=5/".into(),
            "a=".repeat(1_000),
            "&a".repeat(1_000),
            "limit=5&".repeat(3),
            "limit=5;limit=6".into(),
            "%6cimit=5".into(),
        ];
        let query = self.random.pick(&doubtful).clone();
        Case::new(
            "a doubtful query",
            self.get("GET", format!("{path}?{query}").as_bytes()),
            Expected::Shaped,
        )
    }

    fn framing_case(&mut self) -> Case {
        let good = String::from_utf8_lossy(&self.get("GET", b"/v1/senders")).into_owned();
        let cases: Vec<(&'static str, Vec<u8>)> = vec![
            (
                "noise for a head",
                (0..self.random.between(1, 400)).map(|_| self.random.next() as u8).collect(),
            ),
            ("an empty line", b"\r\n\r\n\r\n\r\n".to_vec()),
            ("no version", good.replacen(" HTTP/1.1", "", 1).into_bytes()),
            ("an unknown version", good.replacen("HTTP/1.1", "HTTP/9.9", 1).into_bytes()),
            ("an old version", good.replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()),
            (
                "the preface of HTTP/2",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
            ),
            (
                "a greeting of TLS",
                b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                    .to_vec(),
            ),
            ("a method that is no token", good.replacen("GET", "G{}T", 1).into_bytes()),
            ("a method in lower case", good.replacen("GET", "get", 1).into_bytes()),
            ("a very long method", good.replacen("GET", &"G".repeat(5_000), 1).into_bytes()),
            (
                "a very long path",
                good.replacen("/v1/senders", &format!("/v1/{}", "x".repeat(100_000)), 1)
                    .into_bytes(),
            ),
            ("a header without a colon", good.replacen("Host: a", "Host a", 1).into_bytes()),
            ("a header without a name", good.replacen("Host: a", ": a", 1).into_bytes()),
            ("a blank before the colon", good.replacen("Host: a", "Host : a", 1).into_bytes()),
            ("a folded header", good.replacen("Host: a", "X-Folded: a\r\n b", 1).into_bytes()),
            ("a folded authorization", good.replacen("Bearer ", "Bearer\r\n ", 1).into_bytes()),
            ("bare line feeds", good.replace("\r\n", "\n").into_bytes()),
            ("bare carriage returns", good.replace("\r\n", "\r").into_bytes()),
            ("NUL in a header", good.replacen("Host: a", "Host: a\0b", 1).into_bytes()),
            ("NUL in a header's name", good.replacen("Host: a", "Ho\0st: a", 1).into_bytes()),
            (
                "a head that breaks off",
                good.as_bytes()[..self.random.between(1, good.len() as u64 - 1) as usize].to_vec(),
            ),
            ("no host", good.replacen("Host: a\r\n", "", 1).into_bytes()),
            ("a CONNECT", good.replacen("GET /v1/senders", "CONNECT 127.0.0.1:80", 1).into_bytes()),
            (
                "an upgrade",
                good.replacen("Host: a", "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket", 1)
                    .into_bytes(),
            ),
            (
                "an unknown transfer encoding",
                good.replacen("Host: a", "Host: a\r\nTransfer-Encoding: gzip", 1).into_bytes(),
            ),
            (
                "an unknown expectation",
                good.replacen("Host: a", "Host: a\r\nExpect: miracles", 1).into_bytes(),
            ),
            ("two requests in one packet", format!("{good}{good}").into_bytes()),
            ("a chunk of a wrong length", self.in_chunks("/v1/senders", b"5\r\n{}\r\n0\r\n\r\n")),
            ("a chunk of no length", self.in_chunks("/v1/senders", b"x\r\n{}\r\n0\r\n\r\n")),
            (
                "a chunk of a huge length",
                self.in_chunks("/v1/senders", b"ffffffffffffffff1\r\n{}\r\n0\r\n\r\n"),
            ),
            ("a negative chunk", self.in_chunks("/v1/senders", b"-2\r\n{}\r\n0\r\n\r\n")),
            ("chunks without an end", self.in_chunks("/v1/senders", b"2\r\n{}\r\n")),
            (
                "a chunk with a long extension",
                self.in_chunks(
                    "/v1/senders",
                    &[b"2;", b"x".repeat(40_000).as_slice(), b"\r\n{}\r\n0\r\n\r\n"].concat(),
                ),
            ),
            (
                "chunks with many trailers",
                self.in_chunks(
                    "/v1/senders",
                    &[b"2\r\n{}\r\n0\r\n", b"A: b\r\n".repeat(5_000).as_slice(), b"\r\n"].concat(),
                ),
            ),
        ];
        let (what, bytes) = self.random.pick(&cases).clone();
        Case::broken(what, bytes)
    }
}
