//! Addresses in the configuration: where the service and the console listen, the console's URL, and
//! the security contact.

use serde::Deserialize;

use crate::console::openid::settings::OidcSettings;
use crate::console::proxies::TrustedProxies;

/// Where the operator's console is.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    pub listen: String,
    /// The URL that browsers open; `None` if it is the address that the console listens on.
    pub url: Option<String>,
    /// Whether operators need a second factor even before live mode is set up.
    pub requires_second_factor: bool,
    /// The reverse proxies that are trusted to say where a request comes from.
    pub proxies: TrustedProxies,
    /// The OpenID Connect provider with which operators may sign in instead of a password.
    pub oidc: Option<OidcSettings>,
}

/// The table `[console]`, which only the file can have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsoleTable {
    pub oidc: Option<OidcSettings>,
}

impl ConsoleSettings {
    /// `Ok(None)` if there is no console. `Err` if browsers would get pages with a session's cookie
    /// unencrypted over a network. A console that listens on loopback may have no URL, or one on
    /// loopback. Every other console needs an `https://` URL; a proxy in front of it serves that.
    pub(super) fn read(
        listen: Option<String>,
        url: Option<String>,
        requires_second_factor: bool,
        proxies: Option<String>,
        table: Option<ConsoleTable>,
    ) -> Result<Option<ConsoleSettings>, String> {
        let oidc = table.and_then(|table| table.oidc).map(OidcSettings::judge).transpose()?;
        let is_proxied = proxies.is_some();
        let proxies = proxies
            .map_or_else(|| Ok(TrustedProxies::default()), |text| TrustedProxies::parse(&text))?;
        let Some(listen) = listen.map(with_host) else {
            return match (url, oidc) {
                (None, None) if is_proxied => {
                    Err("console_proxies is set, and console_listen is not".into())
                }
                (None, None) => Ok(None),
                (Some(_), _) => Err("console_url is set, and console_listen is not".into()),
                (_, Some(_)) => Err("[console.oidc] is there, and console_listen is not".into()),
            };
        };
        let is_safe = match &url {
            None => is_loopback(&listen),
            Some(url) => {
                url.starts_with("https://") || is_loopback_url(url) && is_loopback(&listen)
            }
        };
        if !is_safe {
            return Err(
                "console_url must be the https:// address that browsers reach the console \
             by, unless it and console_listen are loopback addresses"
                    .into(),
            );
        }
        Ok(Some(ConsoleSettings { listen, url, requires_second_factor, proxies, oidc }))
    }

    /// The console's URL once it listens on an address.
    pub fn url(&self, address: std::net::SocketAddr) -> String {
        self.url.clone().unwrap_or_else(|| format!("http://{address}"))
    }
}

/// An address to listen on. A port alone means that port on loopback.
pub(super) fn with_host(listen: String) -> String {
    match listen.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => listen,
    }
}

/// Checks the security contact: one that security.txt allows (RFC 9116, 2.5.3).
pub(super) fn contact(text: Option<String>) -> Result<Option<String>, String> {
    let is_contact = |text: &str| {
        ["mailto:", "https://", "tel:"].iter().any(|scheme| {
            text.strip_prefix(scheme).is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic())
            })
        })
    };
    match text {
        Some(text) if !is_contact(&text) => Err("security_contact must be a mailto:, https:// or \
             tel: address, such as mailto:security@example.com"
            .into()),
        text => Ok(text),
    }
}

/// Whether only this machine can reach an address to listen on, `HOST:PORT`.
pub fn is_loopback(listen: &str) -> bool {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether only this machine can reach the host of a URL.
pub(super) fn is_loopback_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    })
}
