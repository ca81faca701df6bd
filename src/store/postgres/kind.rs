//! How transactions begin, by what they are for.

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Write,
    /// One view for all its statements.
    Read,
    /// The same, for work that takes long.
    Examine,
    /// Waits for other nodes' migrations.
    Migrate,
}

impl Kind {
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Kind::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Kind::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Kind::Examine => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                 SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = 0; \
                 SET LOCAL idle_in_transaction_session_timeout = 0"
            }
            Kind::Migrate => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '90s'; SET LOCAL \
                 statement_timeout = '100s'"
            }
        }
    }
}
