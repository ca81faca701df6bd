//! Whether to believe a node. Pure: each function judges a node's answer and returns what can be
//! relied on, or the doubt.
//!
//! Nodes fail most often with an empty or short answer, for example because their index of logs has
//! a hole or because they are behind. So a block of the final view never counts as empty only
//! because a filter showed nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::address_bytes::AddressBytes;
use super::blocks::{Hash, Header, Log, LogContent, Receipt};
use super::port::{BlockRange, FinalBlock};

/// Why an answer is not believed. Nothing of such an answer is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    #[error("the node does not have block {0} that it should have")]
    Stale(i64),
    #[error(
        "block {0} does not continue the chain that was followed: a wrong or forked node, or a \
         final block was replaced"
    )]
    WrongFork(i64),
    #[error("block {0} has token movements that the filter did not show")]
    Hole(i64),
    #[error("a log of block {0} contradicts itself or its block")]
    BadLog(i64),
    #[error("two nodes disagree about the blocks {0} to {1}")]
    Disagreement(i64, i64),
    #[error("the receipts of block {0} are not complete")]
    ReceiptsMissing(i64),
    #[error(
        "block {0} has an impossible time: before the block that it follows, or ahead of the \
         service's clock"
    )]
    WrongTime(i64),
}

/// How far a block may be ahead of the store's clock. Producers' clocks agree within a few seconds;
/// the store's clock can be wrong.
pub const AHEAD_SECONDS_MAX: i64 = 300;
/// A node is far behind only if its final block is more than this many seconds older than the
/// highest final block of all nodes. If `finality_blocks` knows how many blocks the chain has above
/// its final one, this condition is enough: of a node that is followed alone on such a chain, the
/// newest blocks are not believed.
pub const BEHIND_SECONDS_MAX: i64 = 600;
/// On any other chain, a node is far behind only if its final block is also older than this by the
/// store's clock. Otherwise a node that calls its newest block final would leave all others far
/// behind, and would be followed alone: honest final blocks are 13 to 19 minutes old on Ethereum,
/// and older on layer-2 chains that build on it.
pub const FINAL_AGE_SECONDS_MAX: i64 = 3_600;

/// What tells whether a node is far behind.
#[derive(Clone, Copy, Debug)]
pub struct BehindRule {
    /// The present by the store's clock, in Unix seconds.
    pub now: i64,
    /// Whether `finality_blocks` knows how many blocks the chain has above its final one.
    pub is_depth_known: bool,
}

impl BehindRule {
    /// Whether a node is far behind. `time` is that of its final block, and `highest_time` that of
    /// the highest final block of all nodes.
    pub const fn is_far_behind(self, highest_time: i64, time: i64) -> bool {
        highest_time - time > BEHIND_SECONDS_MAX
            && (self.is_depth_known || self.now - time > FINAL_AGE_SECONDS_MAX)
    }
}

/// Up to where the final view is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalView {
    pub height: i64,
    /// Whether a second node calls that block final too.
    pub is_checked: bool,
}

/// The final view, from the block that each node calls final. It ends with the highest block that
/// two nodes call final. One node is believed alone if no other answers, or if all others are far
/// behind it. `None` if there is no block.
pub fn final_view<'a>(
    blocks: impl IntoIterator<Item = &'a FinalBlock>,
    rule: BehindRule,
) -> Option<FinalView> {
    let mut blocks: Vec<&FinalBlock> = blocks.into_iter().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse(block.number));
    match blocks.as_slice() {
        [] => None,
        [first, second, ..] if !rule.is_far_behind(first.time, second.time) => {
            Some(FinalView { height: second.number, is_checked: true })
        }
        [first, ..] => Some(FinalView { height: first.number, is_checked: false }),
    }
}

