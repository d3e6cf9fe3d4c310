//! Whose budget a call is taken from.

use std::net::IpAddr;
use std::sync::Arc;

use quill_core::{Peer, RequestParts};
use throttle_kit::client_ip::{IPV6_PREFIX_DEFAULT, resolve_client_identity_in};
use throttle_kit::{ClientIpConfig, KeyBuf, Kind};

use crate::middleware::auth::Identity;

type Function = Arc<dyn Fn(&RequestParts) -> Option<String> + Send + Sync>;

/// One thing by which budgets differ.
#[derive(Clone)]
pub(super) enum Part {
    Client(ClientIpConfig),
    Identity(ClientIpConfig),
    Method,
    Of(Function),
}

/// What a call is not limited by this layer at all.
pub(super) struct NotLimited;

/// The key of a call: of each part its kind's letter, its length and its bytes, as
/// keys of several parts are written in stores.
pub(super) fn key(parts: &[Part], request: &RequestParts) -> Result<KeyBuf, NotLimited> {
    let mut key = KeyBuf::new();
    for part in parts {
        match part {
            Part::Client(config) => put_client(config, request, &mut key),
            Part::Identity(config) => match request.extensions.get::<Identity>() {
                Some(identity) => put(Kind::Bytes, identity.subject().as_bytes(), &mut key),
                // Who says nothing of themselves is known by their address.
                None => put_client(config, request, &mut key),
            },
            Part::Method => {
                let path = request.method.as_ref().map_or("", |method| method.path());
                put(Kind::Bytes, path.as_bytes(), &mut key);
            }
            Part::Of(function) => {
                let of = function(request).ok_or(NotLimited)?;
                put(Kind::Bytes, of.as_bytes(), &mut key);
            }
        }
    }
    Ok(key)
}

/// Clients without an address (on Unix sockets) are one client.
fn put_client(config: &ClientIpConfig, request: &RequestParts, key: &mut KeyBuf) {
    let peer = request.peer.as_ref().and_then(Peer::address);
    let lines = |name| request.metadata.all(name);
    match resolve_client_identity_in(lines, peer.map(|address| address.ip()), config) {
        Ok(client) => match client.group(IPV6_PREFIX_DEFAULT) {
            IpAddr::V4(ip) => put(Kind::Ip, &ip.octets(), key),
            IpAddr::V6(ip) => put(Kind::Ip, &ip.octets(), key),
        },
        Err(_) => put(Kind::Ip, &[], key),
    }
}

fn put(kind: Kind, bytes: &[u8], key: &mut KeyBuf) {
    // A header is far from 4 GiB long.
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    key.extend(&[kind.letter()]);
    key.extend(&len.to_be_bytes());
    key.extend(bytes);
}

#[cfg(test)]
mod tests {
    use quill_core::HttpVersion;

    use super::*;

    fn from(address: &str) -> RequestParts {
        let mut parts = RequestParts::default();
        let address = Some(address.parse().unwrap());
        parts.peer = Some(Peer::new(address, HttpVersion::Http2));
        parts
    }

    fn key_of(parts: &[Part], request: &RequestParts) -> Vec<u8> {
        let key = key(parts, request).ok().expect("it is limited");
        key.as_ref().to_vec()
    }

    #[test]
    fn ports_do_not_tell_clients_apart_nor_addresses_of_one_network() {
        let client = [Part::Client(ClientIpConfig::default())];
        let key = |address| key_of(&client, &from(address));
        assert_eq!(key("192.0.2.1:1"), key("192.0.2.1:2"));
        assert_eq!(key("192.0.2.1:1"), key("[::ffff:192.0.2.1]:1"));
        assert_ne!(key("192.0.2.1:1"), key("192.0.2.2:1"));
        assert_eq!(key("[2001:db8::1]:1"), key("[2001:db8::2]:1"));
        assert_ne!(key("[2001:db8::1]:1"), key("[2001:db8:0:1::1]:1"));
        assert_eq!(key_of(&client, &RequestParts::default()), *b"a\0\0\0\0");
    }

    #[test]
    fn who_is_known_has_a_budget_and_others_have_that_of_their_address() {
        let by_identity = [Part::Identity(ClientIpConfig::default())];
        let mut ann = from("192.0.2.1:1");
        ann.extensions.insert(Identity::new("ann"));
        assert_eq!(key_of(&by_identity, &ann), *b"b\0\0\0\x03ann");
        let nobody = key_of(&by_identity, &from("192.0.2.1:1"));
        let client = [Part::Client(ClientIpConfig::default())];
        assert_eq!(nobody, key_of(&client, &from("192.0.2.1:2")));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |text: &'static str| Part::Of(Arc::new(move |_| Some(text.to_owned())));
        let none = RequestParts::default();
        let one = key_of(&[of("ab"), of("c")], &none);
        assert_ne!(one, key_of(&[of("a"), of("bc")], &none));
        let not_limited = Part::Of(Arc::new(|_| None));
        assert!(key(&[of("a"), not_limited], &none).is_err());
    }
}
