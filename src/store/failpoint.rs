//! Faults that a test plants, to show that it notices them or that the service withstands them.

use std::sync::OnceLock;

/// Whether the variable `HUNDI_TEST_FAULT`, a list with commas, names this fault. Always `false`
/// without debug assertions, as in release builds.
pub(crate) fn failpoint(fault: &str) -> bool {
    static PLANTED: OnceLock<String> = OnceLock::new();
    cfg!(debug_assertions)
        && PLANTED
            .get_or_init(|| std::env::var("HUNDI_TEST_FAULT").unwrap_or_default())
            .split(',')
            .any(|planted| planted == fault)
}
