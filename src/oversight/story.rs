//! The story of a transfer: all that belongs to it, and the moments of its life in order of time.

pub mod rows;

use super::rows::{FileIn, FileOut, file_of_reason, find_file_out};
use super::{AccountNames, cut};
use crate::beneficiaries::{self, Beneficiary};
use crate::deposits::{self, Deposit};
use crate::events::rows::EventRow;
use crate::kernel::id::kind;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, Currency, Id, Money, Scope, StoreError, rupees};
use crate::ledger::LedgerEntryKind;
use crate::payouts::{self, Payout};
use crate::quote_locks::{self, QuoteLock};
use crate::rails::files::rows::{self as journal, Journalled};
use crate::refunds::{self, Refund};
use crate::screening::hit::HitRow;
use crate::screening::rows as hits;
use crate::senders::{self, Sender};
use crate::store::Tx;
use crate::transfers::{self, Transfer};
use crate::webhooks::ENDPOINTS_MAX;
use crate::webhooks::deliveries::{AttemptRow, Delivery};
use rows::{BankLine, PostingRow};

/// The most rows that are shown of each kind, and of events about each object. Hits have no limit.
pub const ROWS_MAX: i64 = 100;
/// The deliveries of this many newest events are shown.
const EVENTS_DELIVERED_MAX: usize = 40;
/// This many newest attempts of a delivery are shown.
const ATTEMPTS_MAX: i64 = 3;

/// An event, and what became of it for each endpoint that wanted it.
pub struct Announced {
    pub event: EventRow,
    pub deliveries: Vec<Delivered>,
}

/// A delivery and its newest attempts, newest first.
pub struct Delivered {
    pub delivery: Delivery,
    pub attempts: Vec<AttemptRow>,
}

/// All that belongs to one transfer.
pub struct Story {
    pub account: String,
    /// The account's business time when the story was read, in Unix seconds.
    pub business: i64,
    pub transfer: Transfer,
    pub sender: Option<Sender>,
    pub beneficiary: Option<Beneficiary>,
    pub quote: Option<QuoteLock>,
    pub deposits: Vec<Deposit>,
    pub payout: Option<Payout>,
    pub instruction: Option<Journalled>,
    /// The file that the payout was last written into.
    pub file: Option<FileOut>,
    /// The file from the bank that brought its reason for what became of the payout.
    pub reason_file: Option<FileIn>,
    pub bank_lines: Vec<BankLine>,
    pub refunds: Vec<Refund>,
    pub postings: Vec<PostingRow>,
    pub hits: Vec<HitRow>,
    pub announced: Vec<Announced>,
    /// Whether something is left out, because there are more than `ROWS_MAX` rows of its kind.
    pub is_cut: bool,
}

