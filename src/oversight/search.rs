//! The search box. It finds objects by a complete identifier, deposit address, caller's reference,
//! bank's reference or transaction hash. If the text is no identifier and no object is found, it
//! finds persons by the beginnings of the words of their names, and accounts by the beginning of
//! their names.

pub mod rows;

use super::AccountNames;
use super::rows as lists;
use crate::beneficiaries::{self, Beneficiary};
use crate::chains::ChainName;
use crate::chains::address::ChainAddress;
use crate::deposits::{self, Deposit};
use crate::events::rows::EventRow;
use crate::kernel::{AnyId, Id, ObjectKind, Scope, StoreError};
use crate::name_words;
use crate::operator;
use crate::payouts::{self, Payout};
use crate::quote_locks::{self, QuoteLock};
use crate::refunds::{self, Refund};
use crate::senders::{self, Sender};
use crate::store::Tx;
use crate::transfers::{self, Transfer};
use crate::webhooks;

/// The most objects of one kind that one query of a search finds.
pub const FOUND_MAX: usize = 20;
/// The most characters of a search text; a longer one finds nothing.
pub const ASKED_CHARACTERS_MAX: usize = 200;
/// The most persons that a search reads by its longest word. The other words of the search choose
/// among these persons.
const PERSONS_MAX: i64 = 200;

/// What was found, by kind.
#[derive(Default)]
pub struct SearchResults {
    pub transfers: Vec<Transfer>,
    pub payouts: Vec<Payout>,
    pub deposits: Vec<Deposit>,
    pub refunds: Vec<Refund>,
    pub beneficiaries: Vec<Beneficiary>,
    pub senders: Vec<Sender>,
    pub quote_locks: Vec<QuoteLock>,
    pub endpoints: Vec<webhooks::Endpoint>,
    pub events: Vec<(Scope, EventRow)>,
    /// The numbers of accounts (not of bank accounts).
    pub accounts: Vec<i64>,
    /// Whether there may be more than was found.
    pub is_cut: bool,
}

impl SearchResults {
    pub fn count(&self) -> usize {
        self.transfers.len()
            + self.payouts.len()
            + self.deposits.len()
            + self.refunds.len()
            + self.beneficiaries.len()
            + self.senders.len()
            + self.quote_locks.len()
            + self.endpoints.len()
            + self.events.len()
            + self.accounts.len()
    }
}

/// Finds what a person typed or pasted.
pub fn find(
    tx: &mut dyn Tx,
    accounts: &AccountNames,
    asked: &str,
) -> Result<SearchResults, StoreError> {
    let mut found = SearchResults::default();
    let asked = asked.trim();
    if asked.is_empty() || asked.chars().count() > ASKED_CHARACTERS_MAX {
        return Ok(found);
    }
    if let Some(id) = AnyId::parse(asked) {
        add_object(tx, &mut found, id)?;
        return Ok(found);
    }
    if let Ok(address) = ChainAddress::parse(asked)
        && let Some((scope, id)) = deposits::rows::address_owner(tx, address.bytes())?
    {
        found.transfers.extend(transfers::rows::find(tx, scope, id)?);
        return Ok(found);
    }
    let scopes: Vec<Scope> = accounts.scopes().collect();
    if asked.is_ascii() {
        by_reference(tx, &mut found, asked, &scopes)?;
        by_transaction(tx, &mut found, asked, &scopes)?;
    }
    if found.count() == 0 {
        by_name(tx, &mut found, asked)?;
        let folded = asked.to_lowercase();
        let named = accounts.all().filter(|(_, name)| name.to_lowercase().starts_with(&folded));
        found.accounts.extend(named.map(|(number, _)| number).take(FOUND_MAX));
        found.is_cut |= found.accounts.len() == FOUND_MAX;
    }
    Ok(found)
}

fn add_object(tx: &mut dyn Tx, found: &mut SearchResults, id: AnyId) -> Result<(), StoreError> {
    if let Some((scope, endpoint_id)) = rows::endpoint_of(tx, id)? {
        found.endpoints.extend(webhooks::rows::find(tx, scope, endpoint_id)?);
        return Ok(());
    }
    if let Some(number) = rows::account_of(tx, id)? {
        found.accounts.push(number);
        return Ok(());
    }
    let Some(scope) = operator::find_scope(tx, id)? else { return Ok(()) };
    match id.kind {
        ObjectKind::Transfer => {
            found.transfers.extend(typed(id, |id| transfers::rows::find(tx, scope, id))?);
        }
        ObjectKind::Payout => {
            found.payouts.extend(typed(id, |id| payouts::rows::find(tx, scope, id))?);
        }
        ObjectKind::Deposit => {
            found.deposits.extend(typed(id, |id| deposits::rows::find(tx, scope, id))?);
        }
        ObjectKind::Refund => {
            found.refunds.extend(typed(id, |id| refunds::rows::find(tx, scope, id))?);
        }
        ObjectKind::Beneficiary => {
            found.beneficiaries.extend(typed(id, |id| beneficiaries::rows::find(tx, scope, id))?);
        }
        ObjectKind::Sender => {
            found.senders.extend(typed(id, |id| senders::rows::find(tx, scope, id))?);
        }
        ObjectKind::QuoteLock => {
            found.quote_locks.extend(typed(id, |id| quote_locks::rows::find(tx, scope, id))?);
        }
        ObjectKind::WebhookEndpoint => {
            found.endpoints.extend(typed(id, |id| webhooks::rows::find(tx, scope, id))?);
        }
        ObjectKind::Event => {
            let event = typed(id, |id| crate::events::rows::find(tx, scope, id))?;
            found.events.extend(event.map(|event| (scope, event)));
        }
        _ => {}
    }
    Ok(())
}

