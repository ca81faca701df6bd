//! Whom to believe: one of two nodes alone decides nothing while the other one answers, and where
//! one is taken at its word, that is told.

use hundi::chains::rows::{self, Deprecation};

use crate::anvil::{FINALITY_BLOCKS, Options};
use crate::proxy::{Blocks, Invented};
use crate::service::{Setup, Stage, address, eventually};
use crate::wire::Hash;

const UNCHECKED: &str = "hundi_chain_unchecked";
const MISSING: &str = "hundi_chain_nodes_missing";

async fn with_two_nodes() -> Stage {
    Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await
}

/// Money in a block that is not final, while a node says of each block that it is.
async fn pay_before_one_who_calls_all_final(stage: &Stage) {
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.proxies[0].change(|faults| faults.is_head_final = true);
    stage.mine(3).await;
    stage.looked_again().await;
    let last_final = stage.chain.finalized().await as i64;
    assert!(
        stage.height() <= last_final,
        "followed to {}, and {last_final} is final",
        stage.height()
    );
    assert_eq!(stage.deposits(&transfer).await[0]["status"], "processing");
    stage.mine(FINALITY_BLOCKS).await;
    stage.followed().await;
    stage.awaits(&transfer, "payout_settled").await;
}

#[tokio::test]
async fn what_one_of_two_nodes_alone_calls_final_is_not_credited() {
    let stage = with_two_nodes().await;
    pay_before_one_who_calls_all_final(&stage).await;
    assert_eq!(stage.verify().await.deposits, 1);
    assert_eq!([stage.metric(UNCHECKED).await, stage.metric(MISSING).await], [0, 0]);
    assert!(!stage.is_in_trouble());
}

/// A chain that is known to finalise late does so at the only node too.
#[tokio::test]
async fn the_only_node_calls_nothing_final_before_its_chain_can() {
    let stage = Stage::set().await;
    pay_before_one_who_calls_all_final(&stage).await;
    assert_eq!(stage.verify().await.deposits, 1);
    assert_eq!([stage.metric(UNCHECKED).await, stage.metric(MISSING).await], [1, 0]);

    // The control: of a chain that nothing is known of, the only node is taken at its word.
    let chain = Options { chain_id: 7, ..Options::default() };
    let stage = Stage::set_with(Setup { chain, ..Setup::default() }).await;
    stage.proxy().change(|faults| faults.is_head_final = true);
    stage.mine(3).await;
    stage.followed_to(stage.chain.head().await as i64).await;
}

#[tokio::test]
async fn a_node_that_lacks_the_other_one_is_believed_and_that_is_told() {
    let stage = with_two_nodes().await;
    let pay = async || {
        let transfer = stage.transfer("100.00").await;
        stage.token.transfer(address(&transfer), 100_000_000).await;
        stage.settle().await;
        stage.awaits(&transfer, "payout_settled").await;
    };
    pay().await;
    assert_eq!([stage.metric(UNCHECKED).await, stage.metric(MISSING).await], [0, 0]);
    for bad in [1, 0] {
        stage.proxies[bad].change(|faults| faults.is_dropping_connections = true);
        stage.awaits_metric(MISSING, 1).await;
        pay().await;
        assert_eq!([stage.metric(UNCHECKED).await, stage.metric(MISSING).await], [1, 1]);
        stage.no_trouble().await;
        stage.proxies[bad].heal();
        stage.awaits_metric(MISSING, 0).await;
        stage.mine(1).await;
        stage.awaits_metric(UNCHECKED, 0).await;
    }
    // Its clock is wrong, or the machine's.
    stage.proxies[1].change(|faults| faults.time_shift = Some((Blocks::All, 100_000)));
    stage.awaits_metric(MISSING, 1).await;
    stage.proxies[1].heal();
    stage.awaits_metric(MISSING, 0).await;
    assert_eq!(stage.verify().await.deposits, 3);
}

