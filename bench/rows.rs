//! The rows that the creation of a transfer writes, without parsing and checks: the store's own
//! limit, and the filling of large databases.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hundi::chains::address::{AddressBytes, ChainAddress};
use hundi::chains::pool::BATCH_ADDRESSES_MAX;
use hundi::chains::tron_address::TronAddress;
use hundi::deposits;
use hundi::events;
use hundi::events::rows::EventRow;
use hundi::kernel::id::{Minter, kind};
use hundi::kernel::state::Status;
use hundi::kernel::{
    AnyId, Clock, Currency, History, Id, InternalId, Metadata, Money, Now, ObjectKind, Rate, Scope,
    StoreError,
};
use hundi::quote_locks::{self, QuoteLock, RateInputs};
use hundi::rates::MarketKind;
use hundi::store::key_segments::{KEYS_IN_SEGMENT_MAX, KeySegments};
use hundi::store::sqlite::{self, SqliteTx};
use hundi::store::{Store, Tx};
use hundi::tasks::{self, TaskKind};
use hundi::transfers::state::TransferStatus;
use hundi::transfers::{Policy, PurposeCode, Transfer};
use hundi::values;
use hundi::webhooks::deliveries::{AttemptRow, Delivery};
use hundi::webhooks::state::DeliveryStatus;
use tokio::runtime::Runtime;

const DAY_SECONDS: i64 = 86_400;
/// Transfers in one commit while a database is filled.
const FILLED_AT_ONCE: usize = 512;

/// What all transfers of a run share.
#[derive(Clone)]
pub struct Template {
    pub scope: Scope,
    pub senders: Vec<Id<kind::Sender>>,
    pub beneficiaries: Vec<Id<kind::Beneficiary>>,
    /// As long as the answer that the service stores.
    pub answer: Vec<u8>,
}

impl Template {
    /// One for a database without a service, where references need not lead anywhere.
    pub fn unattached(answer_length: usize) -> Template {
        let minter = Minter::above(0);
        let now = Clock::System.milliseconds();
        Template {
            scope: Scope::from_code(2),
            senders: (0..50).map(|index| minter.mint(now, index)).collect(),
            beneficiaries: (0..50).map(|index| minter.mint(now, index)).collect(),
            answer: vec![b'x'; answer_length],
        }
    }

    fn quote_lock(&self, now: &mut Now) -> QuoteLock {
        QuoteLock {
            scope: self.scope,
            id: now.mint(),
            sell: Money::new(100_000, Currency::Usd),
            buy: Money::new(8_841_250, Currency::Inr),
            rate: Rate(88_412_500),
            mid_market_rate: Rate(88_412_500),
            rate_inputs: Some(RateInputs {
                source: MarketKind::Fixed,
                usdt_usd: Rate(1_000_000),
                observed_at: now.instant(),
            }),
            fee: Money::zero(Currency::Usd),
            gst: None,
            expires_at: now.business() + 900,
            transfer_id: None,
            metadata: Metadata::default(),
            created: now.business(),
        }
    }

    fn transfer(
        &self,
        now: &mut Now,
        index: usize,
        lock: &QuoteLock,
        address: TronAddress,
    ) -> Transfer {
        let business = now.business();
        Transfer {
            scope: self.scope,
            id: now.mint(),
            version: 1,
            status: TransferStatus::Funding,
            status_reason: None,
            sender_id: self.senders[index * 7 % self.senders.len()],
            beneficiary_id: self.beneficiaries[index % self.beneficiaries.len()],
            quote_lock_id: lock.id,
            amount: lock.sell,
            payout_amount: lock.buy,
            rate: lock.rate,
            fee: lock.fee,
            gst: None,
            purpose_code: PurposeCode::P1301,
            asset: "USDT".into(),
            chain: "tron".into(),
            token_contract: ChainAddress::of_chain("tron", AddressBytes::of_20([0xA6; 20])),
            deposit_address: ChainAddress::of_chain("tron", address.bytes()),
            account_fingerprint: 0,
            derivation_index: index as i64,
            expected: Money::new(1_000_000_000, Currency::Usdt),
            received: Money::zero(Currency::Usdt),
            excess: Money::zero(Currency::Usdt),
            unsettled_count: 0,
            expires_at: business + 2 * DAY_SECONDS,
            hold_until: None,
            refund_address: None,
            payer_sets_refund_address: false,
            return_url: None,
            policy: Policy::default(),
            reference: None,
            payout_id: None,
            refund_id: None,
            status_history: History::begun(TransferStatus::Funding, business),
            metadata: Metadata([("order_id".to_owned(), format!("order-{index:012}"))].into()),
            created: business,
        }
    }

