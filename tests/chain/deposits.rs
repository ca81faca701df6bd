//! What arrives, and when: each row of the deposit table on a real chain, up to the payout.

use hundi::kernel::{AnyId, Currency, Mode, Money, NamedId, Now, OperationError, Scope};
use hundi::store::{Cost, Tx};
use hundi::transfers::{self, NewTransfer};
use serde_json::{Value, json};

use crate::anvil::FINALITY_BLOCKS;
use crate::proxy::Proxy;
use crate::service::{
    Process, Setup, Stage, address, chain_with_token, eventually, expected_units, set_variables,
};
use crate::wire::nobody;

/// What is sent to a transfer of 100.00 in one block: transactions, each with its movements in the
/// token's smallest units.
struct Case {
    name: &'static str,
    sent: &'static [&'static [u64]],
    status: &'static str,
    funding_status: &'static str,
    received: &'static str,
    excess: &'static str,
    /// In the order of the chain.
    classifications: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        name: "exact",
        sent: &[&[100_000_000]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.00",
        excess: "0.00",
        classifications: &["exact"],
    },
    Case {
        name: "two in one transaction",
        sent: &[&[40_000_000, 60_000_000]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.00",
        excess: "0.00",
        classifications: &["partial", "exact"],
    },
    Case {
        name: "the same amount twice in one transaction",
        sent: &[&[50_000_000, 50_000_000]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.00",
        excess: "0.00",
        classifications: &["partial", "exact"],
    },
    Case {
        name: "short and topped up",
        sent: &[&[99_999_999], &[1]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.00",
        excess: "0.00",
        classifications: &["partial", "exact"],
    },
    Case {
        name: "short",
        sent: &[&[60_000_000]],
        status: "funding",
        funding_status: "partially_funded",
        received: "60.00",
        excess: "0.00",
        classifications: &["partial"],
    },
    Case {
        name: "dust",
        sent: &[&[1]],
        status: "funding",
        funding_status: "partially_funded",
        received: "0.000001",
        excess: "0.00",
        classifications: &["partial"],
    },
    Case {
        name: "over",
        sent: &[&[100_000_001]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.000001",
        excess: "0.000001",
        classifications: &["over"],
    },
    Case {
        name: "over by a top-up",
        sent: &[&[60_000_000], &[60_000_000]],
        status: "payout_settled",
        funding_status: "funded",
        received: "120.00",
        excess: "20.00",
        classifications: &["partial", "over"],
    },
    Case {
        name: "more after the end, in the same transaction",
        sent: &[&[100_000_000, 5_000_000]],
        status: "payout_settled",
        funding_status: "funded",
        received: "100.00",
        excess: "0.00",
        classifications: &["exact", "unmatched"],
    },
    Case {
        name: "nothing",
        sent: &[],
        status: "funding",
        funding_status: "awaiting_funds",
        received: "0.00",
        excess: "0.00",
        classifications: &[],
    },
];

#[tokio::test]
async fn amounts_are_judged_as_the_table_says() {
    let stage = Stage::set().await;
    let mut transfers = Vec::new();
    for case in CASES {
        let transfer = stage.transfer("100.00").await;
        for movements in case.sent {
            match movements {
                [units] => drop(stage.token.transfer(address(&transfer), *units).await),
                several => {
                    let to: Vec<_> =
                        several.iter().map(|units| (address(&transfer), *units)).collect();
                    stage.token.transfer_many(&to).await;
                }
            }
        }
        transfers.push(transfer);
    }
    // One transaction to two transfers, among strangers.
    let pair = [stage.transfer("100.00").await, stage.transfer("250.00").await];
    let both = [
        (nobody(1), 7),
        (address(&pair[0]), 100_000_000),
        (nobody(2), 8),
        (address(&pair[1]), 250_000_000),
    ];
    stage.token.transfer_many(&both).await;
    stage.token.noise(30).await;

    stage.mine(2).await;
    // Seen, and not yet final.
    let seen = stage.awaits_deposits(&transfers[0], |deposits| deposits.len() == 1).await;
    assert_eq!(
        (&seen[0]["status"], &seen[0]["classification"]),
        (&json!("processing"), &Value::Null)
    );
    assert_eq!(stage.shown(&transfers[0]).await["funding"]["status"], "confirming");
    stage.settle().await;

    for (case, transfer) in CASES.iter().zip(&transfers) {
        let shown = stage.awaits(transfer, case.status).await;
        let funding = &shown["funding"];
        let texts = [&funding["status"], &funding["amount_received"], &funding["amount_excess"]];
        assert_eq!(texts, [case.funding_status, case.received, case.excess], "{}", case.name);
        let mut deposits = stage.deposits(transfer).await;
        deposits.sort_by_key(|deposit| {
            (deposit["block_number"].as_i64(), deposit["log_index"].as_i64())
        });
        let told: Vec<_> =
            deposits.iter().map(|deposit| deposit["classification"].as_str().unwrap()).collect();
        assert_eq!(told, case.classifications, "{}", case.name);
    }
    for transfer in &pair {
        stage.awaits(transfer, "payout_settled").await;
    }
    let id = seen[0]["id"].clone();
    assert_eq!(
        stage.deposits(&transfers[0]).await[0]["id"],
        id,
        "it is one deposit from first sight to the end"
    );
    let compared = stage.verify().await;
    assert_eq!(
        compared.deposits,
        CASES.iter().map(|case| case.classifications.len()).sum::<usize>() + 2
    );
}

#[tokio::test]
async fn what_is_no_money_is_not_credited() {
    let stage = Stage::set_with(Setup { others: 1, ..Setup::default() }).await;
    let look_alike = stage.chain.deploy_token().await;
    let (_, other) = &stage.others[0];
    let transfer = stage.transfer("100.00").await;
    let to = address(&transfer);
    stage.token.transfer_reverted(to, 100_000_000).await;
    stage.token.transfer_nothing_as_stranger(nobody(1), stage.chain.account(3), to).await;
    stage.token.transfer_from(nobody(2), to, 1_000).await;
    look_alike.transfer(to, 100_000_000).await;
    other.transfer(to, 100_000_000).await;
    stage.settle().await;
    let deposits = stage.awaits_deposits(&transfer, |deposits| !deposits.is_empty()).await;
    let told: Vec<_> = deposits
        .iter()
        .map(|deposit| {
            [
                &deposit["status"],
                &deposit["reason_code"],
                &deposit["classification"],
                &deposit["asset"],
            ]
            .map(|word| word.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [[Some("failed"), Some("asset_unsupported"), Some("unsupported"), Some("OTHER0")]]
    );
    let shown = stage.shown(&transfer).await;
    assert_eq!(
        (shown["status"].as_str(), shown["funding"]["status"].as_str()),
        (Some("funding"), Some("awaiting_funds"))
    );

    // With fees on, a transfer is two movements, and the net one counts.
    stage.token.set_fee(10, 1_000_000).await;
    stage.token.transfer(to, 100_000_000).await;
    stage.token.set_fee(0, 0).await;
    stage.settle().await;
    assert_eq!(stage.shown(&transfer).await["funding"]["amount_received"], "99.90");
    let compared = stage.verify().await;
    assert_eq!((compared.deposits, compared.unsupported), (1, 1));
}

/// Another token is shown in its own units, in the list and by the doctor, and is no money in any
/// of them.
#[tokio::test]
async fn other_tokens_are_shown_in_their_own_units() {
    const HALF_OF_18_DECIMALS: u64 = 500_000_000_000_000_000;
    for (decimals, value, amount) in
        [(18, HALF_OF_18_DECIMALS / 1_000, "0.0005"), (2, 1_250, "12.50"), (0, 7, "7.00")]
    {
        let stage =
            Stage::set_with(Setup { others: 1, others_decimals: decimals, ..Setup::default() })
                .await;
        let transfer = stage.transfer("100.00").await;
        let sent = stage.others[0].1.transfer(address(&transfer), value).await;
        stage.settle().await;
        let deposits = stage.awaits_deposits(&transfer, |deposits| !deposits.is_empty()).await;
        assert_eq!(
            (deposits[0]["amount"].as_str(), deposits[0]["asset"].as_str()),
            (Some(amount), Some("OTHER0")),
            "{decimals}"
        );
        let path = format!("/v1/transfers/{}/funding/diagnose", transfer["id"].as_str().unwrap());
        let told = stage.client.post(&path, json!({"transaction_hash": sent.plain()})).await.ok();
        assert_eq!(
            (told["code"].as_str(), told["amount"].as_str()),
            (Some("wrong_token"), Some(amount)),
            "{told}"
        );
        assert_eq!(stage.shown(&transfer).await["funding"]["amount_received"], "0.00");
    }
}

#[tokio::test]
async fn the_block_s_time_decides() {
    let stage = Stage::set_with(Setup { funding_seconds: 900, ..Setup::default() }).await;
    let [equal, late, short, none, cancelled] = [
        stage.transfer("100.00").await,
        stage.transfer("100.00").await,
        stage.transfer("100.00").await,
        stage.transfer("100.00").await,
        stage.transfer("100.00").await,
    ];
    stage
        .client
        .post(&format!("/v1/transfers/{}/cancel", cancelled["id"].as_str().unwrap()), json!({}))
        .await
        .ok();
    stage.token.transfer(address(&short), 60_000_000).await;
    stage.token.transfer(address(&cancelled), 100_000_000).await;
    stage.settle().await;
    let shown = stage.awaits(&cancelled, "funding_hold").await;
    assert_eq!(shown["status_reason"], "late");

    let expires_at = equal["funding"]["expires_at"].as_i64().unwrap();
    assert!(
        [&late, &short, &none]
            .iter()
            .all(|one| one["funding"]["expires_at"].as_i64() == Some(expires_at))
    );
    stage.token.transfer(address(&equal), 100_000_000).await;
    stage.mine_at(expires_at).await;
    stage.token.transfer(address(&late), 100_000_000).await;
    stage.mine_at(expires_at + 1).await;
    // The clock is past the end, and the final view is not.
    stage.advance_seconds(30);
    assert_eq!(stage.shown(&none).await["status"], "funding");
    stage.settle().await;
    stage.mine(30).await;
    stage.awaits(&equal, "payout_settled").await;
    let shown = stage.awaits(&late, "funding_hold").await;
    assert_eq!(shown["status_reason"], "late");
    let shown = stage.awaits(&short, "funding_hold").await;
    assert_eq!(shown["status_reason"], "underpaid");
    stage.awaits(&none, "expired").await;

    // More in a hold counts; money after the expiry is held; money after the payout matches
    // nothing.
    stage.token.transfer(address(&short), 40_000_000).await;
    stage.token.transfer(address(&none), 100_000_000).await;
    stage.token.transfer(address(&equal), 1_000_000).await;
    stage.settle().await;
    let shown = stage.awaits(&none, "funding_hold").await;
    assert_eq!(shown["status_reason"], "late");
    let shown = stage.shown(&short).await;
    assert_eq!(
        (shown["status_reason"].as_str(), shown["funding"]["amount_received"].as_str()),
        (Some("underpaid"), Some("100.00"))
    );
    let classes = |deposits: &[Value]| {
        deposits
            .iter()
            .map(|deposit| deposit["classification"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(classes(&stage.deposits(&equal).await), ["exact", "unmatched"]);
    assert_eq!(classes(&stage.deposits(&late).await), ["late"]);
    assert_eq!(classes(&stage.deposits(&cancelled).await), ["late"]);
    assert_eq!(stage.verify().await.deposits, 7);
}

#[tokio::test]
async fn nothing_expires_while_the_watcher_is_blind() {
    let stage = Stage::set_with(Setup { funding_seconds: 900, ..Setup::default() }).await;
    let paid = stage.transfer("100.00").await;
    let none = stage.transfer("100.00").await;
    stage.followed().await;
    stage.proxy().change(|faults| faults.is_overloaded = true);
    stage.trouble().await;
    stage.token.transfer(address(&paid), 100_000_000).await;
    stage.chain.mine(400).await;
    stage.tick().await;
    assert!(stage.now() > none["funding"]["expires_at"].as_i64().unwrap() + 200);
    // Both expiries were looked at and put off.
    let clock = stage.clock.clone();
    crate::service::eventually("the expiries to be put off", async || {
        let now = clock.load(std::sync::atomic::Ordering::SeqCst);
        let sql =
            "SELECT COUNT(*) FROM tasks WHERE kind = 'funding_expiry' AND due_milliseconds > ?1";
        let waiting = stage.app.state.store.read(Cost::Point, move |tx| {
            let mut row = tx.row(sql, hundi::values![now])?.expect("a count");
            Ok(row.int()?)
        });
        (waiting.await.unwrap() == 2).then_some(())
    })
    .await;
    assert_eq!(
        (&stage.shown(&paid).await["status"], &stage.shown(&none).await["status"]),
        (&json!("funding"), &json!("funding"))
    );
    stage.proxy().heal();
    stage.followed().await;
    stage.no_trouble().await;
    stage.awaits(&paid, "payout_settled").await;
    stage.mine(30).await;
    stage.awaits(&none, "expired").await;
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn sweeps_are_no_deposits() {
    let stage = Stage::set().await;
    let [one, two] = [stage.transfer("100.00").await, stage.transfer("100.00").await];
    for transfer in [&one, &two] {
        stage.token.transfer(address(transfer), expected_units(transfer)).await;
    }
    stage.settle().await;
    stage.awaits(&one, "payout_settled").await;
    let wallet = stage.chain.account(5);
    stage.token.transfer_from(address(&one), wallet, 90_000_000).await;
    // From one of our addresses to another one: not a deposit, although it arrives.
    stage.token.transfer_from(address(&one), address(&two), 10_000_000).await;
    stage.token.transfer_from(address(&two), address(&two), 1).await;
    stage.settle().await;
    stage.awaits(&two, "payout_settled").await;
    assert_eq!(stage.deposits(&two).await.len(), 1);
    let compared = stage.verify().await;
    assert_eq!((compared.deposits, compared.sweeps), (2, 3));
    // Two addresses, 100 each: one is empty now, and the other has ten more.
    let name = stage.followed_chain().settings.name;
    let scope = Scope::new(1, Mode::Test);
    let held = stage
        .app
        .state
        .store
        .read(Cost::Scan, move |tx| {
            Ok(hundi::reconcile::chain::rows::held_after(tx, scope, name, None, 10)?)
        })
        .await;
    assert_eq!(held.unwrap().iter().map(|held| held.units).collect::<Vec<_>>(), [0, 110_000_000]);
    let exported = stage
        .app
        .state
        .store
        .read(Cost::Scan, move |tx| Ok(hundi::transfers::rows::addresses(tx, scope, None, 10)?))
        .await
        .unwrap();
    let sums: Vec<(i64, i64)> =
        exported.iter().map(|line| (line.received.units, line.swept.units)).collect();
    assert_eq!(sums, [(100_000_000, 100_000_000), (110_000_001, 1)]);
}

#[tokio::test]
async fn a_token_that_hands_over_stops_new_addresses() {
    let stage = Stage::set().await;
    let before = stage.transfer("100.00").await;
    stage.token.transfer(address(&before), 100_000_000).await;
    let successor = stage.chain.deploy_token().await;
    stage.token.deprecate(successor.address).await;
    stage.mine(1 + FINALITY_BLOCKS).await;
    stage.followed().await;
    stage.awaits(&before, "payout_settled").await;
    let lock_id = stage.expect_no_transfer("100.00").await;
    assert_eq!(stage.verify().await.deposits, 1);
    assert_eq!(
        stage.client.get("/v1/corridors").await.ok()["data"][0]["funding"][0]["view"]["status"],
        "token_deprecated"
    );

    // In one group with others, it undoes nothing of theirs.
    let (services, ids) = (
        stage.app.state.services.clone(),
        [&stage.sender_id, &stage.beneficiary_id].map(|id| AnyId::parse(id).unwrap()),
    );
    let refused = move |tx: &mut dyn Tx, now: &mut Now| {
        let ask = NewTransfer {
            sender_id: NamedId::parse(&ids[0].to_string()),
            beneficiary_id: NamedId::parse(&ids[1].to_string()),
            quote_lock_id: NamedId::parse(&lock_id),
            amount: Money::new(10_000, Currency::Usd),
            payout_currency: Currency::Inr,
            purpose_code: None,
            refund_address: None,
            payer_sets_refund_address: false,
            return_url: None,
            policy: Default::default(),
            reference: None,
            metadata: Default::default(),
        };
        transfers::create(tx, now, &services, Scope::new(1, Mode::Test), ask).map(drop)
    };
    let writes = |tx: &mut dyn Tx, _: &mut Now| {
        Ok(tx.execute("UPDATE accounts SET suspended = suspended", &[])?)
    };
    let (go, wait) = std::sync::mpsc::channel();
    let held = move |_: &mut dyn Tx, _: &mut Now| Ok(wait.recv().is_ok());
    let store = &stage.app.state.store;
    let release = async { go.send(()).is_ok() };
    let outcomes = tokio::join!(
        store.write(held),
        store.write(writes),
        store.write(refused),
        store.write(writes),
        release
    );
    assert!(
        matches!(outcomes, (Ok(true), Ok(1), Err(OperationError::Refused(_)), Ok(1), true)),
        "{outcomes:?}"
    );
}

/// Once the operator has configured the contract that a token moved to, transfers are taken again,
/// and paid with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_is_configured_takes_over() {
    let setup = Setup { funding_seconds: 86_400, chain: Process::chain_now(), ..Setup::default() };
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let before = process.caller.transfer("100.00").await;
    let successor = chain.deploy_token().await;
    token.deprecate(successor.address).await;
    chain.mine(1 + FINALITY_BLOCKS).await;
    process.followed_to(chain.finalized().await as i64).await;
    process.caller.expect_no_transfer("100.00").await;
    process.kill();
    set_variables(&mut process.home, &[proxy.url()], &successor, &setup);
    process.resume();
    let after = process.caller.transfer("100.00").await;
    for transfer in [&before, &after] {
        successor.transfer(address(transfer), 100_000_000).await;
    }
    chain.mine(1 + FINALITY_BLOCKS).await;
    for transfer in [&before, &after] {
        let path = format!("/v1/transfers/{}", transfer["id"].as_str().unwrap());
        eventually("the transfer to be settled", async || {
            (process.caller.client.get(&path).await.ok()["status"] == "payout_settled")
                .then_some(())
        })
        .await;
    }
    tokio::task::block_in_place(|| process.home.check().expect_success("the check"));
}