fn typed<K: crate::kernel::IdKind, T>(
    id: AnyId,
    find: impl FnOnce(Id<K>) -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    Ok(id.typed().map(find).transpose()?.flatten())
}

/// Finds transfers by the caller's reference, exactly as it was typed. Finds payouts by the bank's
/// reference, which is in capital letters however it was typed.
fn by_reference(
    tx: &mut dyn Tx,
    found: &mut SearchResults,
    asked: &str,
    scopes: &[Scope],
) -> Result<(), StoreError> {
    for (scope, id) in lists::transfers_referenced(tx, asked, scopes, FOUND_MAX)? {
        found.transfers.extend(transfers::rows::find(tx, scope, id)?);
    }
    found.is_cut |= found.transfers.len() == FOUND_MAX;
    let utr = asked.to_ascii_uppercase();
    for (scope, id) in lists::payouts_referenced(tx, &utr, scopes, FOUND_MAX)? {
        let Some(payout) = payouts::rows::find(tx, scope, id)? else { continue };
        // The transfer is what a person who has a UTR looks for.
        if found.transfers.iter().all(|transfer| transfer.id != payout.transfer_id) {
            found.transfers.extend(transfers::rows::find(tx, scope, payout.transfer_id)?);
        }
        found.payouts.push(payout);
    }
    found.is_cut |= found.payouts.len() == FOUND_MAX;
    Ok(())
}

/// Finds deposits and refunds by the hash of a transaction, with or without `0x` before it.
fn by_transaction(
    tx: &mut dyn Tx,
    found: &mut SearchResults,
    asked: &str,
    scopes: &[Scope],
) -> Result<(), StoreError> {
    let digits = asked.strip_prefix("0x").unwrap_or(asked).to_ascii_lowercase();
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(());
    }
    for hash in [digits.clone(), format!("0x{digits}")] {
        for (scope, id) in lists::deposits_of(tx, &hash, scopes, FOUND_MAX)? {
            let Some(deposit) = deposits::rows::find(tx, scope, id)? else { continue };
            if found.transfers.iter().all(|transfer| transfer.id != deposit.transfer_id) {
                found.transfers.extend(transfers::rows::find(tx, scope, deposit.transfer_id)?);
            }
            found.deposits.push(deposit);
        }
        found.is_cut |= found.deposits.len() >= FOUND_MAX;
        for chain in ChainName::ALL {
            for (scope, id) in lists::refunds_of(tx, chain.as_str(), &hash, FOUND_MAX as i64)? {
                found.refunds.extend(refunds::rows::find(tx, scope, id)?);
            }
        }
        found.is_cut |= found.refunds.len() >= FOUND_MAX;
    }
    Ok(())
}

/// Finds persons. Each word that was typed has to be the beginning of a word of the name.
fn by_name(tx: &mut dyn Tx, found: &mut SearchResults, asked: &str) -> Result<(), StoreError> {
    let words = name_words::asked_words(asked);
    let Some(longest) = words.iter().max_by_key(|word| word.chars().count()) else {
        return Ok(());
    };
    let mut persons = name_words::rows::beginning_with(tx, longest, PERSONS_MAX)?;
    found.is_cut = persons.len() as i64 == PERSONS_MAX;
    persons.sort_unstable_by_key(|(scope, id)| (*scope, id.kind.as_str(), id.value));
    persons.dedup();
    for group in
        persons.chunk_by(|(scope, id), (other, next)| scope == other && id.kind == next.kind)
    {
        let Some((scope, first)) = group.first().copied() else { continue };
        let ids: Vec<AnyId> = group.iter().map(|(_, id)| *id).collect();
        for (id, name) in lists::names(tx, first.kind, scope, &ids)? {
            if !name_words::matches(&name, &words) {
                continue;
            }
            if id.kind == ObjectKind::Sender && found.senders.len() < FOUND_MAX {
                found.senders.extend(typed(id, |id| senders::rows::find(tx, scope, id))?);
            } else if id.kind == ObjectKind::Beneficiary && found.beneficiaries.len() < FOUND_MAX {
                let person = typed(id, |id| beneficiaries::rows::find(tx, scope, id))?;
                found.beneficiaries.extend(person);
            } else {
                found.is_cut = true;
            }
        }
    }
    Ok(())
}
