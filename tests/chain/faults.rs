//! Bad nodes: each fault is planted while money arrives, and afterwards everything is right.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hundi::chains::timer::Timer;
use hundi::kernel::Clock;
use serde_json::json;

use crate::anvil::FINALITY_BLOCKS;
use crate::binary::Home;
use crate::proxy::{Blocks, Faults, Fork, Garbage, Invented, Proxy, Sanction};
use crate::service::{
    Folder, Process, Setup, Stage, address, chain_with_token, config, eventually, set_variables,
    variables,
};
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
        is_deprecation: false,
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
        ("both of them", |faults, _| {
            (faults.is_finalized_refused, faults.is_receipts_missing) = (true, true)
        }),
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

/// Plants each fault before the only node, sees the alarm and that nothing is skipped, heals it,
/// and asks the oracle.
async fn stopped_by(cases: Vec<(&'static str, Plant)>) {
    let stage = Stage::set().await;
    let count = cases.len();
    for (name, plant) in cases {
        let started = std::time::Instant::now();
        let place =
            pay(&stage, |stage, place| stage.proxy().change(|faults| plant(faults, place))).await;
        stage.trouble().await;
        assert!(
            stage.height() < place.block as i64,
            "{name}: the cursor stands at {} and the money in {}",
            stage.height(),
            place.block
        );
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
        ("too many calls", |faults, _| {
            faults.calls_per_second_max = Some((1, Sanction::TooMany { retry_after_seconds: 1 }))
        }),
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
            (faults.behind_blocks, faults.behind_methods) =
                (60, Some(["eth_getBlockReceipts", "eth_getTransactionReceipt"].into()));
            // TRON's own interface would be a third way to read them.
            faults.is_block_info_missing = true;
        }),
        ("a stale replica for blocks", |faults, _| {
            (faults.behind_blocks, faults.behind_methods) =
                (60, Some(["eth_getBlockByNumber"].into()));
        }),
        ("a poison block", |faults, place| faults.poison = Blocks::only([place.block])),
        // One that begins above the cursor is a branch like any other to whoever has one node.
        ("another branch", |faults, place| {
            faults.fork =
                Some(Fork { blocks: place.block - FINALITY_BLOCKS - 1..=u64::MAX, mark: 7 });
        }),
        ("another branch from the beginning", |faults, _| {
            faults.fork = Some(Fork { blocks: 0..=u64::MAX, mark: 7 })
        }),
        ("times in milliseconds", |faults, _| {
            faults.time_shift = Some((Blocks::All, 1_790_000_000_000))
        }),
        ("a block in a day to come", |faults, place| {
            faults.time_shift = Some((Blocks::only([place.block]), 86_400))
        }),
        ("blocks before what was followed", |faults, place| {
            faults.time_shift = Some((Blocks::Range(place.block - 3..=u64::MAX), -86_400));
        }),
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
    // How long TRON's gateway bans.
    const BAN_SECONDS: u64 = 30;
    let stage = Stage::set().await;
    let started = std::time::Instant::now();
    let place = pay(&stage, |stage, _| stage.proxy().ban(Duration::from_secs(1))).await;
    stage.trouble().await;
    stage.proxy().forget_calls();
    assert!(stage.height() < place.block as i64);
    stage.followed().await;
    assert!(started.elapsed() >= Duration::from_secs(BAN_SECONDS), "after {:?}", started.elapsed());
    assert_eq!(stage.verify().await.deposits, 1);
}

/// A node that refuses is left alone for the time that it names, and for longer and longer where it
/// names none.
#[tokio::test]
async fn who_is_refused_asks_less_often() {
    // By a timer that runs twenty times as fast as the machine's: most of this is waiting.
    let timer = Timer::manual();
    let moving = timer.clone();
    let mover = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            moving.advance(Duration::from_millis(20));
        }
    });
    let stage = Stage::set_with(Setup { timer: timer.clone(), ..Setup::default() }).await;
    type Refuse = fn(&mut Faults);
    let cases: [(&str, Refuse, u64, Duration); 3] = [
        (
            "an error that tells of a rate limit",
            |faults| faults.is_rate_limited = true,
            2,
            Duration::from_secs(1 + 2),
        ),
        (
            "429 with a time",
            |faults| faults.too_many_retry_after_seconds = Some(1),
            3,
            Duration::from_secs(3),
        ),
        (
            "HTTP 200 with an error",
            |faults| faults.is_overloaded = true,
            2,
            Duration::from_secs(1 + 2),
        ),
    ];
    for (what, refuse, refusals, rest) in cases {
        stage.no_trouble().await;
        let started = timer.now();
        stage.proxy().fail_next(refusals, refuse);
        pay(&stage, |_, _| ()).await;
        stage.followed().await;
        let taken = timer.now() - started;
        assert!(taken >= rest, "{what}: {refusals} refusals were used up in {taken:?}");
    }
    assert_eq!(stage.verify().await.deposits, 3);
    mover.abort();
}

