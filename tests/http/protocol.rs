//! What HTTP itself decides: methods, headers, framing, and what a refusal carries whatever it is.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::faults;
use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn head_is_answered_as_get_without_a_body() {
    let server = Server::start().await;
    let client = server.client().await;
    let sender = client.sender().await;
    for path in ["/v1/senders", &format!("/v1/senders/{}", crate::support::id(&sender)), "/v1/none"]
    {
        let got = client.get(path).await;
        let head = client.send(Method::HEAD, path, &[], Bytes::new()).await;
        assert_eq!((head.status, head.body.len()), (got.status, 0), "{path}");
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(head.header(name), got.header(name), "{path}: {name}");
        }
    }
    let none = [("authorization", "")];
    let head = client.send(Method::HEAD, "/v1/senders", &none, Bytes::new()).await;
    assert_eq!(head.status, 401);
    let posted = client.send(Method::HEAD, "/v1/transfers/x/cancel", &[], Bytes::new()).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("POST")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_401_names_the_scheme_and_tells_mistakes_apart() {
    let server = Server::start().await;
    let client = server.client().await;
    let broken = format!("Bearer {}", &client.key[..client.key.len() - 1]);
    let unknown = hundi::keys::key_text(hundi::kernel::Mode::Test, false, [7; 32]);
    let mut messages = std::collections::BTreeSet::new();
    for value in [
        "",
        "Basic c2tfdGVzdDo=",
        &client.key,
        &broken,
        &format!("Bearer {unknown}"),
        &format!("Digest {unknown}"),
    ] {
        let headers = [("authorization", value)];
        let answer = client.send(Method::GET, "/v1/balance", &headers, Bytes::new()).await;
        assert_eq!(answer.error(401), "secret_key_invalid", "{value}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{value}");
        let message = answer.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(!message.contains("sk_test_0") && !message.contains(&client.key[8..20]));
        messages.insert(message);
    }
    // Where other services take keys, and none at all.
    for name in ["x-api-key", "api-key"] {
        let headers = [("authorization", client.key.as_str()), (name, &client.key)];
        let answer = client.send(Method::GET, "/v1/balance", &headers[1..], Bytes::new()).await;
        assert_eq!(answer.status, 200, "the client sends its key beside it");
        let mut raw = TcpStream::connect(&server.address).await.unwrap();
        let request = format!(
            "GET /v1/balance HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{name}: {}\r\n\r\n",
            client.key
        );
        raw.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        raw.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("Bearer <API_KEY>"));
        assert!(answer.to_lowercase().contains(&format!("header {name}")), "{answer}");
        assert!(!answer.contains(&client.key));
    }
    assert!(messages.len() >= 5, "{messages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_that_could_be_personal_are_masked() {
    let server = Server::start().await;
    let client = server.client().await;
    let long = "n".repeat(41);
    for name in ["50100012345678", "card 41111", &long] {
        let body = json!({ "name": "A", "type": "individual", "country": "AE", name: 1 });
        let answer = client.post("/v1/senders", body).await;
        let wanted = faults(&[("parameter_unexpected", "[masked]")]);
        assert_eq!(answer.errors(400), wanted, "{name}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(name));
        let answer = client.get(&format!("/v1/senders?{}=1", name.replace(' ', "%20"))).await;
        let wanted = faults(&[("request_query_parameter_invalid", "[masked]")]);
        assert_eq!(answer.errors(400), wanted, "{name}");
        assert!(!String::from_utf8_lossy(&answer.body).contains(name));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_near_miss_gets_a_hint() {
    let server = Server::start().await;
    let client = server.client().await;
    for (path, meant) in [
        ("/v1/transfers/", Some("/v1/transfers?")),
        ("/v1/transfer", Some("/v1/transfers?")),
        ("/v1/Beneficiary", Some("/v1/beneficiaries?")),
        ("/v1/quotelocks", Some("/v1/quote_locks?")),
        ("/v1//quote-locks", Some("/v1/quote_locks?")),
        ("/v1/payouts/payout_1/payment-advice", Some("/v1/payouts/{id}/payment_advice?")),
        ("/v1/benificiaries", Some("/v1/beneficiaries?")),
        ("/transfers", Some("/v1/transfers?")),
        ("//v1/events", Some("two slashes in a row. Did you mean /v1/events?")),
        ("/api/v2/Sender/sender_1", Some("/v1/senders/{id}?")),
        ("/docs/quickstart", Some("/docs/quick-start?")),
        ("/docs/api/transfer", Some("/docs/api/transfers?")),
        ("/v1/invoices", None),
        ("/invoices", None),
        ("/docs/invoices", None),
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.error(404), "object_not_found", "{path}");
        if meant.is_some() && !path.contains("payment") && !path.starts_with("/docs/") {
            let posted = client.post(path, json!({})).await;
            assert_eq!(posted.error(404), "object_not_found", "{path}");
        }
        let message = answer.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        match meant {
            Some(meant) => assert!(message.contains(meant), "{path}: {message}"),
            None => assert!(!message.contains("Did you mean"), "{path}: {message}"),
        }
    }
    let bracketed = client.get("/v1/transfers?created%5Bgte%5D=5").await.json();
    assert!(bracketed["errors"][0]["message"].as_str().unwrap().contains("created.gte"));
    let mistyped = client.get("/v1/transfers?lmit=5").await.json();
    assert!(mistyped["errors"][0]["message"].as_str().unwrap().contains("mean limit?"));
    let patched = client.send(Method::PATCH, "/v1/senders", &[], "{}".into()).await;
    assert_eq!(patched.error(405), "request_method_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_nearly_right_gets_a_hint() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE",
        "e-mail": "ravi@example.com", "adress": {}, "colour": "red", "adress 50100": 1 });
    let refused = client.post("/v1/senders", body).await.json();
    let hints: Vec<Option<&str>> = refused["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["message"].as_str().unwrap().split("mean ").nth(1)?.split('?').next())
        .collect();
    // What is masked may be personal, and is compared with nothing.
    assert_eq!(hints, [Some("email"), Some("address"), None, None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_text_counts_as_null() {
    let server = Server::start().await;
    let client = server.client().await;
    let body = json!({ "name": "Ravi Rao", "type": "individual", "country": "AE", "email": "",
        "address": "", "metadata": "", "date_of_birth": "", "identification": "" });
    let sender = client.post("/v1/senders", body).await.ok();
    for field in ["email", "address", "date_of_birth", "identification"] {
        assert_eq!(sender[field], Value::Null, "{field}");
    }
    assert_eq!(sender["metadata"], json!({}));
    let refused =
        client.post("/v1/senders", json!({ "name": "", "type": "", "country": "" })).await;
    let wanted =
        [("parameter_empty", "name"), ("parameter_empty", "type"), ("parameter_empty", "country")];
    assert_eq!(refused.errors(400), faults(&wanted));
    // On update it clears.
    let body = json!({ "name": "Asha Rao", "account_number": "50100012345678",
        "ifsc": "HDFC0000001", "account_type": "nre", "email": "asha@example.com",
        "phone": "+971501234567", "pan": "abcde1234f", "submit": false });
    let draft = client.post("/v1/beneficiaries", body).await.ok();
    assert_eq!(
        (&draft["pan_last4"], &draft["email"]),
        (&json!("234F"), &json!("asha@example.com"))
    );
    let path = format!("/v1/beneficiaries/{}", crate::support::id(&draft));
    let changed = client.post(&path, json!({ "email": "", "phone": null, "pan": "" })).await.ok();
    for field in ["email", "phone", "pan_last4"] {
        assert_eq!(changed[field], Value::Null, "{field}");
    }
    let refused = client.post(&path, json!({ "name": "" })).await;
    assert_eq!(refused.errors(400), faults(&[("parameter_empty", "name")]));
}
