//! Checks for which host name a request asks, and from which site a change comes.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::{Host, Url};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The addresses by which browsers reach the console.
pub struct Origins {
    /// `host` or `host:port`, as in the header `Host`.
    authorities: Vec<String>,
    scheme: &'static str,
}

impl Origins {
    /// From the console's URL. If its host is loopback, `localhost`, `127.0.0.1` and `[::1]` count
    /// too. `Err` if it is no http or https URL.
    pub fn of(url: &str) -> Result<Origins, String> {
        let misfit = || format!("the console's address {url:?} is not a URL such as https://HOST");
        let parsed = Url::parse(url).map_err(|_| misfit())?;
        let scheme = match parsed.scheme() {
            "https" => "https",
            "http" => "http",
            _ => return Err(misfit()),
        };
        let host = parsed.host().ok_or_else(misfit)?;
        let is_loopback = match host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let mut hosts = vec![host.to_string()];
        if is_loopback {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        let authority = |host: String| match parsed.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        Ok(Origins { authorities: hosts.into_iter().map(authority).collect(), scheme })
    }

    /// Whether browsers reach the console over https.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// The host of a request, if it is one of the console's. Somebody else may have pointed any
    /// other name to this address (DNS rebinding).
    pub fn host<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let host = only(headers, &header::HOST)?;
        self.authorities.iter().any(|known| known.eq_ignore_ascii_case(host)).then_some(host)
    }

    /// The console's address as a request asked for it, such as `https://console.example`.
    pub fn asked(&self, headers: &HeaderMap) -> Option<String> {
        Some(format!("{}://{}", self.scheme, self.host(headers)?))
    }

    /// Whether a change comes from a page of the console itself, in the content type of a form.
    /// Browsers send `Origin` with every POST; a change without it is refused.
    pub fn is_own_change(&self, headers: &HeaderMap) -> bool {
        let Some(own) = self.asked(headers) else { return false };
        let is_own_site = match headers.get(&SEC_FETCH_SITE) {
            None => true,
            Some(_) => only(headers, &SEC_FETCH_SITE) == Some("same-origin"),
        };
        let is_own_origin =
            only(headers, &header::ORIGIN).is_some_and(|origin| origin.eq_ignore_ascii_case(&own));
        is_own_site && is_own_origin && is_form(headers)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let media_type = only(headers, &header::CONTENT_TYPE)
        .map_or("", |value| value.split(';').next().unwrap_or("").trim());
    media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The value of a header that occurs exactly once and is visible ASCII.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { HeaderValue::to_str(value).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_loopback_console_has_every_loopback_name_and_no_other() {
        let origins = Origins::of("http://127.0.0.1:9090").unwrap();
        for (host, is_known) in [
            ("127.0.0.1:9090", true),
            ("localhost:9090", true),
            ("[::1]:9090", true),
            ("127.0.0.1", false),
            ("127.0.0.1:8080", false),
            ("rebound.example:9090", false),
            ("", false),
        ] {
            assert_eq!(origins.host(&headers(&[("host", host)])).is_some(), is_known, "{host}");
        }
        let origins = Origins::of("https://console.example").unwrap();
        assert!(origins.host(&headers(&[("host", "console.example")])).is_some());
        assert!(origins.host(&headers(&[("host", "localhost")])).is_none());
        for url in ["", "console.example", "ftp://console.example", "https:"] {
            assert!(Origins::of(url).is_err(), "{url}");
        }
    }
}
