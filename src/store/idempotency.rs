//! The idempotent transaction: claim, effect and stored answer commit together, so a crash leaves
//! no stuck key.

use super::{Tx, Value, key_segments, pack};
use crate::kernel::{Clock, Code, InternalId, Now, OperationError, Refusal, StoreError};
use crate::values;

/// How long an answer is replayed after its completion, by the store's clock. After that clock was
/// put forward, answers are kept longer (`Now::answers_longer_seconds`).
pub const ANSWER_KEPT_SECONDS: i64 = 24 * 3600;

const fn kept_seconds(now: &Now) -> i64 {
    ANSWER_KEPT_SECONDS + now.answers_longer_seconds
}

/// How a stored body is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyForm {
    /// Packed by [`pack`].
    Packed,
    /// The answer shows a webhook secret, so it is encrypted at rest.
    Sealed,
}

impl BodyForm {
    const fn code(self) -> i64 {
        match self {
            BodyForm::Packed => 1,
            BodyForm::Sealed => 2,
        }
    }
    fn from_code(code: i64) -> Result<BodyForm, StoreError> {
        match code {
            1 => Ok(BodyForm::Packed),
            2 => Ok(BodyForm::Sealed),
            _ => Err(StoreError::Broken("a stored answer has an unknown form".into())),
        }
    }
}

/// A response. That of a POST is stored with the request's effects and replayed for the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub http_status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    pub holds_secret: bool,
}

pub const JSON: &str = "application/json";
pub const PDF: &str = "application/pdf";
pub const CSV: &str = "text/csv; charset=utf-8";

impl Answer {
    pub fn refused(refusal: &Refusal) -> Answer {
        Answer {
            http_status: refusal.http_status(),
            content_type: JSON,
            body: refusal.body(),
            holds_secret: false,
        }
    }
}

/// A request's claim on its idempotency key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Keyed hash of API key and idempotency key.
    pub key_hash: [u8; 16],
    /// Keyed hash of method, path, query and canonical body.
    pub fingerprint: [u8; 32],
}

/// What became of a claim.
#[derive(Debug)]
pub enum ClaimOutcome {
    /// The work ran now; this is its answer, or its refusal if refusals of that kind are stored.
    Done(Answer),
    /// The stored answer of the first request.
    Replayed(Answer),
}