/// Callers, load balancer and monitoring are told the same.
#[tokio::test]
async fn everybody_is_told_how_far_the_chain_was_read() {
    let stage = Stage::set().await;
    let page =
        async |path: &str| String::from_utf8(stage.client.get(path).await.body.to_vec()).unwrap();
    let chain = async || {
        stage.client.get("/v1/corridors").await.ok()["data"][0]["funding"][0]["view"].clone()
    };
    let metric = async |name: &str| stage.metric(name).await;
    let behind = stage.now() - stage.chain.block(stage.height() as u64).await.unwrap().time;
    assert_eq!(behind, 18 * 3);
    assert!(
        page("/readyz")
            .await
            .contains(&format!("chain tron (test): block {}, {behind} s behind\n", stage.height()))
    );
    let told = chain().await;
    assert_eq!(
        [&told["status"], &told["block_number"], &told["seconds_behind"]],
        [&json!("following"), &json!(stage.height()), &json!(behind)]
    );
    assert_eq!(
        [metric("hundi_chain_height").await, metric("hundi_chain_final_height").await],
        [stage.height(); 2]
    );
    assert_eq!(
        [metric("hundi_chain_behind_seconds").await, metric("hundi_chain_in_trouble").await],
        [behind, 0]
    );
    // What the alert rules compare with.
    let lag_alarm_seconds = stage.followed_chain().settings.lag_alarm_seconds;
    assert_eq!(
        [metric("hundi_chain_lag_alarm_seconds").await, metric("hundi_chain_nodes").await],
        [lag_alarm_seconds, 1]
    );

    stage.proxy().change(|faults| faults.is_dropping_connections = true);
    stage.trouble().await;
    stage.advance_seconds(1_000);
    let (height, behind) = (stage.height(), behind + 1_000);
    assert!(
        page("/readyz")
            .await
            .contains(&format!("block {height}, {behind} s behind, in trouble: see the log\n"))
    );
    let told = chain().await;
    assert_eq!(
        [&told["status"], &told["block_number"], &told["seconds_behind"]],
        [&json!("behind"), &json!(height), &json!(behind)]
    );
    assert_eq!(
        [metric("hundi_chain_behind_seconds").await, metric("hundi_chain_in_trouble").await],
        [behind, 1]
    );
    assert_eq!(stage.client.get("/readyz").await.status, 200, "requests can still be answered");

    stage.proxy().heal();
    stage.mine(1).await;
    stage.no_trouble().await;
    assert_eq!(metric("hundi_chain_in_trouble").await, 0);

    // A node that follows no more knows nothing of it, and alarms nobody.
    stage.stop();
    let stats = &stage.followed_chain().stats;
    eventually("the follower to end", async || {
        (!stats.is_followed.load(Ordering::Relaxed)).then_some(())
    })
    .await;
    let page = hundi::pages::metrics_page(&stage.app.state).await;
    for name in [
        "hundi_chain_height",
        "hundi_chain_final_height",
        "hundi_chain_behind_seconds",
        "hundi_chain_lag_alarm_seconds",
        "hundi_chain_in_trouble",
        "hundi_chain_nodes",
    ] {
        assert!(
            !page.lines().any(|line| line.starts_with(&format!("{name}{{"))),
            "{name} is still told"
        );
    }
}

