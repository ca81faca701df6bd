//! Leases: which node does what only one node may do at a time.
//!
//! A lease ends by itself when its holder has not renewed it for a while, and each new holder gets
//! a higher token. A transaction that only the present holder may commit begins with
//! [`Lease::lock`]. That locks the lease's row, so that no other node takes the lease before the
//! commit.

use super::Tx;
use crate::kernel::{InternalId, Now, StoreError};
use crate::values;

/// How long a lease lasts after its last renewal.
pub const LEASE_MILLISECONDS: i64 = 6_000;
/// How far beyond `now + LEASE_MILLISECONDS` a stored end may lie. An end further ahead comes from
/// a clock that was wrong.
const AHEAD_MILLISECONDS_MAX: i64 = 30_000;
/// How often a holder renews its lease, and how often other nodes try to take it.
pub const HEARTBEAT_MILLISECONDS: u64 = 1_500;

/// A node's hold of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    name: &'static str,
    holder: [u8; 16],
    token: i64,
}

impl Lease {
    /// Takes a lease that nobody holds, that has ended, or whose end is impossibly far ahead.
    /// `None` if it is held, or another node takes it first.
    pub fn take(
        tx: &mut dyn Tx,
        now: &Now,
        name: &'static str,
        holder: [u8; 16],
    ) -> Result<Option<Lease>, StoreError> {
        let instant = now.instant_milliseconds();
        let ends = instant + LEASE_MILLISECONDS;
        let Some(mut row) =
            tx.row("SELECT token, ends_milliseconds FROM leases WHERE name = ?1", values![name])?
        else {
            let insert = "INSERT INTO leases (name, holder, token, ends_milliseconds) VALUES (?1, \
             ?2, 1, ?3) ON CONFLICT (name) DO NOTHING";
            let is_ours = tx.execute(insert, values![name, &holder, ends])? == 1;
            return Ok(is_ours.then_some(Lease { name, holder, token: 1 }));
        };
        let (token, present_end) = (row.int()?, row.int()?);
        if present_end > instant && present_end <= ends + AHEAD_MILLISECONDS_MAX {
            return Ok(None);
        }
        // Compares the end too: the holder may have renewed the lease since the read, which keeps
        // the token.
        let update = "UPDATE leases SET holder = ?3, token = token + 1, ends_milliseconds = ?4 \
             WHERE name = ?1 AND token = ?2 AND ends_milliseconds = ?5";
        let is_ours = tx.execute(update, values![name, token, &holder, ends, present_end])? == 1;
        Ok(is_ours.then_some(Lease { name, holder, token: token + 1 }))
    }

    /// Renews the lease; `false` if another node has taken it.
    pub fn renew(&self, tx: &mut dyn Tx, now: &Now) -> Result<bool, StoreError> {
        let update = "UPDATE leases SET ends_milliseconds = ?4 WHERE name = ?1 AND holder = ?2 \
         AND token = ?3";
        let ends = now.instant_milliseconds() + LEASE_MILLISECONDS;
        Ok(tx.execute(update, values![self.name, &self.holder, self.token, ends])? == 1)
    }

    /// Gives the lease back, so that the next holder does not have to wait.
    pub fn release(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let update = "UPDATE leases SET ends_milliseconds = 0 WHERE name = ?1 AND holder = ?2 AND \
         token = ?3";
        tx.execute(update, values![self.name, &self.holder, self.token]).map(|_| ())
    }

    /// Locks the lease's row for this transaction; [`StoreError::Unavailable`] if another node has
    /// taken the lease. Answers the last identifier that was stored with it. The identifiers that
    /// are minted next must be above that one.
    pub fn lock(&self, tx: &mut dyn Tx) -> Result<Option<InternalId>, StoreError> {
        let lock = "UPDATE leases SET ends_milliseconds = ends_milliseconds WHERE name = ?1 AND \
         holder = ?2 AND token = ?3 RETURNING last_id";
        match tx.row(lock, values![self.name, &self.holder, self.token])? {
            Some(mut row) => row.id_or_null(),
            None => Err(StoreError::Unavailable(format!(
                "another node holds the lease {:?} by now",
                self.name
            ))),
        }
    }

    /// Stores the highest identifier that was minted under the lease.
    pub fn keep_last_id(&self, tx: &mut dyn Tx, last_id: u128) -> Result<(), StoreError> {
        let update = "UPDATE leases SET last_id = ?3 WHERE name = ?1 AND token = ?2";
        tx.execute_one(update, values![self.name, self.token, &last_id.to_be_bytes()])
    }
}

/// The last identifier that any holder stored with a lease.
pub fn last_id(tx: &mut dyn Tx, name: &str) -> Result<Option<InternalId>, StoreError> {
    let found = tx.row("SELECT last_id FROM leases WHERE name = ?1", values![name])?;
    found.map_or(Ok(None), |mut row| row.id_or_null())
}

/// The names of the leases that are held at `now_milliseconds`, counted from 1970.
pub fn held(tx: &mut dyn Tx, now_milliseconds: i64) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM leases WHERE ends_milliseconds > ?1 ORDER BY name";
    tx.rows(sql, values![now_milliseconds])?.into_iter().map(|mut row| row.text()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::id::Minter;
    use crate::store::migrate;
    use crate::store::sqlite::SqliteTx;

    #[test]
    fn a_lease_has_one_holder_and_the_next_only_after_its_end() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let tx: &mut dyn Tx = &mut SqliteTx::new(&connection);
        migrate::migrate(tx).unwrap();
        let at = |milliseconds| Now::new(milliseconds, Minter::above(0), [1; 32]);
        let (first, second) = ([1; 16], [2; 16]);
        let held = Lease::take(tx, &at(0), "a", first).unwrap().unwrap();
        assert_eq!(Lease::take(tx, &at(1), "a", second).unwrap(), None);
        assert!(Lease::take(tx, &at(1), "b", second).unwrap().is_some(), "another lease");
        assert!(held.renew(tx, &at(3_000)).unwrap());
        assert_eq!(
            Lease::take(tx, &at(LEASE_MILLISECONDS), "a", second).unwrap(),
            None,
            "it was renewed"
        );
        assert_eq!(held.lock(tx).unwrap(), None);
        held.keep_last_id(tx, 77).unwrap();
        let next = Lease::take(tx, &at(3_000 + LEASE_MILLISECONDS), "a", second).unwrap().unwrap();
        assert!(
            next.token > held.token && next.lock(tx).unwrap().is_some_and(|id| id.as_u128() == 77)
        );
        // A holder that wakes up too late can change nothing.
        assert!(!held.renew(tx, &at(10_000)).unwrap());
        assert!(held.lock(tx).is_err() && held.keep_last_id(tx, 78).is_err());
        held.release(tx).unwrap();
        assert_eq!(Lease::take(tx, &at(10_000), "a", first).unwrap(), None);
        next.release(tx).unwrap();
        assert!(Lease::take(tx, &at(10_000), "a", first).unwrap().is_some(), "it was given back");
        // A clock was an hour ahead. A lease whose end lies only a little too far ahead stays held.
        let hour = 3_600_000;
        let ahead = Lease::take(tx, &at(hour), "c", first).unwrap().unwrap();
        assert_eq!(Lease::take(tx, &at(hour - AHEAD_MILLISECONDS_MAX), "c", second).unwrap(), None);
        assert!(
            Lease::take(tx, &at(hour - AHEAD_MILLISECONDS_MAX - 1), "c", second).unwrap().is_some()
        );
        assert!(ahead.lock(tx).is_err() && !ahead.renew(tx, &at(hour)).unwrap());
    }
}
