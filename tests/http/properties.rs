//! A random walk over many payments: whatever comes in whatever order, the book stays right and no
//! money is lost.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::stage::{self, ADDRESS, Actor, DAY, STEP};
use crate::support::{Server, id};

/// What may refuse a move that came at the wrong time.
const REFUSALS: &[&str] = &[
    "beneficiary_not_payable",
    "quote_lock_mismatch",
    "refund_address_required",
    "test_helper_not_applicable",
    "transfer_action_invalid",
    "transfer_not_cancellable",
];

fn pick<'a>(random: &mut StdRng, from: &'a [Value]) -> &'a Value {
    &from[random.random_range(0..from.len())]
}

fn amount(random: &mut StdRng) -> String {
    match random.random_range(0..5) {
        0 => "100.00".to_owned(),
        1 => format!("{}.{:06}", random.random_range(0..150), random.random_range(1..1_000_000)),
        2 => format!("{}.00", random.random_range(101..200)),
        _ => format!("{}.{:02}", random.random_range(1..100), random.random_range(0..100)),
    }
}

async fn make_transfer(
    actor: &Actor,
    random: &mut StdRng,
    beneficiaries: &[Value],
) -> Option<Value> {
    let mut word = |words: &[&str]| words[random.random_range(0..words.len())].to_owned();
    let policy = json!({ "underpaid": word(&["hold", "refund"]), "overpaid": word(&["refund_excess",
        "hold"]), "late": word(&["hold", "refund"]) });
    let mut funding = json!({ "policy": policy });
    if random.random_bool(0.5) {
        funding["refund_address"] = json!(ADDRESS);
    }
    let beneficiary_id = id(pick(random, beneficiaries));
    let body = actor.transfer_body(&beneficiary_id, "100.00", funding).await;
    let answer = actor.client.post("/v1/transfers", body).await;
    if answer.status == 200 {
        return Some(answer.ok());
    }
    assert_eq!(answer.error(400), "beneficiary_not_payable");
    None
}

async fn one_move(
    actor: &Actor,
    random: &mut StdRng,
    beneficiaries: &[Value],
    transfers: &mut Vec<Value>,
    met: &mut BTreeMap<String, usize>,
) {
    let client = &actor.client;
    let transfer = pick(random, transfers).clone();
    let answer = match random.random_range(0..100) {
        0..=9 => {
            transfers.extend(make_transfer(actor, random, beneficiaries).await);
            return;
        }
        10..=49 => {
            let mut body = json!({ "amount": amount(random) });
            if random.random_bool(0.05) {
                body["asset"] = json!("TRX");
            }
            client
                .post(&format!("/v1/test_helpers/transfers/{}/deposit", id(&transfer)), body)
                .await
        }
        50..=59 => {
            actor.advance(random.random_range(1..STEP)).await;
            return;
        }
        60..=66 => {
            actor.advance(random.random_range(STEP..2_000)).await;
            return;
        }
        67 => {
            actor.advance(random.random_range(DAY / 2..2 * DAY)).await;
            return;
        }
        68..=71 => actor.cancel(&transfer).await,
        72..=77 => {
            let mut body = json!({ "action": "refund" });
            if random.random_bool(0.5) {
                body["refund_address"] = json!(ADDRESS);
            }
            actor.resolve(&transfer, body).await
        }
        78..=84 => {
            let lock = client.quote_lock(&format!("{}.00", random.random_range(10..120))).await;
            actor
                .resolve(&transfer, json!({ "action": "requote", "quote_lock_id": id(&lock) }))
                .await
        }
        85..=89 => {
            let shown = actor.shown(&transfer).await;
            let Some(payout) = shown["payout_id"].as_str() else { return };
            let helper = ["settle", "fail", "return"][random.random_range(0..3)];
            client.post(&format!("/v1/test_helpers/payouts/{payout}/{helper}"), json!({})).await
        }
        90..=94 => {
            let refunds = stage::all(client, "/v1/refunds").await;
            if refunds.is_empty() {
                return;
            }
            let refund = pick(random, &refunds);
            if random.random_bool(0.7) {
                client
                    .post(&format!("/v1/refunds/{}", id(refund)), json!({ "to_address": ADDRESS }))
                    .await
            } else {
                client
                    .post(&format!("/v1/test_helpers/refunds/{}/complete", id(refund)), json!({}))
                    .await
            }
        }
        _ => {
            client
                .post(
                    &format!(
                        "/v1/test_helpers/beneficiaries/{}/activate",
                        id(pick(random, beneficiaries))
                    ),
                    json!({}),
                )
                .await
        }
    };
    if answer.status != 200 {
        let code = answer.error(400);
        assert!(REFUSALS.contains(&code.as_str()), "{code}");
        *met.entry(code).or_default() += 1;
    }
}

