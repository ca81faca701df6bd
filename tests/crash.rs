//! kill -9 at random moments under concurrent load: nothing acknowledged is lost, nothing happens twice, every event
//! arrives. A negative control plants a fault and passes only if the same oracle notices it.

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::client::Trouble;
use support::random::{number, seed};
use support::steps;
use support::{Answer, Client, Home, Random, Receiver, Server, fresh_key, until};

const WRITERS_COUNT: usize = 6;
/// Between two kills.
const LIFE_MILLISECONDS_MIN: u64 = 150;
const LIFE_MILLISECONDS_MAX: u64 = 900;
/// What the service promises of a restart.
const READY_MAX: Duration = Duration::from_secs(2);
/// How long one operation may take to its final answer, kills included.
const OPERATION_PATIENCE: Duration = Duration::from_secs(60);
/// Attempts of one operation, whatever their reason.
const ATTEMPTS_MAX: usize = 5_000;
/// How long what is awaited may stand still before it counts as lost: longer than a killed worker's lease on its work.
const STANDSTILL_MAX: Duration = Duration::from_secs(100);
/// Objects that are read one by one in the end; all of them are read through lists.
const READ_SINGLY_MAX: usize = 400;

/// The contract's arrows of a transfer: from, to.
const TRANSFER_ARROWS: &[(&str, &str)] = &[
    ("funding", "funded"),
    ("funding", "funding_hold"),
    ("funding", "expired"),
    ("funding", "cancelled"),
    ("funding_hold", "funded"),
    ("funding_hold", "refund_processing"),
    ("funded", "payout_processing"),
    ("funded", "refund_processing"),
    ("payout_processing", "payout_settled"),
    ("payout_processing", "payout_failed"),
    ("payout_settled", "payout_returned"),
    ("payout_failed", "refund_processing"),
    ("payout_returned", "refund_processing"),
    ("refund_processing", "refunded"),
    ("expired", "funding_hold"),
    ("cancelled", "funding_hold"),
];

/// What may be in the events of a payment that nothing goes wrong with, each once.
const PAYOUT_STATUSES: &[&str] = &["initialized", "processing", "settled"];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Beneficiary,
    Sender,
    QuoteLock,
    Transfer,
    Deposit,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Beneficiary, Kind::Sender, Kind::QuoteLock, Kind::Transfer, Kind::Deposit];

    fn list_path(self) -> &'static str {
        match self {
            Kind::Beneficiary => "/v1/beneficiaries",
            Kind::Sender => "/v1/senders",
            Kind::QuoteLock => "/v1/quote_locks",
            Kind::Transfer => "/v1/transfers",
            Kind::Deposit => "/v1/deposits",
        }
    }

    /// What no later event may change.
    fn immutable_fields(self) -> &'static [&'static str] {
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
            Kind::Sender => &["object", "id", "name", "type", "country", "email", "address", "metadata", "created", "livemode"],
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

fn member<'a>(object: &'a Value, dotted: &str) -> &'a Value {
    dotted.split('.').fold(object, |inner, name| &inner[name])
}

/// One thing that a writer wants to happen once, and everything it was told about it.
struct Operation {
    /// Its own number, in the object's metadata where the object has any.
    number: u64,
    kind: Kind,
    path: String,
    key: String,
    body: Value,
    /// The other transfer for the same quote lock: one of the two is refused.
    rival: Option<u64>,
    /// Every complete answer, in the order received.
    answers: Vec<Answer>,
    /// Answers to the key with another body.
    reuse_answers: Vec<Answer>,
}

impl Operation {
    fn is_final(answer: &Answer) -> bool {
        answer.is_success() || ((400..500).contains(&answer.status) && answer.code() != "resource_locked" && answer.status != 429)
    }
    fn success(&self) -> Option<&Answer> {
        self.answers.iter().find(|answer| answer.is_success())
    }
    fn id(&self) -> Option<String> {
        self.success().map(Answer::id)
    }
    fn name(&self) -> String {
        format!("operation {} ({:?}, key {})", self.number, self.kind, self.key)
    }
}

/// What a writer keeps. It is written before the next request is sent, in a process that nobody kills.
#[derive(Default)]
struct Journal {
    operations: Vec<Operation>,
    /// Statuses of transfers as they were seen, in order.
    sightings: Vec<(String, String)>,
    /// Operations that came to no final answer in time.
    stuck: Vec<String>,
}

/// Something that must not be.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// An acknowledged object is gone or reads differently.
    Lost(String),
    /// More than one effect.
    Doubled(String),
    /// An answer that no correct service gives.
    Wrong(String),
}

struct Load {
    is_over: AtomicBool,
    numbers: AtomicU64,
}

