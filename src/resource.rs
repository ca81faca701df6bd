//! What a resource declares about itself. Routes, event types and the checks of the book follow
//! from this, so a new resource is mostly a folder and a line in `resources.rs`.

use crate::http::route::{ResourcePath, Route};
use crate::kernel::state::Status;
use crate::kernel::{AnyId, History, ObjectKind};

/// A query that finds errors in the book. Each row that it returns is one error: the kind of the
/// object that is wrong, or another text that says what it is; then its identifier or NULL. `?1`
/// is the most rows that it may return.
pub struct BookRule {
    /// What a row of the query means.
    pub meaning: &'static str,
    pub sql: &'static str,
}

/// The status of a resource's objects.
#[derive(Clone, Copy)]
pub struct StatusTable {
    /// The table with the columns `status` and `status_history`.
    pub table: &'static str,
    object: &'static str,
    event_types: fn() -> Vec<&'static str>,
    fault: fn(&str, &str) -> Option<String>,
}

impl StatusTable {
    /// What is wrong with a status and its history as they are stored, or `None`.
    pub fn fault(&self, status: &str, history: &str) -> Option<String> {
        (self.fault)(status, history)
    }
    /// A stored identifier as callers know it.
    pub fn object_id(&self, id: [u8; 16]) -> String {
        let value = u128::from_be_bytes(id);
        let kind = ObjectKind::parse(self.object);
        kind.map_or_else(|| format!("{value:032X}"), |kind| AnyId { kind, value }.to_string())
    }
}

pub struct Resource {
    pub routes: fn() -> Vec<Route>,
    /// The name that permissions use, and a description. `None` if its routes are below another
    /// resource's path.
    pub path: Option<ResourcePath>,
    pub status: Option<StatusTable>,
    events: &'static [&'static str],
    pub book_rules: &'static [BookRule],
}

impl Resource {
    pub const fn new(routes: fn() -> Vec<Route>) -> Resource {
        Resource { routes, path: None, status: None, events: &[], book_rules: &[] }
    }
    /// The resource's routes begin with `/v1/` and this name. The description is a sentence.
    pub const fn at(mut self, name: &'static str, description: &'static str) -> Resource {
        self.path = Some(ResourcePath { name, description });
        self
    }
    /// The resource's objects have a status, stored in `table`. Each of its values has an event
    /// type.
    pub const fn with_status<S: Status>(mut self, table: &'static str) -> Resource {
        self.status = Some(StatusTable {
            table,
            object: S::OBJECT,
            event_types: status_event_types::<S>,
            fault: fault_of::<S>,
        });
        self
    }
    /// The resource's objects have a status whose changes emit no events of their own.
    pub const fn with_status_without_events<S: Status>(self, table: &'static str) -> Resource {
        let mut resource = self.with_status::<S>(table);
        if let Some(status) = &mut resource.status {
            status.event_types = Vec::new;
        }
        resource
    }
    /// Event types in addition to those of the status.
    pub const fn with_events(mut self, events: &'static [&'static str]) -> Resource {
        self.events = events;
        self
    }
    pub const fn with_book_rules(mut self, book_rules: &'static [BookRule]) -> Resource {
        self.book_rules = book_rules;
        self
    }
    pub fn event_types(&self) -> impl Iterator<Item = &'static str> + use<> {
        let of_status = self.status.map(|status| (status.event_types)()).unwrap_or_default();
        of_status.into_iter().chain(self.events.iter().copied())
    }
}

/// The event types of a status, one for each of its values.
pub fn status_event_types<S: Status>() -> Vec<&'static str> {
    S::ALL.iter().map(|status| status.event_type()).collect()
}

fn fault_of<S: Status>(status: &str, history: &str) -> Option<String> {
    let Some(status) = S::parse(status) else {
        return Some(format!("the unknown status {status:?}"));
    };
    match History::<S>::from_text(history) {
        Ok(history) => history.fault(status),
        Err(error) => Some(error.to_string()),
    }
}
