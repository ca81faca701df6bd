//! Finds a route by path and method.

use std::collections::HashMap;

use super::near;
use super::route::{Route, Verb};
use crate::kernel::{Code, Refusal};

/// The result of looking up a path.
pub enum PathMatch<'a> {
    Route {
        index: usize,
        ids: Vec<String>,
    },
    /// The path exists, but only for these methods.
    OtherMethods(&'a str),
    Nothing,
}

struct PathEntry {
    routes: Vec<(Verb, usize)>,
    allow: String,
}

/// A part of a path as it is compared: made plain by [`near::plain`], and in the singular.
fn plain_singular(part: &str) -> String {
    let part = near::plain(part);
    match part.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => part.strip_suffix('s').unwrap_or(&part).to_owned(),
    }
}

/// Whether a plain part of a path is a prefix that services use, such as `api` or `v2`.
fn is_prefix(part: &str) -> bool {
    let digits = part.strip_prefix('v').unwrap_or("");
    part == "api" || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The parts of a path, each made [`plain_singular`].
fn plain_parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(plain_singular).collect()
}

/// Finds routes by path and method.
pub struct Router {
    pub routes: Vec<Route>,
    paths: matchit::Router<usize>,
    entries: Vec<PathEntry>,
}

impl Router {
    /// `Err` if two routes collide, which a test notices first.
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
            entry.allow = verbs.join(", ").replace("GET", "GET, HEAD");
        }
        Ok(Router { routes, paths, entries })
    }

    /// The path of the route that was probably meant by a path that leads nowhere. The two may
    /// differ in slashes, case, hyphens and underscores, singular and plural, one or two letters of
    /// a word, or in the prefix (`/api/v1`, `/v2` or none).
    pub fn near_miss(&self, path: &str) -> Option<&'static str> {
        let mut asked = plain_parts(path);
        let prefixes = asked.iter().take_while(|part| is_prefix(part)).count();
        asked.splice(..prefixes, [plain_singular("v1")]);
        let wrong_letters = |route: &Route| {
            let parts: Vec<&str> = route.path.split('/').filter(|part| !part.is_empty()).collect();
            if parts.len() != asked.len() {
                return None;
            }
            let wrong = |(part, asked): (&&str, &String)| match *part {
                "{id}" => Some(0),
                part => near::wrong_letters(&plain_singular(part), asked),
            };
            parts.iter().zip(&asked).map(wrong).sum::<Option<usize>>()
        };
        let candidates =
            self.routes.iter().filter_map(|route| Some((wrong_letters(route)?, route)));
        candidates.min_by_key(|(wrong, _)| *wrong).map(|(_, route)| route.path)
    }

    /// Advice for a POST to a path that callers often guess, from [`Route::guesses`].
    fn advice(&self, method: &http::Method, path: &str) -> Option<&'static str> {
        if method != http::Method::POST {
            return None;
        }
        let asked = plain_parts(path);
        let is_guess = |guess: &&str| {
            let parts: Vec<&str> = guess.split('/').filter(|part| !part.is_empty()).collect();
            let is_same =
                |(part, asked): (&&str, &String)| *part == "{id}" || plain_singular(part) == *asked;
            parts.len() == asked.len() && parts.iter().zip(&asked).all(is_same)
        };
        let guesses = self.routes.iter().filter_map(|route| route.guesses.as_ref());
        guesses.into_iter().find(|one| one.paths.iter().any(&is_guess)).map(|one| one.way)
    }

    /// The refusal of a path that leads nowhere.
    pub fn not_found(&self, method: &http::Method, path: &str) -> Refusal {
        let message = match (self.advice(method, path), self.near_miss(path)) {
            (Some(advice), _) => format!("No such route. {advice}"),
            (None, Some(meant)) => format!("No such route. Did you mean {meant}?"),
            (None, None) => "No such route. GET /openapi.json lists all of them.".to_owned(),
        };
        Refusal::new(Code::ObjectNotFound, message)
    }

    /// The refusal of a method that a path does not take; `allow` names those that it takes.
    pub fn wrong_method(&self, method: &http::Method, path: &str, allow: &str) -> Refusal {
        let is_update = matches!(method.as_str(), "PUT" | "PATCH") && allow.contains("POST");
        let change = is_update.then_some("An object is changed with POST.");
        let hint = self.advice(method, path).or(change);
        let hint = hint.map_or_else(String::new, |hint| format!(" {hint}"));
        Refusal::new(Code::RequestMethodInvalid, format!("This route takes {allow}.{hint}"))
    }

    pub fn find(&self, method: &http::Method, path: &str) -> PathMatch<'_> {
        let Ok(matched) = self.paths.at(path) else { return PathMatch::Nothing };
        let entry = &self.entries[*matched.value];
        let route = entry.routes.iter().find(|(verb, _)| verb.as_str() == method.as_str());
        match route {
            None => PathMatch::OtherMethods(&entry.allow),
            Some((_, index)) => PathMatch::Route {
                index: *index,
                ids: matched.params.iter().map(|(_, id)| id.to_owned()).collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::routes;

    #[test]
    fn a_guessed_path_for_a_refund_is_answered_with_advice() {
        let router = Router::new(routes()).unwrap();
        let message = |refusal: Refusal| refusal.entries()[0].message.clone();
        let post = http::Method::POST;
        let told = [
            message(router.wrong_method(&post, "/v1/refunds", "GET, HEAD")),
            message(router.not_found(&post, "/v1/transfers/transfer_1/refund")),
            message(router.not_found(&post, "/v1/transfers/transfer_1/refunds")),
        ];
        for text in told {
            assert!(text.contains("/v1/transfers/{id}/resolve_funding"), "{text}");
            assert!(text.contains("/v1/refunds/{id}"), "{text}");
        }
        for method in [http::Method::GET, http::Method::PUT] {
            let text = message(router.wrong_method(&method, "/v1/refunds", "GET, HEAD"));
            assert_eq!(text, "This route takes GET, HEAD.");
        }
        for path in ["/v1/transfers/transfer_1/reverse", "/v1/transfers/refund"] {
            let text = message(router.not_found(&post, path));
            assert!(!text.contains("resolve_funding"), "{path}: {text}");
        }
    }

    #[test]
    fn near_misses_are_recognised() {
        let router = Router::new(routes()).unwrap();
        for (path, meant) in [
            ("/v1/transfers/", Some("/v1/transfers")),
            ("/transfers", Some("/v1/transfers")),
            ("/transfers/transfer_1", Some("/v1/transfers/{id}")),
            ("/api/v1/Transfer", Some("/v1/transfers")),
            ("/v2/quote-locks", Some("/v1/quote_locks")),
            ("/v1/benificiaries", Some("/v1/beneficiaries")),
            ("/v1//webhook_endpoints//webhook_endpoint_1", Some("/v1/webhook_endpoints/{id}")),
            ("/v1/transfers/transfer_1/cancell", Some("/v1/transfers/{id}/cancel")),
            ("/v1/customers", None),
            ("/v1", None),
            ("/", None),
            ("/favicon.ico", None),
            ("/robots.txt", None),
            ("/login", None),
            ("/v1/payers", None),
        ] {
            assert_eq!(router.near_miss(path), meant, "{path}");
        }
    }
}
