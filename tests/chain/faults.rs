//! Bad nodes: each fault is planted while money arrives, and afterwards everything is right.

use std::time::Duration;

use hundi::kernel::Clock;

use crate::anvil::FINALITY_BLOCKS;
use crate::proxy::{Blocks, Faults, Fork, Garbage, Invented, Proxy, Sanction};
use crate::service::{Folder, Setup, Stage, address, chain_with_token, config, eventually, variables};
use crate::wire::{Hash, nobody};

/// What a case knows when it plants its fault.
struct Place {
    /// The block that the money goes into.
    block: u64,
    paid: Hash,
    invented: Invented,
}

type Plant = fn(&mut Faults, &Place);

/// Sends money, mines it final under a fault, and answers where it is.
async fn pay(stage: &Stage, plant: impl FnOnce(&Stage, &Place)) -> Place {
    let transfer = stage.transfer("100.00").await;
    let paid = stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.token.noise(5).await;
    let block = stage.chain.head().await + 1;
    let invented = Invented {
        block,
        contract: stage.token.address,
        from: stage.chain.treasury(),
        to: address(&transfer),
        units: 5_000_000,
        transaction: Hash([0xab; 32]),
        log_index: 6,
    };
    let place = Place { block, paid, invented };
    plant(stage, &place);
    stage.mine(1 + FINALITY_BLOCKS).await;
    place
}

fn limits() -> Vec<(&'static str, Plant)> {
    vec![
        ("a range limit", |faults, _| faults.range_blocks_max = Some(3)),
        ("a result limit", |faults, _| faults.results_max = Some(7)),
        ("answers that are too big", |faults, _| faults.response_bytes_max = Some(12_000)),
        ("a batch limit", |faults, _| faults.batch_calls_max = Some(2)),
        ("no batches at all", |faults, _| faults.batch_calls_max = Some(1)),
        ("reversed batches", |faults, _| faults.is_batch_reversed = true),
        ("no `finalized`", |faults, _| faults.is_finalized_refused = true),
        ("no eth_getBlockReceipts", |faults, _| faults.is_receipts_missing = true),
        ("both of them", |faults, _| (faults.is_finalized_refused, faults.is_receipts_missing) = (true, true)),
        ("times in logs", |faults, _| faults.is_time_in_logs = true),
        ("delays", |faults, _| faults.delay = Duration::from_millis(60)),
        ("everything at once", |faults, _| {
            *faults = Faults {
                range_blocks_max: Some(4),
                results_max: Some(9),
                batch_calls_max: Some(5),
                is_batch_reversed: true,
                is_finalized_refused: true,
                is_receipts_missing: true,
                delay: Duration::from_millis(5),
                ..Faults::default()
            }
        }),
    ]
}

#[tokio::test]
async fn limits_and_old_versions_are_lived_with() {
    let stage = Stage::set().await;
    for (name, plant) in limits() {
        pay(&stage, |stage, place| stage.proxy().change(|faults| plant(faults, place))).await;
        stage.followed().await;
        eprintln!("{name}: {} requests", stage.proxy().requests());
        stage.verify().await;
        stage.proxy().heal();
        stage.proxy().forget_calls();
    }
    assert_eq!(stage.verify().await.deposits, limits().len());
    assert!(!stage.is_in_trouble());
}

