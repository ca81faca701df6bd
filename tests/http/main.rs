//! The API over HTTP, through the real router on a real socket: one test binary. Each resource has
//! a file with its name in the path (`/v1/quote_locks` and `/v1/test_helpers/clock` are tested in
//! `quote_locks.rs` and `clock.rs`); the others are of one subject.

mod desk;
mod feed;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "../support/postgres.rs"]
mod postgres;
mod receiver;
mod stage;
mod support;
mod wire;

mod balance;
mod beneficiaries;
mod book;
mod chaos;
mod checkpoints;
mod clock;
mod console;
mod console_pages;
mod console_queues;
mod console_roles;
mod corridors;
mod deposits;
mod diagnosis;
mod drills;
mod events;
mod expiry;
mod four_eyes;
mod gst;
mod hostile;
mod idempotency;
mod isolation;
mod keys;
mod limits;
mod lists;
mod look_ups;
mod operations;
mod operator;
mod oversight;
mod patterns;
mod pauses;
mod pay;
mod payment_advice;
mod payout_screening;
mod payouts;
mod properties;
mod protocol;
mod quote_locks;
mod rates;
mod refunds;
mod refusals;
mod round_trips;
mod senders;
mod statements;
mod transfers;
mod waits;
mod webhook_endpoints;
