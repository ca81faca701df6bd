//! Housekeeping: derives deposit addresses ahead, removes expired rows a few at a time, ends old
//! requests for a second person's approval, and wakes the sequencer for outbox rows of other
//! processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::kernel::{Mode, Now, OperationError, Scope, StoreError};
use crate::operator::four_eyes::{self, RequestCheck};
use crate::payouts::limits;
use crate::store::Cost;
use crate::store::{Signal, Tx, idempotency};
use crate::webhooks::worker as deliveries;
use crate::{chaos, events, keys, payouts, staff};

/// The most rows that one transaction of a purge removes, so that other writes do not wait long.
const PURGED_ROWS_MAX: i64 = 500;
/// Expired chaos reports that one transaction removes, each with all its rows.
const PURGED_REPORTS_MAX: i64 = 1;
/// The most pairs of an account and a mode whose events one transaction checks.
const PURGED_SCOPES_MAX: usize = 200;
/// The most pairs of an account and a mode whose oldest events one statement looks up.
const OLDEST_LOOKED_UP_MAX: i64 = 1_000;
/// How long totals of payouts are kept after the end of their day or month.
const TOTALS_KEPT_MILLISECONDS: i64 = 86_400_000;
/// The shortest time until an account's events are looked at again, once all its expired ones are
/// gone.
const LOOK_PAUSE_MILLISECONDS: i64 = 10 * 60 * 1000;
/// How long the purger rests when there is nothing more to remove.
const PURGE_SECONDS: u64 = 60;
/// The most addresses of one pool that are derived before the thread lets other work run.
const DERIVED_AT_ONCE: usize = 64;
/// How long the worker that derives addresses waits when no pool needs more for now.
const DERIVE_PAUSE: Duration = Duration::from_millis(20);
/// How long it waits instead if indices could not be reserved.
const RESERVE_PAUSE: Duration = Duration::from_secs(1);

/// Reserves derivation indices in the store for each pool of addresses that needs more. Each pool
/// has a transaction of its own, so that one without indices left does not stop the others. `false`
/// if one failed, which is logged.
pub async fn reserve_addresses(app: &AppState) -> bool {
    let mut is_done = true;
    for (position, ports) in app.services.all_ports().enumerate() {
        if !ports.addresses.needs_indices() {
            continue;
        }
        let services = app.services.clone();
        let reserved = app.store.write(move |tx, _| {
            let pool = services.all_ports().nth(position).map(|ports| &ports.addresses);
            Ok(pool.map(|pool| pool.reserve(tx)).transpose()?)
        });
        match reserved.await {
            Ok(indices) => indices.into_iter().for_each(|one| ports.addresses.restock(one)),
            Err(failure) => {
                is_done = false;
                tracing::error!(
                    ?failure,
                    "no deposit address indices could be reserved; tried again in 1 s"
                );
            }
        }
    }
    is_done
}