#[tokio::test]
async fn a_poison_block_is_not_skipped_and_what_is_before_it_is_read() {
    let stage = Stage::set().await;
    let place = pay(&stage, |stage, place| {
        stage.proxy().change(|faults| faults.poison = Blocks::only([place.block]))
    })
    .await;
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
    let place = pay(&stage, |stage, place| {
        stage.proxy().change(|faults| faults.failed = [place.paid].into())
    })
    .await;
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
        ("another branch", |faults, place| {
            faults.fork = Some(Fork { blocks: place.block - 5..=u64::MAX, mark: 7 })
        }),
        ("a failed transaction", |faults, place| faults.failed = [place.paid].into()),
        ("other times", |faults, place| {
            faults.time_shift = Some((Blocks::Range(place.block - 5..=u64::MAX), 60))
        }),
        ("an invented log with nothing behind it", |faults, place| {
            faults.invented = vec![place.invented.clone()]
        }),
    ];
    let count = cases.len();
    for (number, (name, plant)) in cases.into_iter().enumerate() {
        let place = pay(&stage, |stage, place| {
            stage.proxies[number % 2].change(|faults| plant(faults, place))
        })
        .await;
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

/// What a single node can hide: one log of a block of which it shows others. It is found where
/// something else of the block is ours, and in every hundredth block; elsewhere only a second node
/// finds it.
#[tokio::test]
async fn one_log_short_is_found_beside_another_deposit_and_in_the_sample() {
    let stage = Stage::set().await;
    // Beside another deposit.
    let other = stage.transfer("100.00").await;
    stage.token.transfer(address(&other), 100_000_000).await;
    let place = pay(&stage, |stage, place| {
        stage.proxy().change(|faults| faults.short = [(place.paid, 1)].into())
    })
    .await;
    stage.trouble().await;
    assert!(stage.height() < place.block as i64);
    stage.proxy().heal();
    stage.followed().await;
    stage.verify().await;

    // In the sample.
    let to_sample = 99 - stage.chain.head().await % 100;
    stage.mine(to_sample).await;
    let place = pay(&stage, |stage, place| {
        stage.proxy().change(|faults| faults.short = [(place.paid, 0)].into())
    })
    .await;
    assert_eq!(place.block % 100, 0);
    stage.trouble().await;
    stage.proxy().heal();
    stage.followed().await;
    assert_eq!(stage.verify().await.deposits, 3);

    // Elsewhere it is not, and the oracle shows that it would be missed.
    pay(&stage, |stage, place| {
        stage.proxy().change(|faults| faults.short = [(place.paid, 0)].into())
    })
    .await;
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
        (
            "the chain",
            with("HUNDI_TEST_CHAIN_CHAIN_ID", "1"),
            Some("belongs to chain 728126428 and not to chain 1"),
        ),
        ("the decimals", with("HUNDI_TEST_CHAIN_DECIMALS", "18"), Some("has 6 decimals")),
        (
            "no contract",
            with("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &nobody(3).to_string()),
            Some("has none decimals"),
        ),
        ("nothing", right.clone(), None),
    ];
    for (name, variables, message) in cases {
        let folder = Folder::new();
        let app = hundi::app::App::open(&config(&folder.database(), &variables), Clock::System)
            .await
            .unwrap();
        let checked = app.check_chains().await;
        match message {
            Some(message) => assert!(
                checked.as_ref().is_err_and(|told| told.contains(message)),
                "{name}: {checked:?}"
            ),
            None => assert_eq!(checked, Ok(()), "{name}"),
        }
        app.state.store.close().await;
    }
    // A token whose owner has handed it over.
    token.deprecate(nobody(4)).await;
    chain.mine(1).await;
    let folder = Folder::new();
    let app =
        hundi::app::App::open(&config(&folder.database(), &right), Clock::System).await.unwrap();
    assert!(app.check_chains().await.is_err_and(|told| told.contains("is deprecated")));
    app.state.store.close().await;
}

/// The service itself does not start before a wrong chain, and with a node whose final view cannot
/// be asked for it takes no transfers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_starts_only_before_its_own_chain() {
    let setup = Setup { chain: Process::chain_now(), ..Setup::default() };
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    proxy.change(|faults| faults.chain_id = Some(5));
    let mut home = Home::new("chain-wrong");
    set_variables(&mut home, &[proxy.url()], &token, &setup);
    let started = tokio::task::block_in_place(|| home.try_start(&[], "127.0.0.1:0"));
    assert!(started.is_err_and(|told| told.starts_with("it ended with exit status: 1")));
    assert!(home.log().contains("belongs to chain 5 and not to chain 728126428"), "{}", home.log());

    proxy.change(|faults| {
        *faults = Faults { is_finalized_refused: true, is_solid_missing: true, ..Faults::default() }
    });
    let process = Process::start(&[proxy.url()], &token, &setup, None).await;
    process.caller.expect_no_transfer("100.00").await;
    proxy.heal();
    let transfer = process.caller.transfer("100.00").await;
    token.transfer(address(&transfer), 100_000_000).await;
    chain.mine(1 + FINALITY_BLOCKS).await;
    process.followed_to(chain.finalized().await as i64).await;
    assert_eq!(process.faults(&chain, &token).await.1, Vec::<String>::new());
}

