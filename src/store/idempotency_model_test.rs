//! Tests that each idempotency key has one effect. Random histories of requests, faults, purges and
//! restarts run on the store, and their answers are compared with a plain map.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use futures_util::future::join_all;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::handle::{Cost, no_epilogue};
use super::idempotency::{self, Answer, AnswerSealer, Claim, ClaimOutcome};
use super::key_filter::KeyFilter;
use super::key_segments::KeySegments;
use super::{Store, Tx, migrate, sqlite};
use crate::kernel::id::{Minter, kind};
use crate::kernel::{Clock, Code, Now, OperationError, Refusal, StoreError};
use crate::values;

const KEYS_IN_SEGMENT: usize = 8;
const START_MILLISECONDS: i64 = 1_764_000_000_000;
const HOUR_MILLISECONDS: i64 = 3_600_000;

/// What a request does when it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Done,
    Refused,
    /// The request fails after it wrote, and what it wrote is undone.
    Broken,
    Panics,
    /// Everything in its group is undone before the commit.
    Unavailable,
    /// The commit itself fails. A segment that was full has been closed by then.
    FailsCommit,
}

#[derive(Clone, Debug)]
enum Step {
    /// Sent to one process at the same time, so that they may share a commit.
    Requests {
        process: usize,
        requests: Vec<(u8, How)>,
    },
    Advance {
        hours: i64,
    },
    Purge {
        rows_max: i64,
        is_undone: bool,
    },
    Restart {
        process: usize,
    },
    /// Half of the filters are removed or damaged, and the process starts again.
    LoseFilters {
        process: usize,
        is_damage: bool,
    },
    /// A fault that the tests must notice: every stored filter forgets one key.
    Forget,
}

/// Answers are not sealed here.
struct NoSeal;

impl AnswerSealer for NoSeal {
    fn seal(
        &self,
        _: &mut dyn Tx,
        _: &mut Now,
        _: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        Ok(plain.to_vec())
    }
    fn open(&self, _: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(sealed.to_vec())
    }
}

fn claim(key: u8) -> Claim {
    let fingerprint: [u8; 32] = Sha256::digest([key]).into();
    let mut key_hash = [0; 16];
    key_hash.copy_from_slice(&fingerprint[..16]);
    Claim { key_hash, fingerprint }
}

fn act(
    tx: &mut dyn Tx,
    now: &mut Now,
    (key, how): (u8, How),
    serial: i64,
) -> Result<ClaimOutcome, OperationError> {
    idempotency::run(tx, now, &claim(key), &NoSeal, &mut |tx, _| {
        tx.execute_one(
            "INSERT INTO effects (key, serial) VALUES (?1, ?2)",
            values![i64::from(key), serial],
        )?;
        match how {
            How::Done => {}
            How::Refused => {
                return Err(
                    Refusal::new(Code::ParameterValueInvalid, format!("{key} {serial}")).into()
                );
            }
            How::Broken => return Err(StoreError::Broken("planted".into()).into()),
            How::Panics => panic!("planted"),
            How::Unavailable => return Err(StoreError::Unavailable("planted".into()).into()),
            How::FailsCommit => {
                tx.execute_one("INSERT INTO children (parent) VALUES (?1)", values![serial])?
            }
        }
        Ok(Answer {
            http_status: 200,
            content_type: idempotency::JSON,
            body: format!("{key} {serial}").into_bytes(),
            holds_secret: false,
        })
    })
}

/// Two processes on one database, and what their answers and effects must be.
struct Services {
    folder: PathBuf,
    at: Arc<AtomicI64>,
    stores: Vec<Store>,
    answers: HashMap<u8, (i64, Answer)>,
    effects: Vec<(i64, i64)>,
    serial: i64,
    segments_closed: i64,
}

impl Services {
    fn database(&self) -> PathBuf {
        self.folder.join("keys.db")
    }

    fn open(&self) -> Store {
        Store::open_with_segments(
            &self.database(),
            Clock::Manual(self.at.clone()),
            no_epilogue,
            KEYS_IN_SEGMENT,
        )
        .unwrap()
    }

