//! The chain does what the harness says it does.

use crate::anvil::{
    Anvil, BLOCK_SECONDS, CHAIN_ID, FINALITY_BLOCKS, GENESIS_TIME, HOLDING_UNITS, Kept, Options,
};
use crate::wire::{DEPRECATE_TOPIC, nobody, topic};
use serde_json::json;

#[tokio::test]
async fn a_chain_starts_answers_and_ends_with_its_handle() {
    let chain = Anvil::start().await;
    assert_eq!(chain.rpc("eth_chainId", json!([])).await, json!(format!("0x{CHAIN_ID:x}")));
    assert_eq!((chain.head().await, chain.finalized().await, chain.accounts().len()), (1, 0, 10));
    assert_eq!(chain.block(0).await.unwrap().time, GENESIS_TIME);
    assert_eq!(chain.block(2).await, None);
    let process = format!("/proc/{}", chain.process_id().unwrap());
    let kept = chain.clone();
    drop(chain);
    assert!(std::path::Path::new(&process).exists() && kept.head().await == 1, "a clone keeps it");
    drop(kept);
    assert!(!std::path::Path::new(&process).exists(), "the process outlived its handle");
}

#[tokio::test]
async fn a_token_answers_like_usdt() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    assert_eq!(
        (token.symbol().await, token.decimals().await, token.is_deprecated().await),
        ("USDT".to_owned(), 6, false)
    );
    assert_eq!(token.balance_of(chain.account(9)).await, HOLDING_UNITS);
    let look_alike = chain.deploy_token().await;
    assert_ne!(look_alike.address, token.address);
    assert_eq!(look_alike.symbol().await, "USDT");
    let (to, from) = (nobody(1), chain.head().await + 1);
    look_alike.transfer(to, 9).await;
    chain.mine(1).await;
    assert_eq!(token.transfers(from, u64::MAX).await, []);
    assert_eq!(look_alike.transfers(from, u64::MAX).await[0].units, 9);
}

#[tokio::test]
async fn transactions_wait_and_share_a_block_in_their_order() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    let (to, stranger, victim) = (nobody(1), nobody(2), chain.account(3));
    let first = token.transfer(to, 1_500_000).await;
    let pair = token.transfer_many(&[(to, 5), (to, 6)]).await;
    let reverted = token.transfer_reverted(to, 7).await;
    let nothing = token.transfer_nothing_as_stranger(stranger, victim, to).await;
    let short_of_funds = token.transfer_from(stranger, to, 1).await;
    let swept = token.transfer_from(victim, to, 8).await;
    assert_eq!(chain.receipt(first).await, None, "nothing is mined by itself");
    chain.mine(1).await;

    let head = chain.head_block().await;
    assert_eq!(head.transactions, [first, pair, reverted, nothing, short_of_funds, swept]);
    let logs: Vec<_> = token.transfers(head.number, head.number).await;
    let expected = [(first, 1_500_000), (pair, 5), (pair, 6), (nothing, 0), (swept, 8)];
    assert_eq!(logs.iter().map(|log| (log.transaction, log.units)).collect::<Vec<_>>(), expected);
    assert_eq!(logs.iter().map(|log| log.log_index).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(
        logs.iter().all(|log| log.to == to
            && log.block_hash == head.hash
            && log.contract == token.address)
    );
    assert_eq!((logs[3].from, logs[4].from), (victim, victim));

    for (transaction, is_successful, transfers) in [
        (first, true, 1),
        (pair, true, 2),
        (reverted, false, 0),
        (nothing, true, 1),
        (short_of_funds, false, 0),
    ] {
        let receipt = chain.receipt(transaction).await.unwrap();
        assert_eq!((receipt.is_successful, receipt.transfers.len()), (is_successful, transfers));
    }
    assert_eq!(token.balance_of(to).await, 1_500_019);
}

#[tokio::test]
async fn a_block_can_be_as_full_as_the_real_ones() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    let from = chain.head().await + 1;
    token.noise(300).await;
    let each: Vec<_> = (0..80).map(|number| (nobody(1_000 + number), number + 1)).collect();
    assert_eq!(token.transfer_each(&each).await.len(), 80);
    chain.mine(2).await;
    let logs = token.transfers(from, from).await;
    assert_eq!(logs.len(), 380);
    assert!(logs.iter().enumerate().all(|(place, log)| log.log_index == place as u64));
    assert_eq!(token.transfers(from + 1, u64::MAX).await, []);
}

