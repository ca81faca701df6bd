//! The API over HTTP, through the real router on a real socket: one test binary, one file a
//! subject.

mod desk;
mod feed;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "../support/postgres.rs"]
mod postgres;
mod receiver;
mod stage;
mod support;
mod wire;

mod beneficiaries;
mod book;
mod chaos;
mod checkpoints;
mod console;
mod console_pages;
mod corridors;
mod diagnosis;
mod drills;
mod events;
mod four_eyes;
mod funding;
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
mod pay;
mod pauses;
mod patterns;
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
mod test_clock;
mod transfers;
mod waits;
mod webhooks;