    /// Everything that a creation writes except its event.
    fn create(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        index: usize,
        lock: &QuoteLock,
        address: TronAddress,
    ) -> Result<Id<kind::Transfer>, StoreError> {
        let transfer = self.transfer(now, index, lock, address);
        quote_locks::rows::take(tx, lock, transfer.id)?;
        hundi::transfers::rows::insert(tx, &transfer)?;
        deposits::rows::assign_address(
            tx,
            self.scope,
            transfer.id,
            transfer.deposit_address.bytes(),
        )?;
        tasks::schedule(
            tx,
            now,
            self.scope,
            TaskKind::FundingExpiry,
            transfer.id,
            transfer.expires_at * 1000,
        )?;
        let answer_id: InternalId = now.mint();
        let (key_hash, fingerprint): ([u8; 16], [u8; 32]) =
            (now.random_bytes(), now.random_bytes());
        let segment = tx.key_segments()?.segment_for_new_key();
        tx.execute_one(
            "INSERT INTO idempotency_keys (part, key_hash, answer_id) VALUES (?1, ?2, ?3)",
            values![segment, &key_hash, answer_id],
        )?;
        tx.execute_one(
            "INSERT INTO idempotency_answers (answer_id, key_hash, fingerprint, completed_at, \
             http_status, form, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            values![answer_id, &key_hash, &fingerprint, now.instant(), 200, 1, &self.answer],
        )?;
        Ok(transfer.id)
    }

    /// The rows of a creation, as the service writes them: the event goes through the outbox.
    fn create_with_outbox(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        index: usize,
        lock: &QuoteLock,
        address: TronAddress,
    ) -> Result<(), StoreError> {
        let id = self.create(tx, now, index, lock, address)?;
        events::emit_status(tx, now, self.scope, TransferStatus::Funding, id.any())
    }
}

/// Addresses in the order in which the service hands them out under load: whole batches, each
/// sorted. Random bytes take the place of derivation.
#[derive(Default)]
struct Addresses(Vec<TronAddress>);

impl Addresses {
    fn take(&mut self, now: &mut Now) -> TronAddress {
        if self.0.is_empty() {
            self.0 = (0..BATCH_ADDRESSES_MAX)
                .map(|_| TronAddress::from_evm(now.random_bytes()))
                .collect();
            self.0.sort_unstable_by_key(|address| Reverse(*address));
        }
        self.0.pop().expect("an address of the batch")
    }
}

/// Does what the write lane does at the end of a transaction: closes a segment of the idempotency
/// keys that is full.
fn close_full(tx: &mut SqliteTx<'_>) {
    if let Some(key_segments) = tx.take_key_segments()
        && key_segments.is_full()
    {
        key_segments.close(tx).expect("a segment of the keys is closed");
    }
}

fn fresh_now() -> Now {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("randomness");
    Now::new(Clock::System.milliseconds(), Minter::above(0), seed)
}

/// A database of its own that takes the rows of creations in a bare loop.
pub struct Bare {
    store: Store,
    connection: rusqlite::Connection,
    now: Now,
    addresses: Arc<Mutex<Addresses>>,
    template: Arc<Template>,
}

/// What a bare loop did.
pub struct BareRun {
    pub rate: f64,
    /// Creations in one commit, on average.
    pub batch: f64,
}

impl Bare {
    pub fn open(path: &Path, answer_length: usize) -> Bare {
        let store = Store::open(path, Clock::System, hundi::webhooks::sequencer::sequence)
            .expect("the database of the bare loop");
        let connection = sqlite::open_writer(path).expect("a connection of the bare loop");
        Bare {
            store,
            connection,
            now: fresh_now(),
            addresses: Arc::default(),
            template: Arc::new(Template::unattached(answer_length)),
        }
    }

    fn locks(&mut self, count: usize) -> Vec<QuoteLock> {
        self.now.advance_to(Clock::System.milliseconds());
        let mut tx = SqliteTx::new(&self.connection);
        tx.run("BEGIN IMMEDIATE").expect("a transaction");
        let mut locks = Vec::with_capacity(count);
        for _ in 0..count {
            let lock = self.template.quote_lock(&mut self.now);
            quote_locks::rows::insert(&mut tx, &lock).expect("a quote lock");
            locks.push(lock);
        }
        tx.run("COMMIT").expect("a commit");
        locks
    }

