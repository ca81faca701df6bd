//! Events over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::rows::{self, EventRow};
use crate::http::query::{CREATED_FILTERS, Filter, FilterKind, WAIT};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{AnyId, Code, Id, ObjectKind, OperationError, Refusal};

crate::string_enum!(EventWord { Event "event" });

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
    // Made once for each process, and needed until it ends.
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
    ]
}

fn show(context: &mut Context<'_>) -> Result<EventView, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    let event = rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?;
    Ok(view(event, scope.livemode()))
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<EventView>, OperationError> {
    let scope = context.scope();
    let rows = rows::list(context.tx, scope, &page)?;
    Ok(List::map(rows, |row| Ok(view(rows::read(row)?, scope.livemode())))?)
}
