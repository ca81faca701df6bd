//! Events over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::chain;
use super::rows::{self, EventRow};
use crate::http::query::{CREATED_FILTERS, Filter, FilterKind, WAIT};
use crate::http::route::{self, Context, List, ResourcePath, Route};
use crate::kernel::id::kind;
use crate::kernel::page::{FilterValue, Page};
use crate::kernel::{AnyId, Code, Id, ObjectKind, OperationError, Refusal, hex};

pub const PATH: ResourcePath =
    ResourcePath { name: "events", description: "What changed, kept for 30 days." };

crate::string_enum!(EventWord { Event "event" });
crate::string_enum!(CheckpointWord { EventCheckpoint "event_checkpoint" });

const CHECKPOINT_PARAMETERS: &[Filter] =
    &[Filter::new("event_id", FilterKind::Id(ObjectKind::Event))];

/// How many events there are up to and including `event_id`, and the chained hash over them.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventCheckpoint")]
pub struct CheckpointView {
    pub object: CheckpointWord,
    /// The last event that is counted.
    pub event_id: Option<Id<kind::Event>>,
    pub events_count: i64,
    pub hash: String,
    pub livemode: bool,
}

/// A change that happened; it says what changed and carries no state.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventView {
    pub object: EventWord,
    pub id: Id<kind::Event>,
    pub r#type: String,
    pub linked_id: AnyId,
    pub linked_object: String,
    pub created: i64,
    pub livemode: bool,
}

/// An event as callers and webhook receivers see it.
pub fn view(event: EventRow, livemode: bool) -> EventView {
    EventView {
        object: EventWord::Event,
        id: event.id,
        r#type: event.event_type,
        linked_id: event.linked,
        linked_object: event.linked.kind.as_str().to_owned(),
        created: event.created,
        livemode,
    }
}

/// The routes, for the event types that this service emits.
pub fn routes(event_types: Vec<&'static str>) -> Vec<Route> {
    let mut objects: Vec<_> =
        event_types.iter().filter_map(|name| name.split('.').next()).collect();
    objects.sort_unstable();
    objects.dedup();
    // A process makes these lists once and needs them until it ends, so they are never freed.
    let filters = [
        CREATED_FILTERS[0],
        CREATED_FILTERS[1],
        CREATED_FILTERS[2],
        CREATED_FILTERS[3],
        Filter::new("type", FilterKind::OneOf(event_types.leak())),
        Filter::new("linked_id", FilterKind::AnyId { kind_filter: "linked_object" }),
        Filter::new("linked_object", FilterKind::OneOf(objects.leak())),
        WAIT,
    ];
    vec![
        route::list(
            "/v1/events",
            "List events",
            ObjectKind::Event,
            Vec::from(filters).leak(),
            route::nothing,
            index,
        )
        .waiting()
        .codes(&[Code::RateLimitExceeded]),
        route::get("/v1/events/{id}", "Get an event", show),
        route::get_with(
            "/v1/events/checkpoint",
            "Count and chained hash of the events up to a given event",
            CHECKPOINT_PARAMETERS,
            checkpoint,
        ),
    ]
}

fn checkpoint(
    context: &mut Context<'_>,
    values: &[(&'static str, FilterValue)],
) -> Result<CheckpointView, OperationError> {
    let scope = context.scope();
    let up_to = values.iter().find_map(|(_, value)| match value {
        FilterValue::Id(bytes) => Some(Id::from_u128(u128::from_be_bytes(*bytes))),
        _ => None,
    });
    let found = chain::checkpoint(context.tx, scope, up_to)?;
    Ok(CheckpointView {
        object: CheckpointWord::EventCheckpoint,
        event_id: found.event_id,
        events_count: found.events_count,
        hash: hex::encode(found.hash),
        livemode: scope.livemode(),
    })
}

fn show(context: &mut Context<'_>) -> Result<EventView, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    let event = rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?;
    Ok(view(event, scope.livemode()))
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<EventView>, OperationError> {
    let scope = context.scope();
    if let (Some(cursor), false) = (page.starting_after, page.descending) {
        let cursor = Id::from_u128(u128::from_be_bytes(cursor));
        chain::check_cursor(context.tx, context.now, scope, cursor)?;
    }
    let rows = rows::list(context.tx, scope, &page)?;
    Ok(List::map(rows, |row| Ok(view(rows::read(row)?, scope.livemode())))?)
}