#[tokio::test]
async fn fees_the_black_list_and_deprecation_work_as_on_the_original() {
    let chain = Anvil::start().await;
    let (token, successor) = (chain.deploy_token().await, chain.deploy_token().await);
    let to = chain.account(5);
    token.set_fee(20, 50_000_000).await;
    token.transfer_from(chain.account(1), to, 1_000).await;
    token.set_fee(0, 0).await;
    token.add_to_black_list(to).await;
    token.transfer(to, 3).await;
    let refused = token.transfer_from(to, nobody(1), 1).await;
    let deprecated = token.deprecate(successor.address).await;
    token.transfer(to, 4).await;
    chain.mine(1).await;
    let head = chain.head().await;
    let units: Vec<_> =
        token.transfers(head, head).await.iter().map(|log| (log.to, log.units)).collect();
    assert_eq!(units, [(to, 998), (chain.treasury(), 2), (to, 3)]);
    assert_eq!(successor.transfers(head, head).await[0].units, 4);
    assert!(!chain.receipt(refused).await.unwrap().is_successful);
    assert!(token.is_deprecated().await && !successor.is_deprecated().await);
    let receipt = chain.rpc("eth_getTransactionReceipt", json!([deprecated.to_string()])).await;
    assert_eq!(receipt["logs"][0]["topics"], json!([DEPRECATE_TOPIC]));
    assert_eq!(receipt["logs"][0]["data"], json!(topic(successor.address)));
}

#[tokio::test]
async fn time_is_the_tests() {
    let chain =
        Anvil::start_with(Options { genesis_time: 1_800_000_000, ..Options::default() }).await;
    chain.mine(2).await;
    assert_eq!(chain.head_block().await.time, 1_800_000_000 + 3 * BLOCK_SECONDS);
    chain.mine_at(&[1_800_000_100, 1_800_000_101]).await;
    assert_eq!(chain.block(4).await.unwrap().time, 1_800_000_100);
    assert_eq!(chain.head_block().await.time, 1_800_000_101);
    chain.set_next_block_time(1_800_009_000).await;
    chain.mine(3).await;
    assert_eq!(chain.head_block().await.time, 1_800_009_000 + 2 * BLOCK_SECONDS);
    assert!(
        chain.try_rpc("evm_setNextBlockTimestamp", json!([1_800_000_000])).await.is_err(),
        "time does not go back"
    );
}

#[tokio::test]
async fn finality_trails_and_thousands_of_blocks_are_quick() {
    let chain = Anvil::start().await;
    for _ in 0..3 {
        chain.mine(10).await;
        assert_eq!(chain.finalized().await, chain.head().await.saturating_sub(FINALITY_BLOCKS));
    }
    let started = std::time::Instant::now();
    chain.mine(5_000).await;
    eprintln!("5000 blocks took {:?}", started.elapsed());
    assert_eq!((chain.head().await, chain.finalized().await), (5_031, 5_031 - FINALITY_BLOCKS));
    assert_eq!(chain.head_block().await.time, GENESIS_TIME + 5_031 * BLOCK_SECONDS);
}

