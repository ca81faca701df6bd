//! The bank that is spoken to by files: its messages against the public schemas, its journal at
//! every point of failure, whole payouts through the folders, and files that were tampered with.

#[path = "../support/postgres.rs"]
#[allow(dead_code)]
mod postgres;
#[path = "../http/support.rs"]
#[allow(dead_code)]
mod support;
#[path = "../support/viewer.rs"]
mod viewer;

mod bank;
mod faults;
mod messages;
mod money;
mod outside;
mod payouts;
mod portal;
mod process;
mod reconciliation;
mod second_payments;
mod same_time;
mod story;
mod tampered;
mod waiting;