#[tokio::test]
async fn a_second_node_that_is_behind_still_checks() {
    let stage = with_two_nodes().await;
    // One block behind, while the first one hides the money.
    stage.proxies[1].change(|faults| faults.behind_blocks = 1);
    let transfer = stage.transfer("100.00").await;
    let paid = stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.token.noise(5).await;
    stage.proxies[0].change(|faults| faults.short = [(paid, 0)].into());
    let block = stage.chain.head().await as i64 + 1;
    assert!(block % 100 != 0 && (block + 1) % 100 != 0, "no block of the sample");
    // Block after block, so that each is read when only the first node has it as final.
    for _ in 0..FINALITY_BLOCKS + 3 {
        stage.mine(1).await;
        let to = stage.chain.finalized().await as i64 - 1;
        stage.followed_to(to).await;
    }
    assert!(stage.height() > block);
    stage.proxies.iter().for_each(|proxy| proxy.heal());
    stage.awaits(&transfer, "payout_settled").await;
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn a_second_node_that_stands_still_is_waited_for_and_not_for_ever() {
    let stage = with_two_nodes().await;
    stage.mine(60).await;
    stage.followed().await;
    let height = stage.height();
    stage.proxies[1].change(|faults| faults.behind_blocks = 40);
    stage.mine(20).await;
    stage.looked_again().await;
    assert_eq!(
        (stage.height(), stage.is_in_trouble()),
        (height, false),
        "the second node has not come to this block"
    );
    // Ten minutes later it is given up.
    stage.proxies[1].change(|faults| faults.behind_blocks = 240);
    stage.mine(200).await;
    stage.followed().await;
    assert_eq!([stage.metric(UNCHECKED).await, stage.metric(MISSING).await], [1, 1]);
    stage.proxies[1].heal();
    stage.mine(1).await;
    stage.followed().await;
    stage.awaits_metric(UNCHECKED, 0).await;
    assert_eq!(stage.metric(MISSING).await, 0);
}

/// The times of blocks decide what is late.
#[tokio::test]
async fn two_nodes_have_to_tell_the_time_of_a_deposit_alike() {
    let stage = with_two_nodes().await;
    let transfer = stage.transfer("100.00").await;
    stage.token.transfer(address(&transfer), 100_000_000).await;
    let block = stage.chain.head().await + 1;
    // Between its neighbours, which are 3 s apart, so that only the two nodes together show it.
    stage.proxies[0].change(|faults| faults.finality_behind_blocks = 3);
    stage.proxies[1].change(|faults| {
        (faults.time_shift, faults.finality_behind_blocks) = (Some((Blocks::only([block]), 1)), 3)
    });
    stage.mine(FINALITY_BLOCKS + 4).await;
    stage.trouble().await;
    assert!(stage.height() < block as i64);
    stage.proxies[0].heal();
    stage.proxies[1].heal();
    stage.awaits(&transfer, "payout_settled").await;
    assert_eq!(stage.verify().await.deposits, 1);
}

async fn view_status(stage: &Stage) -> String {
    let corridors = stage.client.get("/v1/corridors").await.ok();
    corridors["data"][0]["funding"][0]["view"]["status"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn another_log_of_the_token_is_no_hand_over() {
    let stage = Stage::set().await;
    stage.proxy().change(|faults| faults.is_ignoring_topics = true);
    stage.token.approve(stage.chain.account(3), 7).await;
    stage.settle().await;
    assert_eq!(view_status(&stage).await, "following");
    stage.transfer("100.00").await;
    assert!(!stage.is_in_trouble());
}

#[tokio::test]
async fn a_hand_over_that_no_receipt_shows_is_not_believed() {
    for proxies in [1, 2] {
        let stage = Stage::set_with(Setup { proxies, ..Setup::default() }).await;
        stage.token.noise(5).await;
        let block = stage.chain.head().await + 1;
        let invented = Invented {
            block,
            contract: stage.token.address,
            from: stage.chain.treasury(),
            to: stage.chain.treasury(),
            units: 0,
            transaction: Hash([0xab; 32]),
            log_index: 6,
            is_deprecation: true,
        };
        stage.proxy().change(|faults| faults.invented = vec![invented]);
        stage.mine(1 + FINALITY_BLOCKS).await;
        if proxies == 1 {
            stage.trouble().await;
            assert!(stage.height() < block as i64);
            stage.proxy().heal();
        }
        // Of two, the other one leads then, and receipts settle it.
        stage.followed().await;
        stage.no_trouble().await;
        assert_eq!(view_status(&stage).await, "following");
        stage.transfer("100.00").await;
    }
}

#[tokio::test]
async fn a_mark_that_the_contract_denies_goes() {
    let stage = Stage::set().await;
    let (name, contract) = (stage.followed_chain().settings.name, stage.token.address.bytes());
    let mode = stage.followed_chain().mode;
    let mark = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
        let cursor = rows::cursor(tx, mode, name)?.expect("a cursor");
        let marked = rows::Cursor {
            deprecation: Some(Deprecation { contract, height: cursor.anchor.height }),
            ..cursor
        };
        Ok(rows::advance(tx, now, mode, name, &contract, cursor.anchor, &marked)?)
    };
    // While the node does not tell, the mark stays.
    stage.proxy().change(|faults| faults.is_dropping_connections = true);
    stage.trouble().await;
    assert!(stage.app.state.store.write(mark).await.unwrap());
    assert_eq!(view_status(&stage).await, "token_deprecated");
    stage.expect_no_transfer("100.00").await;
    stage.proxy().heal();
    eventually("the mark to go", async || (view_status(&stage).await == "following").then_some(()))
        .await;
    stage.no_trouble().await;
    stage.transfer("100.00").await;

    // The control: one that the contract owns up to stays, and is trouble.
    stage.token.deprecate(stage.chain.deploy_token().await.address).await;
    stage.settle().await;
    stage.trouble().await;
    assert_eq!(view_status(&stage).await, "token_deprecated");
    stage.looked_again().await;
    assert!(stage.is_in_trouble());
    assert_eq!(
        stage.height(),
        stage.chain.finalized().await as i64,
        "what is paid is found all the same"
    );
}

/// Test tokens can be minted freely.
#[tokio::test]
async fn an_amount_that_no_book_holds_stops_nothing() {
    let stage = Stage::set().await;
    let (absurd, sound) = (stage.transfer("100.00").await, stage.transfer("100.00").await);
    // The treasury holds what three accounts held.
    for number in [1, 2] {
        stage
            .token
            .transfer_from(stage.chain.account(number), stage.chain.treasury(), 900_000_000_000_000)
            .await;
    }
    stage.mine(1).await;
    stage.token.transfer(address(&absurd), 2_000_000_000_000_000).await;
    stage.token.transfer(address(&sound), 100_000_000).await;
    stage.settle().await;
    stage.awaits(&sound, "payout_settled").await;
    assert_eq!(stage.deposits(&absurd).await.len(), 0);
    assert!(!stage.is_in_trouble());
}
