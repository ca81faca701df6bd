//! Watches the sanctions lists: reads changed files again, and screens everybody again when the entries changed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::app::App;
use crate::kernel::{Failure, Id, Mode, Now, Scope, StoreError};
use crate::keys;
use crate::screening::lists::{Lists, Reload};
use crate::screening::rows::{self, Table};
use crate::store::{Tx, migrate};
use crate::world::World;
use crate::{beneficiaries, senders};

/// How often the files are looked at.
const LOOK_SECONDS: u64 = 60;
/// Senders or beneficiaries that one transaction screens, so that it never stands long in the write lane.
pub const STEP_ROWS_MAX: i64 = 16;
/// The lists that everybody was screened against last.
const SCREENED_META: &str = "screened_lists";

/// A place in the walk over all senders and beneficiaries of one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    mode: Mode,
    account_number: i64,
    table: Table,
    after: [u8; 16],
}

impl Walk {
    pub const fn begin(mode: Mode) -> Walk {
        Walk { mode, account_number: 1, table: Table::Senders, after: [0; 16] }
    }
}

/// Screens the next few again and answers where to go on; `None` at the end. May be run twice.
pub fn step(tx: &mut dyn Tx, now: &mut Now, world: &World, mut walk: Walk, rows_max: i64) -> Result<Option<Walk>, StoreError> {
    if walk.account_number > keys::rows::accounts_count(tx)? {
        return Ok(None);
    }
    let scope = Scope::new(walk.account_number, walk.mode);
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    let ids = rows::ids_after(tx, walk.table, scope, walk.after, rows_max)?;
    for id in &ids {
        match walk.table {
            Table::Senders => senders::rescreen(tx, now, world, scope, Id::from_u128(id.as_u128()))?,
            Table::Beneficiaries => beneficiaries::rescreen(tx, now, world, scope, Id::from_u128(id.as_u128()))?,
        }
    }
    now.leave_account();
    walk = match (ids.last(), walk.table) {
        (Some(last), _) => Walk { after: last.to_bytes(), ..walk },
        (None, Table::Senders) => Walk { table: Table::Beneficiaries, after: [0; 16], ..walk },
        (None, Table::Beneficiaries) => Walk { account_number: walk.account_number + 1, table: Table::Senders, after: [0; 16], ..walk },
    };
    Ok(Some(walk))
}

/// Whether everybody has to be screened again: the entries are not those of the last whole walk.
pub fn is_due(tx: &mut dyn Tx, lists: &Lists) -> Result<bool, StoreError> {
    Ok(migrate::read_meta(tx, SCREENED_META)?.as_deref() != Some(lists.content_hash().as_slice()))
}

/// Looks at the files every minute, and walks over everybody where the entries changed, or a walk was cut short.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let Some(lists) = app.world.screening.clone() else { return };
    while !*stop.borrow() {
        reload(&lists).await;
        if let Some(reason) = lists.why_not_live(app.store.clock.milliseconds() / 1000) {
            tracing::warn!(%reason, "the sanctions lists are not fit for live mode");
        }
        if let Err(failure) = walk(&app, &lists, &stop).await {
            tracing::error!(?failure, "screening everybody again stopped; it begins anew");
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => {}
            _ = stop.changed() => {}
        }
    }
}

async fn reload(lists: &Arc<Lists>) {
    let reader = lists.clone();
    match tokio::task::spawn_blocking(move || reader.reload_if_changed()).await {
        Ok(Ok(Reload::Unchanged | Reload::Redated)) => {}
        Ok(Ok(Reload::Changed)) => {
            for state in lists.states() {
                tracing::info!(list = state.list.as_str(), entries = state.entries_count, dated_at = state.dated_at, "sanctions list loaded");
            }
        }
        Ok(Err(fault)) => tracing::error!(%fault, "a sanctions list was not taken; the one before stays"),
        Err(_) => tracing::error!("reading the sanctions lists panicked; those before stay"),
    }
}

async fn walk(app: &App, lists: &Arc<Lists>, stop: &watch::Receiver<bool>) -> Result<(), Failure> {
    let hash = lists.content_hash();
    let known = lists.clone();
    if !app.store.write(move |tx, _| Ok(is_due(tx, &known)?)).await? {
        return Ok(());
    }
    let mut place = Some(Walk::begin(Mode::Live));
    while let Some(walk) = place {
        if *stop.borrow() {
            return Ok(());
        }
        let world = app.world.clone();
        place = app.store.write(move |tx, now| Ok(step(tx, now, &world, walk, STEP_ROWS_MAX)?)).await?;
    }
    app.store.write(move |tx, _| Ok(migrate::write_meta(tx, SCREENED_META, &hash)?)).await
}
