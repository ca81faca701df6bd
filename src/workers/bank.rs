//! The bank's worker: writes payouts into files for the bank (`publish`), reads the bank's files
//! (`receive`), and applies each report in a transaction of its own (`lines`, `apply`). Duplicates
//! and reports of unknown payments change no payout; they are counted. Some reports hand the payout
//! to the operator, for example if the money comes back before the payout has settled. The worker
//! also compares the book with the bank's statements: every day, after alarms, and when the
//! comparison is outdated.
//!
//! From reading to applying, these types follow each other:
//!
//! - `Incoming`: a file from the bank, read; it holds statuses of payments, or lines of accounts.
//! - `apply::PaymentReport`: what a status or a line says of one payment.
//! - `rails::BankReport`: what that means for the payout, in the words of the port.
//! - `apply::ReportEffect`: what the report changed, for the counts and the alarm.

pub mod apply;
pub mod lines;
pub mod publish;
pub mod receive;

use std::sync::Arc;

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::kernel::{Now, StoreError};
use crate::payouts;
use crate::payouts::state::PayoutStatus;
use crate::rails::files::folders::{Folders, InboxFile};
use crate::rails::files::rows::{self, Counts, Journalled};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::{Day, date_time};
use crate::rails::{BankReport, PaymentMethod};
use crate::reconcile::kept;
use crate::services::Services;
use crate::store::Cost;
use crate::store::Tx;
use crate::transfers::paying;
use publish::Stopped;

/// The most unanswered payouts that one turn hands to the operator.
const UNANSWERED_MAX: i64 = 500;
/// The most files that one turn writes, so that the bank's reports do not wait for long.
const FILES_IN_TURN_MAX: usize = 20;

/// What the worker knows of the bank: its settings and folders, and what the last turn saw.
pub struct Bank {
    settings: Arc<BankSettings>,
    folders: Folders,
    /// The identifier of the machine's present boot; `None` if the system does not tell it.
    boot: Option<String>,
    /// The inbox as the last look saw it.
    seen: Vec<InboxFile>,
    /// The waits for a window of the bank that are logged already: the method, and until when (Unix
    /// seconds).
    waits_logged: Vec<(PaymentMethod, i64)>,
}

/// What one turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnReport {
    /// Payouts that were written for the bank.
    pub published_count: usize,
    /// Files from the bank that were applied.
    pub files_count: usize,
    /// Files from the bank that were refused.
    pub refused_count: usize,
    /// The reports in the files that were applied, by what became of them.
    pub counts: Counts,
    /// Payouts that were handed to the operator.
    pub alarms_count: usize,
}

