//! The arguments and results of the console's handlers.

use std::ops::Deref;
use std::sync::Arc;

use http::header::LOCATION;
use http::{HeaderMap, HeaderName, StatusCode};

use super::Console;
use super::cookies::Cookie;
use super::form::Fields;
use super::texts::Words;
use crate::app_state::AppState;
use crate::http::reply::{self, Reply};
use crate::kernel::{DecidedBy, OperationError, StoreError, Via, hex};
use crate::services::Services;
use crate::staff::OperatorIdentity;
use crate::staff::sessions::Session;

/// A request to the console. Handlers that need no session get it alone, others within a [`Visit`].
pub struct ConsoleRequest {
    pub console: Arc<Console>,
    pub app: Arc<AppState>,
    pub words: &'static Words,
    /// The IP address that the request comes from, or `unknown`.
    pub address: String,
    pub headers: HeaderMap,
    pub(super) path_and_query: String,
    /// The value in the path of each `{name}` of its route.
    pub(super) parts: Vec<String>,
    pub(super) query: Fields,
    pub(super) form: Fields,
    /// The value of the cookie `Session`, or if there is no session, of the cookie `Visit`. The
    /// token of the page's forms is computed from it.
    pub(super) cookie: String,
}

/// A request of an operator who is signed in and may use the route.
pub struct Visit {
    pub(super) asked: ConsoleRequest,
    pub session: Session,
}

impl Deref for Visit {
    type Target = ConsoleRequest;
    fn deref(&self) -> &ConsoleRequest {
        &self.asked
    }
}

impl ConsoleRequest {
    /// A copy without the form's fields. It is for the page about a failure, because the handler
    /// has taken the request itself.
    pub(super) fn twin(&self) -> ConsoleRequest {
        ConsoleRequest {
            console: self.console.clone(),
            app: self.app.clone(),
            words: self.words,
            address: self.address.clone(),
            headers: self.headers.clone(),
            path_and_query: self.path_and_query.clone(),
            parts: self.parts.clone(),
            query: self.query.clone(),
            form: Fields::default(),
            cookie: self.cookie.clone(),
        }
    }
    /// The value in the path of the `{…}` with this index, from 0; "" if there is none.
    pub fn path(&self, index: usize) -> &str {
        self.parts.get(index).map_or("", String::as_str)
    }
    /// The path that was asked for, and its query with the `?`, or "".
    pub fn asked_path(&self) -> (&str, &str) {
        let whole = self.path_and_query.as_str();
        whole.split_at(whole.find('?').unwrap_or(whole.len()))
    }
    /// A parameter of the query, or "".
    pub fn query(&self, name: &str) -> &str {
        self.query.get(name)
    }
    /// A field of the form, or "".
    pub fn field(&self, name: &str) -> &str {
        self.form.get(name)
    }
    /// Every field of this name.
    pub fn fields<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.form.all(name)
    }
    /// Whether htmx sent the request: it wants only a part of a page.
    pub fn wants_part(&self) -> bool {
        self.headers.contains_key("hx-request")
    }
    pub fn services(&self) -> &Services {
        &self.app.services
    }
    /// The store's clock, in Unix seconds.
    pub fn instant(&self) -> i64 {
        self.app.store.clock.milliseconds() / 1000
    }
    /// The token of this page's forms.
    pub fn token(&self) -> String {
        let mark = self.app.services.sealer.fingerprint(&[b"console form", self.cookie.as_bytes()]);
        hex::encode(mark)
    }
    /// Whether a form has the token of its page; compared in constant time.
    pub(super) fn has_token(&self) -> bool {
        let given = self.field("token");
        bool::from(subtle::ConstantTimeEq::ct_eq(self.token().as_bytes(), given.as_bytes()))
    }
    /// Sends the browser to a page of the console; to the overview if `path` leads elsewhere.
    pub fn go_to(&self, path: &str) -> PageOutcome {
        let mut reply = reply::reply(StatusCode::SEE_OTHER.as_u16(), TEXT, Vec::new());
        let path = if is_own_path(path) { path } else { "/console" };
        // Scripts cannot see a redirect: the browser would follow it, and htmx would put the whole
        // page into a part of this one. The header `HX-Redirect` makes htmx load the page.
        if self.wants_part() {
            *reply.status_mut() = StatusCode::OK;
            reply::set_header(&mut reply, HeaderName::from_static("hx-redirect"), path);
        } else {
            reply::set_header(&mut reply, LOCATION, path);
        }
        Ok(reply)
    }
    /// Like [`ConsoleRequest::go_to`], and the next page shows a notice: the key of a text that
    /// begins with `notice.`.
    pub fn back_to(&self, path: &str, notice: &str) -> PageOutcome {
        let mark = if path.contains('?') { '&' } else { '?' };
        self.go_to(&format!("{path}{mark}notice={notice}"))
    }
    pub(super) fn set_cookie(&self, reply: &mut Reply, cookie: Cookie, token: &str) {
        if let Some(value) = cookie.set(&self.console.origins, token) {
            reply.headers_mut().append(http::header::SET_COOKIE, value);
        }
    }
    pub(super) fn remove_cookie(&self, reply: &mut Reply, cookie: Cookie) {
        if let Some(value) = cookie.remove(&self.console.origins) {
            reply.headers_mut().append(http::header::SET_COOKIE, value);
        }
    }
}

