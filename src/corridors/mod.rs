//! Corridors: what can be sent, with limits and clocks.

pub mod api;

use crate::resource::Resource;

pub const RESOURCE: Resource =
    Resource::new(api::routes).at("corridors", "What can be sent now, with limits and clocks.");
