//! The console's three cookies, each with a random token. `Session` has the session's token.
//! `Visit` has the token to which the sign-in form is bound; the type `visit::Visit` is something
//! else. `Provider` has the token to which a sign-in at an OpenID Connect provider is bound.
//!
//! Over https the cookies' names have the prefix `__Host-`. Browsers take such a cookie only over
//! https, from this host, and for all of its paths. So neither another host of the domain nor a
//! page below another path can set or replace it. The console speaks plain http only on loopback.
//! There browsers take no cookie with that prefix, so the names have none. Cookies do not depend on
//! the port, so every program that listens on this machine's loopback address could read them.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use super::origin::Origins;

/// One of the console's cookies.
#[derive(Clone, Copy)]
pub enum Cookie {
    Session,
    Visit,
    Provider,
}

/// Characters of a token: 32 bytes in base64.
const TOKEN_CHARACTERS: usize = 43;

impl Cookie {
    fn name(self, origins: &Origins) -> &'static str {
        match (self, origins.is_secure()) {
            (Cookie::Session, true) => "__Host-hundi_session",
            (Cookie::Session, false) => "hundi_session",
            (Cookie::Visit, true) => "__Host-hundi_visit",
            (Cookie::Visit, false) => "hundi_visit",
            (Cookie::Provider, true) => "__Host-hundi_provider",
            (Cookie::Provider, false) => "hundi_provider",
        }
    }

    /// The token that a request brings. `None` if the cookie is missing, occurs twice or is no
    /// token.
    pub fn read(self, origins: &Origins, headers: &HeaderMap) -> Option<String> {
        let name = self.name(origins);
        let mut found = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(known, _)| *known == name);
        let (_, token) = found.next()?;
        let is_token = token.len() == TOKEN_CHARACTERS
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (is_token && found.next().is_none()).then(|| token.to_owned())
    }

    /// The header `Set-Cookie` that gives a token to a browser. The cookie lasts until the browser
    /// is closed; the store may end the session earlier.
    pub fn set(self, origins: &Origins, token: &str) -> Option<HeaderValue> {
        self.header(origins, token, "")
    }

    /// The header `Set-Cookie` that makes a browser drop the cookie.
    pub fn remove(self, origins: &Origins) -> Option<HeaderValue> {
        self.header(origins, "", "; Max-Age=0")
    }

    fn header(self, origins: &Origins, value: &str, end: &str) -> Option<HeaderValue> {
        let secure = if origins.is_secure() { "; Secure" } else { "" };
        let name = self.name(origins);
        // With Lax, browsers send the cookie when an operator follows a link from elsewhere, such
        // as one in an alarm. A POST from another site brings no cookie.
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{end}");
        HeaderValue::from_str(&text).ok()
    }
}