/// Checks the blocks' times, in Unix seconds: none is before `earliest` or after `latest`, and they
/// do not fall from one of `blocks` to the next.
pub fn check_times<'a>(
    blocks: impl IntoIterator<Item = &'a Header>,
    earliest: i64,
    latest: i64,
) -> Result<(), VerifyError> {
    let mut before = earliest;
    for block in blocks {
        if !(before..=latest).contains(&block.timestamp.0) {
            return Err(VerifyError::WrongTime(block.number.0));
        }
        before = block.timestamp.0;
    }
    Ok(())
}

/// A block up to which the chain was read, or compared with the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub height: i64,
    pub hash: Hash,
}

/// Checks that a range is consistent and continues from the block before it. `contracts` are all
/// watched contracts, and `tokens` are the present and former contracts of the token. Answers the
/// blocks for which the filter showed nothing. The filter may have hidden something there, so the
/// caller has to read these blocks without the filter if they are final.
pub fn check_range(
    before: Anchor,
    to: i64,
    contracts: &[AddressBytes],
    tokens: &[AddressBytes],
    range: &BlockRange,
) -> Result<Vec<i64>, VerifyError> {
    let from = before.height + 1;
    if range.first.number.0 != from || range.last.number.0 != to {
        return Err(VerifyError::Stale(if range.first.number.0 == from { to } else { from }));
    }
    if range.first.parent_hash != before.hash || (from == to && range.first.hash != range.last.hash)
    {
        return Err(VerifyError::WrongFork(from));
    }
    if to == from + 1 && range.last.parent_hash != range.first.hash {
        return Err(VerifyError::WrongFork(to));
    }
    let mut hashes: BTreeMap<i64, Hash> =
        BTreeMap::from([(from, range.first.hash), (to, range.last.hash)]);
    let mut places = BTreeSet::new();
    for log in &range.logs {
        let number = log.block_number.0;
        let is_of_block = (from..=to).contains(&number)
            && *hashes.entry(number).or_insert(log.block_hash) == log.block_hash;
        let is_of_contract = contracts.contains(&log.contract);
        let is_new = places.insert((number, log.log_index.0));
        // A malformed log of another token is no reason to stop: no movement of that token is
        // credited. But a malformed log of the token's contract, or of a former one, may be a
        // deposit.
        let is_readable =
            !log.is_transfer() || log.movement().is_some() || !tokens.contains(&log.contract);
        if log.removed || !is_of_block || !is_of_contract || !is_new || !is_readable {
            return Err(VerifyError::BadLog(number));
        }
    }
    let seen: BTreeSet<i64> = range.logs.iter().map(|log| log.block_number.0).collect();
    Ok((from..=to).filter(|number| !seen.contains(number)).collect())
}

/// The parts of a log that have to be the same on two nodes.
fn essence(log: &Log) -> (i64, i64, Hash, Hash, AddressBytes, &LogContent) {
    (
        log.block_number.0,
        log.log_index.0,
        log.block_hash,
        log.transaction_hash,
        log.contract,
        &log.content,
    )
}

/// Compares a range as two nodes show it. Answers the blocks with different logs: one of the two
/// may have a hole there. `Err` if the nodes differ about the first or last block.
pub fn differences(one: &BlockRange, other: &BlockRange) -> Result<BTreeSet<i64>, VerifyError> {
    if !is_same_block(&one.first, &other.first) || !is_same_block(&one.last, &other.last) {
        return Err(VerifyError::Disagreement(one.first.number.0, one.last.number.0));
    }
    let (one, other): (BTreeSet<_>, BTreeSet<_>) =
        (one.logs.iter().map(essence).collect(), other.logs.iter().map(essence).collect());
    Ok(one.symmetric_difference(&other).map(|(number, ..)| *number).collect())
}

/// Whether two nodes show the same block. The time is compared as well, because it decides whether
/// money came late.
pub fn is_same_block(one: &Header, other: &Header) -> bool {
    (one.number, one.hash, one.timestamp) == (other.number, other.hash, other.timestamp)
}

