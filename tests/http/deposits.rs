//! The funding leg: what each deposit means for its transfer, with both policies, and where the
//! money stands after it.

use hundi::kernel::Scope;
use hundi::transfers::holds;
use serde_json::{Value, json};

use crate::stage::{
    self, ADDRESS, ADDRESS_OTHER, Actor, DAY, Item, SETTLES, STEP, event_types, faults,
};
use crate::support::{Server, id};

/// One move of a case.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A deposit of USDT now.
    Pay(&'static str),
    /// The same, with a block time this many seconds after `expires_at`.
    PayAt(&'static str, i64),
    /// A deposit of another token.
    PayOther(&'static str),
    /// All that was sent becomes final.
    Final,
    Wait(i64),
    /// The clock goes to this many seconds after `expires_at`.
    Expiry(i64),
    Cancel,
}
use Move::{Cancel, Expiry, Final, Pay, PayAt, PayOther, Wait};

/// A case of the deposit table: what is done, what the balance is after each move, and how all of
/// it ends.
struct Case {
    name: &'static str,
    funding: Value,
    moves: &'static [(Move, &'static [Item])],
    status: &'static str,
    reason: Option<&'static str>,
    funding_status: &'static str,
    received: &'static str,
    excess: &'static str,
    classifications: &'static [&'static str],
    /// Kind, amount, status and reason of `transfer.refund`.
    refund: Option<(&'static str, &'static str, &'static str, &'static str)>,
    /// Statuses between the first and the last.
    between: &'static [&'static str],
}

async fn play(actor: &Actor, transfer: &Value, step: Move) {
    let expires_at = transfer["funding"]["expires_at"].as_i64().unwrap();
    match step {
        Pay(amount) => {
            actor.pay(transfer, amount).await;
        }
        PayAt(amount, after) => {
            actor
                .client
                .deposit(transfer, json!({ "amount": amount, "block_time": expires_at + after }))
                .await;
        }
        PayOther(amount) => {
            actor.client.deposit(transfer, json!({ "amount": amount, "asset": "TRX" })).await;
        }
        Final => actor.finalise().await,
        Wait(seconds) => actor.advance(seconds).await,
        Expiry(after) => actor.advance_to(expires_at + after).await,
        Cancel => {
            actor.cancel(transfer).await.ok();
        }
    }
}

async fn run(cases: Vec<Case>) {
    let server = stage::server().await;
    for (index, case) in cases.into_iter().enumerate() {
        let name = case.name;
        let actor = Actor::new(&server, &format!("account-{index}")).await;
        let transfer = actor.transfer(SETTLES, case.funding).await;
        for (number, (step, balance)) in case.moves.iter().enumerate() {
            play(&actor, &transfer, *step).await;
            actor.assert_balance(balance, &format!("{name}, after move {number}: {step:?}")).await;
        }
        let shown = actor.shown(&transfer).await;
        let context = format!("{name}: {shown}");
        assert_eq!(shown["status"], case.status, "{context}");
        assert_eq!(shown["status_reason"].as_str(), case.reason, "{context}");
        let funding = &shown["funding"];
        assert_eq!(funding["status"], case.funding_status, "{context}");
        assert_eq!(funding["amount_received"], case.received, "{context}");
        assert_eq!(funding["amount_excess"], case.excess, "{context}");
        assert_eq!(
            (funding["amount_expected"].as_str(), &funding["expires_at"]),
            (Some("1000.00"), &transfer["funding"]["expires_at"]),
            "{context}"
        );
        let deposits =
            stage::all(&actor.client, &format!("/v1/deposits?transfer_id={}", id(&transfer))).await;
        let classifications: Vec<_> = deposits
            .iter()
            .map(|deposit| deposit["classification"].as_str().unwrap_or("-"))
            .collect();
        assert_eq!(classifications, case.classifications, "{context}");
        let refund = &shown["refund"];
        let found = (!refund.is_null()).then(|| {
            ["kind", "amount", "status", "reason"].map(|field| refund[field].as_str().unwrap())
        });
        assert_eq!(
            found,
            case.refund.map(|(kind, amount, status, reason)| [kind, amount, status, reason]),
            "{context}"
        );
        let statuses = stage::statuses(&shown);
        let mut wanted = vec!["funding"];
        wanted.extend(case.between);
        if case.status != "funding" {
            wanted.push(case.status);
        }
        assert_eq!(statuses, wanted, "{context}");
        actor.assert_consistent(&transfer).await;
    }
    stage::assert_book(&server);
}

const PENDING_ALL: &[Item] = &[("pending", "1000.00", "USDT")];
const PAYING: &[Item] = &[("payout_processing", "88412.50", "INR")];

