//! Writes payouts into files for the bank. Whatever stops the process or the machine, no payout is
//! sent twice unless the operator says so.
//!
//! There are five steps, in this order ([`ORDER`]):
//!
//! 1. The payouts are recorded as claimed for the file.
//! 2. The file is written durably to `staging`, a folder that no agent sees.
//! 3. The file is recorded as staged.
//! 4. The file is renamed into the outbox.
//! 5. The file is recorded as published.
//!
//! A restart concludes what happened from the record and from `staging` ("claimed" is the status
//! `writing`):
//!
//! | recorded | file in staging | conclusion | action |
//! |---|---|---|---|
//! | claimed | yes or no | it was never renamed | it is dropped, its payouts are queued again |
//! | staged | no | it was renamed | it is recorded as published |
//! | staged, in this boot | yes | it was not renamed | it is renamed, unless payouts are paused |
//! | staged | it is withdrawn | it was never renamed | as if claimed |
//! | staged, in another boot | yes | a power cut may have undone a rename | outcome unknown |
//! | published | yes | a power cut undid the rename | outcome unknown |
//!
//! If the system does not tell its boot, this counts as another boot.
//!
//! A file with a paused payout is not sent: its payouts are queued again. Before `staged` is
//! recorded, it is dropped as if claimed. Afterwards it is first withdrawn, by a rename within
//! `staging`. A file can be withdrawn or published, never both.
//!
//! A payout of unknown outcome waits for the operator, and is never sent again automatically. Each
//! update of the record has the file's previous status in its `WHERE`. So if a worker's lease ends
//! within its turn, only one of that worker and its successor continues with a file.

use sha2::{Digest, Sha256};

use super::{Bank, TurnReport, mark_unknown};
use crate::app_state::AppState;
use crate::beneficiaries;
use crate::kernel::id::kind;
use crate::kernel::{Id, Money, Now, OperationError, StoreError};
use crate::keys;
use crate::pauses::{self, Operation};
use crate::payouts;
use crate::payouts::state::PayoutStatus;
use crate::rails::PaymentMethod;
use crate::rails::files::folders::{WITHDRAWN_ENDING, withdrawn_name};
use crate::rails::files::format::{PaymentOrder, Remitter};
use crate::rails::files::rows::{self, InstructionStatus, Journalled, MessageStatus};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::{EndToEndId, MessageId};
use crate::screening::Screening;
use crate::senders;
use crate::services::Services;
use crate::store::{Cost, Tx};
use crate::transfers;

/// The most unfinished files that one recovery finishes.
const MESSAGES_MAX: i64 = 1_000;

/// One step of writing a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublishStep {
    Claim,
    Stage,
    RecordStaged,
    Rename,
    RecordPublished,
}

/// The order that lets a restart know what happened. A test also tries wrong orders, and must find
/// the harm that they do.
pub const ORDER: [PublishStep; 5] = [
    PublishStep::Claim,
    PublishStep::Stage,
    PublishStep::RecordStaged,
    PublishStep::Rename,
    PublishStep::RecordPublished,
];

/// Where a test stops the work, as a crash would.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultPoint {
    After(PublishStep),
    /// With half the file written.
    WithinStage,
}

/// Why a turn ended early.
#[derive(Debug)]
pub enum Stopped {
    /// The fault point that a test set.
    FaultPoint,
    Error(String),
}

impl From<OperationError> for Stopped {
    fn from(failure: OperationError) -> Stopped {
        Stopped::Error(failure.to_string())
    }
}
impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Stopped {
        Stopped::Error(error.to_string())
    }
}
impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Stopped {
        Stopped::Error(format!("the bank's folders: {error}"))
    }
}

/// A file to write, with the payments that were claimed for it.
struct Draft {
    id: MessageId,
    file_name: String,
    created: i64,
    orders: Vec<PaymentOrder>,
}

