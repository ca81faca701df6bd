//! The bank's worker: writes payouts into files for the bank, reads its files, and applies each
//! report in a transaction of its own. Duplicates, reports in another order and reports of unknown
//! payments change nothing; they are counted.

pub mod publish;

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::app_state::AppState;
use crate::kernel::clock::machine_time;
use crate::kernel::{Currency, Money, Now, StoreError, hex};
use crate::payouts;
use crate::payouts::state::PayoutStatus;
use crate::rails::iso20022::folders::{Folders, Seen};
use crate::rails::iso20022::reasons::{self, Meaning};
use crate::rails::iso20022::reports::{
    self, Content, Incoming, Line, References, ReportKind, Sign, StatusReport,
};
use crate::rails::iso20022::rows::{
    self, Counts, FileStatus, InstructionStatus, Journalled, Matching, Place,
};
use crate::rails::iso20022::settings::BankSettings;
use crate::rails::iso20022::values::{Day, EndToEndId, MessageId};
use crate::rails::iso20022::xml::Refused;
use crate::rails::{BankReport, FailureCode, Method};
use crate::reconcile;
use crate::services::Services;
use crate::store::Cost;
use crate::store::Tx;
use crate::transfers::paying;
use publish::Stopped;

/// Payouts without a word from the bank that one turn gives to the operator.
const UNANSWERED_MAX: i64 = 500;

/// The bank as the worker holds it.
pub struct Bank {
    settings: Arc<BankSettings>,
    folders: Folders,
    /// Which start of the machine this is; `None` where the system does not tell.
    boot: Option<String>,
    /// The inbox as the last look saw it.
    seen: Vec<Seen>,
}

/// What one turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub published_count: usize,
    pub files_count: usize,
    pub refused_count: usize,
    pub counts: Counts,
}

/// What a file of the inbox turned out to be.
enum Judged {
    Message(Incoming),
    Refused(Refused),
}

