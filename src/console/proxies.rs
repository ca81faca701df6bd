//! From which address a request comes, behind reverse proxies.
//!
//! Anybody can send the header `X-Forwarded-For`. Each proxy adds, at the header's right end, the
//! address that sent it the request. The header is believed only from proxies that the settings
//! name, and read from the right. The first address that does not belong to one of these proxies is
//! the client's. What stands further left may be made up. nginx (`real_ip_recursive on`) and Rails
//! (`remote_ip`) read the header in the same way.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The addresses of proxies that are believed, each a block of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Block>);

/// The addresses whose first `prefix_bits` are those of `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    first: IpAddr,
    prefix_bits: u32,
}

impl Block {
    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or an address alone. `None` if it is neither, or has
    /// a 1 bit after its prefix: then it is unclear which block was meant.
    fn parse(text: &str) -> Option<Block> {
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => (address, Some(prefix)),
        };
        let first: IpAddr = address.parse().ok()?;
        let bits = if first.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => bits,
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().ok().filter(|prefix| *prefix <= bits)?
            }
            Some(_) => return None,
        };
        let block = Block { first, prefix_bits };
        (block.head(first) == number(first)).then_some(block)
    }

    /// An address with the bits after the prefix set to 0.
    fn head(self, address: IpAddr) -> u128 {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let behind = bits - self.prefix_bits.min(bits);
        let number = number(address);
        number.checked_shr(behind).map_or(0, |head| head << behind)
    }

    fn contains(self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && self.head(address) == number(self.first)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

impl TrustedProxies {
    /// Reads blocks with commas between them. `Err` names the one that cannot be read.
    pub fn parse(text: &str) -> Result<TrustedProxies, String> {
        let blocks = text.split(',').map(str::trim).map(|block| {
            Block::parse(block).ok_or_else(|| {
                format!(
                    "console_proxies takes addresses and blocks such as 127.0.0.1, ::1 and \
                     10.1.0.0/16, with commas between them; {block:?} is neither"
                )
            })
        });
        Ok(TrustedProxies(blocks.collect::<Result<_, _>>()?))
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|block| block.contains(address))
    }

    /// The address that a request comes from. If the peer is no trusted proxy, it is the peer's. If
    /// the peer is one, `X-Forwarded-For` is read from the right, up to the first address that
    /// belongs to no trusted proxy: that address is the client's. If the reading first comes to the
    /// header's end, or to something that is no address, the trusted proxy that was read last
    /// counts as the client.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        // Several headers count as one, in their order.
        let headers: Vec<_> = headers.get_all(X_FORWARDED_FOR).iter().rev().collect();
        let hops = headers.into_iter().flat_map(|value| value.as_bytes().rsplit(|b| *b == b','));
        for hop in hops {
            if !self.trusts(client) {
                break;
            }
            let hop = hop.trim_ascii();
            if hop.is_empty() {
                continue;
            }
            match std::str::from_utf8(hop).ok().and_then(address_of) {
                Some(address) => client = address,
                None => break,
            }
        }
        client
    }
}

impl std::fmt::Display for TrustedProxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, block) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}/{}", block.first, block.prefix_bits)?;
        }
        Ok(())
    }
}

