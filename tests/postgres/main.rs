//! PostgreSQL and many nodes: one test binary, one file a subject. Everything goes through the real
//! binary, on a PostgreSQL that is made for the tests and goes with them (`cluster.sh`); `proxy.rs`
//! stands for the network between the two.
//!
//! The scenarios run within a few minutes. These make them longer: `HUNDI_POSTGRES_EVENTS=100000`,
//! `HUNDI_POSTGRES_KILLS=100` (with `HUNDI_POSTGRES_LIFE_MILLISECONDS=5000`),
//! `HUNDI_POSTGRES_RESTARTS=5`, `HUNDI_POSTGRES_TERMINATIONS=500`,
//! `HUNDI_POSTGRES_NETWORK_ROUNDS=40`, `HUNDI_POSTGRES_EQUAL_REQUESTS=10000`,
//! `HUNDI_POSTGRES_GROWTH_ROUNDS=20`, `HUNDI_POSTGRES_PATRONI_MINUTES=60`.
//! `patroni/mod.rs` says how to try another Patroni than Debian's.

mod deliveries;
mod nodes;
mod proxy;
#[path = "../support/mod.rs"]
mod support;

mod ahead;
mod backup;
mod encryption_key;
mod equal;
mod events;
mod fencing;
mod growth;
mod handover;
mod kills;
mod limits;
mod network;
mod pagers;
mod plans;
mod pooler;
mod partitions;
mod patroni;
mod queue_leases;
mod same_time;
mod screening;
mod settings;
mod sign_in;
mod signals;
mod standby;
mod stops;
mod starts;
mod statements;
mod tls;
mod webhooks;