struct Writer<'a> {
    load: &'a Load,
    random: Random,
    client: Client,
    twin: Client,
    journal: Journal,
    beneficiaries_payable: Vec<String>,
    beneficiaries_waiting: Vec<String>,
    senders: Vec<String>,
}

impl Writer<'_> {
    fn run(mut self) -> Journal {
        while !self.load.is_over.load(Ordering::Relaxed) {
            self.round();
        }
        self.journal
    }

    /// One payment, or as much of it as succeeds.
    fn round(&mut self) {
        if (self.beneficiaries_payable.is_empty() && self.beneficiaries_waiting.len() < 3) || self.random.chance(4) {
            let number = self.number();
            let mut body = steps::beneficiary_body();
            body["metadata"] = json!({ "operation": number.to_string() });
            if let Some(id) = self.perform(number, Kind::Beneficiary, "/v1/beneficiaries", body, None) {
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
        std::thread::sleep(Duration::from_millis(self.random.between(0, 12)));
    }

    fn number(&self) -> u64 {
        self.load.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn lock_quote(&mut self) -> Option<String> {
        let number = self.number();
        let amount = format!("{}.{:02}", self.random.between(10, 4_000), self.random.between(0, 99));
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
        let locked = self.journal.operations.iter().rev().find(|operation| operation.id().as_deref() == Some(quote_lock_id))?;
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
        let mut rival = Writer {
            load: self.load,
            random: Random::new(self.random.next()),
            client: self.twin.twin(),
            twin: self.twin.twin(),
            journal: Journal::default(),
            beneficiaries_payable: Vec::new(),
            beneficiaries_waiting: Vec::new(),
            senders: Vec::new(),
        };
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| rival.perform(rival_number, Kind::Transfer, "/v1/transfers", rival_body, Some(number)));
            let first = self.perform(number, Kind::Transfer, "/v1/transfers", body, Some(rival_number));
            (first, second.join().expect("the rival"))
        });
        self.journal.operations.append(&mut rival.journal.operations);
        self.journal.stuck.append(&mut rival.journal.stuck);
        first.or(second)
    }

    /// Pays in one deposit or in two.
    fn pay(&mut self, transfer_id: &str) {
        let path = format!("/v1/test_helpers/transfers/{transfer_id}/deposit");
        if self.random.chance(20) {
            let number = self.number();
            if self.perform(number, Kind::Deposit, &path, json!({ "amount": "5.00" }), None).is_none() {
                return;
            }
        }
        let number = self.number();
        self.perform(number, Kind::Deposit, &path, json!({}), None);
    }

    /// Sends until there is a final answer, sometimes twice at once, and answers the new object's ID.
    fn perform(&mut self, number: u64, kind: Kind, path: &str, body: Value, rival: Option<u64>) -> Option<String> {
        let key = fresh_key();
        let mut operation =
            Operation { number, kind, path: path.to_owned(), key, body, rival, answers: Vec::new(), reuse_answers: Vec::new() };
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
                self.journal.stuck.push(format!("{}: no final answer after {attempt} attempts", operation.name()));
                break;
            }
            std::thread::sleep(Duration::from_millis(self.random.between(2, 15)));
        }
        if self.random.chance(15) {
            operation.answers.extend(self.send(1, &operation.path, &operation.key, &text));
        }
        if operation.success().is_some() && self.random.chance(5) {
            // The same key for another request; were it carried out, its number would be there twice.
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

    /// Sends the same request on one connection or on two at the same time; answers what came back complete.
    fn send(&mut self, count: usize, path: &str, key: &str, body: &str) -> Vec<Answer> {
        let mut sent = Vec::new();
        for client in [&mut self.client, &mut self.twin].into_iter().take(count) {
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
        }
        answers
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
        let (path, key, text) = (operation.path.clone(), operation.key.clone(), operation.body.to_string());
        let answers = self.send(1, &path, &key, &text);
        self.journal.operations[index].answers.extend(answers);
    }

    fn look_at_beneficiaries(&mut self) {
        for index in (0..self.beneficiaries_waiting.len()).rev() {
            let path = format!("/v1/beneficiaries/{}", self.beneficiaries_waiting[index]);
            let Ok(answer) = self.client.once("GET", &path, None, None) else { return };
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
        if let Ok(answer) = self.client.once("GET", &format!("/v1/transfers/{transfer_id}"), None, None)
            && let Some(status) = answer.json()["status"].as_str()
        {
            self.journal.sightings.push((transfer_id.to_owned(), status.to_owned()));
        }
    }
}

/// Pages the events from its last one on, all through the kills, as a caller would.
fn follow_events(mut client: Client, is_over: &AtomicBool) -> Vec<String> {
    let mut followed: Vec<String> = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let cursor = followed.last().map_or(String::new(), |last| format!("&starting_after={last}"));
        let page = client.once("GET", &format!("/v1/events?limit=100{cursor}"), None, None).ok().map(|answer| answer.json());
        let count = page.as_ref().and_then(|page| page["data"].as_array()).map_or(0, |data| {
            followed.extend(data.iter().filter_map(|event| event["id"].as_str()).map(str::to_owned));
            data.len()
        });
        if count == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    followed
}

/// The load under kills, and what is left of it: a server that runs, and the writers' journals.
struct Aftermath {
    server: Server,
    api_key: String,
    journals: Vec<Journal>,
    events_followed: Vec<String>,
    ready_slowest: Duration,
    kills_count: u64,
}

/// Runs the load and kills the server `kills_count` times. `settle` is called with the last server while the followers
/// still run.
fn storm_of_kills(
    home: &Home,
    receiver: &Receiver,
    kills_count: u64,
    seed: u64,
    settle: impl FnOnce(&Server, &str, &[Journal]),
) -> Aftermath {
    let mut random = Random::new(seed);
    let mut server = home.start_on_own_port();
    let address = server.address();
    let listen = address.to_string();
    let api_key = home.key();
    receiver.register(&mut server.client(&api_key));
    let load = Load { is_over: AtomicBool::new(false), numbers: AtomicU64::new(1) };
    let following_is_over = AtomicBool::new(false);
    let mut ready_slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS_COUNT)
            .map(|index| {
                let writer = Writer {
                    load: &load,
                    random: Random::new(seed ^ (index as u64 + 1) << 32),
                    client: Client::new(address, &api_key),
                    twin: Client::new(address, &api_key),
                    journal: Journal::default(),
                    beneficiaries_payable: Vec::new(),
                    beneficiaries_waiting: Vec::new(),
                    senders: Vec::new(),
                };
                scope.spawn(move || writer.run())
            })
            .collect();
        let follower = scope.spawn(|| follow_events(Client::new(address, &api_key), &following_is_over));
        // Whatever fails in here must not leave the writers running, or the scope never ends.
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for kill in 1..=kills_count {
                std::thread::sleep(Duration::from_millis(random.between(LIFE_MILLISECONDS_MIN, LIFE_MILLISECONDS_MAX)));
                take_down(home, &mut server, &mut random, kill, &listen);
                server = home.start_as(&[], &listen);
                ready_slowest = ready_slowest.max(server.ready_after);
            }
        }));
        load.is_over.store(true, Ordering::Relaxed);
        let journals: Vec<Journal> = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        let settled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if killed.is_ok() {
                settle(&server, &api_key, &journals);
            }
        }));
        following_is_over.store(true, Ordering::Relaxed);
        let events_followed = follower.join().expect("the follower");
        for outcome in [killed, settled] {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Aftermath { server, api_key: api_key.clone(), journals, events_followed, ready_slowest, kills_count }
    })
}

