//! Any bytes as what a client writes into a header that proxies append to:
//! nothing it writes makes it another client. The first byte says which header
//! and how many hops, the rest are lines of it.
#![no_main]

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use throttle_kit::client_ip::{ClientIpConfig, ClientIpSource, IpNet, resolve_client_identity};

fuzz_target!(|input: &[u8]| {
    let Some((which, text)) = input.split_first() else {
        return;
    };
    if let Ok(text) = std::str::from_utf8(text)
        && let Ok(net) = IpNet::parse(text)
    {
        assert_eq!(IpNet::parse(&net.to_string()).ok(), Some(net));
    }
    let name = match which & 3 {
        0 => HeaderName::from_static("x-forwarded-for"),
        1 => header::FORWARDED,
        _ => HeaderName::from_static("x-real-client"),
    };
    let mut headers = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(&name, value);
        }
    }
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|net| IpNet::parse(net).expect("a network"));
    let config = |hops| ClientIpConfig {
        trusted_proxies: trusted.to_vec(),
        num_trusted_hops: hops,
        trusted_header: Some(name.clone()),
    };
    let proxy: IpAddr = "10.0.0.4".parse().expect("an address");
    let client: IpAddr = "203.0.113.7".parse().expect("an address");

    // Nobody's header counts but a proxy's.
    let direct = resolve_client_identity(&headers, Some(client), &config(0)).expect("a peer");
    assert_eq!(
        (direct.ip, direct.source),
        (client, ClientIpSource::PeerSocket)
    );

    // Whatever is found is an address in its shortest form.
    let hops = usize::from(which >> 2);
    let found = resolve_client_identity(&headers, Some(proxy), &config(hops)).expect("a peer");
    assert_eq!(found.ip, found.ip.to_canonical());

    // What a proxy appends hides all that the client wrote: on a line of its
    // own, and behind a comma on the client's last line.
    let entry = if name == header::FORWARDED {
        "for=203.0.113.7"
    } else {
        "203.0.113.7"
    };
    let mut appended = headers.clone();
    appended.append(&name, HeaderValue::from_static(entry));
    let joined = headers.get_all(&name).iter().map(HeaderValue::as_bytes);
    let joined = [joined.collect::<Vec<_>>().join(&b", "[..]), entry.into()].join(&b", "[..]);
    let mut on_one_line = HeaderMap::new();
    on_one_line.append(&name, HeaderValue::from_bytes(&joined).expect("of values"));
    for headers in [appended, on_one_line] {
        let seen = resolve_client_identity(&headers, Some(proxy), &config(0)).expect("a peer");
        assert_eq!(
            (seen.ip, seen.source),
            (client, ClientIpSource::ForwardedHeader)
        );
    }
});