/// Plants each fault before the only node, sees the alarm and that nothing is skipped, heals it, and asks the oracle.
async fn stopped_by(cases: Vec<(&'static str, Plant)>) {
    let stage = Stage::set().await;
    let count = cases.len();
    for (name, plant) in cases {
        let started = std::time::Instant::now();
        let place = pay(&stage, |stage, place| stage.proxy().change(|faults| plant(faults, place))).await;
        stage.trouble().await;
        assert!(stage.height() < place.block as i64, "{name}: the cursor stands at {} and the money in {}", stage.height(), place.block);
        stage.proxy().heal();
        stage.followed().await;
        stage.no_trouble().await;
        stage.verify().await;
        eprintln!("{name}: {:?}", started.elapsed());
    }
    assert_eq!(stage.verify().await.deposits, count);
}

#[tokio::test]
async fn no_answers_stop_and_lose_nothing() {
    stopped_by(vec![
        ("HTTP 200 with an error", |faults, _| faults.is_overloaded = true),
        ("429", |faults, _| faults.too_many_retry_after_seconds = Some(1)),
        ("dropped connections", |faults, _| faults.is_dropping_connections = true),
        ("a page", |faults, _| faults.garbage = Some(Garbage::Page)),
        ("half an answer", |faults, _| faults.garbage = Some(Garbage::Truncated)),
        ("an empty answer", |faults, _| faults.garbage = Some(Garbage::Empty)),
        ("bytes", |faults, _| faults.garbage = Some(Garbage::Bytes)),
        ("other ids", |faults, _| faults.garbage = Some(Garbage::OtherIds)),
        ("wrong types", |faults, _| faults.garbage = Some(Garbage::WrongTypes)),
        ("too many calls", |faults, _| faults.calls_per_second_max = Some((1, Sanction::TooMany { retry_after_seconds: 1 }))),
    ])
    .await;
}

#[tokio::test]
async fn lies_of_the_only_node_stop_and_lose_nothing() {
    stopped_by(vec![
        ("a hole in the index", |faults, place| faults.logs_hidden = Blocks::only([place.block])),
        ("nothing in the index", |faults, _| faults.logs_hidden = Blocks::All),
        ("a stale replica", |faults, _| faults.behind_blocks = 60),
        ("a stale replica for logs", |faults, _| {
            (faults.behind_blocks, faults.behind_methods) = (60, Some(["eth_getLogs"].into()));
        }),
        ("a stale replica for receipts", |faults, _| {
            (faults.behind_blocks, faults.behind_methods) = (60, Some(["eth_getBlockReceipts", "eth_getTransactionReceipt"].into()));
        }),
        ("a stale replica for blocks", |faults, _| {
            (faults.behind_blocks, faults.behind_methods) = (60, Some(["eth_getBlockByNumber"].into()));
        }),
        ("a poison block", |faults, place| faults.poison = Blocks::only([place.block])),
        // One that begins above the cursor is a branch like any other to whoever has one node.
        ("another branch", |faults, place| {
            faults.fork = Some(Fork { blocks: place.block - FINALITY_BLOCKS - 1..=u64::MAX, mark: 7 });
        }),
        ("another branch from the beginning", |faults, _| faults.fork = Some(Fork { blocks: 0..=u64::MAX, mark: 7 })),
        ("a removed log", |faults, place| faults.removed = [place.paid].into()),
        ("an invented log", |faults, place| faults.invented = vec![place.invented.clone()]),
        ("an invented log in another place", |faults, place| {
            faults.invented = vec![Invented { log_index: 0, ..place.invented.clone() }];
        }),
    ])
    .await;
}

#[tokio::test]
async fn a_ban_is_sat_out() {
    let stage = Stage::set().await;
    let place = pay(&stage, |stage, _| stage.proxy().ban(Duration::from_secs(1))).await;
    stage.trouble().await;
    stage.proxy().forget_calls();
    assert!(stage.height() < place.block as i64);
    stage.followed().await;
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn a_poison_block_is_not_skipped_and_what_is_before_it_is_read() {
    let stage = Stage::set().await;
    let place = pay(&stage, |stage, place| stage.proxy().change(|faults| faults.poison = Blocks::only([place.block]))).await;
    // A node that cannot even name its final block is asked for nothing else.
    stage.mine(2).await;
    stage.followed_to(place.block as i64 - 1).await;
    stage.trouble().await;
    stage.proxy().await_calls("eth_getLogs", stage.proxy().calls("eth_getLogs") + 2).await;
    assert_eq!(stage.height(), place.block as i64 - 1);
    stage.proxy().heal();
    stage.followed().await;
    assert_eq!(stage.verify().await.deposits, 1);
}

#[tokio::test]
async fn a_transaction_that_failed_is_not_credited_although_its_log_is_shown() {
    let mut stage = Stage::set().await;
    let place = pay(&stage, |stage, place| stage.proxy().change(|faults| faults.failed = [place.paid].into())).await;
    stage.followed().await;
    stage.failed = [place.paid].into();
    assert_eq!(stage.verify().await.deposits, 0);
}

#[tokio::test]
async fn with_a_second_good_node_it_goes_on_at_once() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let cases: Vec<(&str, Plant)> = vec![
        ("a hole in the index", |faults, place| faults.logs_hidden = Blocks::only([place.block])),
        ("nothing in the index", |faults, _| faults.logs_hidden = Blocks::All),
        ("one log short", |faults, place| faults.short = [(place.paid, 0)].into()),
        ("a stale replica", |faults, _| faults.behind_blocks = 60),
        ("a poison block", |faults, place| faults.poison = Blocks::only([place.block])),
        ("a stale replica for logs", |faults, _| {
            (faults.behind_blocks, faults.behind_methods) = (60, Some(["eth_getLogs"].into()));
        }),
        ("no receipts", |faults, _| faults.is_receipts_missing = true),
        ("HTTP 200 with an error", |faults, _| faults.is_overloaded = true),
        ("dropped connections", |faults, _| faults.is_dropping_connections = true),
        ("a page", |faults, _| faults.garbage = Some(Garbage::Page)),
    ];
    let count = cases.len();
    for (number, (name, plant)) in cases.into_iter().enumerate() {
        let bad = number % 2;
        pay(&stage, |stage, place| stage.proxies[bad].change(|faults| plant(faults, place))).await;
        let started = std::time::Instant::now();
        stage.followed().await;
        eprintln!("{name}: {:?}", started.elapsed());
        stage.proxies[bad].heal();
    }
    assert_eq!(stage.verify().await.deposits, count);
}

#[tokio::test]
async fn two_nodes_that_contradict_each_other_stop_everything() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let cases: Vec<(&str, Plant)> = vec![
        ("another branch", |faults, place| faults.fork = Some(Fork { blocks: place.block - 5..=u64::MAX, mark: 7 })),
        ("a failed transaction", |faults, place| faults.failed = [place.paid].into()),
        ("an invented log with nothing behind it", |faults, place| faults.invented = vec![place.invented.clone()]),
    ];
    let count = cases.len();
    for (number, (name, plant)) in cases.into_iter().enumerate() {
        let place = pay(&stage, |stage, place| stage.proxies[number % 2].change(|faults| plant(faults, place))).await;
        if name.starts_with("an invented") {
            // Receipts settle it: no block has it.
            stage.followed().await;
        } else {
            stage.trouble().await;
            assert!(stage.height() < place.block as i64, "{name}");
        }
        stage.proxies[number % 2].heal();
        stage.followed().await;
        stage.verify().await;
    }
    assert_eq!(stage.verify().await.deposits, count);
}

