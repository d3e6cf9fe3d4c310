//! Who is calling, by `X-Forwarded-For` with two addresses of version 4.

use std::hint::black_box;
use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Request};
use throttle_kit::client_ip::{self, ClientIpConfig, IpNet};
use throttle_kit_registry::client_ip as registry_ip;
use tower_governor::key_extractor::{KeyExtractor, SmartIpKeyExtractor};

use crate::works::{Work, repeat};

const PEER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9)));
const PROXIES: &str = "10.0.0.0/8";

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    let chain = HeaderValue::from_static("203.0.113.7, 10.0.0.254");
    headers.insert("x-forwarded-for", chain);
    headers
}

pub fn ours() -> Work {
    let config = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse(PROXIES).expect("a network")],
        num_trusted_hops: 1,
        trusted_header: None,
    };
    let headers = headers();
    repeat(move || {
        let client = client_ip::resolve_client_identity(black_box(&headers), PEER, &config);
        assert!(black_box(client).is_ok());
    })
}

pub fn registry() -> Work {
    let config = registry_ip::ClientIpConfig {
        trusted_proxies: vec![registry_ip::IpNet::parse(PROXIES).expect("a network")],
        num_trusted_hops: 1,
        trusted_header: None,
    };
    let headers = headers();
    repeat(move || {
        let client = registry_ip::resolve_client_identity(black_box(&headers), PEER, &config);
        assert!(black_box(client).is_ok());
    })
}

/// Takes the first address, whoever wrote it.
pub fn governor() -> Work {
    let mut request = Request::new(());
    *request.headers_mut() = headers();
    repeat(move || {
        let client = SmartIpKeyExtractor.extract(black_box(&request));
        assert!(black_box(client).is_ok());
    })
}
