//! Judges webhook addresses: the form of a URL when it is registered, and every IP address before
//! a connection to it is opened, so that no delivery reaches an inner network.

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

/// Names below this suffix are loopback by RFC 6761 section 6.3; no public receiver has one.
const LOOPBACK_SUFFIX: &str = ".localhost";

/// What the mode and the operator permit beyond public https addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlPolicy {
    /// Permits http and https to 127.0.0.0/8, ::1 and `localhost`; to be set only in test mode
    /// and only when the operator allows it.
    pub loopback_http_allowed: bool,
}

/// Why a webhook URL is refused; the text tells the caller what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Longer than [`URL_CHARACTERS_MAX`] as given or once normalised.
    #[error("Use a URL of at most {URL_CHARACTERS_MAX} characters.")]
    TooLong,
    /// Not a URL, or one with blanks or control characters in it.
    #[error("Use an absolute URL such as https://example.com/webhooks, without blanks.")]
    Malformed,
    /// A scheme other than https, or http where it is not permitted.
    #[error("Use an https URL.")]
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
    /// A host name with an empty or overlong label or a character that names do not have.
    #[error("Use a host name whose labels are 1 to 63 letters, digits, hyphens or underscores.")]
    HostInvalid,
    /// Port 0.
    #[error("Use a port from 1 to 65535, or none.")]
    PortZero,
    /// A host that is certain to be no public address.
    #[error("Use a host with a public address; this one is local, private or reserved.")]
    AddressNotPublic,
}

/// The host of a webhook URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookHost {
    /// A name in ASCII (punycode where needed), lower case, without a trailing dot; not resolved.
    Name(String),
    /// An IP literal that [`parse_url`] found acceptable under its policy.
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

    /// Whether the scheme is https; otherwise it is http to a loopback host.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// The host, a name or an IP literal.
    pub fn host(&self) -> &WebhookHost {
        &self.host
    }

    /// The port to connect to, the scheme's own where the URL names none; never 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `scheme://host:port` with the port always written: equal for URLs that may share a
    /// connection (RFC 9110 section 4.3.1).
    pub fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// The value of the `Host` header (RFC 9110 section 7.2): no port where it is the scheme's own.
    pub fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    /// The request target in origin form, path and query (RFC 9112 section 3.2.1).
    pub fn target(&self) -> &PathAndQuery {
        &self.target
    }
}

/// Judges the form of a webhook URL and takes it apart.
///
/// The WHATWG rules apply first, so that `0x7f.1`, `2130706433` and `0177.0.0.1` are the IP address
/// they stand for and a name in Unicode is its punycode. Names are not resolved: each attempt does
/// that and judges every address again.
pub fn parse_url(text: &str, policy: UrlPolicy) -> Result<WebhookUrl, UrlFault> {
    if text.chars().nth(URL_CHARACTERS_MAX).is_some() {
        return Err(UrlFault::TooLong);
    }
    // The WHATWG parser drops tabs and line ends silently, and another reader of the same text
    // could then see another host.
    if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(UrlFault::Malformed);
    }
    let mut url = Url::parse(text).map_err(|error| match error {
        ParseError::EmptyHost => UrlFault::HostMissing,
        _ => UrlFault::Malformed,
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlFault::SchemeNotHttps);
    }
    // The parser forgets user information that is empty.
    let after_scheme =
        text.split_once(':').map_or("", |(_, rest)| rest.trim_start_matches(['/', '\\']));
    let authority = after_scheme.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
        return Err(UrlFault::UserInformation);
    }
    if url.fragment().is_some() {
        return Err(UrlFault::Fragment);
    }
    strip_trailing_dot(&mut url)?;

    let https = url.scheme() == "https";
    let host = judge_host(&url)?;
    let loopback_allowed = policy.loopback_http_allowed && is_loopback_host(&host);
    if !https && !loopback_allowed {
        return Err(UrlFault::SchemeNotHttps);
    }
    if !loopback_allowed && !may_be_public(&host) {
        return Err(UrlFault::AddressNotPublic);
    }
    let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlFault::PortZero)?;
    if url.as_str().len() > URL_CHARACTERS_MAX {
        return Err(UrlFault::TooLong);
    }

    let host_text = url.host_str().ok_or(UrlFault::HostMissing)?;
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
        authority: HeaderValue::try_from(authority).map_err(|_| UrlFault::Malformed)?,
        target: PathAndQuery::try_from(target).map_err(|_| UrlFault::Malformed)?,
        text: url.into(),
        host,
        port,
    })
}

