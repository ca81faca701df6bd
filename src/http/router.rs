//! Finds a route by path and method.

use std::collections::HashMap;

use super::route::{Route, Verb};

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

/// A part of a path without what is easily mistaken in it.
fn plain(part: &str) -> String {
    let part = part.to_lowercase().replace(['-', '_'], "");
    match part.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => part.strip_suffix('s').unwrap_or(&part).to_owned(),
    }
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
            entry.allow = verbs.join(", ").replace("GET", "GET, HEAD");
        }
        Ok(Router { routes, paths, entries })
    }

    /// The path of a route that a path which leads nowhere was probably meant to be: it differs in
    /// slashes, case, hyphens and underscores, or singular and plural.
    pub fn near_miss(&self, path: &str) -> Option<&'static str> {
        let asked: Vec<String> =
            path.split('/').filter(|part| !part.is_empty()).map(plain).collect();
        let is_meant = |route: &&Route| {
            let parts: Vec<&str> = route.path.split('/').filter(|part| !part.is_empty()).collect();
            parts.len() == asked.len()
                && parts
                    .iter()
                    .zip(&asked)
                    .all(|(part, asked)| *part == "{id}" || plain(part) == *asked)
        };
        self.routes.iter().find(is_meant).map(|route| route.path)
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
