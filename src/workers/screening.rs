//! Watches the sanctions lists. Every node reads files that have changed. If the entries changed,
//! one node walks over all senders and active beneficiaries of live mode and screens them again.
//! Here "everybody" means these.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::app_state::AppState;
use crate::background::is_stopped;
use crate::beneficiaries::state::BeneficiaryStatus;
use crate::kernel::{Id, Mode, Now, OperationError, Scope, StoreError};
use crate::keys;
use crate::metrics::Metrics;
use crate::screening::ScreeningQuestion;
use crate::screening::lists::{Lists, Reload};
use crate::screening::rows::{self, ScreenedTable};
use crate::services::Services;
use crate::store::Cost;
use crate::store::{Tx, meta};
use crate::tasks::{self, TASKS_AT_ONCE_MAX, TaskKind};
use crate::{beneficiaries, senders};

/// How often the files are checked.
const LOOK_SECONDS: u64 = 60;
/// Once this node has read a change, other nodes may screen with the earlier lists for this long:
/// until their next check of the files, and as long again for transactions that they have begun by
/// then.
const SETTLE: Duration = Duration::from_secs(2 * LOOK_SECONDS);
/// Senders or beneficiaries that one transaction screens, so that it never holds the write lane for
/// long.
pub const STEP_ROWS_MAX: i64 = 16;
/// Name of the stored hash of the list entries with which everybody was last screened.
const SCREENED_META: &str = "screened_lists";
/// Name of the stored progress of the last walk over everybody. Every node can show it.
const WALK_META: &str = "screening_walk";

/// How far a walk over everybody has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreeningProgress {
    /// Unix seconds.
    pub began_at: i64,
    /// The account that the walk is in, counted from 1.
    pub account_number: i64,
    /// Whether the walk is at the account's beneficiaries. If so, the account's senders are done.
    pub is_beneficiaries: bool,
    /// Senders and beneficiaries that are done.
    pub count: i64,
    /// When the last one that is done was created, in Unix seconds. A walk takes an account's
    /// senders in the order of their creation, and then its beneficiaries. `None` at the beginning
    /// of either.
    pub reached: Option<i64>,
    /// Unix seconds; `None` while the walk runs, or if it was cut short.
    pub ended_at: Option<i64>,
}

impl ScreeningProgress {
    const fn begin(instant: i64) -> ScreeningProgress {
        ScreeningProgress {
            began_at: instant,
            account_number: 1,
            is_beneficiaries: false,
            count: 0,
            reached: None,
            ended_at: None,
        }
    }

    /// Stores where a walk continues after a step, or with `None` that it has ended.
    fn keep(&mut self, tx: &mut dyn Tx, now: &Now, walk: Option<Walk>) -> Result<(), StoreError> {
        match walk {
            None => self.ended_at = Some(now.instant()),
            Some(walk) => {
                self.count = walk.count;
                self.account_number = walk.account_number;
                self.is_beneficiaries = walk.table == ScreenedTable::Beneficiaries;
                // An identifier begins with its time.
                let milliseconds = (u128::from_be_bytes(walk.after) >> 80) as i64;
                self.reached = (milliseconds > 0).then_some(milliseconds / 1_000);
            }
        }
        let text = serde_json::to_vec(self)
            .map_err(|error| StoreError::Broken(format!("a walk's progress: {error}")))?;
        meta::write(tx, WALK_META, &text)
    }
}

