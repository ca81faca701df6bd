//! HTTP: the server, the order in which a request is judged, typed bodies and queries, and the
//! table of routes.

pub mod advice_pages;
pub mod body;
pub mod consult;
pub mod dispatch;
pub mod fields;
pub mod form;
pub mod limit;
pub mod limit_rows;
pub mod metrics;
pub mod openapi;
pub mod pages;
pub mod pay;
pub mod query;
pub mod route;
pub mod router;
pub mod server;
