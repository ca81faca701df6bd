//! Compares the book with a real chain, movement by movement and address by address.
//!
//! Nothing here asks a node: `chain_following::audit` passes what the chain shows. A difference is
//! kept until its subject is compared again and agrees. A difference that the operator explained is
//! kept too, but no longer listed. Nothing is corrected.

pub mod rows;

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::{Difference, DifferenceKind};
use crate::chains::ChainName;
use crate::chains::address::{AddressBytes, ChainAddress};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Mode, Money, Now, StoreError};
use crate::store::Tx;

/// The most open differences that are listed.
const DIFFERENCES_SHOWN_MAX: i64 = 1_000;
/// The largest difference between a balance and the book that counts as rounding, in millionths, if
/// the token has more decimals than the book. The book rounds each movement down to a millionth.
const ROUNDING_UNITS_MAX: u64 = 1_000;

/// Where a movement is on the chain: the transaction's hash, as the book writes it, and the log's
/// index in its block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogPosition {
    pub transaction_hash: String,
    pub log_index: i64,
}

/// A token movement that the chain's final view shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainMovement {
    pub place: LogPosition,
    pub contract: AddressBytes,
    pub from_address: AddressBytes,
    pub to_address: AddressBytes,
    /// Millionths; `None` if the token's decimals are not known, or the amount is too large for the
    /// book.
    pub units: Option<i64>,
    pub block_number: i64,
    /// Unix seconds.
    pub block_time: i64,
}

/// What a movement is in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovementRole {
    Deposit(Id<kind::Deposit>),
    Sweep,
    Refund(Id<kind::Refund>),
}

/// A movement that the book has as final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookMovement {
    pub role: MovementRole,
    pub place: LogPosition,
    /// `None` for a refund, which the operator may send from any address.
    pub from_address: Option<AddressBytes>,
    pub to_address: AddressBytes,
    /// Millionths.
    pub units: i64,
    /// Height and time (Unix seconds); `None` for a refund.
    pub block: Option<(i64, i64)>,
    /// Whether a deposit belongs to the transfer that its address was handed out to; `true` for a
    /// sweep and a refund.
    pub is_at_own_address: bool,
}

/// A difference that a comparison found. `subject` names the object, the address or the movement in
/// the same way each time, so that the difference is recognised again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDifference {
    pub kind: DifferenceKind,
    pub subject: String,
    /// The movement's amount, or the chain's amount less the book's, in millionths. If
    /// [`ChainMovement::units`] is `None`, the chain's amount counts as `i64::MAX`.
    pub units: i64,
    /// The block of the movement; `None` for refunds and balances, which are not compared by
    /// blocks.
    pub block_number: Option<i64>,
}

impl BookMovement {
    /// The name of the movement in a difference.
    pub fn subject(&self) -> String {
        match self.role {
            MovementRole::Deposit(id) => id.to_string(),
            MovementRole::Refund(id) => id.to_string(),
            MovementRole::Sweep => {
                format!("sweep {}:{}", self.place.transaction_hash, self.place.log_index)
            }
        }
    }
}

/// Compares `written`, what the book has, with `shown`, what the chain shows of some blocks. `ours`
/// are those of our deposit addresses that occur in these blocks; a comparison of refunds passes
/// none. The caller has to put into `shown`:
///
/// - every movement of the token from or to one of `ours` in these blocks;
/// - for each place of `written`, the movement that the chain has there, in any block and of any
///   token.
pub fn compare(
    chain: ChainName,
    token: &AddressBytes,
    blocks: &RangeInclusive<i64>,
    ours: &HashSet<AddressBytes>,
    shown: &[ChainMovement],
    written: &[BookMovement],
) -> Vec<FoundDifference> {
    let by_place: HashMap<&LogPosition, &ChainMovement> =
        shown.iter().map(|shown| (&shown.place, shown)).collect();
    let mut found = Vec::new();
    for written in written {
        let seen = by_place.get(&written.place).copied();
        // A movement between two of our addresses is a sweep, and credits nobody.
        let is_deposit = matches!(written.role, MovementRole::Deposit(_));
        let seen = seen.filter(|seen| !is_deposit || !ours.contains(&seen.from_address));
        found.extend(differing(token, blocks, written, seen));
    }
    let written: HashSet<(&LogPosition, bool)> = written
        .iter()
        .filter(|written| !matches!(written.role, MovementRole::Refund(_)))
        .map(|written| (&written.place, written.role == MovementRole::Sweep))
        .collect();
    for seen in shown.iter().filter(|seen| seen.contract == *token) {
        let is_sweep = ours.contains(&seen.from_address);
        let our_address = if is_sweep { seen.from_address } else { seen.to_address };
        if ours.contains(&our_address) && !written.contains(&(&seen.place, is_sweep)) {
            let LogPosition { transaction_hash, log_index } = &seen.place;
            let address = ChainAddress::of_chain(chain.as_str(), our_address);
            found.push(FoundDifference {
                kind: DifferenceKind::MovementNotInBook,
                subject: format!(
                    "{} {transaction_hash}:{log_index} {address}",
                    if is_sweep { "sweep" } else { "deposit" }
                ),
                units: seen.units.unwrap_or(i64::MAX),
                block_number: Some(seen.block_number),
            });
        }
    }
    found
}

