//! Time that stands still between the moves of a test: a server on a manual clock whose simulated
//! world takes a minute a step, and an account on it that moves its own test clock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};

use hundi::kernel::state::Status;
use hundi::kernel::{Mode, Scope};
use hundi::keys;
use hundi::transfers::state::TransferStatus;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, id, payout_id};

/// Seconds of one step of the simulated world: a deposit is in a block after one and final after
/// two.
pub const STEP: i64 = 60;
/// An account whose payouts settle.
pub const SETTLES: &str = "50100012345678";
/// A TRON address that refunds can go to.
pub const ADDRESS: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";
/// Another one.
pub const ADDRESS_OTHER: &str = "TDvSsdrNM5eeXNL3czpa6AxLDHZA9nwe9K";
pub const DAY: i64 = 86_400;

/// One item of a balance: compartment, amount, currency.
pub type Item = (&'static str, &'static str, &'static str);

pub async fn server() -> Server {
    server_with(&[]).await
}

pub async fn server_with(variables: &[(&str, &str)]) -> Server {
    let mut all = vec![("HUNDI_SIMULATION_STEP_MILLISECONDS", "60000")];
    all.extend_from_slice(variables);
    Server::start_manual(&all).await
}

/// An account with a test key and a test clock of its own.
pub struct Actor {
    pub client: Client,
    started: i64,
    advanced: AtomicI64,
}

impl Actor {
    pub async fn new(server: &Server, account: &str) -> Actor {
        let client = server.client_of(account, Mode::Test, "").await;
        Actor {
            client,
            started: server.clock.load(Ordering::SeqCst) / 1000,
            advanced: AtomicI64::new(0),
        }
    }

    /// The account's test clock.
    pub fn now(&self) -> i64 {
        self.started + self.advanced.load(Ordering::SeqCst)
    }

    pub async fn advance(&self, seconds: i64) {
        let now = self.client.advance(seconds).await;
        self.advanced.fetch_add(seconds, Ordering::SeqCst);
        assert_eq!(now, self.now());
    }

    /// Sets the test clock without running what falls due on the way.
    pub async fn jump_to(&self, server: &Server, account_number: i64, at: i64) {
        let seconds = at - self.started;
        let set = server.app.state.store.write(move |tx, _| {
            let scope = Scope::new(account_number, Mode::Test);
            Ok(keys::rows::set_clock_offset_seconds(tx, scope, seconds)?)
        });
        set.await.unwrap();
        self.advanced.store(seconds, Ordering::SeqCst);
    }

    pub async fn advance_to(&self, at: i64) {
        if at > self.now() {
            self.advance(at - self.now()).await;
        }
    }

    /// Lets the deposits that were just sent become final.
    pub async fn finalise(&self) {
        self.advance(2 * STEP).await;
    }

    /// The id of a beneficiary that is active.
    pub async fn beneficiary(&self, account_number: &str) -> String {
        let created = self.client.beneficiary(account_number).await;
        self.advance(STEP).await;
        let path = format!("/v1/beneficiaries/{}", id(&created));
        assert_eq!(self.client.get(&path).await.ok()["status"], "active");
        id(&created)
    }

    /// The body of a transfer; `funding` adds to the funding's fields.
    pub async fn transfer_body(&self, beneficiary_id: &str, amount: &str, funding: Value) -> Value {
        let sender = self.client.sender().await;
        let lock = self.client.quote_lock(amount).await;
        let mut whole = json!({ "rail": "stablecoin", "asset": "USDT", "chain": "tron" });
        for (name, value) in funding.as_object().unwrap() {
            whole[name] = value.clone();
        }
        json!({
            "sender_id": id(&sender), "beneficiary_id": beneficiary_id, "quote_lock_id": id(&lock),
            "amount": amount, "currency": "USD", "payout_currency": "INR", "funding": whole,
        })
    }

    pub async fn transfer_to(&self, beneficiary_id: &str, amount: &str, funding: Value) -> Value {
        let body = self.transfer_body(beneficiary_id, amount, funding).await;
        self.client.post("/v1/transfers", body).await.ok()
    }

    /// A transfer of 1000.00 USD to a fresh beneficiary.
    pub async fn transfer(&self, account_number: &str, funding: Value) -> Value {
        let beneficiary_id = self.beneficiary(account_number).await;
        self.transfer_to(&beneficiary_id, "1000.00", funding).await
    }

    /// The transfer as it is now.
    pub async fn shown(&self, transfer: &Value) -> Value {
        self.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok()
    }

    pub async fn payout_of(&self, transfer: &Value) -> Value {
        let shown = self.shown(transfer).await;
        self.client.get(&format!("/v1/payouts/{}", payout_id(&shown))).await.ok()
    }

    pub async fn pay(&self, transfer: &Value, amount: &str) -> Value {
        self.client.deposit(transfer, json!({ "amount": amount })).await
    }

    pub async fn resolve(&self, transfer: &Value, body: Value) -> Answer {
        self.client.post(&format!("/v1/transfers/{}/resolve_funding", id(transfer)), body).await
    }

    pub async fn cancel(&self, transfer: &Value) -> Answer {
        self.client.post(&format!("/v1/transfers/{}/cancel", id(transfer)), json!({})).await
    }

    /// Ends the verification of a transfer's beneficiary.
    pub async fn activate_beneficiary(&self, transfer: &Value) {
        let id = transfer["beneficiary_id"].as_str().unwrap();
        let path = format!("/v1/test_helpers/beneficiaries/{id}/activate");
        self.client.post(&path, json!({})).await.ok();
    }

    /// Checks the whole balance.
    pub async fn assert_balance(&self, wanted: &[Item], context: &str) {
        let mut balance = json!({
            "object": "balance", "available": [], "pending": [], "processing": [],
                "payout_processing": [], "hold": [], "livemode": false,
        });
        for (compartment, amount, currency) in wanted {
            balance[*compartment]
                .as_array_mut()
                .unwrap()
                .push(json!({ "amount": amount, "currency": currency }));
        }
        assert_eq!(self.client.get("/v1/balance").await.ok(), balance, "{context}");
    }

    /// What holds for a transfer at any time: its history follows the arrows and has its events,
    /// and the amounts add up.
    pub async fn assert_consistent(&self, transfer: &Value) {
        let shown = self.shown(transfer).await;
        let history = shown["status_history"].as_array().unwrap();
        let statuses: Vec<&str> =
            history.iter().map(|taken| taken["status"].as_str().unwrap()).collect();
        assert_eq!(statuses[0], "funding");
        assert_eq!(*statuses.last().unwrap(), shown["status"].as_str().unwrap());
        for pair in statuses.windows(2) {
            let (from, to) =
                (TransferStatus::parse(pair[0]).unwrap(), TransferStatus::parse(pair[1]).unwrap());
            assert!(from.can_become(to), "{pair:?}");
        }
        assert!(
            history.windows(2).all(|pair| pair[0]["at"].as_i64() <= pair[1]["at"].as_i64()),
            "{history:?}"
        );
        assert!(history.iter().all(|taken| keys(taken) == ["at", "status"]));
        let wanted: Vec<String> =
            statuses.iter().map(|status| format!("transfer.status.{status}")).collect();
        assert_eq!(event_types(&self.client, &id(&shown)).await, wanted);
        assert_eq!(shown["status_reason"].is_null(), shown["status"] != "funding_hold", "{shown}");
        let deposits = all(&self.client, &format!("/v1/deposits?transfer_id={}", id(&shown))).await;
        let counted = deposits.iter().filter(|deposit| {
            deposit["status"] == "completed" && deposit["classification"] != "unmatched"
        });
        let received: i64 = counted.map(|deposit| micros(&deposit["amount"])).sum();
        assert_eq!(micros(&shown["funding"]["amount_received"]), received, "{shown}");
    }
}

/// Checks the whole book and every history.
pub fn assert_book(server: &Server) {
    server.assert_book();
}

/// Every object of a list that takes paging parameters.
pub async fn all(client: &Client, path: &str) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    loop {
        let mark = if path.contains('?') { '&' } else { '?' };
        let after =
            found.last().map_or(String::new(), |last| format!("&starting_after={}", id(last)));
        let page = client.get(&format!("{path}{mark}limit=100{after}")).await.ok();
        found.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["has_next"] == false {
            return found;
        }
    }
}

