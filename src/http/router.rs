//! Every route of the API on one screen. OpenAPI, permissions and the isolation tests are made from
//! this list.

use std::collections::HashMap;

use super::route::{Route, Verb};
use crate::{
    balance, beneficiaries, deposits, events, payouts, quote_locks, refunds, senders, statements,
    transfers, webhook_endpoints, work,
};

/// The API, resource by resource; each `api.rs` lists its own methods and paths.
pub fn routes() -> Vec<Route> {
    [
        beneficiaries::api::routes(), // /v1/beneficiaries[/{id}]
        senders::api::routes(),       // /v1/senders[/{id}]
        quote_locks::api::routes(),   // /v1/quote_locks[/{id}], /v1/corridors
        // /v1/transfers[/{id}[/cancel|/resolve_funding|/funding/diagnose]]
        transfers::api::routes(),
        deposits::api::routes(),   // /v1/deposits[/{id}]
        payouts::api::routes(),    // /v1/payouts[/{id}[/payment_advice]]
        refunds::api::routes(),    // /v1/refunds[/{id}]
        balance::api::routes(),    // /v1/balance
        events::api::routes(),     // /v1/events[/{id}]
        statements::api::routes(), // /v1/statements
        // /v1/webhook_endpoints[/{id}[/rotate_secret|/deliveries|/replay]]
        webhook_endpoints::api::routes(),
        // /v1/test_helpers/…, with test keys only
        transfers::api::helper_routes(),     // transfers/{id}/deposit
        beneficiaries::api::helper_routes(), // beneficiaries/{id}/activate|require_input|reject
        payouts::api::helper_routes(),       // payouts/{id}/settle|fail|return
        refunds::api::helper_routes(),       // refunds/{id}/complete
        work::api::helper_routes(),          // clock
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What a path leads to.
pub enum Found<'a> {
    Route {
        index: usize,
        ids: Vec<String>,
    },
    /// The path exists for these methods.
    OtherMethods(&'a str),
    Nothing,
}

struct PathEntry {
    routes: Vec<(Verb, usize)>,
    allow: String,
}

/// Finds routes by path and method.
pub struct Router {
    pub routes: Vec<Route>,
    paths: matchit::Router<usize>,
    entries: Vec<PathEntry>,
}

impl Router {
    /// Fails when two routes collide, which a test notices before anybody else.
    pub fn new(routes: Vec<Route>) -> Result<Router, String> {
        let mut paths = matchit::Router::new();
        let mut entries: Vec<PathEntry> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (index, route) in routes.iter().enumerate() {
            let entry = match known.get(route.path) {
                Some(entry) => *entry,
                None => {
                    entries.push(PathEntry { routes: Vec::new(), allow: String::new() });
                    let entry = entries.len() - 1;
                    known.insert(route.path, entry);
                    paths
                        .insert(route.path, entry)
                        .map_err(|error| format!("{}: {error}", route.path))?;
                    entry
                }
            };
            if entries[entry].routes.iter().any(|(verb, _)| *verb == route.verb) {
                return Err(format!("{} {} is listed twice", route.verb.as_str(), route.path));
            }
            entries[entry].routes.push((route.verb, index));
        }
        for entry in &mut entries {
            let verbs: Vec<_> = entry.routes.iter().map(|(verb, _)| verb.as_str()).collect();
            entry.allow = verbs.join(", ");
        }
        Ok(Router { routes, paths, entries })
    }

    pub fn find(&self, method: &http::Method, path: &str) -> Found<'_> {
        let Ok(matched) = self.paths.at(path) else { return Found::Nothing };
        let entry = &self.entries[*matched.value];
        let route = entry.routes.iter().find(|(verb, _)| verb.as_str() == method.as_str());
        match route {
            None => Found::OtherMethods(&entry.allow),
            Some((_, index)) => Found::Route {
                index: *index,
                ids: matched.params.iter().map(|(_, id)| id.to_owned()).collect(),
            },
        }
    }
}
