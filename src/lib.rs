//! hundi pays Indian rupees into NRE bank accounts, funded by stablecoin deposits.
//!
//! The rooms, from the ground up; each knows only rooms above it in this list:

// Tests may stop at the first surprise; the service may not.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod kernel; // the words: identifiers, money, time, statuses, refusals, encryption at rest

pub mod store; // transactions: the SQLite adapter, the write lane, idempotency, lists, migrations
pub mod tasks; // what is due later

pub mod outbound; // JSON over HTTP to nodes, rate sources and look-ups that the operator configured

pub mod ifsc; // which bank and branch a code belongs to

pub mod chains; // ports: TRON addresses and their derivation, the simulated chain
pub mod checks; // ports: account checks and screening
pub mod rails; // ports: banks
pub mod rates; // ports: exchange rates
pub mod screening; // sanctions lists: readers, matching, hits and their decisions
pub mod world; // settings, sealer and ports, as one argument

pub mod events; // the outbox and its sequencer
pub mod keys; // API keys and accounts
pub mod ledger; // double entry

pub mod beneficiaries; // the slices: mod (rules), state (graph), rows (SQL), api (HTTP)
pub mod quote_locks;
pub mod senders;

pub mod deposits;
pub mod payouts;
pub mod refunds;

pub mod transfers; // funding, paying, refunding

pub mod balance;
pub mod reconcile; // the book against the bank and the chain
pub mod statements; // what transfers moved in a period
pub mod webhook_endpoints;

pub mod delivery; // one webhook attempt: signature, address vetting, sending
pub mod http; // bodies, queries, dispatch, routes, server
pub mod work; // workers

pub mod app; // the service put together
pub mod backup;
pub mod cli;
pub mod config;
pub mod demo;
pub mod live; // the parts of live mode
pub mod operator; // what only the operator decides
pub mod secrets;