#[tokio::test(flavor = "multi_thread")]
async fn money_in_time_is_counted_up_to_the_amount() {
    run(vec![
        Case {
            name: "the amount exactly",
            funding: json!({}),
            moves: &[
                (Pay("1000.00"), PENDING_ALL),
                (Wait(STEP), PENDING_ALL),
                (Wait(STEP), PAYING),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["exact"],
            refund: None,
            between: &["funded"],
        },
        Case {
            name: "nothing is final yet",
            funding: json!({}),
            moves: &[(Pay("1000.00"), PENDING_ALL)],
            status: "funding",
            reason: None,
            funding_status: "confirming",
            received: "0.00",
            excess: "0.00",
            classifications: &["-"],
            refund: None,
            between: &[],
        },
        Case {
            name: "short before expiry",
            funding: json!({ "policy": { "underpaid": "refund" } }),
            moves: &[
                (Pay("999.999999"), &[("pending", "999.999999", "USDT")]),
                (Final, &[("available", "999.999999", "USDT")]),
                (Expiry(0), &[("available", "999.999999", "USDT")]),
            ],
            status: "funding",
            reason: None,
            funding_status: "partially_funded",
            received: "999.999999",
            excess: "0.00",
            classifications: &["partial"],
            refund: None,
            between: &[],
        },
        Case {
            name: "a top-up makes it whole",
            funding: json!({}),
            moves: &[
                (Pay("400.00"), &[("pending", "400.00", "USDT")]),
                (Final, &[("available", "400.00", "USDT")]),
                (
                    Pay("599.999999"),
                    &[("available", "400.00", "USDT"), ("pending", "599.999999", "USDT")],
                ),
                (Final, &[("available", "999.999999", "USDT")]),
                (
                    Pay("0.000001"),
                    &[("available", "999.999999", "USDT"), ("pending", "0.000001", "USDT")],
                ),
                (Final, PAYING),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["partial", "partial", "exact"],
            refund: None,
            between: &["funded"],
        },
        Case {
            name: "two deposits at once count in chain order",
            funding: json!({}),
            moves: &[
                (Pay("400.00"), &[("pending", "400.00", "USDT")]),
                (Pay("700.00"), &[("pending", "1100.00", "USDT")]),
                (Final, &[("payout_processing", "88412.50", "INR"), ("hold", "100.00", "USDT")]),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1100.00",
            excess: "100.00",
            classifications: &["partial", "over"],
            refund: Some(("excess", "100.00", "requires_address", "overpaid")),
            between: &["funded"],
        },
        Case {
            name: "a block time of expires_at itself is in time",
            funding: json!({ "policy": { "late": "refund" } }),
            moves: &[
                (Expiry(0), &[]),
                (PayAt("1000.00", 0), PENDING_ALL),
                (Wait(STEP), PENDING_ALL),
                (Wait(STEP), PAYING),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["exact"],
            refund: None,
            between: &["funded"],
        },
        Case {
            name: "a deposit seen in time and final after expiry",
            funding: json!({}),
            moves: &[
                (Expiry(-1), &[]),
                (Pay("1000.00"), PENDING_ALL),
                (Expiry(STEP), PENDING_ALL),
                (Final, PAYING),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["exact"],
            refund: None,
            between: &["funded"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_above_the_amount_follows_the_policy() {
    run(vec![
        Case {
            name: "over, by default",
            funding: json!({}),
            moves: &[
                (Pay("1250.50"), &[("pending", "1250.50", "USDT")]),
                (Final, &[("payout_processing", "88412.50", "INR"), ("hold", "250.50", "USDT")]),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1250.50",
            excess: "250.50",
            classifications: &["over"],
            refund: Some(("excess", "250.50", "requires_address", "overpaid")),
            between: &["funded"],
        },
        Case {
            name: "over, with an address",
            funding: json!({ "refund_address": ADDRESS }),
            moves: &[
                (Pay("1000.000001"), &[("pending", "1000.000001", "USDT")]),
                (Final, &[("payout_processing", "88412.50", "INR"), ("hold", "0.000001", "USDT")]),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.000001",
            excess: "0.000001",
            classifications: &["over"],
            refund: Some(("excess", "0.000001", "processing", "overpaid")),
            between: &["funded"],
        },
        Case {
            name: "over, with an address, to the end",
            funding: json!({ "refund_address": ADDRESS }),
            moves: &[
                (Pay("1100.00"), &[("pending", "1100.00", "USDT")]),
                (Final, &[("payout_processing", "88412.50", "INR"), ("hold", "100.00", "USDT")]),
                (Wait(10 * STEP), &[]),
            ],
            status: "payout_settled",
            reason: None,
            funding_status: "funded",
            received: "1100.00",
            excess: "100.00",
            classifications: &["over"],
            refund: Some(("excess", "100.00", "completed", "overpaid")),
            between: &["funded", "payout_processing"],
        },
        Case {
            name: "over, policy hold",
            funding: json!({ "policy": { "overpaid": "hold" } }),
            moves: &[
                (Pay("1250.50"), &[("pending", "1250.50", "USDT")]),
                (Final, &[("hold", "1250.50", "USDT")]),
                (Wait(DAY - 1), &[("hold", "1250.50", "USDT")]),
            ],
            status: "funding_hold",
            reason: Some("overpaid"),
            funding_status: "hold",
            received: "1250.50",
            excess: "0.00",
            classifications: &["over"],
            refund: None,
            between: &[],
        },
        Case {
            name: "over, policy hold, after 24 hours",
            funding: json!({ "policy": { "overpaid": "hold" } }),
            moves: &[
                (Pay("1250.50"), &[("pending", "1250.50", "USDT")]),
                (Final, &[("hold", "1250.50", "USDT")]),
                (Wait(DAY), &[("hold", "1250.50", "USDT")]),
            ],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "1250.50",
            excess: "0.00",
            classifications: &["over"],
            refund: Some(("principal", "1250.50", "requires_address", "overpaid")),
            between: &["funding_hold"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_short_at_expiry_follows_the_policy() {
    const HELD: &[Item] = &[("hold", "400.00", "USDT")];
    const FREE: &[Item] = &[("available", "400.00", "USDT")];
    const SEEN: &[Item] = &[("pending", "400.00", "USDT")];
    run(vec![
        Case {
            name: "nothing came",
            funding: json!({ "policy": { "underpaid": "refund" } }),
            moves: &[(Expiry(0), &[]), (Expiry(STEP), &[])],
            status: "expired",
            reason: None,
            funding_status: "expired",
            received: "0.00",
            excess: "0.00",
            classifications: &[],
            refund: None,
            between: &[],
        },
        Case {
            name: "short at expiry",
            funding: json!({}),
            moves: &[
                (Pay("400.00"), SEEN),
                (Final, FREE),
                (Expiry(0), FREE),
                (Expiry(STEP), HELD),
                (Wait(DAY - 2 * STEP), HELD),
            ],
            status: "funding_hold",
            reason: Some("underpaid"),
            funding_status: "hold",
            received: "400.00",
            excess: "0.00",
            classifications: &["partial"],
            refund: None,
            between: &[],
        },
        Case {
            name: "short, after 24 hours",
            funding: json!({ "refund_address": ADDRESS }),
            moves: &[
                (Pay("400.00"), SEEN),
                (Final, FREE),
                (Expiry(STEP), HELD),
                (Wait(DAY - STEP), HELD),
                (Wait(5 * STEP), &[]),
            ],
            status: "refunded",
            reason: None,
            funding_status: "refunded",
            received: "400.00",
            excess: "0.00",
            classifications: &["partial"],
            refund: Some(("principal", "400.00", "completed", "underpaid")),
            between: &["funding_hold", "refund_processing"],
        },
        Case {
            name: "short, policy refund",
            funding: json!({ "policy": { "underpaid": "refund" } }),
            moves: &[(Pay("400.00"), SEEN), (Final, FREE), (Expiry(0), FREE), (Expiry(STEP), HELD)],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "400.00",
            excess: "0.00",
            classifications: &["partial"],
            refund: Some(("principal", "400.00", "requires_address", "underpaid")),
            between: &["funding_hold"],
        },
        Case {
            name: "more money in a hold changes neither state nor reason",
            funding: json!({}),
            moves: &[
                (Pay("400.00"), SEEN),
                (Final, FREE),
                (Expiry(STEP), HELD),
                (Pay("600.00"), &[("hold", "400.00", "USDT"), ("pending", "600.00", "USDT")]),
                (Final, &[("hold", "1000.00", "USDT")]),
                (Pay("5.00"), &[("hold", "1000.00", "USDT"), ("pending", "5.00", "USDT")]),
                (Final, &[("hold", "1005.00", "USDT")]),
            ],
            status: "funding_hold",
            reason: Some("underpaid"),
            funding_status: "hold",
            received: "1005.00",
            excess: "0.00",
            classifications: &["partial", "late", "late"],
            refund: None,
            between: &[],
        },
        Case {
            name: "more money in a hold goes back with the rest after the first 24 hours",
            funding: json!({}),
            moves: &[
                (Pay("400.00"), SEEN),
                (Final, FREE),
                (Expiry(STEP), HELD),
                (Wait(DAY / 2), HELD),
                (Pay("600.00"), &[("hold", "400.00", "USDT"), ("pending", "600.00", "USDT")]),
                (Final, &[("hold", "1000.00", "USDT")]),
                (Wait(DAY / 2 - 2 * STEP), &[("hold", "1000.00", "USDT")]),
            ],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "1000.00",
            excess: "0.00",
            classifications: &["partial", "late"],
            refund: Some(("principal", "1000.00", "requires_address", "underpaid")),
            between: &["funding_hold"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_follows_the_policy() {
    const HELD: &[Item] = &[("hold", "1000.00", "USDT")];
    run(vec![
        Case {
            name: "late after expiry",
            funding: json!({ "policy": { "underpaid": "refund" } }),
            moves: &[
                (Expiry(STEP), &[]),
                (PayAt("1000.00", 1), PENDING_ALL),
                (Final, HELD),
                (Wait(DAY - 1), HELD),
            ],
            status: "funding_hold",
            reason: Some("late"),
            funding_status: "hold",
            received: "1000.00",
            excess: "0.00",
            classifications: &["late"],
            refund: None,
            between: &["expired"],
        },
        Case {
            name: "too little, too late",
            funding: json!({}),
            moves: &[
                (Expiry(STEP), &[]),
                (Pay("0.50"), &[("pending", "0.50", "USDT")]),
                (Final, &[("hold", "0.50", "USDT")]),
            ],
            status: "funding_hold",
            reason: Some("late"),
            funding_status: "hold",
            received: "0.50",
            excess: "0.00",
            classifications: &["late"],
            refund: None,
            between: &["expired"],
        },
        Case {
            name: "late after expiry, after 24 hours",
            funding: json!({}),
            moves: &[
                (Expiry(STEP), &[]),
                (PayAt("1000.00", 1), PENDING_ALL),
                (Final, HELD),
                (Wait(DAY), HELD),
            ],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "1000.00",
            excess: "0.00",
            classifications: &["late"],
            refund: Some(("principal", "1000.00", "requires_address", "late")),
            between: &["expired", "funding_hold"],
        },
        Case {
            name: "late after expiry, policy refund",
            funding: json!({ "policy": { "late": "refund" }, "refund_address": ADDRESS }),
            moves: &[
                (Expiry(STEP), &[]),
                (PayAt("1000.00", 1), PENDING_ALL),
                (Final, HELD),
                (Wait(5 * STEP), &[]),
            ],
            status: "refunded",
            reason: None,
            funding_status: "refunded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["late"],
            refund: Some(("principal", "1000.00", "completed", "late")),
            between: &["expired", "funding_hold", "refund_processing"],
        },
        Case {
            name: "after a cancel, though in time",
            funding: json!({}),
            moves: &[
                (Cancel, &[]),
                (Pay("1000.00"), PENDING_ALL),
                (Wait(STEP), PENDING_ALL),
                (Wait(STEP), HELD),
            ],
            status: "funding_hold",
            reason: Some("late"),
            funding_status: "hold",
            received: "1000.00",
            excess: "0.00",
            classifications: &["late"],
            refund: None,
            between: &["cancelled"],
        },
        Case {
            name: "more after a cancel, though in time",
            funding: json!({}),
            moves: &[
                (Cancel, &[]),
                (Pay("10.00"), &[("pending", "10.00", "USDT")]),
                (Final, &[("hold", "10.00", "USDT")]),
                (Pay("1000.00"), &[("hold", "10.00", "USDT"), ("pending", "1000.00", "USDT")]),
                (Final, &[("hold", "1010.00", "USDT")]),
            ],
            status: "funding_hold",
            reason: Some("late"),
            funding_status: "hold",
            received: "1010.00",
            excess: "0.00",
            classifications: &["late", "late"],
            refund: None,
            between: &["cancelled"],
        },
        Case {
            name: "in time by its block, and found after the expiry: nobody is sent away, and \
             nothing is decided alone",
            funding: json!({ "policy": { "late": "refund" } }),
            moves: &[
                (Expiry(STEP), &[]),
                (PayAt("400.00", 0), &[("pending", "400.00", "USDT")]),
                (Final, &[("hold", "400.00", "USDT")]),
                (PayAt("600.00", 0), &[("hold", "400.00", "USDT"), ("pending", "600.00", "USDT")]),
                (Final, HELD),
            ],
            status: "funding_hold",
            reason: Some("late"),
            funding_status: "hold",
            received: "1000.00",
            excess: "0.00",
            classifications: &["partial", "exact"],
            refund: None,
            between: &["expired"],
        },
        Case {
            name: "after a cancel, policy refund",
            funding: json!({ "policy": { "late": "refund" } }),
            moves: &[
                (Cancel, &[]),
                (Pay("2000.00"), &[("pending", "2000.00", "USDT")]),
                (Final, &[("hold", "2000.00", "USDT")]),
            ],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "2000.00",
            excess: "0.00",
            classifications: &["late"],
            refund: Some(("principal", "2000.00", "requires_address", "late")),
            between: &["cancelled", "funding_hold"],
        },
        Case {
            name: "cancelled, and only seen",
            funding: json!({}),
            moves: &[(Cancel, &[]), (Pay("1000.00"), PENDING_ALL)],
            status: "cancelled",
            reason: None,
            funding_status: "cancelled",
            received: "0.00",
            excess: "0.00",
            classifications: &["-"],
            refund: None,
            between: &[],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_after_the_end_and_other_tokens_move_no_transfer() {
    run(vec![
        Case {
            name: "unmatched while the payout is under way, before expires_at",
            funding: json!({}),
            moves: &[
                (Pay("1000.00"), PENDING_ALL),
                (Final, PAYING),
                (
                    Pay("50.00"),
                    &[("pending", "50.00", "USDT"), ("payout_processing", "88412.50", "INR")],
                ),
                (Final, &[("hold", "50.00", "USDT")]),
            ],
            status: "payout_settled",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["exact", "unmatched"],
            refund: None,
            between: &["funded", "payout_processing"],
        },
        Case {
            name: "unmatched after the settlement and after expires_at",
            funding: json!({}),
            moves: &[
                (Pay("1000.00"), PENDING_ALL),
                (Final, PAYING),
                (Wait(10 * STEP), &[]),
                (Expiry(DAY), &[]),
                (Pay("1000.00"), PENDING_ALL),
                (Final, &[("hold", "1000.00", "USDT")]),
            ],
            status: "payout_settled",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["exact", "unmatched"],
            refund: None,
            between: &["funded", "payout_processing"],
        },
        Case {
            name: "unmatched while a refund is owed, and after it was paid",
            funding: json!({ "policy": { "late": "refund" } }),
            moves: &[
                (Cancel, &[]),
                (Pay("1000.00"), PENDING_ALL),
                (Final, &[("hold", "1000.00", "USDT")]),
                (Pay("30.00"), &[("hold", "1000.00", "USDT"), ("pending", "30.00", "USDT")]),
                (Final, &[("hold", "1030.00", "USDT")]),
            ],
            status: "refund_processing",
            reason: None,
            funding_status: "refund_processing",
            received: "1000.00",
            excess: "0.00",
            classifications: &["late", "unmatched"],
            refund: Some(("principal", "1000.00", "requires_address", "late")),
            between: &["cancelled", "funding_hold"],
        },
        Case {
            name: "another token",
            funding: json!({}),
            moves: &[(PayOther("1000.00"), &[]), (Final, &[])],
            status: "funding",
            reason: None,
            funding_status: "awaiting_funds",
            received: "0.00",
            excess: "0.00",
            classifications: &["unsupported"],
            refund: None,
            between: &[],
        },
        Case {
            name: "another token does not keep the transfer from expiring, nor the right one from \
             counting",
            funding: json!({}),
            moves: &[
                (PayOther("1000.00"), &[]),
                (Final, &[]),
                (Pay("1000.00"), PENDING_ALL),
                (Final, PAYING),
            ],
            status: "payout_processing",
            reason: None,
            funding_status: "funded",
            received: "1000.00",
            excess: "0.00",
            classifications: &["unsupported", "exact"],
            refund: None,
            between: &["funded"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_followed_from_first_sight_to_the_final_view() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let sent_at = actor.now();
    let seen = actor.client.deposit(&transfer, json!({})).await;
    let mut wanted = json!({
        "object": "deposit", "id": seen["id"], "transfer_id": transfer["id"],
            "status": "initialized", "amount": "1000.00", "currency": "USDT",
        "asset": "USDT", "chain": "tron", "from_address": seen["from_address"],
            "to_address": transfer["funding"]["deposit_address"],
        "transaction_hash": seen["transaction_hash"], "log_index": seen["log_index"],
            "block_number": null, "block_time": null, "confirmations": 0,
        "classification": null, "reason_code": null, "completed_at": null, "created": sent_at,
            "livemode": false,
    });
    assert_eq!(seen, wanted);
    assert!(id(&seen).starts_with("deposit_"));
    assert!(seen["from_address"].as_str().unwrap().starts_with('T') && seen["log_index"].is_i64());
    assert_eq!(seen["transaction_hash"].as_str().unwrap().len(), 64);
    let path = format!("/v1/deposits/{}", id(&seen));
    assert_eq!(actor.client.get(&path).await.ok(), wanted);
    actor.advance(STEP).await;
    let in_block = actor.client.get(&path).await.ok();
    wanted["status"] = json!("processing");
    wanted["block_time"] = json!(sent_at);
    wanted["block_number"] = in_block["block_number"].clone();
    wanted["confirmations"] = in_block["confirmations"].clone();
    assert_eq!(in_block, wanted);
    assert!(
        in_block["block_number"].as_i64() > Some(0) && in_block["confirmations"].as_i64() > Some(0)
    );
    actor.advance(STEP).await;
    let last = actor.client.get(&path).await.ok();
    wanted["status"] = json!("completed");
    wanted["classification"] = json!("exact");
    wanted["completed_at"] = json!(actor.now());
    wanted["confirmations"] = last["confirmations"].clone();
    assert_eq!(last, wanted);
    assert!(last["confirmations"].as_i64() > in_block["confirmations"].as_i64());
    assert_eq!(event_types(&actor.client, &id(&seen)).await, ["deposit.status.completed"]);

    let other = actor.transfer(SETTLES, json!({})).await;
    let unsupported =
        actor.client.deposit(&other, json!({ "amount": "3.5", "asset": "USDC" })).await;
    assert_eq!(
        (unsupported["asset"].as_str(), unsupported["currency"].as_str()),
        (Some("USDC"), Some("USDC"))
    );
    actor.finalise().await;
    let failed = actor.client.get(&format!("/v1/deposits/{}", id(&unsupported))).await.ok();
    assert_eq!(
        (failed["status"].as_str(), failed["reason_code"].as_str()),
        (Some("failed"), Some("asset_unsupported"))
    );
    assert_eq!(
        (failed["classification"].as_str(), &failed["completed_at"]),
        (Some("unsupported"), &Value::Null)
    );
    assert_eq!(failed["transfer_id"], other["id"]);
    assert_eq!(event_types(&actor.client, &id(&unsupported)).await, Vec::<String>::new());
    assert_eq!(
        actor.cancel(&other).await.ok()["status"],
        "cancelled",
        "a failed deposit is no money"
    );
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deposit_helper_sends_what_is_missing_and_refuses_what_cannot_be() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    let path = format!("/v1/test_helpers/transfers/{}/deposit", id(&transfer));
    let cases: Vec<(Value, &str, &str)> = vec![
        (json!({ "amount": 5 }), "parameter_value_invalid", "amount"),
        (json!({ "amount": "1.0000001" }), "parameter_value_invalid", "amount"),
        (json!({ "amount": "0.00" }), "parameter_range_invalid", "amount"),
        (json!({ "amount": "1000000.000001" }), "parameter_range_invalid", "amount"),
        (json!({ "asset": 5 }), "parameter_value_invalid", "asset"),
        (json!({ "asset": "usdt" }), "parameter_value_invalid", "asset"),
        (json!({ "block_time": "now" }), "parameter_value_invalid", "block_time"),
        (json!({ "block_time": -1 }), "parameter_range_invalid", "block_time"),
        (json!({ "block_time": actor.now() + 1 }), "parameter_range_invalid", "block_time"),
        (json!({ "from": "x" }), "parameter_unexpected", "from"),
    ];
    for (body, code, field) in cases {
        let refused = actor.client.post(&path, body.clone()).await;
        assert_eq!(refused.errors(400), faults(&[(code, field)]), "{body}");
        let metadata = &refused.json()["errors"][0]["metadata"];
        if (code, field) == ("parameter_range_invalid", "amount") {
            let ends = (metadata["minimum"].as_str(), metadata["maximum"].as_str());
            assert_eq!(ends, (Some("0.000001"), Some("1000000.00")), "{body}");
        }
    }
    assert_eq!(actor.client.get("/v1/deposits").await.ok()["data"], json!([]));
    let first = actor
        .client
        .deposit(&transfer, json!({ "amount": "400.5", "block_time": actor.now() - 5 }))
        .await;
    assert_eq!(first["amount"], "400.50");
    actor.finalise().await;
    let before_last_block =
        actor.client.post(&path, json!({ "block_time": actor.now() - 2 * STEP - 6 })).await;
    assert_eq!(before_last_block.errors(400), faults(&[("parameter_range_invalid", "block_time")]));
    let range = &before_last_block.json()["errors"][0]["metadata"];
    assert_eq!(
        (range["minimum"].is_string(), range["maximum"].is_string()),
        (true, true),
        "{range}"
    );
    let key = actor.client.fresh_key();
    let rest = actor.client.post_raw(&path, &key, "").await.ok();
    assert_eq!(rest["amount"], "599.50", "an empty body sends what is still missing");
    let on_its_way = actor.client.post(&path, json!({})).await;
    assert_eq!(on_its_way.error(400), "test_helper_not_applicable", "it is sent once");
    actor.finalise().await;
    let nothing = actor.client.post(&path, json!({})).await;
    assert_eq!(nothing.error(400), "test_helper_not_applicable");
    assert!(stage::asks_for_new_key(&nothing));
    actor.client.deposit(&transfer, json!({ "amount": "1.00" })).await;
    assert_eq!(
        actor
            .client
            .post(
                "/v1/test_helpers/transfers/transfer_01JDK3Y5M8Q2X7N4V6T9R0ABCD/deposit",
                json!({})
            )
            .await
            .error(404),
        "object_not_found"
    );
    // Each account has a chain of its own: another's last block does not bound this one.
    let other = Actor::new(&server, "other").await;
    let transfer = other.transfer(SETTLES, json!({})).await;
    other.client.deposit(&transfer, json!({ "block_time": other.now() - 30 })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_deposits_add_up() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = actor.transfer(SETTLES, json!({})).await;
    actor.cancel(&transfer).await.ok();
    for _ in 0..12 {
        actor.pay(&transfer, "1000000.00").await;
    }
    actor.assert_balance(&[("pending", "12000000.00", "USDT")], "seen").await;
    actor.finalise().await;
    actor.assert_balance(&[("hold", "12000000.00", "USDT")], "final").await;
    actor.assert_consistent(&transfer).await;
    stage::assert_book(&server);
}

/// A transfer that is short at expiry: 400.00 of 1000.00 in a hold.
async fn held(actor: &Actor, funding: Value) -> Value {
    let transfer = actor.transfer(SETTLES, funding).await;
    actor.pay(&transfer, "400.00").await;
    actor.finalise().await;
    actor.advance_to(transfer["funding"]["expires_at"].as_i64().unwrap() + STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "funding_hold");
    transfer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_resolved_by_a_refund() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let transfer = held(&actor, json!({})).await;
    let answer = actor.resolve(&transfer, json!({ "action": "refund" })).await;
    assert_eq!(answer.error(400), "refund_address_required");
    assert!(stage::asks_for_new_key(&answer));
    let resolved = actor
        .resolve(&transfer, json!({ "action": "refund", "refund_address": ADDRESS }))
        .await
        .ok();
    assert_eq!(
        (resolved["status"].as_str(), &resolved["status_reason"]),
        (Some("refund_processing"), &Value::Null)
    );
    assert_eq!(resolved["funding"]["refund_address"], ADDRESS);
    let refund = &resolved["refund"];
    let wanted = json!({
        "object": "refund", "id": refund["id"], "transfer_id": transfer["id"], "kind": "principal",
            "status": "processing", "reason": "underpaid",
        "amount": "400.00", "asset": "USDT", "chain": "tron", "to_address": ADDRESS,
            "payer_address": null, "transaction_hash": null, "completed_at": null,
        "created": actor.now(), "livemode": false,
    });
    assert_eq!(refund, &wanted);
    assert_eq!(actor.client.get(&format!("/v1/refunds/{}", id(refund))).await.ok(), wanted);
    actor.assert_balance(&[("hold", "400.00", "USDT")], "a refund that is under way").await;
    assert_eq!(
        actor.resolve(&transfer, json!({ "action": "refund" })).await.error(400),
        "transfer_action_invalid"
    );
    actor.advance(5 * STEP).await;
    let done = actor.shown(&transfer).await;
    assert_eq!(
        (done["status"].as_str(), done["funding"]["status"].as_str()),
        (Some("refunded"), Some("refunded"))
    );
    assert_eq!(done["refund"]["status"], "completed");
    assert!(
        done["refund"]["transaction_hash"].as_str().unwrap().len() == 64
            && done["refund"]["completed_at"].is_i64()
    );
    actor.assert_balance(&[], "a refund that is done").await;
    assert_eq!(
        event_types(&actor.client, &id(refund)).await,
        ["refund.status.processing", "refund.status.completed"]
    );
    actor.assert_consistent(&transfer).await;

    // An address that was declared at creation is enough; one given now wins.
    let transfer = held(&actor, json!({ "refund_address": ADDRESS })).await;
    assert_eq!(
        actor.resolve(&transfer, json!({ "action": "refund" })).await.ok()["refund"]["to_address"],
        ADDRESS
    );
    let transfer = held(&actor, json!({ "refund_address": ADDRESS })).await;
    let resolved = actor
        .resolve(&transfer, json!({ "action": "refund", "refund_address": ADDRESS_OTHER }))
        .await
        .ok();
    assert_eq!(resolved["refund"]["to_address"], ADDRESS_OTHER);
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_resolved_by_a_new_quote() {
    let server = stage::server_with(&[("HUNDI_FEE", "1.00")]).await;
    let actor = Actor::new(&server, "default").await;
    let transfer = held(&actor, json!({})).await;
    assert_eq!(transfer["payout_amount"], "88324.08");
    let lock = actor.client.quote_lock("350.00").await;
    let resolved = actor
        .resolve(
            &transfer,
            json!({ "action": "requote", "quote_lock_id": id(&lock), "refund_address": ADDRESS }),
        )
        .await
        .ok();
    assert_eq!(
        (resolved["status"].as_str(), &resolved["status_reason"]),
        (Some("funded"), &Value::Null)
    );
    assert_eq!(resolved["quote_lock_id"], lock["id"]);
    assert_eq!(
        (resolved["amount"].as_str(), resolved["payout_amount"].as_str()),
        (Some("350.00"), lock["buy_amount"].as_str())
    );
    assert_eq!((&resolved["rate"], &resolved["fee"]), (&lock["rate"], &lock["fee"]));
    let funding = &resolved["funding"];
    assert_eq!(
        (
            funding["amount_expected"].as_str(),
            funding["amount_received"].as_str(),
            funding["amount_excess"].as_str()
        ),
        (Some("350.00"), Some("400.00"), Some("50.00"))
    );
    assert_eq!(funding["expires_at"], transfer["funding"]["expires_at"]);
    let refund = &resolved["refund"];
    assert_eq!(
        (refund["kind"].as_str(), refund["amount"].as_str(), refund["to_address"].as_str()),
        (Some("excess"), Some("50.00"), Some(ADDRESS))
    );
    assert_eq!(actor.payout_of(&transfer).await["amount"], lock["buy_amount"]);
    let lock = actor.client.get(&format!("/v1/quote_locks/{}", id(&lock))).await.ok();
    assert_eq!((lock["status"].as_str(), &lock["transfer_id"]), (Some("used"), &transfer["id"]));
    actor.advance(10 * STEP).await;
    let settled = actor.shown(&transfer).await;
    assert_eq!(
        (settled["status"].as_str(), settled["refund"]["status"].as_str()),
        (Some("payout_settled"), Some("completed"))
    );
    assert_eq!(
        stage::statuses(&settled),
        ["funding", "funding_hold", "funded", "payout_processing", "payout_settled"]
    );
    actor.assert_balance(&[], "paid and refunded").await;
    actor.assert_consistent(&transfer).await;

    // A lock for all that was received leaves nothing over.
    let transfer = held(&actor, json!({})).await;
    let lock = actor.client.quote_lock("400.00").await;
    let resolved = actor
        .resolve(&transfer, json!({ "action": "requote", "quote_lock_id": id(&lock) }))
        .await
        .ok();
    assert_eq!(
        (resolved["funding"]["amount_excess"].as_str(), &resolved["refund"]),
        (Some("0.00"), &Value::Null)
    );
    actor.advance(10 * STEP).await;
    assert_eq!(actor.shown(&transfer).await["status"], "payout_settled");
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_and_overpaid_money_can_be_quoted_anew() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let late = actor.transfer(SETTLES, json!({})).await;
    actor.advance_to(late["funding"]["expires_at"].as_i64().unwrap() + STEP).await;
    actor.pay(&late, "1000.00").await;
    let over = actor.transfer(SETTLES, json!({ "policy": { "overpaid": "hold" } })).await;
    actor.pay(&over, "1200.00").await;
    actor.finalise().await;
    for (transfer, amount, excess) in [(&late, "1000.00", "0.00"), (&over, "1200.00", "0.00")] {
        let lock = actor.client.quote_lock(amount).await;
        let resolved = actor
            .resolve(transfer, json!({ "action": "requote", "quote_lock_id": id(&lock) }))
            .await
            .ok();
        assert_eq!(
            (resolved["amount"].as_str(), resolved["funding"]["amount_excess"].as_str()),
            (Some(amount), Some(excess))
        );
        actor.advance(10 * STEP).await;
        assert_eq!(actor.shown(transfer).await["status"], "payout_settled");
        actor.assert_consistent(transfer).await;
    }
    stage::assert_book(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolution_is_refused_for_every_wrong_reason() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    let client = &actor.client;
    let transfer = held(&actor, json!({})).await;
    let before = actor.shown(&transfer).await;
    let used = actor
        .transfer_to(transfer["beneficiary_id"].as_str().unwrap(), "100.00", json!({}))
        .await["quote_lock_id"]
        .clone();
    let expired = client.quote_lock("100.00").await;
    actor.advance(300).await;
    let larger = client.quote_lock("400.01").await;
    let good = client.quote_lock("100.00").await;
    let unknown = "quote_lock_01JDK3Y5M8Q2X7N4V6T9R0ABCD";
    let cases: Vec<(Value, u16, Vec<(&str, &str)>)> = vec![
        (json!({}), 400, vec![("parameter_empty", "action")]),
        (json!({ "action": "keep" }), 400, vec![("parameter_value_invalid", "action")]),
        (
            json!({ "action": "refund", "refund_address": "nowhere" }),
            400,
            vec![("parameter_min_length_invalid", "refund_address")],
        ),
        (
            json!({ "action": "refund", "refund_address": "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBg" }),
            400,
            vec![("parameter_value_invalid", "refund_address")],
        ),
        (
            json!({ "action": "refund", "amount": "1.00" }),
            400,
            vec![("parameter_unexpected", "amount")],
        ),
        (json!({ "action": "requote" }), 400, vec![("parameter_empty", "quote_lock_id")]),
        (
            json!({ "action": "requote", "quote_lock_id": unknown }),
            404,
            vec![("object_not_found", "quote_lock_id")],
        ),
        (
            json!({ "action": "requote", "quote_lock_id": "x" }),
            404,
            vec![("object_not_found", "quote_lock_id")],
        ),
        (
            json!({ "action": "requote", "quote_lock_id": used }),
            400,
            vec![("quote_lock_already_used", "quote_lock_id")],
        ),
        (
            json!({ "action": "requote", "quote_lock_id": id(&expired) }),
            400,
            vec![("quote_lock_expired", "quote_lock_id")],
        ),
        (
            json!({ "action": "requote", "quote_lock_id": id(&larger) }),
            400,
            vec![("quote_lock_mismatch", "quote_lock_id")],
        ),
    ];
    for (body, status, wanted) in cases {
        assert_eq!(
            actor.resolve(&transfer, body.clone()).await.errors(status),
            faults(&wanted),
            "{body}"
        );
    }
    let key = client.fresh_key();
    let path = format!("/v1/transfers/{}/resolve_funding", id(&transfer));
    assert_eq!(client.post_raw(&path, &key, "").await.error(400), "request_body_invalid");
    assert_eq!(actor.shown(&transfer).await, before, "a refused resolution changed something");

    let good_id = id(&good);
    let unfunded =
        actor.transfer_to(transfer["beneficiary_id"].as_str().unwrap(), "100.00", json!({})).await;
    for body in [
        json!({ "action": "refund", "refund_address": ADDRESS }),
        json!({ "action": "requote", "quote_lock_id": good_id }),
    ] {
        let answer = actor.resolve(&unfunded, body).await;
        assert_eq!(answer.error(400), "transfer_action_invalid", "in funding");
        assert!(stage::asks_for_new_key(&answer));
    }
    assert_eq!(
        actor.shown(&unfunded).await["funding"]["refund_address"],
        Value::Null,
        "a refused resolution keeps no address"
    );

    // The beneficiary stopped being payable meanwhile: a payout to it came back.
    let beneficiary_id = actor.beneficiary("50100010001002").await;
    let first = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    let second = actor.transfer_to(&beneficiary_id, "1000.00", json!({})).await;
    actor.pay(&first, "1000.00").await;
    actor.pay(&second, "500.00").await;
    actor.advance_to(second["funding"]["expires_at"].as_i64().unwrap() + STEP).await;
    assert_eq!(actor.shown(&first).await["status"], "refund_processing");
    let lock = client.quote_lock("500.00").await;
    let answer =
        actor.resolve(&second, json!({ "action": "requote", "quote_lock_id": id(&lock) })).await;
    assert_eq!(answer.errors(400), faults(&[("beneficiary_not_payable", "beneficiary_id")]));
    let larger = client.quote_lock("500.01").await;
    let mut found = actor
        .resolve(&second, json!({ "action": "requote", "quote_lock_id": id(&larger) }))
        .await
        .errors(400);
    found.sort();
    assert_eq!(
        found,
        faults(&[
            ("beneficiary_not_payable", "beneficiary_id"),
            ("quote_lock_mismatch", "quote_lock_id")
        ])
    );
    assert_eq!(
        client.get(&format!("/v1/quote_locks/{}", id(&lock))).await.ok()["status"],
        "active"
    );
    stage::assert_book(&server);
}

async fn review(
    server: &Server,
    transfer: &Value,
    change: impl Fn(
        &mut dyn hundi::store::Tx,
        &mut hundi::kernel::Now,
        &hundi::services::Services,
        &mut hundi::transfers::Transfer,
    ) -> bool
    + Send
    + Sync
    + 'static,
) {
    let transfer_id = hundi::kernel::Id::parse(&id(transfer)).unwrap();
    let services = server.app.state.services.clone();
    let changed = server
        .app
        .state
        .store
        .write(move |tx, now| {
            let scope = Scope::new(
                hundi::keys::rows::ensure_account(tx, now, "default")?,
                hundi::kernel::Mode::Test,
            );
            now.enter_account(hundi::keys::rows::clock_offset_seconds(tx, scope)?);
            let mut found = hundi::transfers::rows::find(tx, scope, transfer_id)?.unwrap();
            Ok(change(tx, now, &services, &mut found))
        })
        .await
        .unwrap();
    assert!(changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_ends_a_review() {
    let server = stage::server().await;
    let actor = Actor::new(&server, "default").await;
    for (is_approved, paid, wanted) in [
        (true, "1000.00", "payout_settled"),
        (false, "1000.00", "refund_processing"),
        (true, "400.00", "funding_hold"),
    ] {
        let transfer = actor.transfer(SETTLES, json!({ "policy": { "overpaid": "hold" } })).await;
        actor.pay(&transfer, "400.00").await;
        actor.finalise().await;
        review(&server, &transfer, |tx, now, _, found| {
            holds::begin_review(tx, now, found).unwrap()
        })
        .await;
        let shown = actor.shown(&transfer).await;
        assert_eq!(
            (shown["status"].as_str(), shown["status_reason"].as_str()),
            (Some("funding_hold"), Some("compliance_review"))
        );
        if paid == "1000.00" {
            actor.pay(&transfer, "600.00").await;
            actor.finalise().await;
        }
        let lock = actor.client.quote_lock("100.00").await;
        for body in [
            json!({ "action": "refund", "refund_address": ADDRESS }),
            json!({ "action": "requote", "quote_lock_id": id(&lock) }),
        ] {
            assert_eq!(actor.resolve(&transfer, body).await.error(400), "transfer_action_invalid");
        }
        actor.advance(10 * DAY).await;
        assert_eq!(
            actor.shown(&transfer).await["status_reason"],
            "compliance_review",
            "a review has no timer"
        );
        review(&server, &transfer, move |tx, now, services, found| {
            holds::end_review(
                tx,
                now,
                services,
                found,
                is_approved,
                hundi::kernel::Money::zero(hundi::kernel::Currency::Usdt),
            )
            .unwrap()
        })
        .await;
        actor.advance(10 * STEP).await;
        let shown = actor.shown(&transfer).await;
        assert_eq!(shown["status"], wanted, "{shown}");
        if wanted == "funding_hold" {
            assert_eq!(shown["status_reason"], "underpaid");
            actor.advance(DAY).await;
            assert_eq!(
                actor.shown(&transfer).await["status"],
                "refund_processing",
                "the 24 hours begin with the decision"
            );
        }
        actor.assert_consistent(&transfer).await;
    }
    stage::assert_book(&server);
}
