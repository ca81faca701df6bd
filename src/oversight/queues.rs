//! What waits for a person: one list for each kind of decision.

use super::{AccountNames, rows};
use crate::beneficiaries;
use crate::beneficiaries::state::PayoutsDisabledReason;
use crate::deposits;
use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Currency, Id, Mode, Money, ObjectKind, Scope, StoreError};
use crate::keys;
use crate::payouts;
use crate::rails::files::reports::Sign;
use crate::rails::files::rows as journal;
use crate::reconcile::chain::rows as chain_differences;
use crate::reconcile::{self, kept};
use crate::refunds;
use crate::refunds::state::RefundStatus;
use crate::screening::hit::HitRow;
use crate::screening::rows as hits;
use crate::services::Services;
use crate::store::Tx;
use crate::transfers;
use crate::transfers::state::TransferStatus;

/// The most rows of one query that a queue keeps.
pub const ROWS_MAX: i64 = 200;

crate::string_enum!(
    /// The queues, in the order in which they are shown.
    QueueKind {
        Holds "holds",
        // Hits of screening. A transfer in review is in the queue of holds.
        Reviews "reviews",
        Verifications "verifications",
        Payouts "payouts",
        Refunds "refunds",
        RefundAddresses "refund_addresses",
        Unmatched "unmatched",
        Differences "differences",
    }
);

/// One queue: how much waits, and since when the oldest does.
#[derive(Clone, Debug)]
pub struct QueueLine {
    pub kind: QueueKind,
    pub count: usize,
    /// Whether there are more than were counted.
    pub is_more: bool,
    /// Unix seconds of the store's clock; `None` if nothing waits.
    pub oldest_at: Option<i64>,
}

/// One row of a queue.
#[derive(Clone, Debug)]
pub struct Item {
    /// Whose it is; `None` for a difference.
    pub scope: Option<Scope>,
    /// The object that is decided about. `None` for a difference, which has a name instead.
    pub id: Option<AnyId>,
    pub transfer_id: Option<Id<kind::Transfer>>,
    /// Why it is in the queue, as a word that the pages have a text for.
    pub reason: String,
    pub amount: Option<Money>,
    /// Since when it waits, in Unix seconds of the store's clock. For a refund, a beneficiary, and
    /// a payout without a [`journal::Attention`] or with one of unknown age: when it was created.
    /// An object's own times are business time, so [`read`] subtracts how far the account's test
    /// clock is ahead.
    pub since: i64,
    pub facts: QueueFacts,
}

/// The facts that depend on the queue.
#[derive(Clone, Debug)]
pub enum QueueFacts {
    Hold {
        /// What should have come; [`Item::amount`] is what came.
        expected: Money,
        /// When it is refunded if nobody decides, in Unix seconds of business time. `None` in a
        /// review.
        until: Option<i64>,
    },
    Review {
        /// The name or the address that was screened. `None` for the addresses that paid for a
        /// transfer, which the evidence names.
        screened: Option<String>,
        /// The account holder's name as the bank gave it, if it differs from the beneficiary's.
        holder_name: Option<String>,
        list: String,
        entry_id: String,
        evidence: String,
    },
    Verification {
        name: String,
        /// As in a review.
        holder_name: Option<String>,
        ifsc: String,
        account_number_last4: String,
        bank_name: Option<String>,
    },
    Payout {
        /// The code and the text that the bank gave as its reason.
        bank_words: Option<String>,
    },
    Refund {
        to_address: Option<String>,
        /// What it waits for, as a word. A refund that was sent waits until its transaction is
        /// final.
        waits_for: &'static str,
        /// What is wrong, as a word: with the transaction that was named as the refund's, or with
        /// the payout at the bank.
        fault: Option<String>,
    },
    Unmatched {
        transaction_hash: String,
    },
    Difference {
        /// The identifier of a statement line or of a difference with a chain; otherwise what
        /// differs: a payout, a statement, or an account with its mode.
        name: String,
        shown: ShownDifference,
    },
}

/// What is shown of a difference, depending on where it was found.
#[derive(Clone, Debug)]
pub enum ShownDifference {
    /// A line of the bank's statement.
    Line { sign: Sign, booking_day: String, reference: Option<String> },
    /// What the last comparison with the bank found. One payout or statement can differ in several
    /// ways, so only `name` and `reason` together are unique. `detail` is an English text
    /// of the service, and may quote the bank at its end.
    Comparison { detail: Option<String> },
    /// A comparison with a chain: the object, the movement or the address.
    Chain { subject: String },
}

