//! Concurrent payments under any kind of trouble, and a journal of everything that was
//! acknowledged; `oracle.rs` judges it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Trouble;
use super::steps;
use super::{Answer, Client, Random, fresh_key};

/// How long one operation may take to its final answer, kills included.
const OPERATION_PATIENCE: Duration = Duration::from_secs(60);
/// Attempts of one operation, whatever their reason.
const ATTEMPTS_MAX: usize = 5_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Beneficiary,
    Sender,
    QuoteLock,
    Transfer,
    Deposit,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Beneficiary, Kind::Sender, Kind::QuoteLock, Kind::Transfer, Kind::Deposit];

    pub fn list_path(self) -> &'static str {
        match self {
            Kind::Beneficiary => "/v1/beneficiaries",
            Kind::Sender => "/v1/senders",
            Kind::QuoteLock => "/v1/quote_locks",
            Kind::Transfer => "/v1/transfers",
            Kind::Deposit => "/v1/deposits",
        }
    }

    /// What no later event may change.
    pub fn immutable_fields(self) -> &'static [&'static str] {
        match self {
            Kind::Beneficiary => &[
                "object",
                "id",
                "name",
                "account_number_last4",
                "ifsc",
                "account_type",
                "email",
                "phone",
                "metadata",
                "created",
                "livemode",
            ],
            Kind::Sender => &[
                "object", "id", "name", "type", "country", "email", "address", "metadata",
                "created", "livemode",
            ],
            Kind::QuoteLock => &[
                "object",
                "id",
                "sell_currency",
                "sell_amount",
                "buy_currency",
                "buy_amount",
                "amount",
                "rate",
                "mid_market_rate",
                "fee",
                "expires_at",
                "metadata",
                "created",
                "livemode",
            ],
            Kind::Transfer => &[
                "object",
                "id",
                "sender_id",
                "beneficiary_id",
                "quote_lock_id",
                "amount",
                "currency",
                "payout_amount",
                "payout_currency",
                "rate",
                "fee",
                "purpose_code",
                "metadata",
                "created",
                "livemode",
                "funding.rail",
                "funding.asset",
                "funding.chain",
                "funding.deposit_address",
                "funding.amount_expected",
                "funding.expires_at",
                "funding.refund_address",
                "funding.policy",
                "funding.token_contract",
            ],
            Kind::Deposit => &[
                "object",
                "id",
                "transfer_id",
                "amount",
                "currency",
                "asset",
                "chain",
                "from_address",
                "to_address",
                "transaction_hash",
                "log_index",
                "created",
                "livemode",
            ],
        }
    }
}

/// A member of a member, such as `funding.chain`.
pub fn member<'a>(object: &'a Value, dotted: &str) -> &'a Value {
    dotted.split('.').fold(object, |inner, name| &inner[name])
}

/// One thing that a writer wants to happen once, and everything it was told about it.
pub struct Operation {
    /// Its own number, in the object's metadata where the object has any.
    pub number: u64,
    pub kind: Kind,
    pub path: String,
    pub key: String,
    pub body: Value,
    /// The other transfer for the same quote lock: one of the two is refused.
    pub rival: Option<u64>,
    /// Every complete answer, in the order received.
    pub answers: Vec<Answer>,
    /// Answers to the key with another body.
    pub reuse_answers: Vec<Answer>,
}

impl Operation {
    pub fn is_final(answer: &Answer) -> bool {
        answer.is_success()
            || ((400..500).contains(&answer.status)
                && answer.code() != "resource_locked"
                && answer.status != 429)
    }
    pub fn success(&self) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.is_success())
    }
    pub fn id(&self) -> Option<String> {
        self.success().map(Answer::id)
    }
    pub fn name(&self) -> String {
        format!("operation {} ({:?}, key {})", self.number, self.kind, self.key)
    }
}

/// What a writer keeps. It is written before the next request is sent, in a process that nobody
/// kills.
#[derive(Default)]
pub struct Journal {
    pub operations: Vec<Operation>,
    /// Statuses of transfers as they were seen, in order.
    pub sightings: Vec<(String, String)>,
    /// Operations that came to no final answer in time.
    pub stuck: Vec<String>,
    /// The longest that one request was waited for, with an answer or without.
    pub slowest: Duration,
}