/// Checks what the filter showed of a block against the block's receipts. Each shown log has to be
/// in them, and each movement or deprecation of the contracts in a successful transaction has to be
/// shown.
pub fn check_whole_block(
    block: &Header,
    receipts: &[Receipt],
    contracts: &[AddressBytes],
    shown: &[&Log],
) -> Result<(), VerifyError> {
    let number = block.number.0;
    let told: BTreeSet<Hash> = receipts.iter().map(|receipt| receipt.transaction_hash).collect();
    let is_whole = block.transactions.iter().all(|transaction| told.contains(transaction));
    if !is_whole || receipts.iter().any(|receipt| receipt.block_hash != block.hash) {
        return Err(VerifyError::ReceiptsMissing(number));
    }
    let places: BTreeSet<i64> = shown.iter().map(|log| log.log_index.0).collect();
    let is_shown = |log: &Log| {
        let is_asked_for =
            (log.is_transfer() || log.is_deprecation()) && contracts.contains(&log.contract);
        !is_asked_for || places.contains(&log.log_index.0)
    };
    if !receipts
        .iter()
        .filter(|receipt| receipt.has_succeeded())
        .flat_map(|receipt| &receipt.logs)
        .all(is_shown)
    {
        return Err(VerifyError::Hole(number));
    }
    // The filter may show a failed transaction's log. If that log concerns our addresses or
    // deprecates the token, `has_happened` finds that it did not happen.
    let received: BTreeMap<i64, &Log> = receipts
        .iter()
        .flat_map(|receipt| &receipt.logs)
        .map(|log| (log.log_index.0, log))
        .collect();
    let was_received = |log: &&Log| {
        received.get(&log.log_index.0).is_some_and(|told| essence(told) == essence(log))
    };
    if shown.iter().all(was_received) { Ok(()) } else { Err(VerifyError::BadLog(number)) }
}

