//! Beneficiaries: fields, the way from draft to payable, updates, steering and the helpers of test
//! mode.

use serde_json::{Value, json};

use crate::stage::{self, Actor, STEP, event_types, faults};
use crate::support::{Client, Server, id};

fn valid() -> Value {
    json!({ "name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001",
        "account_type": "nre" })
}

/// The valid body with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut body = valid();
    body[field] = value;
    body
}

fn without(field: &str) -> Value {
    let mut body = valid();
    body.as_object_mut().unwrap().remove(field);
    body
}

fn path(object: &Value) -> String {
    format!("/v1/beneficiaries/{}", id(object))
}

async fn help(client: &Client, beneficiary: &Value, helper: &str) -> crate::support::Answer {
    client
        .post(&format!("/v1/test_helpers/beneficiaries/{}/{helper}", id(beneficiary)), json!({}))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_beneficiary_shows_every_field_and_nothing_secret() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let answer = actor
        .client
        .post(
            "/v1/beneficiaries",
            json!({
                "name": "Zoë D'Souza-राव", "account_number": "AB00987654321", "ifsc": "hdfc0abc12z",
                    "account_type": "nre",
                "email": "zoe@example.com", "phone": "+971501234567",
                    "metadata": { "customer": "77", "यह": "ठीक" },
                "pan": "ABCDE1234F", "passport_number": "Z1234567", "date_of_birth": "1980-02-29",
                    "nationality": "IN", "relationship": "self",
            }),
        )
        .await;
    let created = answer.ok();
    let mut wanted = json!({
        "object": "beneficiary", "id": created["id"], "name": "Zoë D'Souza-राव",
            "account_number_last4": "4321", "ifsc": "HDFC0ABC12Z",
        "account_type": "nre", "status": "verifying", "payouts_enabled": false,
            "payouts_disabled_reason": "verification_pending",
        "bank_name": created["bank_name"], "branch_name": created["branch_name"],
            "email": "zoe@example.com", "phone": "+971501234567",
        "pan_last4": "234F", "passport_number_last4": "4567", "requirements": [],
            "verification": { "name_match": null, "checked_at": null },
        "metadata": { "customer": "77", "यह": "ठीक" }, "created": actor.now(), "livemode": false,
    });
    assert_eq!(created, wanted);
    assert!(
        id(&created).starts_with("beneficiary_") && id(&created).len() == "beneficiary_".len() + 26
    );
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    for secret in [
        "AB00987654321",
        "0987654",
        "ABCDE1234F",
        "Z1234567",
        "1980-02-29",
        "relationship",
        "nationality",
        "date_of_birth",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    actor.advance(STEP).await;
    wanted["status"] = json!("active");
    wanted["payouts_enabled"] = json!(true);
    wanted["payouts_disabled_reason"] = Value::Null;
    wanted["verification"] = json!({ "name_match": "match", "checked_at": actor.now() });
    assert_eq!(actor.client.get(&path(&created)).await.ok(), wanted);
    assert_eq!(
        event_types(&actor.client, &id(&created)).await,
        ["beneficiary.status.verifying", "beneficiary.status.active"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_fields_that_are_absent_are_null_and_metadata_is_an_empty_object() {
    let server = Server::start().await;
    let client = server.client().await;
    let nulls = json!({
        "name": "Asha Rao", "account_number": "12345", "ifsc": "HDFC0000001", "account_type": "nre",
            "email": null, "phone": null, "metadata": null,
        "pan": null, "passport_number": null, "date_of_birth": null, "nationality": null,
            "relationship": null, "submit": null,
    });
    for body in [valid(), nulls] {
        let created = client.post("/v1/beneficiaries", body).await.ok();
        for field in ["email", "phone", "pan_last4", "passport_number_last4"] {
            assert_eq!(created.get(field), Some(&Value::Null), "{field}");
        }
        assert_eq!(created["metadata"], json!({}));
        assert_eq!(created["status"], "verifying");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_is_judged_on_its_own() {
    const EMPTY: &str = "parameter_empty";
    const VALUE: &str = "parameter_value_invalid";
    const MIN: &str = "parameter_min_length_invalid";
    const MAX: &str = "parameter_max_length_invalid";
    let server = Server::start().await;
    let client = server.client().await;
    let long = |length: usize| "x".repeat(length);
    let pairs = |count: usize| {
        Value::Object((0..count).map(|n| (format!("key{n}"), json!("value"))).collect())
    };
    let mut cases: Vec<(Value, &str, String)> = Vec::new();
    for field in ["name", "account_number", "ifsc", "account_type"] {
        cases.push((without(field), EMPTY, field.into()));
        cases.push((with(field, Value::Null), EMPTY, field.into()));
        cases.push((with(field, json!("")), EMPTY, field.into()));
        for value in [json!(5), json!(true), json!(["x"]), json!({})] {
            cases.push((with(field, value), VALUE, field.into()));
        }
    }
    for (field, value, code) in [
        ("name", json!(long(141)), MAX),
        ("name", json!("a\u{0}b"), VALUE),
        ("name", json!("a\nb"), VALUE),
        ("name", json!("a\u{85}b"), VALUE),
        ("account_number", json!("1234"), MIN),
        ("account_number", json!(long(21)), MAX),
        ("account_number", json!("1234 5678"), VALUE),
        ("account_number", json!("१२३४५६७"), VALUE),
        ("account_number", json!("12345-678"), VALUE),
        ("ifsc", json!("HDFC1000001"), VALUE),
        ("ifsc", json!("HD1C0000001"), VALUE),
        ("ifsc", json!("HDFC0-00001"), VALUE),
        ("ifsc", json!("HDFC000000"), MIN),
        ("ifsc", json!("HDFC00000001"), MAX),
        ("account_type", json!("nro"), VALUE),
        ("account_type", json!("NRE"), VALUE),
        ("email", json!("asha"), VALUE),
        ("email", json!("a b@example.com"), VALUE),
        ("email", json!(format!("{}@example.com", long(243))), MAX),
        ("email", json!(7), VALUE),
        ("phone", json!("971501234567"), VALUE),
        ("phone", json!("+071501234567"), VALUE),
        ("phone", json!("+97150123456a"), VALUE),
        ("phone", json!("+1234567890123456"), MAX),
        ("pan", json!("abcd12345f"), VALUE),
        ("pan", json!("ABCD12345F"), VALUE),
        ("passport_number", json!("Z1234"), MIN),
        ("passport_number", json!(long(21)), MAX),
        ("date_of_birth", json!("2001-02-29"), VALUE),
        ("date_of_birth", json!("29-02-2000"), VALUE),
        ("date_of_birth", json!(951_782_400), VALUE),
        ("nationality", json!("ZZ"), VALUE),
        ("nationality", json!("in"), VALUE),
        ("relationship", json!("friend"), VALUE),
        ("submit", json!("true"), VALUE),
        ("submit", json!(1), VALUE),
        ("metadata", json!([]), VALUE),
        ("metadata", json!("x"), VALUE),
        ("metadata", pairs(11), MAX),
        ("colour", json!("red"), "parameter_unexpected"),
        ("status", json!("active"), "parameter_unexpected"),
    ] {
        cases.push((with(field, value), code, field.into()));
    }
    for (metadata, code, field) in [
        (json!({ "k": 5 }), VALUE, "metadata.k"),
        (json!({ "k": null }), VALUE, "metadata.k"),
        (json!({ "k": { "deep": "x" } }), VALUE, "metadata.k"),
        (json!({ "k": "" }), MIN, "metadata.k"),
        (json!({ "k": long(501) }), MAX, "metadata.k"),
        (json!({ "k": "a\tb" }), VALUE, "metadata.k"),
    ] {
        cases.push((with("metadata", metadata), code, field.into()));
    }
    for (body, code, field) in cases {
        let answer = client.post("/v1/beneficiaries", body.clone()).await;
        assert_eq!(answer.errors(400), faults(&[(code, &field)]), "{body}");
    }
    for (field, value) in [
        ("date_of_birth", json!("2000-02-28T00:00:00Z")),
        ("metadata", json!({ "k".repeat(41): "x" })),
        ("metadata", json!({ "": "x" })),
    ] {
        let answer = client.post("/v1/beneficiaries", with(field, value.clone())).await;
        let errors = answer.errors(400);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].0.starts_with("parameter_")
                && errors[0].1.as_deref().unwrap().starts_with(field),
            "{value}: {errors:?}"
        );
    }
    assert_eq!(
        client.get("/v1/beneficiaries").await.ok()["data"],
        json!([]),
        "a refused request left something behind"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_of_birth_is_past_and_not_before_1900() {
    const FUTURE: &str = "date_of_birth must be a past date.";
    const OLD: &str =
        "date_of_birth must be a date that exists, not before 1900, written YYYY-MM-DD.";
    let server = Server::start().await;
    let client = server.client().await;
    let draft = with("submit", json!(false));
    let changed = path(&client.post("/v1/beneficiaries", draft.clone()).await.ok());
    let sender = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE" });
    for (path, body) in [
        ("/v1/beneficiaries", draft.clone()),
        ("/v1/beneficiaries/validate", draft),
        (changed.as_str(), json!({ "submit": false })),
        ("/v1/senders", sender),
    ] {
        let of = |date: &str| {
            let mut body = body.clone();
            body["date_of_birth"] = json!(date);
            body
        };
        for (date, message) in [("2099-12-31", FUTURE), ("1800-01-01", OLD)] {
            let answer = client.post(path, of(date)).await;
            assert_eq!(
                answer.errors(400),
                faults(&[("parameter_value_invalid", "date_of_birth")]),
                "{path} {date}"
            );
            assert_eq!(answer.json()["errors"][0]["message"], message, "{path} {date}");
            // It is told together with the other problems of the form.
            let mut body = of(date);
            body["email"] = json!("asha");
            let answer = client.post(path, body).await;
            let mut told = answer.errors(400);
            told.sort();
            let both = [
                ("parameter_value_invalid", "date_of_birth"),
                ("parameter_value_invalid", "email"),
            ];
            assert_eq!(told, faults(&both), "{path} {date}");
        }
        client.post(path, of("1900-01-01")).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_problems_come_in_one_answer_with_dotted_names() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({
        "name": "", "account_number": "123", "ifsc": "HDFC1000001", "email": "asha", "phone": "5",
            "pan": "x", "passport_number": "1",
        "date_of_birth": "2001-02-29", "nationality": "ZZ", "relationship": "friend",
            "submit": "yes", "metadata": { "a": 1, "b": "" }, "colour": "red",
    });
    let mut found = client.post("/v1/beneficiaries", body).await.errors(400);
    found.sort();
    let mut wanted = faults(&[
        ("parameter_empty", "name"),
        ("parameter_empty", "account_type"),
        ("parameter_min_length_invalid", "account_number"),
        ("parameter_value_invalid", "ifsc"),
        ("parameter_value_invalid", "email"),
        ("parameter_min_length_invalid", "phone"),
        ("parameter_min_length_invalid", "pan"),
        ("parameter_min_length_invalid", "passport_number"),
        ("parameter_value_invalid", "date_of_birth"),
        ("parameter_value_invalid", "nationality"),
        ("parameter_value_invalid", "relationship"),
        ("parameter_value_invalid", "submit"),
        ("parameter_value_invalid", "metadata.a"),
        ("parameter_min_length_invalid", "metadata.b"),
        ("parameter_unexpected", "colour"),
    ]);
    wanted.sort();
    assert_eq!(found, wanted);
    let mut empty = client.post("/v1/beneficiaries", json!({})).await.errors(400);
    empty.sort();
    let required = [
        ("parameter_empty", "account_number"),
        ("parameter_empty", "account_type"),
        ("parameter_empty", "ifsc"),
        ("parameter_empty", "name"),
    ];
    assert_eq!(empty, faults(&required));
    let key = client.fresh_key();
    assert_eq!(
        client.post_raw("/v1/beneficiaries", &key, "").await.error(400),
        "request_body_invalid"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn values_at_their_bounds_are_taken() {
    let server = Server::start().await;
    let client = server.client().await;
    let mut metadata = serde_json::Map::new();
    for n in 0..10 {
        metadata.insert(format!("{n}{}", "k".repeat(39)), json!("é".repeat(500)));
    }
    for (field, value) in [
        ("name", json!("न".repeat(140))),
        ("name", json!("x")),
        ("account_number", json!("12345")),
        ("account_number", json!("A".repeat(20))),
        ("email", json!(format!("{}@example.com", "x".repeat(242)))),
        ("phone", json!("+123456789012345")),
        ("passport_number", json!("Z12345")),
        ("passport_number", json!("Z".repeat(20))),
        ("relationship", json!("family")),
        ("relationship", json!("other")),
        ("metadata", Value::Object(metadata)),
        ("ifsc", json!("ZZZZ0ZZZZZZ")),
    ] {
        let created = client.post("/v1/beneficiaries", with(field, value.clone())).await.ok();
        if ["name", "email", "phone", "metadata"].contains(&field) {
            assert_eq!(created[field], value);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_rests_until_it_is_submitted() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let draft = client.post("/v1/beneficiaries", with("submit", json!(false))).await.ok();
    assert_eq!(
        (draft["status"].as_str(), draft["payouts_enabled"].as_bool()),
        (Some("draft"), Some(false))
    );
    actor.advance(10 * STEP).await;
    assert_eq!(client.get(&path(&draft)).await.ok()["status"], "draft");
    let changed = client.post(&path(&draft), json!({ "name": "Asha R. Rao" })).await.ok();
    assert_eq!(
        (changed["status"].as_str(), changed["name"].as_str()),
        (Some("draft"), Some("Asha R. Rao")),
        "an update of a draft does not submit it"
    );
    let submitted = client.post(&path(&draft), json!({ "submit": true })).await.ok();
    assert_eq!(submitted["status"], "verifying", "submit alone counts as a field");
    actor.advance(STEP).await;
    assert_eq!(client.get(&path(&draft)).await.ok()["status"], "active");
    let wanted =
        ["beneficiary.status.draft", "beneficiary.status.verifying", "beneficiary.status.active"];
    assert_eq!(event_types(client, &id(&draft)).await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_replaces_clears_and_merges() {
    let server = Server::start().await;
    let client = server.client().await;
    let mut body = with("submit", json!(false));
    body["email"] = json!("a@example.com");
    body["phone"] = json!("+971501234567");
    body["pan"] = json!("ABCDE1234F");
    body["passport_number"] = json!("Z1234567");
    body["metadata"] = json!({ "one": "1", "two": "2", "three": "3" });
    let draft = client.post("/v1/beneficiaries", body).await.ok();
    let path = path(&draft);
    let mut wanted = draft.clone();
    let steps = [
        (json!({ "email": null }), json!({ "email": null })),
        (
            json!({ "phone": "+14155550100", "name": "A. Rao" }),
            json!({ "phone": "+14155550100", "name": "A. Rao" }),
        ),
        (
            json!({ "pan": null, "passport_number": "X7654321" }),
            json!({ "pan_last4": null, "passport_number_last4": "4321" }),
        ),
        (
            json!({ "account_number": "999988887777", "ifsc": "icic0000002" }),
            json!({ "account_number_last4": "7777", "ifsc": "ICIC0000002", "bank_name": "ICICI \
             Bank", "branch_name": "BANGALOREM G ROAD" }),
        ),
        (
            json!({ "metadata": { "two": null, "one": "11", "four": "4" } }),
            json!({ "metadata": { "one": "11", "three": "3", "four": "4" } }),
        ),
        (json!({ "metadata": { "absent": null } }), json!({})),
        (json!({ "metadata": {} }), json!({})),
        (
            json!({ "date_of_birth": "1980-01-01", "nationality": "AE", "relationship": "other",
                "submit": false }),
            json!({}),
        ),
        (json!({ "metadata": null }), json!({ "metadata": {} })),
    ];
    for (change, effect) in steps {
        for (field, value) in effect.as_object().unwrap() {
            wanted[field] = value.clone();
        }
        assert_eq!(client.post(&path, change.clone()).await.ok(), wanted, "{change}");
        assert_eq!(client.get(&path).await.ok(), wanted, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_refused_with_all_their_problems() {
    let server = Server::start().await;
    let client = server.client().await;
    let mut body = with("submit", json!(false));
    body["metadata"] = Value::Object((0..9).map(|n| (format!("k{n}"), json!("v"))).collect());
    let draft = client.post("/v1/beneficiaries", body).await.ok();
    let path = path(&draft);
    assert_eq!(client.post(&path, json!({})).await.error(400), "parameter_empty");
    let key = client.fresh_key();
    assert_eq!(client.post_raw(&path, &key, "").await.error(400), "request_body_invalid");
    let cases: [(Value, &[(&str, &str)]); 10] = [
        (json!({ "account_type": null }), &[("parameter_empty", "account_type")]),
        (json!({ "name": null }), &[("parameter_empty", "name")]),
        (json!({ "name": "" }), &[("parameter_empty", "name")]),
        (json!({ "account_number": null }), &[("parameter_empty", "account_number")]),
        (json!({ "ifsc": "x" }), &[("parameter_min_length_invalid", "ifsc")]),
        (json!({ "colour": "red" }), &[("parameter_unexpected", "colour")]),
        (json!({ "metadata": { "a": 5 } }), &[("parameter_value_invalid", "metadata.a")]),
        (
            json!({ "metadata": { "a": "1", "b": "2" } }),
            &[("parameter_max_length_invalid", "metadata")],
        ),
        (json!({ "submit": "no" }), &[("parameter_value_invalid", "submit")]),
        (
            json!({ "name": null, "email": "x@y", "account_type": "nro", "metadata": { "a": "" } }),
            &[
                ("parameter_value_invalid", "account_type"),
                ("parameter_empty", "name"),
                ("parameter_value_invalid", "email"),
                ("parameter_min_length_invalid", "metadata.a"),
            ],
        ),
    ];
    for (change, wanted) in cases {
        let mut found = client.post(&path, change.clone()).await.errors(400);
        let mut wanted = faults(wanted);
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{change}");
    }
    assert_eq!(client.get(&path).await.ok(), draft, "a refused update changed something");
    for missing in
        ["beneficiary_01JDK3Y5M8Q2X7N4V6T9R0ABCD", "sender_01JDK3Y5M8Q2X7N4V6T9R0ABCD", "x"]
    {
        // The object in the path comes before the body's form.
        assert_eq!(
            client
                .post(&format!("/v1/beneficiaries/{missing}"), json!({ "colour": 1 }))
                .await
                .error(404),
            "object_not_found"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_draft_and_input_required_can_be_changed() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let verifying = client.beneficiary("50100010000004").await;
    let active = client.beneficiary(stage::SETTLES).await;
    let rejected = client.beneficiary("50100010000003").await;
    let input_required = client.beneficiary("50100010000002").await;
    actor.advance(STEP).await;
    for (beneficiary, status) in
        [(&verifying, "verifying"), (&active, "active"), (&rejected, "rejected")]
    {
        let before = client.get(&path(beneficiary)).await.ok();
        assert_eq!(before["status"], status);
        let answer = client.post(&path(beneficiary), json!({ "name": "Somebody Else" })).await;
        assert_eq!(answer.error(400), "beneficiary_not_editable", "{status}");
        assert_eq!(client.get(&path(beneficiary)).await.ok(), before);
    }
    assert_eq!(client.get(&path(&input_required)).await.ok()["status"], "input_required");
    let kept = client
        .post(&path(&input_required), json!({ "submit": false, "email": "a@example.com" }))
        .await
        .ok();
    assert_eq!(
        (kept["status"].as_str(), kept["email"].as_str()),
        (Some("input_required"), Some("a@example.com"))
    );
    let sent = client.post(&path(&input_required), json!({ "email": null })).await.ok();
    assert_eq!(
        sent["status"], "verifying",
        "in input_required an update submits unless it says otherwise"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn account_numbers_steer_the_verification() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let partial = client.beneficiary("50100010000002").await;
    let rejected = client.beneficiary("50100010000003").await;
    let waiting = client.beneficiary("50100010000004").await;
    actor.advance(STEP).await;
    let partial = client.get(&path(&partial)).await.ok();
    assert_eq!(
        (partial["status"].as_str(), partial["payouts_enabled"].as_bool()),
        (Some("input_required"), Some(false))
    );
    assert_eq!(partial["payouts_disabled_reason"], "name_mismatch");
    assert_eq!(
        partial["verification"],
        json!({ "name_match": "partial", "checked_at": actor.now() })
    );
    let requirements = partial["requirements"].as_array().unwrap();
    assert_eq!(requirements.len(), 1);
    assert_eq!(stage::keys(&requirements[0]), ["code", "field_name", "message"]);
    assert_eq!(requirements[0]["field_name"], "name");
    let rejected = client.get(&path(&rejected)).await.ok();
    assert_eq!(
        (rejected["status"].as_str(), rejected["payouts_enabled"].as_bool()),
        (Some("rejected"), Some(false))
    );
    assert_eq!(rejected["requirements"], json!([]));
    actor.advance(30 * stage::DAY).await;
    let waiting = client.get(&path(&waiting)).await.ok();
    assert_eq!(
        (waiting["status"].as_str(), waiting["payouts_disabled_reason"].as_str()),
        (Some("verifying"), Some("verification_pending"))
    );
    // A corrected account passes.
    let mended =
        client.post(&path(&partial), json!({ "account_number": "50100012345678" })).await.ok();
    assert_eq!(
        (mended["status"].as_str(), &mended["requirements"]),
        (Some("verifying"), &json!([]))
    );
    assert_eq!(
        mended["verification"],
        json!({ "name_match": null, "checked_at": null }),
        "what was found is about the other account"
    );
    actor.advance(STEP).await;
    let mended = client.get(&path(&partial)).await.ok();
    assert_eq!(
        (
            mended["status"].as_str(),
            mended["payouts_enabled"].as_bool(),
            &mended["payouts_disabled_reason"]
        ),
        (Some("active"), Some(true), &Value::Null)
    );
    assert_eq!(mended["verification"]["name_match"], "match");
    let wanted = ["verifying", "input_required", "verifying", "active"]
        .map(|status| format!("beneficiary.status.{status}"));
    assert_eq!(event_types(client, &id(&partial)).await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sixth_failed_pass_rejects() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let beneficiary = actor.client.beneficiary("50100010000002").await;
    let path = path(&beneficiary);
    let mut wanted = Vec::new();
    for pass in 1..=6 {
        actor.advance(STEP).await;
        let status = if pass < 6 { "input_required" } else { "rejected" };
        assert_eq!(actor.client.get(&path).await.ok()["status"], status, "pass {pass}");
        wanted.extend([
            "beneficiary.status.verifying".to_owned(),
            format!("beneficiary.status.{status}"),
        ]);
        if pass < 6 {
            let body = json!({ "name": format!("Try {pass}") });
            assert_eq!(actor.client.post(&path, body).await.ok()["status"], "verifying");
        }
    }
    assert_eq!(event_types(&actor.client, &id(&beneficiary)).await, wanted);
    assert_eq!(
        actor.client.post(&path, json!({ "name": "Again" })).await.error(400),
        "beneficiary_not_editable"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn helpers_decide_a_verification_and_nothing_else() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let outcomes = [
        ("activate", "active", true),
        ("require_input", "input_required", false),
        ("reject", "rejected", false),
    ];
    for (helper, status, payouts_enabled) in outcomes {
        let beneficiary = client.beneficiary("50100010000004").await;
        let decided = help(client, &beneficiary, helper).await.ok();
        assert_eq!(
            (decided["object"].as_str(), decided["status"].as_str()),
            (Some("beneficiary"), Some(status))
        );
        assert_eq!(decided["payouts_enabled"], payouts_enabled);
        assert_eq!(decided["payouts_disabled_reason"].is_null(), payouts_enabled);
        assert_eq!(
            decided["requirements"].as_array().unwrap().is_empty(),
            status != "input_required"
        );
        if status == "input_required" {
            let message = decided["requirements"][0]["message"].as_str().unwrap();
            for step in ["any name", "POST /v1/beneficiaries/{id}", "helper activate"] {
                assert!(message.contains(step), "{step} is not in {message}");
            }
        }
        assert_eq!(client.get(&path(&beneficiary)).await.ok(), decided);
        let wanted =
            ["beneficiary.status.verifying".to_owned(), format!("beneficiary.status.{status}")];
        assert_eq!(event_types(client, &id(&beneficiary)).await, wanted);
        for again in ["activate", "require_input", "reject"] {
            let answer = help(client, &beneficiary, again).await;
            assert_eq!(answer.error(400), "test_helper_not_applicable", "{again} in {status}");
            assert!(stage::asks_for_new_key(&answer));
        }
        assert_eq!(event_types(client, &id(&beneficiary)).await, wanted);
    }
    let draft = client.post("/v1/beneficiaries", with("submit", json!(false))).await.ok();
    for helper in ["activate", "require_input", "reject"] {
        assert_eq!(
            help(client, &draft, helper).await.error(400),
            "test_helper_not_applicable",
            "{helper} in draft"
        );
    }
    let unknown = json!({ "id": "beneficiary_01JDK3Y5M8Q2X7N4V6T9R0ABCD" });
    assert_eq!(help(client, &unknown, "activate").await.error(404), "object_not_found");
    // A check that was under way when the helper decided changes nothing any more.
    let beneficiary = client.beneficiary(stage::SETTLES).await;
    help(client, &beneficiary, "reject").await.ok();
    actor.advance(STEP).await;
    assert_eq!(client.get(&path(&beneficiary)).await.ok()["status"], "rejected");
    // A helper takes no fields, and an empty body is as good as `{}`.
    let beneficiary = client.beneficiary("50100010000004").await;
    let helper = format!("/v1/test_helpers/beneficiaries/{}/activate", id(&beneficiary));
    assert_eq!(
        client.post(&helper, json!({ "now": true })).await.errors(400),
        faults(&[("parameter_unexpected", "now")])
    );
    let key = client.fresh_key();
    assert_eq!(client.post_raw(&helper, &key, "").await.ok()["status"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validation_says_what_a_creation_would_meet_and_stores_nothing() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let validate = async |body: Value| actor.client.post("/v1/beneficiaries/validate", body).await;
    let body = |amount: Value| {
        json!({ "name": "Asha Rao", "account_number": "50100012345678", "ifsc": "hdfc0000001",
            "account_type": "nre", "amount": amount })
    };
    let found = validate(body(json!("199999.99"))).await.ok();
    assert_eq!(found["object"], "beneficiary_validation");
    assert_eq!(found["ifsc"], "HDFC0000001");
    assert_eq!(found["account_number_last4"], "5678");
    assert!(found["bank_name"].as_str().unwrap().contains("HDFC"), "{found}");
    assert!(found["branch_name"].is_string(), "{found}");
    assert_eq!((&found["method"], &found["requirements"]), (&json!("neft"), &json!([])));
    let large = validate(body(json!("200000.00"))).await.ok();
    assert_eq!((&large["method"], &large["amount"]), (&json!("rtgs"), &json!("200000.00")));
    assert_eq!(validate(body(Value::Null)).await.ok()["method"], Value::Null);
    let mut unknown = body(Value::Null);
    unknown["ifsc"] = json!("ZZZZ0ZZZZZZ");
    let unknown = validate(unknown).await.ok();
    assert_eq!(unknown["requirements"][0]["code"], "ifsc_unknown");
    assert_eq!((&unknown["bank_name"], &unknown["branch_name"]), (&Value::Null, &Value::Null));
    // Every problem at once, as a creation would say them.
    let wrong = json!({ "name": "", "account_number": "1", "ifsc": "HDFC", "account_type": "nro",
        "amount": 5, "colour": "red" });
    assert_eq!(
        validate(wrong).await.errors(400),
        faults(&[
            ("parameter_unexpected", "colour"),
            ("parameter_empty", "name"),
            ("parameter_min_length_invalid", "account_number"),
            ("parameter_min_length_invalid", "ifsc"),
            ("parameter_value_invalid", "account_type"),
            ("parameter_value_invalid", "amount"),
        ])
    );
    assert_eq!(actor.client.get("/v1/beneficiaries").await.ok()["data"], json!([]));
    assert_eq!(actor.client.get("/v1/events").await.ok()["data"], json!([]));
}
