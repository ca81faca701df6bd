//! Every route of the console, and who may use it: anybody, anybody who is signed in, or an
//! operator of a role or higher.

use super::pages::{
    self, accounts, audit, decide, keys, limits, machinery, overview, persons, queues, reports,
    search, transfers, webhooks, work,
};
use super::route::{ConsoleRoute, Method, get, open, own, post};
use super::{account, approvals, openid, reveal, runbooks, second_factor, sign_in};
use crate::staff::Role;

pub fn routes() -> Vec<ConsoleRoute> {
    vec![
        open(Method::Get, "/console/sign_in", sign_in::page),
        open(Method::Post, "/console/sign_in", sign_in::submit),
        open(Method::Get, "/console/sign_in/oidc", openid::sign_in::begin),
        open(Method::Get, "/console/sign_in/oidc/done", openid::sign_in::done),
        own(Method::Post, "/console/sign_out", sign_in::sign_out),
        own(Method::Get, "/console/account", account::page),
        own(Method::Post, "/console/account/preferences", account::set_preferences),
        own(Method::Post, "/console/account/sessions/end", account::end_session),
        get("/console", Role::Viewer, overview::page),
        get("/console/overview/live", Role::Viewer, overview::reload).polled(),
        get("/console/runbooks", Role::Viewer, runbooks::list),
        get("/console/runbooks/{alarm}", Role::Viewer, runbooks::page),
        get("/console/search", Role::Viewer, search::page),
        get("/console/objects/{id}", Role::Viewer, pages::object),
        get("/console/transfers", Role::Viewer, transfers::list),
        get("/console/transfers/{id}", Role::Viewer, transfers::one),
        get("/console/transfers/{id}/live", Role::Viewer, transfers::reload).polled(),
        get("/console/beneficiaries/{id}", Role::Viewer, persons::beneficiary),
        get("/console/senders/{id}", Role::Viewer, persons::sender),
        get("/console/queues/{queue}", Role::Viewer, queues::page),
        get("/console/queues/{queue}/live", Role::Viewer, queues::reload).polled(),
        post("/console/decide", Role::Operator, decide::submit),
        get("/console/accounts", Role::Viewer, accounts::list),
        get("/console/accounts/{number}", Role::Viewer, accounts::one),
        post("/console/accounts/{number}/suspend", Role::Operator, accounts::suspend),
        post("/console/keys/make", Role::Admin, keys::make),
        post("/console/keys/revoke", Role::Admin, keys::revoke),
        get("/console/webhooks", Role::Viewer, webhooks::list),
        get("/console/webhooks/{id}", Role::Viewer, webhooks::one),
        post("/console/webhooks/{id}/replay", Role::Operator, webhooks::replay),
        get("/console/pauses", Role::Viewer, machinery::pauses),
        post("/console/pauses/set", Role::Operator, machinery::set_pause),
        get("/console/settings", Role::Viewer, machinery::settings),
        get("/console/operators", Role::Viewer, machinery::operators),
        get("/console/decisions", Role::Viewer, machinery::decisions),
        get("/console/audit", Role::Viewer, audit::page),
        get("/console/limits", Role::Viewer, limits::page),
        get("/console/work", Role::Viewer, work::page),
        get("/console/work/live", Role::Viewer, work::reload).polled(),
        get("/console/reports", Role::Viewer, reports::page),
        get("/console/reports/statement", Role::Viewer, reports::statement),
        get("/console/reports/closing", Role::Viewer, reports::closing),
        own(Method::Get, "/console/account/second_factor", second_factor::page),
        own(Method::Post, "/console/account/second_factor/begin", second_factor::begin),
        own(Method::Post, "/console/account/second_factor/confirm", second_factor::confirm),
        get("/console/approvals", Role::Viewer, approvals::page),
        post("/console/approvals/{number}/approve", Role::Approver, approvals::approve),
        post("/console/approvals/{number}/reject", Role::Operator, approvals::reject),
        post("/console/beneficiaries/{id}/account_number", Role::Operator, reveal::account_number),
        post("/console/operators/sessions/end", Role::Admin, account::end_sessions_of),
    ]
}

/// Finds a route by its path and method.
pub struct RouteTable {
    pub routes: Vec<ConsoleRoute>,
    paths: matchit::Router<Vec<usize>>,
}

/// What a path and method lead to.
pub(super) enum RouteFound<'a> {
    /// The route, and what stands in the path for each `{name}`.
    Route(&'a ConsoleRoute, Vec<String>),
    /// There are routes at this path, but none with this method: the methods that they take, as the
    /// header `Allow` lists them.
    OtherMethod(String),
    Nothing,
}

impl RouteTable {
    pub fn new(routes: Vec<ConsoleRoute>) -> Result<RouteTable, String> {
        let mut by_path: Vec<(&str, Vec<usize>)> = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            match by_path.iter_mut().find(|(path, _)| *path == route.path) {
                Some((_, indexes)) => indexes.push(index),
                None => by_path.push((route.path, vec![index])),
            }
        }
        let mut paths = matchit::Router::new();
        for (path, indexes) in by_path {
            paths.insert(path, indexes).map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(RouteTable { routes, paths })
    }

    pub(super) fn find(&self, method: &http::Method, path: &str) -> RouteFound<'_> {
        let Ok(matched) = self.paths.at(path) else { return RouteFound::Nothing };
        // HEAD is answered as GET; the connection leaves the body out.
        let wanted = if *method == http::Method::HEAD { "GET" } else { method.as_str() };
        let mut candidates = matched.value.iter().filter_map(|index| self.routes.get(*index));
        match candidates.find(|route| route.method.as_str() == wanted) {
            None => {
                let routes = matched.value.iter().filter_map(|index| self.routes.get(*index));
                let methods: Vec<&str> = routes
                    .map(|route| match route.method {
                        Method::Get => "GET, HEAD",
                        Method::Post => "POST",
                    })
                    .collect();
                RouteFound::OtherMethod(methods.join(", "))
            }
            Some(route) => {
                let parts = matched.params.iter().map(|(_, value)| value.to_owned()).collect();
                RouteFound::Route(route, parts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_paths_collide_and_all_stand_below_the_console() {
        let table = RouteTable::new(routes()).unwrap();
        assert!(table.routes.iter().all(|route| route.path.starts_with("/console")));
    }

    #[test]
    fn a_refused_method_leads_to_those_of_its_path() {
        let table = RouteTable::new(routes()).unwrap();
        for (method, path, allowed) in [
            (http::Method::PUT, "/console/sign_in", "GET, HEAD, POST"),
            (http::Method::POST, "/console/work", "GET, HEAD"),
            (http::Method::GET, "/console/decide", "POST"),
            (http::Method::HEAD, "/console/decide", "POST"),
        ] {
            let RouteFound::OtherMethod(found) = table.find(&method, path) else {
                panic!("{method} {path} is a route, or there is none");
            };
            assert_eq!(found, allowed, "{method} {path}");
        }
        let read = table.find(&http::Method::HEAD, "/console/work");
        assert!(matches!(read, RouteFound::Route(..)), "HEAD is answered as GET");
    }
}