impl Bank {
    /// Opens the bank's folders.
    pub fn open(settings: Arc<BankSettings>) -> Result<Bank, String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|text| text.trim().to_owned());
        Bank::open_in_boot(settings, boot)
    }
    /// The same in a given start of the machine, for tests.
    pub fn open_in_boot(settings: Arc<BankSettings>, boot: Option<String>) -> Result<Bank, String> {
        let folders = Folders::open(&settings.folder)?;
        Ok(Bank { settings, folders, boot, seen: Vec::new() })
    }
    pub const fn folders(&self) -> &Folders {
        &self.folders
    }

    /// One turn: ends what a stop left unfinished, writes what waits, reads what came, and gives
    /// the operator what the bank does not answer.
    pub async fn turn(&mut self, app: &AppState) -> Result<Turn, Stopped> {
        self.recover(app).await?;
        let mut turn = Turn::default();
        loop {
            match self.publish(app).await? {
                0 => break,
                count => turn.published_count += count,
            }
        }
        self.receive(app, &mut turn).await?;
        self.give_up_unanswered(app).await?;
        Ok(turn)
    }

    /// Reads the files that have not changed since the last look.
    async fn receive(&mut self, app: &AppState, turn: &mut Turn) -> Result<(), Stopped> {
        let look = self.folders.incoming()?;
        let settled: Vec<Seen> =
            look.iter().filter(|seen| self.seen.contains(seen)).cloned().collect();
        self.seen = look;
        // One file that cannot be read or moved keeps none of the others waiting.
        let mut trouble = None;
        for seen in settled {
            if let Err(stopped) = self.receive_one(app, &seen, turn).await {
                trouble = Some(stopped);
            }
        }
        trouble.map_or(Ok(()), Err)
    }

    async fn receive_one(
        &self,
        app: &AppState,
        seen: &Seen,
        turn: &mut Turn,
    ) -> Result<(), Stopped> {
        let (folders, name) = (self.folders.clone(), seen.name.clone());
        let read = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
            let bytes = folders.read(&name)?;
            let sha256: [u8; 32] = Sha256::digest(&bytes).into();
            let judged = match reports::read(&bytes) {
                Ok(message) => Judged::Message(message),
                Err(refused) => Judged::Refused(refused),
            };
            Ok((sha256, judged))
        });
        let (sha256, judged) = match read.await {
            Ok(Ok(read)) => read,
            // The file went away, or cannot be read: the next look will tell.
            Ok(Err(error)) => {
                tracing::warn!(%error, "a file in the bank's inbox could not be read; tried again");
                app.metrics.bank_files.count("unreadable");
                return Ok(());
            }
            Err(_) => return Err(Stopped::Trouble("reading a file panicked".into())),
        };
        let mark = hex::encode(&sha256[..8]);
        let message = match judged {
            Judged::Refused(refused)
                if refused.is_truncated && !seen.is_at_rest(machine_time()) =>
            {
                return Ok(());
            }
            Judged::Refused(refused) => {
                return self.refuse(app, seen, &mark, &refused.reason, turn);
            }
            Judged::Message(message) => message,
        };
        if let Content::Accounts(accounts) = &message.content
            && accounts
                .iter()
                .any(|account| account.account_number != self.settings.debit_account_number())
        {
            return self.refuse(
                app,
                seen,
                &mark,
                "the file is about another account than the one of [bank] debit_account_number",
                turn,
            );
        }
        let (kind, message_id) = (message.kind, message.message_id.clone());
        let begin = move |tx: &mut dyn Tx, now: &mut Now| {
            let status = rows::file_status(tx, &sha256)?;
            if status.is_none() {
                if rows::is_message_known(tx, kind, &message_id)? {
                    return Ok(None);
                }
                rows::file_begin(tx, now, &sha256, kind, &message_id)?;
            }
            Ok(Some(status))
        };
        match app.store.write(begin).await? {
            None => {
                let reason = "another file with this message identity was applied before; this \
                 one holds something else, so it was left alone";
                return self.refuse(app, seen, &mark, reason, turn);
            }
            Some(Some(FileStatus::Applied)) => {
                tracing::info!(
                    kind = kind.as_str(),
                    mark,
                    "a file of the bank's came again and was ignored"
                );
                app.metrics.bank_files.count("again");
            }
            Some(_) => {
                let counts = self.apply(app, sha256, message).await?;
                app.store.write(move |tx, _| Ok(rows::file_end(tx, &sha256, counts)?)).await?;
                tracing::info!(
                    kind = kind.as_str(),
                    mark,
                    applied = counts.applied,
                    ignored = counts.ignored,
                    unknown = counts.unknown,
                    "a file of the bank's was applied"
                );
                app.metrics.bank_files.count("applied");
                for (outcome, count) in [
                    ("applied", counts.applied),
                    ("ignored", counts.ignored),
                    ("unknown", counts.unknown),
                ] {
                    app.metrics.bank_reports.count_many(outcome, count.unsigned_abs());
                }
                turn.files_count += 1;
                turn.counts.applied += counts.applied;
                turn.counts.ignored += counts.ignored;
                turn.counts.unknown += counts.unknown;
            }
        }
        Ok(self.folders.archive(&seen.name, &mark)?)
    }

    fn refuse(
        &self,
        app: &AppState,
        seen: &Seen,
        mark: &str,
        reason: &str,
        turn: &mut Turn,
    ) -> Result<(), Stopped> {
        tracing::warn!(
            mark,
            reason,
            "a file of the bank's was refused; it lies in the folder refused"
        );
        app.metrics.bank_files.count("refused");
        turn.refused_count += 1;
        Ok(self.folders.refuse(&seen.name, mark, reason)?)
    }

    /// Applies every report of a file, each in a transaction of its own. Doing it again changes
    /// nothing.
    async fn apply(
        &self,
        app: &AppState,
        sha256: [u8; 32],
        message: Incoming,
    ) -> Result<Counts, Stopped> {
        let mut counts = Counts::default();
        match message.content {
            Content::Statuses(report) => {
                for word in self.words_of(app, report).await? {
                    let services = app.services.clone();
                    let outcome = app
                        .store
                        .write(move |tx, now| Ok(hear(tx, now, &services, &word)?))
                        .await?;
                    count(&mut counts, outcome);
                }
            }
            Content::Accounts(accounts) => {
                let mut number = 0;
                for (statement_number, mut account) in accounts.into_iter().enumerate() {
                    let statement_number = statement_number as i64;
                    let lines = std::mem::take(&mut account.lines);
                    let is_statement = message.kind == ReportKind::Statement;
                    if is_statement {
                        app.store
                            .write(move |tx, _| {
                                Ok(rows::statement(tx, &sha256, statement_number, &account)?)
                            })
                            .await?;
                    }
                    for line in lines {
                        number += 1;
                        let place =
                            is_statement.then_some(Place { sha256, statement_number, number });
                        let services = app.services.clone();
                        let outcome = app
                            .store
                            .write(move |tx, now| Ok(hear_line(tx, now, &services, &line, place)?))
                            .await?;
                        count(&mut counts, outcome);
                    }
                }
            }
        }
        Ok(counts)
    }

    /// What a status report says, payment by payment: a refusal of the whole or of a batch is one
    /// of each of its payments.
    async fn words_of(&self, app: &AppState, report: StatusReport) -> Result<Vec<Word>, Stopped> {
        let mut words = Vec::new();
        let mut refused_wholes = Vec::new();
        let is_refused = |verdict: &reports::Verdict| verdict.meaning == Some(Meaning::Refused);
        if let Some(original) = report.original {
            refused_wholes.extend(
                report.whole.filter(is_refused).map(|verdict| (original, None, verdict.reason)),
            );
        }
        for (batch, verdict) in report.batches {
            let Some((message_id, method)) = batch.rsplit_once('-') else { continue };
            let method = Method::parse(&method.to_lowercase());
            if let (Some(id), Some(method), true) =
                (MessageId::parse(message_id), method, is_refused(&verdict))
            {
                refused_wholes.push((id, Some(method), verdict.reason));
            }
        }
        for payment in report.payments {
            let said = match payment.verdict.meaning {
                Some(Meaning::Processing) => Said::Processing,
                Some(Meaning::Paid) => Said::Paid,
                Some(Meaning::Refused) => Said::Refused,
                None => Said::Processing,
            };
            let (reason, references) = (payment.verdict.reason, payment.references);
            words.push(Word {
                end_to_end_id: payment.end_to_end_id,
                amount: payment.amount,
                said,
                reason,
                references,
            });
        }
        for (message_id, method, reason) in refused_wholes {
            let instructions =
                app.store.write(move |tx, _| Ok(rows::of_message(tx, message_id)?)).await?;
            for instruction in instructions {
                let end_to_end_id = EndToEndId::of(instruction.payout_id);
                // What is said of one payment goes before what is said of all.
                let is_named = words.iter().any(|word| word.end_to_end_id == Some(end_to_end_id));
                if !is_named && method.is_none_or(|method| method == instruction.method) {
                    let reason = reason.clone();
                    words.push(Word {
                        end_to_end_id: Some(end_to_end_id),
                        amount: None,
                        said: Said::Refused,
                        reason,
                        references: References::default(),
                    });
                }
            }
        }
        Ok(words)
    }

    /// Payouts that the bank has said nothing final of for too long are marked as unknown; they are
    /// never sent again.
    async fn give_up_unanswered(&self, app: &AppState) -> Result<(), Stopped> {
        let seconds = self.settings.unanswered_hours_max * 3_600;
        let find = move |tx: &mut dyn Tx, now: &mut Now| {
            Ok(rows::unanswered(tx, now.instant() - seconds, UNANSWERED_MAX)?)
        };
        for instruction in app.store.write(find).await? {
            let services = app.services.clone();
            let payout_id = instruction.payout_id;
            let mark = move |tx: &mut dyn Tx, now: &mut Now| {
                rows::answer(tx, instruction.payout_id, None)?;
                Ok(mark_unknown(tx, now, &services, &instruction)?)
            };
            app.store.write(mark).await?;
            tracing::warn!(payout = %payout_id, "the bank has not said what became of a payout; \
             it waits for the operator");
        }
        Ok(())
    }
}

