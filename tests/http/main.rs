//! The API over HTTP, through the real router on a real socket: one test binary, one file a subject.

mod receiver;
mod stage;
mod support;
mod wire;

mod beneficiaries;
mod book;
mod corridors;
mod diagnosis;
mod events;
mod funding;
mod hostile;
mod idempotency;
mod isolation;
mod keys;
mod lists;
mod operations;
mod operator;
mod payouts;
mod properties;
mod quote_locks;
mod senders;
mod test_clock;
mod transfers;
mod webhooks;
