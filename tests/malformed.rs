//! Thousands of malformed requests: bodies, headers, paths, queries and framing. The service
//! answers each in its error shape with a listed code, never with a fault of its own, and works as
//! before when it is over.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::client::Trouble;
use support::postgres::Database;
use support::random::{number, seed};
use support::requests::{Case, Expected, Maker, fixtures};
use support::steps;
use support::{Answer, Connection, Home, Random};

const THREADS_COUNT: u64 = 4;
/// Requests of an ordinary run, on SQLite and with `HUNDI_TEST_STORE=postgres`;
/// `HUNDI_MALFORMED_REQUESTS` is for another number.
const REQUESTS: u64 = 10_000;
/// Single waits: an answer or a close must come within this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Findings that are kept word for word, for each kind of request; the count goes on.
const FINDINGS_KEPT_MAX: usize = 2;
/// Bytes of a request that a finding shows.
const SHOWN_BYTES_MAX: usize = 1_500;

/// Every code of the specification and the contract, with the HTTP statuses it may come with.
const CODES: &[(&str, &[u16])] = &[
    ("parameter_empty", &[400]),
    ("parameter_value_invalid", &[400]),
    ("parameter_min_length_invalid", &[400]),
    ("parameter_max_length_invalid", &[400]),
    ("parameter_range_invalid", &[400]),
    ("parameter_unexpected", &[400]),
    ("request_body_invalid", &[400]),
    ("request_query_parameter_invalid", &[400]),
    ("secret_key_invalid", &[401]),
    ("action_unauthorized", &[401, 403]),
    ("object_not_found", &[404]),
    ("idempotency_key_reuse", &[409]),
    ("resource_locked", &[409]),
    ("beneficiary_not_payable", &[400]),
    ("beneficiary_not_editable", &[400]),
    ("quote_lock_expired", &[400]),
    ("quote_lock_already_used", &[400]),
    ("quote_lock_mismatch", &[400]),
    ("sender_not_eligible", &[400]),
    ("transfer_not_cancellable", &[400]),
    ("transfer_action_invalid", &[400]),
    ("refund_address_required", &[400]),
    ("payment_advice_not_ready", &[400]),
    ("webhook_endpoint_limit_exceeded", &[400]),
    ("test_helper_not_applicable", &[400]),
    ("testmode_action_only", &[403]),
    ("request_method_invalid", &[405]),
    ("rate_limit_exceeded", &[429]),
    ("internal_error", &[500]),
    ("quote_unavailable", &[503]),
    ("service_unavailable", &[503]),
];

/// What is wrong with an answer, if anything.
fn problem_of(case: &Case, answer: &Answer) -> Option<String> {
    if answer.status >= 500 {
        return Some("a fault of the service".to_owned());
    }
    if case.is_head {
        return None;
    }
    let shaped =
        if answer.is_success() { success_problem(answer) } else { refusal_problem(answer) };
    let is_bare_refusal = (400..500).contains(&answer.status) && answer.body.is_empty();
    match (&case.expected, shaped) {
        (Expected::Loose, Some(_)) if is_bare_refusal => None,
        (_, Some(problem)) => Some(problem),
        (Expected::Refused(status, code), None) => {
            let body = answer.json();
            let codes: Vec<&str> = body["errors"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|error| error["code"].as_str())
                .collect();
            let is_right = answer.status == *status && codes.contains(code);
            (!is_right).then(|| format!("expected {status} {code}"))
        }
        (_, None) => None,
    }
}

fn success_problem(answer: &Answer) -> Option<String> {
    let body = answer.json();
    if answer.status != 200 {
        return Some(format!("a success with status {}", answer.status));
    }
    // The payment advice is a document of its own.
    (!body.is_object()).then(|| "a success that is no JSON object".to_owned())
}

