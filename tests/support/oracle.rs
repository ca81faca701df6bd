//! The judge of `load.rs`: nothing acknowledged is lost, nothing happened twice, every status has
//! its event and every event arrived.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::load::{Journal, Kind, Operation, member};
use super::{Answer, Client, Random, Receiver, steps};

/// How long what is awaited may stand still before it counts as lost: longer than a killed worker's
/// lease on its work.
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
pub const PAYOUT_STATUSES: &[&str] = &["initialized", "processing", "settled"];

/// Something that must not be.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// An acknowledged object is gone or reads differently.
    Lost(String),
    /// More than one effect.
    Doubled(String),
    /// An answer that no correct service gives.
    Wrong(String),
}

/// All objects of all kinds, by ID.
pub fn objects(client: &mut Client) -> HashMap<Kind, HashMap<String, Value>> {
    let mut all = HashMap::new();
    for kind in Kind::ALL {
        // The newest first: pages in the other direction end before what a transaction that still
        // runs may put in front.
        let listed = client.list(kind.list_path(), "order=desc");
        let count = listed.len();
        let by_id: HashMap<String, Value> =
            listed.into_iter().map(|object| (steps::text(&object, "id"), object)).collect();
        assert_eq!(by_id.len(), count, "{} lists an object twice", kind.list_path());
        all.insert(kind, by_id);
    }
    all
}

