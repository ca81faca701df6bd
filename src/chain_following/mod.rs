//! Following real chains: what arrives is credited, and what was credited is compared once more.

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