fn count(counts: &mut Counts, outcome: Outcome) {
    match outcome {
        Outcome::Applied => counts.applied += 1,
        Outcome::Ignored => counts.ignored += 1,
        Outcome::Unmatched(_) => counts.unknown += 1,
    }
}

/// What a bank says of one payment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Processing,
    Paid,
    Refused,
    Returned,
}

#[derive(Clone, Debug)]
struct Word {
    end_to_end_id: Option<EndToEndId>,
    amount: Option<Money>,
    said: Said,
    reason: Option<String>,
    references: References,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Applied,
    Ignored,
    Unmatched(Matching),
}

/// Marks a payout that is with the bank as one whose outcome nobody knows.
fn mark_unknown(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    instruction: &Journalled,
) -> Result<(), StoreError> {
    publish::enter(tx, now, instruction)?;
    if let Some(mut payout) = payouts::rows::find(tx, instruction.scope, instruction.payout_id)?
        && payout.status == PayoutStatus::Processing
    {
        paying::apply_report(tx, now, services, &mut payout, BankReport::Unknown)?;
    }
    now.leave_account();
    Ok(())
}

/// The instruction that a word is about, if it was sent and for this amount.
fn addressed(tx: &mut dyn Tx, word: &Word) -> Result<Result<Journalled, Matching>, StoreError> {
    let Some(id) = word.end_to_end_id else { return Ok(Err(Matching::NoReference)) };
    let Some(instruction) = rows::find(tx, id.payout_id())? else {
        return Ok(Err(Matching::UnknownReference));
    };
    // A bank cannot know of what was never sent.
    if !matches!(instruction.status, InstructionStatus::Published | InstructionStatus::Unknown) {
        return Ok(Err(Matching::UnknownReference));
    }
    let expected = Money::new(instruction.units, Currency::Inr);
    Ok(if word.amount.is_some_and(|amount| amount != expected) {
        Err(Matching::AmountDiffers)
    } else {
        Ok(instruction)
    })
}