/// `example.com.` and `example.com` are one host, but only the latter matches a certificate
/// (RFC 6066 section 3).
fn strip_trailing_dot(url: &mut Url) -> Result<(), UrlFault> {
    let Some(stripped) = url.host_str().and_then(|host| host.strip_suffix('.')) else {
        return Ok(());
    };
    if stripped.is_empty() {
        return Err(UrlFault::HostMissing);
    }
    let stripped = stripped.to_owned();
    url.set_host(Some(&stripped)).map_err(|_| UrlFault::Malformed)
}

fn judge_host(url: &Url) -> Result<WebhookHost, UrlFault> {
    let name = match url.host().ok_or(UrlFault::HostMissing)? {
        Host::Ipv4(address) => return Ok(WebhookHost::Address(address.into())),
        Host::Ipv6(address) => return Ok(WebhookHost::Address(address.into())),
        Host::Domain(name) => name,
    };
    if name.len() > HOST_CHARACTERS_MAX {
        return Err(UrlFault::HostTooLong);
    }
    let label_valid = |label: &str| {
        (1..=LABEL_CHARACTERS_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(label_valid) {
        return Err(UrlFault::HostInvalid);
    }
    Ok(WebhookHost::Name(name.to_owned()))
}

fn is_loopback_host(host: &WebhookHost) -> bool {
    match host {
        WebhookHost::Name(name) => name == LOOPBACK_NAME,
        WebhookHost::Address(address) => is_loopback(*address),
    }
}

/// Whether the host can be public as far as its text tells.
fn may_be_public(host: &WebhookHost) -> bool {
    match host {
        WebhookHost::Name(name) => name != LOOPBACK_NAME && !name.ends_with(LOOPBACK_SUFFIX),
        WebhookHost::Address(address) => is_global_unicast(*address),
    }
}

/// Whether the address is in 127.0.0.0/8 (RFC 1122 section 3.2.1.3), is ::1 (RFC 4291 section
/// 2.5.3), or is the IPv4-mapped form of the former.
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
    // Azure's platform endpoint: a public number that answers only inside its virtual networks.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local, RFC 3927; holds 169.254.169.254, where clouds serve machine credentials.
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

/// All IPv6 global unicast that IANA has given out (RFC 3587 section 2 and the IANA registry of
/// IPv6 global unicast assignments). What is outside needs no row in [`IPV6_REFUSED`]: ::/8, the
/// discard prefix 100::/64, local-use NAT64 64:ff9b:1::/48, SRv6 5f00::/16, unique local fc00::/7
/// with the metadata address fd00:ec2::254, link-local fe80::/10, site-local fec0::/10 and
/// multicast ff00::/8.
const IPV6_GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks inside [`IPV6_GLOBAL`] that are never a public receiver: first address and prefix length
/// in bits.
const IPV6_REFUSED: [(Ipv6Addr, u32); 4] = [
    // IETF protocol assignments, RFC 2928; Teredo 2001::/32 (RFC 4380), which hides an IPv4
    // address, is inside.
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

/// Whether a webhook may be sent to this address: global unicast and nothing else, strictly. An
/// IPv4-mapped (RFC 4291 section 2.5.5.2) or NAT64 address is judged as the IPv4 address inside.
pub fn is_global_unicast(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_global_unicast_ipv4(address),
        IpAddr::V6(address) if ipv6_in(address, NAT64) => {
            // The mask leaves exactly the last 32 bits, so the cast loses nothing.
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

/// Whether the interface identifier has the ISATAP form `[200]:5efe:a.b.c.d` (RFC 5214 section
/// 6.1): under any prefix it tunnels to the IPv4 address at its end.
fn is_isatap(address: Ipv6Addr) -> bool {
    const UNIVERSAL_BIT: u16 = 0x0200;
    let segments = address.segments();
    segments[4] & !UNIVERSAL_BIT == 0 && segments[5] == 0x5efe
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC_ONLY: UrlPolicy = UrlPolicy { loopback_http_allowed: false };
    const LOOPBACK: UrlPolicy = UrlPolicy { loopback_http_allowed: true };

    fn global(text: &str) -> bool {
        is_global_unicast(text.parse().unwrap())
    }

    #[test]
    fn addresses_that_are_refused() {
        let rows = [
            "0.0.0.0",
            "0.0.0.1",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.0",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.8",
            "192.0.0.192",
            "192.0.0.255",
            "192.0.2.0",
            "192.0.2.255",
            "192.88.99.0",
            "192.88.99.255",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.0",
            "198.51.100.255",
            "203.0.113.0",
            "203.0.113.255",
            "224.0.0.1",
            "233.252.0.1",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.254",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "::ffff:0:0",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:192.168.1.1",
            "::ffff:255.255.255.255",
            "::ffff:0:8.8.8.8",
            "64:ff9b::",
            "64:ff9b::10.1.2.3",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::1:8.8.8.8",
            "64:ff9b:0:1::8.8.8.8",
            "64:ff9b:1::",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
            "64:ff9b:2::8.8.8.8",
            "100::",
            "100::1",
            "100:0:0:1::1",
            "200::1",
            "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001::",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:1::1",
            "2001:2::1",
            "2001:3::1",
            "2001:4:112::1",
            "2001:10::1",
            "2001:20::1",
            "2001:30::1",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2002::1",
            "2002:808:808::1",
            "2002:7f00:1::1",
            "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            "4000::",
            "5f00::1",
            "5fff::1",
            "8000::1",
            "e000::1",
            "fbff::1",
            "fc00::",
            "fd00::1",
            "fd00:ec2::254",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "fe00::1",
            "fe80::1",
            "fe80::5efe:8.8.8.8",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "fec0::1",
            "feff::1",
            "ff00::",
            "ff02::1",
            "ff0e::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::5efe:8.8.8.8",
            "2606:4700::200:5efe:8.8.8.8",
            "2606:4700:1:2:0:5efe:c0a8:101",
            "2606:4700:1:2:200:5efe:c0a8:101",
        ];
        for row in rows {
            assert!(!global(row), "{row} must be refused");
        }
    }

    #[test]
    fn addresses_that_are_accepted() {
        let rows = [
            "1.0.0.0",
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::1",
            "2003::1",
            "2400:cb00::1",
            "2606:4700:4700::1111",
            "2606:4700::1:5efe:808:808",
            "2606:4700::300:5efe:808:808",
            "2a00:1450:4001::1",
            "3ffe::1",
            "3fff:1000::1",
            "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ];
        for row in rows {
            assert!(global(row), "{row} must be accepted");
        }
    }

    /// Walks one address of every /16 and around every block edge, and compares with the
    /// registry's blocks written a second way, through the standard library where it has them.
    #[test]
    fn every_ipv4_block_of_65536_agrees_with_a_second_writing() {
        let second = |address: Ipv4Addr| {
            let [first, second, third, _] = address.octets();
            let refused = first == 0
                || address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_multicast()
                || first >= 240
                || (first == 100 && second & 0xc0 == 64)
                || (first == 198 && second & 0xfe == 18)
                || (first == 192 && second == 0 && third == 0)
                || (first == 192 && second == 88 && third == 99)
                || address == Ipv4Addr::new(168, 63, 129, 16);
            !refused
        };
        for block in 0..=u16::MAX {
            let [first, second_octet] = block.to_be_bytes();
            for third in [0, 1, 2, 3, 98, 99, 100, 101, 112, 113, 114, 129, 255] {
                for fourth in [0, 1, 16, 254, 255] {
                    let address = Ipv4Addr::new(first, second_octet, third, fourth);
                    let expected = second(address);
                    assert_eq!(is_global_unicast(address.into()), expected, "{address}");
                    let mapped = address.to_ipv6_mapped();
                    assert_eq!(is_global_unicast(mapped.into()), expected, "{mapped}");
                }
            }
        }
    }

    #[test]
    fn every_first_ipv6_segment_is_judged_by_the_assigned_third() {
        for first in 0..=u16::MAX {
            let address = Ipv6Addr::new(first, 0x8000, 1, 2, 3, 4, 5, 6);
            let expected = (0x2000..=0x3fff).contains(&first) && first != 0x2002;
            assert_eq!(is_global_unicast(address.into()), expected, "{address}");
        }
    }

    #[test]
    fn loopback_holds_the_mapped_form_and_nothing_else() {
        for row in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(row.parse().unwrap()), "{row}");
        }
        for row in ["128.0.0.1", "0.0.0.0", "::", "::2", "::127.0.0.1", "8.8.8.8"] {
            assert!(!is_loopback(row.parse().unwrap()), "{row}");
        }
    }

    fn fault(text: &str, policy: UrlPolicy) -> Option<UrlFault> {
        parse_url(text, policy).err()
    }

    #[test]
    fn urls_that_are_refused() {
        use UrlFault::*;
        let label_long = format!("https://{}.example.com/", "a".repeat(64));
        let host_long = format!("https://{}example.com/", "a.".repeat(122));
        let url_long = format!("https://example.com/{}", "a".repeat(2029));
        let normalised_long = format!("https://example.com/{}", "é".repeat(400));
        let rows = [
            ("", Malformed),
            ("example.com/hook", Malformed),
            ("/hook", Malformed),
            ("//example.com/hook", Malformed),
            ("https://", HostMissing),
            ("https://./", HostMissing),
            ("https:///", HostMissing),
            ("https://exa mple.com/", Malformed),
            (" https://example.com/", Malformed),
            ("https://example.com/\n", Malformed),
            ("https://exam\tple.com/", Malformed),
            ("https://example.com/\u{0}", Malformed),
            ("https://example.com:99999/", Malformed),
            ("https://example.com:port/", Malformed),
            ("https://[::1/", Malformed),
            ("https://1.2.3.4.5/", Malformed),
            ("https://256.1.1.1/", Malformed),
            ("http://example.com/", SchemeNotHttps),
            ("http://8.8.8.8/", SchemeNotHttps),
            ("http://localhost/", SchemeNotHttps),
            ("http://127.0.0.1/", SchemeNotHttps),
            ("ftp://example.com/", SchemeNotHttps),
            ("file:///etc/passwd", SchemeNotHttps),
            ("javascript:alert(1)", SchemeNotHttps),
            ("gopher://127.0.0.1/", SchemeNotHttps),
            ("wss://example.com/", SchemeNotHttps),
            ("https://user@example.com/", UserInformation),
            ("https://@example.com/", UserInformation),
            ("https://:@example.com/", UserInformation),
            ("https:\\\\@example.com/", UserInformation),
            ("https://user:pass@example.com/", UserInformation),
            ("https://:pass@example.com/", UserInformation),
            ("https://example.com@8.8.8.8/", UserInformation),
            ("https://example.com/#", Fragment),
            ("https://example.com/hook#part", Fragment),
            ("https://example.com:0/", PortZero),
            ("https://example..com/", HostInvalid),
            ("https://example.com../", HostInvalid),
            ("https://*.example.com/", HostInvalid),
            ("https://exa!mple.com/", HostInvalid),
            (&label_long, HostInvalid),
            (&host_long, HostTooLong),
            (&url_long, TooLong),
            (&normalised_long, TooLong),
            ("https://localhost/", AddressNotPublic),
            ("https://LOCALHOST./", AddressNotPublic),
            ("https://hooks.localhost/", AddressNotPublic),
            ("https://127.0.0.1/", AddressNotPublic),
            ("https://127.1/", AddressNotPublic),
            ("https://2130706433/", AddressNotPublic),
            ("https://017700000001/", AddressNotPublic),
            ("https://0177.0.0.1/", AddressNotPublic),
            ("https://0x7f.1/", AddressNotPublic),
            ("https://0x7f.1./", AddressNotPublic),
            ("https://127.0.0.1./", AddressNotPublic),
            ("https://0x7f000001/", AddressNotPublic),
            ("https://0/", AddressNotPublic),
            ("https://①②⑦.0.0.1/", AddressNotPublic),
            ("https://127。0。0。1/", AddressNotPublic),
            ("https://%31%32%37.0.0.1/", AddressNotPublic),
            ("https://10.0.0.1:8443/", AddressNotPublic),
            ("https://169.254.169.254/latest/", AddressNotPublic),
            ("https://[::1]/", AddressNotPublic),
            ("https://[::]/", AddressNotPublic),
            ("https://[::ffff:10.0.0.1]/", AddressNotPublic),
            ("https://[fd00:ec2::254]/", AddressNotPublic),
            ("https://[64:ff9b::7f00:1]/", AddressNotPublic),
        ];
        for (text, expected) in rows {
            assert_eq!(fault(text, PUBLIC_ONLY), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_loopback_policy_opens_loopback_only() {
        let opened = [
            "http://localhost/",
            "http://LocalHost.:8080/hook",
            "https://localhost/",
            "http://127.0.0.1:3000/hook",
            "https://127.255.0.1/",
            "http://2130706433/",
            "http://[::1]:9000/",
            "http://[::ffff:127.0.0.1]/",
        ];
        for text in opened {
            assert_eq!(fault(text, LOOPBACK), None, "{text}");
            assert!(fault(text, PUBLIC_ONLY).is_some(), "{text}");
        }
        let closed = [
            ("http://example.com/", UrlFault::SchemeNotHttps),
            ("http://8.8.8.8/", UrlFault::SchemeNotHttps),
            ("http://10.0.0.1/", UrlFault::SchemeNotHttps),
            ("http://0.0.0.0/", UrlFault::SchemeNotHttps),
            ("http://localhost.example.com/", UrlFault::SchemeNotHttps),
            ("https://10.0.0.1/", UrlFault::AddressNotPublic),
            ("https://0.0.0.0/", UrlFault::AddressNotPublic),
            ("https://a.localhost/", UrlFault::AddressNotPublic),
            ("http://localhost:0/", UrlFault::PortZero),
            ("http://user@localhost/", UrlFault::UserInformation),
        ];
        for (text, expected) in closed {
            assert_eq!(fault(text, LOOPBACK), Some(expected), "{text}");
        }
        assert_eq!(fault("https://example.com/", LOOPBACK), None);
    }

    #[test]
    fn an_accepted_url_is_normalised_and_taken_apart() {
        struct Row {
            given: &'static str,
            text: &'static str,
            host: &'static str,
            port: u16,
            origin: &'static str,
            authority: &'static str,
            target: &'static str,
        }
        let rows = [
            Row {
                given: "HTTPS://Example.COM.",
                text: "https://example.com/",
                host: "example.com",
                port: 443,
                origin: "https://example.com:443",
                authority: "example.com",
                target: "/",
            },
            Row {
                given: "https://example.com:443/a/../b?x=`1`&y={z}|",
                text: "https://example.com/b?x=`1`&y={z}|",
                host: "example.com",
                port: 443,
                origin: "https://example.com:443",
                authority: "example.com",
                target: "/b?x=`1`&y={z}|",
            },
            Row {
                given: "https://bücher.example:8443/grüße",
                text: "https://xn--bcher-kva.example:8443/gr%C3%BC%C3%9Fe",
                host: "xn--bcher-kva.example",
                port: 8443,
                origin: "https://xn--bcher-kva.example:8443",
                authority: "xn--bcher-kva.example:8443",
                target: "/gr%C3%BC%C3%9Fe",
            },
            Row {
                given: "https://[2606:4700:4700:0::1111]:80/?",
                text: "https://[2606:4700:4700::1111]:80/?",
                host: "2606:4700:4700::1111",
                port: 80,
                origin: "https://[2606:4700:4700::1111]:80",
                authority: "[2606:4700:4700::1111]:80",
                target: "/?",
            },
            Row {
                given: "https://0x08080808/",
                text: "https://8.8.8.8/",
                host: "8.8.8.8",
                port: 443,
                origin: "https://8.8.8.8:443",
                authority: "8.8.8.8",
                target: "/",
            },
        ];
        for row in rows {
            let url = parse_url(row.given, PUBLIC_ONLY).unwrap();
            assert_eq!(url.as_str(), row.text);
            let host = match url.host() {
                WebhookHost::Name(name) => name.clone(),
                WebhookHost::Address(address) => address.to_string(),
            };
            assert_eq!(host, row.host);
            assert_eq!(url.port(), row.port);
            assert_eq!(&**url.origin(), row.origin);
            assert_eq!(url.authority(), row.authority);
            assert_eq!(url.target(), row.target);
            assert!(url.is_https());
            let again = parse_url(url.as_str(), PUBLIC_ONLY).unwrap();
            assert_eq!(again.as_str(), url.as_str());
        }
        assert!(!parse_url("http://localhost/", LOOPBACK).unwrap().is_https());
    }

    #[test]
    fn the_longest_forms_are_accepted() {
        let url = format!("https://example.com/{}", "a".repeat(2028));
        assert_eq!(url.len(), URL_CHARACTERS_MAX);
        assert_eq!(fault(&url, PUBLIC_ONLY), None);
        let host = format!("{}{}", "a.".repeat(121), "example.com");
        assert_eq!(host.len(), HOST_CHARACTERS_MAX);
        assert_eq!(fault(&format!("https://{host}./"), PUBLIC_ONLY), None);
        let label = "a".repeat(LABEL_CHARACTERS_MAX);
        assert_eq!(fault(&format!("https://{label}.com/"), PUBLIC_ONLY), None);
    }

    /// Whatever printable character stands in path or query, the URL is refused or its target can
    /// be sent: there is no third case at delivery time.
    #[test]
    fn every_character_in_path_and_query_is_sendable() {
        for character in ('!'..='~').chain(['é', '✓', '\u{10ffff}']) {
            let text = format!("https://example.com/a{character}b?c{character}d");
            match parse_url(&text, PUBLIC_ONLY) {
                Ok(url) => assert!(url.target().as_str().is_ascii(), "{text}"),
                Err(fault) => assert_eq!((character, fault), ('#', UrlFault::Fragment)),
            }
        }
    }
}
