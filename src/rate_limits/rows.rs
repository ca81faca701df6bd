//! The rows of rate limits that several nodes share.

use super::Bucket;
use crate::kernel::id::kind;
use crate::kernel::{Id, StoreError};
use crate::store::Tx;
use crate::values;

/// Takes up to `wanted` tokens. Answers how many it took, how many are left, and the milliseconds
/// until the next token if it took none, else 0.
pub fn take(
    tx: &mut dyn Tx,
    now_milliseconds: i64,
    (key, is_write): (Id<kind::ApiKey>, bool),
    rate: u32,
    wanted: i64,
) -> Result<(i64, i64, i64), StoreError> {
    let sql = "SELECT tokens_milli, filled_milliseconds FROM rate_limits WHERE key_id = ?1 AND \
     is_write = ?2";
    let old = match tx.row(sql, values![key, is_write])? {
        Some(mut row) => {
            Some(Bucket { tokens_milli: row.int()?, filled_at_milliseconds: row.int()? })
        }
        None => None,
    };
    let mut bucket = old.unwrap_or_else(|| Bucket::full(rate, now_milliseconds));
    let (taken, wait_milliseconds) = bucket.take_up_to(rate, now_milliseconds, wanted);
    let Bucket { tokens_milli, filled_at_milliseconds } = bucket;
    match old {
        None => tx.execute_one(
            "INSERT INTO rate_limits (key_id, is_write, tokens_milli, filled_milliseconds) VALUES \
             (?1, ?2, ?3, ?4)",
            values![key, is_write, tokens_milli, filled_at_milliseconds],
        )?,
        Some(old) => tx.execute_one(
            "UPDATE rate_limits SET tokens_milli = ?3, filled_milliseconds = ?4 \
             WHERE key_id = ?1 AND is_write = ?2 AND tokens_milli = ?5 AND filled_milliseconds = \
             ?6",
            values![
                key,
                is_write,
                tokens_milli,
                filled_at_milliseconds,
                old.tokens_milli,
                old.filled_at_milliseconds
            ],
        )?,
    }
    Ok((taken, tokens_milli / 1000, wait_milliseconds))
}
