//! Every route of the API. The OpenAPI document is made from this list. The isolation tests fail
//! for a route that they do not know.

use crate::http::route::{ResourcePath, Route};
use crate::{events, resources, test_helpers, webhooks};

/// The names with which the paths after `/v1` begin. Permissions and the tags of the OpenAPI
/// document use them.
pub fn resource_paths() -> Vec<ResourcePath> {
    let declared = resources::ALL.iter().filter_map(|resource| resource.path);
    let others = [events::api::PATH, webhooks::api::PATH, test_helpers::PATH];
    let mut paths: Vec<ResourcePath> = declared.chain(others).collect();
    paths.sort_by_key(|path| path.name);
    paths
}

/// The names that a permission can begin with.
pub fn resource_names() -> Vec<&'static str> {
    resource_paths().iter().map(|path| path.name).collect()
}

pub fn routes() -> Vec<Route> {
    let mut routes: Vec<Route> =
        resources::ALL.iter().flat_map(|resource| (resource.routes)()).collect();
    routes.extend(events::api::routes(webhooks::event_types()));
    routes.extend(webhooks::api::routes());
    routes.extend(webhooks::drill::api::routes());
    // With test keys only, below /v1/test_helpers/.
    routes.extend(test_helpers::deposits::routes());
    routes.extend(test_helpers::beneficiaries::routes());
    routes.extend(test_helpers::payouts::routes());
    routes.extend(test_helpers::refunds::routes());
    routes.extend(test_helpers::api::routes());
    routes.extend(test_helpers::chaos::routes());
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_birth_is_judged_wherever_a_form_has_one() {
        let mut count = 0;
        for route in routes() {
            let schema = route.body.as_ref().map(|body| &body.schema);
            let has_one =
                schema.is_some_and(|schema| !schema["properties"]["date_of_birth"].is_null());
            assert_eq!(route.timed_check.is_some(), has_one, "{}", route.path);
            count += usize::from(has_one);
        }
        assert_eq!(count, 4, "routes with a date of birth");
    }
}
