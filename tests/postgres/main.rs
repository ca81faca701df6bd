//! PostgreSQL and many nodes, black box.
mod proxy;
#[path = "../support/mod.rs"]
mod support;