/// A chain whose addresses are hexadecimal, with a gateway that wants a key.
#[tokio::test]
async fn another_chain_is_a_matter_of_names() {
    let setup = Setup {
        name: "polygon",
        others: 1,
        more: vec![
            ("HUNDI_TEST_CHAIN_API_KEY", "the-gateway-s"),
            ("HUNDI_TEST_CHAIN_API_KEY_HEADER", "x-gateway-key"),
        ],
        ..Setup::default()
    };
    let stage = Stage::set_with(setup).await;
    let back = format!("0x{}", hundi::kernel::hex::encode(nobody(77).as_evm()));
    let transfer = stage.caller.transfer_with("100.00", json!({"refund_address": back})).await;
    assert!(
        transfer["funding"]["deposit_address"].as_str().unwrap().starts_with("0x"),
        "{transfer}"
    );
    let paid = stage.token.transfer(address(&transfer), 105_000_000).await;
    stage.others[0].1.transfer(address(&transfer), 7).await;
    stage.settle().await;
    stage.awaits(&transfer, "payout_settled").await;
    let deposits = stage.deposits(&transfer).await;
    assert_eq!((deposits.len(), &deposits[0]["transaction_hash"]), (2, &json!(paid.to_string())));
    assert!(
        paid.to_string().starts_with("0x")
            && deposits[0]["from_address"].as_str().unwrap().starts_with("0x")
    );
    let refund = stage.refunds(&transfer).await.remove(0);
    assert_eq!(
        (refund["chain"].as_str(), refund["to_address"].as_str().map(str::to_lowercase)),
        (Some("polygon"), Some(back))
    );
    let compared = stage.verify().await;
    assert_eq!((compared.deposits, compared.unsupported), (1, 1));
    let asked = hundi::chain_following::audit::AuditExtent::default();
    let told = hundi::chain_following::audit::run_once(
        &stage.app.state.store,
        stage.followed_chain(),
        asked,
    )
    .await
    .unwrap();
    assert_eq!(
        (told.movements_count, told.expected, told.balance.units),
        (1, told.balance, 105_000_000)
    );
    let keys = stage.proxy().header_seen("x-gateway-key");
    assert!(keys.len() > 20, "{keys:?}");
    assert!(keys.iter().all(|key| key.as_deref() == Some("the-gateway-s")), "{keys:?}");

    // It has no interface of TRON's, so nothing but the tag says what is final.
    stage.proxy().change(|faults| faults.is_finalized_refused = true);
    stage.trouble().await;
    assert_eq!(stage.proxy().calls("/walletsolidity/getnowblock"), 0);
}

/// TRON's own interface, which a node without the tag `finalized` is asked at, gets the key too.
#[tokio::test]
async fn the_key_of_a_gateway_goes_to_each_of_its_paths() {
    let more = vec![
        ("HUNDI_TEST_CHAIN_API_KEY", "the-gateway-s"),
        ("HUNDI_TEST_CHAIN_API_KEY_HEADER", "x-gateway-key"),
    ];
    let stage = Stage::set_with(Setup { more, ..Setup::default() }).await;
    stage.proxy().change(|faults| faults.is_finalized_refused = true);
    stage.settle().await;
    assert!(stage.proxy().calls("/walletsolidity/getnowblock") > 0);
    let keys = stage.proxy().header_seen("x-gateway-key");
    assert!(keys.iter().all(|key| key.as_deref() == Some("the-gateway-s")), "{keys:?}");
}

/// A node that could not be asked at the start is not listened to before it was.
#[tokio::test]
async fn a_second_node_of_another_chain_is_left_out() {
    let stage = Stage::set_with(Setup { proxies: 2, ..Setup::default() }).await;
    let folder = Folder::new();
    let urls: Vec<String> = stage.proxies.iter().map(Proxy::url).collect();
    stage.proxies[1].change(|faults| faults.is_dropping_connections = true);
    let app = hundi::app::App::open(
        &config(&folder.database(), &variables(&urls, &stage.token, &stage.setup)),
        Clock::System,
    )
    .await
    .unwrap();
    app.check_chains().await.unwrap();
    stage.proxies[1].change(|faults| *faults = Faults { chain_id: Some(5), ..Faults::default() });
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let following = tokio::spawn(hundi::chain_following::follow::run(
        app.state.clone(),
        app.state.chains[0].clone(),
        stopping,
    ));
    stage.proxies[1].await_calls("eth_chainId", stage.proxies[1].calls("eth_chainId") + 1).await;
    stage.mine(30).await;
    let to = stage.chain.finalized().await as i64;
    let stats = &app.state.chains[0].stats;
    eventually("the first node to be followed", async || {
        (stats.height.load(std::sync::atomic::Ordering::Relaxed) >= to).then_some(())
    })
    .await;
    assert!(!app.state.chains[0].nodes[1].fits() && app.state.chains[0].nodes[0].fits());
    stop.send(true).unwrap();
    following.await.unwrap();
    app.state.store.close().await;
}

