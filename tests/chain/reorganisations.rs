//! Blocks that are replaced: above the final view a deposit loses its block and gets it back, below
//! it everything stops.

use serde_json::{Value, json};

use crate::anvil::{FINALITY_BLOCKS, Kept};
use crate::proxy::Blocks;
use crate::service::{Stage, address, eventually};
use crate::wire::Hash;

const DAY: i64 = 86_400;

fn is_in_block(deposits: &[Value]) -> bool {
    deposits.len() == 1 && deposits[0]["block_number"].is_i64()
}
fn is_in_none(deposits: &[Value]) -> bool {
    deposits.len() == 1 && deposits[0]["block_number"].is_null()
}

/// Transfers of 100.00 that were paid from accounts of their own, in this order, in one block that
/// the service has seen.
async fn paid(stage: &Stage, count: usize) -> Vec<(Value, Hash, Value)> {
    let mut all = Vec::new();
    for number in 0..count {
        let transfer = stage.transfer("100.00").await;
        let hash = stage
            .token
            .transfer_from(stage.chain.account(1 + number), address(&transfer), 100_000_000)
            .await;
        all.push((transfer, hash));
    }
    stage.mine(1).await;
    let mut seen = Vec::new();
    for (transfer, hash) in all {
        let deposits = stage.awaits_deposits(&transfer, is_in_block).await;
        seen.push((transfer, hash, deposits[0].clone()));
    }
    seen
}

#[tokio::test]
async fn above_the_final_view_a_deposit_keeps_its_identifier() {
    let stage = Stage::set().await;
    let seen = paid(&stage, 4).await;
    let first = seen[0].2["block_number"].as_u64().unwrap();
    stage.mine(4).await;
    // The second goes before the first, the third two blocks up, the fourth is dropped.
    let kept = [Kept::at(seen[1].1, 0), Kept::at(seen[0].1, 0), Kept::at(seen[2].1, 2)];
    stage.chain.reorg(5, &kept).await;
    let gone = stage.awaits_deposits(&seen[3].0, is_in_none).await;
    assert_eq!((&gone[0]["status"], &gone[0]["block_time"]), (&json!("processing"), &Value::Null));
    let expected = [(first, 1), (first, 0), (first + 2, 0)];
    for ((transfer, _, before), (height, place)) in seen.iter().zip(expected) {
        let now = stage
            .awaits_deposits(transfer, |deposits| {
                is_in_block(deposits)
                    && deposits[0]["block_number"] == height
                    && deposits[0]["log_index"] == place
            })
            .await;
        assert_eq!((&now[0]["id"], &now[0]["status"]), (&before["id"], &json!("processing")));
    }
    // And back to where they were before, all of them dropped and moved once more.
    stage
        .chain
        .reorg(5, &[Kept::at(seen[0].1, 1), Kept::at(seen[1].1, 1), Kept::at(seen[2].1, 1)])
        .await;
    stage
        .awaits_deposits(&seen[2].0, |deposits| {
            is_in_block(deposits) && deposits[0]["log_index"] == 2
        })
        .await;
    stage.settle().await;
    for (transfer, _, before) in &seen[..3] {
        stage.awaits(transfer, "payout_settled").await;
        let now = stage.deposits(transfer).await;
        assert_eq!(
            (now.len(), &now[0]["id"], &now[0]["status"]),
            (1, &before["id"], &json!("completed"))
        );
    }
    assert_eq!(stage.verify().await.deposits, 3);
    assert!(!stage.is_in_trouble());

    // What does not come back is dropped after a day, and not before.
    let (dropped, _, before) = &seen[3];
    stage.advance_seconds(DAY - 3_600);
    stage.mine_at(stage.now()).await;
    stage.settle().await;
    assert_eq!(stage.deposits(dropped).await[0]["status"], "processing");
    assert_eq!(
        stage.shown(dropped).await["status"],
        "funding",
        "it may still turn out to be in time"
    );
    stage.advance_seconds(3_700);
    let failed = stage.awaits_deposits(dropped, |deposits| deposits[0]["status"] == "failed").await;
    assert_eq!((&failed[0]["id"], &failed[0]["reason_code"]), (&before["id"], &json!("dropped")));
    stage.mine(30).await;
    stage.awaits(dropped, "expired").await;
    assert_eq!(stage.verify().await.deposits, 3);
}

