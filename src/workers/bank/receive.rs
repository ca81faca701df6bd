//! Reads the bank's files in the inbox and applies them. A file that is done goes to the folder
//! `archive`, one that is refused to the folder `refused`.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::apply::{self, AppliedFile, PaymentReport, ReportEffect, ReportedEvent};
use super::lines;
use super::publish::Stopped;
use super::{Bank, TurnReport};
use crate::app_state::AppState;
use crate::kernel::clock::machine_time;
use crate::kernel::{Now, hex};
use crate::rails::files::folders::InboxFile;
use crate::rails::files::format::FileError;
use crate::rails::files::reasons;
use crate::rails::files::references::References;
use crate::rails::files::reports::{
    AccountReport, Content, Incoming, Reason, RefusalMeaning, ReportKind, ReportedStatus,
    StatusMeaning, StatusReport,
};
use crate::rails::files::rows::{self, Counts, FileStatus, LinePlace};
use crate::rails::files::values::{EndToEndId, MessageId};
use crate::store::Tx;

/// Why a file is refused if an earlier file had the same message identity and another content.
const OTHER_CONTENT: &str = "another file with this message identity came before; this one holds \
                             something else, so it was not applied";
/// Why a file is refused if one of its statements came before with other entries.
const OTHER_LINES: &str = "a statement in it came before, between the same balances, with other \
                           entries: ask the bank which are right. Nothing of this file was applied";

/// What a file of the inbox turned out to be.
enum FileReading {
    Read(Box<Incoming>),
    Refused(FileError),
}

/// What the journal knows of a file before it is applied.
enum FileHistory {
    /// Nothing, or that the turn that was applying it was interrupted.
    New,
    /// It was applied.
    Applied,
    /// An earlier file had the same message identity, and this file counts as a copy. Either all
    /// statements of this file are known, or it has none and the bank says that it is a copy.
    Copy,
    /// It differs from an earlier file, which had the same message identity or the same statement.
    /// The text for the operator says which.
    Contradicts(&'static str),
}

impl Bank {
    /// Reads the bank's files, and writes none for the bank; for tests.
    pub async fn receive_only(&mut self, app: &AppState) -> Result<TurnReport, Stopped> {
        let mut turn = TurnReport::default();
        self.receive(app, &mut turn).await?;
        Ok(turn)
    }

    /// Reads the files of the inbox that have not changed since the last look. An agent may still
    /// be writing the others.
    pub(super) async fn receive(
        &mut self,
        app: &AppState,
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        let look = self.folders.incoming()?;
        let unchanged: Vec<InboxFile> =
            look.iter().filter(|seen| self.seen.contains(seen)).cloned().collect();
        self.seen = look;
        // A file that cannot be read or moved must not delay the others.
        let mut stopped = None;
        for seen in unchanged {
            if let Err(fault) = self.receive_one(app, &seen, turn).await {
                stopped = Some(fault);
            }
        }
        stopped.map_or(Ok(()), Err)
    }

