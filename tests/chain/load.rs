//! Much at once: a long way to catch up, many open addresses in full blocks, and two followers on
//! one cursor.

use std::sync::atomic::Ordering;
use std::time::Instant;

use hundi::chains::address::ChainAddress;
use hundi::chains::tron_address::TronAddress;
use hundi::kernel::id::kind;
use hundi::kernel::{Id, Mode, Scope};
use hundi::transfers::state::TransferStatus;
use hundi::{deposits, events, transfers};
use serde_json::Value;

use crate::anvil::FINALITY_BLOCKS;
use crate::service::{Setup, Stage, address, eventually};
use crate::wire::nobody;

/// Blocks of the way to catch up.
const BEHIND_BLOCKS: u64 = 5_000;
const ADDRESSES: u64 = 10_000;
const FULL_BLOCKS: u64 = 24;
/// Transfers in a full block, half of them ours.
const FULL_BLOCK_TRANSFERS: u64 = 80;

#[tokio::test]
async fn five_thousand_blocks_are_caught_up() {
    let stage = Stage::set_with(Setup { funding_seconds: 86_400, ..Setup::default() }).await;
    let first = stage.transfer("100.00").await;
    let last = stage.transfer("100.00").await;
    // Nothing is read until the whole way is there.
    let mut held = stage.proxy().hold("eth_getBlockByNumber");
    held.arrived().await;
    stage.token.transfer(address(&first), 40_000_000).await;
    stage.chain.mine(BEHIND_BLOCKS / 2).await;
    stage.token.transfer(address(&first), 60_000_000).await;
    stage.chain.mine(BEHIND_BLOCKS / 2 - 1).await;
    stage.token.transfer(address(&last), 100_000_000).await;
    stage.mine(1 + FINALITY_BLOCKS).await;
    let from = stage.height();
    held.release();
    let started = Instant::now();
    stage.followed().await;
    let blocks = stage.height() - from;
    eprintln!(
        "{blocks} blocks were caught up in {:?}, with {} requests",
        started.elapsed(),
        stage.proxy().requests()
    );
    assert!(blocks > BEHIND_BLOCKS as i64);
    for transfer in [&first, &last] {
        stage.awaits(transfer, "payout_settled").await;
    }
    assert_eq!(stage.verify().await.deposits, 3);
    assert!(!stage.is_in_trouble());
}

/// Copies of an open transfer, each with an address of its own.
async fn open_many(stage: &Stage, like: &Value) -> Vec<TronAddress> {
    let like: Id<kind::Transfer> = Id::parse(like["id"].as_str().unwrap()).unwrap();
    let scope = Scope::new(1, Mode::Test);
    let addresses: Vec<TronAddress> =
        (0..ADDRESSES).map(|number| nobody(1 << 40 | number)).collect();
    // As the pool does with each that it hands out.
    addresses
        .iter()
        .for_each(|address| stage.app.state.services.test.addresses.watched.add(&address.bytes()));
    for part in addresses.chunks(500) {
        let part = part.to_vec();
        let made = stage.app.state.store.write(move |tx, now| {
            let like = transfers::rows::find(tx, scope, like)?.expect("a transfer");
            for address in &part {
                let copy = transfers::Transfer {
                    id: now.mint(),
                    quote_lock_id: now.mint(),
                    deposit_address: ChainAddress::of_chain("tron", address.bytes()),
                    ..like.clone()
                };
                transfers::rows::insert(tx, &copy)?;
                events::emit_status(tx, now, scope, TransferStatus::Funding, copy.id.any())?;
                deposits::rows::assign_address(tx, scope, copy.id, &address.bytes())?;
            }
            Ok(())
        });
        made.await.expect("copies of a transfer");
    }
    addresses
}

#[tokio::test]
async fn ten_thousand_open_addresses_in_full_blocks() {
    let stage = Stage::set_with(Setup { funding_seconds: 86_400, ..Setup::default() }).await;
    let like = stage.transfer("100.00").await;
    let addresses = open_many(&stage, &like).await;
    let started = Instant::now();
    let mut number = 0;
    for _ in 0..FULL_BLOCKS {
        // Ten transactions of eight transfers, every other one to us; most are a part of what is
        // expected.
        for _ in 0..FULL_BLOCK_TRANSFERS / 8 {
            let mut transfers = Vec::new();
            for place in 0..8 {
                number += 1;
                let ours = addresses[(number * 7_919 % ADDRESSES) as usize];
                let units = if number % 16 == 1 { 100_000_000 } else { 1_000_000 + number };
                transfers.push(if place % 2 == 0 {
                    (ours, units)
                } else {
                    (nobody(number), number)
                });
            }
            stage.token.transfer_many(&transfers).await;
        }
        stage.chain.mine(1).await;
    }
    let sent = started.elapsed();
    stage.mine(FINALITY_BLOCKS + 1).await;
    let started = Instant::now();
    stage.followed().await;
    let followed = started.elapsed();
    let compared = stage.verify().await;
    eprintln!(
        "{} deposits of {number} transfers in {FULL_BLOCKS} blocks to {ADDRESSES} open addresses: \
         sent in {sent:?}, followed in {followed:?}, \
         compared in {:?}",
        compared.deposits,
        started.elapsed() - followed
    );
    assert_eq!(compared.deposits as u64, FULL_BLOCKS * FULL_BLOCK_TRANSFERS / 2);
}

#[tokio::test]
async fn two_followers_share_one_cursor() {
    let stage =
        Stage::set_with(Setup { funding_seconds: 86_400, blocks_at_once: 2, ..Setup::default() })
            .await;
    let second = stage.follow_twice().await;
    let mut open = Vec::new();
    for _ in 0..12 {
        open.push(stage.transfer("1000.00").await);
    }
    let mut count = 0;
    for round in 0..25 {
        for transfer in &open[round % 6..round % 6 + 6] {
            stage.token.transfer(address(transfer), 10_000_000 + round as u64).await;
            count += 1;
        }
        stage.mine(3).await;
    }
    stage.settle().await;
    eventually("the second follower", async || {
        (second.stats.height.load(Ordering::Relaxed) >= stage.height()).then_some(())
    })
    .await;
    assert_eq!(stage.verify().await.deposits, count);
    let taken = [&stage.followed_chain().stats, &second.stats]
        .map(|stats| stats.deposits.load(Ordering::Relaxed));
    assert_eq!(taken[0] + taken[1], count as u64, "each was taken over once: {taken:?}");
    assert!(!stage.is_in_trouble() && !second.stats.is_in_trouble.load(Ordering::Relaxed));
}
