//! One entry of a header that names whom a proxy saw.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Entry;

/// An entry of `X-Forwarded-For` and its kin.
///
/// There is no standard: an address, perhaps with a port, brackets, quotes or
/// a zone.
pub(super) fn address(bytes: &[u8]) -> Entry {
    node(unquoted(bytes)).map_or(Entry::Nobody, Entry::Address)
}

/// An element of `Forwarded` (RFC 7239 section 4): pairs parted by semicolons.
///
/// All of it must be grammatical. Elements are parted at commas from the right,
/// so what is cut out of the middle of a quoted string (a `host` that the
/// client chose) is not, and must not be taken for an element.
pub(super) fn forwarded(bytes: &[u8]) -> Entry {
    let mut found = Entry::Nobody;
    let mut seen = false;
    for pair in bytes.split(|byte| *byte == b';') {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else {
            return Entry::Garbage;
        };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let plain = unquoted(value);
        let quoted = plain.len() != value.len();
        let value_is_valid = if quoted {
            plain.iter().all(|byte| !matches!(byte, b'"' | b'\\'))
        } else {
            is_token(value)
        };
        if !is_token(name) || !value_is_valid {
            return Entry::Garbage;
        }
        if name.eq_ignore_ascii_case(b"for") {
            if seen {
                return Entry::Garbage;
            }
            seen = true;
            found = node(plain).map_or(Entry::Nobody, Entry::Address);
        }
    }
    found
}

/// RFC 9110 section 5.6.2; a colon too, which proxies do not quote in addresses.
fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(byte))
}

/// Without its quotes, if it has a pair.
fn unquoted(bytes: &[u8]) -> &[u8] {
    bytes
        .strip_prefix(b"\"")
        .and_then(|bytes| bytes.strip_suffix(b"\""))
        .unwrap_or(bytes)
}

/// An address with or without a port; never a v4-mapped one.
fn node(bytes: &[u8]) -> Option<IpAddr> {
    if let Some(bracketed) = bytes.strip_prefix(b"[") {
        let end = bracketed.iter().position(|byte| *byte == b']')?;
        let rest = &bracketed[end + 1..];
        let is_whole = rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port);
        return v6(&bracketed[..end]).filter(|_| is_whole);
    }
    let mut colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':');
    match (colons.next(), colons.next()) {
        (None, _) => v4(bytes),
        (Some((at, _)), None) => v4(&bytes[..at]).filter(|_| is_port(&bytes[at + 1..])),
        _ => v6(bytes),
    }
}

/// A port, or an obfuscated one (RFC 7239 section 6).
fn is_port(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"_") {
        Some(name) => !name.is_empty() && is_token(name),
        None => (1..=5).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit),
    }
}

fn v4(bytes: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn v6(bytes: &[u8]) -> Option<IpAddr> {
    let without_zone = bytes.split(|byte| *byte == b'%').next()?;
    let text = std::str::from_utf8(without_zone).ok()?;
    let ip = text.parse::<Ipv6Addr>().ok()?;
    Some(IpAddr::V6(ip).to_canonical())
}