impl Item {
    fn of(scope: Scope, id: AnyId, reason: &str, since: i64, facts: QueueFacts) -> Item {
        Item {
            scope: Some(scope),
            id: Some(id),
            transfer_id: None,
            reason: reason.to_owned(),
            amount: None,
            since,
            facts,
        }
    }

    /// A difference, which belongs to no account and is no object.
    fn difference(
        name: String,
        reason: &str,
        amount: Money,
        since: i64,
        shown: ShownDifference,
    ) -> Item {
        Item {
            scope: None,
            id: None,
            transfer_id: None,
            reason: reason.to_owned(),
            amount: Some(amount),
            since,
            facts: QueueFacts::Difference { name, shown },
        }
    }

    /// The words that the page's filter offers for this item.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let waits_for = match &self.facts {
            QueueFacts::Refund { waits_for, .. } => Some(*waits_for),
            _ => None,
        };
        std::iter::once(self.reason.as_str()).chain(waits_for)
    }
}

/// Adds to items about beneficiaries the name of the account's holder, as the bank gave it, if it
/// differs.
pub fn add_holder_names(
    tx: &mut dyn Tx,
    services: &Services,
    items: &mut [Item],
) -> Result<(), StoreError> {
    for item in items {
        let (Some(scope), Some(id)) = (item.scope, item.id) else { continue };
        let Some(id) = id.typed().filter(|_| id.kind == ObjectKind::Beneficiary) else { continue };
        let holder_name = match &mut item.facts {
            QueueFacts::Review { holder_name, .. } => holder_name,
            QueueFacts::Verification { holder_name, .. } => holder_name,
            _ => continue,
        };
        if let Some(found) = beneficiaries::rows::find(tx, scope, id)? {
            *holder_name = beneficiaries::differing_holder_name(&found, services)?;
        }
    }
    Ok(())
}

/// How many items wait in each queue. `chains` are the chains of the mode.
pub fn lines(
    tx: &mut dyn Tx,
    accounts: &AccountNames,
    mode: Mode,
    chains: &[&str],
) -> Result<Vec<QueueLine>, StoreError> {
    let mut lines = Vec::with_capacity(QueueKind::ALL.len());
    for kind in QueueKind::ALL {
        let QueueItems { items, is_more } = read(tx, *kind, accounts, mode, chains)?;
        lines.push(QueueLine {
            kind: *kind,
            count: items.len(),
            is_more,
            oldest_at: items.iter().map(|item| item.since).min(),
        });
    }
    Ok(lines)
}

/// The items of one queue that were read.
#[derive(Default)]
pub struct QueueItems {
    pub items: Vec<Item>,
    /// Whether a query found more rows than are kept.
    pub is_more: bool,
}

impl QueueItems {
    /// Cuts the result of a query for [`ROWS_ASKED`] rows to [`ROWS_MAX`], and notes whether there
    /// were more.
    fn cut<T>(&mut self, mut found: Vec<T>) -> Vec<T> {
        self.is_more |= super::cut(&mut found, ROWS_MAX);
        found
    }
}

/// How many rows a query asks for: one more than are kept, to see whether there are more.
const ROWS_ASKED: i64 = ROWS_MAX + 1;

/// The items of one queue, oldest first: of each query at most [`ROWS_MAX`]. A query reads one row
/// more. The payouts with a [`journal::Attention`] are an exception: all of them are read, because
/// those of the other mode, and those that the operator has explained, are left out only after
/// that.
pub fn read(
    tx: &mut dyn Tx,
    queue: QueueKind,
    accounts: &AccountNames,
    mode: Mode,
    chains: &[&str],
) -> Result<QueueItems, StoreError> {
    let mut found = read_in_business_time(tx, queue, mode, chains)?;
    for item in &mut found.items {
        item.since -= item.scope.map_or(0, |scope| accounts.ahead_seconds(scope));
    }
    found.items.sort_by_key(|item| item.since);
    Ok(found)
}

/// Like [`read`], with `since` in business time, and not ordered by age.
fn read_in_business_time(
    tx: &mut dyn Tx,
    queue: QueueKind,
    mode: Mode,
    chains: &[&str],
) -> Result<QueueItems, StoreError> {
    match queue {
        QueueKind::Holds => holds(tx, mode),
        QueueKind::Reviews => reviews(tx, mode),
        QueueKind::Verifications => verifications(tx, mode),
        QueueKind::Payouts => stuck_payouts(tx, mode),
        QueueKind::Refunds => open_refunds(tx, mode, chains, RefundStatus::Processing),
        QueueKind::RefundAddresses => open_refunds(tx, mode, chains, RefundStatus::RequiresAddress),
        QueueKind::Unmatched => unmatched(tx, mode),
        QueueKind::Differences => differences(tx, mode, chains),
    }
}

