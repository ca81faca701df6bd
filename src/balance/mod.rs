//! The balance: what is held for, or owed to, an account, by compartment.

pub mod api;

use crate::resource::Resource;

pub const RESOURCE: Resource =
    Resource::new(api::routes).at("balance", "What the account has, by compartment.");
