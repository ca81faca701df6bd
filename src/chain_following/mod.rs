//! Follows real chains. `follow` reads the final view, credits what arrives and confirms refunds.
//! `audit` reads the chain a second time and compares the book with it. `credit` takes a
//! transaction that the follower missed into the book. `first_start` refuses an account key that
//! was used before this database was made.

mod addresses;
mod advance;
pub mod audit;
mod block_groups;
pub mod credit;
pub mod first_start;
pub mod follow;
mod follower;
mod log_throttle;
mod our_logs;
mod pending;
mod refunds;