/// Endpoints on one host have the same label in the log, because a path may hold a key. Each of
/// them is logged, by its place in the settings.
#[tokio::test]
async fn each_endpoint_of_one_host_is_logged_without_its_path() {
    let stage = Stage::set().await;
    let folder = Folder::new();
    let host = stage.proxy().url().replace("/jsonrpc", "");
    let urls =
        [stage.proxy().url(), format!("{host}/secret-of-two"), format!("{host}/secret-of-three")];
    let app = hundi::app::App::open(
        &config(&folder.database(), &variables(&urls, &stage.token, &stage.setup)),
        Clock::System,
    )
    .await
    .unwrap();
    let log = folder.0.join("log");
    let file = std::sync::Mutex::new(std::fs::File::create(&log).unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(file).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let following = tokio::spawn(hundi::chain_following::follow::run(
        app.state.clone(),
        app.state.chains[0].clone(),
        stopping,
    ));
    let text = eventually("both endpoints to be logged", async || {
        let text = std::fs::read_to_string(&log).unwrap();
        let is_told = |endpoint: &str| {
            text.lines()
                .any(|line| line.contains("a node cannot be used now") && line.contains(endpoint))
        };
        (is_told("endpoint=2 ") && is_told("endpoint=3 ")).then_some(text)
    })
    .await;
    assert!(!text.contains("secret"), "{text}");
    stop.send(true).unwrap();
    following.await.unwrap();
    app.state.store.close().await;
}

/// One deposit in time and too small, the next one late: whether a node was away meanwhile changes
/// nothing of what follows.
#[tokio::test]
async fn a_hold_has_the_same_reason_whether_deposits_are_read_apart_or_together() {
    for policy in ["hold", "refund"] {
        let mut outcomes = Vec::new();
        for is_together in [false, true] {
            let stage = Stage::set().await;
            let leg = json!({"refund_address": nobody(77).to_string(),
                "policy": {"underpaid": policy, "late": "hold"}});
            let transfer = stage.caller.transfer_with("100.00", leg).await;
            let expires_at = transfer["funding"]["expires_at"].as_i64().unwrap();
            stage.token.transfer(address(&transfer), 40_000_000).await;
            if is_together {
                stage.proxy().change(|faults| faults.is_dropping_connections = true);
            }
            stage.mine(1).await;
            stage.mine_at(expires_at + 3).await;
            stage.mine(FINALITY_BLOCKS).await;
            if !is_together {
                stage.followed().await;
                let held = if policy == "hold" { "funding_hold" } else { "refund_processing" };
                stage.awaits(&transfer, held).await;
            }
            stage.token.transfer(address(&transfer), 60_000_000).await;
            stage.mine(1 + FINALITY_BLOCKS).await;
            stage.proxy().heal();
            stage.followed().await;
            let deposits = stage
                .awaits_deposits(&transfer, |all| {
                    all.len() == 2 && all.iter().all(|one| one["status"] == "completed")
                })
                .await;
            assert!(
                deposits.iter().all(|one| one["confirmations"].as_u64() > Some(FINALITY_BLOCKS)),
                "confirmations count from the head: {deposits:?}"
            );
            let shown = stage.shown(&transfer).await;
            let classes: Vec<_> =
                deposits.iter().map(|one| one["classification"].clone()).collect();
            outcomes.push((
                shown["status"].clone(),
                shown["status_reason"].clone(),
                shown["funding"]["amount_received"].clone(),
                classes,
            ));
        }
        assert_eq!(outcomes[0], outcomes[1], "{policy}");
    }
}

/// After a start with all nodes away the stored cursor shows, so that monitoring sees how far
/// behind the service is.
#[tokio::test]
async fn the_stored_cursor_shows_while_no_node_answers() {
    let stage = Stage::set().await;
    stage.settle().await;
    let height = stage.height();
    stage.proxy().change(|faults| faults.is_dropping_connections = true);
    let second = stage.follow_twice().await;
    eventually("the stored cursor", async || {
        (second.stats.height.load(Ordering::Relaxed) == height).then_some(())
    })
    .await;
    let figures = second.figures(stage.now());
    assert_eq!(figures.height, Some(height));
    assert!(figures.behind_seconds.is_some());
}