/// Reads the story of a transfer; `None` if the account has no such transfer. `instant` is the
/// store's clock in Unix seconds.
pub fn read(
    tx: &mut dyn Tx,
    accounts: &AccountNames,
    scope: Scope,
    id: Id<kind::Transfer>,
    instant: i64,
) -> Result<Option<Story>, StoreError> {
    let Some(transfer) = transfers::rows::find(tx, scope, id)? else { return Ok(None) };
    let page = Page {
        limit: ROWS_MAX,
        descending: true,
        filters: vec![("transfer_id", FilterValue::Id(id.to_bytes()))],
        ..Page::default()
    };
    let (found, is_more_deposits) = deposits::rows::list(tx, scope, &page)?;
    let deposits = found.into_iter().map(deposits::rows::read).collect::<Result<Vec<_>, _>>()?;
    let (found, is_more_refunds) = refunds::rows::list(tx, scope, &page)?;
    let refunds = found.into_iter().map(refunds::rows::read).collect::<Result<Vec<_>, _>>()?;
    let payout = match transfer.payout_id {
        Some(id) => payouts::rows::find(tx, scope, id)?,
        None => None,
    };
    let (mut instruction, mut file, mut reason_file, mut bank_lines) = Default::default();
    if let Some(payout) = &payout {
        instruction = journal::find(tx, payout.id)?;
        reason_file = file_of_reason(tx, payout.id)?;
        bank_lines = rows::bank_lines(tx, payout.id, ROWS_MAX + 1)?;
        let sent_in = instruction.as_ref().and_then(|found: &Journalled| found.message_id);
        if let Some(message_id) = sent_in {
            file = find_file_out(tx, message_id.0)?;
        }
    }
    let mut screened = vec![transfer.sender_id.any(), transfer.beneficiary_id.any(), id.any()];
    screened.extend(refunds.iter().map(|refund| refund.id.any()));
    let mut found = Vec::new();
    for subject in screened {
        found.extend(hits::of_subject(tx, scope, subject)?);
    }
    let mut objects = vec![id.any()];
    objects.extend(deposits.iter().map(|deposit| deposit.id.any()));
    objects.extend(payout.iter().map(|payout| payout.id.any()));
    objects.extend(refunds.iter().map(|refund| refund.id.any()));
    let (announced, is_cut) = announced(tx, scope, &objects, ROWS_MAX)?;
    let mut postings = rows::postings(tx, scope, id, ROWS_MAX + 1)?;
    let is_cut = is_cut | is_more_deposits | is_more_refunds;
    Ok(Some(Story {
        account: accounts.of(scope).to_owned(),
        business: instant + crate::keys::rows::clock_offset_seconds(tx, scope)?,
        sender: senders::rows::find(tx, scope, transfer.sender_id)?,
        beneficiary: beneficiaries::rows::find(tx, scope, transfer.beneficiary_id)?,
        quote: quote_locks::rows::find(tx, scope, transfer.quote_lock_id)?,
        is_cut: is_cut | cut(&mut postings, ROWS_MAX) | cut(&mut bank_lines, ROWS_MAX),
        postings,
        transfer,
        deposits,
        payout,
        instruction,
        file,
        reason_file,
        bank_lines,
        refunds,
        hits: found,
        announced,
    }))
}

/// The newest `rows_max` events about each of these objects, in one list, oldest first; and whether
/// there are more. Only the list's newest `EVENTS_DELIVERED_MAX` come with their deliveries.
pub fn announced(
    tx: &mut dyn Tx,
    scope: Scope,
    objects: &[AnyId],
    rows_max: i64,
) -> Result<(Vec<Announced>, bool), StoreError> {
    let (mut events, mut is_more) = (Vec::new(), false);
    for object in objects {
        let mut found = rows::events_about(tx, scope, *object, rows_max + 1)?;
        is_more |= cut(&mut found, rows_max);
        events.extend(found);
    }
    events.sort_unstable_by_key(|event| event.id);
    let page = Page { limit: ENDPOINTS_MAX, descending: true, ..Page::default() };
    let endpoints = crate::webhooks::rows::list(tx, scope, &page)?.0.into_iter();
    let endpoints = endpoints.map(crate::webhooks::rows::read).collect::<Result<Vec<_>, _>>()?;
    let older = events.len().saturating_sub(EVENTS_DELIVERED_MAX);
    let mut announced = Vec::with_capacity(events.len());
    for (place, event) in events.into_iter().enumerate() {
        let mut deliveries = Vec::new();
        if place >= older {
            for endpoint in &endpoints {
                let found = crate::webhooks::rows::delivery_of_event(tx, endpoint.id, event.id)?;
                let Some(delivery) = found else { continue };
                let (hook, id) = (delivery.endpoint_id, delivery.id);
                let attempts = crate::webhooks::rows::attempts(tx, hook, id, ATTEMPTS_MAX)?;
                deliveries.push(Delivered { delivery, attempts });
            }
        }
        announced.push(Announced { event, deliveries });
    }
    Ok((announced, is_more))
}

/// What a moment is about; the pages have a word and a sign for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoryTheme {
    Quote,
    Transfer,
    Check,
    Deposit,
    Payout,
    Bank,
    Refund,
    Advice,
    Ledger,
    Event,
}