/// Applies what a bank says of one payment.
fn hear(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    word: &Word,
) -> Result<Outcome, StoreError> {
    let instruction = match addressed(tx, word)? {
        Ok(instruction) => instruction,
        Err(matching) => {
            tracing::warn!(
                matching = matching.as_str(),
                "a report of the bank's fits no payment that was sent; it changed nothing"
            );
            return Ok(Outcome::Unmatched(matching));
        }
    };
    let Some(mut payout) = payouts::rows::find(tx, instruction.scope, instruction.payout_id)?
    else {
        return Ok(Outcome::Unmatched(Matching::UnknownReference));
    };
    let reason = word.reason.as_deref();
    let report = match (word.said, payout.status) {
        (Said::Processing, _) => return Ok(Outcome::Ignored),
        (Said::Paid, _) => match word.references.utr(instruction.method) {
            Some(utr) => {
                if !utr.is_classified() {
                    tracing::warn!(payout = %payout.id, "the bank's reference has a form of its \
                     own");
                }
                BankReport::Settled { unique_transaction_reference: utr.as_str().to_owned() }
            }
            // Paid without a reference is not proven yet: the notification or the statement brings
            // it.
            None => return Ok(Outcome::Ignored),
        },
        (Said::Refused, _) => match reasons::refusal(reason) {
            (FailureCode::OutcomeUnknown, _) => BankReport::Unknown,
            (code, source) => BankReport::Failed { code, source },
        },
        // Money that came back before it was known to have arrived never arrived.
        (Said::Returned, PayoutStatus::Processing) => {
            let (code, source) = reasons::returned(reason);
            BankReport::Failed { code, source }
        }
        (Said::Returned, _) => {
            let (code, source) = reasons::returned(reason);
            BankReport::Returned { code, source }
        }
    };
    let reference = match &report {
        BankReport::Settled { unique_transaction_reference } => {
            Some(unique_transaction_reference.clone())
        }
        _ => None,
    };
    let before = (payout.status, payout.failure.clone());
    publish::enter(tx, now, &instruction)?;
    paying::apply_report(tx, now, services, &mut payout, report)?;
    now.leave_account();
    rows::answer(tx, instruction.payout_id, reference.as_deref())?;
    if before == (payout.status, payout.failure.clone()) {
        if word.said == Said::Refused && payout.status == PayoutStatus::Settled {
            tracing::error!(payout = %payout.id, "the bank refuses a payment that it has reported \
             as paid: ask the bank");
        }
        return Ok(Outcome::Ignored);
    }
    Ok(Outcome::Applied)
}

