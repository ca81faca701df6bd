//! Follows real chains. `follow` reads the final view and credits what arrives; `audit` compares
//! the book with the chain once more; `credit` takes over what the follower missed; `first_start`
//! refuses an account key that was used before.

mod addresses;
mod advance;
pub mod audit;
mod block_groups;
pub mod credit;
pub mod first_start;
pub mod follow;
mod follower;
mod log_throttle;
mod owned_logs;
mod pending;
mod refunds;