/// Kills the server; sometimes the next one too, while it starts, and sometimes looks at what lies there.
fn take_down(home: &Home, server: &mut Server, random: &mut Random, kill: u64, listen: &str) {
    server.kill_now();
    if random.chance(15) {
        let mut early = home.spawn(&[], listen);
        std::thread::sleep(Duration::from_millis(random.between(0, 120)));
        early.kill_now();
    }
    if kill.is_multiple_of(5) {
        home.check().expect_success(&format!("the check of the database after kill {kill}"));
    }
}

/// All objects of all kinds, by ID.
fn objects(client: &mut Client) -> HashMap<Kind, HashMap<String, Value>> {
    let mut all = HashMap::new();
    for kind in Kind::ALL {
        let listed = client.list(kind.list_path(), "");
        let count = listed.len();
        let by_id: HashMap<String, Value> = listed.into_iter().map(|object| (steps::text(&object, "id"), object)).collect();
        assert_eq!(by_id.len(), count, "{} lists an object twice", kind.list_path());
        all.insert(kind, by_id);
    }
    all
}

/// Every acknowledged object is there and equal in what cannot change.
fn losses(client: &mut Client, journals: &[Journal], objects: &HashMap<Kind, HashMap<String, Value>>, random: &mut Random) -> Vec<Finding> {
    let mut findings = Vec::new();
    let acknowledged: Vec<(&Operation, Value)> = journals
        .iter()
        .flat_map(|journal| &journal.operations)
        .flat_map(|operation| operation.answers.iter().filter(|answer| answer.is_success()).map(move |answer| (operation, answer.json())))
        .collect();
    let mut compare = |operation: &Operation, promised: &Value, found: &Value, how: &str| {
        for field in operation.kind.immutable_fields() {
            if member(promised, field) != member(found, field) {
                findings.push(Finding::Lost(format!(
                    "{}: {field} was acknowledged as {} and reads {} {how}",
                    operation.name(),
                    member(promised, field),
                    member(found, field)
                )));
            }
        }
    };
    let mut missing = Vec::new();
    for (operation, promised) in &acknowledged {
        let id = promised["id"].as_str().unwrap_or_default();
        match objects[&operation.kind].get(id) {
            Some(found) => compare(operation, promised, found, "in its list"),
            None => missing.push(format!("{}: {id} was acknowledged and is in no list", operation.name())),
        }
    }
    for _ in 0..READ_SINGLY_MAX.min(acknowledged.len()) {
        let (operation, promised) = random.pick(&acknowledged);
        let path = format!("{}/{}", operation.kind.list_path(), promised["id"].as_str().unwrap_or_default());
        let answer = client.get(&path);
        if answer.is_success() {
            compare(operation, promised, &answer.json(), "by its ID");
        } else {
            missing.push(format!("{}: GET {path} answers {}", operation.name(), answer.status));
        }
    }
    findings.extend(missing.into_iter().map(Finding::Lost));
    findings
}

