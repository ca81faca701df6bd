//! Judges webhook addresses: the form of a URL when it is registered and when it is used, and every
//! IP address before a connection to it is opened. So no delivery reaches an inner network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use http::HeaderValue;
use http::uri::PathAndQuery;
use url::{Host, ParseError, Url};

/// Longest accepted URL, in characters as given and in bytes once normalised.
pub const URL_CHARACTERS_MAX: usize = 2048;

/// Longest accepted host name in characters (RFC 1035 section 2.3.4: 255 octets on the wire).
pub const HOST_CHARACTERS_MAX: usize = 253;

/// Longest label of a host name in characters (RFC 1035 section 2.3.4).
pub const LABEL_CHARACTERS_MAX: usize = 63;

/// The one name that counts as loopback where loopback is allowed (RFC 6761 section 6.3).
const LOOPBACK_NAME: &str = "localhost";

/// Names with this suffix are loopback by RFC 6761 section 6.3. No public receiver has one.
const LOOPBACK_SUFFIX: &str = ".localhost";

/// Tells a caller how a receiver without a public address gets events.
const LISTEN: &str = "For a receiver on your own machine, hundi listen --forward-to fetches the \
    events: see /docs/receivers.";

/// What the mode and the operator permit beyond public https addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlPolicy {
    /// Permits http and https to 127.0.0.0/8, ::1 and `localhost`. Set it only in test mode, and
    /// only if the operator allows it.
    pub loopback_allowed: bool,
}

/// Why a webhook URL is refused. The text tells the caller what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Longer than [`URL_CHARACTERS_MAX`] as given or once normalised.
    #[error("Use a URL of at most {URL_CHARACTERS_MAX} characters.")]
    TooLong,
    /// Not a URL, or one with blanks or control characters in it.
    #[error("Use an absolute URL such as https://example.com/webhooks, without blanks.")]
    Malformed,
    /// A backslash, which the WHATWG URL Standard reads as a slash and RFC 3986 does not allow.
    #[error("Write the URL without backslashes.")]
    Backslash,
    /// Another scheme than http and https, or http where it is not permitted.
    #[error(
        "Use an https URL such as https://example.com/webhooks. A test key can use http to the \
         server's own machine, such as http://127.0.0.1:4242/, where the operator allows it."
    )]
    SchemeNotHttps,
    /// A user name or password before the host.
    #[error("Remove the user name and password from the URL; verify the signature instead.")]
    UserInformation,
    /// A `#` and what follows it, which HTTP never sends (RFC 9110 section 4.2.5).
    #[error("Remove the fragment (from '#' on) from the URL.")]
    Fragment,
    /// No host.
    #[error("Name a host in the URL.")]
    HostMissing,
    /// A host name longer than [`HOST_CHARACTERS_MAX`].
    #[error("Use a host name of at most {HOST_CHARACTERS_MAX} characters.")]
    HostTooLong,
    /// A host name with an empty label, a label longer than [`LABEL_CHARACTERS_MAX`], or a
    /// character that names do not have.
    #[error("Use a host name whose labels are 1 to 63 letters, digits, hyphens or underscores.")]
    HostInvalid,
    /// Port 0.
    #[error("Use a port from 1 to 65535, or none.")]
    PortZero,
    /// A host that cannot be public: an address that is not global unicast, or a name below
    /// `localhost`.
    #[error(
        "Use a host with a public address, such as https://example.com/webhooks: this one is \
         local, private or reserved. {LISTEN}"
    )]
    AddressNotPublic,
    /// The server's own machine, where that is not permitted.
    #[error(
        "Webhooks to the server's own machine (localhost, 127.0.0.1) are not allowed for this key. \
         Use an https URL with a public address, such as https://example.com/webhooks. \
         {LISTEN}"
    )]
    LoopbackNotAllowed,
}

/// The host of a webhook URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookHost {
    /// A name in ASCII (punycode where needed), in lower case, without a trailing dot.
    Name(String),
    /// An IP literal that the policy of [`parse_url`] allowed.
    Address(IpAddr),
}

/// A webhook URL of acceptable form, with the parts a request needs. Only [`parse_url`] makes one.
#[derive(Clone, Debug)]
pub struct WebhookUrl {
    text: String,
    https: bool,
    host: WebhookHost,
    port: u16,
    origin: Arc<str>,
    authority: HeaderValue,
    target: PathAndQuery,
}

impl WebhookUrl {
    /// The normalised URL (WHATWG URL Standard), at most [`URL_CHARACTERS_MAX`] bytes of ASCII;
    /// [`parse_url`] accepts it again under the same policy.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the scheme is https; otherwise it is http, to a loopback host.
    pub fn is_https(&self) -> bool {
        self.https
    }

    pub fn host(&self) -> &WebhookHost {
        &self.host
    }

