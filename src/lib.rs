//! hundi pays Indian rupees into NRE bank accounts, funded by stablecoin deposits.
//!
//! The rooms (top-level modules), lowest first. A room imports only rooms that are listed before
//! it. `tests/tidy.rs` checks that, and compares this list with the map in ARCHITECTURE.md.

// Tests may panic; the service may not.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// Time and randomness are arguments: see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod kernel; // identifiers, money, time, statuses, refusals, encryption at rest
pub mod disk; // free space on the file systems that the service writes to
pub mod tls; // root certificates for every outgoing connection
pub mod store; // transactions: SQLite, PostgreSQL, idempotency, lists, leases, migrations
pub mod secrets; // the encryption key's file; the lock that keeps two servers off a SQLite file
pub mod tasks; // work that is due later
pub mod audit; // the hash-chained log of what people and the service did
pub mod metrics; // every figure that Prometheus reads, each named once
pub mod outbound; // JSON over HTTP to services that the operator chose
pub mod ifsc; // the list of bank branches
pub mod name_words; // finding a person by the beginning of any word of the name

pub mod chains; // ports: addresses, reading a chain, what is known of a followed one
pub mod rails; // ports: banks
pub mod rates; // ports: exchange rates
pub mod keys; // API keys and accounts
pub mod decisions; // what the operator decided, who did and why
pub mod pauses; // what the operator stopped for now
pub mod screening; // sanctions lists: readers, matching, hits and decisions about them
pub mod account_verification; // ports: who holds an account
pub mod issuers; // who appears on pages and documents
pub mod services; // settings, sealer and ports: what rules get as one argument
pub mod staff; // the people who operate: roles, passwords, sessions

pub mod app_state; // what one running process holds
pub mod background; // the type of a worker, and on which nodes it runs
pub mod key_rotation; // a change of the encryption key while the service runs
pub mod rate_limits; // token buckets
pub mod chaos; // in test mode: attacks a caller who asks for it, and grades how the caller copes
pub mod http; // the HTTP framework: bodies, queries, dispatch, routes, server
pub mod resource; // what a resource declares about itself
pub mod events; // the outbox, and the events made from it
pub mod ledger; // double entry

pub mod beneficiaries; // resources: mod (rules), state (status and arrows), rows (SQL), api (HTTP)
pub mod senders;
pub mod quote_locks;
pub mod deposits;
pub mod payouts;
pub mod refunds;
pub mod transfers; // also funding, holds, paying, refunding, screening, diagnosis
pub mod payment_advices; // the signed document of a settled payout
pub mod corridors; // what can be sent
pub mod balance;
pub mod statements; // what transfers moved in a period
pub mod resources; // the list of all of these

pub mod webhooks; // endpoints, deliveries, the event sequencer, sending
pub mod task_runner; // what each kind of task does
pub mod test_helpers; // what only test keys can do
pub mod reconcile; // the book against the bank's statements and against chains
pub mod verify_book; // checks of the whole book
pub mod backlog; // what waits, and for how long
pub mod operator; // what only the operator decides
pub mod chain_following; // reads real chains and credits what arrives
pub mod workers; // what else runs in the background
pub mod oversight; // what the operator sees of the whole service

pub mod routes; // every route of the API
pub mod guides; // the documentation for callers, served at /docs/
pub mod pages; // health, metrics, documents, the payer's page, the verification page of advices
pub mod console; // the operator's console
pub mod config; // settings from file, environment and flags
pub mod settings_log; // the settings in force, as the audit log keeps them
pub mod live; // the parts of live mode
pub mod app; // the service put together
pub mod backup; // a copy of the embedded database while the service runs
pub mod demo; // `hundi demo`
pub mod cli; // the commands, one file each