/// Each operation came to one end, and each key had one effect.
fn doubles(journals: &[Journal], objects: &HashMap<Kind, HashMap<String, Value>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let operations: Vec<&Operation> = journals.iter().flat_map(|journal| &journal.operations).collect();
    let by_number: HashMap<u64, &Operation> = operations.iter().map(|operation| (operation.number, *operation)).collect();
    for operation in &operations {
        let ended: Vec<&Answer> = operation.answers.iter().filter(|answer| Operation::is_final(answer)).collect();
        if let Some(first) = ended.first()
            && let Some(other) = ended.iter().find(|answer| answer.status != first.status || answer.body != first.body)
        {
            let text = format!("{}: one key, two answers: {} and {}", operation.name(), first.text(), other.text());
            findings.push(Finding::Doubled(text));
        }
        if ended.iter().filter(|answer| !answer.is_replay()).count() > 1 {
            findings.push(Finding::Doubled(format!("{}: carried out more than once by its answers", operation.name())));
        }
        let refused = ended.first().filter(|answer| !answer.is_success());
        match (refused, operation.rival) {
            (Some(answer), None) => findings.push(Finding::Wrong(format!("{}: refused with {}", operation.name(), answer.text()))),
            (Some(answer), Some(_)) if answer.code() != "quote_lock_already_used" => {
                findings.push(Finding::Wrong(format!("{}: the loser was refused with {}", operation.name(), answer.text())));
            }
            (_, Some(rival)) if !ended.is_empty() => {
                let both = by_number.get(&rival).is_some_and(|rival| rival.success().is_some() == operation.success().is_some());
                if both {
                    findings
                        .push(Finding::Doubled(format!("{}: of two transfers for one quote lock not exactly one won", operation.name())));
                }
            }
            _ => {}
        }
        for answer in operation.answers.iter().filter(|answer| answer.status >= 500 && answer.status != 503) {
            findings.push(Finding::Wrong(format!("{}: {} {}", operation.name(), answer.status, answer.text())));
        }
        for answer in &operation.reuse_answers {
            let is_expected = answer.code() == "idempotency_key_reuse" || answer.code() == "resource_locked" || answer.status == 503;
            if !is_expected {
                findings.push(Finding::Doubled(format!("{}: its key with another body was answered {}", operation.name(), answer.text())));
            }
        }
    }
    for journal in journals {
        findings.extend(journal.stuck.iter().map(|stuck| Finding::Wrong(stuck.clone())));
    }
    // No effect that nobody was told of twice: each number is in one object at most.
    for kind in [Kind::Beneficiary, Kind::Sender, Kind::QuoteLock, Kind::Transfer] {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for object in objects[&kind].values() {
            let own = object["metadata"]["operation"].as_str().and_then(|text| text.parse().ok());
            match own {
                Some(own) => *counts.entry(own).or_default() += 1,
                None => findings.push(Finding::Wrong(format!("a {kind:?} that no writer made: {object}"))),
            }
        }
        for (own, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            findings.push(Finding::Doubled(format!("operation {own} made {count} objects of {kind:?}")));
        }
    }
    let mut deposits_asked: HashMap<&str, usize> = HashMap::new();
    for operation in operations.iter().filter(|operation| operation.kind == Kind::Deposit) {
        *deposits_asked.entry(operation.path.split('/').nth(4).unwrap_or_default()).or_default() += 1;
    }
    let mut deposits_made: HashMap<&str, usize> = HashMap::new();
    for deposit in objects[&Kind::Deposit].values() {
        *deposits_made.entry(deposit["transfer_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (transfer_id, made) in deposits_made {
        let asked = deposits_asked.get(transfer_id).copied().unwrap_or(0);
        if made > asked {
            findings.push(Finding::Doubled(format!("{transfer_id}: {made} deposits, {asked} asked for")));
        }
    }
    findings.extend(shared(&objects[&Kind::Transfer], "quote_lock_id"));
    findings.extend(shared(&objects[&Kind::Transfer], "funding.deposit_address"));
    findings
}

/// Members that no two objects may share.
fn shared(objects: &HashMap<String, Value>, field: &str) -> Vec<Finding> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut findings = Vec::new();
    for (id, object) in objects {
        let Some(value) = member(object, field).as_str() else {
            findings.push(Finding::Wrong(format!("{id} has no {field}")));
            continue;
        };
        if let Some(other) = owners.insert(value, id) {
            findings.push(Finding::Doubled(format!("{id} and {other} share the {field} {value}")));
        }
    }
    findings
}

fn is_arrow(from: &str, to: &str) -> bool {
    TRANSFER_ARROWS.contains(&(from, to))
}

/// Whether a path of arrows, also of none, leads from one status to the other.
fn leads_to(from: &str, to: &str) -> bool {
    from == to || TRANSFER_ARROWS.iter().any(|(start, next)| *start == from && leads_to(next, to))
}

/// Statuses only moved forward, and each step told exactly one event.
fn histories(journals: &[Journal], transfers: &HashMap<String, Value>, payouts: &[Value], events: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told: HashMap<&str, Vec<&str>> = HashMap::new();
    for event in events {
        told.entry(event["linked_id"].as_str().unwrap_or_default()).or_default().push(event["type"].as_str().unwrap_or_default());
    }
    for (id, transfer) in transfers {
        let entries: Vec<(&str, i64)> = transfer["status_history"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| (entry["status"].as_str().unwrap_or_default(), entry["at"].as_i64().unwrap_or(-1)))
            .collect();
        let steps_are_sound = entries.windows(2).all(|pair| is_arrow(pair[0].0, pair[1].0) && pair[0].1 <= pair[1].1);
        let starts = entries.first().is_some_and(|entry| entry.0 == "funding");
        let ends = entries.last().is_some_and(|entry| Some(entry.0) == transfer["status"].as_str());
        if !steps_are_sound || !starts || !ends {
            findings.push(Finding::Wrong(format!("{id}: its history is no path of the graph: {}", transfer["status_history"])));
        }
        let mut expected: Vec<String> = entries.iter().map(|entry| format!("transfer.status.{}", entry.0)).collect();
        let mut found: Vec<&str> =
            told.get(id.as_str()).into_iter().flatten().copied().filter(|name| name.starts_with("transfer.status.")).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            findings.push(Finding::Wrong(format!("{id}: its history is {expected:?}, its events are {found:?}")));
        }
    }
    let mut payouts_of: HashMap<String, usize> = HashMap::new();
    for payout in payouts {
        let id = steps::text(payout, "id");
        let transfer_id = steps::text(payout, "transfer_id");
        if transfers.get(&transfer_id).is_none_or(|transfer| transfer["payout_amount"] != payout["amount"]) {
            findings.push(Finding::Wrong(format!("{id} pays another amount than its transfer: {payout}")));
        }
        let mut found: Vec<&str> =
            told.get(id.as_str()).into_iter().flatten().filter_map(|name| name.strip_prefix("payout.status.")).collect();
        found.sort_unstable();
        if payout["status"] == "settled" && found != PAYOUT_STATUSES {
            findings.push(Finding::Wrong(format!("{id} is settled, its events are {found:?}")));
        }
        *payouts_of.entry(transfer_id).or_default() += 1;
    }
    for (transfer_id, count) in payouts_of.into_iter().filter(|(_, count)| *count > 1) {
        findings.push(Finding::Doubled(format!("{transfer_id} was paid out {count} times")));
    }
    let mut last_seen: HashMap<&str, &str> = HashMap::new();
    for (id, status) in journals.iter().flat_map(|journal| &journal.sightings) {
        if let Some(before) = last_seen.insert(id, status)
            && !leads_to(before, status)
        {
            findings.push(Finding::Wrong(format!("{id} was seen in {before} and later in {status}")));
        }
    }
    for (id, status) in last_seen {
        let end = transfers.get(id).and_then(|transfer| transfer["status"].as_str()).unwrap_or_default();
        if !leads_to(status, end) {
            findings.push(Finding::Wrong(format!("{id} was seen in {status} and ended in {end}")));
        }
    }
    findings
}

