//! Which network addresses share a limit.

use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that stands for its holder: the whole of an IPv4 address, even if it is
/// written as IPv6, or the first 64 bits of an IPv6 address. By RFC 6177, section 2, a site gets at
/// least a /64.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        ipv4 => ipv4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_counts_by_its_network_of_64_bits() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:0:7:1:2:3:4", "2001:db8:0:7::"),
            ("2001:db8:0:7:ffff:ffff:ffff:ffff", "2001:db8:0:7::"),
            ("2001:db8:0:8::1", "2001:db8:0:8::"),
        ] {
            let found = network_of(address.parse().unwrap());
            assert_eq!(found, network.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