/// The error shape of the specification, to the letter.
fn refusal_problem(answer: &Answer) -> Option<String> {
    let body = answer.json();
    let Some(members) = body.as_object() else {
        return Some("a refusal that is no JSON object".to_owned());
    };
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    if names != ["errors", "http_status_code", "object"] {
        return Some(format!("a refusal with the members {names:?}"));
    }
    if body["object"] != "error" {
        return Some("a refusal whose object is not error".to_owned());
    }
    if body["http_status_code"] != answer.status {
        return Some("http_status_code is not the status".to_owned());
    }
    if !answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return Some("a refusal of another content type".to_owned());
    }
    let request_id = answer.header("request-id").and_then(|id| id.strip_prefix("request_"));
    if request_id.is_none_or(|ulid| ulid.len() != 26) {
        return Some("a refusal without a Request-Id".to_owned());
    }
    let errors = body["errors"].as_array()?;
    if errors.is_empty() {
        return Some("a refusal without an error".to_owned());
    }
    for error in errors {
        let code = error["code"].as_str().unwrap_or_default();
        let Some((_, statuses)) = CODES.iter().find(|(listed, _)| *listed == code) else {
            return Some(format!("a code that is not listed: {code:?}"));
        };
        if !statuses.contains(&answer.status) {
            return Some(format!("{code} with status {}", answer.status));
        }
        if error["message"].as_str().is_none_or(str::is_empty) || !error["metadata"].is_object() {
            return Some("an error without a message or metadata".to_owned());
        }
    }
    if answer.status == 405 && answer.header("allow").is_none() {
        return Some("405 without Allow".to_owned());
    }
    None
}

/// Sends one case and judges what came back.
fn judge(
    case: &Case,
    connection: &mut Option<Connection>,
    address: SocketAddr,
) -> Result<Option<Answer>, String> {
    // A kept connection may have been closed by the server since the last answer, so a send that
    // got no single byte back is tried once more on a new one.
    for is_retry in [false, true] {
        let was_kept = connection.is_some() && !is_retry;
        let mut open = match connection.take() {
            Some(open) if !is_retry => open,
            _ => {
                Connection::open_within(address, PATIENCE).map_err(|trouble| trouble.to_string())?
            }
        };
        let sent = open.send(&case.bytes);
        if case.is_last {
            open.finish_sending();
        }
        let received = match (sent, open.receive(!case.is_head)) {
            // What was answered before the last byte went out still counts.
            (_, Ok(Some(answer))) => Ok(Some(answer)),
            (Err(trouble), _) => Err(trouble),
            (Ok(()), received) => received,
        };
        let is_loose = matches!(case.expected, Expected::Loose);
        match received {
            Ok(Some(answer)) => {
                if !open.is_spent && !case.is_last {
                    *connection = Some(open);
                }
                return problem_of(case, &answer).map_or(Ok(Some(answer.clone())), |problem| {
                    Err(format!("{problem}: {} {}", answer.status, answer.text()))
                });
            }
            Err(trouble) if trouble.is_timeout() => {
                return Err(format!("neither an answer nor a close within {PATIENCE:?}"));
            }
            Err(Trouble::Protocol(problem)) => {
                return Err(format!("the answer is not HTTP: {problem}"));
            }
            Ok(None) | Err(_) if is_loose => return Ok(None),
            Ok(None) | Err(_) if was_kept => {}
            Ok(None) => return Err("closed without an answer".to_owned()),
            Err(trouble) => return Err(trouble.to_string()),
        }
    }
    Err("closed twice without an answer".to_owned())
}

fn shown(bytes: &[u8]) -> String {
    let mut text: String = bytes
        .iter()
        .take(SHOWN_BYTES_MAX)
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect();
    if bytes.len() > SHOWN_BYTES_MAX {
        text.push_str(&format!("… ({} bytes)", bytes.len()));
    }
    text
}