/// What differs between a movement of the book and what the chain has at the same place.
fn differing(
    token: &AddressBytes,
    blocks: &RangeInclusive<i64>,
    written: &BookMovement,
    seen: Option<&ChainMovement>,
) -> Vec<FoundDifference> {
    let mut kinds = Vec::new();
    match seen {
        None => kinds.push((DifferenceKind::MovementNotOnChain, written.units)),
        Some(seen) if seen.contract != *token => {
            kinds.push((DifferenceKind::MovementToken, written.units))
        }
        Some(seen) => {
            let is_same_payer = written.from_address.is_none_or(|from| from == seen.from_address);
            let is_same_recipient = seen.to_address == written.to_address;
            if !is_same_payer || !is_same_recipient || !written.is_at_own_address {
                kinds.push((DifferenceKind::MovementAddress, written.units));
            }
            if seen.units != Some(written.units) {
                kinds.push((
                    DifferenceKind::MovementAmount,
                    seen.units.unwrap_or(i64::MAX).saturating_sub(written.units),
                ));
            }
            if written.block.is_some_and(|block| block != (seen.block_number, seen.block_time)) {
                kinds.push((DifferenceKind::MovementBlock, written.units));
            }
        }
    }
    // The chain and the book may have the movement at different heights. The difference is kept
    // with the height that is among the compared blocks, so that the next comparison of these
    // blocks can remove the difference.
    let block_number = written.block.map(|(number, _)| match seen {
        Some(seen) if !blocks.contains(&number) => seen.block_number,
        _ => number,
    });
    kinds
        .into_iter()
        .map(|(kind, units)| FoundDifference {
            kind,
            subject: written.subject(),
            units,
            block_number,
        })
        .collect()
}

/// What an address holds by the book: its completed deposits, plus sweeps from our other addresses,
/// less sweeps out of the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressHolding {
    pub transfer_id: Id<kind::Transfer>,
    pub address: AddressBytes,
    /// The token's contract, as the transfer names it.
    pub token_contract: AddressBytes,
    /// Millionths, summed over all contracts that the token has had.
    pub units: i64,
}

impl AddressHolding {
    /// The name of an address in a difference.
    pub fn subject(&self, chain: ChainName) -> String {
        ChainAddress::of_chain(chain.as_str(), self.address).to_string()
    }
}

/// What an address should hold, and whether its balance fits that. All amounts are in millionths.
/// The balance was read after the book, so it may already include movements that the book does not
/// have yet. `above` has these movements in the order of the chain: positive for incoming, negative
/// for outgoing. They are added to the book's amount one after another, until the sum fits the
/// balance or all are added.
pub fn should_hold(
    book_units: i64,
    balance_units: i64,
    above: &[i64],
    decimals: u8,
) -> (i64, bool) {
    let slack = if decimals > 6 { ROUNDING_UNITS_MAX } else { 0 };
    let fits = |held: i64| held.abs_diff(balance_units) <= slack;
    let mut held = book_units;
    for moved in above {
        if fits(held) {
            break;
        }
        held = held.saturating_add(*moved);
    }
    (held, fits(held))
}

/// Keeps what a comparison found. `before` are the differences that were kept for the same blocks
/// or subjects. Those that were not found again are removed. Those that were found again unchanged
/// keep their rows, so an explained one stays explained.
pub fn keep_found(
    tx: &mut dyn Tx,
    now: &mut Now,
    mode: Mode,
    chain: ChainName,
    before: &[FoundDifference],
    found: &[FoundDifference],
) -> Result<(), StoreError> {
    for gone in before.iter().filter(|known| !found.contains(known)) {
        rows::remove(tx, mode, chain, gone.kind, &gone.subject)?;
    }
    for new in found.iter().filter(|found| !before.contains(found)) {
        // A row of this kind and subject may exist already, for example with another block.
        rows::remove(tx, mode, chain, new.kind, &new.subject)?;
        rows::insert(tx, now, mode, chain, new)?;
    }
    Ok(())
}

