//! The identifier below which no new object can appear any more.
//!
//! Two transactions can commit in another order than that of their identifiers. A caller that
//! pages a list from its last identifier would then never see an object that becomes visible later
//! with a lower identifier. So a page in rising order ends before the first identifier that a
//! running transaction may still use:
//!
//! - A transaction that mints identifiers takes an advisory lock with its first statement
//!   ([`ANNOUNCE_WRITER`]). The lock's key is the database's time before the lock is taken. The
//!   same statement answers the time afterwards, and the times in the transaction's identifiers are
//!   not before that.
//! - A reader lists these locks ([`RUNNING`]) and then takes its snapshot. For a transaction that
//!   the snapshot does not show, there are two cases. If its lock was in the list, the lock's key
//!   bounds its identifiers. If it had no lock yet when the reader looked, its identifiers are not
//!   below the time of that look.
//!
//! Every role can see locks. A lock lasts until its transaction is visible, also while the commit
//! waits for a standby. Readers, backups and other programs hold none of these locks.

use std::sync::{Mutex, PoisonError};

use crate::kernel::InternalId;

/// Announces a writing transaction. Its second column is the database's time afterwards, in
/// milliseconds since 1970. The key has two numbers: `LOCK_CLASS`, and the time before modulo 2^32,
/// less 2^31 so that it fits an INTEGER.
pub(super) const ANNOUNCE_WRITER: &str = "SELECT pg_advisory_xact_lock_shared(1752525412, \
    CAST(CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT) % 4294967296 - \
    2147483648 AS INTEGER)), CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)";

/// Answers a row for each announced transaction: the database's time before it looks, in
/// milliseconds since 1970, and the second number of the transaction's key. If no transaction is
/// announced, it answers one row with NULL as the number.
pub(super) const RUNNING: &str = "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * \
    1000) AS BIGINT), CAST(l.objid AS BIGINT) FROM (SELECT 1) AS one LEFT JOIN pg_locks l ON \
    l.locktype = 'advisory' AND l.classid = 1752525412 AND l.objsubid = 2 AND l.database = \
    (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The first number of the key of these advisory locks. It is made up, so that the keys of other
/// programs' locks differ.
#[cfg(test)]
const LOCK_CLASS: i64 = 1_752_525_412;
/// The keys hold times modulo this.
const KEY_MODULUS: i64 = 1 << 32;

/// An identifier can be a little ahead of the database's clock: it was minted in the millisecond
/// that the clock shows, or by a node that computed a time slightly ahead. If the last identifier
/// of a page is at most this far ahead, the page waits until the clock has passed that identifier.
/// The page does not wait if a transaction still runs that was announced in an earlier millisecond
/// than the clock shows.
pub(super) const WAIT_MILLISECONDS_MAX: i64 = 50;

/// The latest time at which a transaction can have been announced, from the second number of its
/// key as an `oid`. Both times are milliseconds since 1970.
pub(super) fn announced_milliseconds_of(objid: i64, look_milliseconds: i64) -> i64 {
    let key = (objid + KEY_MODULUS / 2) % KEY_MODULUS;
    look_milliseconds - (look_milliseconds - key).rem_euclid(KEY_MODULUS)
}

/// The lowest identifier of a millisecond.
pub(super) const fn first_id(milliseconds: i64) -> u128 {
    InternalId::lowest_at(milliseconds).as_u128()
}

/// The highest floor that a node has found. It is valid for every snapshot that is taken later.
#[derive(Default)]
pub(super) struct IdFloor(Mutex<u128>);

impl IdFloor {
    pub(super) fn get(&self) -> u128 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn raise(&self, floor: u128) {
        let mut highest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *highest = floor.max(*highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_its_time() {
        assert!(ANNOUNCE_WRITER.contains(&format!("({LOCK_CLASS}, ")));
        assert!(RUNNING.contains(&format!("classid = {LOCK_CLASS} ")));
        for look_milliseconds in [1_795_340_000_000_i64, KEY_MODULUS * 400, KEY_MODULUS * 400 - 1] {
            for age in [0, 1, 7_000, KEY_MODULUS - 1] {
                let announced = look_milliseconds - age;
                let number = i32::try_from(announced % KEY_MODULUS - KEY_MODULUS / 2).unwrap();
                let objid = i64::from(number as u32);
                assert_eq!(announced_milliseconds_of(objid, look_milliseconds), announced);
            }
        }
    }
}