#[test]
fn malformed_requests_are_refused_in_shape() {
    let seed = seed("HUNDI_MALFORMED_SEED");
    let database = std::env::var("HUNDI_TEST_STORE")
        .is_ok_and(|store| store == "postgres")
        .then(Database::fresh);
    let requests_count = number("HUNDI_MALFORMED_REQUESTS", REQUESTS);
    let home = match &database {
        Some(database) => Home::new("malformed").on(&database.url()),
        None => Home::new("malformed"),
    };
    let home = home.with("HUNDI_RATE_LIMIT_READS", "0").with("HUNDI_RATE_LIMIT_WRITES", "0");
    let mut server = home.start();
    let key = home.key();
    let fixtures = fixtures(&mut server.client(&key));
    let address = server.address();
    let findings_count = AtomicU64::new(0);
    let (mut findings, mut tallies): (Vec<String>, BTreeMap<&'static str, [u64; 3]>) =
        Default::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS_COUNT)
            .map(|thread| {
                let (fixtures, findings_count) = (&fixtures, &findings_count);
                scope.spawn(move || {
                    let mut maker = Maker::new(fixtures, Random::new(seed.wrapping_add(thread)));
                    let mut connection = None;
                    let mut findings: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
                    let mut tallies: BTreeMap<&'static str, [u64; 3]> = BTreeMap::new();
                    for index in 0..requests_count.div_ceil(THREADS_COUNT) {
                        let case = maker.make();
                        let tally = tallies.entry(case.what).or_default();
                        match judge(&case, &mut connection, address) {
                            Ok(Some(answer)) if answer.is_success() => tally[0] += 1,
                            Ok(Some(_)) => tally[1] += 1,
                            Ok(None) => tally[2] += 1,
                            Err(problem) => {
                                findings_count.fetch_add(1, Ordering::Relaxed);
                                let kept = findings.entry(case.what).or_default();
                                if kept.len() < FINDINGS_KEPT_MAX {
                                    kept.push(format!(
                                        "thread {thread}, request {index}, {}: {problem}\n    {}",
                                        case.what,
                                        shown(&case.bytes)
                                    ));
                                }
                                connection = None;
                            }
                        }
                    }
                    (findings, tallies)
                })
            })
            .collect();
        for thread in threads {
            let (more_findings, more_tallies) = thread.join().expect("a thread of requests");
            findings.extend(more_findings.into_values().flatten());
            for (what, counts) in more_tallies {
                let tally = tallies.entry(what).or_default();
                (0..3).for_each(|kind| tally[kind] += counts[kind]);
            }
        }
    });
    for (what, [succeeded, refused, closed]) in &tallies {
        println!("{what}: {refused} refused, {succeeded} happened to be valid, {closed} closed");
    }
    let findings_count = findings_count.load(Ordering::Relaxed);
    assert!(
        findings_count == 0,
        "HUNDI_MALFORMED_SEED={seed}: {findings_count} findings\n  {}",
        findings.join("\n  ")
    );
    // Mutations that mostly happened to be valid would prove nothing.
    let [succeeded, refused, closed] = tallies
        .values()
        .fold([0; 3], |sum, counts| [sum[0] + counts[0], sum[1] + counts[1], sum[2] + counts[2]]);
    assert!(
        refused * 2 > succeeded + refused + closed,
        "only {refused} of {requests_count} requests were refused"
    );

    assert!(server.ended().is_none(), "the server ended");
    assert!(server.is_ready(), "the server is not ready any more");
    assert!(home.panics().is_empty(), "the server panicked: {:?}", home.panics());
    // Another account finds the service as it should be.
    let other = home.key_with(&["--account", "unharmed"]);
    steps::six_steps(&mut server.client(&other), "42.00");
    home.check().expect_success("the check");
    assert!(server.stop().success(), "the server did not end well");
}

/// The judge itself has to be able to fail: answers that break one rule each.
#[test]
fn judge_refuses_answers_out_of_shape() {
    let error = |code: &str| {
        json!({ "object": "error", "errors": [{ "code": code, "message": "m",
        "metadata": {} }], "http_status_code": 400 })
    };
    let answer = |status: u16, body: &Value| Answer {
        status,
        headers: [
            ("content-type", "application/json"),
            ("request-id", "request_01JDK3Y5M8Q2X7N4V6T9R0ABCD"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        body: body.to_string().into_bytes(),
    };
    let case = |expected| Case::new("a case", Vec::new(), expected);
    let good = error("parameter_empty");
    assert_eq!(problem_of(&case(Expected::Shaped), &answer(400, &good)), None);
    assert_eq!(
        problem_of(&case(Expected::Refused(400, "parameter_empty")), &answer(400, &good)),
        None
    );
    let mut lacking = good.clone();
    lacking["errors"] = json!([]);
    let mut more = good.clone();
    more["extra"] = json!(1);
    for (what, wrong) in [
        ("an unlisted code", answer(400, &error("parameter_strange"))),
        ("a code of another status", answer(400, &error("object_not_found"))),
        ("another status than the body says", answer(404, &good)),
        ("a fault", answer(500, &error("internal_error"))),
        ("no errors", answer(400, &lacking)),
        ("another member", answer(400, &more)),
        ("a bare refusal", Answer { status: 400, headers: Vec::new(), body: Vec::new() }),
        (
            "no Request-Id",
            Answer {
                headers: vec![("content-type".into(), "application/json".into())],
                ..answer(400, &good)
            },
        ),
    ] {
        assert!(problem_of(&case(Expected::Shaped), &wrong).is_some(), "{what} was let through");
    }
    let wrong_code =
        problem_of(&case(Expected::Refused(400, "parameter_unexpected")), &answer(400, &good));
    assert!(wrong_code.is_some(), "a listed code in place of the right one was let through");
    assert!(
        problem_of(&case(Expected::Loose), &answer(500, &error("internal_error"))).is_some(),
        "a fault after broken framing was let through"
    );
}