    async fn receive_one(
        &self,
        app: &AppState,
        seen: &InboxFile,
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        let (folders, name) = (self.folders.clone(), seen.name.clone());
        let settings = self.settings.clone();
        let read = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
            let bytes = folders.read(&name)?;
            let sha256: [u8; 32] = Sha256::digest(&bytes).into();
            let judged = match settings.format.0.read(&settings, &bytes) {
                Ok(incoming) => FileReading::Read(Box::new(incoming)),
                Err(refused) => FileReading::Refused(refused),
            };
            Ok((sha256, judged, bytes))
        });
        let (sha256, judged, bytes) = match read.await {
            Ok(Ok(read)) => read,
            // The file has gone or cannot be read. The next look tries again.
            Ok(Err(error)) => {
                tracing::warn!(%error, "a file in the bank's inbox could not be read; tried again");
                app.metrics.bank_files.count("unreadable");
                return Ok(());
            }
            Err(_) => return Err(Stopped::Error("reading a file panicked".into())),
        };
        // Names the file in the logs, and begins its name in the folder that it is moved to.
        let mark = hex::encode(&sha256[..8]);
        let incoming = match judged {
            FileReading::Refused(refused)
                if refused.is_truncated && !seen.is_at_rest(machine_time()) =>
            {
                // The rest of the file may still come.
                return Ok(());
            }
            FileReading::Refused(refused) => {
                return self.refuse(app, seen, &mark, &refused.reason, &bytes, turn);
            }
            FileReading::Read(incoming) => *incoming,
        };
        match self.begin_if_new(app, sha256, &incoming).await? {
            FileHistory::Contradicts(reason) => {
                return self.refuse(app, seen, &mark, reason, &bytes, turn);
            }
            FileHistory::Applied | FileHistory::Copy => {
                tracing::info!(
                    kind = incoming.kind.as_str(),
                    mark,
                    "a file from the bank came again and was ignored"
                );
                app.metrics.bank_files.count("again");
            }
            FileHistory::New => self.apply_file(app, sha256, &mark, incoming, turn).await?,
        }
        Ok(self.folders.archive(&seen.name, &mark, &bytes)?)
    }

    /// Looks a file up in the journal. A new file is recorded as being applied.
    async fn begin_if_new(
        &self,
        app: &AppState,
        sha256: [u8; 32],
        incoming: &Incoming,
    ) -> Result<FileHistory, Stopped> {
        let (kind, identity) = (incoming.kind, incoming.identity());
        let is_copy = incoming.is_copy;
        let statements: Vec<AccountReport> = match (&incoming.content, kind) {
            (Content::Accounts(accounts), ReportKind::Statement) => accounts.clone(),
            _ => Vec::new(),
        };
        let begin = move |tx: &mut dyn Tx, now: &mut Now| {
            match rows::file_status(tx, &sha256)? {
                Some(FileStatus::Applied) => return Ok(FileHistory::Applied),
                Some(FileStatus::Reading) => return Ok(FileHistory::New),
                None => {}
            }
            for statement in &statements {
                if rows::has_other_lines(tx, &sha256, statement)? {
                    return Ok(FileHistory::Contradicts(OTHER_LINES));
                }
            }
            if !rows::is_incoming_known(tx, kind, &identity)? {
                rows::begin_file(tx, now, &sha256, kind, &identity)?;
                return Ok(FileHistory::New);
            }
            for statement in &statements {
                if !rows::is_statement_known(tx, &sha256, statement)? {
                    return Ok(FileHistory::Contradicts(OTHER_CONTENT));
                }
            }
            let is_same = is_copy || !statements.is_empty();
            Ok(if is_same { FileHistory::Copy } else { FileHistory::Contradicts(OTHER_CONTENT) })
        };
        Ok(app.store.write(begin).await?)
    }

    async fn apply_file(
        &self,
        app: &AppState,
        sha256: [u8; 32],
        mark: &str,
        incoming: Incoming,
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        let kind = incoming.kind;
        let unread_count = incoming.unread.count;
        for (place, reason) in &incoming.unread.shown {
            tracing::warn!(mark, place, reason, "a part of a file from the bank was skipped");
        }
        let counts = self.apply(app, sha256, incoming, turn).await?;
        app.store.write(move |tx, _| Ok(rows::end_file(tx, &sha256, counts)?)).await?;
        tracing::info!(
            kind = kind.as_str(),
            mark,
            applied = counts.applied,
            ignored = counts.ignored,
            unknown = counts.unknown,
            unread = unread_count,
            "a file from the bank was applied"
        );
        app.metrics.bank_files.count("applied");
        for (outcome, count) in [
            ("applied", counts.applied),
            ("ignored", counts.ignored),
            ("unknown", counts.unknown),
            ("unread", unread_count as i64),
        ] {
            app.metrics.bank_reports.count_many(outcome, count.unsigned_abs());
        }
        turn.files_count += 1;
        turn.counts.applied += counts.applied;
        turn.counts.ignored += counts.ignored;
        turn.counts.unknown += counts.unknown;
        Ok(())
    }

    fn refuse(
        &self,
        app: &AppState,
        seen: &InboxFile,
        mark: &str,
        reason: &str,
        bytes: &[u8],
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        tracing::warn!(
            mark,
            reason,
            "a file from the bank was refused; it is in the folder refused"
        );
        app.metrics.bank_files.count("refused");
        turn.refused_count += 1;
        Ok(self.folders.refuse(&seen.name, mark, reason, bytes)?)
    }

    /// Applies every report of a file, each in a transaction of its own. After a stop the whole
    /// file is applied again; reports that were applied before change nothing.
    async fn apply(
        &self,
        app: &AppState,
        sha256: [u8; 32],
        incoming: Incoming,
        turn: &mut TurnReport,
    ) -> Result<Counts, Stopped> {
        let mut counts = Counts::default();
        match incoming.content {
            Content::Statuses(report) => {
                for report in self.payment_reports(app, report).await? {
                    let (services, settings) = (app.services.clone(), self.settings.clone());
                    let outcome = app
                        .store
                        .write(move |tx, now| {
                            let (services, settings) = (&services, &settings);
                            let file = AppliedFile { services, settings, sha256: &sha256 };
                            Ok(apply::payment(tx, now, file, &report)?)
                        })
                        .await?;
                    count(app, &mut counts, turn, outcome);
                }
            }
            Content::Accounts(accounts) => {
                let mut number = 0;
                for (statement_number, mut account) in accounts.into_iter().enumerate() {
                    let statement_number = statement_number as i64;
                    let lines = std::mem::take(&mut account.lines);
                    let is_statement = incoming.kind == ReportKind::Statement;
                    if is_statement
                        && !self.keep_statement(app, sha256, statement_number, account).await?
                    {
                        number += lines.len() as i64;
                        counts.ignored += lines.len() as i64;
                        continue;
                    }
                    for line in lines {
                        number += 1;
                        let place =
                            is_statement.then_some(LinePlace { sha256, statement_number, number });
                        let (services, settings) = (app.services.clone(), self.settings.clone());
                        let outcome = app
                            .store
                            .write(move |tx, now| {
                                let (services, settings) = (&services, &settings);
                                let file = AppliedFile { services, settings, sha256: &sha256 };
                                Ok(lines::line(tx, now, file, &line, place)?)
                            })
                            .await?;
                        count(app, &mut counts, turn, outcome);
                    }
                }
            }
        }
        Ok(counts)
    }

    /// Stores a statement's head. `false` if another file brought the same statement; then its
    /// lines are not applied again.
    async fn keep_statement(
        &self,
        app: &AppState,
        sha256: [u8; 32],
        number: i64,
        account: AccountReport,
    ) -> Result<bool, Stopped> {
        let keep = move |tx: &mut dyn Tx, _: &mut Now| {
            if rows::is_statement_known(tx, &sha256, &account)? {
                return Ok(false);
            }
            rows::insert_statement(tx, &sha256, number, &account)?;
            Ok(true)
        };
        Ok(app.store.write(keep).await?)
    }

    /// What a status report says of each payment. A refusal of a whole file or batch becomes a
    /// refusal of each of its payments that has no report of its own.
    async fn payment_reports(
        &self,
        app: &AppState,
        report: StatusReport,
    ) -> Result<Vec<PaymentReport>, Stopped> {
        let mut reports = Vec::new();
        // Refused batches, with their method, and then refused files, with the method `None`.
        let mut refused_wholes = Vec::new();
        let is_refused = |status: &ReportedStatus| status.meaning == Some(StatusMeaning::Refused);
        for (batch, status) in report.batches {
            if let Some((id, method)) = MessageId::of_batch(&batch)
                && is_refused(&status)
            {
                refused_wholes.push((id, Some(method), status.reason));
            }
        }
        if let (Some(original), Some(status)) = (report.original, report.whole)
            && is_refused(&status)
        {
            refused_wholes.push((original, None, status.reason));
        }
        // The payments in refused files and batches, each with its file and the reason. The batch's
        // reason counts before the file's, unless the file is a duplicate.
        let mut refused_members: BTreeMap<EndToEndId, (MessageId, Reason)> = BTreeMap::new();
        for (message_id, method, reason) in refused_wholes {
            let find = move |tx: &mut dyn Tx, _: &mut Now| Ok(rows::of_message(tx, message_id)?);
            let is_duplicate = reasons::refusal(reason.code.as_deref()) == RefusalMeaning::Unknown;
            for instruction in app.store.write(find).await? {
                if method.is_none_or(|method| method == instruction.method) {
                    refused_members
                        .entry(EndToEndId::of(instruction.payout_id))
                        .and_modify(|(_, nearer)| {
                            *nearer =
                                if is_duplicate { reason.clone() } else { nearer.or(&reason) };
                        })
                        .or_insert_with(|| (message_id, reason.clone()));
                }
            }
        }
        for payment in report.payments {
            let whole = payment.end_to_end_id.and_then(|id| refused_members.get(&id));
            let code = payment.status.reason.code.as_deref();
            let mut reason = payment.status.reason.clone();
            let event = match (payment.status.meaning, whole) {
                (Some(StatusMeaning::Paid), _) => ReportedEvent::Paid,
                (Some(StatusMeaning::Refused), Some((_, of_whole))) => {
                    reason = reason.or(of_whole);
                    let of_whole = of_whole.code.as_deref();
                    ReportedEvent::Refused(reasons::refusal_within_whole(code, of_whole))
                }
                (Some(StatusMeaning::Refused), None) => {
                    ReportedEvent::Refused(reasons::refusal(code))
                }
                (Some(StatusMeaning::Processing) | None, _) => ReportedEvent::Processing,
            };
            reports.push(PaymentReport {
                end_to_end_id: payment.end_to_end_id,
                amount: payment.amount,
                event,
                is_whole_refused: whole.is_some(),
                is_booked: false,
                booked_on: None,
                message_id: report.original,
                reason,
                references: payment.references,
                entry_reference: None,
            });
        }
        // A payment with a report of its own is not refused once more with the whole.
        for report in &reports {
            report.end_to_end_id.map(|id| refused_members.remove(&id));
        }
        for (end_to_end_id, (message_id, reason)) in refused_members {
            let code = reason.code.as_deref();
            reports.push(PaymentReport {
                end_to_end_id: Some(end_to_end_id),
                amount: None,
                event: ReportedEvent::Refused(reasons::refusal_within_whole(code, code)),
                is_whole_refused: true,
                is_booked: false,
                booked_on: None,
                message_id: Some(message_id),
                reason,
                references: References::new(),
                entry_reference: None,
            });
        }
        Ok(reports)
    }
}

/// Counts what a report changed, and raises the alarm if the operator is needed. This is not done
/// in the transaction, because that can run twice.
fn count(app: &AppState, counts: &mut Counts, turn: &mut TurnReport, outcome: ReportEffect) {
    match outcome {
        ReportEffect::Applied => counts.applied += 1,
        ReportEffect::Ignored => counts.ignored += 1,
        ReportEffect::Unmatched(matching) => {
            counts.unknown += 1;
            tracing::warn!(
                matching = matching.as_str(),
                "a report of the bank was applied to no payout: see its field `matching`"
            );
        }
        ReportEffect::Attention(waiting) => {
            counts.applied += 1;
            turn.alarms_count += waiting.len();
            for (payout_id, attention) in waiting {
                app.metrics.bank_alarms.count(attention.as_str());
                tracing::error!(
                    payout = %payout_id,
                    attention = attention.as_str(),
                    "a payout waits for the operator: {}",
                    attention.meaning()
                );
            }
        }
    }
}