/// Transfers whose whole amount was acknowledged as deposited.
fn paid_transfers(journals: &[Journal]) -> HashSet<String> {
    let operations = journals.iter().flat_map(|journal| &journal.operations);
    operations
        .filter(|operation| operation.kind == Kind::Deposit && operation.body.get("amount").is_none() && operation.success().is_some())
        .filter_map(|operation| operation.path.split('/').nth(4).map(str::to_owned))
        .collect()
}

/// Waits until every paid transfer is settled with its advice, and every event has been delivered. Standing still fails.
fn await_quiet(server: &Server, api_key: &str, journals: &[Journal], receiver: &Receiver) {
    let mut client = server.client(api_key);
    let paid = paid_transfers(journals);
    let mut open: Vec<String> = paid.iter().cloned().collect();
    wait_while_it_moves("the paid transfers to settle", || {
        open.retain(|id| client.get(&format!("/v1/transfers/{id}")).json()["status"] != "payout_settled");
        (open.len(), open.first().cloned().unwrap_or_default())
    });
    wait_while_it_moves("the payment advices", || {
        let advised = client.list("/v1/events", "type=payout.payment_advice.available").len();
        (paid.len().saturating_sub(advised), String::new())
    });
    let mut undelivered: Vec<String> = client.list("/v1/events", "").iter().map(|event| steps::text(event, "id")).collect();
    wait_while_it_moves("the deliveries", || {
        undelivered.retain(|id| receiver.valid_count(id) == 0);
        (undelivered.len(), undelivered.first().cloned().unwrap_or_default())
    });
}