    /// The port to connect to; the scheme's default if the URL names none. Never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `scheme://host:port`, always with the port. Only URLs with the same origin may share a
    /// connection (RFC 9110 section 4.3.1).
    pub fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// The value of the `Host` header (RFC 9110 section 7.2), without the scheme's default port.
    pub fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// The request target in origin form, path and query (RFC 9112 section 3.2.1).
    pub fn target(&self) -> &PathAndQuery {
        &self.target
    }
}

/// Judges a URL that is to be registered. Like [`parse_url`], but it also refuses a backslash,
/// because another reader of the same text could see another host. [`parse_url`] still accepts a
/// URL with a backslash that was registered before this rule.
pub fn parse_new_url(text: &str, policy: UrlPolicy) -> Result<WebhookUrl, UrlError> {
    if text.contains('\\') {
        return Err(UrlError::Backslash);
    }
    parse_url(text, policy)
}

/// Judges the form of a webhook URL and takes it apart.
///
/// The WHATWG rules apply first. So `0x7f.1`, `2130706433` and `0177.0.0.1` become the IP address
/// that they stand for, and a name in Unicode becomes its punycode. Names are not resolved here:
/// attempts resolve them, and judge every address.
pub fn parse_url(text: &str, policy: UrlPolicy) -> Result<WebhookUrl, UrlError> {
    if text.chars().nth(URL_CHARACTERS_MAX).is_some() {
        return Err(UrlError::TooLong);
    }
    // The WHATWG parser drops tabs and line ends silently, so another reader of the same text could
    // see another host.
    if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(UrlError::Malformed);
    }
    let mut url = Url::parse(text).map_err(|error| match error {
        ParseError::EmptyHost => UrlError::HostMissing,
        _ => UrlError::Malformed,
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlError::SchemeNotHttps);
    }
    // The parser drops empty user information, so the text itself is searched for an `@`.
    let after_scheme =
        text.split_once(':').map_or("", |(_, rest)| rest.trim_start_matches(['/', '\\']));
    let authority = after_scheme.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
        return Err(UrlError::UserInformation);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    strip_trailing_dot(&mut url)?;

    let https = url.scheme() == "https";
    let host = judge_host(&url)?;
    let loopback_allowed = policy.loopback_allowed && is_loopback_host(&host);
    if is_loopback_host(&host) && !loopback_allowed {
        return Err(UrlError::LoopbackNotAllowed);
    }
    if !https && !loopback_allowed {
        return Err(UrlError::SchemeNotHttps);
    }
    if !loopback_allowed && !may_be_public(&host) {
        return Err(UrlError::AddressNotPublic);
    }
    let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlError::PortZero)?;
    if url.as_str().len() > URL_CHARACTERS_MAX {
        return Err(UrlError::TooLong);
    }

    let host_text = url.host_str().ok_or(UrlError::HostMissing)?;
    let authority = match url.port() {
        Some(port) => format!("{host_text}:{port}"),
        None => host_text.to_owned(),
    };
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    Ok(WebhookUrl {
        https,
        origin: format!("{}://{host_text}:{port}", url.scheme()).into(),
        authority: HeaderValue::try_from(authority).map_err(|_| UrlError::Malformed)?,
        target: PathAndQuery::try_from(target).map_err(|_| UrlError::Malformed)?,
        text: url.into(),
        host,
        port,
    })
}

/// Removes a dot at the end of the host. `example.com.` and `example.com` are one host, but only
/// the second matches a certificate (RFC 6066 section 3).
fn strip_trailing_dot(url: &mut Url) -> Result<(), UrlError> {
    let Some(stripped) = url.host_str().and_then(|host| host.strip_suffix('.')) else {
        return Ok(());
    };
    if stripped.is_empty() {
        return Err(UrlError::HostMissing);
    }
    let stripped = stripped.to_owned();
    url.set_host(Some(&stripped)).map_err(|_| UrlError::Malformed)
}

