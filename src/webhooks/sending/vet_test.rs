use super::*;

const PUBLIC_ONLY: UrlPolicy = UrlPolicy { loopback_allowed: false };
const LOOPBACK: UrlPolicy = UrlPolicy { loopback_allowed: true };

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

/// Judges addresses of every /16 block, among them the first and last of the refused blocks inside
/// it, and compares the results with the same rules written in a second way, which asks the
/// standard library about the blocks that the library knows.
#[test]
fn every_ipv4_block_of_65536_agrees_with_rules_written_a_second_time() {
    let is_expected_global = |address: Ipv4Addr| {
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
        let [first, second] = block.to_be_bytes();
        for third in [0, 1, 2, 3, 98, 99, 100, 101, 112, 113, 114, 129, 255] {
            for fourth in [0, 1, 16, 254, 255] {
                let address = Ipv4Addr::new(first, second, third, fourth);
                let expected = is_expected_global(address);
                assert_eq!(is_global_unicast(address.into()), expected, "{address}");
                let mapped = address.to_ipv6_mapped();
                assert_eq!(is_global_unicast(mapped.into()), expected, "{mapped}");
            }
        }
    }
}

#[test]
fn every_first_ipv6_segment_is_judged_by_the_assigned_block() {
    for first in 0..=u16::MAX {
        let address = Ipv6Addr::new(first, 0x8000, 1, 2, 3, 4, 5, 6);
        let expected = (0x2000..=0x3fff).contains(&first) && first != 0x2002;
        assert_eq!(is_global_unicast(address.into()), expected, "{address}");
    }
}

#[test]
fn loopback_includes_the_mapped_form_and_nothing_else() {
    for row in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert!(is_loopback(row.parse().unwrap()), "{row}");
    }
    for row in ["128.0.0.1", "0.0.0.0", "::", "::2", "::127.0.0.1", "8.8.8.8"] {
        assert!(!is_loopback(row.parse().unwrap()), "{row}");
    }
}

fn fault(text: &str, policy: UrlPolicy) -> Option<UrlError> {
    parse_url(text, policy).err()
}

#[test]
fn urls_that_are_refused() {
    use UrlError::*;
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
        ("http://localhost/", LoopbackNotAllowed),
        ("http://127.0.0.1/", LoopbackNotAllowed),
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
        ("https://localhost/", LoopbackNotAllowed),
        ("https://LOCALHOST./", LoopbackNotAllowed),
        ("https://hooks.localhost/", AddressNotPublic),
        ("https://127.0.0.1/", LoopbackNotAllowed),
        ("https://127.1/", LoopbackNotAllowed),
        ("https://2130706433/", LoopbackNotAllowed),
        ("https://017700000001/", LoopbackNotAllowed),
        ("https://0177.0.0.1/", LoopbackNotAllowed),
        ("https://0x7f.1/", LoopbackNotAllowed),
        ("https://0x7f.1./", LoopbackNotAllowed),
        ("https://127.0.0.1./", LoopbackNotAllowed),
        ("https://0x7f000001/", LoopbackNotAllowed),
        ("https://0/", AddressNotPublic),
        ("https://①②⑦.0.0.1/", LoopbackNotAllowed),
        ("https://127。0。0。1/", LoopbackNotAllowed),
        ("https://%31%32%37.0.0.1/", LoopbackNotAllowed),
        ("https://10.0.0.1:8443/", AddressNotPublic),
        ("https://169.254.169.254/latest/", AddressNotPublic),
        ("https://[::1]/", LoopbackNotAllowed),
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
        ("http://example.com/", UrlError::SchemeNotHttps),
        ("http://8.8.8.8/", UrlError::SchemeNotHttps),
        ("http://10.0.0.1/", UrlError::SchemeNotHttps),
        ("http://0.0.0.0/", UrlError::SchemeNotHttps),
        ("http://localhost.example.com/", UrlError::SchemeNotHttps),
        ("https://10.0.0.1/", UrlError::AddressNotPublic),
        ("https://0.0.0.0/", UrlError::AddressNotPublic),
        ("https://a.localhost/", UrlError::AddressNotPublic),
        ("http://localhost:0/", UrlError::PortZero),
        ("http://user@localhost/", UrlError::UserInformation),
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

/// With each of these characters in path and query, either the URL is refused or its target can be
/// sent.
#[test]
fn every_character_in_path_and_query_is_sendable() {
    for character in ('!'..='~').chain(['é', '✓', '\u{10ffff}']) {
        let text = format!("https://example.com/a{character}b?c{character}d");
        match parse_url(&text, PUBLIC_ONLY) {
            Ok(url) => assert!(url.target().as_str().is_ascii(), "{text}"),
            Err(fault) => assert_eq!((character, fault), ('#', UrlError::Fragment)),
        }
    }
}

#[test]
fn a_refusal_says_what_to_write_instead() {
    let said = |text, policy| parse_url(text, policy).unwrap_err().to_string();
    let refused = [
        ("https://localhost", PUBLIC_ONLY),
        ("http://127.0.0.1:4242/", PUBLIC_ONLY),
        ("https://10.0.0.1/", LOOPBACK),
    ];
    for (text, policy) in refused {
        let said = said(text, policy);
        for wanted in ["https://example.com/webhooks", "hundi listen"] {
            assert!(said.contains(wanted), "{text}: {said}");
        }
        // The advice does not name a URL that would be refused next.
        assert!(!said.contains("http://"), "{text}: {said}");
    }
    assert!(said("http://example.com/", LOOPBACK).contains("http://127.0.0.1:4242/"));
}
