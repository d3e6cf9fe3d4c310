//! One entry of a header that names whom a proxy saw.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How a header's entries are written. Entries are not empty.
pub(super) trait Grammar {
    /// Whether this is an entry at all, of whatever it says.
    fn is_entry(&self, entry: &[u8]) -> bool;
    /// The address that it names; never a v4-mapped one.
    fn address(&self, entry: &[u8]) -> Option<IpAddr>;
}

/// `X-Forwarded-For` and its kin. There is no standard: an address, perhaps
/// with a port, brackets, quotes or a zone.
pub(super) struct List;

impl Grammar for List {
    fn is_entry(&self, _: &[u8]) -> bool {
        true
    }

    #[inline]
    fn address(&self, entry: &[u8]) -> Option<IpAddr> {
        v4(entry).or_else(|| node(unquoted(entry)))
    }
}

/// `Forwarded` (RFC 7239 section 4): pairs parted by semicolons.
///
/// All of an element must be grammatical. They are parted at commas from the
/// right, so what is cut out of the middle of a quoted string (a `host` that
/// the client chose) is not, and must not be taken for an element.
pub(super) struct Forwarded;

impl Grammar for Forwarded {
    fn is_entry(&self, entry: &[u8]) -> bool {
        parameter_for(entry).is_some()
    }

    fn address(&self, entry: &[u8]) -> Option<IpAddr> {
        node(parameter_for(entry)?)
    }
}

/// The value of `for`, empty if it is not there; `None` if the element is not
/// grammatical.
fn parameter_for(element: &[u8]) -> Option<&[u8]> {
    let mut found = None;
    for pair in element.split(|byte| *byte == b';') {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let plain = unquoted(value);
        let is_quoted = plain.len() != value.len();
        let is_value = if is_quoted {
            plain.iter().all(|byte| !matches!(byte, b'"' | b'\\'))
        } else {
            is_token(value)
        };
        if !is_token(name) || !is_value {
            return None;
        }
        if name.eq_ignore_ascii_case(b"for") && found.replace(plain).is_some() {
            return None;
        }
    }
    Some(found.unwrap_or_default())
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

/// Four numbers without leading zeros. (The standard library's parser reads
/// text; this is the hot path of every server behind a proxy.)
#[inline]
fn v4(bytes: &[u8]) -> Option<IpAddr> {
    let (mut address, mut octet, mut digits, mut dots) = (0_u32, 0_u32, 0_u32, 0_u32);
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            octet = octet * 10 + u32::from(digit);
            digits += 1;
            let has_leading_zero = digits > 1 && octet < 10;
            if octet > 255 || has_leading_zero {
                return None;
            }
        } else if *byte == b'.' && digits > 0 {
            address = address << 8 | octet;
            (octet, digits) = (0, 0);
            dots += 1;
        } else {
            return None;
        }
    }
    (dots == 3 && digits > 0).then(|| IpAddr::V4(Ipv4Addr::from(address << 8 | octet)))
}

fn v6(bytes: &[u8]) -> Option<IpAddr> {
    let without_zone = bytes.split(|byte| *byte == b'%').next()?;
    let text = std::str::from_utf8(without_zone).ok()?;
    let ip = text.parse::<Ipv6Addr>().ok()?;
    Some(IpAddr::V6(ip).to_canonical())
}
