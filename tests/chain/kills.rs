//! kill -9 while the chain is followed, and the proof that the oracle would notice a follower that
//! loses or skips something.

use std::time::Duration;

use crate::anvil::FINALITY_BLOCKS;
use crate::binary::{Random, random::fresh_seed};
use crate::proxy::{Blocks, Proxy};
use crate::service::{Process, Setup, address, chain_with_token, eventually};
use crate::wire::nobody;

/// Addresses that the stream of deposits goes to.
const TRANSFERS: usize = 24;

fn kills_count() -> usize {
    std::env::var("HUNDI_CHAIN_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(20)
}

/// Kills the service again and again while it follows a stream of deposits; answers what the oracle
/// finds in the end.
async fn killed(kills: usize, fault: Option<&str>) -> (usize, Vec<String>) {
    let seed = fresh_seed();
    eprintln!("seed {seed}");
    let mut random = Random::new(seed);
    let blocks = (kills as u64 + 1) * (6 + FINALITY_BLOCKS);
    let setup = Setup {
        funding_seconds: 86_400,
        blocks_at_once: 3,
        chain: Process::chain_before(blocks),
        ..Setup::default()
    };
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let mut process = Process::start(&[chain.url()], &token, &setup, fault).await;
    let mut addresses = Vec::new();
    for _ in 0..TRANSFERS {
        addresses.push(address(&process.caller.transfer("1000.00").await));
    }
    for _ in 0..kills {
        for _ in 0..6 {
            let to = *random.pick(&addresses);
            token.transfer(to, random.between(1_000_000, 400_000_000)).await;
            if random.chance(33) {
                let both = [(to, 5), (nobody(1), 6), (*random.pick(&addresses), 7)];
                token.transfer_many(&both).await;
            }
            chain.mine(1).await;
        }
        // Somewhere in the middle of what it is about to read; a follower that is quick may be
        // through before somebody looks.
        let height = process.height();
        chain.mine(FINALITY_BLOCKS).await;
        eventually("some progress", async || (process.height() > height).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(random.between(0, 40))).await;
        process.kill();
        process.resume();
    }
    chain.mine(FINALITY_BLOCKS + 1).await;
    process.followed_to(chain.finalized().await as i64).await;
    let (compared, mut faults) = process.faults(&chain, &token).await;
    faults.extend(process.home.panics());
    (compared.deposits, faults)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_counted_twice_however_often_it_is_killed() {
    let kills = kills_count();
    let (deposits, faults) = killed(kills, None).await;
    assert!(
        faults.is_empty(),
        "{} faults, such as\n{}",
        faults.len(),
        faults[..faults.len().min(12)].join("\n")
    );
    assert!(deposits >= kills * 6);
    eprintln!("{kills} kills, {deposits} deposits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_moves_its_cursor_first_is_found_out() {
    // A kill has to fall between two commits, which a few may miss.
    const TRIES_MAX: usize = 8;
    for _ in 0..TRIES_MAX {
        let (_, faults) = killed(8, Some("cursor_before_deposits")).await;
        if faults.iter().any(|fault| fault.starts_with("a deposit is missing")) {
            return;
        }
    }
    panic!("{TRIES_MAX} times 8 kills found nothing");
}

/// A node whose index has a hole, and that is overloaded later. Answers what the oracle finds after
/// both have healed.
async fn troubled(fault: Option<&str>) -> Vec<String> {
    let setup = Setup { funding_seconds: 86_400, chain: Process::chain_now(), ..Setup::default() };
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let process = Process::start(&[proxy.url()], &token, &setup, fault).await;
    let [hidden, unread] = [
        address(&process.caller.transfer("100.00").await),
        address(&process.caller.transfer("100.00").await),
    ];
    process.followed_to(chain.finalized().await as i64).await;

    let hole = chain.head().await + 1;
    proxy.change(|faults| faults.logs_hidden = Blocks::only([hole]));
    token.transfer(hidden, 100_000_000).await;
    chain.mine(FINALITY_BLOCKS + 1).await;
    if fault.is_some() {
        process.followed_to(hole as i64).await;
    } else {
        // It asks for the block as a whole, and does not go on.
        proxy.await_calls("eth_getBlockReceipts", 2).await;
    }
    proxy.heal();
    process.followed_to(chain.finalized().await as i64).await;

    proxy.forget_calls();
    proxy.change(|faults| faults.is_overloaded = true);
    token.transfer(unread, 100_000_000).await;
    chain.mine(FINALITY_BLOCKS + 1).await;
    proxy.await_calls("eth_getBlockByNumber", 2).await;
    proxy.heal();
    process.followed_to(chain.finalized().await as i64).await;
    process.faults(&chain, &token).await.1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hole_and_an_overload_lose_nothing() {
    assert_eq!(troubled(None).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_trusts_empty_answers_is_found_out() {
    let faults = troubled(Some("trust_empty_answers")).await;
    assert!(faults.len() == 1 && faults[0].starts_with("a deposit is missing"), "{faults:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_jumps_to_the_head_is_found_out() {
    let faults = troubled(Some("jump_to_head")).await;
    assert!(
        !faults.is_empty() && faults.iter().all(|fault| fault.starts_with("a deposit is missing")),
        "{faults:?}"
    );
}