impl StoryTheme {
    pub const fn as_str(self) -> &'static str {
        match self {
            StoryTheme::Quote => "quote_lock",
            StoryTheme::Transfer => "transfer",
            StoryTheme::Check => "check",
            StoryTheme::Deposit => "deposit",
            StoryTheme::Payout => "payout",
            StoryTheme::Bank => "bank",
            StoryTheme::Refund => "refund",
            StoryTheme::Advice => "payment_advice",
            StoryTheme::Ledger => "ledger",
            StoryTheme::Event => "event",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Unix seconds of business time. Moments of the bank have the store's clock in every mode.
    pub at: i64,
    pub theme: StoryTheme,
    /// What happened, as a word that the pages have a text for.
    pub what: String,
    pub id: Option<AnyId>,
    pub amount: Option<Money>,
    /// Further facts: the key of a label's text, and the value to show beside it.
    pub facts: Vec<(&'static str, String)>,
}

impl Moment {
    fn new(at: i64, theme: StoryTheme, what: &str) -> Moment {
        Moment { at, theme, what: what.to_owned(), id: None, amount: None, facts: Vec::new() }
    }
    /// The place among moments of the same second: postings and events follow their cause.
    fn rank(&self) -> (u8, u8) {
        match self.theme {
            StoryTheme::Ledger => (posting_rank(&self.what), 1),
            StoryTheme::Event => (event_rank(&self.what), 2),
            theme => (Moment::own_rank(theme, &self.what), 0),
        }
    }
    /// The place of a moment that is no posting or event, in the usual course of a transfer.
    fn own_rank(theme: StoryTheme, what: &str) -> u8 {
        match (theme, what) {
            (StoryTheme::Check, "account_checked") => 0,
            (StoryTheme::Quote, _) => 0,
            (StoryTheme::Transfer, "funding") => 1,
            (StoryTheme::Check, _) => 2,
            (StoryTheme::Deposit, "initialized") => 3,
            (StoryTheme::Deposit, "processing") => 4,
            (StoryTheme::Deposit, _) => 5,
            (StoryTheme::Transfer, "funded" | "funding_hold" | "expired" | "cancelled") => 6,
            (StoryTheme::Payout, "initialized") => 7,
            (StoryTheme::Payout, "hold") => 8,
            (StoryTheme::Payout, "processing") => 9,
            (StoryTheme::Transfer, "payout_processing") => 10,
            (StoryTheme::Bank, _) => 11,
            (StoryTheme::Payout, _) => 12,
            (StoryTheme::Transfer, "payout_settled" | "payout_failed" | "payout_returned") => 13,
            (StoryTheme::Advice, _) => 14,
            (StoryTheme::Transfer, "refund_processing") => 15,
            (StoryTheme::Refund, _) => 16,
            (StoryTheme::Transfer | StoryTheme::Ledger | StoryTheme::Event, _) => 17,
        }
    }
    fn about(mut self, id: AnyId) -> Moment {
        self.id = Some(id);
        self
    }
    fn of(mut self, amount: Money) -> Moment {
        self.amount = Some(amount);
        self
    }
    fn with(mut self, name: &'static str, value: impl ToString) -> Moment {
        self.facts.push((name, value.to_string()));
        self
    }
    fn with_some<T: ToString>(self, name: &'static str, value: Option<T>) -> Moment {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

/// The [`Moment::own_rank`] of what caused an event of this type, such as `payout.status.settled`.
fn event_rank(event_type: &str) -> u8 {
    let theme = match event_type.split('.').next() {
        Some("transfer") => StoryTheme::Transfer,
        Some("deposit") => StoryTheme::Deposit,
        Some("refund") => StoryTheme::Refund,
        _ if event_type.contains("payment_advice") => StoryTheme::Advice,
        _ => StoryTheme::Payout,
    };
    Moment::own_rank(theme, event_type.rsplit('.').next().unwrap_or_default())
}

/// The [`Moment::own_rank`] of what caused a ledger entry of this kind.
fn posting_rank(entry: &str) -> u8 {
    let (theme, what) = match LedgerEntryKind::parse(entry) {
        Some(LedgerEntryKind::DepositCredited | LedgerEntryKind::DepositHeld) => {
            (StoryTheme::Deposit, "completed")
        }
        Some(
            LedgerEntryKind::FundsHeld
            | LedgerEntryKind::FundsReleased
            | LedgerEntryKind::TransferFunded
            | LedgerEntryKind::ExcessHeld,
        ) => (StoryTheme::Transfer, "funded"),
        Some(LedgerEntryKind::PayoutExchanged) => (StoryTheme::Payout, "processing"),
        Some(LedgerEntryKind::RefundSent) => (StoryTheme::Refund, "completed"),
        _ => (StoryTheme::Payout, "settled"),
    };
    Moment::own_rank(theme, what)
}

impl Story {
    /// Every moment in the order of time. Those of one second are in the order in which one leads
    /// to the next.
    pub fn moments(&self) -> Vec<Moment> {
        let mut moments = Vec::new();
        self.add_checks(&mut moments);
        self.add_quote(&mut moments);
        self.add_transfer(&mut moments);
        self.add_deposits(&mut moments);
        self.add_payout(&mut moments);
        self.add_refunds(&mut moments);
        self.add_postings(&mut moments);
        self.add_events(&mut moments);
        moments.sort_by_key(|moment| (moment.at, moment.rank()));
        moments
    }

    fn add_quote(&self, moments: &mut Vec<Moment>) {
        let Some(quote) = &self.quote else { return };
        let inputs = quote.rate_inputs;
        let moment = Moment::new(quote.created, StoryTheme::Quote, "locked")
            .about(quote.id.any())
            .of(quote.buy)
            .with("rate", quote.rate)
            .with("mid_market_rate", quote.mid_market_rate)
            .with_some("rate_source", inputs.map(|inputs| inputs.source.as_str()))
            .with_some("usdt_usd", inputs.map(|inputs| inputs.usdt_usd))
            .with_some("rate_observed_at", inputs.map(|inputs| inputs.observed_at))
            .with(
                "sold",
                format!("{} {}", rupees::grouped(quote.sell), quote.sell.currency.as_str()),
            )
            .with("fee", format!("{} {}", quote.fee, quote.fee.currency.as_str()))
            .with_some("gst", quote.gst.map(|gst| gst.amount));
        moments.push(moment);
    }

    fn add_transfer(&self, moments: &mut Vec<Moment>) {
        let transfer = &self.transfer;
        for taken in transfer.status_history.entries() {
            let mut moment =
                Moment::new(taken.at, StoryTheme::Transfer, Status::as_str(taken.status));
            let is_last = Some(taken.at) == transfer.status_history.last_at(transfer.status)
                && taken.status == transfer.status;
            if let (true, Some(reason)) = (is_last, transfer.status_reason) {
                moment = moment.with("reason", reason.as_str());
            }
            moments.push(moment);
        }
    }

    fn add_checks(&self, moments: &mut Vec<Moment>) {
        if let Some(beneficiary) = &self.beneficiary
            && let (Some(at), Some(found)) = (beneficiary.checked_at, beneficiary.name_match)
        {
            let looked_up = Moment::new(at, StoryTheme::Check, "account_checked")
                .about(beneficiary.id.any())
                .with("name_match", found.as_str());
            moments.push(looked_up);
        }
        for hit in &self.hits {
            let found = Moment::new(hit.created, StoryTheme::Check, "hit")
                .about(hit.subject_id)
                .with("list", format!("{} {}", hit.list, hit.entry_id))
                .with("evidence", &hit.evidence);
            moments.push(found);
            if let (Some(decision), Some(at)) = (hit.decision, hit.decided_at) {
                let decided = Moment::new(at, StoryTheme::Check, decision.as_str())
                    .about(hit.subject_id)
                    .with("list", format!("{} {}", hit.list, hit.entry_id))
                    .with_some("decided_by", hit.decided_by.as_ref());
                moments.push(decided);
            }
        }
    }

    fn add_deposits(&self, moments: &mut Vec<Moment>) {
        for deposit in &self.deposits {
            for taken in deposit.status_history.entries() {
                let is_end = taken.status == deposit.status;
                let mut moment =
                    Moment::new(taken.at, StoryTheme::Deposit, Status::as_str(taken.status))
                        .about(deposit.id.any())
                        .of(deposit.amount);
                if is_end {
                    let classification =
                        deposit.classification.map(|classification| classification.as_str());
                    moment = moment
                        .with("transaction", &deposit.transaction_hash)
                        .with_some("block", deposit.block_number)
                        .with_some("classification", classification)
                        .with_some("reason", deposit.reason_code.map(|reason| reason.as_str()));
                }
                moments.push(moment);
            }
        }
    }

    fn add_payout(&self, moments: &mut Vec<Moment>) {
        let Some(payout) = &self.payout else { return };
        for taken in payout.status_history.entries() {
            let mut moment =
                Moment::new(taken.at, StoryTheme::Payout, Status::as_str(taken.status))
                    .about(payout.id.any())
                    .of(payout.amount);
            if taken.status == crate::payouts::state::PayoutStatus::Settled {
                moment = moment.with_some("utr", payout.unique_transaction_reference.as_ref());
            }
            if taken.status == payout.status
                && let Some(failure) = &payout.failure
            {
                moment = moment
                    .with("reason", failure.code.as_str())
                    .with("said_by", failure.source.as_str());
            }
            if taken.status == payout.status
                && let Some(instruction) = &self.instruction
            {
                moment = moment
                    .with_some("bank_says", instruction.reason.words())
                    .with_some("entry_reference", instruction.entry_reference.as_ref());
            }
            moments.push(moment);
        }
        if let Some(file) = &self.file {
            let at = file.published_at.unwrap_or(file.created);
            let moment = Moment::new(at, StoryTheme::Bank, &file.status)
                .with("file", file.id.to_string().trim_start_matches("request_"))
                .with("payments", file.instructions_count);
            moments.push(moment);
        }
        if let (Some(file), Some(instruction)) = (&self.reason_file, &self.instruction) {
            let moment = Moment::new(file.received_at, StoryTheme::Bank, "reason_given")
                .with("file", &file.message_id)
                .with("kind", file.kind.word())
                .with_some("bank_says", instruction.reason.words());
            moments.push(moment);
        }
        for line in &self.bank_lines {
            // The bank books by days, so the moment is when the service read the line.
            let at = super::minted_at(line.id.any());
            let moment = Moment::new(at, StoryTheme::Bank, &line.sign)
                .of(Money::new(line.units, Currency::Inr))
                .with("booked", &line.booking_day)
                .with_some("statement", line.statement_id.as_ref())
                .with_some("utr", line.reference.as_ref());
            moments.push(moment);
        }
        if let Some(at) = payout.advice_available_at {
            moments.push(Moment::new(at, StoryTheme::Advice, "available").about(payout.id.any()));
        }
    }

    fn add_postings(&self, moments: &mut Vec<Moment>) {
        for posting in &self.postings {
            let entry = posting.entry.as_str();
            let moment = Moment::new(posting.posted_at, StoryTheme::Ledger, entry)
                .of(posting.amount)
                .with("from", posting.credit.as_str())
                .with("to", posting.debit.as_str());
            moments.push(moment);
        }
    }

    fn add_events(&self, moments: &mut Vec<Moment>) {
        for Announced { event, .. } in &self.announced {
            let moment = Moment::new(event.created, StoryTheme::Event, &event.event_type);
            moments.push(moment.about(event.id.any()));
        }
    }

    fn add_refunds(&self, moments: &mut Vec<Moment>) {
        for refund in &self.refunds {
            for taken in refund.status_history.entries() {
                let mut moment =
                    Moment::new(taken.at, StoryTheme::Refund, Status::as_str(taken.status))
                        .about(refund.id.any())
                        .of(refund.amount)
                        .with("reason", refund.reason.as_str());
                if taken.status == refund.status {
                    let declared = refund.address_declared_by.map(|by| by.as_str());
                    moment = moment
                        .with_some("to_address", refund.to_address)
                        .with_some("declared_by", declared)
                        .with_some("note", refund.address_reason.as_ref())
                        .with_some("transaction", refund.transaction_hash.as_ref());
                }
                moments.push(moment);
            }
        }
    }
}
