//! On the embedded store a report (an expensive read) pauses again and again, so that requests find
//! a free processor.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::sqlite::store_error;
use crate::kernel::StoreError;

/// How long a report works before it rests. Without rests, each step of a request could wait for as
/// long as the operating system lets the report keep a processor.
const REPORT_WORK: Duration = Duration::from_micros(300);
/// A rest is this many times as long as [`REPORT_WORK`].
const REST_TO_WORK_RATIO: u32 = 2;
/// After this many instructions of SQLite's virtual machine, it is checked whether a rest is due.
const REPORT_INSTRUCTIONS: i32 = 500;

/// Makes a connection call `rest` again and again while it reads; `None` ends that.
pub fn rest_while_reading(
    connection: &mut Connection,
    rest: Option<fn(Duration)>,
) -> Result<(), StoreError> {
    let mut worked_since = Instant::now();
    let handler = rest.map(|rest| {
        move || {
            if worked_since.elapsed() >= REPORT_WORK {
                rest(REPORT_WORK * REST_TO_WORK_RATIO);
                worked_since = Instant::now();
            }
            // `true` would abort the read.
            false
        }
    });
    connection.progress_handler(REPORT_INSTRUCTIONS, handler).map_err(store_error)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_report_rests_while_it_reads_and_nothing_else_does() {
        static RESTS: AtomicUsize = AtomicUsize::new(0);
        let count = |_: Duration| {
            RESTS.fetch_add(1, Ordering::Relaxed);
        };
        let mut connection = Connection::open_in_memory().unwrap();
        let mut rests_of = |rest| {
            RESTS.store(0, Ordering::Relaxed);
            rest_while_reading(&mut connection, rest).unwrap();
            let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \
                       300000) SELECT COUNT(*) FROM n";
            let counted: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(counted, 300_000);
            RESTS.load(Ordering::Relaxed)
        };
        assert!(rests_of(Some(count)) > 1, "the query works long enough for several rests");
        assert_eq!(rests_of(None), 0, "the same connection without rests");
    }
}
