//! What a transfer waits for when its time to pay is over: not for a deposit that can only be late
//! by now.

use hundi::chains::blocks::Hash;
use hundi::chains::rows::{self as chain_rows, Cursor, TokenContract};
use hundi::chains::verify::Anchor;
use hundi::chains::{ChainName, Depth, Following, Movement};
use hundi::deposits;
use hundi::deposits::state::{Classification, DepositStatus, ReasonCode};
use hundi::kernel::Mode;
use hundi::test_helpers::deposits::simulate;
use hundi::transfers::state::{StatusReason, TransferStatus};
use hundi::transfers::{self, Transfer, funding};
use hundi::values;

use crate::desk::{Desk, TEST, movement};

const DAY: i64 = 86_400;

/// Follows a real chain from now on, whose final view has reached now.
async fn follow(desk: &mut Desk) {
    desk.services_mut().test.chain.following =
        Following::Real { lag_alarm_seconds: 600, chain_id: 1 };
    let begun = desk.write(|tx, now, services| {
        let contract = *services.test.chain.token_contract.bytes();
        let token = TokenContract { contract, decimals: 6 };
        let anchor = Anchor { height: 100, hash: Hash::parse(&"ab".repeat(32)).unwrap() };
        let cursor = Cursor { anchor, block_time: now.instant(), deprecation: None };
        Ok(chain_rows::begin(tx, now, Mode::Test, ChainName::Tron, 1, token, &cursor)?)
    });
    assert!(begun.await.unwrap());
}

/// The final view reaches a moment.
async fn reach(desk: &Desk, at: i64) {
    let sql = "UPDATE chain_cursors SET block_time = ?1, height = height + 1";
    desk.write(move |tx, _, _| Ok(tx.execute(sql, values![at])?)).await.unwrap();
}

async fn found(desk: &Desk, transfer: &Transfer) -> Transfer {
    let id = transfer.id;
    let read = desk.write(move |tx, _, _| Ok(transfers::rows::find(tx, TEST, id)?));
    read.await.unwrap().unwrap()
}

async fn deposit(desk: &Desk, transfer: &Transfer) -> deposits::Deposit {
    let id = transfer.id;
    let read = desk.write(move |tx, _, _| {
        let sql = "SELECT id FROM deposits WHERE transfer_id = ?1";
        let id = tx.row(sql, values![id])?.unwrap().id()?;
        Ok(deposits::rows::find(tx, TEST, id)?)
    });
    read.await.unwrap().unwrap()
}

/// Runs what falls due within some minutes.
async fn minutes(desk: &Desk, count: usize) {
    for _ in 0..count {
        desk.advance_seconds(59);
        desk.run_tasks().await;
    }
}

async fn expiry_tasks_count(desk: &Desk) -> i64 {
    let sql = "SELECT COUNT(*) FROM tasks WHERE kind = 'funding_expiry'";
    desk.write(move |tx, _, _| Ok(tx.row(sql, &[])?.unwrap().int()?)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_whose_block_was_replaced_keeps_no_transfer_from_expiring() {
    let mut desk = Desk::with_rates_fixed().await;
    follow(&mut desk).await;
    let transfer = desk.transfer().await;
    let depth = Depth::Block { number: 101, time: desk.instant(), confirmations: 1 };
    let movement = movement(&transfer, depth);
    let seen = movement.clone();
    desk.write(move |tx, now, services| {
        Ok(funding::observe_transaction(tx, now, services, TEST, "tron", &[&seen])?)
    })
    .await
    .unwrap();
    let mut lost = deposit(&desk, &transfer).await;
    desk.advance_seconds(transfer.expires_at - desk.instant());
    minutes(&desk, 2).await;
    assert_eq!(found(&desk, &transfer).await.status, TransferStatus::Funding);

    // In its block it may be in time, until the final view shows which blocks there are.
    reach(&desk, transfer.expires_at + 1).await;
    minutes(&desk, 2).await;
    assert_eq!(found(&desk, &transfer).await.status, TransferStatus::Funding, "the control");
    desk.write(move |tx, now, _| Ok(deposits::mark_unseen(tx, now, &mut lost)?)).await.unwrap();
    minutes(&desk, 2).await;
    assert_eq!(found(&desk, &transfer).await.status, TransferStatus::Expired);
    assert_eq!(expiry_tasks_count(&desk).await, 0);

    // It comes back in a later block, and is late.
    let time = transfer.expires_at + 2;
    let again =
        Movement { depth: Depth::Final { number: 200, time, confirmations: 20 }, ..movement };
    desk.write(move |tx, now, services| {
        Ok(funding::observe_transaction(tx, now, services, TEST, "tron", &[&again])?)
    })
    .await
    .unwrap();
    let late = deposit(&desk, &transfer).await;
    assert_eq!(late.classification, Some(Classification::Late));
    let held = found(&desk, &transfer).await;
    let told = (held.status, held.status_reason);
    assert_eq!(told, (TransferStatus::FundingHold, Some(StatusReason::Late)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_deposit_ends_when_a_real_chain_takes_its_place() {
    let mut desk = Desk::with_rates_fixed().await;
    let transfer = desk.transfer().await;
    desk.services_mut().settings.simulation_step_milliseconds = 90_000;
    let paid = transfer.clone();
    desk.write(move |tx, now, services| {
        Ok(simulate(tx, now, services, &paid, paid.expected, "USDT", None)?)
    })
    .await
    .unwrap();
    minutes(&desk, 2).await;
    let pending = deposit(&desk, &transfer).await;
    assert_eq!((pending.status, pending.block_time.is_some()), (DepositStatus::Processing, true));

    follow(&mut desk).await;
    desk.advance_seconds(transfer.expires_at - desk.instant());
    reach(&desk, transfer.expires_at + 1).await;
    minutes(&desk, 2).await;
    assert_eq!(found(&desk, &transfer).await.status, TransferStatus::Expired);
    assert_eq!(expiry_tasks_count(&desk).await, 0);
    desk.advance_seconds(DAY);
    desk.run_tasks().await;
    let dropped = deposit(&desk, &transfer).await;
    let told = (dropped.status, dropped.reason_code);
    assert_eq!(told, (DepositStatus::Failed, Some(ReasonCode::Dropped)));
}
