//! How transactions begin, by what they are for.

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransactionKind {
    Write,
    /// One snapshot for all its statements.
    Read,
    /// One snapshot for all its statements, for work that takes long.
    Examine,
    /// Changes the schema, and waits while other nodes change it.
    Migrate,
}

impl TransactionKind {
    pub(super) const fn begin(self) -> &'static str {
        match self {
            TransactionKind::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
            TransactionKind::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            TransactionKind::Examine => {
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                 SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = 0; \
                 SET LOCAL idle_in_transaction_session_timeout = 0"
            }
            TransactionKind::Migrate => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '90s'; SET LOCAL \
                 statement_timeout = '100s'"
            }
        }
    }
}