    /// Through the service's own write lane, with so many callers at the same time.
    pub fn grouped(&mut self, runtime: &Runtime, count: usize, callers_count: usize) -> BareRun {
        let locks = Arc::new(self.locks(count));
        let (commits, jobs) = self.lane();
        let started = Instant::now();
        runtime.block_on(async {
            let next = Arc::new(AtomicUsize::new(0));
            let mut callers = Vec::new();
            for _ in 0..callers_count {
                let (store, template, locks, next) =
                    (self.store.clone(), self.template.clone(), locks.clone(), next.clone());
                let addresses = self.addresses.clone();
                callers.push(tokio::spawn(async move {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(lock) = locks.get(index).cloned() else { break };
                        let (template, addresses) = (template.clone(), addresses.clone());
                        let work = move |tx: &mut dyn Tx, now: &mut Now| {
                            let address = addresses.lock().expect("the addresses").take(now);
                            Ok(template.create_with_outbox(tx, now, index, &lock, address)?)
                        };
                        let written = store.write(work).await;
                        written.expect("a creation of the bare loop");
                    }
                }));
            }
            for caller in callers {
                caller.await.expect("a caller of the bare loop");
            }
        });
        let rate = count as f64 / started.elapsed().as_secs_f64();
        let (commits_after, jobs_after) = self.lane();
        BareRun { rate, batch: (jobs_after - jobs) / (commits_after - commits).max(1.0) }
    }

    /// How many callers make groups of about this size.
    pub fn callers_for(&mut self, runtime: &Runtime, batch: f64) -> usize {
        let mut callers_count = batch.round().max(1.0) as usize;
        for _ in 0..6 {
            let run = self.grouped(runtime, 12_000, callers_count);
            if (run.batch / batch - 1.0).abs() < 0.05 {
                break;
            }
            callers_count =
                ((callers_count as f64 * batch / run.batch).round() as usize).clamp(1, 512);
        }
        callers_count
    }

    fn lane(&self) -> (f64, f64) {
        let stats = &self.store.stats;
        (
            stats.transactions.load(Ordering::Relaxed) as f64,
            stats.jobs.load(Ordering::Relaxed) as f64,
        )
    }

    /// One commit for each creation, without a hand-over between threads.
    pub fn one_by_one(&mut self, count: usize) -> BareRun {
        let locks = self.locks(count);
        let mut addresses = self.addresses.lock().expect("the addresses");
        let mut key_segments =
            KeySegments::load(&mut SqliteTx::new(&self.connection), KEYS_IN_SEGMENT_MAX)
                .expect("the segments of the keys");
        let started = Instant::now();
        for (index, lock) in locks.iter().enumerate() {
            self.now.advance_to(Clock::System.milliseconds());
            let mut tx = SqliteTx::new(&self.connection);
            tx.run("BEGIN IMMEDIATE").expect("a transaction");
            key_segments.refresh(&mut tx).expect("the segments of the keys");
            tx.lend_key_segments(&mut key_segments);
            let address = addresses.take(&mut self.now);
            self.template
                .create_with_outbox(&mut tx, &mut self.now, index, lock, address)
                .expect("a creation of the bare loop");
            close_full(&mut tx);
            hundi::webhooks::sequencer::sequence(&mut tx, &mut self.now).expect("the sequencer");
            tx.run("COMMIT").expect("a commit");
        }
        BareRun { rate: count as f64 / started.elapsed().as_secs_f64(), batch: 1.0 }
    }
}

/// What a filled database holds.
pub struct Filling {
    pub transfers: Vec<Id<kind::Transfer>>,
}