fn holds(tx: &mut dyn Tx, mode: Mode) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    for (scope, id) in found.cut(rows::held_transfers(tx, mode, ROWS_ASKED)?) {
        let Some(transfer) = transfers::rows::find(tx, scope, id)? else { continue };
        let reason = transfer.status_reason.map_or("hold", |reason| reason.as_str());
        let since = transfer.status_history.last_at(TransferStatus::FundingHold);
        let since = since.unwrap_or(transfer.created);
        let facts = QueueFacts::Hold { expected: transfer.expected, until: transfer.hold_until };
        let mut item = Item::of(scope, id.any(), reason, since, facts);
        item.transfer_id = Some(id);
        item.amount = Some(transfer.received);
        found.items.push(item);
    }
    Ok(found)
}

/// Open hits of screening, each with the name or address that was screened and the list entry.
fn reviews(tx: &mut dyn Tx, mode: Mode) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    for hit in found.cut(hits::open_of_mode(tx, mode, ROWS_ASKED)?) {
        let facts = QueueFacts::Review {
            screened: screened_name(tx, &hit)?,
            holder_name: None,
            list: hit.list,
            entry_id: hit.entry_id,
            evidence: hit.evidence,
        };
        let reason = hit.screening.as_str();
        found.items.push(Item::of(hit.scope, hit.subject_id, reason, hit.created, facts));
    }
    Ok(found)
}

/// Who or what a hit is about: a person's name, or an address.
pub fn screened_name(tx: &mut dyn Tx, hit: &HitRow) -> Result<Option<String>, StoreError> {
    let id = hit.subject_id;
    Ok(match id.kind {
        ObjectKind::Sender | ObjectKind::Beneficiary => {
            rows::names(tx, id.kind, hit.scope, &[id])?.pop().map(|(_, name)| name)
        }
        ObjectKind::Refund => {
            let refund = id.typed().map(|id| refunds::rows::find(tx, hit.scope, id)).transpose()?;
            refund.flatten().and_then(|refund| Some(refund.to_address?.to_string()))
        }
        _ => None,
    })
}

fn verifications(tx: &mut dyn Tx, mode: Mode) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    for (scope, id) in found.cut(rows::verifying(tx, mode, ROWS_ASKED)?) {
        let Some(person) = beneficiaries::rows::find(tx, scope, id)? else { continue };
        let reason =
            person.payouts_disabled_reason.unwrap_or(PayoutsDisabledReason::VerificationPending);
        let facts = QueueFacts::Verification {
            name: person.name,
            holder_name: None,
            ifsc: person.ifsc,
            account_number_last4: person.account_number_last4,
            bank_name: person.bank_name,
        };
        found.items.push(Item::of(scope, id.any(), reason.as_str(), person.created, facts));
    }
    Ok(found)
}

fn stuck_payouts(tx: &mut dyn Tx, mode: Mode) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    let mut with_attention = journal::awaiting_operator(tx, usize::MAX)?;
    with_attention.retain(|(scope, ..)| scope.mode() == mode);
    with_attention.truncate(ROWS_ASKED as usize);
    let mut waiting = found.cut(with_attention);
    for (scope, id) in found.cut(rows::stuck_payouts(tx, mode, ROWS_ASKED)?) {
        if !waiting.iter().any(|(_, known, _)| *known == id) {
            waiting.push((scope, id, None));
        }
    }
    for (scope, id, since) in waiting {
        let Some(payout) = payouts::rows::find(tx, scope, id)? else { continue };
        let instruction = journal::find(tx, id)?;
        let attention = instruction.as_ref().and_then(|found| found.attention);
        let failure = payout.failure.as_ref();
        let reason = match (attention, failure) {
            (Some(attention), _) => attention.as_str(),
            (None, Some(failure)) => failure.code.as_str(),
            (None, None) => {
                payout.held_for.map_or(Status::as_str(payout.status), |held| held.as_str())
            }
        };
        let bank_words = instruction.and_then(|found| found.reason.words());
        let facts = QueueFacts::Payout { bank_words };
        let mut item = Item::of(scope, id.any(), reason, payout.created, facts);
        item.transfer_id = Some(payout.transfer_id);
        item.amount = Some(payout.amount);
        if let Some(instant) = since {
            item.since = instant + keys::rows::clock_offset_seconds(tx, scope)?;
        }
        found.items.push(item);
    }
    Ok(found)
}

