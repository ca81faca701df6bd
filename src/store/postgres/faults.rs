//! What errors of the driver and of the server mean for a connection and for its caller.

use tokio_postgres::error::SqlState;

use crate::kernel::StoreError;

/// The error of a connection whose back end other sessions share.
pub(super) const POOLER: &str = "a connection pooler between hundi and PostgreSQL gives out \
    connections by transaction, and hundi needs its own: connect to PostgreSQL itself, or set the \
    pooler to session mode (PgBouncer: pool_mode = session) with at least \
    HUNDI_DATABASE_CONNECTIONS + 2 connections for each node";

/// Why an exchange with the server failed.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The server answered, and the connection is still good.
    Answered(StoreError),
    /// The connection is of no more use, and it is not known what the server did with the last
    /// message.
    Lost(String),
}

impl SessionError {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            SessionError::Answered(error) => error,
            SessionError::Lost(reason) => StoreError::Unavailable(reason),
        }
    }
}

/// Why a commit is not known to have taken place.
#[derive(Debug)]
pub(super) enum CommitError {
    /// Nothing was kept.
    Refused(StoreError),
    /// The connection was lost during the commit, or the commit does not count as done
    /// (`PgSession::acknowledge`).
    Unknown(String),
}

impl CommitError {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            CommitError::Refused(error) => error,
            CommitError::Unknown(reason) => StoreError::Unavailable(format!(
                "whether a commit took place is not known: {reason}"
            )),
        }
    }
}

impl From<SessionError> for CommitError {
    fn from(fault: SessionError) -> CommitError {
        match fault {
            SessionError::Answered(error) => CommitError::Refused(error),
            SessionError::Lost(reason) => CommitError::Unknown(reason),
        }
    }
}

/// What an error means on a connection that was made.
pub(super) fn fault(error: &tokio_postgres::Error) -> SessionError {
    let Some(answered) = error.as_db_error() else {
        // An error of the driver itself. Its cause, if there is one, says more. None of these texts
        // shows the value of a parameter.
        let reason =
            std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        return if error.is_closed()
            || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
        {
            SessionError::Lost(format!("the connection to PostgreSQL was lost: {reason}"))
        } else {
            SessionError::Answered(StoreError::Broken(format!("PostgreSQL: {reason}")))
        };
    };
    let code = answered.code();
    let class = code.code().get(..2).unwrap_or("");
    match (class, code) {
        (_, &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
            SessionError::Answered(StoreError::Conflict(
                "PostgreSQL ended one of two transactions that conflicted",
            ))
        }
        // The server, or a proxy before several servers, does not know whether the statement took
        // effect. At a commit that means: ask again, as after a lost connection.
        (_, &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN) => SessionError::Lost(
            "PostgreSQL does not know whether a statement took effect (40003)".into(),
        ),
        (_, &SqlState::LOCK_NOT_AVAILABLE) => SessionError::Answered(StoreError::Locked),
        ("23", _) => {
            // Name the constraint, but never the detail, which shows values.
            tracing::warn!(
                code = code.code(),
                constraint = answered.constraint(),
                table = answered.table(),
                "a constraint of the store refused a row"
            );
            SessionError::Answered(StoreError::Conflict("a constraint of the store"))
        }
        (_, &SqlState::QUERY_CANCELED) => SessionError::Answered(StoreError::Unavailable(
            "PostgreSQL took too long for a statement".into(),
        )),
        // A server that went down, came up as a standby, or takes no connections. Another
        // connection may reach a server that works.
        ("08" | "57", _) | (_, &SqlState::READ_ONLY_SQL_TRANSACTION) => {
            SessionError::Lost(format!("PostgreSQL ended the connection ({})", code.code()))
        }
        ("53" | "58", _) => SessionError::Answered(StoreError::Unavailable(format!(
            "PostgreSQL lacks a resource ({})",
            code.code()
        ))),
        // Statements that this session prepared are gone, or others are in their place.
        (_, &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT) => {
            tracing::error!(alarm = "pooler", code = code.code(), "{POOLER}");
            SessionError::Lost(POOLER.into())
        }
        // An error in a statement of ours. Its text names tables and columns, not values.
        ("42", _) => SessionError::Answered(StoreError::Broken(format!(
            "PostgreSQL refused a statement ({}): {}",
            code.code(),
            answered.message()
        ))),
        ("25", _) => SessionError::Lost(format!(
            "PostgreSQL reports an invalid transaction state ({})",
            code.code()
        )),
        _ => SessionError::Answered(StoreError::Broken(format!(
            "PostgreSQL refused a statement ({})",
            code.code()
        ))),
    }
}

/// What a failed attempt to connect says to an operator.
pub(super) fn connect_error(error: &tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(answered) => {
            let message = format!(
                "PostgreSQL refuses the connection: {} ({})",
                answered.message(),
                answered.code().code()
            );
            // Waiting does not correct a wrong password, name or database.
            let is_lasting = matches!(answered.code().code().get(..2), Some("28" | "3D" | "42"));
            if is_lasting { StoreError::Broken(message) } else { StoreError::Unavailable(message) }
        }
        None => {
            let reason = std::error::Error::source(error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::Unavailable(format!("PostgreSQL cannot be reached: {reason}"))
        }
    }
}