#[tokio::test]
async fn what_was_given_up_and_comes_back_is_credited() {
    let stage = Stage::set().await;
    let seen = paid(&stage, 1).await;
    let (transfer, hash, before) = &seen[0];
    let raw = stage.chain.rpc("eth_getRawTransactionByHash", json!([hash.to_string()])).await;
    stage.chain.reorg(1, &[]).await;
    stage.awaits_deposits(transfer, is_in_none).await;
    stage.advance_seconds(DAY + 10);
    stage.awaits_deposits(transfer, |deposits| deposits[0]["status"] == "failed").await;
    assert_eq!(
        stage.chain.rpc("eth_sendRawTransaction", json!([raw])).await,
        json!(hash.to_string()),
        "the same transaction"
    );
    stage.settle().await;
    let deposits = stage.awaits_deposits(transfer, |deposits| deposits.len() == 2).await;
    assert_eq!((&deposits[0]["id"], &deposits[0]["status"]), (&before["id"], &json!("failed")));
    assert_eq!(deposits[1]["status"], "completed");
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn the_same_branch_with_other_hashes_changes_nothing_for_callers() {
    let stage = Stage::set().await;
    let seen = paid(&stage, 2).await;
    for round in 0..3 {
        stage.mine(2).await;
        let depth = stage.chain.head().await - seen[0].2["block_number"].as_u64().unwrap() + 1;
        // While a question is on its way, so that one step sees both branches.
        let mut held = stage.proxy().hold("eth_getLogs");
        stage.mine(1).await;
        held.arrived().await;
        stage.chain.reorg(depth + 1, &[Kept::at(seen[0].1, 0), Kept::at(seen[1].1, 0)]).await;
        held.release();
        let confirmations = depth as i64;
        stage
            .awaits_deposits(&seen[round % 2].0, |deposits| {
                deposits[0]["confirmations"].as_i64() > Some(confirmations)
            })
            .await;
    }
    stage.settle().await;
    for (transfer, _, before) in &seen {
        let now = stage.deposits(transfer).await;
        assert_eq!(
            (now.len(), &now[0]["id"], &now[0]["block_number"]),
            (1, &before["id"], &before["block_number"])
        );
        stage.awaits(transfer, "payout_settled").await;
    }
    assert_eq!(stage.verify().await.deposits, 2);
}

#[tokio::test]
async fn a_shorter_view_says_nothing_of_what_stands_above_it() {
    let stage = Stage::set().await;
    // The final view is the same before and after.
    stage.proxy().change(|faults| faults.finality_behind_blocks = 1);
    let seen = paid(&stage, 1).await;
    let (transfer, _, before) = &seen[0];
    stage.chain.rollback(1).await;
    stage.proxy().heal();
    stage.no_trouble().await;
    stage
        .proxy()
        .await_calls("eth_getBlockByNumber", stage.proxy().calls("eth_getBlockByNumber") + 8)
        .await;
    assert_eq!(
        stage.deposits(transfer).await[0]["block_number"],
        before["block_number"],
        "the head does not reach it"
    );
    stage.mine(1).await;
    let gone = stage.awaits_deposits(transfer, is_in_none).await;
    assert_eq!(gone[0]["id"], before["id"]);
}

/// There is something new in the final view at every look, as on a chain with a block every 3 s.
#[tokio::test]
async fn a_busy_chain_shows_what_is_not_final_yet() {
    let stage = Stage::set().await;
    stage.followed().await;
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    for _ in 0..FINALITY_BLOCKS - 2 {
        stage.mine(1).await;
        stage.followed().await;
    }
    let deposits = stage.deposits(&transfer).await;
    assert_eq!((deposits.len(), &deposits[0]["status"]), (1, &json!("processing")));
    assert!(deposits[0]["confirmations"].as_i64() > Some(1), "{deposits:?}");
}

/// As on chains with quick blocks: they become final after minutes, and hundreds of newer ones are
/// there by then. One look does not read all of them.
#[tokio::test]
async fn a_deposit_is_shown_however_far_it_is_above_the_final_view() {
    const ABOVE: u64 = 1_200;
    let (stage, transfer) = Stage::trailing_by(ABOVE).await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.mine(1).await;
    let seen = stage.awaits_deposits(&transfer, is_in_block).await;
    assert_eq!(seen[0]["status"], "processing");
    let above = seen[0]["block_number"].as_i64().unwrap() - stage.height();
    assert!(above > ABOVE as i64, "{above} blocks above the cursor");
    stage.proxy().heal();
    stage.settle().await;
    stage.awaits(&transfer, "payout_settled").await;
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn a_replaced_final_block_stops_everything() {
    let stage = Stage::set().await;
    let (safe, stolen) = (stage.transfer("100.00").await, stage.transfer("100.00").await);
    stage.token.transfer(address(&safe), 100_000_000).await;
    stage.settle().await;
    stage.mine(5).await;
    stage.followed().await;
    assert_eq!(stage.verify().await.deposits, 1);
    let height = stage.height();
    // The last final block is another one now.
    stage.chain.reorg(FINALITY_BLOCKS + 1, &[]).await;
    stage.token.transfer(address(&stolen), 100_000_000).await;
    stage.mine(1 + FINALITY_BLOCKS).await;
    stage.trouble().await;
    let doubts = || stage.followed_chain().stats.doubts.load(std::sync::atomic::Ordering::Relaxed);
    let before = doubts();
    crate::service::eventually("more doubts", async || (doubts() > before + 1).then_some(())).await;
    assert_eq!((stage.height(), stage.is_in_trouble()), (height, true));
    assert_eq!(
        stage.deposits(&stolen).await,
        Vec::<Value>::new(),
        "the other branch is not believed"
    );
    assert_eq!(stage.deposits(&safe).await.len(), 1);
}

#[tokio::test]
async fn a_node_restarts_and_one_loses_its_last_blocks() {
    let stage = Stage::set().await;
    let kept = stage.transfer("100.00").await;
    stage.token.transfer(address(&kept), 100_000_000).await;
    stage.mine(3).await;
    stage.chain.restart().await;
    stage.mine(3).await;
    stage.awaits_deposits(&kept, is_in_block).await;

    // Everything after this stop is lost by the kill.
    stage.chain.restart().await;
    let lost = stage.transfer("100.00").await;
    stage.token.transfer(address(&lost), 100_000_000).await;
    stage.mine(4).await;
    let before = stage.awaits_deposits(&lost, is_in_block).await;
    let head = stage.chain.head().await;
    stage.chain.kill().await;
    stage.trouble().await;
    stage.chain.resume().await;
    assert_eq!(stage.chain.head().await, head - 4);
    stage.mine(6).await;
    let gone = stage.awaits_deposits(&lost, is_in_none).await;
    assert_eq!(gone[0]["id"], before[0]["id"]);
    stage.token.transfer(address(&lost), 100_000_000).await;
    stage.settle().await;
    stage.awaits(&lost, "payout_settled").await;
    stage.awaits(&kept, "payout_settled").await;
    stage.no_trouble().await;
    assert_eq!(stage.verify().await.deposits, 2);
}

/// A request that fails while the blocks above the final view are looked at takes no deposit out of
/// sight.
#[tokio::test]
async fn a_request_that_fails_hides_no_deposit() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.mine(2).await;
    let confirmations =
        |deposits: &[Value]| deposits.first().and_then(|deposit| deposit["confirmations"].as_i64());
    let before =
        stage.awaits_deposits(&transfer, |deposits| confirmations(deposits) > Some(1)).await;
    // The block after those that were looked at cannot be read for a moment.
    let top = stage.chain.head().await;
    stage.proxy().change(|faults| faults.poison = Blocks::only([top + 1]));
    let is_in_trouble =
        || stage.followed_chain().stats.is_in_trouble.load(std::sync::atomic::Ordering::Relaxed);
    stage.mine(2).await;
    eventually("the node to fail", async || is_in_trouble().then_some(())).await;
    stage.proxy().heal();
    eventually("the node to be well", async || (!is_in_trouble()).then_some(())).await;
    stage.mine(1).await;
    let deposit = stage
        .awaits_deposits(&transfer, |deposits| confirmations(deposits) > confirmations(&before))
        .await
        .remove(0);
    assert!(deposit["block_number"].is_i64(), "{deposit}");
}
