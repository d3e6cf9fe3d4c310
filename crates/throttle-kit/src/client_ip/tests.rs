use std::net::IpAddr;

use http::{HeaderMap, HeaderName};

use super::*;

const PROXY: &str = "10.0.0.9";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn behind_proxy() -> ClientIpConfig {
    ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("10.0.0.0/8").unwrap()],
        num_trusted_hops: 0,
        trusted_header: None,
    }
}

fn resolve_named(config: &ClientIpConfig, name: &str, lines: &[&[u8]]) -> ResolvedClient {
    let mut headers = HeaderMap::new();
    for line in lines {
        let value = http::HeaderValue::from_bytes(line).unwrap();
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
    }
    let client = resolve_client_identity(&headers, Some(ip(PROXY)), config).unwrap();
    let of_name = |asked: &str| {
        let is_same = asked.eq_ignore_ascii_case(name);
        lines.iter().copied().filter(move |_| is_same)
    };
    let by_lines = resolve_client_identity_in(of_name, Some(ip(PROXY)), config);
    assert_eq!(by_lines, Ok(client), "{lines:?}");
    client
}

fn resolve(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
    let client = resolve_named(&behind_proxy(), "x-forwarded-for", &lines);
    client.ip.to_string()
}

fn resolve_forwarded(lines: &[&str]) -> String {
    let config = ClientIpConfig {
        trusted_header: Some(http::header::FORWARDED),
        ..behind_proxy()
    };
    let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
    resolve_named(&config, "forwarded", &lines).ip.to_string()
}

#[test]
fn an_untrusted_peer_is_the_client_whatever_it_writes() {
    let mut headers = HeaderMap::new();
    headers.insert("x-forwarded-for", "1.1.1.1".parse().unwrap());
    headers.insert("forwarded", "for=1.1.1.1".parse().unwrap());
    for config in [ClientIpConfig::default(), behind_proxy()] {
        let client = resolve_client_identity(&headers, Some(ip("192.0.2.1")), &config).unwrap();
        assert_eq!(client.ip, ip("192.0.2.1"));
        assert_eq!(client.source, ClientIpSource::PeerSocket);
    }
    let nobody = resolve_client_identity(&headers, None, &behind_proxy());
    assert_eq!(nobody, Err(MissingClientIdentity));
}