impl Bank {
    /// Writes one file of waiting payouts. Answers how many payouts it holds; 0 if no file was
    /// written.
    pub async fn publish(&self, app: &AppState, turn: &mut TurnReport) -> Result<usize, Stopped> {
        self.publish_in(app, &ORDER, None, turn).await
    }

    /// Like [`Bank::publish`], with a given order of the steps and up to a fault point, for tests.
    pub async fn publish_in(
        &self,
        app: &AppState,
        order: &[PublishStep],
        fault: Option<FaultPoint>,
        turn: &mut TurnReport,
    ) -> Result<usize, Stopped> {
        let mut claimed: Option<(Draft, Vec<u8>)> = None;
        for step in order {
            let Some((Draft { id, file_name, .. }, bytes)) = &claimed else {
                let Some(draft) = self.claim(app, turn).await? else { return Ok(0) };
                let bytes = self.file_bytes(&draft)?;
                claimed = Some((draft, bytes));
                if fault == Some(FaultPoint::After(PublishStep::Claim)) {
                    return Err(Stopped::FaultPoint);
                }
                continue;
            };
            match step {
                PublishStep::Claim => {}
                PublishStep::Stage if fault == Some(FaultPoint::WithinStage) => {
                    let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
                    self.folders.stage(file_name, half)?;
                    return Err(Stopped::FaultPoint);
                }
                PublishStep::Stage => self.folders.stage(file_name, bytes)?,
                PublishStep::RecordStaged => {
                    if !self.record_staged(app, *id, Sha256::digest(bytes).into()).await? {
                        self.folders.unstage(file_name)?;
                        return Ok(0);
                    }
                }
                PublishStep::Rename => self.folders.publish(file_name)?,
                PublishStep::RecordPublished => {
                    let (from, to) = (MessageStatus::Staged, MessageStatus::Published);
                    self.record_end(app, *id, from, to, turn).await?
                }
            }
            if fault == Some(FaultPoint::After(*step)) {
                return Err(Stopped::FaultPoint);
            }
        }
        let count = claimed.map_or(0, |(draft, _)| draft.orders.len());
        turn.published_count += count;
        tracing::info!(count, "payouts were written for the bank");
        Ok(count)
    }

    fn file_bytes(&self, draft: &Draft) -> Result<Vec<u8>, StoreError> {
        let format = self.settings.format.0;
        format.write(&self.settings, draft.id, draft.created, &draft.orders)
    }

    async fn claim(&self, app: &AppState, turn: &mut TurnReport) -> Result<Option<Draft>, Stopped> {
        let services = app.services.clone();
        let settings = self.settings.clone();
        let claim = move |tx: &mut dyn Tx, now: &mut Now| claim(tx, now, &services, &settings);
        let (draft, impossible) = app.store.write(claim).await?;
        // The log is not written in the transaction, because that can run twice.
        for (payout_id, why) in &impossible {
            tracing::error!(payout = %payout_id, why,
                "the payout was not sent and waits for the operator");
        }
        turn.alarms_count += impossible.len();
        Ok(draft)
    }

    /// Records that a file is staged. If payouts in it were paused since it was claimed, abandons
    /// it and answers `false`.
    async fn record_staged(
        &self,
        app: &AppState,
        id: MessageId,
        sha256: [u8; 32],
    ) -> Result<bool, Stopped> {
        let boot = self.boot.clone();
        let record = move |tx: &mut dyn Tx, now: &mut Now| {
            if is_paused(tx, id)? {
                let (from, to) = (MessageStatus::Writing, MessageStatus::Abandoned);
                rows::end_message(tx, now, id, from, to)?;
                return Ok(false);
            }
            rows::stage_message(tx, id, &sha256, boot.as_deref())?;
            Ok(true)
        };
        Ok(app.store.write(record).await?)
    }

