//! The console's cookies: the session's token; before it the visit's, which the form that signs in
//! is bound to; and the provider's, which a sign-in at a provider is bound to.
//!
//! Over https all have the prefix `__Host-`: browsers take such a cookie only from this host,
//! encrypted and for all of its paths, so neither another host of the domain nor a page below
//! another path can set or replace it. Over plain http, which the console speaks on loopback alone,
//! browsers take no cookie of that prefix; there the names have none, and whatever else listens on
//! this machine's loopback address is trusted with them: cookies do not know ports.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use super::origin::Origins;

/// Which of them.
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

    /// The token that a request brings. One that comes twice, or is no token, is none.
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

    /// The header that gives it to a browser. It ends with the browser; the store ends it before.
    pub fn set(self, origins: &Origins, token: &str) -> Option<HeaderValue> {
        self.header(origins, token, "")
    }

    /// The header that takes it from a browser.
    pub fn remove(self, origins: &Origins) -> Option<HeaderValue> {
        self.header(origins, "", "; Max-Age=0")
    }

    fn header(self, origins: &Origins, value: &str, end: &str) -> Option<HeaderValue> {
        let secure = if origins.is_secure() { "; Secure" } else { "" };
        let name = self.name(origins);
        // Lax: a link in an alarm opens the console signed in, and no other site can post.
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{end}");
        HeaderValue::from_str(&text).ok()
    }
}