/// Fills a database that no service uses with transfers of the last 23 hours, as a service would
/// have left them: each with its quote lock, address, answer, event and task, and with a delivery
/// that succeeded to one of the endpoints.
pub fn fill(
    path: &Path,
    template: &Template,
    endpoints: &[Id<kind::WebhookEndpoint>],
    count: usize,
) -> Filling {
    let connection = sqlite::open_writer(path).expect("the database to fill");
    // Nobody loses anything if this process dies: the file is then made again.
    connection
        .execute_batch("PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000;")
        .expect("settings for filling");
    let mut now = fresh_now();
    let end = now.instant_milliseconds() - 60_000;
    let span = 23 * 3_600_000;
    now = Now::new(end - span, Minter::above(0), now.random_bytes());
    let mut transfers = Vec::with_capacity(count);
    let mut addresses = Addresses::default();
    let mut key_segments = KeySegments::load(&mut SqliteTx::new(&connection), KEYS_IN_SEGMENT_MAX)
        .expect("the segments of the keys");
    while transfers.len() < count {
        let mut tx = SqliteTx::new(&connection);
        tx.run("BEGIN IMMEDIATE").expect("a transaction");
        key_segments.refresh(&mut tx).expect("the segments of the keys");
        tx.lend_key_segments(&mut key_segments);
        for index in transfers.len()..count.min(transfers.len() + FILLED_AT_ONCE) {
            now.advance_to(end - span + (index as f64 / count as f64 * span as f64) as i64);
            let address = addresses.take(&mut now);
            transfers.push(
                fill_one(&mut tx, &mut now, template, endpoints, index, address)
                    .expect("a transfer to fill with"),
            );
        }
        close_full(&mut tx);
        tx.run("COMMIT").expect("a commit");
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    Filling { transfers }
}

fn fill_one(
    tx: &mut dyn Tx,
    now: &mut Now,
    template: &Template,
    endpoints: &[Id<kind::WebhookEndpoint>],
    index: usize,
    address: TronAddress,
) -> Result<Id<kind::Transfer>, StoreError> {
    let lock = template.quote_lock(now);
    quote_locks::rows::insert(tx, &lock)?;
    let id = template.create(tx, now, index, &lock, address)?;
    let event = EventRow {
        id: now.mint(),
        event_type: TransferStatus::Funding.event_type().to_owned(),
        linked: id.any(),
        created: now.business(),
    };
    events::rows::insert_all(tx, &[(template.scope, event.clone())])?;
    if !endpoints.is_empty() {
        let delivery = Delivery {
            endpoint_id: endpoints[index % endpoints.len()],
            id: now.mint(),
            event_id: event.id,
            status: DeliveryStatus::Succeeded,
            schedule_start_milliseconds: now.instant_milliseconds(),
            step: 0,
            attempts_count: 1,
            due_milliseconds: None,
            created: now.business(),
        };
        hundi::webhooks::rows::deliveries_insert(tx, std::slice::from_ref(&delivery))?;
        let attempt = AttemptRow {
            number: 1,
            attempted_at: now.instant(),
            http_status: Some(200),
            duration_milliseconds: 2,
            error: None,
            answer: String::new(),
        };
        let attempts = [(delivery.id, attempt)];
        hundi::webhooks::rows::attempts_insert(tx, delivery.endpoint_id, &attempts)?;
    }
    Ok(id)
}

/// Emits events beside a service or without one; their deliveries are written in the same commits.
pub async fn emit_events(store: &Store, scope: Scope, event_type: &'static str, count: usize) {
    const EMITTED_AT_ONCE: usize = 2_000;
    let mut left = count;
    while left > 0 {
        let emitted = left.min(EMITTED_AT_ONCE);
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            for _ in 0..emitted {
                let linked: Id<kind::Transfer> = now.mint();
                events::emit(
                    tx,
                    now,
                    scope,
                    event_type,
                    AnyId { kind: ObjectKind::Transfer, value: linked.as_u128() },
                )?;
            }
            Ok(())
        };
        store.write(work).await.expect("events are emitted");
        left -= emitted;
    }
}

/// Bytes of the largest tables with their indexes, for each of `count` transfers.
pub fn bytes_by_table(path: &Path, count: usize) -> String {
    let connection = sqlite::open_reader(path).expect("the database to look into");
    let sql = "SELECT m.tbl_name, SUM(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = \
     s.name WHERE s.aggregate = 1 \
               GROUP BY m.tbl_name HAVING SUM(s.pgsize) > 65536 ORDER BY 2 DESC";
    let mut statement = connection.prepare(sql).expect("the sizes of tables");
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))
        .expect("the sizes of tables");
    rows.filter_map(Result::ok)
        .map(|(table, bytes)| format!("{table} {}", bytes / count.max(1) as i64))
        .collect::<Vec<_>>()
        .join(", ")
}