    /// Records that a file goes from the status `from` to `to`. If `to` is `Unknown`, the outcome
    /// of the file's payouts is marked as unknown. Fails if another worker has changed the status
    /// meanwhile.
    async fn record_end(
        &self,
        app: &AppState,
        id: MessageId,
        from: MessageStatus,
        to: MessageStatus,
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        let services = app.services.clone();
        let record = move |tx: &mut dyn Tx, now: &mut Now| {
            if !rows::end_message(tx, now, id, from, to)? {
                return Ok(None);
            }
            let mut marked_count = 0;
            if to == MessageStatus::Unknown {
                for instruction in rows::of_message(tx, id)? {
                    marked_count += usize::from(mark_unknown(tx, now, &services, &instruction)?);
                }
            }
            Ok(Some(marked_count))
        };
        if let Some(marked_count) = app.store.write(record).await? {
            turn.alarms_count += marked_count;
        } else {
            return Err(Stopped::Error(format!(
                "another worker has changed the status of {id} meanwhile"
            )));
        }
        if to == MessageStatus::Unknown {
            tracing::error!(message = %id, "it is unknown whether the bank saw this file: its \
             payouts wait for the operator");
        }
        Ok(())
    }

    /// Finishes files that a stop left unfinished, by the table at the head of this file.
    pub async fn recover(&self, app: &AppState, turn: &mut TurnReport) -> Result<(), Stopped> {
        let open = app.store.write(|tx, _| Ok(rows::open_messages(tx, MESSAGES_MAX)?)).await?;
        for message in open {
            // Earlier versions stored no name of a file, and put no number into the name.
            let name = message.file_name.unwrap_or_else(|| self.settings.file_name(message.id, 0));
            let is_staged = self.folders.is_staged(&name)?;
            // Looked for after `is_staged`: another worker may withdraw the file in between.
            let is_withdrawn = self.folders.is_staged(&withdrawn_name(&name))?;
            let is_same_boot = message.boot.is_some() && message.boot == self.boot;
            let id = message.id;
            let to = match (message.status, is_staged) {
                (MessageStatus::Staged, false) if is_withdrawn => MessageStatus::Abandoned,
                (MessageStatus::Staged, false) => MessageStatus::Published,
                (MessageStatus::Staged, true)
                    if is_same_boot
                        && app.store.read(Cost::Scan, move |tx| Ok(is_paused(tx, id)?)).await? =>
                {
                    match self.folders.withdraw(&name)? {
                        true => MessageStatus::Abandoned,
                        false => MessageStatus::Published,
                    }
                }
                (MessageStatus::Staged, true) if is_same_boot => {
                    self.folders.publish(&name)?;
                    MessageStatus::Published
                }
                (MessageStatus::Staged, true) => MessageStatus::Unknown,
                _ => MessageStatus::Abandoned,
            };
            self.record_end(app, message.id, message.status, to, turn).await?;
            // The file is removed only now: until the record, another worker might have continued
            // with it.
            if to == MessageStatus::Abandoned {
                self.folders.unstage(&name)?;
                self.folders.unstage(&withdrawn_name(&name))?;
            }
        }
        // The files that are still in `staging` have ended, except one that another worker has
        // begun since.
        for name in self.folders.staged()? {
            let asked = name.strip_suffix(WITHDRAWN_ENDING).unwrap_or(&name).to_owned();
            let id_in_name = self.settings.message_id(&asked);
            let find = move |tx: &mut dyn Tx, _: &mut Now| {
                let named = rows::message_named(tx, &asked)?;
                Ok(match (named, id_in_name) {
                    (None, Some(id)) => rows::find_message(tx, id)?,
                    (named, _) => named,
                })
            };
            let found = app.store.write(find).await?;
            let Some(id) = found.as_ref().map(|message| message.id).or(id_in_name) else {
                continue;
            };
            match found.map(|message| message.status) {
                // Begun since `open_messages` was read, by a worker whose lease has ended.
                Some(MessageStatus::Writing | MessageStatus::Staged) => continue,
                // Look once more: the file may have been renamed and recorded since it was listed.
                Some(MessageStatus::Published) if self.folders.is_staged(&name)? => {
                    let (from, to) = (MessageStatus::Published, MessageStatus::Unknown);
                    self.record_end(app, id, from, to, turn).await?;
                }
                _ => {}
            }
            self.folders.unstage(&name)?;
        }
        Ok(())
    }
}

