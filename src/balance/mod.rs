//! The balance: what is held for, or owed to, an account, by compartment.

pub mod api;
