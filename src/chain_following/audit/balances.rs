//! Compares what addresses hold on the chain with what the book says.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{AuditError, AuditSummary, ChainAudit, PAUSE, StepError, first_answer, store_error};
use crate::chain_following::pending::BLOCKS_ABOVE_CURSOR_MAX;
use crate::chains::address::AddressBytes;
use crate::chains::blocks::millionths;
use crate::chains::port::ChainNode;
use crate::chains::rows::{self, Cursor};
use crate::chains::verify::VerifyError;
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, Scope, StoreError};
use crate::keys;
use crate::reconcile::DifferenceKind;
use crate::reconcile::chain::{self as differences, AddressHolding, FoundDifference};
use crate::store::{Cost, Tx};

/// Addresses whose balances are compared together.
const ADDRESSES_AT_ONCE: i64 = 500;
/// How many times a balance that differs from the book is read. The first difference may be due to
/// a block above the cursor that was replaced meanwhile, or to a node that is behind.
const BALANCE_TRIES: usize = 3;

/// Which addresses of an account are looked at.
pub(super) enum AddressSelection {
    /// The next addresses after this transfer's; `None` means the first ones.
    After(Option<Id<kind::Transfer>>),
    /// The addresses of these transfers.
    Of(Vec<Id<kind::Transfer>>),
}

