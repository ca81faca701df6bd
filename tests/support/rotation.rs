//! A change of the encryption key under load and kills, and what must be true after it. The nodes
//! share a database, of whichever store.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, until};
use super::steps::{self, text};
use super::{Home, Outcome, Receiver, Server};

/// 32 bytes in base64 each.
pub const OLD_KEY: &str = super::postgres::ENCRYPTION_KEY;
pub const NEW_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY: &str = "HUNDI_ENCRYPTION_KEY";
const NEXT_KEY: &str = "HUNDI_ENCRYPTION_KEY_NEXT";
/// Where the command is killed, in this order.
const KILLED_AT: &[&str] =
    &["begin", "begun", "waited", "batch_1", "batch_2", "batch_7", "passed", "verified"];
/// Objects that are made beside the change at least.
const MADE_MIN: usize = 30;
const PATIENCE: Duration = Duration::from_secs(60);

pub fn rotate(home: &Home) -> Outcome {
    home.run(&["keys", "rotate-encryption"])
}

/// Sets the keys of a home.
pub fn give(home: &mut Home, key: &str, next: Option<&str>) {
    home.set(KEY, key);
    home.unset(NEXT_KEY);
    if let Some(next) = next {
        home.set(NEXT_KEY, next);
    }
}

/// A sender whose passport is stored.
fn sender_body() -> Value {
    let mut body = steps::sender_body();
    body["identification"] = json!({ "type": "passport", "number": "K9876543" });
    body
}

/// What was there before the change, and is asked for again after it.
pub struct Before {
    receiver: Receiver,
    endpoint: Value,
    endpoint_body: Value,
    page: String,
    sender_id: String,
    beneficiary_id: String,
}

const ENDPOINT_KEY: &str = "the-endpoint-of-before";

impl Before {
    pub fn make(client: &mut Client) -> Before {
        let receiver = Receiver::start();
        let endpoint_body = json!({ "url": receiver.url, "enabled_events": ["*"] });
        let endpoint = client
            .post_with("/v1/webhook_endpoints", ENDPOINT_KEY, &endpoint_body)
            .expect_success("the endpoint");
        receiver.trust(&text(&endpoint, "secret"));
        let sender = client.post("/v1/senders", &sender_body()).expect_success("the sender");
        let payment = steps::six_steps(client, "42.00");
        let url = text(&payment.settled["funding"], "instructions_url");
        let page = url.split_once("/pay/").expect("a link to a page").1.to_owned();
        Before {
            receiver,
            endpoint,
            endpoint_body,
            page,
            sender_id: text(&sender, "id"),
            beneficiary_id: payment.beneficiary_id,
        }
    }

    /// Everything of before works, and was sealed by no other key than the node's.
    pub fn still_works(&self, client: &mut Client) {
        let again = client.post_with("/v1/webhook_endpoints", ENDPOINT_KEY, &self.endpoint_body);
        assert!(again.is_replay(), "the idempotency key is not known any more");
        assert_eq!(again.expect_success("the replay"), self.endpoint);
        let reused = client.post_with("/v1/webhook_endpoints", ENDPOINT_KEY, &json!({ "url": 1 }));
        assert!(!reused.is_success());
        assert_eq!(client.get(&format!("/pay/{}", self.page)).status, 200, "the payer's link");
        for path in [
            format!("/v1/senders/{}", self.sender_id),
            format!("/v1/beneficiaries/{}", self.beneficiary_id),
        ] {
            client.get(&path).expect_success(&path);
        }
        let events_before = self.receiver.events_count();
        steps::six_steps(client, "43.00");
        until("a webhook with a valid signature", PATIENCE, || {
            (self.receiver.events_count() > events_before).then_some(())
        });
        let (problems_count, problems) = self.receiver.problems();
        assert_eq!(problems_count, 0, "{problems:?}");
    }
}