/// What a single node can hide: one log of a block of which it shows others. It is found where something else of the block is ours,
/// and in every hundredth block; elsewhere only a second node finds it.
#[tokio::test]
async fn one_log_short_is_found_beside_another_deposit_and_in_the_sample() {
    let stage = Stage::set().await;
    // Beside another deposit.
    let other = stage.transfer("100.00").await;
    stage.token.transfer(address(&other), 100_000_000).await;
    let place = pay(&stage, |stage, place| stage.proxy().change(|faults| faults.short = [(place.paid, 1)].into())).await;
    stage.trouble().await;
    assert!(stage.height() < place.block as i64);
    stage.proxy().heal();
    stage.followed().await;
    stage.verify().await;

    // In the sample.
    let to_sample = 99 - stage.chain.head().await % 100;
    stage.mine(to_sample).await;
    let place = pay(&stage, |stage, place| stage.proxy().change(|faults| faults.short = [(place.paid, 0)].into())).await;
    assert_eq!(place.block % 100, 0);
    stage.trouble().await;
    stage.proxy().heal();
    stage.followed().await;
    assert_eq!(stage.verify().await.deposits, 3);

    // Elsewhere it is not, and the oracle shows that it would be missed.
    pay(&stage, |stage, place| stage.proxy().change(|faults| faults.short = [(place.paid, 0)].into())).await;
    stage.followed().await;
    let (_, faults) = stage.oracle().oracle().faults().await;
    assert!(faults.len() == 1 && faults[0].starts_with("a deposit is missing"), "{faults:?}");
}

#[tokio::test]
async fn a_wrong_chain_or_token_is_refused_at_the_start() {
    let setup = Setup::default();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let right = variables(&[proxy.url()], &token, &setup);
    let with = |name: &str, value: &str| {
        let mut all = right.clone();
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), value.to_owned()));
        all
    };
    let cases = [
        ("the chain", with("HUNDI_TEST_CHAIN_CHAIN_ID", "1"), Some("is of chain 728126428 and not of 1")),
        ("the decimals", with("HUNDI_TEST_CHAIN_DECIMALS", "18"), Some("has 6 decimals")),
        ("no contract", with("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &nobody(3).to_string()), Some("has none decimals")),
        ("nothing", right.clone(), None),
    ];
    for (name, variables, message) in cases {
        let folder = Folder::new();
        let app = hundi::app::App::open(&config(&folder.database(), &variables), Clock::System).await.unwrap();
        let checked = app.check_chains().await;
        match message {
            Some(message) => assert!(checked.as_ref().is_err_and(|told| told.contains(message)), "{name}: {checked:?}"),
            None => assert_eq!(checked, Ok(()), "{name}"),
        }
        app.store.close().await;
    }
}

/// A node that could not be asked at the start is not listened to before it was.
#[tokio::test]
async fn a_second_node_of_another_chain_is_left_out() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let folder = Folder::new();
    let urls: Vec<String> = stage.proxies.iter().map(Proxy::url).collect();
    stage.proxies[1].change(|faults| faults.is_dropping_connections = true);
    let app =
        hundi::app::App::open(&config(&folder.database(), &variables(&urls, &stage.token, &stage.setup)), Clock::System).await.unwrap();
    app.check_chains().await.unwrap();
    stage.proxies[1].change(|faults| *faults = Faults { chain_id: Some(5), ..Faults::default() });
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let following = tokio::spawn(hundi::work::follow::run(app.clone(), app.chains[0].clone(), stopping));
    stage.proxies[1].await_calls("eth_chainId", stage.proxies[1].calls("eth_chainId") + 1).await;
    stage.mine(30).await;
    let to = stage.chain.finalized().await as i64;
    let stats = &app.chains[0].stats;
    eventually("the first node to be followed", async || (stats.height.load(std::sync::atomic::Ordering::Relaxed) >= to).then_some(()))
        .await;
    assert!(!app.chains[0].nodes[1].fits() && app.chains[0].nodes[0].fits());
    stop.send(true).unwrap();
    following.await.unwrap();
    app.store.close().await;
}