#[tokio::test]
async fn a_reorganisation_drops_moves_and_keeps() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    let to = nobody(1);
    let mut sent = Vec::new();
    for (account, units) in [(1, 11), (2, 22), (3, 33), (4, 44)] {
        sent.push(token.transfer_from(chain.account(account), to, units).await);
    }
    let nothing = token.transfer_nothing_as_stranger(nobody(7), chain.account(5), to).await;
    chain.mine(4).await;
    let head = chain.head().await;
    let before = [
        chain.block(head - 3).await,
        chain.block(head - 2).await,
        chain.block(head - 1).await,
        chain.block(head).await,
    ];
    let ancestor = chain.block(head - 4).await.unwrap();
    // 11 and 22 change places, 33 moves up two blocks, 44 is dropped; a stranger's own survives as
    // well.
    chain
        .reorg(
            4,
            &[
                Kept::at(sent[1], 0),
                Kept::at(sent[0], 0),
                Kept::at(sent[2], 2),
                Kept::at(nothing, 2),
            ],
        )
        .await;

    assert_eq!(chain.head().await, head);
    let mut parent = ancestor.hash;
    for (old, number) in before.iter().flatten().zip(head - 3..) {
        let new = chain.block(number).await.unwrap();
        assert_eq!((new.parent_hash, new.time), (parent, old.time));
        assert_ne!(new.hash, old.hash, "block {number} is another one");
        parent = new.hash;
    }
    let logs: Vec<_> = token
        .transfers(head - 3, head)
        .await
        .iter()
        .map(|log| (log.block_number, log.log_index, log.transaction))
        .collect();
    let first = head - 3;
    assert_eq!(
        logs,
        [
            (first, 0, sent[1]),
            (first, 1, sent[0]),
            (first + 2, 0, sent[2]),
            (first + 2, 1, nothing)
        ]
    );
    assert_eq!(chain.receipt(sent[3]).await, None);
    chain.mine(3).await;
    assert_eq!(chain.receipt(sent[3]).await, None, "what was dropped does not come back");
    assert_eq!(token.balance_of(to).await, 66);

    // Keeping everything still makes other blocks.
    let kept = chain.block(first).await.unwrap();
    let depth = chain.head().await - first + 1;
    chain.reorg(depth, &[Kept::at(sent[1], 0), Kept::at(sent[0], 0)]).await;
    let again = chain.block(first).await.unwrap();
    assert_eq!(again.transactions, kept.transactions);
    assert_ne!(again.hash, kept.hash);
}

#[tokio::test]
async fn snapshots_and_rollbacks_give_other_branches() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    let to = nobody(1);
    let snapshot = chain.snapshot().await;
    let lost = token.transfer(to, 1).await;
    chain.mine(2).await;
    let old = chain.head_block().await;
    chain.revert(snapshot).await;
    assert_eq!(chain.head().await, old.number - 2);
    assert_eq!(chain.receipt(lost).await, None);
    chain.mine(2).await;
    let new = chain.head_block().await;
    assert_eq!((new.number, new.time), (old.number, old.time));
    assert_ne!(new.hash, old.hash);

    let dropped = token.transfer(to, 2).await;
    chain.mine(3).await;
    chain.rollback(3).await;
    assert_eq!((chain.head().await, chain.receipt(dropped).await), (new.number, None));
    token.transfer(to, 3).await;
    chain.mine(1).await;
    assert_eq!(token.balance_of(to).await, 3);
}

#[tokio::test]
async fn a_restart_keeps_the_chain_and_a_kill_loses_its_end() {
    let chain = Anvil::start().await;
    let token = chain.deploy_token().await;
    let (to, stranger) = (nobody(1), nobody(2));
    let sent = token.transfer(to, 5).await;
    token.transfer_nothing_as_stranger(stranger, to, to).await;
    chain.mine(30).await;
    let (head, finalized, receipt) =
        (chain.head_block().await, chain.finalized().await, chain.receipt(sent).await);
    let (logs, genesis) = (token.transfers(0, u64::MAX).await, chain.block(0).await);

    chain.stop().await;
    assert!(chain.try_rpc("eth_blockNumber", json!([])).await.is_err());
    chain.resume().await;
    assert_eq!(
        (chain.head_block().await, chain.finalized().await, chain.receipt(sent).await),
        (head.clone(), finalized, receipt)
    );
    assert_eq!((token.transfers(0, u64::MAX).await, chain.block(0).await), (logs, genesis));
    token.transfer_nothing_as_stranger(stranger, to, to).await;
    chain.mine(2).await;
    let block = chain.block(head.number + 1).await.unwrap();
    assert_eq!(
        (block.parent_hash, block.time, block.transactions.len()),
        (head.hash, head.time + BLOCK_SECONDS, 1)
    );

    chain.kill().await;
    chain.resume().await;
    assert_eq!(chain.head_block().await, head, "what came after the last stop is lost");
}