/// The types of the events of one object, in order.
pub async fn event_types(client: &Client, linked_id: &str) -> Vec<String> {
    let events = all(client, &format!("/v1/events?linked_id={linked_id}")).await;
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// The members of an object, sorted.
#[track_caller]
pub fn keys(object: &Value) -> Vec<&str> {
    let sorted: BTreeSet<&str> = object
        .as_object()
        .unwrap_or_else(|| panic!("not an object: {object}"))
        .keys()
        .map(String::as_str)
        .collect();
    sorted.into_iter().collect()
}

/// A decimal text in millionths.
#[track_caller]
pub fn micros(amount: &Value) -> i64 {
    let text = amount.as_str().unwrap_or_else(|| panic!("not an amount: {amount}"));
    let (whole, fraction) = text.split_once('.').unwrap();
    whole.parse::<i64>().unwrap() * 1_000_000 + format!("{fraction:0<6}").parse::<i64>().unwrap()
}

/// The `(status, at)` pairs of a history.
pub fn history(object: &Value) -> Vec<(String, i64)> {
    let entries = object["status_history"].as_array().unwrap();
    entries
        .iter()
        .map(|taken| (taken["status"].as_str().unwrap().to_owned(), taken["at"].as_i64().unwrap()))
        .collect()
}

/// The statuses of a history.
pub fn statuses(object: &Value) -> Vec<String> {
    history(object).into_iter().map(|(status, _)| status).collect()
}

/// `(code, field_name)` pairs as `Answer::errors` gives them.
pub fn faults(wanted: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    wanted
        .iter()
        .map(|(code, field)| ((*code).to_owned(), (!field.is_empty()).then(|| (*field).to_owned())))
        .collect()
}

/// Whether every error of a refusal says that only a new idempotency key can succeed.
pub fn asks_for_new_key(answer: &Answer) -> bool {
    answer.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .all(|error| error["metadata"]["new_key_required"] == true)
}