/// What the balance must be, from what every object says.
async fn assert_conserved(actor: &Actor) {
    let client = &actor.client;
    let sum = |objects: &[Value], wanted: &dyn Fn(&Value) -> bool| -> i64 {
        objects
            .iter()
            .filter(|object| wanted(object))
            .map(|object| stage::micros(&object["amount"]))
            .sum()
    };
    let deposits = stage::all(client, "/v1/deposits").await;
    let refunds = stage::all(client, "/v1/refunds").await;
    let transfers = stage::all(client, "/v1/transfers").await;
    let is_usdt = |deposit: &Value| deposit["asset"] == "USDT";
    let deposited = sum(&deposits, &|deposit| deposit["status"] == "completed");
    assert!(deposits.iter().filter(|deposit| deposit["status"] == "completed").all(is_usdt));
    let refunded = sum(&refunds, &|refund| refund["status"] == "completed");
    let payouts = stage::all(client, "/v1/payouts").await;
    let exchanged = sum(&transfers, &|transfer| {
        payouts.iter().any(|payout| {
            payout["id"] == transfer["payout_id"]
                && ["processing", "settled"].contains(&payout["status"].as_str().unwrap())
        })
    });
    let with_bank = sum(&payouts, &|payout| payout["status"] == "processing");
    let seen = sum(&deposits, &|deposit| {
        is_usdt(deposit)
            && ["initialized", "processing"].contains(&deposit["status"].as_str().unwrap())
    });
    let balance = client.get("/v1/balance").await.ok();
    let item = |compartment: &str, currency: &str| {
        let items = balance[compartment].as_array().unwrap();
        assert!(
            items.iter().all(|item| item["currency"] == currency && item["amount"] != "0.00"),
            "{balance}"
        );
        items.iter().map(|item| stage::micros(&item["amount"])).sum::<i64>()
    };
    let held = item("available", "USDT") + item("processing", "USDT") + item("hold", "USDT");
    assert_eq!(held, deposited - refunded - exchanged, "{balance}");
    assert_eq!(item("payout_processing", "INR"), with_bank, "{balance}");
    assert_eq!(item("pending", "USDT"), seen, "{balance}");
    let owed = sum(&refunds, &|refund| refund["status"] != "completed");
    let unmatched = sum(&deposits, &|deposit| deposit["classification"] == "unmatched");
    let in_hold: i64 = transfers
        .iter()
        .filter(|transfer| transfer["status"] == "funding_hold")
        .map(|transfer| stage::micros(&transfer["funding"]["amount_received"]))
        .sum();
    assert_eq!(
        item("hold", "USDT"),
        owed + unmatched + in_hold,
        "what is held is owed, undecided or unmatched"
    );
    let collecting: i64 = transfers
        .iter()
        .filter(|transfer| transfer["status"] == "funding")
        .map(|transfer| stage::micros(&transfer["funding"]["amount_received"]))
        .sum();
    assert_eq!(item("available", "USDT"), collecting);
}

async fn walk(server: &Server, seed: u64, moves: usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let actor = Actor::new(server, &format!("walk-{seed}")).await;
    let mut beneficiaries = Vec::new();
    for account_number in
        [stage::SETTLES, "50100010001001", "50100010001002", "50100010001003", "50100012340000"]
    {
        beneficiaries.push(json!({ "id": actor.beneficiary(account_number).await }));
    }
    let mut transfers = Vec::new();
    for _ in 0..6 {
        transfers.extend(make_transfer(&actor, &mut random, &beneficiaries).await);
    }
    let mut met = BTreeMap::new();
    for number in 1..=moves {
        one_move(&actor, &mut random, &beneficiaries, &mut transfers, &mut met).await;
        if number % 50 == 0 {
            // Work that is due at this very moment is the worker's; a second later it is done.
            actor.advance(1).await;
            assert_conserved(&actor).await;
        }
    }
    assert!(
        transfers.len() > 10 && met.len() > 2,
        "the walk met little: {} transfers, {met:?}",
        transfers.len()
    );
    actor.advance(3 * DAY).await;
    assert_conserved(&actor).await;
    for transfer in &transfers {
        actor.assert_consistent(transfer).await;
    }
    let ends: std::collections::BTreeSet<String> = stage::all(&actor.client, "/v1/transfers")
        .await
        .iter()
        .map(|transfer| transfer["status"].as_str().unwrap().to_owned())
        .collect();
    assert!(ends.len() > 3, "{ends:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_random_walk_over_many_payments_loses_no_money() {
    let server = stage::server().await;
    let mut walks = Vec::new();
    for seed in [1, 2, 3] {
        walks.push(walk(&server, seed, 300));
    }
    futures_util::future::join_all(walks).await;
    stage::assert_book(&server);
}