/// Whether a log really happened: `false` if its transaction failed, although the filter showed the
/// log. `Err` if the receipt is missing or contradicts the log.
pub fn has_happened(log: &Log, receipt: Option<&Receipt>) -> Result<bool, VerifyError> {
    let number = log.block_number.0;
    let Some(receipt) = receipt else { return Err(VerifyError::Stale(number)) };
    if receipt.transaction_hash != log.transaction_hash
        || receipt.block_hash != log.block_hash
        || receipt.block_number != log.block_number
    {
        return Err(VerifyError::WrongFork(number));
    }
    if !receipt.has_succeeded() {
        return Ok(false);
    }
    if receipt.logs.iter().any(|told| essence(told) == essence(log)) {
        Ok(true)
    } else {
        Err(VerifyError::BadLog(number))
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::samples::{hash, header};
    use super::super::blocks::{DEPRECATE_TOPIC, Data, Quantity, TRANSFER_TOPIC};
    use super::*;

    const TOKEN: AddressBytes = AddressBytes::of_20([0xA6; 20]);
    const OTHER: AddressBytes = AddressBytes::of_20([7; 20]);

    fn log(number: i64, index: i64) -> Log {
        let mut data = vec![0; 32];
        data[31] = 7;
        Log {
            contract: TOKEN,
            content: LogContent::Evm {
                topics: vec![TRANSFER_TOPIC, hash(1), hash(2)],
                data: Data(data),
            },
            block_number: Quantity(number),
            block_hash: hash(number),
            transaction_hash: hash(number * 1000),
            log_index: Quantity(index),
            removed: false,
        }
    }

    /// The same log with other data.
    fn with_data(data: Vec<u8>, mut log: Log) -> Log {
        let LogContent::Evm { data: told, .. } = &mut log.content else { unreachable!() };
        *told = Data(data);
        log
    }

    /// The same log with other topics.
    fn with_topics(topics: Vec<Hash>, mut log: Log) -> Log {
        let LogContent::Evm { topics: told, .. } = &mut log.content else { unreachable!() };
        *told = topics;
        log
    }

    fn receipt(number: i64, logs: Vec<Log>) -> Receipt {
        Receipt {
            transaction_hash: hash(number * 1000),
            block_hash: hash(number),
            block_number: Quantity(number),
            status: Quantity(1),
            logs,
        }
    }

    fn of(logs: Vec<Log>) -> BlockRange {
        BlockRange { first: header(11), last: header(14), logs }
    }

    const BEFORE: Anchor = Anchor { height: 10, hash: Hash([0; 32]) };

    fn before() -> Anchor {
        Anchor { hash: hash(10), ..BEFORE }
    }

    /// Checks a range in which only the token's contract is watched.
    fn check_token(range: &BlockRange) -> Result<Vec<i64>, VerifyError> {
        check_range(before(), 14, &[TOKEN], &[TOKEN], range)
    }

    #[test]
    fn a_sound_range_names_the_blocks_to_look_at() {
        assert_eq!(check_token(&of(vec![log(11, 0), log(13, 2), log(13, 4)])), Ok(vec![12, 14]));
        assert_eq!(check_token(&of(vec![])), Ok(vec![11, 12, 13, 14]));
    }

    #[test]
    fn every_contradiction_is_a_doubt() {
        type Break = fn(&mut BlockRange);
        let table: [(&str, Break, VerifyError); 12] = [
            (
                "an older first block",
                |range| range.first.number = Quantity(10),
                VerifyError::Stale(11),
            ),
            (
                "an older last block",
                |range| range.last.number = Quantity(13),
                VerifyError::Stale(14),
            ),
            (
                "another parent",
                |range| range.first.parent_hash = hash(99),
                VerifyError::WrongFork(11),
            ),
            ("a removed log", |range| range.logs[0].removed = true, VerifyError::BadLog(12)),
            (
                "a log of another block",
                |range| range.logs[0].block_number = Quantity(15),
                VerifyError::BadLog(15),
            ),
            (
                "a log before the range",
                |range| range.logs[0].block_number = Quantity(10),
                VerifyError::BadLog(10),
            ),
            (
                "two hashes of one block",
                |range| range.logs[1].block_hash = hash(99),
                VerifyError::BadLog(12),
            ),
            (
                "another hash than the last block's",
                |range| range.logs[2].block_hash = hash(99),
                VerifyError::BadLog(14),
            ),
            ("another contract", |range| range.logs[0].contract = OTHER, VerifyError::BadLog(12)),
            ("a log twice", |range| range.logs[1].log_index = Quantity(0), VerifyError::BadLog(12)),
            (
                "a movement that cannot be read",
                |range| range.logs[0] = with_data(vec![1], log(12, 0)),
                VerifyError::BadLog(12),
            ),
            (
                "a movement with too few topics",
                |range| {
                    range.logs[0] = with_topics(vec![TRANSFER_TOPIC, hash(1)], log(12, 0));
                },
                VerifyError::BadLog(12),
            ),
        ];
        let sound = of(vec![log(12, 0), log(12, 1), log(14, 0)]);
        assert!(check_token(&sound).is_ok());
        for (what, break_it, doubt) in table {
            let mut broken = sound.clone();
            break_it(&mut broken);
            assert_eq!(check_token(&broken), Err(doubt), "{what}");
        }
    }

    #[test]
    fn a_malformed_log_of_another_token_stops_nothing() {
        let junk = Log { contract: OTHER, ..with_data(vec![1], log(12, 5)) };
        let contracts = [TOKEN, OTHER];
        let check = |tokens: &[AddressBytes]| {
            check_range(before(), 14, &contracts, tokens, &of(vec![junk.clone()]))
        };
        assert!(check(&[TOKEN]).is_ok());
        // A malformed log of the token's contract stops the range, and so does one of a former
        // contract.
        assert_eq!(check(&[OTHER]), Err(VerifyError::BadLog(12)));
        assert_eq!(check(&[TOKEN, OTHER]), Err(VerifyError::BadLog(12)));
    }

    #[test]
    fn a_movement_too_large_for_the_book_stops_nothing() {
        let huge = with_data(vec![0xFF; 32], log(12, 5));
        assert_eq!(check_token(&of(vec![huge])), Ok(vec![11, 13, 14]));
    }

    #[test]
    fn one_node_that_is_ahead_does_not_overrule_the_others() {
        let block = |number, time| FinalBlock { number, time, header: None };
        // The newest block called final, beside one and two honest nodes of Ethereum, whose final
        // block is 15 minutes old.
        let (newest, honest) = (block(1_075, 100_000), block(1_000, 99_100));
        let also = block(1_001, 99_112);
        let rule = |now, is_depth_known| BehindRule { now, is_depth_known };
        let checked = |height| Some(FinalView { height, is_checked: true });
        let ethereum = rule(100_000, false);
        assert_eq!(final_view([&newest, &honest], ethereum), checked(1_000));
        assert_eq!(final_view([&newest, &honest, &also], ethereum), checked(1_001));
        // The newest block is believed where the depth is known, or if the honest node stands
        // still.
        let alone = Some(FinalView { height: 1_075, is_checked: false });
        assert_eq!(final_view([&newest, &honest], rule(100_000, true)), alone);
        let later = rule(99_100 + FINAL_AGE_SECONDS_MAX + 1, false);
        assert_eq!(final_view([&newest, &honest], later), alone);
    }

    #[test]
    fn final_is_what_two_nodes_call_so() {
        let (far, near) = (BEHIND_SECONDS_MAX + 1, BEHIND_SECONDS_MAX);
        let checked = |height| Some(FinalView { height, is_checked: true });
        let unchecked = |height| Some(FinalView { height, is_checked: false });
        // Number and time of each node's final block.
        let table: [(&[(i64, i64)], Option<FinalView>); 10] = [
            (&[], None),
            (&[(100, 5_000)], unchecked(100)),
            (&[(100, 5_000), (100, 5_000)], checked(100)),
            (&[(82, 5_000), (100, 5_054)], checked(82)),
            (&[(100, 5_000), (99, 5_000 - near)], checked(99)),
            (&[(100, 5_000), (99, 5_000 - far)], unchecked(100)),
            (&[(100, 5_000 - far), (99, 5_000)], checked(99)),
            (&[(70, 4_910), (118, 5_054), (100, 5_000)], checked(100)),
            (&[(70, 5_000 - far), (100, 5_000), (101, 5_003)], checked(100)),
            (&[(70, 5_000 - far), (100, 5_000), (71, 5_000 - far)], unchecked(100)),
        ];
        for (told, expected) in table {
            assert_eq!(
                final_view(
                    &told
                        .iter()
                        .map(|(number, time)| FinalBlock {
                            number: *number,
                            time: *time,
                            header: None,
                        })
                        .collect::<Vec<_>>(),
                    BehindRule { now: 5_000, is_depth_known: true },
                ),
                expected,
                "{told:?}"
            );
        }
    }

    #[test]
    fn block_times_are_checked() {
        let at = |number: i64, time: i64| Header { timestamp: Quantity(time), ..header(number) };
        for (first, last, expected) in [
            (30, 60, Ok(())),
            (30, 30, Ok(())),
            (60, 60, Ok(())),
            (29, 60, Err(VerifyError::WrongTime(11))),
            (40, 39, Err(VerifyError::WrongTime(14))),
            (40, 61, Err(VerifyError::WrongTime(14))),
            (40_000, 41_000, Err(VerifyError::WrongTime(11))),
        ] {
            assert_eq!(
                check_times([&at(11, first), &at(14, last)], 30, 60),
                expected,
                "{first} {last}"
            );
        }
    }

    #[test]
    fn two_nodes_agree_on_everything_that_counts() {
        let one = of(vec![log(12, 0), log(12, 1)]);
        assert_eq!(
            differences(&one, &of(vec![log(12, 1), log(12, 0)])),
            Ok(BTreeSet::new()),
            "order does not count"
        );
        let mut other_amount = one.clone();
        other_amount.logs[0] = with_data(vec![8; 32], log(12, 0));
        let mut other_block = one.clone();
        other_block.last.hash = hash(99);
        let mut other_time = one.clone();
        other_time.first.timestamp = Quantity(34);
        assert_eq!(differences(&one, &other_time), Err(VerifyError::Disagreement(11, 14)));
        for other in [of(vec![log(12, 0)]), of(vec![]), other_amount] {
            assert_eq!(differences(&one, &other), Ok(BTreeSet::from([12])));
        }
        assert_eq!(
            differences(&one, &of(vec![log(12, 0), log(12, 1), log(13, 2)])),
            Ok(BTreeSet::from([13]))
        );
        assert_eq!(differences(&one, &other_block), Err(VerifyError::Disagreement(11, 14)));
    }

    #[test]
    fn receipts_show_what_the_filter_hid_or_invented() {
        let (block, contracts) = (header(12), [TOKEN]);
        let shown = log(12, 3);
        assert_eq!(
            check_whole_block(&block, &[receipt(12, vec![shown.clone()])], &contracts, &[&shown]),
            Ok(())
        );
        assert_eq!(
            check_whole_block(&block, &[receipt(12, vec![shown.clone()])], &contracts, &[]),
            Err(VerifyError::Hole(12))
        );
        let deprecation = with_topics(vec![DEPRECATE_TOPIC], shown.clone());
        assert_eq!(
            check_whole_block(&block, &[receipt(12, vec![deprecation])], &contracts, &[]),
            Err(VerifyError::Hole(12))
        );
        let foreign = Log { contract: OTHER, ..shown.clone() };
        assert_eq!(
            check_whole_block(&block, &[receipt(12, vec![foreign])], &contracts, &[]),
            Ok(()),
            "another token is no hole"
        );
        let failed = Receipt { status: Quantity(0), ..receipt(12, vec![shown.clone()]) };
        assert_eq!(
            check_whole_block(&block, &[failed], &contracts, &[]),
            Ok(()),
            "a failed transaction moves nothing"
        );
        assert_eq!(
            check_whole_block(&block, &[], &contracts, &[]),
            Err(VerifyError::ReceiptsMissing(12))
        );
        let invented = log(12, 4);
        assert_eq!(
            check_whole_block(
                &block,
                &[receipt(12, vec![shown.clone()])],
                &contracts,
                &[&shown, &invented]
            ),
            Err(VerifyError::BadLog(12))
        );
        let altered = with_data(vec![8; 32], shown.clone());
        assert_eq!(
            check_whole_block(&block, &[receipt(12, vec![shown.clone()])], &contracts, &[&altered]),
            Err(VerifyError::BadLog(12))
        );
        let failed = Receipt { status: Quantity(0), ..receipt(12, vec![shown.clone()]) };
        assert_eq!(
            check_whole_block(&block, &[failed], &contracts, &[&shown]),
            Ok(()),
            "a failed transaction's log may be shown"
        );
        let forked = Receipt { block_hash: hash(99), ..receipt(12, vec![]) };
        assert_eq!(
            check_whole_block(&block, &[forked], &contracts, &[]),
            Err(VerifyError::ReceiptsMissing(12))
        );
    }

    #[test]
    fn a_log_has_happened_only_if_its_receipt_says_so() {
        let shown = log(12, 3);
        assert_eq!(has_happened(&shown, Some(&receipt(12, vec![shown.clone()]))), Ok(true));
        assert_eq!(has_happened(&shown, None), Err(VerifyError::Stale(12)));
        let failed = Receipt { status: Quantity(0), ..receipt(12, vec![shown.clone()]) };
        assert_eq!(has_happened(&shown, Some(&failed)), Ok(false));
        assert_eq!(
            has_happened(&shown, Some(&receipt(12, vec![]))),
            Err(VerifyError::BadLog(12)),
            "an invented log"
        );
        let moved = Receipt { block_hash: hash(99), ..receipt(12, vec![shown.clone()]) };
        assert_eq!(has_happened(&shown, Some(&moved)), Err(VerifyError::WrongFork(12)));
    }
}