/// How far the last walk came; `None` before the first.
pub fn progress(tx: &mut dyn Tx) -> Result<Option<ScreeningProgress>, StoreError> {
    let kept = meta::read(tx, WALK_META)?;
    Ok(kept.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// A place in the walk over all senders and beneficiaries of one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    mode: Mode,
    account_number: i64,
    table: ScreenedTable,
    after: [u8; 16],
    /// Rows that are done.
    count: i64,
}

impl Walk {
    pub const fn begin(mode: Mode) -> Walk {
        Walk { mode, account_number: 1, table: ScreenedTable::Senders, after: [0; 16], count: 0 }
    }
}

/// Screens up to `rows_max` senders or beneficiaries again. Answers where to continue; `None` at
/// the end. Running a step twice does no harm.
pub fn step(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    mut walk: Walk,
    rows_max: i64,
) -> Result<Option<Walk>, StoreError> {
    if walk.account_number > keys::rows::accounts_count(tx)? {
        return Ok(None);
    }
    let scope = Scope::new(walk.account_number, walk.mode);
    // The operator's decisions lock the account too, so that a step overwrites none of them.
    keys::rows::lock_account(tx, scope)?;
    now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
    let ids = rows::ids_after(tx, walk.table, scope, walk.after, rows_max)?;
    for id in &ids {
        match walk.table {
            ScreenedTable::Senders => {
                senders::rescreen(tx, now, services, scope, Id::from_u128(id.as_u128()))?
            }
            ScreenedTable::Beneficiaries => {
                beneficiaries::rescreen(tx, now, services, scope, Id::from_u128(id.as_u128()))?
            }
        }
    }
    now.leave_account();
    walk.count += ids.len() as i64;
    walk = match (ids.last(), walk.table) {
        (Some(last), _) => Walk { after: last.to_bytes(), ..walk },
        (None, ScreenedTable::Senders) => {
            Walk { table: ScreenedTable::Beneficiaries, after: [0; 16], ..walk }
        }
        (None, ScreenedTable::Beneficiaries) => Walk {
            account_number: walk.account_number + 1,
            table: ScreenedTable::Senders,
            after: [0; 16],
            ..walk
        },
    };
    Ok(Some(walk))
}

/// The questions that `step` will ask.
fn questions(
    tx: &mut dyn Tx,
    services: &Services,
    walk: Walk,
    rows_max: i64,
) -> Result<Vec<ScreeningQuestion>, StoreError> {
    let scope = Scope::new(walk.account_number, walk.mode);
    let mut questions = Vec::new();
    for id in rows::ids_after(tx, walk.table, scope, walk.after, rows_max)? {
        match walk.table {
            ScreenedTable::Senders => {
                let found = senders::rows::find(tx, scope, Id::from_u128(id.as_u128()))?;
                questions.extend(
                    found
                        .map(|sender| senders::screening_question(&sender, services))
                        .transpose()?,
                );
            }
            ScreenedTable::Beneficiaries => {
                let found = beneficiaries::rows::find(tx, scope, Id::from_u128(id.as_u128()))?;
                let active =
                    found.filter(|beneficiary| beneficiary.status == BeneficiaryStatus::Active);
                questions.extend(
                    active
                        .map(|beneficiary| {
                            beneficiaries::screening_question(&beneficiary, services)
                        })
                        .transpose()?,
                );
            }
        }
    }
    Ok(questions)
}

/// The questions that the due checks of beneficiaries will ask the lists.
fn questions_of_checks(
    tx: &mut dyn Tx,
    services: &Services,
    until_milliseconds: i64,
) -> Result<Vec<ScreeningQuestion>, StoreError> {
    let mut questions = Vec::new();
    for task in tasks::due(tx, until_milliseconds, TASKS_AT_ONCE_MAX)? {
        if task.kind == TaskKind::BeneficiaryCheck && services.lists(task.scope.mode()).is_some() {
            let found = beneficiaries::rows::find(tx, task.scope, task.object())?;
            let waiting =
                found.filter(|beneficiary| beneficiary.status == BeneficiaryStatus::Verifying);
            questions.extend(
                waiting
                    .map(|beneficiary| beneficiaries::screening_question(&beneficiary, services))
                    .transpose()?,
            );
        }
    }
    Ok(questions)
}

/// Asks the lists the questions of due checks before the transaction of these checks opens, so that
/// it finds the answers in memory. Ignores an error of the store, because the transaction will meet
/// it too.
pub async fn screen_ahead_of_checks(app: &AppState) {
    let Some(lists) = &app.services.screening else { return };
    let (services, until) = (app.services.clone(), app.store.clock.milliseconds());
    let asked =
        app.store.read(Cost::Scan, move |tx| Ok(questions_of_checks(tx, &services, until)?)).await;
    if let Ok(questions) = asked
        && !questions.is_empty()
    {
        lists.screen_ahead(questions).await;
    }
}

/// Whether everybody must be screened again: the entries are not those of the last complete walk.
pub fn is_due(tx: &mut dyn Tx, lists: &Lists) -> Result<bool, StoreError> {
    Ok(meta::read(tx, SCREENED_META)?.as_deref() != Some(lists.content_hash().as_slice()))
}

/// Checks the files every minute, and reads those that have changed. Runs on every node, because
/// each node screens with its own copy of the lists.
pub async fn keep_lists(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let Some(lists) = app.services.screening.clone() else { return };
    app.metrics.list_age_seconds_max.set(lists.age_seconds_max());
    while !is_stopped(&stop) {
        reload(&lists, &app.metrics).await;
        let now_seconds = app.store.clock.milliseconds() / 1000;
        for state in lists.states() {
            app.metrics.list_age(state.list.as_str(), now_seconds - state.dated_at);
        }
        if let Some(reason) = lists.why_not_live(now_seconds) {
            tracing::warn!(%reason, "the sanctions lists are not fit for live mode");
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Screens everybody in live mode again if the entries changed, or if a walk was interrupted.
pub async fn run(app: Arc<AppState>, mut stop: watch::Receiver<bool>) {
    let Some(lists) = app.services.screening.clone() else { return };
    // When a node takes this worker over, its copy of the lists may be older than the copy of the
    // node that ran the worker before.
    reload(&lists, &app.metrics).await;
    let mut walked = None;
    while !is_stopped(&stop) {
        if let Err(failure) = walk_if_due(&app, &lists, &mut walked, &stop).await {
            tracing::error!(?failure, "screening everybody again failed; it starts over");
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(LOOK_SECONDS)) => {}
            () = lists.changed.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

async fn reload(lists: &Arc<Lists>, metrics: &Metrics) {
    let reader = lists.clone();
    match tokio::task::spawn_blocking(move || reader.reload_if_changed()).await {
        Ok(Ok(Reload::Unchanged)) => {}
        Ok(Ok(Reload::Redated)) => metrics.list_reloads.count("loaded"),
        Ok(Ok(Reload::Changed)) => {
            metrics.list_reloads.count("loaded");
            for state in lists.states() {
                tracing::info!(
                    list = state.list.as_str(),
                    entries = state.entries_count,
                    dated_at = state.dated_at,
                    "sanctions list loaded"
                );
            }
        }
        Ok(Err(fault)) => {
            metrics.list_reloads.count("refused");
            tracing::error!(%fault, "a changed sanctions list was rejected; the earlier one stays");
        }
        Err(_) => {
            metrics.list_reloads.count("refused");
            tracing::error!("reading the sanctions lists panicked; the earlier ones stay in use");
        }
    }
}

/// The hash of the entries with which this worker has walked over everybody, and when that walk
/// began.
type Walked = Option<([u8; 32], Instant)>;

/// When to walk over everybody with entries that are new since the last complete walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    /// Not now: this worker has walked with the new entries. It walks once more when all other
    /// nodes have them too.
    Later,
    /// Now.
    Walk {
        /// No node screens with older entries any more, so no further walk is needed.
        is_last: bool,
    },
}

fn due(walked: Walked, hash: [u8; 32], now: Instant, is_shared: bool) -> Due {
    match walked {
        Some((known, began)) if known == hash && now < began + SETTLE => Due::Later,
        Some((known, _)) if known == hash => Due::Walk { is_last: true },
        _ => Due::Walk { is_last: !is_shared },
    }
}

/// Walks over everybody at once if the entries changed. On a shared store it walks once more after
/// `SETTLE`, because until then another node may have screened somebody with the old entries.
async fn walk_if_due(
    app: &AppState,
    lists: &Arc<Lists>,
    walked: &mut Walked,
    stop: &watch::Receiver<bool>,
) -> Result<(), OperationError> {
    let hash = lists.content_hash();
    let known = lists.clone();
    if !app.store.write(move |tx, _| Ok(is_due(tx, &known)?)).await? {
        return Ok(());
    }
    let began = Instant::now();
    let Due::Walk { is_last } = due(*walked, hash, began, app.store.is_shared()) else {
        return Ok(());
    };
    let mut place = Some(Walk::begin(Mode::Live));
    let mut progress = ScreeningProgress::begin(app.store.clock.milliseconds() / 1_000);
    while let Some(walk) = place {
        if is_stopped(stop) {
            return Ok(());
        }
        let services = app.services.clone();
        let asked = app
            .store
            .read(Cost::Scan, move |tx| Ok(questions(tx, &services, walk, STEP_ROWS_MAX)?))
            .await?;
        lists.screen_ahead(asked).await;
        let services = app.services.clone();
        let before = progress.clone();
        let stepped = app.store.write(move |tx, now| {
            let mut progress = before.clone();
            let place = step(tx, now, &services, walk, STEP_ROWS_MAX)?;
            progress.keep(tx, now, place)?;
            Ok((place, progress))
        });
        (place, progress) = stepped.await?;
    }
    if is_last {
        return app.store.write(move |tx, _| Ok(meta::write(tx, SCREENED_META, &hash)?)).await;
    }
    *walked = Some((hash, began));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account_verification::simulated::SimulatedVerifier;
    use crate::beneficiaries::state::PayoutsDisabledReason;
    use crate::beneficiaries::{Beneficiary, Kyc, NewBeneficiary};
    use crate::chains::address::{AddressBytes, ChainAddress};
    use crate::chains::derivation::AccountXpub;
    use crate::chains::pool::AddressPool;
    use crate::chains::tron::Tron;
    use crate::chains::{ChainName, ChainProfile, Depth, Following, Movement};
    use crate::ifsc::Directory;
    use crate::kernel::id::kind;
    use crate::kernel::seal::{SealedPlace, Sealer};
    use crate::kernel::{AnyId, Clock, Currency, DecidedBy, Id, Metadata, Money};
    use crate::operator::open_hits::{OpenHit, open_hits};
    use crate::operator::{self, OperatorDecision};
    use crate::quote_locks;
    use crate::rails::simulated::SimulatedBank;
    use crate::rates::fixed::FixedRate;
    use crate::refunds::state::{AddressDeclarer, RefundStatus};
    use crate::refunds::{self, payer_address};
    use crate::screening::settings::ScreeningSource;
    use crate::screening::{HITS_MAX, Screening};
    use crate::senders::{IdentificationType, NewSender, Sender, SenderType};
    use crate::services::{Ports, Settings};
    use crate::store::Store;
    use crate::transfers::state::{StatusReason, TransferStatus};
    use crate::transfers::{self, NewTransfer, Transfer, funding};

    const HEADER: &str = "id,name,aliases,date_of_birth,country,address,note\n";
    const DRAINER: &str = "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj";

    struct Stage {
        folder: std::path::PathBuf,
        store: Store,
        services: Arc<Services>,
        lists: Arc<Lists>,
    }

    impl Stage {
        /// A store, and services of test mode whose screening reads this list.
        async fn new(list: &str) -> Stage {
            let mut random = [0; 8];
            getrandom::fill(&mut random).unwrap();
            let folder = std::env::temp_dir()
                .join(format!("hundi-screening-{:016x}", u64::from_be_bytes(random)));
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("operator.csv");
            std::fs::write(&file, format!("{HEADER}{list}")).unwrap();
            let source =
                ScreeningSource { operator_file: Some(file), ..ScreeningSource::default() };
            let lists = Arc::new(Lists::load(source.try_into().unwrap()).unwrap());
            let store = Store::open(
                &folder.join("test.db"),
                Clock::System,
                crate::webhooks::sequencer::sequence,
            )
            .unwrap();
            let settings = Settings::default();
            let test = Ports {
                rates: Box::new(FixedRate {
                    mid: settings.test_mid_market_rate,
                    usdt_usd: settings.test_usdt_usd,
                }),
                rail: Box::new(SimulatedBank { step_milliseconds: 1 }),
                accounts: Box::new(SimulatedVerifier),
                screener: Box::new(lists.clone()),
                addresses: AddressPool::new(
                    &Tron,
                    AccountXpub::generate_for_test_mode(&[7; 64]),
                    "index".into(),
                ),
                chain: ChainProfile {
                    name: ChainName::Tron,
                    asset: Currency::Usdt,
                    token_contract: ChainAddress::parse(DRAINER).unwrap(),
                    following: Following::Simulated,
                },
            };
            let services = Arc::new(Services {
                settings,
                sealer: Sealer::new(&[1; 32]),
                ifsc: Directory::embedded().unwrap(),
                test,
                live: None,
                screening: Some(lists.clone()),
            });
            let stage = Stage { folder, store, services, lists };
            stage
                .write(|tx, now, _| keys::rows::ensure_account(tx, now, "default").map(|_| ()))
                .await;
            stage
        }

        /// A transfer of 100.00 USD whose payer may say where a refund goes.
        async fn transfer(
            &self,
            sender: Id<kind::Sender>,
            beneficiary: Id<kind::Beneficiary>,
        ) -> Transfer {
            let indices = self.write(|tx, _, services| services.test.addresses.reserve(tx)).await;
            self.services.test.addresses.restock(indices);
            self.services.test.addresses.derive(8, 0);
            let made = self.write(move |tx, now, services| {
                let sell = Money::new(10_000, Currency::Usd);
                let amount = quote_locks::QuoteAmount::Sell(sell);
                let lock =
                    quote_locks::create(tx, now, services, SCOPE, amount, Metadata::default())
                        .map_err(failed)?;
                let new = NewTransfer {
                    sender_id: sender.into(),
                    beneficiary_id: beneficiary.into(),
                    quote_lock_id: lock.id.into(),
                    amount: sell,
                    payout_currency: Currency::Inr,
                    purpose_code: None,
                    refund_address: None,
                    payer_sets_refund_address: true,
                    policy: Default::default(),
                    return_url: None,
                    reference: None,
                    metadata: Metadata::default(),
                };
                transfers::create(tx, now, services, SCOPE, new).map_err(failed)
            });
            made.await
        }

        /// The transfer once a payment of this amount is final.
        async fn pay(&self, transfer: &Transfer, payer: AddressBytes, amount: Money) -> Transfer {
            let (id, to_address) = (transfer.id, *transfer.deposit_address.bytes());
            let paid = self.write(move |tx, now, services| {
                let movement = Movement {
                    transaction_hash: format!("{:064x}", id.as_u128()),
                    log_index: 0,
                    from_address: payer,
                    to_address,
                    contract: None,
                    asset: "USDT".into(),
                    amount,
                    depth: Depth::Final { number: 1, time: now.business(), confirmations: 20 },
                };
                funding::observe_simulated(tx, now, services, SCOPE, "tron", &movement)?;
                Ok(transfers::rows::find(tx, SCOPE, id)?.unwrap())
            });
            paid.await
        }

        async fn write<T: Send + 'static, W>(&self, work: W) -> T
        where
            W: Fn(&mut dyn Tx, &mut Now, &Services) -> Result<T, StoreError> + Send + 'static,
        {
            let services = self.services.clone();
            self.store.write(move |tx, now| Ok(work(tx, now, &services)?)).await.unwrap()
        }

        /// Replaces the list, and reads the new one.
        fn replace(&self, list: &str) -> Reload {
            std::fs::write(self.folder.join("operator.csv"), format!("{HEADER}{list}")).unwrap();
            self.lists.reload_if_changed().unwrap()
        }

        async fn walk(&self) {
            let mut place = Some(Walk::begin(Mode::Test));
            while let Some(walk) = place {
                place = self.write(move |tx, now, services| step(tx, now, services, walk, 2)).await;
            }
        }

        async fn sender(&self, name: &str) -> Id<kind::Sender> {
            let name = name.to_owned();
            let created = self.write(move |tx, now, services| {
                let new = NewSender {
                    name: name.clone(),
                    sender_type: SenderType::Individual,
                    country: "IN".into(),
                    email: None,
                    address: None,
                    date_of_birth: Some("1980-05-06".into()),
                    nationality: None,
                    identification: None,
                    metadata: Metadata::default(),
                };
                senders::create(tx, now, services, SCOPE, new).map_err(failed)
            });
            created.await.id
        }

        /// How many questions were compared with the entries while this ran.
        async fn compared<T>(&self, work: impl Future<Output = T>) -> u64 {
            let before = self.lists.matcher().comparisons_count();
            work.await;
            self.lists.matcher().comparisons_count() - before
        }

        async fn found_sender(&self, id: Id<kind::Sender>) -> Sender {
            self.write(move |tx, _, _| Ok(senders::rows::find(tx, SCOPE, id)?.unwrap())).await
        }

        async fn beneficiary(
            &self,
            name: &str,
            date_of_birth: Option<&str>,
        ) -> Id<kind::Beneficiary> {
            let (name, date_of_birth) = (name.to_owned(), date_of_birth.map(str::to_owned));
            let created = self.write(move |tx, now, services| {
                let new = NewBeneficiary {
                    kyc: Kyc { date_of_birth: date_of_birth.clone(), ..Kyc::default() },
                    ..account_of(&name)
                };
                beneficiaries::create(tx, now, services, SCOPE, new).map_err(failed)
            });
            let id = created.await.id;
            self.check(id).await;
            id
        }

        /// What the beneficiary's check does, without waiting for its time.
        async fn check(&self, id: Id<kind::Beneficiary>) {
            self.write(move |tx, now, services| {
                let mut found = beneficiaries::rows::find(tx, SCOPE, id)?.unwrap();
                beneficiaries::check(tx, now, services, &mut found)
            })
            .await;
        }

        async fn found(&self, id: Id<kind::Beneficiary>) -> Beneficiary {
            self.write(move |tx, _, _| Ok(beneficiaries::rows::find(tx, SCOPE, id)?.unwrap())).await
        }

        async fn decide(&self, id: AnyId, decision: OperatorDecision) -> Result<String, String> {
            let by = DecidedBy::new("asha", "a test").unwrap();
            let services = self.services.clone();
            let decide = move |tx: &mut dyn Tx, now: &mut Now| {
                operator::decide(tx, now, &services, id, &decision, &by)
            };
            self.store.write(decide).await.map_err(|error| error.to_string())
        }

        async fn open(&self) -> Vec<String> {
            let shown = |found: OpenHit| {
                let (names, hit) = (found.subject_names.join("; "), found.hit);
                format!("{} {} | {names} | {}", hit.list, hit.entry_id, hit.evidence)
            };
            let services = self.services.clone();
            let open = self.write(move |tx, _, _| open_hits(tx, &services, 100)).await;
            open.into_iter().map(shown).collect()
        }
    }

    const SCOPE: Scope = Scope::new(1, Mode::Test);

    fn account_of(name: &str) -> NewBeneficiary {
        NewBeneficiary {
            name: name.to_owned(),
            account_number: "50100012345678".into(),
            ifsc: "HDFC0000001".into(),
            email: None,
            phone: None,
            kyc: Kyc::default(),
            metadata: Metadata::default(),
            submit: true,
        }
    }

    fn failed(failure: OperationError) -> StoreError {
        StoreError::Broken(format!("{failure:?}"))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_identification_that_is_no_text_is_an_error() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,1980,IN,,\n").await;
        let id = stage.sender("Asha Kulkarni").await;
        let mut sender = stage.found_sender(id).await;
        let services = stage.services.clone();
        let key = services.sealer.sealing_key(None).unwrap();
        let sealed = |plain: &[u8]| {
            key.seal([3; 12], &SealedPlace::IDENTIFICATION, &id.to_bytes(), plain).unwrap()
        };
        sender.identification_type = Some(IdentificationType::Passport);
        sender.identification_sealed = Some(sealed(b"Z1234567"));
        let question = senders::screening_question(&sender, &services).unwrap();
        assert_eq!(question.identifiers, ["Z1234567"]);
        assert!(senders::open_identification(&sender, &services).unwrap().is_some());
        // It opens, but is not UTF-8.
        sender.identification_sealed = Some(sealed(b"Z12\xFF4567"));
        for read in [
            senders::screening_question(&sender, &services).map(|_| ()),
            senders::open_identification(&sender, &services).map(|_| ()),
        ] {
            let error = read.unwrap_err().to_string();
            assert!(error.contains("a sender's identification cannot be read"), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_senders_clearance_holds_until_the_entry_changes() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,1980,IN,,\nown-9,Nobody Else,,,,,\n").await;
        let (clear, listed) =
            (stage.sender("Asha Kulkarni").await, stage.sender("Zubin Tarkhad").await);
        assert_eq!(stage.found_sender(clear).await.screening, Screening::Clear);
        // The year and the country agree.
        assert_eq!(stage.found_sender(listed).await.screening, Screening::ConfirmedMatch);
        assert!(senders::refusal_if_not_eligible(&stage.found_sender(listed).await).is_some());
        let open = stage.open().await;
        assert!(
            open.len() == 1
                && open[0].contains("operator own-1")
                && open[0].contains("| Zubin Tarkhad |")
                && open[0].contains("year of birth and country agree"),
            "{open:?}"
        );
        stage.decide(listed.any(), OperatorDecision::Approve).await.unwrap();
        assert!(
            senders::refusal_if_not_eligible(&stage.found_sender(listed).await).is_none()
                && stage.open().await.is_empty()
        );
        // Neither a new walk nor a change of another entry undoes the clearance.
        stage.walk().await;
        assert_eq!(
            stage.replace("own-1,Zubin Tarkhad,,1980,IN,,other note\nown-9,Nobody Other,,,,,\n"),
            Reload::Changed
        );
        stage.walk().await;
        assert_eq!(stage.found_sender(listed).await.screening, Screening::Clear);
        // The entry changed, so the hit is open again.
        stage.replace("own-1,Zubin Tarkhad,Zubeen Tarkhad,1980,IN,,\n");
        stage.walk().await;
        assert_eq!(stage.found_sender(listed).await.screening, Screening::ConfirmedMatch);
        assert_eq!(stage.open().await.len(), 1);
        // A refusal stays even if the list drops the entry.
        stage.decide(listed.any(), OperatorDecision::Refuse).await.unwrap();
        stage.replace("own-1,Somebody New,,,,,\n");
        stage.walk().await;
        assert_eq!(stage.found_sender(listed).await.screening, Screening::ConfirmedMatch);
        stage.decide(clear.any(), OperatorDecision::Refuse).await.unwrap();
        stage.walk().await;
        assert_eq!(
            stage.found_sender(clear).await.screening,
            Screening::ConfirmedMatch,
            "refused without any hit"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_screened_ahead_is_not_compared_again_in_a_transaction() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,,,,\n").await;
        let asked = ScreeningQuestion {
            date_of_birth: Some(jiff::civil::date(1980, 5, 6)),
            countries: vec!["IN".into()],
            ..ScreeningQuestion::person("Asha Kulkarni")
        };
        stage.lists.screen_ahead(vec![asked]).await;
        assert_eq!(stage.compared(stage.sender("Asha Kulkarni")).await, 0);
        assert_eq!(
            stage.compared(stage.sender("Asha Kulkarny")).await,
            1,
            "another question was not asked ahead"
        );

        // A check that is due, and the walk.
        let created = stage.write(|tx, now, services| {
            beneficiaries::create(tx, now, services, SCOPE, account_of("Zubin Tarkhad"))
                .map_err(failed)
        });
        let id = created.await.id;
        let soon = stage.store.clock.milliseconds() + 60_000;
        let asked =
            stage.write(move |tx, _, services| questions_of_checks(tx, services, soon)).await;
        assert_eq!(stage.compared(stage.lists.screen_ahead(asked)).await, 1);
        assert_eq!(stage.compared(stage.check(id)).await, 0);
        assert_eq!(
            stage.found(id).await.payouts_disabled_reason,
            Some(PayoutsDisabledReason::ComplianceHold)
        );
        let walk = Walk::begin(Mode::Test);
        let asked = stage.write(move |tx, _, services| questions(tx, services, walk, 2)).await;
        assert_eq!(asked.len(), 2);
        stage.replace("own-2,Somebody New,,,,,\nown-3,Asha Kulkarni,,,,,\n");
        assert_eq!(
            stage.compared(stage.lists.screen_ahead(asked)).await,
            2,
            "after a change of the entries, the same questions are compared again"
        );
        assert_eq!(
            stage
                .compared(stage.write(move |tx, now, services| step(tx, now, services, walk, 2)))
                .await,
            0
        );

        // The lists change between the question and the transaction, so the transaction compares
        // with the new lists.
        let asked = ScreeningQuestion::person("Zubin Tarkhad");
        stage.lists.screen_ahead(vec![asked]).await;
        stage.replace("own-4,Zubin Tarkhad,,,,,\n");
        assert_eq!(stage.compared(stage.check(id)).await, 1);
        assert_eq!(
            stage.found(id).await.payouts_disabled_reason,
            Some(PayoutsDisabledReason::ComplianceHold)
        );
    }

    #[test]
    fn several_nodes_walk_once_more_when_all_have_the_entries() {
        let (now, old, new) = (Instant::now(), [1; 32], [2; 32]);
        for (walked, passed, is_shared, wanted) in [
            (None, Duration::ZERO, false, Due::Walk { is_last: true }),
            (None, Duration::ZERO, true, Due::Walk { is_last: false }),
            (Some((new, now)), Duration::from_secs(LOOK_SECONDS), true, Due::Later),
            (Some((new, now)), SETTLE, true, Due::Walk { is_last: true }),
            // After another change of the entries the two walks begin anew.
            (Some((old, now)), SETTLE, true, Due::Walk { is_last: false }),
        ] {
            assert_eq!(
                due(walked, new, now + passed, is_shared),
                wanted,
                "{walked:?} {passed:?} {is_shared}"
            );
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_hit_that_the_list_withdraws_frees_the_sender() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,,,,\n").await;
        let listed = stage.sender("Zubin Tarkhad").await;
        assert_eq!(stage.found_sender(listed).await.screening, Screening::PossibleMatch);
        stage.replace("own-2,Somebody New,,,,,\n");
        stage.walk().await;
        assert_eq!(stage.found_sender(listed).await.screening, Screening::Clear);
        assert!(stage.open().await.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn hits_beyond_the_maximum_are_shown_once_the_first_are_cleared() {
        let stage = Stage::new("own-0,Somebody Else,,,,,\n").await;
        let free = stage.beneficiary("Zubin Tarkhad", None).await;
        let list: String =
            (1..=HITS_MAX + 5).map(|number| format!("own-{number},Zubin Tarkhad,,,,,\n")).collect();
        stage.replace(&list);
        stage.walk().await;
        let told = stage.decide(free.any(), OperatorDecision::Approve).await.unwrap();
        assert!(told.contains("stays without payouts: screening found more"), "{told}");
        assert!(!stage.found(free).await.is_payable());
        assert_eq!(stage.open().await.len(), 5);
        stage.decide(free.any(), OperatorDecision::Approve).await.unwrap();
        stage.walk().await;
        assert!(stage.found(free).await.is_payable() && stage.open().await.is_empty());

        let sender = stage.sender("Zubin Tarkhad").await;
        assert_eq!(stage.open().await.len(), HITS_MAX);
        let told = stage.decide(sender.any(), OperatorDecision::Approve).await.unwrap();
        assert!(told.contains("may not send yet: screening found more"), "{told}");
        assert_eq!(stage.found_sender(sender).await.screening, Screening::PossibleMatch);
        assert_eq!(stage.open().await.len(), 5);
        let told = stage.decide(sender.any(), OperatorDecision::Approve).await.unwrap();
        assert!(told.contains("may send"), "{told}");
        stage.walk().await;
        assert_eq!(stage.found_sender(sender).await.screening, Screening::Clear);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_beneficiary_waits_after_a_possible_match_and_is_rejected_after_a_confirmed_one() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,1980-05-06,IN,,\n").await;
        let free = stage.beneficiary("Asha Kulkarni", None).await;
        assert_eq!(stage.found(free).await.status, BeneficiaryStatus::Active);
        let possible = stage.beneficiary("Zubin Tarkhad", None).await;
        let held = stage.found(possible).await;
        assert_eq!(
            (held.status, held.payouts_disabled_reason),
            (BeneficiaryStatus::Verifying, Some(PayoutsDisabledReason::ComplianceHold))
        );
        let confirmed = stage.beneficiary("Zubin Tarkhad", Some("1980-05-06")).await;
        let rejected = stage.found(confirmed).await;
        assert_eq!(
            (rejected.status, rejected.payouts_disabled_reason),
            (BeneficiaryStatus::Rejected, Some(PayoutsDisabledReason::ComplianceHold))
        );
        // After the clearance the account itself has yet to be verified.
        stage.decide(possible.any(), OperatorDecision::Approve).await.unwrap();
        assert_eq!(stage.found(possible).await.status, BeneficiaryStatus::Verifying);
        stage.check(possible).await;
        assert_eq!(stage.found(possible).await.status, BeneficiaryStatus::Active);
        let refused = stage.beneficiary("Zubin  Tarkhad", None).await;
        stage.decide(refused.any(), OperatorDecision::Refuse).await.unwrap();
        assert_eq!(stage.found(refused).await.status, BeneficiaryStatus::Rejected);
        // A new list names an active beneficiary: it is not paid until the operator decides.
        stage.replace("own-1,Zubin Tarkhad,,1980-05-06,IN,,\nown-2,Asha Kulkarni,,,,,\n");
        stage.walk().await;
        let stopped = stage.found(free).await;
        assert_eq!(
            (stopped.is_payable(), stopped.payouts_disabled_reason),
            (false, Some(PayoutsDisabledReason::ComplianceHold))
        );
        assert!(stage.found(possible).await.is_payable(), "its clearance holds");
        stage.decide(free.any(), OperatorDecision::Approve).await.unwrap();
        stage.walk().await;
        assert!(stage.found(free).await.is_payable());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn money_from_a_listed_address_waits_for_the_operator() {
        let stage = Stage::new(&format!("own-2,,,,,{DRAINER},drainer\n")).await;
        let (sender, beneficiary) =
            (stage.sender("Asha Kulkarni").await, stage.beneficiary("Asha Kulkarni", None).await);
        for (payer, is_listed) in [
            (AddressBytes::of_20([9; 20]), false),
            (*ChainAddress::parse(DRAINER).unwrap().bytes(), true),
        ] {
            let transfer = stage.transfer(sender, beneficiary).await;
            let id = transfer.id;
            let observed = stage.pay(&transfer, payer, transfer.expected).await;
            if !is_listed {
                assert_eq!(observed.status, TransferStatus::Funded, "a payer that no list names");
                continue;
            }
            assert_eq!(
                (observed.status, observed.status_reason),
                (TransferStatus::FundingHold, Some(StatusReason::ComplianceReview))
            );
            assert!(stage.open().await[0].contains(DRAINER));
            stage.decide(id.any(), OperatorDecision::Approve).await.unwrap();
            let approved = stage
                .write(move |tx, _, _| Ok(transfers::rows::find(tx, SCOPE, id)?.unwrap()))
                .await;
            assert_eq!(approved.status, TransferStatus::Funded);
            assert!(stage.open().await.is_empty());
        }
        let path = stage.folder.join("test.db");
        stage.store.close().await;
        assert_eq!(
            crate::verify_book::run(&crate::store::Database::Sqlite(path.clone())).unwrap().faults,
            Vec::<String>::new()
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_address_of_the_payer_is_screened_when_it_takes_effect() {
        const LISTED: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";
        let stage = Stage::new(&format!("own-2,,,,,{LISTED},drainer\n")).await;
        let (sender, beneficiary) =
            (stage.sender("Asha Kulkarni").await, stage.beneficiary("Asha Kulkarni", None).await);
        let clean = ChainAddress::of_chain("tron", AddressBytes::of_20([7; 20]));
        let token = stage.services.test.chain.token_contract;
        for (address, wanted) in [
            (clean, Some(false)),
            (ChainAddress::parse(LISTED).unwrap(), Some(true)),
            (token, None),
        ] {
            let transfer = stage.transfer(sender, beneficiary).await;
            let above = Money::new(transfer.expected.units + 1, transfer.expected.currency);
            let paid = stage.pay(&transfer, AddressBytes::of_20([9; 20]), above).await;
            let id = paid.refund_id.unwrap();
            let refund = stage.write(move |tx, now, services| {
                let mut refund = refunds::rows::find(tx, SCOPE, id)?.unwrap();
                payer_address::give(tx, now, &mut refund, address)?;
                // Screening waits until the address takes effect, so that the payer does not learn
                // at once whether a list names it.
                assert!(
                    !refund.is_held_by_screening && refund.status == RefundStatus::RequiresAddress
                );
                payer_address::take_effect(tx, now, services, SCOPE, id)?;
                Ok(refunds::rows::find(tx, SCOPE, id)?.unwrap())
            });
            let refund = refund.await;
            let Some(is_listed) = wanted else {
                // An address that no refund may go to is dropped, and the payer may give another
                // one.
                assert!(refund.takes_payer_address() && refund.to_address.is_none());
                continue;
            };
            assert_eq!(
                (refund.status, refund.to_address, refund.is_held_by_screening),
                (RefundStatus::Processing, Some(address), is_listed)
            );
            assert_eq!(refund.address_declared_by, Some(AddressDeclarer::Payer));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lists_are_reloaded_whole_or_not_at_all_and_must_not_be_old() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,,,,\n").await;
        assert_eq!(stage.lists.reload_if_changed(), Ok(Reload::Unchanged));
        let before = stage.lists.content_hash();
        std::fs::write(stage.folder.join("operator.csv"), "id,name").unwrap();
        let metrics = Metrics::default();
        reload(&stage.lists, &metrics).await;
        assert_eq!(
            (metrics.list_reloads.counted("refused"), metrics.list_reloads.counted("loaded")),
            (1, 0)
        );
        assert!(stage.lists.reload_if_changed().unwrap_err().contains("operator's list"));
        assert_eq!(
            (stage.lists.content_hash(), stage.lists.matcher().entries_count()),
            (before, 1),
            "the earlier list stays"
        );
        assert!(stage.lists.why_not_live(0).unwrap().contains("screening.ofac_directory"));
        // All three lists from the fixtures. A list is as old as its file, or as the date that it
        // gives, if that is earlier.
        let fixtures =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/screening");
        let source = ScreeningSource {
            ofac_directory: Some(fixtures.clone()),
            un_file: Some(fixtures.join("consolidated.xml")),
            operator_file: Some(fixtures.join("operator.csv")),
            ..ScreeningSource::default()
        };
        let lists = Lists::load(source.try_into().unwrap()).unwrap();
        let oldest = lists.states().iter().map(|state| state.dated_at).min().unwrap();
        assert_eq!(lists.matcher().entries_count(), 11);
        assert_eq!(lists.why_not_live(oldest + 7 * 86_400), None);
        let told = lists.why_not_live(oldest + 7 * 86_400 + 1).unwrap();
        assert!(told.contains("more than 7 days old"), "{told}");
        assert!(lists.why_not_live(oldest + 9 * 86_400).unwrap().contains("days old"));
        assert!(
            Lists::load(
                ScreeningSource { un_file: Some("/nowhere".into()), ..Default::default() }
                    .try_into()
                    .unwrap()
            )
            .is_err()
        );
        for source in [
            ScreeningSource::default(),
            ScreeningSource {
                un_file: Some("x".into()),
                age_days_max: Some(0),
                ..Default::default()
            },
            ScreeningSource {
                un_file: Some("x".into()),
                score_possible: Some(0.5),
                ..Default::default()
            },
            ScreeningSource {
                un_file: Some("x".into()),
                score_confirmed: Some(0.8),
                ..Default::default()
            },
        ] {
            assert!(crate::screening::settings::ScreeningSettings::try_from(source).is_err());
        }
    }

    #[tokio::test]
    async fn a_walk_stores_how_far_it_has_come() {
        let stage = Stage::new("own-1,Zubin Tarkhad,,,,,\n").await;
        assert_eq!(stage.write(|tx, _, _| progress(tx)).await, None);
        for number in 0..5 {
            stage.sender(&format!("Sender {number}")).await;
        }
        let (mut place, mut last) = (Some(Walk::begin(Mode::Test)), ScreeningProgress::begin(7));
        let mut counts = Vec::new();
        while let Some(walk) = place {
            let before = last.clone();
            let stepped = stage.write(move |tx, now, services| {
                let mut progress = before.clone();
                let place = step(tx, now, services, walk, 2)?;
                progress.keep(tx, now, place)?;
                Ok((place, progress))
            });
            (place, last) = stepped.await;
            let kept = stage.write(|tx, _, _| progress(tx)).await.unwrap();
            assert_eq!(kept, last);
            counts.push((kept.count, kept.is_beneficiaries, kept.reached.is_some()));
            assert_eq!(kept.ended_at.is_some(), place.is_none());
        }
        let expected = [
            (2, false, true),
            (4, false, true),
            (5, false, true),
            (5, true, false),
            (5, false, false),
            (5, false, false),
        ];
        assert_eq!(counts, expected);
    }
}