    async fn start() -> Services {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("hundi-keys-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let at = Arc::new(AtomicI64::new(START_MILLISECONDS));
        let mut services = Services {
            folder,
            at,
            stores: Vec::new(),
            answers: HashMap::new(),
            effects: Vec::new(),
            serial: 0,
            segments_closed: 0,
        };
        services.stores = vec![services.open(), services.open()];
        let tables = |tx: &mut dyn Tx, _: &mut Now| {
            tx.execute("CREATE TABLE effects (key BIGINT NOT NULL, serial BIGINT NOT NULL)", &[])?;
            tx.execute("CREATE TABLE parents (id BIGINT NOT NULL PRIMARY KEY)", &[])?;
            tx.execute(
                "CREATE TABLE children (parent BIGINT NOT NULL REFERENCES parents (id) \
             DEFERRABLE INITIALLY DEFERRED)",
                &[],
            )?;
            Ok(())
        };
        services.stores[0].write(tables).await.unwrap();
        services
    }

    fn seconds(&self) -> i64 {
        self.at.load(Ordering::SeqCst) / 1000
    }

    async fn count(&self, sql: &'static str) -> i64 {
        self.stores[0]
            .read(Cost::Point, move |tx| Ok(tx.row(sql, &[])?.unwrap().int()?))
            .await
            .unwrap()
    }

    /// Compares one answer with the map, and notes in the map what was committed.
    fn judge(
        &mut self,
        (key, how): (u8, How),
        serial: i64,
        is_alone: bool,
        found: Result<ClaimOutcome, OperationError>,
    ) -> Result<(), String> {
        let known = self.answers.get(&key).filter(|(completed_at, _)| {
            self.seconds() - completed_at < idempotency::ANSWER_KEPT_SECONDS
        });
        match (found, known) {
            (Ok(ClaimOutcome::Done(_)), Some(_)) => Err(format!("key {key} had a second effect")),
            (Ok(ClaimOutcome::Done(answer)), None) => {
                if how == How::Done {
                    self.effects.push((i64::from(key), serial));
                } else if how != How::Refused {
                    return Err(format!("{how:?} was answered"));
                }
                self.answers.insert(key, (self.seconds(), answer));
                Ok(())
            }
            (Ok(ClaimOutcome::Replayed(_)), None) => {
                Err(format!("key {key} was replayed though its time is over or nothing was kept"))
            }
            (Ok(ClaimOutcome::Replayed(answer)), Some((_, first))) if answer == *first => Ok(()),
            (Ok(ClaimOutcome::Replayed(_)), Some(_)) => {
                Err(format!("key {key} was replayed with another answer"))
            }
            // Another request of its group may have undone the whole group.
            (Err(OperationError::Store(_)), _)
                if !is_alone || (known.is_none() && !matches!(how, How::Done | How::Refused)) =>
            {
                Ok(())
            }
            (Err(failure), _) => Err(format!("key {key} failed: {failure:?}")),
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Requests { process, requests } => {
                let first = self.serial;
                self.serial += requests.len() as i64;
                let writes = requests.iter().zip(first..).map(|(request, serial)| {
                    let request = *request;
                    self.stores[*process].write(move |tx, now| act(tx, now, request, serial))
                });
                let found = join_all(writes).await;
                for ((request, serial), found) in requests.iter().zip(first..).zip(found) {
                    self.judge(*request, serial, requests.len() == 1, found)?;
                }
            }
            Step::Advance { hours } => {
                self.at.fetch_add(hours * HOUR_MILLISECONDS, Ordering::SeqCst);
            }
            Step::Purge { rows_max, is_undone } => {
                let (rows_max, is_undone) = (*rows_max, *is_undone);
                let purged = self.stores[0].write(move |tx, now| {
                    idempotency::purge(tx, now, rows_max)?;
                    if is_undone {
                        Err(StoreError::Broken("planted".into()).into())
                    } else {
                        Ok(())
                    }
                });
                if purged.await.is_ok() == is_undone {
                    return Err("a purge ended in the wrong way".into());
                }
            }
            Step::Restart { process } => {
                self.stores[*process].close().await;
                self.stores[*process] = self.open();
            }
            Step::LoseFilters { process, is_damage } => {
                let sql = if *is_damage {
                    "UPDATE idempotency_filters SET filter = SUBSTR(filter, 2) WHERE part % 2 = 0"
                } else {
                    "DELETE FROM idempotency_filters WHERE part % 2 = 0"
                };
                sqlite::open_writer(&self.database()).unwrap().execute(sql, []).unwrap();
                self.stores[*process].close().await;
                self.stores[*process] = self.open();
            }
            Step::Forget => {
                let connection = sqlite::open_writer(&self.database()).unwrap();
                let mut statement =
                    connection.prepare("SELECT part FROM idempotency_filters").unwrap();
                let segments: Vec<i64> = statement
                    .query_map([], |row| row.get(0))
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                for segment in segments {
                    let mut keys = connection
                        .prepare("SELECT key_hash FROM idempotency_keys WHERE part = ?1")
                        .unwrap();
                    let keys: Vec<[u8; 16]> = keys
                        .query_map([segment], |row| row.get(0))
                        .unwrap()
                        .map(Result::unwrap)
                        .collect();
                    let (filter, checksum) = KeyFilter::of(&keys[1..]).to_bytes(segment);
                    let sql =
                        "UPDATE idempotency_filters SET filter = ?2, checksum = ?3 WHERE part = ?1";
                    connection.execute(sql, (segment, filter, checksum)).unwrap();
                }
                self.stores = vec![self.open(), self.open()];
            }
        }
        self.segments_closed = self.segments_closed.max(
            self.count("SELECT CAST(COALESCE(MAX(part), 0) AS BIGINT) FROM idempotency_filters")
                .await,
        );
        Ok(())
    }

    /// After the steps: the effects are the expected ones, and a purge a day later leaves no key,
    /// and at most one filter.
    async fn end(&mut self) -> Result<(), String> {
        let found = self.stores[0].read(Cost::Scan, |tx| {
            let rows = tx.rows("SELECT key, serial FROM effects ORDER BY serial", &[])?;
            Ok(rows
                .into_iter()
                .map(|mut row| Ok((row.int()?, row.int()?)))
                .collect::<Result<Vec<_>, StoreError>>()?)
        });
        if found.await.unwrap() != self.effects {
            return Err("the effects in the store are not those that were answered".into());
        }
        if self
            .count(
                "SELECT COUNT(*) FROM (SELECT key_hash FROM idempotency_keys GROUP BY \
         key_hash HAVING COUNT(*) > 1) twice",
            )
            .await
            > 0
        {
            return Err("a key is in two segments".into());
        }
        self.step(&Step::Advance { hours: 25 }).await?;
        self.step(&Step::Purge { rows_max: 10_000, is_undone: false }).await?;
        let keys = self.count("SELECT COUNT(*) FROM idempotency_keys").await;
        let filters = self.count("SELECT COUNT(*) FROM idempotency_filters").await;
        if keys > 0 || filters > 1 {
            return Err(format!("{keys} keys and {filters} filters were left by the purge"));
        }
        Ok(())
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs a history. Answers the highest number of a closed segment, or what was wrong.
fn history(steps: &[Step]) -> Result<i64, String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut services = Services::start().await;
        for step in steps {
            services.step(step).await?;
        }
        services.end().await?;
        Ok(services.segments_closed)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        12 => Just(How::Done),
        3 => Just(How::Refused),
        1 => Just(How::Broken),
        1 => Just(How::Panics),
        1 => Just(How::Unavailable),
        2 => Just(How::FailsCommit),
    ];
    let requests = proptest::collection::vec((0..50_u8, how), 1..12);
    let step = prop_oneof![
        16 => (prop_oneof![4 => Just(0_usize), 1 => Just(1)], requests).prop_map(|(process,
            requests)| Step::Requests { process, requests }),
        3 => (1..14_i64).prop_map(|hours| Step::Advance { hours }),
        2 => (1..30_i64, any::<bool>()).prop_map(|(rows_max, is_undone)| Step::Purge { rows_max,
            is_undone }),
        1 => (0..2_usize).prop_map(|process| Step::Restart { process }),
        1 => (0..2_usize, any::<bool>()).prop_map(|(process,
            is_damage)| Step::LoseFilters { process, is_damage }),
    ];
    proptest::collection::vec(step, 20..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 400, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn a_key_has_one_effect_in_every_history(steps in steps()) {
        let outcome = history(&steps);
        prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    }
}

fn requests(process: usize, keys: std::ops::Range<u8>, how: How) -> impl Iterator<Item = Step> {
    keys.map(move |key| Step::Requests { process, requests: vec![(key, how)] })
}

/// Sends forty keys, which fill five segments, carries out the steps `between`, and sends all keys
/// to both processes again.
fn replayed_after(between: Vec<Step>) -> Result<i64, String> {
    let first = requests(0, 0..40, How::Done);
    let again = requests(1, 0..40, How::Done).chain(requests(0, 0..40, How::Done));
    history(&first.chain(between).chain(again).collect::<Vec<_>>())
}

#[test]
fn a_filter_that_forgets_a_key_is_noticed() {
    assert_eq!(replayed_after(vec![]), Ok(5));
    let noticed = replayed_after(vec![Step::Forget]).unwrap_err();
    assert!(noticed.contains("had a second effect"), "{noticed}");
}

#[test]
fn lost_and_damaged_filters_and_restarts_change_nothing() {
    for is_damage in [false, true] {
        let lost = Step::LoseFilters { process: 0, is_damage };
        let closed =
            replayed_after(vec![lost.clone(), Step::Restart { process: 1 }, lost]).unwrap();
        assert!((4..=5).contains(&closed), "{closed} segments");
    }
}

#[test]
fn a_segment_that_is_closed_in_a_commit_that_fails_stays_open() {
    let mut steps: Vec<Step> = requests(0, 0..7, How::Done).collect();
    // The eighth key would close the segment in the very commit that fails.
    steps.extend(requests(0, 7..8, How::FailsCommit));
    steps.extend(requests(1, 0..8, How::Done));
    steps.extend(requests(0, 0..40, How::Done));
    let closed = history(&steps).unwrap();
    assert!((3..=5).contains(&closed), "{closed} segments");
}

#[test]
fn a_segment_that_was_opened_again_is_read_again_by_the_other_process() {
    let mut steps: Vec<Step> = requests(0, 0..16, How::Done).collect();
    // The first process knows the filter of segment 2. That filter is lost, and the second process
    // adds a key to the segment and closes it again.
    steps.extend(requests(0, 0..1, How::Done));
    steps.push(Step::LoseFilters { process: 1, is_damage: false });
    steps.extend(requests(1, 20..21, How::Done));
    steps.extend(requests(0, 20..21, How::Done));
    assert_eq!(history(&steps), Ok(2));
}

#[test]
fn a_store_with_a_single_segment_keeps_every_key_there() {
    let mut segments = KeySegments::single();
    for key in 0..200 {
        assert_eq!(segments.segment_for_new_key(), 0);
        assert_eq!(segments.candidates(&claim(key).key_hash).collect::<Vec<_>>(), [0]);
        assert!(!segments.is_full());
    }
}

#[test]
fn a_transaction_that_was_not_given_the_segments_runs_nothing() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut tx = sqlite::SqliteTx::new(&connection);
    migrate::migrate(&mut tx).unwrap();
    let mut now = Now::new(START_MILLISECONDS, Minter::above(0), [7; 32]);
    let refused =
        idempotency::run(&mut tx, &mut now, &claim(1), &NoSeal, &mut |_, _| panic!("the work ran"));
    assert!(matches!(refused, Err(OperationError::Store(StoreError::Broken(_)))), "{refused:?}");
}

#[test]
fn identifiers_of_a_refused_request_do_not_count_as_minted() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut segments = KeySegments::single();
    let mut tx = sqlite::SqliteTx::new(&connection);
    migrate::migrate(&mut tx).unwrap();
    tx.lend_key_segments(&mut segments);
    tx.savepoint().unwrap();
    let mut now = Now::new(START_MILLISECONDS, Minter::above(0), [7; 32]);
    let mut first_minted = |key: u8, is_refused: bool| {
        let outcome = idempotency::run(&mut tx, &mut now, &claim(key), &NoSeal, &mut |_, now| {
            now.mint::<kind::Transfer>();
            if is_refused {
                return Err(Refusal::new(Code::ParameterValueInvalid, "no").into());
            }
            Ok(Answer {
                http_status: 200,
                content_type: idempotency::JSON,
                body: Vec::new(),
                holds_secret: false,
            })
        });
        assert!(matches!(outcome, Ok(ClaimOutcome::Done(_))), "{outcome:?}");
        now.first_minted_milliseconds()
    };
    // The second request is kept, and its identifier is the first that counts.
    assert_eq!(first_minted(1, true), None);
    assert_eq!(first_minted(2, false), Some(START_MILLISECONDS));
    assert_eq!(first_minted(3, true), Some(START_MILLISECONDS), "the second's still counts");
}

#[test]
fn keys_used_again_every_day_do_not_keep_old_segments() {
    let mut steps = Vec::new();
    for _ in 0..6 {
        steps.extend(requests(0, 0..20, How::Done));
        steps.push(Step::Advance { hours: 25 });
        steps.push(Step::Purge { rows_max: 7, is_undone: true });
        steps.push(Step::Purge { rows_max: 7, is_undone: false });
    }
    assert!(history(&steps).unwrap() >= 10);
}