impl Bank {
    /// Opens the bank's folders. `Err` is a text for the operator.
    pub fn open(settings: Arc<BankSettings>) -> Result<Bank, String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|text| text.trim().to_owned());
        Bank::open_in_boot(settings, boot)
    }
    /// Like [`Bank::open`], with a given identifier of the boot, for tests.
    pub fn open_in_boot(settings: Arc<BankSettings>, boot: Option<String>) -> Result<Bank, String> {
        let folders = Folders::open(&settings.folder)?;
        Ok(Bank { settings, folders, boot, seen: Vec::new(), waits_logged: Vec::new() })
    }
    pub const fn folders(&self) -> &Folders {
        &self.folders
    }

    /// One turn: finishes files that a stop left unfinished, writes waiting payouts, reads the
    /// files that came, and hands the operator the payouts that the bank has left unanswered for
    /// too long.
    pub async fn turn(&mut self, app: &AppState) -> Result<TurnReport, Stopped> {
        let mut turn = TurnReport::default();
        self.take_turn(app, &mut turn).await?;
        Ok(turn)
    }

    /// Like [`Bank::turn`], but adds to the caller's `turn` what was done, even if it then fails.
    async fn take_turn(&mut self, app: &AppState, turn: &mut TurnReport) -> Result<(), Stopped> {
        // A test's planted crash (`FaultPoint`) ends the turn. Any other failure to send must not
        // keep the service from reading what the bank reports.
        let sent = self.send(app, turn).await;
        if matches!(sent, Err(Stopped::FaultPoint)) {
            return sent;
        }
        self.receive(app, turn).await?;
        self.give_up_unanswered(app, turn).await?;
        self.log_waits(app).await?;
        sent
    }

    /// Finishes files that a stop left unfinished, and writes waiting payouts, at most
    /// `FILES_IN_TURN_MAX` files.
    async fn send(&mut self, app: &AppState, turn: &mut TurnReport) -> Result<(), Stopped> {
        self.recover(app, turn).await?;
        for _ in 0..FILES_IN_TURN_MAX {
            if self.publish(app, turn).await? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// When payouts begin to wait because the bank does not take their method now, logs how many
    /// wait and until when.
    async fn log_waits(&mut self, app: &AppState) -> Result<(), Stopped> {
        let instant = app.store.clock.milliseconds() / 1000;
        let opens_at = |method: &PaymentMethod| self.settings.profile.opens_at(*method, instant);
        let closed: Vec<(PaymentMethod, i64)> = PaymentMethod::ALL
            .iter()
            .filter_map(|method| Some((*method, opens_at(method)?)))
            .collect();
        if closed.is_empty() {
            self.waits_logged.clear();
            return Ok(());
        }
        let look = move |tx: &mut dyn Tx| {
            let mut waiting = Vec::new();
            for (method, until) in &closed {
                let count = rows::queued_count(tx, *method)?;
                waiting.extend((count > 0).then_some((*method, *until, count)));
            }
            Ok(waiting)
        };
        let waiting = app.store.read(Cost::Scan, look).await?;
        for (method, until, count) in &waiting {
            if !self.waits_logged.contains(&(*method, *until)) {
                tracing::info!(
                    method = method.as_str(),
                    count,
                    until = date_time(*until),
                    "payouts wait, because the bank takes none of their method now"
                );
            }
        }
        self.waits_logged = waiting.into_iter().map(|(method, until, _)| (method, until)).collect();
        Ok(())
    }

    /// Marks the outcome of a payout as unknown if the bank has reported nothing final for
    /// `unanswered_hours_max` since its file was published. Such payouts are never sent again
    /// automatically.
    async fn give_up_unanswered(
        &self,
        app: &AppState,
        turn: &mut TurnReport,
    ) -> Result<(), Stopped> {
        let seconds = self.settings.unanswered_hours_max * 3_600;
        let find = move |tx: &mut dyn Tx, now: &mut Now| {
            Ok(rows::unanswered(tx, now.instant() - seconds, UNANSWERED_MAX)?)
        };
        for instruction in app.store.write(find).await? {
            let services = app.services.clone();
            let payout_id = instruction.payout_id;
            let mark = move |tx: &mut dyn Tx, now: &mut Now| {
                rows::stop_waiting(tx, instruction.payout_id, None)?;
                Ok(mark_unknown(tx, now, &services, &instruction)?)
            };
            // If the payout has ended meanwhile, the operator is not needed.
            if app.store.write(mark).await? {
                turn.alarms_count += 1;
                tracing::warn!(
                    payout = %payout_id,
                    "the bank has not reported what became of a payout; it waits for the operator"
                );
            }
        }
        Ok(())
    }
}

/// Marks the outcome of a payout as unknown. `false`, and nothing changes, if the payout is no
/// longer `processing`.
fn mark_unknown(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    instruction: &Journalled,
) -> Result<bool, StoreError> {
    publish::enter_account(tx, now, instruction)?;
    let payout = payouts::rows::find(tx, instruction.scope, instruction.payout_id)?;
    let payout = payout.filter(|payout| payout.status == PayoutStatus::Processing);
    let is_marked = payout.is_some();
    if let Some(mut payout) = payout {
        paying::apply_report(tx, now, services, &mut payout, BankReport::Unknown)?;
    }
    now.leave_account();
    Ok(is_marked)
}

/// Compares the book with the bank's statements, stores the differences for the console, and logs
/// how many there are. `false` if it failed.
pub async fn compare(app: &AppState) -> bool {
    let instant = app.store.clock.milliseconds() / 1000;
    let compared = app.store.read(Cost::Scan, move |tx| Ok(kept::compare(tx, instant)?)).await;
    let stored = match compared {
        Ok((report, compared)) => {
            let keep = move |tx: &mut dyn Tx, _: &mut Now| Ok(kept::keep(tx, &compared)?);
            app.store.write(keep).await.map(|()| report)
        }
        Err(failure) => Err(failure),
    };
    let is_compared = stored.is_ok();
    match stored {
        Ok(report) if report.differences_count == 0 => {
            app.metrics.bank_comparisons.count("agreed");
            app.metrics.bank_differences.set(0);
            tracing::info!("the book agrees with the bank's statements");
        }
        Ok(report) => {
            let count = report.differences_count;
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
                "the book could not be compared with the bank's statements; tried again tomorrow, \
                 or after an alarm"
            );
        }
    }
    is_compared
}

/// Shows in the metrics how many files the agent has not taken, and for how long the oldest has
/// waited. If the outbox cannot be read, the metrics keep their last values.
fn show_outbox(app: &AppState, folders: &Folders) {
    let Ok((count, oldest)) = folders.untaken() else { return };
    let now_seconds = app.store.clock.milliseconds() / 1000;
    app.metrics.bank_outbox_files.set(count);
    let waited = oldest.map_or(0, |at| (now_seconds - at).max(0));
    app.metrics.bank_outbox_oldest_seconds.set(waited);
}

/// Works until `stop`. Errors of the folders or the store are logged, and the turn is tried again.
pub async fn run(app: Arc<AppState>, settings: Arc<BankSettings>, mut stop: watch::Receiver<bool>) {
    let poll = settings.poll;
    let mut bank = loop {
        match Bank::open(settings.clone()) {
            Ok(bank) => break bank,
            Err(reason) => {
                tracing::error!(reason, "the bank's worker could not begin; it tries again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(poll) => {}
            _ = stop.changed() => {}
        }
        if is_stopped(&stop) {
            return;
        }
    };
    let mut compared_on: Option<Day> = None;
    let mut is_compared = false;
    while !is_stopped(&stop) {
        let today = Day::at(app.store.clock.milliseconds() / 1000);
        if today != compared_on {
            is_compared = compare(&app).await;
            compared_on = today;
        }
        let mut turn = TurnReport::default();
        match bank.take_turn(&app, &mut turn).await {
            Ok(()) => app.metrics.bank_turns.count("done"),
            Err(stopped) => {
                app.metrics.bank_turns.count("failed");
                tracing::error!(
                    ?stopped,
                    "the bank's worker could not finish its turn; it tries again"
                );
            }
        }
        // Compare at once after an alarm, for the operator. If a decision or a statement has
        // changed what is compared, compare too, unless the last comparison failed.
        let outdated = app.store.read(Cost::Scan, |tx| Ok(kept::is_outdated(tx)?)).await;
        if turn.alarms_count > 0 || (is_compared && outdated.is_ok_and(|is_it| is_it)) {
            is_compared = compare(&app).await;
        }
        show_outbox(&app, bank.folders());
        tokio::select! {
            () = tokio::time::sleep(poll) => {}
            _ = stop.changed() => {}
        }
    }
}
