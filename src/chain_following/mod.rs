//! Following real chains: what arrives is credited, what was credited is compared once more.

pub mod audit;
pub mod credit;
pub mod follow;