/// Whether payouts are paused for everybody, or for the account of a payout in this file.
fn is_paused(tx: &mut dyn Tx, id: MessageId) -> Result<bool, StoreError> {
    let pauses = pauses::rows::all(tx)?;
    let is_stopped = |scope| pauses.iter().any(|pause| pause.stops(Operation::Payouts, scope));
    Ok(rows::of_message(tx, id)?.iter().any(|instruction| is_stopped(instruction.scope)))
}

/// Claims waiting instructions for a file, and gathers what the bank must know of them.
/// Instructions of paused accounts stay in the queue, and so do those of methods that the bank does
/// not take now. The limits of one file are kept, but a payment above the limit of the amount gets
/// a file of its own. Also answers which payouts were handed to the operator instead, and why.
fn claim(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    settings: &BankSettings,
) -> Result<(Option<Draft>, Vec<(Id<kind::Payout>, &'static str)>), OperationError> {
    let (rows_max, amount_max) = (settings.batch_instructions_max, settings.batch_amount_max);
    let id = MessageId(now.mint());
    let mut orders = Vec::new();
    let mut impossible = Vec::new();
    let mut sum = Money::zero(amount_max.currency);
    let pauses = pauses::rows::all(tx)?;
    let paused = pauses.iter().filter(|pause| pause.operation == Operation::Payouts);
    // The numbers of callers' accounts; `None` stands for everybody.
    let paused: Vec<Option<i64>> = paused.map(|pause| pause.account_number).collect();
    if paused.contains(&None) {
        return Ok((None, Vec::new()));
    }
    let paused: Vec<i64> = paused.into_iter().flatten().collect();
    let is_open =
        |method: &PaymentMethod| settings.profile.opens_at(*method, now.instant()).is_none();
    let open: Vec<PaymentMethod> = PaymentMethod::ALL.iter().copied().filter(is_open).collect();
    for instruction in rows::queued(tx, &open, &paused, rows_max as i64)? {
        let amount = Money::new(instruction.units, amount_max.currency);
        let new_sum = sum.plus(amount)?;
        if new_sum.units > amount_max.units && !orders.is_empty() {
            break;
        }
        match payment_order(tx, services, settings, &instruction)? {
            Ok(order) => {
                let written = |name: &str| settings.written_name(name);
                let names = (written(&order.beneficiary_name), written(&order.sender.name));
                rows::note_names(tx, instruction.payout_id, &names.0, &names.1)?;
                rows::advance(
                    tx,
                    instruction.payout_id,
                    InstructionStatus::Queued,
                    InstructionStatus::Writing,
                    Some(id),
                )?;
                orders.push(order);
                sum = new_sum;
            }
            Err(Unwritten::Ended) => {
                rows::withdraw(tx, instruction.payout_id)?;
            }
            Err(Unwritten::Impossible(why)) => {
                rows::withdraw(tx, instruction.payout_id)?;
                mark_unknown(tx, now, services, &instruction)?;
                impossible.push((instruction.payout_id, why));
            }
        }
    }
    if orders.is_empty() {
        return Ok((None, impossible));
    }
    let file_name = settings.file_name(id, file_number(tx, settings, id)?);
    rows::begin_message(tx, now, id, &file_name, orders.len() as i64, sum.units)?;
    now.leave_account();
    let draft = Draft { id, file_name, created: now.instant(), orders };
    Ok((Some(draft), impossible))
}

/// The number in a file's name; 0 if the bank asks for none.
///
/// Fails with `Declined`, whose text is for the operator, if the numbers are used up.
fn file_number(
    tx: &mut dyn Tx,
    settings: &BankSettings,
    id: MessageId,
) -> Result<i64, OperationError> {
    let Some((series, number_max)) = settings.profile.file_number_series(id) else { return Ok(0) };
    let number = rows::next_file_number(tx, &series, settings.profile.file_number_first)?;
    if number > number_max {
        return Err(OperationError::Declined(format!(
            "the bank's file numbers are used up: {number_max} is the last one that fits into \
             [bank.profile] file_name"
        )));
    }
    Ok(number)
}

/// Why an instruction is not written.
enum Unwritten {
    /// The payout has ended meanwhile, or its outcome is unknown.
    Ended,
    /// It cannot be sent, for this reason. The operator decides.
    Impossible(&'static str),
}

/// Gathers what the bank must know of a payment, or says why it is not written.
fn payment_order(
    tx: &mut dyn Tx,
    services: &Services,
    settings: &BankSettings,
    instruction: &Journalled,
) -> Result<Result<PaymentOrder, Unwritten>, StoreError> {
    let lost = || {
        StoreError::Broken(format!(
            "{}, or its transfer, beneficiary or sender, is missing",
            instruction.payout_id
        ))
    };
    let scope = instruction.scope;
    let payout = payouts::rows::find(tx, scope, instruction.payout_id)?.ok_or_else(lost)?;
    if payout.status != PayoutStatus::Processing || payout.failure.is_some() {
        return Ok(Err(Unwritten::Ended));
    }
    let transfer = transfers::rows::find(tx, scope, payout.transfer_id)?.ok_or_else(lost)?;
    let beneficiary =
        beneficiaries::rows::find(tx, scope, payout.beneficiary_id)?.ok_or_else(lost)?;
    let sender = senders::rows::find(tx, scope, transfer.sender_id)?.ok_or_else(lost)?;
    // The instruction may have waited for days, for the bank's hours or a pause, and somebody may
    // have been listed or refused meanwhile.
    if !beneficiary.is_payable() {
        return Ok(Err(Unwritten::Impossible("the beneficiary may not be paid any more")));
    }
    if sender.screening != Screening::Clear {
        return Ok(Err(Unwritten::Impossible("the sender may not send any more")));
    }
    let Ok(account_number) = beneficiaries::open_account_number(&beneficiary, services) else {
        return Ok(Err(Unwritten::Impossible("the stored account number cannot be read")));
    };
    let characters = settings.profile.characters;
    if !characters.can_write(&sender.name) || !characters.can_write(&beneficiary.name) {
        return Ok(Err(Unwritten::Impossible("a name has no character that the bank takes")));
    }
    let identification = senders::open_identification(&sender, services)?;
    let address = sender.address.clone();
    Ok(Ok(PaymentOrder {
        end_to_end_id: EndToEndId::of(payout.id),
        amount: payout.amount,
        method: payout.method,
        purpose_code: payout.purpose_code,
        sender: Remitter {
            name: sender.name,
            country: address.as_ref().map_or(sender.country, |address| address.country.clone()),
            street: address.as_ref().map(|address| address.line1.clone()),
            postal_code: address.as_ref().and_then(|address| address.postal_code.clone()),
            town: address.as_ref().map(|address| address.city.clone()),
            region: address.and_then(|address| address.state),
            date_of_birth: sender.date_of_birth,
            identification,
        },
        beneficiary_name: beneficiary.name,
        account_number: secrecy::ExposeSecret::expose_secret(&account_number).to_owned(),
        ifsc: beneficiary.ifsc,
    }))
}

/// Sets `now` to the business time of the instruction's account, for the rules. The caller ends
/// that with `Now::leave_account`.
pub(super) fn enter_account(
    tx: &mut dyn Tx,
    now: &mut Now,
    instruction: &Journalled,
) -> Result<(), StoreError> {
    now.enter_account(keys::rows::clock_offset_seconds(tx, instruction.scope)?);
    Ok(())
}