#[test]
fn every_form_of_an_entry_is_read() {
    for (entry, expected) in [
        ("203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("\"203.0.113.9:4711\"", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("\"[2001:db8::1]\"", "2001:db8::1"),
        ("\"2001:db8::1\"", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("[fe80::1%eth0]:80", "fe80::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("[::ffff:203.0.113.9]:80", "203.0.113.9"),
        ("203.0.113.9,", "203.0.113.9"),
        (" , 203.0.113.9 , ,", "203.0.113.9"),
        ("\t203.0.113.9\t", "203.0.113.9"),
    ] {
        assert_eq!(resolve(&[entry]), expected, "{entry}");
    }
}

#[test]
fn what_is_no_address_is_the_peer() {
    for entry in [
        "unknown",
        "_hidden",
        "example.com",
        "203.0.113",
        "203.0.113.9.1",
        "203.0.113.256",
        "0203.0.113.9",
        "203.0.113.9:",
        "203.0.113.9:x",
        "203.0.113.9:123456",
        "203.0.113.9:+80",
        "[2001:db8::1",
        "2001:db8::1]",
        "[2001:db8::1]x",
        "[203.0.113.9]",
        "[]",
        "\"",
        "\"\"",
        "203.0.113.9\"",
        "203.0.113.9 9",
        "",
        ",",
        "-1",
        "0x7f.1",
        "::1::",
        "%eth0",
    ] {
        assert_eq!(resolve(&[entry]), PROXY, "{entry}");
    }
    assert_eq!(resolve(&[]), PROXY);
    // Bytes that are not ASCII, which a header may carry.
    let garbage: &[u8] = b"203.0.113.9\xff";
    let client = resolve_named(&behind_proxy(), "x-forwarded-for", &[garbage]);
    assert_eq!(client.ip, ip(PROXY));
    assert_eq!(client.source, ClientIpSource::PeerSocket);
}

#[test]
fn what_the_client_wrote_is_never_reached() {
    for lines in [
        &["1.1.1.1", "203.0.113.9"][..],
        &["9.9.9.9, 203.0.113.9"],
        &["9.9.9.9", "8.8.8.8, 203.0.113.9"],
        &["10.0.0.1, 203.0.113.9"],
        &["203.0.113.9, 10.0.0.2"],
        &["9.9.9.9, 203.0.113.9", "10.0.0.2, 10.0.0.3"],
        &["\", 203.0.113.9"],
        &["9.9.9.9", "\"garbage, 203.0.113.9:1"],
    ] {
        assert_eq!(resolve(lines), "203.0.113.9", "{lines:?}");
    }
    // A chain of our own machines only: the first of them.
    assert_eq!(resolve(&["10.0.0.1, 10.0.0.2"]), "10.0.0.1");
}

#[test]
fn hops_are_skipped_from_the_right() {
    let config = ClientIpConfig {
        num_trusted_hops: 1,
        ..behind_proxy()
    };
    let resolve = |lines: &[&[u8]]| resolve_named(&config, "x-forwarded-for", lines);
    assert_eq!(
        resolve(&[b"203.0.113.7, 198.51.100.1"]).ip,
        ip("203.0.113.7")
    );
    assert_eq!(
        resolve(&[b"9.9.9.9, 203.0.113.7", b"unknown"]).ip,
        ip("203.0.113.7")
    );
    // Too short a chain, however many lines.
    assert_eq!(resolve(&[b"203.0.113.7"]).ip, ip(PROXY));
    assert_eq!(resolve(&[b"203.0.113.7", b","]).ip, ip(PROXY));
    let endless = ClientIpConfig {
        num_trusted_hops: usize::MAX,
        ..behind_proxy()
    };
    let client = resolve_named(&endless, "x-forwarded-for", &[b"1.1.1.1"]);
    assert_eq!(client.ip, ip(PROXY));
}

#[test]
fn a_dedicated_header_is_read_instead() {
    let config = ClientIpConfig {
        trusted_header: Some(HeaderName::from_static("cf-connecting-ip")),
        ..behind_proxy()
    };
    let client = resolve_named(&config, "cf-connecting-ip", &[b"2001:db8::7"]);
    assert_eq!(client.ip, ip("2001:db8::7"));
    assert_eq!(client.source, ClientIpSource::ForwardedHeader);
    // And no other: what nobody strips, nobody may be believed about.
    let client = resolve_named(&config, "x-forwarded-for", &[b"1.1.1.1"]);
    assert_eq!(client.ip, ip(PROXY));
}

#[test]
fn forwarded_is_read_by_its_grammar() {
    for (line, expected) in [
        ("for=203.0.113.9", "203.0.113.9"),
        ("For=\"203.0.113.9:47\"", "203.0.113.9"),
        ("for=203.0.113.9:47", "203.0.113.9"),
        (
            "for=1.1.1.1, for=\"[2001:db8::9]:80\";proto=https",
            "2001:db8::9",
        ),
        ("proto=http;FOR=203.0.113.9;by=10.0.0.1", "203.0.113.9"),
        ("for=203.0.113.9 ; proto=https", "203.0.113.9"),
        ("for=203.0.113.9, for=10.0.0.2", "203.0.113.9"),
        ("for=\"203.0.113.9:_port\"", "203.0.113.9"),
        ("for=9.9.9.9;x=\", for=203.0.113.9", "203.0.113.9"),
        // Not an address, or not grammatical: the peer.
        ("for=unknown", PROXY),
        ("for=_secret", PROXY),
        ("proto=https", PROXY),
        ("for=1.1.1.1;for=2.2.2.2", PROXY),
        ("for=1.1.1.1;", PROXY),
        ("for", PROXY),
        ("for=", PROXY),
        ("1.1.1.1", PROXY),
    ] {
        assert_eq!(resolve_forwarded(&[line]), expected, "{line}");
    }
    assert_eq!(
        resolve_forwarded(&["for=1.1.1.1", "for=203.0.113.9"]),
        "203.0.113.9"
    );
}

#[test]
fn a_comma_in_a_quoted_host_makes_no_element() {
    for line in [
        "for=203.0.113.9;host=\"evil,for=9.9.9.9\"",
        "for=203.0.113.9;host=\"evil,for=9.9.9.9;x=\"",
        "for=203.0.113.9;host=\"evil,for=9.9.9.9;x=y\"",
        "for=203.0.113.9;host=\"evil,for=9.9.9.9;x=\\\"\"",
        "for=203.0.113.9;host=\"evil,for=\\\"9.9.9.9\\\"\"",
        "for=203.0.113.9;host=\"evil,for=9.9.9.9;x=\\\"y\\\"\"",
    ] {
        assert_eq!(resolve_forwarded(&[line]), PROXY, "{line}");
    }
}

#[test]
fn ipv6_is_grouped_and_v4_is_not() {
    let client = |text| ResolvedClient {
        ip: ip(text),
        source: ClientIpSource::PeerSocket,
    };
    let one = client("2001:db8:1:2:3:4:5:6");
    assert_eq!(one.group(64), ip("2001:db8:1:2::"));
    assert_eq!(one.group(48), ip("2001:db8:1::"));
    assert_eq!(one.group(128), one.ip);
    assert_eq!(one.group(255), one.ip);
    assert_eq!(one.group(0), ip("::"));
    assert_eq!(client("203.0.113.9").group(0), ip("203.0.113.9"));
    // A dual-stack socket's peer is the same client.
    let headers = HeaderMap::new();
    let config = ClientIpConfig::default();
    let mapped = resolve_client_identity(&headers, Some(ip("::ffff:1.2.3.4")), &config);
    assert_eq!(mapped.unwrap().ip, ip("1.2.3.4"));
}

proptest::proptest! {
    /// Whatever a client writes to the left of what a trusted proxy appended.
    #[test]
    fn no_text_to_the_left_changes_the_client(
        left in proptest::collection::vec("[ -~\t]{0,40}", 0..4),
        same_line in "[ -~\t]{0,40}",
    ) {
        let mut lines: Vec<&str> = left.iter().map(String::as_str).collect();
        let last = format!("{same_line}, 203.0.113.9");
        lines.push(&last);
        proptest::prop_assert_eq!(resolve(&lines), "203.0.113.9");
        let last = format!("{same_line}, for=203.0.113.9");
        *lines.last_mut().unwrap() = &last;
        proptest::prop_assert_eq!(resolve_forwarded(&lines), "203.0.113.9");
    }
}