/// Differences that nobody has explained, oldest first, at most `DIFFERENCES_SHOWN_MAX`; and how
/// many there are in all.
pub fn open(
    tx: &mut dyn Tx,
    mode: Mode,
    chain: ChainName,
) -> Result<(Vec<Difference>, i64), StoreError> {
    let differences =
        rows::open(tx, mode, chain, DIFFERENCES_SHOWN_MAX)?.into_iter().map(|(id, found)| {
            Difference {
                kind: found.kind,
                what: id.to_string(),
                amount: Money::new(found.units, Currency::Usdt),
                detail: Some(match found.block_number {
                    Some(number) => format!("{} in block {number}", found.subject),
                    None => found.subject,
                }),
            }
        });
    Ok((differences.collect(), rows::open_count(tx, mode, chain)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: AddressBytes = AddressBytes::of_20([0xA6; 20]);
    const OURS: AddressBytes = AddressBytes::of_20([1; 20]);
    const ALSO_OURS: AddressBytes = AddressBytes::of_20([2; 20]);
    const PAYER: AddressBytes = AddressBytes::of_20([9; 20]);

    fn place(log_index: i64) -> LogPosition {
        LogPosition { transaction_hash: "ab".repeat(32), log_index }
    }

    fn shown(from_address: AddressBytes, to_address: AddressBytes) -> ChainMovement {
        ChainMovement {
            place: place(3),
            contract: TOKEN,
            from_address,
            to_address,
            units: Some(5_000_000),
            block_number: 40,
            block_time: 120,
        }
    }

    fn written(
        role: MovementRole,
        from_address: AddressBytes,
        to_address: AddressBytes,
    ) -> BookMovement {
        let from_address = (!matches!(role, MovementRole::Refund(_))).then_some(from_address);
        let block = from_address.map(|_| (40, 120));
        BookMovement {
            role,
            place: place(3),
            from_address,
            to_address,
            units: 5_000_000,
            block,
            is_at_own_address: true,
        }
    }

    fn kinds(shown: &[ChainMovement], written: &[BookMovement]) -> Vec<(DifferenceKind, i64)> {
        let ours = HashSet::from([OURS, ALSO_OURS]);
        let found = compare(ChainName::Tron, &TOKEN, &(31..=40), &ours, shown, written);
        found.into_iter().map(|found| (found.kind, found.units)).collect()
    }

    #[test]
    fn movements_agree_or_the_difference_is_named() {
        use DifferenceKind::{
            MovementAddress, MovementAmount, MovementBlock, MovementNotInBook, MovementNotOnChain,
            MovementToken,
        };
        let deposit = || written(MovementRole::Deposit(Id::from_u128(7)), PAYER, OURS);
        let sweep = || written(MovementRole::Sweep, OURS, PAYER);
        let refund = || written(MovementRole::Refund(Id::from_u128(8)), OURS, PAYER);
        let (came, went) = (|| shown(PAYER, OURS), || shown(OURS, PAYER));
        const FIVE: i64 = 5_000_000;
        type Row =
            (&'static str, Vec<ChainMovement>, Vec<BookMovement>, Vec<(DifferenceKind, i64)>);
        let table: Vec<Row> = vec![
            ("nothing", vec![], vec![], vec![]),
            ("a deposit", vec![came()], vec![deposit()], vec![]),
            ("a sweep", vec![went()], vec![sweep()], vec![]),
            ("a sweep that is a refund too", vec![went()], vec![sweep(), refund()], vec![]),
            (
                "a refund from elsewhere",
                vec![shown(PAYER, AddressBytes::of_20([8; 20]))],
                vec![written(refund().role, PAYER, AddressBytes::of_20([8; 20]))],
                vec![],
            ),
            (
                "between two of ours",
                vec![shown(OURS, ALSO_OURS)],
                vec![written(MovementRole::Sweep, OURS, ALSO_OURS)],
                vec![],
            ),
            ("of strangers", vec![shown(PAYER, AddressBytes::of_20([8; 20]))], vec![], vec![]),
            ("a deposit that is missing", vec![came()], vec![], vec![(MovementNotInBook, FIVE)]),
            ("a sweep that is missing", vec![went()], vec![], vec![(MovementNotInBook, FIVE)]),
            (
                "a refund instead of a sweep",
                vec![went()],
                vec![refund()],
                vec![(MovementNotInBook, FIVE)],
            ),
            (
                "a sweep instead of a deposit",
                vec![came()],
                vec![written(MovementRole::Sweep, PAYER, OURS)],
                vec![(MovementNotInBook, FIVE)],
            ),
            (
                "another token of strangers' making",
                vec![ChainMovement { contract: AddressBytes::of_20([7; 20]), ..came() }],
                vec![],
                vec![],
            ),
            ("an invented deposit", vec![], vec![deposit()], vec![(MovementNotOnChain, FIVE)]),
            ("an invented sweep", vec![], vec![sweep()], vec![(MovementNotOnChain, FIVE)]),
            ("an invented refund", vec![], vec![refund()], vec![(MovementNotOnChain, FIVE)]),
            (
                "another token",
                vec![ChainMovement {
                    contract: AddressBytes::of_20([7; 20]),
                    units: None,
                    ..came()
                }],
                vec![deposit()],
                vec![(MovementToken, FIVE)],
            ),
            (
                "too little in the book",
                vec![came()],
                vec![BookMovement { units: 4_999_999, ..deposit() }],
                vec![(MovementAmount, 1)],
            ),
            (
                "too much in the book",
                vec![came()],
                vec![BookMovement { units: 5_000_002, ..deposit() }],
                vec![(MovementAmount, -2)],
            ),
            (
                "another recipient",
                vec![came()],
                vec![BookMovement { to_address: ALSO_OURS, ..deposit() }],
                vec![(MovementAddress, FIVE)],
            ),
            (
                "another payer",
                vec![came()],
                vec![BookMovement {
                    from_address: Some(AddressBytes::of_20([8; 20])),
                    ..deposit()
                }],
                vec![(MovementAddress, FIVE)],
            ),
            (
                "another transfer",
                vec![came()],
                vec![BookMovement { is_at_own_address: false, ..deposit() }],
                vec![(MovementAddress, FIVE)],
            ),
            (
                "another height",
                vec![came()],
                vec![BookMovement { block: Some((41, 120)), ..deposit() }],
                vec![(MovementBlock, FIVE)],
            ),
            (
                "another time",
                vec![came()],
                vec![BookMovement { block: Some((40, 121)), ..deposit() }],
                vec![(MovementBlock, FIVE)],
            ),
            (
                "another log index",
                vec![came()],
                vec![BookMovement { place: place(4), ..deposit() }],
                vec![(MovementNotOnChain, FIVE), (MovementNotInBook, FIVE)],
            ),
            (
                "a credited movement between two of ours",
                vec![shown(OURS, ALSO_OURS)],
                vec![
                    written(MovementRole::Sweep, OURS, ALSO_OURS),
                    written(deposit().role, OURS, ALSO_OURS),
                ],
                vec![(MovementNotOnChain, FIVE)],
            ),
        ];
        for (what, shown, written, expected) in table {
            assert_eq!(kinds(&shown, &written), expected, "{what}");
        }
    }

    #[test]
    fn a_difference_belongs_to_the_blocks_that_were_compared() {
        let deposit = written(MovementRole::Deposit(Id::from_u128(7)), PAYER, OURS);
        let moved = BookMovement { block: Some((900, 120)), ..deposit };
        for (blocks, number) in [(31..=40, 40), (900..=950, 900)] {
            let found = compare(
                ChainName::Tron,
                &TOKEN,
                &blocks,
                &HashSet::from([OURS]),
                &[shown(PAYER, OURS)],
                std::slice::from_ref(&moved),
            );
            assert_eq!(
                found.iter().map(|found| (found.kind, found.block_number)).collect::<Vec<_>>(),
                [(DifferenceKind::MovementBlock, Some(number))]
            );
        }
    }

    #[test]
    fn a_balance_may_include_movements_that_the_book_lacks() {
        // Book, balance, movements above, decimals, what should be there, and whether it fits.
        let table: [(i64, i64, &[i64], u8, (i64, bool)); 9] = [
            (5, 5, &[], 6, (5, true)),
            (5, 6, &[], 6, (5, false)),
            (5, 8, &[3, -8], 6, (8, true)),
            (5, 0, &[3, -8], 6, (0, true)),
            (5, 5, &[3, -8], 6, (5, true)),
            (5, 3, &[3, -8], 6, (0, false)),
            (5, 1_005, &[], 18, (5, true)),
            (5, 1_006, &[], 18, (5, false)),
            (i64::MAX, i64::MAX, &[1], 6, (i64::MAX, true)),
        ];
        for (book, balance, above, decimals, expected) in table {
            assert_eq!(
                should_hold(book, balance, above, decimals),
                expected,
                "{book} {balance} {above:?} {decimals}"
            );
        }
    }
}
