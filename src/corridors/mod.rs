//! Corridors: which money can be sent and how, the limits of an amount, how long a quote lock
//! lasts, and how long a transfer waits for its deposit.

pub mod api;

use crate::resource::Resource;

pub const RESOURCE: Resource = Resource::new(api::routes)
    .at("corridors", "What can be sent now, with its limits and time limits.");