impl ChainAudit<'_> {
    /// Compares what these addresses hold: those that hold something by the book, those that were
    /// handed out from `since` on (Unix seconds), and those of which a difference is kept.
    pub(super) async fn balances(
        &self,
        since: i64,
        compared: &mut AuditSummary,
    ) -> Result<(), AuditError> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            Ok((
                keys::rows::accounts_count(tx)?,
                differences::rows::kept_without_block(tx, mode, name)?,
            ))
        };
        let (accounts_count, kept) =
            self.store.read(Cost::Scan, read).await.map_err(store_error)?;
        let kept: HashSet<String> = kept
            .into_iter()
            .filter(|kept| kept.kind == DifferenceKind::AddressBalance)
            .map(|kept| kept.subject)
            .collect();
        for number in 1..=accounts_count {
            let scope = Scope::new(number, mode);
            let mut after = None;
            loop {
                let (cursor, mut page) =
                    self.addresses_with_cursor(scope, AddressSelection::After(after)).await?;
                let Some(last) = page.last() else { break };
                after = Some(last.transfer_id);
                page.retain(|held| {
                    let is_new = held.transfer_id.milliseconds() / 1000 >= since;
                    held.units != 0 || is_new || kept.contains(&held.subject(name))
                });
                if !page.is_empty() {
                    self.balances_of(scope, cursor, page, compared).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads what some addresses hold by the book, and the cursor at that moment, in one read.
    pub(super) async fn addresses_with_cursor(
        &self,
        scope: Scope,
        which: AddressSelection,
    ) -> Result<(Cursor, Vec<AddressHolding>), AuditError> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let read = move |tx: &mut dyn Tx| {
            let cursor = rows::cursor(tx, mode, name)?
                .ok_or_else(|| StoreError::Broken("the cursor is gone".into()))?;
            let held = match which {
                AddressSelection::After(after) => {
                    differences::rows::held_after(tx, scope, name, after, ADDRESSES_AT_ONCE)?
                }
                AddressSelection::Of(transfers) => {
                    let mut held = Vec::with_capacity(transfers.len());
                    for id in transfers {
                        held.extend(differences::rows::held_of(tx, scope, name, id)?);
                    }
                    held
                }
            };
            Ok((cursor, held))
        };
        self.store.read(Cost::Scan, read).await.map_err(store_error)
    }

    /// Compares the balances of a page of addresses, and keeps or removes their differences.
    pub(super) async fn balances_of(
        &self,
        scope: Scope,
        cursor: Cursor,
        page: Vec<AddressHolding>,
        compared: &mut AuditSummary,
    ) -> Result<(), AuditError> {
        let overflow = |error: StoreError| AuditError::Store(error.to_string());
        let mut subjects = HashSet::new();
        let mut found = Vec::new();
        let mut left = (cursor, page);
        for tries in 0..BALANCE_TRIES {
            let (cursor, page) = &left;
            // Another node is asked first each time, because a node that is behind shows an old
            // balance.
            let balances = first_answer!(self, tries, node, self.balances_at(node, cursor, page))?;
            let mut again = Vec::new();
            for (held, (balance, (expected, fits))) in page.iter().zip(balances) {
                if !fits && tries + 1 < BALANCE_TRIES {
                    again.push(held.transfer_id);
                    continue;
                }
                let subject = held.subject(self.chain.settings.name);
                if !fits {
                    let units = balance.saturating_sub(expected);
                    found.push(FoundDifference {
                        kind: DifferenceKind::AddressBalance,
                        subject: subject.clone(),
                        units,
                        block_number: None,
                    });
                }
                subjects.insert(subject);
                compared.addresses_count += 1;
                compared.expected = compared
                    .expected
                    .plus(Money::new(expected, Currency::Usdt))
                    .map_err(overflow)?;
                compared.balance =
                    compared.balance.plus(Money::new(balance, Currency::Usdt)).map_err(overflow)?;
            }
            if again.is_empty() {
                break;
            }
            // Reads these addresses alone, as the book has them now.
            left = self.addresses_with_cursor(scope, AddressSelection::Of(again)).await?;
        }
        self.keep_found(subjects, found).await
    }

    /// For each address of the page: its balance on the chain in millionths, what it should be, and
    /// whether the balance fits that.
    pub(super) async fn balances_at(
        &self,
        node: &dyn ChainNode,
        cursor: &Cursor,
        page: &[AddressHolding],
    ) -> Result<Vec<(i64, (i64, bool))>, StepError> {
        let settings = &self.chain.settings;
        let token = *self.token();
        let units = |contract: &AddressBytes, value: u128| {
            millionths(value, self.chain.decimals(contract)).unwrap_or(i64::MAX)
        };
        // An address holds the token in the configured contract, and in the one that its
        // transfer's caller was shown, if that is another.
        let is_held_in = |held: &AddressHolding, contract: &AddressBytes| {
            self.chain.is_token_of(contract, Some(&held.token_contract))
        };
        let own: BTreeSet<AddressBytes> = page.iter().map(|held| held.token_contract).collect();
        let contracts: Vec<AddressBytes> = std::iter::once(token)
            .chain(
                own.into_iter()
                    .filter(|contract| *contract != token && self.chain.was_token(contract)),
            )
            .collect();
        let mut balances = vec![0_i64; page.len()];
        for contract in &contracts {
            let (places, addresses): (Vec<usize>, Vec<AddressBytes>) = page
                .iter()
                .enumerate()
                .filter(|(_, held)| is_held_in(held, contract))
                .map(|(place, held)| (place, held.address))
                .unzip();
            for (place, value) in places.into_iter().zip(node.balances(contract, &addresses).await?)
            {
                balances[place] = balances[place].saturating_add(units(contract, value));
            }
        }
        let judge = |held: &AddressHolding, balance: i64, above: &[i64]| {
            let decimals = contracts
                .iter()
                .filter(|contract| is_held_in(held, contract))
                .map(|contract| self.chain.decimals(contract));
            (
                balance,
                differences::should_hold(
                    held.units,
                    balance,
                    above,
                    decimals.max().unwrap_or(settings.decimals),
                ),
            )
        };
        let as_written: Vec<_> =
            page.iter().zip(&balances).map(|(held, balance)| judge(held, *balance, &[])).collect();
        if as_written.iter().all(|(_, (_, fits))| *fits) {
            return Ok(as_written);
        }
        let head = node.head().await?.number.0;
        let height = cursor.anchor.height;
        if head < height {
            return Err(VerifyError::Stale(height).into());
        }
        if head - height > BLOCKS_ABOVE_CURSOR_MAX {
            return Err(StepError::Fatal(AuditError::Behind(head - height)));
        }
        // Only what moved to or from addresses of the page is kept: above the cursor of a busy
        // chain there are many thousands of other movements.
        let mut above: HashMap<AddressBytes, Vec<(AddressBytes, i64)>> =
            page.iter().map(|held| (held.address, Vec::new())).collect();
        let mut reached = height;
        while reached < head {
            if reached > height {
                tokio::time::sleep(PAUSE).await;
            }
            let to = head.min(reached + settings.blocks_at_once as i64);
            let mut range = node
                .range(&contracts, reached + 1, to, None)
                .await?
                .ok_or(VerifyError::Stale(to))?;
            range.logs.sort_by_key(|log| (log.block_number, log.log_index));
            for moved in self.moved(&range) {
                let contract = moved.log.contract;
                let units = units(&contract, moved.movement.value);
                let movement = moved.movement;
                for (address, units) in
                    [(movement.from, units.saturating_neg()), (movement.to, units)]
                {
                    if let Some(moves) = above.get_mut(&address) {
                        moves.push((contract, units));
                    }
                }
            }
            reached = to;
        }
        let above_of = |held: &AddressHolding| -> Vec<i64> {
            let moved = above.get(&held.address).into_iter().flatten();
            moved
                .filter(|(contract, _)| is_held_in(held, contract))
                .map(|(_, units)| *units)
                .collect()
        };
        let judged = page.iter().zip(balances);
        Ok(judged.map(|(held, balance)| judge(held, balance, &above_of(held))).collect())
    }
}