/// An address as proxies write it: alone, in brackets, or with a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let bracketed =
        || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::from);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let found = text.parse().ok().or_else(bracketed).or_else(with_port)?;
    // A socket for IPv4 and IPv6 shows an IPv4 address as `::ffff:…`: it is the same client.
    Some(found.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(proxies: &str, peer: &str, forwarded: &[&[u8]]) -> String {
        let proxies = match proxies {
            "" => TrustedProxies::default(),
            proxies => TrustedProxies::parse(proxies).unwrap(),
        };
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(value).unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    /// Cases of nginx's `real_ip_recursive` and Rails' `remote_ip`, and of programs that got it
    /// wrong.
    #[test]
    fn the_client_is_the_rightmost_address_that_is_no_trusted_proxy() {
        const LOCAL: &str = "127.0.0.0/8, ::1";
        const CHAIN: &str = "127.0.0.1, 10.0.0.0/8, 172.16.0.0/12, fd00::/8";
        type Case<'a> = (&'a str, &'a str, &'a [&'a [u8]], &'a str);
        let cases: &[Case<'_>] = &[
            // Without the setting the header is ignored, also on loopback.
            ("", "127.0.0.1", &[b"3.4.5.6"], "127.0.0.1"),
            ("", "9.9.9.9", &[b"3.4.5.6"], "9.9.9.9"),
            // Only a named proxy is believed.
            (LOCAL, "9.9.9.9", &[b"3.4.5.6"], "9.9.9.9"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6"], "3.4.5.6"),
            (LOCAL, "::1", &[b"3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b""], "127.0.0.1"),
            // What a client sends itself stands left of what the proxy adds.
            (LOCAL, "127.0.0.1", &[b"1.1.1.1, 3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"127.0.0.1, 3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"1.1.1.1,2.2.2.2,3.4.5.6"], "3.4.5.6"),
            // Several headers are one list.
            (LOCAL, "127.0.0.1", &[b"1.1.1.1", b"3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6", b"127.0.0.1"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6", b""], "3.4.5.6"),
            // Several proxies.
            (CHAIN, "127.0.0.1", &[b"9.9.9.9, 3.4.5.6, 172.31.4.4, 10.0.0.1"], "3.4.5.6"),
            (CHAIN, "127.0.0.1", &[b"9.9.9.9, 10.0.0.1, 11.0.0.1, 10.0.0.1"], "11.0.0.1"),
            (CHAIN, "127.0.0.1", &[b"10.1.1.1, 10.0.0.1"], "10.1.1.1"),
            (CHAIN, "127.0.0.1", &[b"3.4.5.6, 172.32.0.1"], "172.32.0.1"),
            // IPv6, and IPv4 in it.
            (CHAIN, "127.0.0.1", &[b"2001:db8::7, fd00::1"], "2001:db8::7"),
            (CHAIN, "fd00::1", &[b"2001:0DB8:0:0::7"], "2001:db8::7"),
            (CHAIN, "::ffff:10.0.0.1", &[b"::ffff:3.4.5.6"], "3.4.5.6"),
            (CHAIN, "127.0.0.1", &[b"3.4.5.6, ::ffff:10.0.0.1"], "3.4.5.6"),
            (LOCAL, "::ffff:9.9.9.9", &[b"3.4.5.6"], "9.9.9.9"),
            // Ports and brackets.
            (LOCAL, "127.0.0.1", &[b"3.4.5.6:51515"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"[2001:db8::7]:443"], "2001:db8::7"),
            (LOCAL, "127.0.0.1", &[b"[2001:db8::7]"], "2001:db8::7"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6, [::1]:80"], "3.4.5.6"),
            // Blanks and empty places.
            (LOCAL, "127.0.0.1", &[b" \t3.4.5.6 \t"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6, , "], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b",,3.4.5.6,,"], "3.4.5.6"),
            // Garbage left of the client's address is not read. Garbage right of it ends the
            // reading.
            (LOCAL, "127.0.0.1", &[b"unknown, 3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"' OR 1=1, 3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"\xff\xfe", b"3.4.5.6"], "3.4.5.6"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6, unknown"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6, \xff"], "127.0.0.1"),
            (CHAIN, "127.0.0.1", &[b"3.4.5.6, _hidden, 10.0.0.1"], "10.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"localhost"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6:"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6:99999"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"3.4.5"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"03.4.5.6"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"for=3.4.5.6"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"3.4.5.6 7.8.9.10"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"fe80::1%eth0"], "127.0.0.1"),
            (LOCAL, "127.0.0.1", &[b"[2001:db8::7"], "127.0.0.1"),
            // Whoever trusts every address believes whatever the client wrote.
            ("0.0.0.0/0", "9.9.9.9", &[b"1.1.1.1, 3.4.5.6"], "1.1.1.1"),
        ];
        for (proxies, peer, forwarded, wanted) in cases.iter().copied() {
            let what =
                forwarded.iter().map(|value| String::from_utf8_lossy(value)).collect::<Vec<_>>();
            assert_eq!(client(proxies, peer, forwarded), wanted, "{proxies} {peer} {what:?}");
        }
    }

    #[test]
    fn blocks_are_read_and_shown() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1/32"),
            ("::1,10.0.0.0/8", "::1/128, 10.0.0.0/8"),
            (" 192.168.1.0/24 , fd00::/8", "192.168.1.0/24, fd00::/8"),
            ("0.0.0.0/0,::/0", "0.0.0.0/0, ::/0"),
        ] {
            assert_eq!(TrustedProxies::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "localhost",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0.0/255.0.0.0",
            "127.0.0.1:80",
            "127.0.0.1;::1",
            "127.0.0.1,",
        ] {
            let told = TrustedProxies::parse(text).unwrap_err();
            assert!(told.contains("console_proxies"), "{text}: {told}");
        }
    }
}