impl Visit {
    pub(super) const fn new(asked: ConsoleRequest, session: Session) -> Visit {
        Visit { asked, session }
    }
    pub const fn operator(&self) -> &OperatorIdentity {
        &self.session.operator
    }
    /// This operator as the one who decides, proven by the session. `Err` if the reason is not
    /// accepted.
    pub fn decided_by(&self, reason: &str) -> Result<DecidedBy, Failure> {
        let operator = self.operator();
        let by = DecidedBy::new(&operator.name, reason).map_err(Failure::Told)?;
        Ok(by.proven(operator.number, Via::Console))
    }
}

/// Whether a text from a request is a path of the console, so that no link can send a browser to
/// another site.
pub fn is_own_path(path: &str) -> bool {
    let is_below =
        path == "/console" || path.starts_with("/console/") || path.starts_with("/console?");
    is_below
        && path.bytes().all(|byte| (0x21..0x7F).contains(&byte) && byte != b'\\')
        && !path.contains("//")
        && !path.contains("/../")
}

const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Why a handler has no page to show.
#[derive(Debug)]
pub enum Failure {
    /// There is no such page or object.
    NotFound,
    /// This operator may not do this.
    Forbidden,
    /// The change was not made, or only a part of it, and this text tells the person why (409).
    Told(String),
    /// The store or a template failed: the page is answered 500 or 503, and the log says why.
    Broken(OperationError),
}

impl Failure {
    pub fn told(text: impl Into<String>) -> Failure {
        Failure::Told(text.into())
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Failure {
        match error {
            // Written for the operator.
            OperationError::Declined(reason) => Failure::Told(reason),
            OperationError::Refused(refusal) => Failure::Told(
                refusal.entries().first().map_or_else(String::new, |entry| entry.message.clone()),
            ),
            OperationError::Store(_) => Failure::Broken(error),
        }
    }
}
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Broken(error.into())
    }
}
impl From<askama::Error> for Failure {
    fn from(error: askama::Error) -> Failure {
        StoreError::Broken(format!("a page cannot be drawn: {error}")).into()
    }
}

pub type PageOutcome = Result<Reply, Failure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_sent_to_paths_of_the_console_alone() {
        for path in ["/console", "/console/transfers/x?state=a&b=c", "/console?notice=x"] {
            assert!(is_own_path(path), "{path}");
        }
        for path in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/console/",
            "/console//evil.example",
            "/console/../x",
            "/consolex",
            "/console\\evil",
            "/console/\r\nset-cookie: a=b",
            "/console/ x",
            "\\\\evil.example/console",
        ] {
            assert!(!is_own_path(path), "{path}");
        }
    }
}