/// Seals and opens stored answers.
pub trait AnswerSealer {
    fn seal(
        &self,
        tx: &mut dyn Tx,
        now: &mut Now,
        answer_id: &[u8],
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError>;
    fn open(&self, answer_id: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError>;
}

/// Runs `work` once for its key. The first time, its answer is stored together with its effects;
/// later the answer is replayed. A refusal undoes the effects. A refusal with a 4xx status other
/// than 409 and 429 (`Refusal::is_kept`) is stored too. Any other refusal, and a fault of the
/// store, stores nothing and frees the key.
pub fn run(
    tx: &mut dyn Tx,
    now: &mut Now,
    claim: &Claim,
    seal: &dyn AnswerSealer,
    work: &mut dyn FnMut(&mut dyn Tx, &mut Now) -> Result<Answer, OperationError>,
) -> Result<ClaimOutcome, OperationError> {
    let first_minted_milliseconds = now.first_minted_milliseconds();
    let slot = match claim_slot(tx, now, claim, seal)? {
        Claiming::Answered(answer) => return Ok(ClaimOutcome::Replayed(answer)),
        Claiming::Slot(slot) => slot,
    };
    let answer = match work(tx, now) {
        Ok(answer) => {
            return store(tx, now, claim, seal, &answer, slot)
                .map(|()| ClaimOutcome::Done(answer))
                .map_err(OperationError::from);
        }
        Err(OperationError::Refused(refusal)) if refusal.is_kept() => Answer::refused(&refusal),
        Err(failure) => return Err(failure),
    };
    // Undo all that was written so far. If that undoes the claim too, another request may claim the
    // key before this one claims it again.
    tx.rollback_to()?;
    // The identifiers that the undone part minted are in no row, so they do not count. On
    // PostgreSQL, the transaction may have begun again and announced itself anew
    // (`postgres/id_floor.rs`). The lane would run it once more because of identifiers from before
    // that announcement.
    now.undo_minting(first_minted_milliseconds);
    let slot = match slot {
        Slot::Claimed(_) => match claim_slot(tx, now, claim, seal)? {
            Claiming::Answered(answer) => return Ok(ClaimOutcome::Replayed(answer)),
            Claiming::Slot(slot) => slot,
        },
        free => free,
    };
    store(tx, now, claim, seal, &answer, slot)?;
    Ok(ClaimOutcome::Done(answer))
}

/// Where the answer goes.
enum Slot {
    /// Nothing is stored for the key, or only an expired answer: then the key is still in
    /// `expired_segment`.
    Free { expired_segment: Option<i64> },
    /// The key's row was written with the identifier of the answer to come, so that other
    /// transactions wait for the row.
    Claimed(InternalId),
}

/// What [`claim_slot`] found.
enum Claiming {
    Answered(Answer),
    Slot(Slot),
}

fn claim_slot(
    tx: &mut dyn Tx,
    now: &mut Now,
    claim: &Claim,
    seal: &dyn AnswerSealer,
) -> Result<Claiming, OperationError> {
    if tx.is_shared() {
        return claim_first(tx, now, claim, seal);
    }
    Ok(match find(tx, now, claim, seal)? {
        FoundKey::Answer(answer) => Claiming::Answered(answer),
        FoundKey::Expired { segment, .. } => {
            Claiming::Slot(Slot::Free { expired_segment: Some(segment) })
        }
        FoundKey::Nothing => Claiming::Slot(Slot::Free { expired_segment: None }),
    })
}

/// Claims a key on PostgreSQL: the key's row is written first. A second request with the same key
/// waits for that row for `postgres::LOCK_SECONDS_MAX`, and is refused if the first one still runs
/// then.
fn claim_first(
    tx: &mut dyn Tx,
    now: &mut Now,
    claim: &Claim,
    seal: &dyn AnswerSealer,
) -> Result<Claiming, OperationError> {
    let answer_id: InternalId = now.mint();
    let segment = tx.key_segments()?.segment_for_new_key();
    let insert = "INSERT INTO idempotency_keys (part, key_hash, answer_id) VALUES (?1, ?2, ?3) ON \
     CONFLICT (part, key_hash) DO NOTHING";
    let inserted =
        tx.execute(insert, values![segment, &claim.key_hash, answer_id]).map_err(refuse_locked)?;
    if inserted == 1 {
        return Ok(Claiming::Slot(Slot::Claimed(answer_id)));
    }
    match find(tx, now, claim, seal)? {
        FoundKey::Answer(answer) => {
            // The first request may have given up the wait for a synchronous standby. Its answer
            // must not be replayed before the standby has its commit. Locking the row writes to
            // the log, so the commit of this transaction waits for the standby too.
            let lock = "SELECT part FROM idempotency_keys WHERE part = ?1 AND key_hash = ?2 FOR \
             SHARE";
            tx.rows(lock, values![segment, &claim.key_hash]).map_err(refuse_locked)?;
            Ok(Claiming::Answered(answer))
        }
        FoundKey::Expired { segment, answer_id: expired } => {
            let renew = "UPDATE idempotency_keys SET answer_id = ?3 WHERE part = ?1 AND key_hash \
             = ?2 AND answer_id = ?4";
            match tx
                .execute(renew, values![segment, &claim.key_hash, answer_id, &expired])
                .map_err(refuse_locked)?
            {
                1 => Ok(Claiming::Slot(Slot::Claimed(answer_id))),
                _ => Err(StoreError::Conflict("an idempotency key was used again").into()),
            }
        }
        FoundKey::Nothing => Err(StoreError::Conflict("an idempotency key was freed").into()),
    }
}

/// Turns [`StoreError::Locked`] into a refusal: the first request with the key still runs.
fn refuse_locked(error: StoreError) -> OperationError {
    match error {
        StoreError::Locked => still_running().into(),
        error => error.into(),
    }
}

/// The answer to a second request while the first with its key runs.
pub fn still_running() -> Refusal {
    let mut refusal = Refusal::new(
        Code::ResourceLocked,
        "The first request with this idempotency key is still running. Retry with the same key.",
    );
    refusal.retry_after_seconds = Some(1);
    refusal
}

/// Looks for a key in one segment after another, each by the primary key. Without the list of
/// segments, SQLite would read the whole table. `CROSS JOIN` makes it begin with the list.
const KEY_SQL: &str = "WITH RECURSIVE segments (part) AS (SELECT MIN(part) FROM idempotency_keys \
    UNION ALL SELECT (SELECT MIN(n.part) FROM idempotency_keys n WHERE n.part > segments.part) \
    FROM segments WHERE segments.part IS NOT NULL) SELECT k.answer_id FROM segments CROSS JOIN \
    idempotency_keys k WHERE k.part = segments.part AND k.key_hash = ?1";
const KEY_IN_SEGMENT_SQL: &str =
    "SELECT answer_id FROM idempotency_keys WHERE part = ?1 AND key_hash = ?2";

/// Answers that were completed after this instant, in Unix seconds, are still replayed. For work
/// that has no [`Now`].
pub fn replayed_after(clock: &Clock) -> i64 {
    clock.milliseconds() / 1000 - clock.answers_longer_seconds() - ANSWER_KEPT_SECONDS
}

/// Whether a claim's key has a stored answer, of this request or of another one. If so, the request
/// is not carried out. Only answers that were completed after `answers_after` count; see
/// [`replayed_after`].
pub fn is_answered(tx: &mut dyn Tx, answers_after: i64, claim: &Claim) -> Result<bool, StoreError> {
    let key = if tx.is_shared() {
        tx.row(KEY_IN_SEGMENT_SQL, values![key_segments::SINGLE_SEGMENT, &claim.key_hash])?
    } else {
        tx.row(KEY_SQL, values![&claim.key_hash])?
    };
    let Some(mut key) = key else { return Ok(false) };
    let sql = "SELECT completed_at FROM idempotency_answers WHERE answer_id = ?1";
    let row = tx.row(sql, values![&key.bytes()?])?;
    row.map_or(Ok(false), |mut row| Ok(row.int()? > answers_after))
}

enum FoundKey {
    Nothing,
    /// The key is in this segment, and its answer is expired or gone.
    Expired {
        segment: i64,
        answer_id: Vec<u8>,
    },
    Answer(Answer),
}

fn find(
    tx: &mut dyn Tx,
    now: &Now,
    claim: &Claim,
    seal: &dyn AnswerSealer,
) -> Result<FoundKey, OperationError> {
    let candidates: Vec<i64> = tx.key_segments()?.candidates(&claim.key_hash).collect();
    let mut found = None;
    for segment in candidates {
        if let Some(mut key) = tx.row(KEY_IN_SEGMENT_SQL, values![segment, &claim.key_hash])? {
            found = Some((segment, key.bytes()?));
            break;
        }
    }
    let Some((segment, answer_id)) = found else { return Ok(FoundKey::Nothing) };
    let row = tx.row(
        "SELECT fingerprint, completed_at, http_status, form, body FROM idempotency_answers WHERE \
         answer_id = ?1",
        values![&answer_id],
    )?;
    let Some(mut row) = row else { return Ok(FoundKey::Expired { segment, answer_id }) };
    let fingerprint = row.bytes()?;
    let completed_at = row.int()?;
    if now.instant() - completed_at >= kept_seconds(now) {
        return Ok(FoundKey::Expired { segment, answer_id });
    }
    if !bool::from(subtle::ConstantTimeEq::ct_eq(
        fingerprint.as_slice(),
        claim.fingerprint.as_slice(),
    )) {
        return Err(Refusal::new(
            Code::IdempotencyKeyReuse,
            "This idempotency key was used for another request: another path or another body. Send \
             this request with a new key; to repeat the first request, send exactly what was sent \
             then.",
        )
        .into());
    }
    let http_status = u16::try_from(row.int()?)
        .map_err(|_| StoreError::Broken("a stored status cannot be read".into()))?;
    let form = BodyForm::from_code(row.int()?)?;
    let stored = row.bytes()?;
    let body = match form {
        BodyForm::Packed => pack::unpack(&stored)?,
        BodyForm::Sealed => seal.open(&answer_id, &stored)?,
    };
    Ok(FoundKey::Answer(Answer {
        http_status,
        content_type: JSON,
        body,
        holds_secret: form == BodyForm::Sealed,
    }))
}

fn store(
    tx: &mut dyn Tx,
    now: &mut Now,
    claim: &Claim,
    seal: &dyn AnswerSealer,
    answer: &Answer,
    slot: Slot,
) -> Result<(), StoreError> {
    let answer_id = match slot {
        Slot::Claimed(answer_id) => answer_id,
        Slot::Free { .. } => now.mint(),
    };
    let (form, body) = if answer.holds_secret {
        (BodyForm::Sealed, seal.seal(tx, now, &answer_id.to_bytes(), &answer.body)?)
    } else {
        (BodyForm::Packed, pack::pack(&answer.body))
    };
    if let Slot::Free { expired_segment } = slot {
        if let Some(segment) = expired_segment {
            // The key moves to the newest segment, so that an old segment has no keys left a day
            // after it was closed.
            tx.execute_one(
                "DELETE FROM idempotency_keys WHERE part = ?1 AND key_hash = ?2",
                values![segment, &claim.key_hash],
            )?;
        }
        let segment = tx.key_segments()?.segment_for_new_key();
        tx.execute_one(
            "INSERT INTO idempotency_keys (part, key_hash, answer_id) VALUES (?1, ?2, ?3)",
            values![segment, &claim.key_hash, answer_id],
        )?;
    }
    tx.execute_one(
        "INSERT INTO idempotency_answers (answer_id, key_hash, fingerprint, completed_at, \
         http_status, form, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        values![
            answer_id,
            &claim.key_hash,
            &claim.fingerprint,
            now.instant(),
            i64::from(answer.http_status),
            form.code(),
            &body
        ],
    )
}

/// [`purge`] where all keys are in one segment (`part = 0`). It sends few statements, not two for
/// each row, and each finds its rows by a primary key.
fn purge_shared(tx: &mut dyn Tx, bound: &[u8; 16], rows_max: i64) -> Result<u64, StoreError> {
    let old = tx.rows(
        "SELECT answer_id, key_hash FROM idempotency_answers WHERE answer_id < ?1 ORDER BY \
         answer_id LIMIT ?2",
        values![bound, rows_max],
    )?;
    let old: Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> =
        old.into_iter().map(|mut row| Ok((row.bytes()?, row.bytes()?))).collect();
    let old = old?;
    let Some((last, _)) = old.last() else { return Ok(0) };
    for rows in super::at_once(&old) {
        // A key that was used again has a later answer, and stays.
        let hashes: Vec<String> = (0..rows.len()).map(|index| format!("?{}", index + 2)).collect();
        let sql = format!(
            "DELETE FROM idempotency_keys WHERE part = 0 AND answer_id <= ?1 AND key_hash IN ({})",
            hashes.join(", ")
        );
        let values: Vec<Value<'_>> = std::iter::once(last)
            .chain(rows.iter().map(|(_, hash)| hash))
            .map(Value::from)
            .collect();
        tx.execute(&sql, &values)?;
    }
    tx.execute("DELETE FROM idempotency_answers WHERE answer_id <= ?1", values![last])
}

/// Removes up to `rows_max` expired answers and returns how many it removed.
pub fn purge(tx: &mut dyn Tx, now: &Now, rows_max: i64) -> Result<u64, StoreError> {
    let bound = InternalId::lowest_at((now.instant() - kept_seconds(now)) * 1000).to_bytes();
    if tx.is_shared() {
        return purge_shared(tx, &bound, rows_max);
    }
    let old = tx.rows(
        "SELECT answer_id, key_hash FROM idempotency_answers WHERE answer_id < ?1 ORDER BY \
         answer_id LIMIT ?2",
        values![&bound, rows_max],
    )?;
    let count = old.len() as u64;
    for mut row in old {
        let (answer_id, key_hash) = (row.bytes()?, row.array::<16>()?);
        let candidates: Vec<i64> = tx.key_segments()?.candidates(&key_hash).collect();
        // The oldest segment first, because an expired key is old. If the key was used again, its
        // row names another answer, and stays.
        for segment in candidates.into_iter().rev() {
            let sql =
                "DELETE FROM idempotency_keys WHERE part = ?1 AND key_hash = ?2 AND answer_id = ?3";
            if tx.execute(sql, values![segment, &key_hash, &answer_id])? > 0 {
                break;
            }
        }
        tx.execute("DELETE FROM idempotency_answers WHERE answer_id = ?1", values![&answer_id])?;
    }
    key_segments::purge(tx)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::migrate::migrate;
    use crate::store::sqlite::SqliteTx;

    #[test]
    fn a_key_is_looked_for_by_the_primary_key() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        migrate(&mut SqliteTx::new(&connection)).unwrap();
        let plan_of = |sql: &str| -> String {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let lines = plan.query_map([[0; 16]], |row| row.get::<_, String>(3)).unwrap();
            lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
        };
        let reads_all = |plan: &str| plan.lines().any(|line| line.trim() == "SCAN k");
        let plan = plan_of(KEY_SQL);
        assert!(plan.contains("SEARCH k USING PRIMARY KEY (part=? AND key_hash=?)"), "{plan}");
        assert!(!reads_all(&plan), "{plan}");
        // Without the segment, SQLite reads all keys.
        let plan = plan_of("SELECT k.answer_id FROM idempotency_keys k WHERE k.key_hash = ?1");
        assert!(reads_all(&plan), "{plan}");
    }
}
