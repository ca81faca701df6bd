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