/// The one payment that was settled under one of the references.
fn payment_sent_under(
    tx: &mut dyn Tx,
    references: &References,
) -> Result<Option<EndToEndId>, StoreError> {
    let mut found = None;
    for candidate in references.candidates() {
        match (rows::settled_under(tx, candidate)?.map(EndToEndId::of), found) {
            (Some(id), Some(other)) if id != other => return Ok(None),
            (Some(id), _) => found = Some(id),
            (None, _) => {}
        }
    }
    Ok(found)
}

/// Applies a booked movement and, if it stands on a statement, keeps it.
fn hear_line(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    line: &Line,
    place: Option<Place>,
) -> Result<Outcome, StoreError> {
    let said = match line.sign {
        Sign::Debit => Said::Paid,
        Sign::Credit => Said::Returned,
    };
    let mut end_to_end_id = line.end_to_end_id;
    // Money that comes back often names only the reference that it was sent under.
    if end_to_end_id.is_none() && line.sign == Sign::Credit {
        end_to_end_id = payment_sent_under(tx, &line.references)?;
    }
    let word = Word {
        end_to_end_id,
        amount: Some(line.amount),
        said,
        reason: line.return_reason.clone(),
        references: line.references.clone(),
    };
    let addressed = addressed(tx, &word)?;
    // A reversed debit without a credit's sign would be money that went twice: a person has to
    // look.
    let is_odd = line.is_reversal && line.sign == Sign::Debit;
    let matching = match &addressed {
        Ok(_) if is_odd => Matching::Reversal,
        Ok(_) => Matching::Payout,
        Err(Matching::NoReference) if line.foreign_reference.is_some() => {
            Matching::UnknownReference
        }
        Err(matching) => *matching,
    };
    if let Some(place) = place {
        let payout = match (&addressed, word.end_to_end_id) {
            (Ok(instruction), _) => Some(instruction.clone()),
            (Err(_), Some(id)) => rows::find(tx, id.payout_id())?,
            (Err(_), None) => None,
        };
        if !rows::line(tx, now, &place, line, matching, payout.as_ref())? {
            return Ok(Outcome::Ignored);
        }
    }
    if matching != Matching::Payout {
        return Ok(Outcome::Unmatched(matching));
    }
    hear(tx, now, services, &word)
}

/// Compares the book with what the bank said, once a day, and tells in the log how much differs.
async fn compare(app: &AppState) {
    match app.store.read(Cost::Scan, |tx| Ok(reconcile::run(tx)?)).await {
        Ok(report) if report.differences.is_empty() => {
            app.metrics.bank_comparisons.count("agreed");
            app.metrics.bank_differences.set(0);
            tracing::info!("the book agrees with the bank's statements");
        }
        Ok(report) => {
            let count = report.differences.len();
            app.metrics.bank_comparisons.count("differed");
            app.metrics.bank_differences.set(i64::try_from(count).unwrap_or(i64::MAX));
            tracing::error!(
                count,
                "the book differs from the bank's statements: `hundi reconcile` names each \
                 difference"
            );
        }
        Err(failure) => {
            app.metrics.bank_comparisons.count("failed");
            tracing::error!(
                ?failure,
                "the book could not be compared with the bank's statements; tried again tomorrow"
            );
        }
    }
}

/// Works until `stop`. Trouble with the folders or the store is told and tried again.
pub async fn run(app: Arc<AppState>, settings: Arc<BankSettings>, mut stop: watch::Receiver<bool>) {
    let poll = settings.poll;
    let mut bank = match Bank::open(settings) {
        Ok(bank) => bank,
        Err(reason) => {
            tracing::error!(reason, "the bank's worker does not run");
            return;
        }
    };
    let mut reconciled: Option<Day> = None;
    while !*stop.borrow() {
        let today = Day::at(app.store.clock.milliseconds() / 1000);
        if today != reconciled {
            compare(&app).await;
            reconciled = today;
        }
        if let Err(trouble) = bank.turn(&app).await {
            tracing::error!(
                ?trouble,
                "the bank's worker could not finish its turn; it tries again"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(poll) => {}
            _ = stop.changed() => {}
        }
    }
}
