//! Every resource of the API except events, webhooks and test helpers, which `routes.rs` adds.
//! Routes, event types and the checks of the book are made from this list.

use crate::resource::Resource;
use crate::{
    balance, beneficiaries, corridors, deposits, payment_advices, payouts, quote_locks, refunds,
    senders, statements, transfers,
};

pub const ALL: &[Resource] = &[
    beneficiaries::RESOURCE,
    senders::RESOURCE,
    quote_locks::RESOURCE,
    corridors::RESOURCE,
    transfers::RESOURCE,
    deposits::RESOURCE,
    payouts::RESOURCE,
    payment_advices::RESOURCE,
    refunds::RESOURCE,
    balance::RESOURCE,
    statements::RESOURCE,
];

/// The event types of all these resources.
pub fn event_types() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(Resource::event_types)
}
