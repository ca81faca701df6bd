//! Whether nodes work with a database. Each connection of a node's lanes and of its watch holds an
//! advisory lock while it lasts. Every role can see locks. The locks of a killed node end with its
//! connections.

/// Announces that a node is connected. The key is made up, so that other programs' keys differ.
pub(super) const ANNOUNCE_NODE: &str = "SELECT pg_advisory_lock_shared(1752525413, 1)";

/// Counts these locks.
pub(super) const COUNT: &str = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND \
    classid = 1752525413 AND objid = 1 AND objsubid = 2 AND database = (SELECT oid FROM \
    pg_database WHERE datname = current_database())";
