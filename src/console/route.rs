//! A route of the console: a method, a path, who may use it, and a handler.

use std::pin::Pin;

use super::visit::{ConsoleRequest, PageOutcome, Visit};
use crate::staff::Role;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    Get,
    Post,
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

/// Who may ask for a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteAccess {
    /// Anybody who reaches the listener.
    Anybody,
    /// Anybody who is signed in, even before the second factor is set up.
    SignedIn,
    /// An operator of this role or a higher one.
    Role(Role),
}

type Answering = Pin<Box<dyn Future<Output = PageOutcome> + Send>>;

pub(super) enum Handler {
    Open(Box<dyn Fn(ConsoleRequest) -> Answering + Send + Sync>),
    SignedIn(Box<dyn Fn(Visit) -> Answering + Send + Sync>),
}

pub struct ConsoleRoute {
    pub method: Method,
    /// With `{name}` for each part that varies.
    pub path: &'static str,
    pub access: RouteAccess,
    /// Whether the page's script requests it at intervals. Such a request does not count as a use
    /// of the session. Otherwise an open page would keep the session from ending.
    pub is_polled: bool,
    pub(super) handler: Handler,
}

impl ConsoleRoute {
    pub fn polled(mut self) -> ConsoleRoute {
        self.is_polled = true;
        self
    }
}

fn signed_in<F>(
    method: Method,
    path: &'static str,
    access: RouteAccess,
    handler: fn(Visit) -> F,
) -> ConsoleRoute
where
    F: Future<Output = PageOutcome> + Send + 'static,
{
    let handler = Handler::SignedIn(Box::new(move |visit| Box::pin(handler(visit))));
    ConsoleRoute { method, path, access, is_polled: false, handler }
}

/// A page for operators of this role and higher ones.
pub fn get<F>(path: &'static str, least: Role, handler: fn(Visit) -> F) -> ConsoleRoute
where
    F: Future<Output = PageOutcome> + Send + 'static,
{
    signed_in(Method::Get, path, RouteAccess::Role(least), handler)
}

/// A change by operators of this role and higher ones.
pub fn post<F>(path: &'static str, least: Role, handler: fn(Visit) -> F) -> ConsoleRoute
where
    F: Future<Output = PageOutcome> + Send + 'static,
{
    signed_in(Method::Post, path, RouteAccess::Role(least), handler)
}

/// A route for anybody who is signed in.
pub fn own<F>(method: Method, path: &'static str, handler: fn(Visit) -> F) -> ConsoleRoute
where
    F: Future<Output = PageOutcome> + Send + 'static,
{
    signed_in(method, path, RouteAccess::SignedIn, handler)
}

/// A route for anybody, signed in or not.
pub fn open<F>(method: Method, path: &'static str, handler: fn(ConsoleRequest) -> F) -> ConsoleRoute
where
    F: Future<Output = PageOutcome> + Send + 'static,
{
    let handler = Handler::Open(Box::new(move |asked| Box::pin(handler(asked))));
    ConsoleRoute { method, path, access: RouteAccess::Anybody, is_polled: false, handler }
}
