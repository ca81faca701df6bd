//! Cuts what was read into groups of blocks, one for each transaction of the store, and makes
//! deposits of movements.

use std::collections::{BTreeMap, HashMap};

use crate::chains::blocks::Header;
use crate::chains::rows::{Cursor, Sweep};
use crate::chains::verify::Anchor;
use crate::chains::{Depth, Movement};
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::{Id, Now, Scope, StoreError};
use crate::keys;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers::funding;

/// A group ends with the block that reaches this many movements. Callers' requests can run between
/// two groups.
const MOVEMENTS_AT_ONCE: usize = 200;

/// Blocks that one transaction takes over.
pub(super) struct BlockGroup {
    /// The cursor after them.
    pub(super) to: Cursor,
    pub(super) movements: Vec<Movement>,
    pub(super) sweeps: Vec<Sweep>,
}

/// Cuts what a range holds into groups of whole blocks. A block is never cut, so a group can have
/// more movements than `MOVEMENTS_AT_ONCE`. `movements` are in the order of the chain, and
/// `headers` has the header of each of their blocks. `from` and `last` are the cursors before and
/// after the whole range.
pub(super) fn block_groups(
    movements: Vec<Movement>,
    sweeps: Vec<Sweep>,
    headers: &BTreeMap<i64, Header>,
    from: Cursor,
    last: Cursor,
) -> Vec<BlockGroup> {
    let height = |movement: &Movement| match movement.depth {
        Depth::Block { number, .. } | Depth::Final { number, .. } => number,
        Depth::Seen => last.anchor.height,
    };
    let mut cut: Vec<BlockGroup> = Vec::new();
    let mut group: Vec<Movement> = Vec::new();
    for movement in movements {
        let end = group
            .last()
            .map(height)
            .filter(|end| group.len() >= MOVEMENTS_AT_ONCE && *end < height(&movement));
        if let Some(header) = end.and_then(|end| headers.get(&end)) {
            let to = Cursor {
                anchor: Anchor { height: header.number.0, hash: header.hash },
                block_time: header.timestamp.0,
                deprecation: last
                    .deprecation
                    .filter(|deprecation| deprecation.height <= header.number.0)
                    .or(from.deprecation),
            };
            cut.push(BlockGroup { to, movements: std::mem::take(&mut group), sweeps: Vec::new() });
        }
        group.push(movement);
    }
    cut.push(BlockGroup { to: last, movements: group, sweeps: Vec::new() });
    for sweep in sweeps {
        if let Some(part) = cut.iter_mut().find(|part| sweep.block_number <= part.to.anchor.height)
        {
            part.sweeps.push(sweep);
        }
    }
    cut
}

/// Creates deposits from movements, or updates known deposits: in the order of the chain, each in
/// its account's business time. Answers the deposits. Leaves out movements to addresses that were
/// never handed out.
pub(super) fn observe<'a>(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    chain: &str,
    movements: impl Iterator<Item = &'a Movement>,
) -> Result<Vec<Id<kind::Deposit>>, StoreError> {
    // A transaction's movements to one account belong together; transactions stay in the order of
    // their blocks.
    let mut places: HashMap<(Scope, &str), usize> = HashMap::new();
    let mut groups: Vec<(Scope, Vec<&Movement>)> = Vec::new();
    for movement in movements {
        let Some((scope, _)) = deposits::rows::address_owner(tx, &movement.to_address)? else {
            continue;
        };
        let place =
            *places.entry((scope, movement.transaction_hash.as_str())).or_insert_with(|| {
                groups.push((scope, Vec::new()));
                groups.len() - 1
            });
        if let Some((_, group)) = groups.get_mut(place) {
            group.push(movement);
        }
    }
    let mut ids = Vec::new();
    for (scope, group) in groups {
        now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
        ids.extend(funding::observe_transaction(tx, now, services, scope, chain, &group)?);
    }
    now.leave_account();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::address::AddressBytes;
    use crate::chains::blocks::samples::{hash, header};
    use crate::chains::rows;
    use crate::kernel::{Currency, Money};

    fn cursor(height: i64) -> Cursor {
        Cursor {
            anchor: Anchor { height, hash: hash(height) },
            block_time: height * 3,
            deprecation: None,
        }
    }

    fn movement(number: i64, log_index: i64) -> Movement {
        Movement {
            transaction_hash: String::new(),
            log_index,
            from_address: AddressBytes::of_20([1; 20]),
            to_address: AddressBytes::of_20([2; 20]),
            contract: None,
            asset: "USDT".into(),
            amount: Money::new(1, Currency::Usdt),
            depth: Depth::Final { number, time: number * 3, confirmations: 1 },
        }
    }

    fn sweep(block_number: i64) -> Sweep {
        Sweep {
            transaction_hash: String::new(),
            log_index: 0,
            from_address: AddressBytes::of_20([2; 20]),
            to_address: AddressBytes::of_20([1; 20]),
            contract: AddressBytes::of_20([7; 20]),
            units: 1,
            block_number,
            block_time: block_number * 3,
        }
    }

    #[test]
    fn large_ranges_are_cut_between_blocks() {
        let full = MOVEMENTS_AT_ONCE as i64;
        // How many movements the blocks 11, 12 and 13 have; the block of a deprecation; and for
        // each group its last block and how many movements and sweeps it has.
        let table: [([i64; 3], Option<i64>, &[(i64, usize, usize)]); 6] = [
            ([0, 0, 0], None, &[(20, 0, 3)]),
            ([1, 1, 1], None, &[(20, 3, 3)]),
            ([full, 0, 0], None, &[(20, 200, 3)]),
            ([full, 1, 1], None, &[(11, 200, 1), (20, 2, 2)]),
            ([full - 1, full, 1], Some(12), &[(12, 399, 2), (20, 1, 1)]),
            ([2 * full, full, full], Some(13), &[(11, 400, 1), (12, 200, 1), (20, 200, 1)]),
        ];
        let headers = (11..=13).map(|number| (number, header(number))).collect();
        for (counts, deprecated_height, expected) in table {
            let deprecation = deprecated_height
                .map(|height| rows::Deprecation { contract: AddressBytes::of_20([7; 20]), height });
            let blocks = counts
                .iter()
                .zip(11..)
                .flat_map(|(count, number)| (0..*count).map(move |place| movement(number, place)));
            let all: Vec<Movement> = blocks.collect();
            let last = Cursor { deprecation, ..cursor(20) };
            let cut = block_groups(
                all.clone(),
                vec![sweep(11), sweep(12), sweep(15)],
                &headers,
                cursor(10),
                last,
            );
            let shape: Vec<_> = cut
                .iter()
                .map(|part| (part.to.anchor.height, part.movements.len(), part.sweeps.len()))
                .collect();
            assert_eq!(shape, expected, "{counts:?}");
            assert_eq!(
                cut.iter().flat_map(|part| part.movements.clone()).collect::<Vec<_>>(),
                all,
                "nothing is lost, and the order stays"
            );
            for part in &cut {
                let height = part.to.anchor.height;
                let deprecation = deprecation.filter(|deprecation| deprecation.height <= height);
                assert_eq!(part.to, Cursor { deprecation, ..cursor(height) });
            }
        }
    }
}
