//! HTTP: the server, the order in which a request is judged, typed bodies and queries, and the
//! table of routes.

pub mod account_turns;
pub mod body;
pub mod chaos;
pub mod connections;
pub mod dispatch;
pub mod fields;
pub mod form;
pub mod framing;
pub mod incoming;
pub mod near;
pub mod openapi;
pub mod preflight;
pub mod query;
pub mod reply;
pub mod route;
pub mod router;
pub mod scope_semaphores;
pub mod server;