/// Waits until nothing is left, as long as it becomes less.
fn wait_while_it_moves(what: &str, mut left: impl FnMut() -> (usize, String)) {
    let mut least = usize::MAX;
    let mut moved_at = Instant::now();
    loop {
        let (count, example) = left();
        if count == 0 {
            return;
        }
        if count < least {
            least = count;
            moved_at = Instant::now();
        }
        assert!(moved_at.elapsed() < STANDSTILL_MAX, "waited in vain for {what}: {count} left, such as {example}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn show(findings: &[Finding]) -> String {
    findings.iter().take(20).map(|finding| format!("  {finding:?}\n")).collect()
}

#[test]
fn kills_lose_nothing_and_double_nothing() {
    let seed = seed("HUNDI_CRASH_SEED");
    let kills_count = number("HUNDI_CRASH_KILLS", 20);
    let home = quiet_home("crash");
    let receiver = Receiver::start();
    let aftermath = storm_of_kills(&home, &receiver, kills_count, seed, |server, api_key, journals| {
        await_quiet(server, api_key, journals, &receiver);
    });
    let Aftermath { server, api_key, journals, events_followed, ready_slowest, .. } = aftermath;
    let mut client = server.client(&api_key);
    let objects = objects(&mut client);
    let events = client.list("/v1/events", "");
    let operations_count: usize = journals.iter().map(|journal| journal.operations.len()).sum();
    let paid_count = paid_transfers(&journals).len();
    println!(
        "{} kills, {operations_count} operations, {paid_count} payments settled, {} events, slowest start {ready_slowest:?}",
        aftermath.kills_count,
        events.len()
    );

    let mut findings = losses(&mut client, &journals, &objects, &mut Random::new(seed));
    findings.extend(doubles(&journals, &objects));
    findings.extend(histories(&journals, &objects[&Kind::Transfer], &client.list("/v1/payouts", ""), &events));
    let (problems_count, problems) = receiver.problems();
    if problems_count > 0 {
        findings.push(Finding::Wrong(format!("{problems_count} deliveries were wrong, such as {problems:?}")));
    }
    let undelivered: Vec<&str> =
        events.iter().filter_map(|event| event["id"].as_str()).filter(|id| receiver.valid_count(id) == 0).collect();
    if !undelivered.is_empty() {
        findings.push(Finding::Lost(format!("{} events never arrived, such as {:?}", undelivered.len(), undelivered.first())));
    }
    // A caller that pages from its last event never misses one.
    let listed: Vec<String> = events.iter().map(|event| steps::text(event, "id")).collect();
    let followed: HashSet<&String> = events_followed.iter().collect();
    let missed: Vec<&String> = listed.iter().filter(|id| !followed.contains(id)).collect();
    if !missed.is_empty() || events_followed.len() != listed.len() {
        findings.push(Finding::Lost(format!(
            "the follower of the events saw {} of {} and missed {} of them, such as {:?}",
            events_followed.len(),
            listed.len(),
            missed.len(),
            missed.first()
        )));
    }
    findings.extend(home.panics().into_iter().map(Finding::Wrong));
    assert!(findings.is_empty(), "HUNDI_CRASH_SEED={seed}: {} findings\n{}", findings.len(), show(&findings));

    // A run in which next to nothing happened would prove next to nothing.
    assert!(paid_count as u64 >= kills_count, "only {paid_count} payments in {kills_count} lives of the server");
    home.check().expect_success("the check beside the running server");
    assert!(server.stop().success(), "the server did not end well");
    home.check().expect_success("the check of the stopped server's database");
    assert!(ready_slowest <= READY_MAX, "ready after {ready_slowest:?}: a restart after kill -9 is promised within {READY_MAX:?}");
}

/// A home whose servers do not spend the load's time on rate limits.
fn quiet_home(name: &str) -> Home {
    Home::new(name).with("HUNDI_RATE_LIMIT_READS", "0").with("HUNDI_RATE_LIMIT_WRITES", "0")
}

/// The same load, kills and oracle over a server that answers before it commits: an oracle that stays silent here
/// would prove nothing above.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn oracle_notices_an_answer_before_the_commit() {
    const ROUNDS_MAX: u64 = 5;
    const KILLS_PER_ROUND: u64 = 3;
    let seed = seed("HUNDI_CRASH_SEED");
    for round in 0..ROUNDS_MAX {
        let home = quiet_home("crash-control").with_fault("answer_before_commit");
        let receiver = Receiver::start();
        let aftermath = storm_of_kills(&home, &receiver, KILLS_PER_ROUND, seed.wrapping_add(round), |_, _, _| {});
        let mut client = aftermath.server.client(&aftermath.api_key);
        let objects = objects(&mut client);
        let findings = losses(&mut client, &aftermath.journals, &objects, &mut Random::new(seed));
        let lost = findings.iter().filter(|finding| matches!(finding, Finding::Lost(_))).count();
        println!("round {round}: the oracle reports {lost} losses");
        if lost > 0 {
            return;
        }
    }
    panic!(
        "HUNDI_CRASH_SEED={seed}: the server answered before its commits and was killed {} times, and the oracle noticed nothing",
        ROUNDS_MAX * KILLS_PER_ROUND
    );
}

/// The parts of the oracle that no planted fault of the server reaches: one small world that is sound, and the same
/// world with one thing wrong at a time.
#[test]
fn oracle_notices_planted_contradictions() {
    struct World {
        journal: Journal,
        objects: HashMap<Kind, HashMap<String, Value>>,
        payouts: Vec<Value>,
        events: Vec<Value>,
    }
    fn answer(status: u16, body: &Value, is_replay: bool) -> Answer {
        let headers = if is_replay { vec![("Idempotent-Replayed".to_owned(), "true".to_owned())] } else { Vec::new() };
        Answer { status, headers, body: body.to_string().into_bytes() }
    }
    fn operation(number: u64, kind: Kind, path: &str, answers: Vec<Answer>) -> Operation {
        let key = format!("key-{number}");
        Operation { number, kind, path: path.to_owned(), key, body: json!({}), rival: None, answers, reuse_answers: Vec::new() }
    }
    fn transfer(id: &str, number: u64, quote_lock: &str, address: &str) -> Value {
        let history = ["funding", "funded", "payout_processing", "payout_settled"];
        let history: Vec<Value> = history.iter().enumerate().map(|(index, status)| json!({ "status": status, "at": index })).collect();
        json!({
            "id": id, "status": "payout_settled", "payout_amount": "1.00", "quote_lock_id": quote_lock, "status_history": history,
            "funding": { "deposit_address": address }, "metadata": { "operation": number.to_string() },
        })
    }
    fn sound() -> World {
        let made = [transfer("transfer_1", 1, "quote_lock_1", "T1"), transfer("transfer_2", 2, "quote_lock_2", "T2")];
        let mut objects: HashMap<Kind, HashMap<String, Value>> = Kind::ALL.iter().map(|kind| (*kind, HashMap::new())).collect();
        let mut journal = Journal::default();
        let mut events = Vec::new();
        for (index, body) in made.iter().enumerate() {
            let answers = vec![answer(200, body, false), answer(200, body, true)];
            journal.operations.push(operation(index as u64 + 1, Kind::Transfer, "/v1/transfers", answers));
            for entry in body["status_history"].as_array().unwrap() {
                events.push(json!({ "linked_id": body["id"], "type": format!("transfer.status.{}", entry["status"].as_str().unwrap()) }));
            }
            objects.get_mut(&Kind::Transfer).unwrap().insert(steps::text(body, "id"), body.clone());
        }
        let deposit = json!({ "id": "deposit_1", "transfer_id": "transfer_1" });
        let path = "/v1/test_helpers/transfers/transfer_1/deposit";
        journal.operations.push(operation(3, Kind::Deposit, path, vec![answer(200, &deposit, false)]));
        objects.get_mut(&Kind::Deposit).unwrap().insert("deposit_1".into(), deposit);
        let payouts = vec![json!({ "id": "payout_1", "transfer_id": "transfer_1", "amount": "1.00", "status": "settled" })];
        events.extend(PAYOUT_STATUSES.iter().map(|status| json!({ "linked_id": "payout_1", "type": format!("payout.status.{status}") })));
        journal.sightings.push(("transfer_1".into(), "funded".into()));
        World { journal, objects, payouts, events }
    }
    fn findings(world: World) -> Vec<Finding> {
        let journals = [world.journal];
        let mut findings = doubles(&journals, &world.objects);
        findings.extend(histories(&journals, &world.objects[&Kind::Transfer], &world.payouts, &world.events));
        findings
    }
    assert_eq!(findings(sound()), [], "the sound world is not found sound");

    type Plant = fn(&mut World);
    let wrongs: &[(&str, Plant)] = &[
        ("two effects of one key", |world| world.journal.operations[0].answers.push(answer(200, &json!({ "id": "transfer_9" }), false))),
        ("two answers to one key", |world| world.journal.operations[0].answers[1] = answer(200, &json!({ "id": "transfer_9" }), true)),
        ("a refusal of a sound request", |world| {
            world.journal.operations[0].answers = vec![answer(400, &json!({ "errors": [{ "code": "beneficiary_not_payable" }] }), false)];
        }),
        ("a fault of the service", |world| world.journal.operations[0].answers.push(answer(500, &json!({}), false))),
        ("a reused key that is carried out", |world| world.journal.operations[0].reuse_answers.push(answer(200, &json!({}), false))),
        ("two winners of one lock", |world| {
            world.journal.operations[0].rival = Some(2);
            world.journal.operations[1].rival = Some(1);
        }),
        ("an operation without an end", |world| world.journal.stuck.push("operation 7".into())),
        ("one number in two objects", |world| {
            let again = transfer("transfer_3", 1, "quote_lock_3", "T3");
            world.objects.get_mut(&Kind::Transfer).unwrap().insert("transfer_3".into(), again);
        }),
        ("a shared quote lock", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_2").unwrap()["quote_lock_id"] = json!("quote_lock_1")
        }),
        ("a shared address", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_2").unwrap()["funding"]["deposit_address"] = json!("T1")
        }),
        ("a deposit nobody sent", |world| {
            let again = json!({ "id": "deposit_2", "transfer_id": "transfer_1" });
            world.objects.get_mut(&Kind::Deposit).unwrap().insert("deposit_2".into(), again);
        }),
        ("a second payout", |world| {
            world.payouts.push(json!({ "id": "payout_2", "transfer_id": "transfer_1", "amount": "1.00", "status": "initialized" }))
        }),
        ("a payout of another amount", |world| world.payouts[0]["amount"] = json!("2.00")),
        ("a history that jumps", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_1").unwrap()["status_history"][1]["status"] =
                json!("payout_failed");
        }),
        ("a status that its history does not end in", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_1").unwrap()["status"] = json!("payout_processing");
        }),
        ("a step without an event", |world| drop(world.events.remove(1))),
        ("an event told twice", |world| world.events.push(world.events[2].clone())),
        ("a payout's step told twice", |world| world.events.push(world.events.last().unwrap().clone())),
        ("a step back", |world| world.journal.sightings.push(("transfer_1".into(), "funding".into()))),
    ];
    for (what, plant) in wrongs {
        let mut world = sound();
        plant(&mut world);
        assert!(!findings(world).is_empty(), "{what} was not noticed");
    }
}

/// The very first start makes the schema, the key file and a key: a kill in the middle of it must not leave a
/// database that cannot be started.
#[test]
fn first_start_survives_a_kill() {
    const STARTS_COUNT: u64 = 12;
    let mut random = Random::new(seed("HUNDI_CRASH_SEED"));
    let mut slowest = Duration::ZERO;
    for start in 0..STARTS_COUNT {
        let home = quiet_home("crash-first-start");
        let mut early = home.spawn(&[], "127.0.0.1:0");
        let pause = Duration::from_millis(random.between(0, 150));
        std::thread::sleep(pause);
        early.kill_now();
        let server = home
            .try_start(&[], "127.0.0.1:0")
            .unwrap_or_else(|problem| panic!("start {start}, killed after {pause:?}: {problem}\n{}", home.log()));
        slowest = slowest.max(server.ready_after);
        let mut client = server.client(&home.key());
        until("the first write", Duration::from_secs(5), || client.post("/v1/senders", &steps::sender_body()).is_success().then_some(()));
        home.check().expect_success("the check after a first start that was killed");
    }
    assert!(slowest <= READY_MAX, "ready after {slowest:?}: a start is promised within {READY_MAX:?}");
}
