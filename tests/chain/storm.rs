//! Everything together, at random: money, reorganisations above the final view, faults of two
//! nodes, restarts, sweeps. In the end the chain and the book say the same. `HUNDI_CHAIN_ROUNDS`
//! makes it longer, `HUNDI_CHAIN_SEED` repeats a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::anvil::{FINALITY_BLOCKS, HOLDING_UNITS, Kept};
use crate::binary::{Random, random};
use crate::proxy::{Blocks, Faults, Fork, Garbage};
use crate::service::{Setup, Stage, address};
use crate::wire::{address_of, nobody};

const TRANSFERS: usize = 16;

/// Replaces some blocks above the final view and above `floor`. Of each sender's transactions the
/// first ones are kept, the same or later ones.
async fn reorganise(stage: &Stage, random: &mut Random, floor: u64) {
    let head = stage.chain.head().await;
    let depth = random.between(1, 9).min(head - floor);
    if depth == 0 {
        return;
    }
    let first = head - depth + 1;
    let mut by_sender: BTreeMap<[u8; 20], (bool, u64)> = BTreeMap::new();
    let mut kept = Vec::new();
    for offset in 0..depth {
        for hash in stage.chain.block(first + offset).await.expect("a block").transactions {
            let found =
                stage.chain.rpc("eth_getTransactionByHash", json!([hash.to_string()])).await;
            let (is_kept, at_least) =
                by_sender.entry(*address_of(&found["from"]).as_evm()).or_insert((true, 0));
            *is_kept &= random.chance(80);
            if *is_kept {
                *at_least = random
                    .between(*at_least, depth - 1)
                    .min((*at_least).max(offset + 1))
                    .min(depth - 1);
                kept.push(Kept::at(hash, *at_least));
            }
        }
    }
    kept.sort_by_key(|kept| kept.offset);
    stage.chain.reorg(depth, &kept).await;
}

fn fault(random: &mut Random, head: u64, followed: u64) -> Faults {
    let mut faults = Faults::default();
    match random.below(14) {
        0 => faults.logs_hidden = Blocks::All,
        1 => faults.logs_hidden = Blocks::only([head, head + 1, head + 2]),
        2 => faults.poison = Blocks::only([head + 1]),
        3 => faults.behind_blocks = random.between(1, 40),
        4 => (faults.behind_blocks, faults.behind_methods) = (30, Some(["eth_getLogs"].into())),
        5 => {
            (faults.behind_blocks, faults.behind_methods) =
                (5, Some(["eth_getBlockByNumber"].into()))
        }
        6 => faults.is_overloaded = true,
        7 => faults.is_dropping_connections = true,
        8 => {
            faults.garbage = Some(*random.pick(&[
                Garbage::Page,
                Garbage::Truncated,
                Garbage::OtherIds,
                Garbage::WrongTypes,
                Garbage::Empty,
            ]))
        }
        9 => (faults.is_finalized_refused, faults.is_receipts_missing) = (true, true),
        10 => {
            (faults.range_blocks_max, faults.results_max, faults.batch_calls_max) =
                (Some(2), Some(6), Some(2))
        }
        // One that begins above the cursor is believed while the other node rests: a branch like
        // any other to whoever has one node.
        11 => {
            faults.fork = Some(Fork {
                blocks: followed.saturating_sub(random.between(0, 9))..=u64::MAX,
                mark: 9,
            })
        }
        12 => faults.delay = Duration::from_millis(40),
        _ => faults.finality_behind_blocks = random.between(1, 30),
    }
    faults
}

#[tokio::test]
async fn whatever_happens_the_book_says_what_the_chain_says() {
    let seed = match std::env::var("HUNDI_CHAIN_SEED") {
        Ok(_) => random::seed("HUNDI_CHAIN_SEED"),
        Err(_) => random::fresh_seed(),
    };
    eprintln!("HUNDI_CHAIN_SEED={seed}");
    let mut random = Random::new(seed);
    let stage = Stage::set_with(Setup {
        proxies: 2,
        funding_seconds: 86_400,
        blocks_at_once: 7,
        ..Setup::default()
    })
    .await;
    let mut open: Vec<Value> = Vec::new();
    for _ in 0..TRANSFERS {
        open.push(stage.transfer("1000.00").await);
    }
    let mut bad: Option<usize> = None;
    let mut floor = stage.chain.head().await;
    for _ in 0..random::number("HUNDI_CHAIN_ROUNDS", 100) {
        for _ in 0..random.below(4) {
            let to = address(random.pick(&open));
            let units = random.between(1, 400_000_000);
            match random.below(8) {
                0 => drop(
                    stage
                        .token
                        .transfer_many(&[
                            (to, units),
                            (address(random.pick(&open)), 7),
                            (to, units),
                        ])
                        .await,
                ),
                1 => drop(stage.token.transfer_reverted(to, units).await),
                2 => drop(
                    stage
                        .token
                        .transfer_nothing_as_stranger(nobody(1), stage.chain.account(9), to)
                        .await,
                ),
                // A sweep, where there is something to sweep.
                3 => drop(
                    stage
                        .token
                        .transfer_from(
                            to,
                            address(random.pick(&open)),
                            random.between(1, 1_000_000),
                        )
                        .await,
                ),
                // More than the account has: it fails.
                4 => drop(
                    stage.token.transfer_from(stage.chain.account(8), to, HOLDING_UNITS + 1).await,
                ),
                sender => {
                    let _ = stage.token.transfer_from(stage.chain.account(sender), to, units).await;
                }
            }
        }
        stage.mine(random.between(1, 3)).await;
        match random.below(10) {
            0 | 1 => reorganise(&stage, &mut random, floor).await,
            2 if random.chance(20) => {
                stage.chain.restart().await;
                // The node has no states from before its restart to go back to.
                floor = stage.chain.head().await;
            }
            3 | 4 => {
                // One node at a time: two that tell the same lie are believed.
                if let Some(healed) = bad.take() {
                    stage.proxies[healed].heal();
                    // Else it would spend the rest of the run waiting ever longer.
                    if random.chance(70) {
                        stage.no_trouble().await;
                    }
                } else {
                    let place = random.below(2);
                    let planted =
                        fault(&mut random, stage.chain.head().await, stage.height() as u64);
                    tracing::info!(place, ?planted, "a fault");
                    stage.proxies[place].change(|faults| *faults = planted);
                    bad = Some(place);
                }
            }
            _ => {}
        }
        // A service that stands still asks more and more seldom.
        if random.chance(60) && !stage.is_in_trouble() {
            let requests = || stage.proxies[0].requests() + stage.proxies[1].requests();
            let before = requests();
            crate::service::eventually("a few requests", async || {
                (requests() > before + 3 || stage.is_in_trouble()).then_some(())
            })
            .await;
        }
    }
    for proxy in &stage.proxies {
        proxy.heal();
    }
    stage.mine(1 + FINALITY_BLOCKS).await;
    stage.followed().await;
    stage.no_trouble().await;
    let compared = stage.verify().await;
    let doubts = stage.followed_chain().stats.doubts.load(std::sync::atomic::Ordering::Relaxed);
    eprintln!("{compared:?}, {doubts} doubts, {} blocks", stage.height());
    assert!(compared.deposits > 0);
}