/// What the writers of one run have in common.
pub struct Load {
    is_over: AtomicBool,
    numbers: AtomicU64,
    payments_count: AtomicUsize,
    /// How long a writer rests after a round at most.
    pause_milliseconds_max: u64,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            is_over: AtomicBool::new(false),
            numbers: AtomicU64::new(1),
            payments_count: AtomicUsize::new(0),
            pause_milliseconds_max: 12,
        }
    }
}

impl Load {
    /// One that goes on for so long that its writers have to rest more.
    pub fn with_pauses(pause_milliseconds_max: u64) -> Load {
        Load { pause_milliseconds_max, ..Load::default() }
    }
    /// Lets every writer finish its round and end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
    /// How many payments were acknowledged until now.
    pub fn payments_count(&self) -> usize {
        self.payments_count.load(Ordering::Relaxed)
    }
}

/// One caller that makes payments until the load is over.
pub struct Writer<'a> {
    load: &'a Load,
    random: Random,
    /// At least two; requests go to any of them, and the same request sometimes to two at once.
    clients: Vec<Client>,
    journal: Journal,
    beneficiaries_payable: Vec<String>,
    beneficiaries_waiting: Vec<String>,
    senders: Vec<String>,
}

impl Writer<'_> {
    /// A writer that talks to these addresses; a single one is talked to on two connections.
    pub fn new<'a>(
        load: &'a Load,
        seed: u64,
        addresses: &[SocketAddr],
        api_key: &str,
    ) -> Writer<'a> {
        let doubled = addresses.iter().cycle().take(addresses.len().max(2));
        Writer {
            load,
            random: Random::new(seed),
            clients: doubled.map(|address| Client::new(*address, api_key)).collect(),
            journal: Journal::default(),
            beneficiaries_payable: Vec::new(),
            beneficiaries_waiting: Vec::new(),
            senders: Vec::new(),
        }
    }

    pub fn run(mut self) -> Journal {
        while !self.load.is_over.load(Ordering::Relaxed) {
            self.round();
        }
        self.journal
    }

    /// One payment, or as much of it as succeeds.
    fn round(&mut self) {
        if (self.beneficiaries_payable.is_empty() && self.beneficiaries_waiting.len() < 3)
            || self.random.chance(4)
        {
            let number = self.number();
            let mut body = steps::beneficiary_body();
            body["metadata"] = json!({ "operation": number.to_string() });
            if let Some(id) =
                self.perform(number, Kind::Beneficiary, "/v1/beneficiaries", body, None)
            {
                self.beneficiaries_waiting.push(id);
            }
        }
        self.look_at_beneficiaries();
        if self.senders.is_empty() || self.random.chance(30) {
            let number = self.number();
            let mut body = steps::sender_body();
            body["metadata"] = json!({ "operation": number.to_string() });
            if let Some(id) = self.perform(number, Kind::Sender, "/v1/senders", body, None) {
                self.senders.push(id);
            }
        }
        self.repeat_an_old_operation();
        let Some(quote_lock_id) = self.lock_quote() else { return };
        let Some(transfer_id) = self.transfer(&quote_lock_id) else { return };
        if self.random.chance(80) {
            self.pay(&transfer_id);
        }
        if self.random.chance(30) {
            self.look_at_transfer(&transfer_id);
        }
        // Room for the server's own work; a writer without a pause only fills queues.
        let pause = self.random.between(0, self.load.pause_milliseconds_max);
        std::thread::sleep(Duration::from_millis(pause));
    }

    fn number(&self) -> u64 {
        self.load.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn lock_quote(&mut self) -> Option<String> {
        let number = self.number();
        let amount =
            format!("{}.{:02}", self.random.between(10, 4_000), self.random.between(0, 99));
        let mut body = steps::quote_lock_body(&amount);
        body["metadata"] = json!({ "operation": number.to_string(), "amount": amount });
        self.perform(number, Kind::QuoteLock, "/v1/quote_locks", body, None)
    }

    fn transfer(&mut self, quote_lock_id: &str) -> Option<String> {
        if self.beneficiaries_payable.is_empty() || self.senders.is_empty() {
            return None;
        }
        let beneficiary_id = self.random.pick(&self.beneficiaries_payable).clone();
        let sender_id = self.random.pick(&self.senders).clone();
        let locked = self
            .journal
            .operations
            .iter()
            .rev()
            .find(|operation| operation.id().as_deref() == Some(quote_lock_id))?;
        let amount = locked.body["amount"].as_str()?.to_owned();
        let mut body = steps::transfer_body(&sender_id, &beneficiary_id, quote_lock_id, &amount);
        let number = self.number();
        let rival_number = self.random.chance(12).then(|| self.number());
        body["metadata"] = json!({ "operation": number.to_string() });
        let Some(rival_number) = rival_number else {
            return self.perform(number, Kind::Transfer, "/v1/transfers", body, None);
        };
        let mut rival_body = body.clone();
        rival_body["metadata"] = json!({ "operation": rival_number.to_string() });
        let addresses: Vec<SocketAddr> = self.clients.iter().map(|client| client.address).collect();
        let mut rival =
            Writer::new(self.load, self.random.next(), &addresses, &self.clients[0].api_key);
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                rival.perform(
                    rival_number,
                    Kind::Transfer,
                    "/v1/transfers",
                    rival_body,
                    Some(number),
                )
            });
            let first =
                self.perform(number, Kind::Transfer, "/v1/transfers", body, Some(rival_number));
            (first, second.join().expect("the rival"))
        });
        self.journal.operations.append(&mut rival.journal.operations);
        self.journal.stuck.append(&mut rival.journal.stuck);
        self.journal.slowest = self.journal.slowest.max(rival.journal.slowest);
        first.or(second)
    }

    /// Pays in one deposit or in two.
    fn pay(&mut self, transfer_id: &str) {
        let path = format!("/v1/test_helpers/transfers/{transfer_id}/deposit");
        if self.random.chance(20) {
            let number = self.number();
            if self
                .perform(number, Kind::Deposit, &path, json!({ "amount": "5.00" }), None)
                .is_none()
            {
                return;
            }
        }
        let number = self.number();
        if self.perform(number, Kind::Deposit, &path, json!({}), None).is_some() {
            self.load.payments_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends until there is a final answer, sometimes twice at once, and answers the new object's
    /// ID.
    fn perform(
        &mut self,
        number: u64,
        kind: Kind,
        path: &str,
        body: Value,
        rival: Option<u64>,
    ) -> Option<String> {
        let key = fresh_key();
        let mut operation = Operation {
            number,
            kind,
            path: path.to_owned(),
            key,
            body,
            rival,
            answers: Vec::new(),
            reuse_answers: Vec::new(),
        };
        let text = operation.body.to_string();
        let deadline = Instant::now() + OPERATION_PATIENCE;
        for attempt in 0..ATTEMPTS_MAX {
            let at_once = if self.random.chance(25) { 2 } else { 1 };
            let answers = self.send(at_once, &operation.path, &operation.key, &text);
            operation.answers.extend(answers);
            if operation.answers.iter().any(Operation::is_final) {
                break;
            }
            if Instant::now() > deadline || attempt + 1 == ATTEMPTS_MAX {
                self.journal.stuck.push(format!(
                    "{}: no final answer after {attempt} attempts",
                    operation.name()
                ));
                break;
            }
            std::thread::sleep(Duration::from_millis(self.random.between(2, 15)));
        }
        if self.random.chance(15) {
            operation.answers.extend(self.send(1, &operation.path, &operation.key, &text));
        }
        if operation.success().is_some() && self.random.chance(5) {
            // The same key for another request; were it carried out, its number would be there
            // twice.
            let mut other = operation.body.clone();
            match kind {
                Kind::Deposit => other["amount"] = json!("7.00"),
                Kind::Beneficiary | Kind::Sender => other["name"] = json!("Somebody Else"),
                Kind::QuoteLock | Kind::Transfer => other["amount"] = json!("11.00"),
            }
            let answers = self.send(1, &operation.path, &operation.key, &other.to_string());
            operation.reuse_answers.extend(answers);
        }
        let id = operation.id();
        self.journal.operations.push(operation);
        id
    }

    /// Sends the same request on one connection or on two at the same time; answers what came back
    /// complete.
    fn send(&mut self, count: usize, path: &str, key: &str, body: &str) -> Vec<Answer> {
        let first = self.random.below(self.clients.len());
        self.clients.rotate_left(first);
        let started = Instant::now();
        let mut sent = Vec::new();
        for client in self.clients.iter_mut().take(count) {
            match client.start("POST", path, Some(key), Some(body.as_bytes())) {
                Ok(()) => sent.push(client),
                // The server is down: the next attempt will tell.
                Err(Trouble::Connect(_) | Trouble::Send(_)) => {}
                Err(trouble) => panic!("{trouble}"),
            }
        }
        let mut answers = Vec::new();
        for client in sent {
            match client.finish() {
                Ok(answer) => answers.push(answer),
                Err(Trouble::Protocol(problem)) => panic!("not HTTP: {problem}"),
                // Cut off by a kill: not acknowledged.
                Err(_) => {}
            }
            self.journal.slowest = self.journal.slowest.max(started.elapsed());
        }
        answers
    }

    /// A GET at any of the addresses; `None` without an answer.
    fn look(&mut self, path: &str) -> Option<Answer> {
        let index = self.random.below(self.clients.len());
        let started = Instant::now();
        let answer = self.clients[index].once("GET", path, None, None).ok();
        self.journal.slowest = self.journal.slowest.max(started.elapsed());
        answer
    }

    /// An old key, sent again after any number of restarts, still has its one answer.
    fn repeat_an_old_operation(&mut self) {
        if self.journal.operations.is_empty() || !self.random.chance(25) {
            return;
        }
        let index = self.random.below(self.journal.operations.len());
        let operation = &self.journal.operations[index];
        if !operation.answers.iter().any(Operation::is_final) {
            return;
        }
        let (path, key, text) =
            (operation.path.clone(), operation.key.clone(), operation.body.to_string());
        let answers = self.send(1, &path, &key, &text);
        self.journal.operations[index].answers.extend(answers);
    }

    fn look_at_beneficiaries(&mut self) {
        for index in (0..self.beneficiaries_waiting.len()).rev() {
            let path = format!("/v1/beneficiaries/{}", self.beneficiaries_waiting[index]);
            let Some(answer) = self.look(&path) else { return };
            let seen = answer.json();
            if seen["status"] == "active" && seen["payouts_enabled"] == true {
                self.beneficiaries_payable.push(self.beneficiaries_waiting.swap_remove(index));
            } else if answer.status == 404 {
                // Lost; the oracle will say so.
                self.beneficiaries_waiting.swap_remove(index);
            }
        }
    }

    fn look_at_transfer(&mut self, transfer_id: &str) {
        if let Some(answer) = self.look(&format!("/v1/transfers/{transfer_id}"))
            && let Some(status) = answer.json()["status"].as_str()
        {
            self.journal.sightings.push((transfer_id.to_owned(), status.to_owned()));
        }
    }
}

/// Pages the events from its last one on until told to end, all through the trouble, as a caller
/// would.
pub fn follow_events(mut client: Client, is_over: &AtomicBool) -> Vec<String> {
    let mut followed: Vec<String> = Vec::new();
    loop {
        // Read before the page: what was there when the end was told is still followed.
        let is_last = is_over.load(Ordering::Relaxed);
        let cursor =
            followed.last().map_or(String::new(), |last| format!("&starting_after={last}"));
        let page = client
            .once("GET", &format!("/v1/events?limit=100{cursor}"), None, None)
            .ok()
            .map(|answer| answer.json());
        let count = page.as_ref().and_then(|page| page["data"].as_array()).map_or(0, |data| {
            followed
                .extend(data.iter().filter_map(|event| event["id"].as_str()).map(str::to_owned));
            data.len()
        });
        if count == 0 {
            if is_last {
                return followed;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