fn judge_host(url: &Url) -> Result<WebhookHost, UrlError> {
    let name = match url.host().ok_or(UrlError::HostMissing)? {
        Host::Ipv4(address) => return Ok(WebhookHost::Address(address.into())),
        Host::Ipv6(address) => return Ok(WebhookHost::Address(address.into())),
        Host::Domain(name) => name,
    };
    if name.len() > HOST_CHARACTERS_MAX {
        return Err(UrlError::HostTooLong);
    }
    let label_valid = |label: &str| {
        (1..=LABEL_CHARACTERS_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(label_valid) {
        return Err(UrlError::HostInvalid);
    }
    Ok(WebhookHost::Name(name.to_owned()))
}

fn is_loopback_host(host: &WebhookHost) -> bool {
    match host {
        WebhookHost::Name(name) => name == LOOPBACK_NAME,
        WebhookHost::Address(address) => is_loopback(*address),
    }
}

/// Whether the host can be public, as far as its text tells.
fn may_be_public(host: &WebhookHost) -> bool {
    match host {
        WebhookHost::Name(name) => name != LOOPBACK_NAME && !name.ends_with(LOOPBACK_SUFFIX),
        WebhookHost::Address(address) => is_global_unicast(*address),
    }
}

/// Whether the address is in 127.0.0.0/8 (RFC 1122 section 3.2.1.3) or the IPv4-mapped form of such
/// an address, or is ::1 (RFC 4291 section 2.5.3).
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// IPv4 blocks that are never a public receiver: first address and prefix length in bits. The
/// source is the IANA IPv4 Special-Purpose Address Registry (RFC 6890) where no other is named.
const IPV4_REFUSED: [(Ipv4Addr, u32); 17] = [
    // "This network" and the unspecified address, RFC 791 section 3.2.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private use, RFC 1918.
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared space behind carrier NAT, RFC 6598.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback, RFC 1122 section 3.2.1.3.
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Azure's platform endpoint: an address outside the private blocks that answers only inside
    // Azure's virtual networks.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local, RFC 3927. It contains 169.254.169.254, where clouds serve machine credentials.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private use, RFC 1918.
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // IETF protocol assignments, RFC 6890 section 2.1.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // TEST-NET-1, RFC 5737.
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // 6to4 relay anycast, deprecated by RFC 7526.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Private use, RFC 1918.
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarking, RFC 2544.
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // TEST-NET-2, RFC 5737.
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    // TEST-NET-3, RFC 5737.
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // MCAST-TEST-NET, RFC 6676, and all other multicast, RFC 5771.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved, RFC 1112 section 4.
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // Limited broadcast, RFC 8190.
    (Ipv4Addr::new(255, 255, 255, 255), 32),
];

/// The block that contains all IPv6 global unicast addresses that IANA has given out (RFC 3587
/// section 2 and the IANA registry of IPv6 global unicast assignments). Blocks outside it need no
/// row in [`IPV6_REFUSED`]: ::/8, the discard prefix 100::/64, local-use NAT64 64:ff9b:1::/48, SRv6
/// 5f00::/16, unique local fc00::/7 with the metadata address fd00:ec2::254, link-local fe80::/10,
/// site-local fec0::/10 and multicast ff00::/8.
const IPV6_GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks inside [`IPV6_GLOBAL`] that are never a public receiver: first address and prefix length
/// in bits.
const IPV6_REFUSED: [(Ipv6Addr, u32); 4] = [
    // IETF protocol assignments, RFC 2928. It contains Teredo 2001::/32 (RFC 4380), whose addresses
    // stand for IPv4 addresses.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation, RFC 3849.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4, RFC 3056: the packet would go on to an IPv4 address that nobody judged.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    // Documentation, RFC 9637.
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The well-known NAT64 prefix (RFC 6052 section 2.1): the last 32 bits are an IPv4 address.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether the address is global unicast, so that a webhook may be sent to it. An IPv4-mapped
/// address (RFC 4291 section 2.5.5.2) or a NAT64 address is judged by the IPv4 address inside it.
pub fn is_global_unicast(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_global_unicast_ipv4(address),
        IpAddr::V6(address) if ipv6_in(address, NAT64) => {
            // The mask leaves only the last 32 bits, so the cast loses nothing.
            is_global_unicast_ipv4(Ipv4Addr::from_bits((address.to_bits() & 0xffff_ffff) as u32))
        }
        IpAddr::V6(address) => {
            ipv6_in(address, IPV6_GLOBAL)
                && !IPV6_REFUSED.iter().any(|block| ipv6_in(address, *block))
                && !is_isatap(address)
        }
    }
}

fn is_global_unicast_ipv4(address: Ipv4Addr) -> bool {
    !IPV4_REFUSED.iter().any(|(first, prefix_bits)| {
        let shift_bits = u32::BITS - prefix_bits;
        address.to_bits() >> shift_bits == first.to_bits() >> shift_bits
    })
}

fn ipv6_in(address: Ipv6Addr, (first, prefix_bits): (Ipv6Addr, u32)) -> bool {
    let shift_bits = u128::BITS - prefix_bits;
    address.to_bits() >> shift_bits == first.to_bits() >> shift_bits
}

/// Whether the last 64 bits have the ISATAP form `0:5efe:a.b.c.d` or `200:5efe:a.b.c.d` (RFC 5214
/// section 6.1). Such an address, under any prefix, tunnels to the IPv4 address at its end.
fn is_isatap(address: Ipv6Addr) -> bool {
    const UNIVERSAL_BIT: u16 = 0x0200;
    let segments = address.segments();
    segments[4] & !UNIVERSAL_BIT == 0 && segments[5] == 0x5efe
}

#[cfg(test)]
#[path = "vet_test.rs"]
mod tests;