/// Derives deposit addresses ahead, while those derived before are handed out.
pub async fn derive_addresses(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    while !is_stopped(&stop) {
        let pause = match reserve_addresses(&app).await {
            true => DERIVE_PAUSE,
            false => RESERVE_PAUSE,
        };
        let (services, milliseconds) = (app.services.clone(), app.store.clock.milliseconds());
        let derive = move || {
            let unfinished = services
                .all_ports()
                .filter(|ports| !ports.addresses.derive(DERIVED_AT_ONCE, milliseconds));
            unfinished.count() == 0
        };
        let is_ahead = tokio::task::spawn_blocking(derive).await.unwrap_or(true);
        if is_ahead {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// Removes expired rows, a few at a time, for as long as the service runs.
pub async fn purge(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let mut purger = Purger::default();
    let mut are_limits_noted = false;
    while !is_stopped(&stop) {
        // Tried in each round until it succeeds once. This also records that a limit is no longer
        // configured. Otherwise a limit that is set again later would count as in force all the
        // time.
        are_limits_noted = are_limits_noted || note_limits(&app).await;
        let more = purger.run_once(&app).await;
        let wait = Duration::from_secs(if more { 0 } else { PURGE_SECONDS });
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Stores since when the configured limits on payouts are in force. `false` if that failed.
async fn note_limits(app: &AppState) -> bool {
    let limits = app.services.settings.payout_limits.clone();
    let note =
        move |tx: &mut dyn Tx, now: &mut Now| Ok(limits::note_limits_in_force(tx, now, &limits)?);
    let outcome = app.store.write(note).await;
    if let Err(failure) = &outcome {
        tracing::error!(
            ?failure,
            "the payout limits in force could not be recorded; tried again with the next purge"
        );
    }
    outcome.is_ok()
}

/// Removes expired rows, and remembers when to look at each account's events again, so that
/// accounts in which nothing expires cost nothing.
#[derive(Default)]
pub struct Purger {
    /// When to look next at the events of each account and mode, in Unix milliseconds.
    looks: BTreeSet<(i64, Scope)>,
    /// Accounts up to this number are in `looks`.
    accounts_known: i64,
    /// Numbers of the requests for a second person's approval that could not have been carried out
    /// at the last check.
    declined_requests: BTreeSet<i64>,
}

impl Purger {
    /// Has [`four_eyes::check`] end requests for a second person's approval that are too old, or
    /// that nobody could approve any more. Fails if the requests cannot be listed. If one cannot be
    /// checked, that is logged and the others are checked.
    async fn end_requests(&mut self, app: &AppState) -> Result<(), OperationError> {
        let pending = app.store.read(Cost::Point, |tx| Ok(four_eyes::rows::pending_numbers(tx)?));
        let pending = pending.await?;
        let before = std::mem::take(&mut self.declined_requests);
        for number in pending {
            let (services, was_declined) = (app.services.clone(), before.contains(&number));
            let check = move |tx: &mut dyn Tx, now: &mut Now| {
                four_eyes::check(tx, now, &services, number, was_declined)
            };
            let is_declined = match app.store.write(check).await {
                Ok(checked) => checked == RequestCheck::Declined,
                Err(failure) => {
                    tracing::warn!(
                        number,
                        %failure,
                        "a request for a second person's approval could not be checked; tried \
                         again"
                    );
                    // What the last check found still holds.
                    was_declined
                }
            };
            if is_declined {
                self.declined_requests.insert(number);
            }
        }
        Ok(())
    }

    /// Removes expired rows of each kind, of most kinds only some. Answers whether there may be
    /// more. Each kind has transactions of its own, so that none becomes too long.
    pub async fn run_once(&mut self, app: &AppState) -> bool {
        let rows_max = PURGED_ROWS_MAX;
        let mut is_more =
            purged(app, rows_max, |tx, now| idempotency::purge(tx, now, PURGED_ROWS_MAX)).await;
        is_more |= purged(app, rows_max, |tx, now| {
            let before_milliseconds = now.instant_milliseconds() - TOTALS_KEPT_MILLISECONDS;
            payouts::rows::purge_totals(tx, before_milliseconds, PURGED_ROWS_MAX)
        })
        .await;
        is_more |=
            purged(app, rows_max, |tx, now| deliveries::purge(tx, now, PURGED_ROWS_MAX)).await;
        is_more |= purged(app, rows_max, staff::purge).await;
        // All expired chaos reports are removed, because they are few: a key has at most one.
        while purged(app, PURGED_REPORTS_MAX, |tx, now| chaos::purge(tx, now)).await {}
        if let Err(failure) = self.end_requests(app).await {
            tracing::warn!(
                %failure,
                "requests for a second person's approval could not be listed"
            );
        }
        if let Err(failure) = self.take_up_accounts(app).await {
            tracing::warn!(?failure, "new accounts could not be looked up; tried again");
        }
        let now_milliseconds = app.store.clock.milliseconds();
        loop {
            let due = self.looks.iter().take_while(|(due, _)| *due <= now_milliseconds);
            let due: Vec<(i64, Scope)> = due.take(PURGED_SCOPES_MAX).copied().collect();
            if due.is_empty() {
                return is_more;
            }
            let scopes: Vec<Scope> = due.iter().map(|(_, scope)| *scope).collect();
            match app.store.write(move |tx, now| purge_events(tx, now, &scopes)).await {
                Ok(looks) => {
                    for (look, (milliseconds, is_done)) in due.into_iter().zip(looks) {
                        is_more |= !is_done;
                        self.looks.remove(&look);
                        self.looks.insert((milliseconds, look.1));
                    }
                }
                Err(OperationError::Store(StoreError::Unavailable(reason))) => {
                    tracing::error!(reason, "expired events could not be removed; tried again");
                    return false;
                }
                Err(_) => self.purge_events_apart(app, &due).await,
            }
            if is_more {
                return true;
            }
        }
    }
}

impl Purger {
    /// Removes expired events of each of these accounts in a transaction of its own. Called after
    /// one transaction for all of them failed, so that one account does not stop the others.
    async fn purge_events_apart(&mut self, app: &AppState, due: &[(i64, Scope)]) {
        for look in due {
            let scope = look.1;
            let outcome = app.store.write(move |tx, now| purge_events(tx, now, &[scope])).await;
            let next = match outcome {
                Ok(looks) => looks.first().map_or(0, |(milliseconds, _)| *milliseconds),
                Err(failure) => {
                    tracing::error!(
                        ?failure,
                        account = scope.account_number(),
                        mode = scope.mode().as_str(),
                        "expired events of an account could not be removed; tried again in 10 min"
                    );
                    app.store.clock.milliseconds() + LOOK_PAUSE_MILLISECONDS
                }
            };
            self.looks.remove(look);
            self.looks.insert((next, scope));
        }
    }

    /// Plans the first look at each account that is new to this process: when its oldest event
    /// expires.
    async fn take_up_accounts(&mut self, app: &AppState) -> Result<(), OperationError> {
        let count = app.store.read(Cost::Point, |tx| Ok(keys::rows::accounts_count(tx)?)).await?;
        if count == self.accounts_known {
            return Ok(());
        }
        let now_milliseconds = app.store.clock.milliseconds();
        let mut oldest = BTreeMap::new();
        let mut after = Scope::new(self.accounts_known, Mode::Live);
        loop {
            let next = move |tx: &mut dyn Tx| {
                Ok(events::rows::oldest_of_each(tx, after, OLDEST_LOOKED_UP_MAX)?)
            };
            let found = app.store.read(Cost::Scan, next).await?;
            let Some((last, _)) = found.last() else { break };
            after = *last;
            oldest.extend(found);
        }
        for number in self.accounts_known + 1..=count {
            for scope in [Mode::Test, Mode::Live].map(|mode| Scope::new(number, mode)) {
                let oldest = oldest.get(&scope).map_or(now_milliseconds, |id| id.milliseconds());
                let expires = oldest.saturating_add(events::EVENT_KEPT_SECONDS * 1000);
                self.looks.insert((expires, scope));
            }
        }
        self.accounts_known = count;
        Ok(())
    }
}

/// Removes expired events of some accounts, up to `PURGED_ROWS_MAX` in all. Answers for each
/// account when to look again (Unix milliseconds; 0 means at once), and whether all its expired
/// events are gone.
fn purge_events(
    tx: &mut dyn Tx,
    now: &Now,
    scopes: &[Scope],
) -> Result<Vec<(i64, bool)>, OperationError> {
    let mut rows_left = PURGED_ROWS_MAX;
    let kept_milliseconds = events::EVENT_KEPT_SECONDS * 1000;
    let mut looks = Vec::with_capacity(scopes.len());
    for scope in scopes {
        if rows_left <= 0 {
            looks.push((0, false));
            continue;
        }
        let purged = events::chain::purge(tx, now, *scope, rows_left)?;
        rows_left -= purged.removed_count as i64;
        if rows_left <= 0 {
            looks.push((0, false));
            continue;
        }
        let oldest = purged.oldest_milliseconds.unwrap_or(now.instant_milliseconds());
        let expires = oldest.saturating_add(kept_milliseconds);
        looks.push((expires.max(now.instant_milliseconds() + LOOK_PAUSE_MILLISECONDS), true));
    }
    Ok(looks)
}

/// Runs one purge. Answers whether it removed as many rows as it may, so that there may be more.
async fn purged(
    app: &AppState,
    count_max: i64,
    mut remove: impl FnMut(&mut dyn Tx, &mut Now) -> Result<u64, StoreError> + Send + 'static,
) -> bool {
    match app.store.write(move |tx, now| Ok(remove(tx, now)?)).await {
        Ok(removed) => removed >= count_max.unsigned_abs(),
        Err(failure) => {
            tracing::error!(?failure, "rows past their time could not be removed; tried again");
            false
        }
    }
}

/// Wakes the sequencer while there are outbox rows: those that commands such as `hundi decide`
/// wrote beside the server, and the rest of a commit with more events than one run takes.
pub async fn nudge_sequencer(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let mut last = None;
    while !is_stopped(&stop) {
        let first = app
            .store
            .read(Cost::Point, |tx| Ok(events::rows::outbox_first(tx)?))
            .await
            .unwrap_or(None);
        if first.is_some() {
            let signal = |tx: &mut dyn Tx, _: &mut Now| {
                tx.signal(Signal::Outbox);
                Ok(())
            };
            let nudged = app.store.write(signal).await;
            if let Err(failure) = nudged {
                tracing::error!(?failure, "the outbox could not be sequenced; trying again");
            }
        }
        // No pause as long as the sequencer makes progress.
        let moves = first.is_some() && first != last;
        last = first;
        if moves {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            _ = stop.changed() => {}
        }
    }
}