fn open_refunds(
    tx: &mut dyn Tx,
    mode: Mode,
    chains: &[&str],
    status: RefundStatus,
) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    let mut waiting = Vec::new();
    for chain in chains {
        let of_chain = rows::open_refunds(tx, mode, chain, status, ROWS_ASKED)?;
        waiting.extend(found.cut(of_chain));
    }
    for (scope, id) in waiting {
        let Some(refund) = refunds::rows::find(tx, scope, id)? else { continue };
        let waits_for = match () {
            () if refund.is_held_by_screening => "held_by_screening",
            () if refund.bank_hold_reason.is_some() => "held_for_bank",
            () if refund.sent_fault.is_some() => "sent_fault",
            () if refund.sent_transaction_hash.is_some() => "sent",
            () if status == RefundStatus::RequiresAddress => status.as_str(),
            () => "to_send",
        };
        let fault = match waits_for {
            "held_for_bank" => refund.bank_hold_reason,
            "sent_fault" => refund.sent_fault.map(|fault| fault.as_str().to_owned()),
            _ => None,
        };
        let to_address = refund.to_address.map(|address| address.to_string());
        let facts = QueueFacts::Refund { to_address, waits_for, fault };
        let reason = refund.reason.as_str();
        let mut item = Item::of(scope, id.any(), reason, refund.created, facts);
        item.transfer_id = Some(refund.transfer_id);
        item.amount = Some(refund.amount);
        found.items.push(item);
    }
    Ok(found)
}

fn unmatched(tx: &mut dyn Tx, mode: Mode) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    for (scope, id) in found.cut(rows::unmatched_deposits(tx, mode, ROWS_ASKED)?) {
        let Some(deposit) = deposits::rows::find(tx, scope, id)? else { continue };
        let since = deposit.completed_at.unwrap_or(deposit.created);
        let facts = QueueFacts::Unmatched { transaction_hash: deposit.transaction_hash };
        let mut item = Item::of(scope, id.any(), "unmatched", since, facts);
        item.transfer_id = Some(deposit.transfer_id);
        item.amount = Some(deposit.amount);
        found.items.push(item);
    }
    Ok(found)
}

/// Differences with the bank and the chains: lines of statements that wait for the operator, what
/// the last comparison with the bank found, and what the chain audit found.
fn differences(tx: &mut dyn Tx, mode: Mode, chains: &[&str]) -> Result<QueueItems, StoreError> {
    let mut found = QueueItems::default();
    if reconcile::rows::bank_mode(tx)? == mode {
        for line in found.cut(journal::unmatched(tx, ROWS_ASKED)?) {
            let amount = Money::new(line.units, Currency::Inr);
            let since = super::minted_at(line.id.any());
            let (name, reason) = (line.id.to_string(), line.matching.as_str());
            let shown = ShownDifference::Line {
                sign: line.sign,
                booking_day: line.booking_day,
                reference: line.reference,
            };
            found.items.push(Item::difference(name, reason, amount, since, shown));
        }
    }
    found.is_more |= kept::more_count(tx, mode)? > 0;
    for kept in kept::of_mode(tx, mode)? {
        let (amount, since) = (kept.amount(), kept.since);
        let shown = ShownDifference::Comparison { detail: kept.detail };
        found.items.push(Item::difference(kept.what, &kept.kind, amount, since, shown));
    }
    for chain in chains.iter().filter_map(|name| crate::chains::ChainName::parse(name)) {
        for (id, differs) in found.cut(chain_differences::open(tx, mode, chain, ROWS_ASKED)?) {
            let amount = Money::new(differs.units, Currency::Usdt);
            let since = super::minted_at(id.any());
            let shown = ShownDifference::Chain { subject: differs.subject };
            let (name, reason) = (id.to_string(), differs.kind.as_str());
            found.items.push(Item::difference(name, reason, amount, since, shown));
        }
    }
    Ok(found)
}

/// Whether an item passes the page's filters, an account's name and a reason; an empty filter
/// passes all items. A difference has no account, so it passes the account filter.
pub fn is_asked(item: &Item, accounts: &AccountNames, account: &str, reason: &str) -> bool {
    let of_account = item.scope.is_none_or(|scope| accounts.of(scope) == account);
    let is_reason = reason.is_empty() || item.reasons().any(|known| known == reason);
    (account.is_empty() || of_account) && is_reason
}