/// Makes what holds sealed values, and changes it, until `is_over`. Nothing may be refused.
fn write_on(mut client: Client, is_over: &AtomicBool, made: &AtomicUsize) {
    let endpoint_body = json!({ "url": "http://127.0.0.1:9/", "enabled_events": ["none.such"] });
    let endpoint = client.post("/v1/webhook_endpoints", &endpoint_body).json();
    let rotate =
        endpoint["id"].as_str().map(|id| format!("/v1/webhook_endpoints/{id}/rotate_secret"));
    while !is_over.load(Ordering::Relaxed) {
        let mut draft = steps::beneficiary_body();
        draft["submit"] = json!(false);
        let draft = client.post("/v1/beneficiaries", &draft).expect_success("a draft");
        client.post("/v1/senders", &sender_body()).expect_success("a sender");
        let path = format!("/v1/beneficiaries/{}", text(&draft, "id"));
        for account_number in ["50100012340005", "50100012340006"] {
            let change = json!({ "account_number": account_number, "submit": false });
            client.post(&path, &change).expect_success("a change of a draft");
        }
        if let Some(rotate) = &rotate {
            let change = json!({ "overlap_seconds": 0 });
            client.post(rotate, &change).expect_success("a change of a secret");
        }
        made.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts a node again with other keys.
fn restart(home: &Home, server: Server) -> Server {
    assert!(server.stop().success(), "a node did not end well");
    home.start()
}

/// Changes the key of nodes that run with the old one, with writers beside and a kill at every
/// step; the nodes have the new key alone in the end.
pub fn changes_the_key(homes: &mut [Home]) {
    let mut servers: Vec<Server> = homes.iter().map(Home::start).collect();
    let api_key = homes[0].key();
    let before = Before::make(&mut servers[0].client(&api_key));

    // No next key; one that no node has; one that only some have.
    let said = rotate(&homes[0]);
    assert!(!said.status.success() && said.stderr.contains(NEXT_KEY), "{}", said.stderr);
    give(&mut homes[0], OLD_KEY, Some(OLD_KEY));
    let said = rotate(&homes[0]);
    assert!(!said.status.success() && said.stderr.contains("in use already"), "{}", said.stderr);
    for index in 0..homes.len() {
        give(&mut homes[0], OLD_KEY, Some(NEW_KEY));
        let said = rotate(&homes[0]);
        assert!(!said.status.success(), "a node does not have the new key: {}", said.stdout);
        let missing = said.stderr.matches("listens on").count();
        assert_eq!(missing, homes.len() - index, "{}", said.stderr);
        give(&mut homes[index], OLD_KEY, Some(NEW_KEY));
        let server = servers.remove(index);
        servers.insert(index, restart(&homes[index], server));
    }
    let checked = homes[0].check().expect_success("the check with both keys").stdout;
    assert!(checked.contains("\n0 sealed values of the key"), "{checked}");

    let (is_over, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for server in &servers {
            let client = server.client(&api_key);
            scope.spawn(|| write_on(client, &is_over, &made));
        }
        // Whatever fails in here must not leave the writers running.
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for step in KILLED_AT {
                homes[0].set("HUNDI_TEST_FAULT", &format!("rotation_dies_at_{step}"));
                let killed = rotate(&homes[0]);
                assert!(killed.status.code().is_none(), "{step}: {killed:?}");
            }
            homes[0].unset("HUNDI_TEST_FAULT");
            let done = rotate(&homes[0]).expect_success("the change of the key").stdout;
            assert!(done.contains("done: ") && done.contains("none with"), "{done}");
            let again = rotate(&homes[0]).expect_success("once more").stdout;
            assert!(again.contains("has ended already"), "{again}");
            until("objects made beside the change", PATIENCE, || {
                (made.load(Ordering::Relaxed) >= MADE_MIN).then_some(())
            });
        }));
        is_over.store(true, Ordering::Relaxed);
        changed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });

    // Nothing needs the old key any more, which fits no more.
    for (index, home) in homes.iter_mut().enumerate() {
        give(home, NEW_KEY, None);
        let server = servers.remove(index);
        servers.insert(index, restart(home, server));
    }
    let checked = homes[0].check().expect_success("the check with the new key").stdout;
    assert!(checked.contains("sealed values of the key"), "{checked}");
    for server in &servers {
        before.still_works(&mut server.client(&api_key));
    }
    give(&mut homes[0], OLD_KEY, None);
    assert!(!homes[0].check().status.success(), "the old key still fits");
    give(&mut homes[0], NEW_KEY, None);
}