/// Every acknowledged object is there and equal in what cannot change.
pub fn losses(
    client: &mut Client,
    journals: &[Journal],
    objects: &HashMap<Kind, HashMap<String, Value>>,
    random: &mut Random,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let acknowledged: Vec<(&Operation, Value)> = journals
        .iter()
        .flat_map(|journal| &journal.operations)
        .flat_map(|operation| {
            operation
                .answers
                .iter()
                .filter(|answer| answer.is_success())
                .map(move |answer| (operation, answer.json()))
        })
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
            None => {
                let path = format!("{}/{id}", operation.kind.list_path());
                missing.push(format!(
                    "{}: {id} was acknowledged and is in no list; GET {path} answers {}",
                    operation.name(),
                    client.get(&path).status
                ));
            }
        }
    }
    for _ in 0..READ_SINGLY_MAX.min(acknowledged.len()) {
        let (operation, promised) = random.pick(&acknowledged);
        let path = format!(
            "{}/{}",
            operation.kind.list_path(),
            promised["id"].as_str().unwrap_or_default()
        );
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

/// Everything that is found wrong once the load has ended, the receiver has everything and
/// `followed` was paged to its end.
pub fn verdict(
    client: &mut Client,
    journals: &[Journal],
    receiver: &Receiver,
    followed: &[String],
    random: &mut Random,
) -> Vec<Finding> {
    let objects = objects(client);
    let events = client.list("/v1/events", "");
    let mut findings = losses(client, journals, &objects, random);
    findings.extend(doubles(journals, &objects));
    findings.extend(histories(
        journals,
        &objects[&Kind::Transfer],
        &client.list("/v1/payouts", ""),
        &events,
    ));
    let (problems_count, problems) = receiver.problems();
    if problems_count > 0 {
        findings.push(Finding::Wrong(format!(
            "{problems_count} deliveries were wrong, such as {problems:?}"
        )));
    }
    let undelivered: Vec<&str> = events
        .iter()
        .filter_map(|event| event["id"].as_str())
        .filter(|id| receiver.valid_count(id) == 0)
        .collect();
    if !undelivered.is_empty() {
        findings.push(Finding::Lost(format!(
            "{} events never arrived, such as {:?}",
            undelivered.len(),
            undelivered.first()
        )));
    }
    // A caller that pages from its last event never misses one.
    let listed: Vec<String> = events.iter().map(|event| steps::text(event, "id")).collect();
    let seen: HashSet<&String> = followed.iter().collect();
    let missed: Vec<&String> = listed.iter().filter(|id| !seen.contains(id)).collect();
    if !missed.is_empty() || followed.len() != listed.len() {
        findings.push(Finding::Lost(format!(
            "the follower of the events saw {} of {} and missed {} of them, such as {:?}",
            followed.len(),
            listed.len(),
            missed.len(),
            missed.first()
        )));
    }
    findings
}

/// Each operation came to one end, and each key had one effect.
pub fn doubles(
    journals: &[Journal],
    objects: &HashMap<Kind, HashMap<String, Value>>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let operations: Vec<&Operation> =
        journals.iter().flat_map(|journal| &journal.operations).collect();
    let by_number: HashMap<u64, &Operation> =
        operations.iter().map(|operation| (operation.number, *operation)).collect();
    for operation in &operations {
        let ended: Vec<&Answer> =
            operation.answers.iter().filter(|answer| Operation::is_final(answer)).collect();
        if let Some(first) = ended.first()
            && let Some(other) = ended
                .iter()
                .find(|answer| answer.status != first.status || answer.body != first.body)
        {
            let text = format!(
                "{}: one key, two answers: {} and {}",
                operation.name(),
                first.text(),
                other.text()
            );
            findings.push(Finding::Doubled(text));
        }
        if ended.iter().filter(|answer| !answer.is_replay()).count() > 1 {
            findings.push(Finding::Doubled(format!(
                "{}: carried out more than once by its answers",
                operation.name()
            )));
        }
        let refused = ended.first().filter(|answer| !answer.is_success());
        match (refused, operation.rival) {
            (Some(answer), None) => findings.push(Finding::Wrong(format!(
                "{}: refused with {}",
                operation.name(),
                answer.text()
            ))),
            (Some(answer), Some(_)) if answer.code() != "quote_lock_already_used" => {
                findings.push(Finding::Wrong(format!(
                    "{}: the loser was refused with {}",
                    operation.name(),
                    answer.text()
                )));
            }
            (_, Some(rival)) if !ended.is_empty() => {
                let both = by_number.get(&rival).is_some_and(|rival| {
                    rival.success().is_some() == operation.success().is_some()
                });
                if both {
                    findings.push(Finding::Doubled(format!(
                        "{}: of two transfers for one quote lock not exactly one won",
                        operation.name()
                    )));
                }
            }
            _ => {}
        }
        for answer in
            operation.answers.iter().filter(|answer| answer.status >= 500 && answer.status != 503)
        {
            findings.push(Finding::Wrong(format!(
                "{}: {} {}",
                operation.name(),
                answer.status,
                answer.text()
            )));
        }
        for answer in &operation.reuse_answers {
            let is_expected = answer.code() == "idempotency_key_reuse"
                || answer.code() == "resource_locked"
                || answer.status == 503;
            if !is_expected {
                findings.push(Finding::Doubled(format!(
                    "{}: its key with another body was answered {}",
                    operation.name(),
                    answer.text()
                )));
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
                None => findings
                    .push(Finding::Wrong(format!("a {kind:?} that no writer made: {object}"))),
            }
        }
        for (own, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            findings.push(Finding::Doubled(format!(
                "operation {own} made {count} objects of {kind:?}"
            )));
        }
    }
    let mut deposits_asked: HashMap<&str, usize> = HashMap::new();
    for operation in operations.iter().filter(|operation| operation.kind == Kind::Deposit) {
        *deposits_asked.entry(operation.path.split('/').nth(4).unwrap_or_default()).or_default() +=
            1;
    }
    let mut deposits_made: HashMap<&str, usize> = HashMap::new();
    for deposit in objects[&Kind::Deposit].values() {
        *deposits_made.entry(deposit["transfer_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (transfer_id, made) in deposits_made {
        let asked = deposits_asked.get(transfer_id).copied().unwrap_or(0);
        if made > asked {
            findings.push(Finding::Doubled(format!(
                "{transfer_id}: {made} deposits, {asked} asked for"
            )));
        }
    }
    findings.extend(shared(&objects[&Kind::Transfer], "quote_lock_id"));
    findings.extend(shared(&objects[&Kind::Transfer], "funding.deposit_address"));
    findings
}

/// Members that no two objects may share.
pub fn shared(objects: &HashMap<String, Value>, field: &str) -> Vec<Finding> {
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
pub fn histories(
    journals: &[Journal],
    transfers: &HashMap<String, Value>,
    payouts: &[Value],
    events: &[Value],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told: HashMap<&str, Vec<&str>> = HashMap::new();
    for event in events {
        told.entry(event["linked_id"].as_str().unwrap_or_default())
            .or_default()
            .push(event["type"].as_str().unwrap_or_default());
    }
    for (id, transfer) in transfers {
        let entries: Vec<(&str, i64)> = transfer["status_history"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| {
                (entry["status"].as_str().unwrap_or_default(), entry["at"].as_i64().unwrap_or(-1))
            })
            .collect();
        let steps_are_sound =
            entries.windows(2).all(|pair| is_arrow(pair[0].0, pair[1].0) && pair[0].1 <= pair[1].1);
        let starts = entries.first().is_some_and(|entry| entry.0 == "funding");
        let ends = entries.last().is_some_and(|entry| Some(entry.0) == transfer["status"].as_str());
        if !steps_are_sound || !starts || !ends {
            findings.push(Finding::Wrong(format!(
                "{id}: its history is no path of the graph: {}",
                transfer["status_history"]
            )));
        }
        let mut expected: Vec<String> =
            entries.iter().map(|entry| format!("transfer.status.{}", entry.0)).collect();
        let mut found: Vec<&str> = told
            .get(id.as_str())
            .into_iter()
            .flatten()
            .copied()
            .filter(|name| name.starts_with("transfer.status."))
            .collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            findings.push(Finding::Wrong(format!(
                "{id}: its history is {expected:?}, its events are {found:?}"
            )));
        }
    }
    let mut payouts_of: HashMap<String, usize> = HashMap::new();
    for payout in payouts {
        let id = steps::text(payout, "id");
        let transfer_id = steps::text(payout, "transfer_id");
        if transfers
            .get(&transfer_id)
            .is_none_or(|transfer| transfer["payout_amount"] != payout["amount"])
        {
            findings.push(Finding::Wrong(format!(
                "{id} pays another amount than its transfer: {payout}"
            )));
        }
        let mut found: Vec<&str> = told
            .get(id.as_str())
            .into_iter()
            .flatten()
            .filter_map(|name| name.strip_prefix("payout.status."))
            .collect();
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
            findings
                .push(Finding::Wrong(format!("{id} was seen in {before} and later in {status}")));
        }
    }
    for (id, status) in last_seen {
        let end =
            transfers.get(id).and_then(|transfer| transfer["status"].as_str()).unwrap_or_default();
        if !leads_to(status, end) {
            findings.push(Finding::Wrong(format!("{id} was seen in {status} and ended in {end}")));
        }
    }
    findings
}

/// Transfers whose whole amount was acknowledged as deposited.
pub fn paid_transfers(journals: &[Journal]) -> HashSet<String> {
    let operations = journals.iter().flat_map(|journal| &journal.operations);
    operations
        .filter(|operation| {
            operation.kind == Kind::Deposit
                && operation.body.get("amount").is_none()
                && operation.success().is_some()
        })
        .filter_map(|operation| operation.path.split('/').nth(4).map(str::to_owned))
        .collect()
}

/// Waits until every paid transfer is settled with its advice, and every event has been delivered.
/// Standing still fails.
pub fn await_quiet(client: &mut Client, journals: &[Journal], receiver: &Receiver) {
    let paid = paid_transfers(journals);
    let mut open: Vec<String> = paid.iter().cloned().collect();
    wait_while_it_moves("the paid transfers to settle", || {
        open.retain(|id| {
            client.get(&format!("/v1/transfers/{id}")).json()["status"] != "payout_settled"
        });
        (open.len(), open.first().cloned().unwrap_or_default())
    });
    wait_while_it_moves("the payment advices", || {
        let advised = client.list("/v1/events", "type=payout.payment_advice.available").len();
        (paid.len().saturating_sub(advised), String::new())
    });
    let mut undelivered: Vec<String> =
        client.list("/v1/events", "").iter().map(|event| steps::text(event, "id")).collect();
    wait_while_it_moves("the deliveries", || {
        undelivered.retain(|id| receiver.valid_count(id) == 0);
        (undelivered.len(), undelivered.first().cloned().unwrap_or_default())
    });
}

/// Waits until nothing is left, as long as it becomes less.
pub fn wait_while_it_moves(what: &str, mut left: impl FnMut() -> (usize, String)) {
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
        assert!(
            moved_at.elapsed() < STANDSTILL_MAX,
            "waited in vain for {what}: {count} left, such as {example}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The first findings, one a line.
pub fn show(findings: &[Finding]) -> String {
    findings.iter().take(20).map(|finding| format!("  {finding:?}\n")).collect()
}
