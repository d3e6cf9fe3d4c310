//! Who is calling, behind proxies or not.
//!
//! A client's address is the usual key of a limit, and what a client writes
//! into a header is not: whoever believes `X-Forwarded-For` blindly gives each
//! request a budget of its own. So, by default, nothing but the socket's peer
//! address counts. Behind proxies, say which ones may be believed:
//!
//! ```
//! use throttle_kit::client_ip::{ClientIpConfig, IpNet, resolve_client_identity};
//!
//! let config = ClientIpConfig {
//!     trusted_proxies: vec![IpNet::parse("10.0.0.0/8").unwrap()],
//!     ..ClientIpConfig::default()
//! };
//! let mut headers = http::HeaderMap::new();
//! // The client wrote 9.9.9.9; our proxy appended the address it saw.
//! headers.insert("x-forwarded-for", "9.9.9.9, 203.0.113.7".parse().unwrap());
//! let peer = "10.0.0.4".parse().unwrap();
//! let client = resolve_client_identity(&headers, Some(peer), &config).unwrap();
//! assert_eq!(client.ip.to_string(), "203.0.113.7");
//! ```
//!
//! # The rules
//!
//! 1. The peer is not in `trusted_proxies`: the client is the peer, whatever
//!    the headers say.
//! 2. It is: the entries of the header are walked from right to left, over all
//!    its lines. The first `num_trusted_hops` are skipped, then those that lie
//!    in `trusted_proxies`; the next is the client. If all that are left lie in
//!    `trusted_proxies`, the leftmost is the client. Each entry that is looked
//!    at was appended by a proxy that is trusted; what a client writes lies to
//!    the left of that, and is never reached.
//! 3. That entry is not an address (`unknown`, a name, garbage), or the chain is
//!    shorter than `num_trusted_hops`: the client is the peer, and a warning is
//!    logged once.
//!
//! Entries may have a port, brackets, quotes and a zone. A v4-mapped address is
//! the v4 address. Empty entries do not count (RFC 9110 section 5.6.1).
//!
//! # `num_trusted_hops`
//!
//! Needed only for proxies whose addresses are not known (a CDN's): it is how
//! many entries *they* appended to the right of the client's. One too many
//! reads what the client wrote, so the default is 0, which is right for a
//! single proxy and for any chain whose proxies are all in `trusted_proxies`.
//!
//! # IPv6
//!
//! Whoever has one IPv6 address has 2^64 of them. [`ResolvedClient::group`] is
//! the network of the address, /64 unless told otherwise; the tower layer uses
//! it as the key.

mod entry;
mod net;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName};

use entry::{Forwarded, Grammar, List};
pub use net::{ClientIpError, IpNet};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// How many bits of an IPv6 address make a client, unless told otherwise.
pub const IPV6_PREFIX_DEFAULT: u8 = 64;

/// Whose headers to believe. See the [module](self).
///
/// By default nobody's: every client is its socket's peer address.
#[derive(Debug, Clone, Default)]
pub struct ClientIpConfig {
    /// Peers whose header may be believed. Empty: the header is ignored.
    pub trusted_proxies: Vec<IpNet>,
    /// Entries to skip from the right before the client's, for proxies whose
    /// addresses are unknown. 0 by default.
    pub num_trusted_hops: usize,
    /// The header: `X-Forwarded-For` unless set. `Forwarded` is read by RFC
    /// 7239; any other (`CF-Connecting-IP`, `True-Client-IP`) as a list of
    /// addresses. Name one that your proxies write, or strip.
    pub trusted_header: Option<HeaderName>,
}

/// What to do with a request whose client is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MissingClientPolicy {
    /// Refuse it: with 503 where the server is at fault (no peer address, no
    /// extension), with 400 where the client is (no header).
    #[default]
    Reject,
    /// Let all such requests share the budget of this key.
    FallbackKey(Cow<'static, str>),
}

/// Where a client's address was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientIpSource {
    /// It is the socket's peer.
    PeerSocket,
    /// A trusted proxy named it in the header.
    ForwardedHeader,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedClient {
    /// Its address; never a v4-mapped one.
    pub ip: IpAddr,
    /// Where that was found.
    pub source: ClientIpSource,
}

impl ResolvedClient {
    /// The address to limit: an IPv4 address as it is, of an IPv6 address the
    /// network of `ipv6_prefix` bits (128 or more: the address).
    #[must_use]
    pub const fn group(&self, ipv6_prefix: u8) -> IpAddr {
        match self.ip {
            IpAddr::V4(_) => self.ip,
            IpAddr::V6(ip) => {
                let host = u128::MAX.checked_shr(ipv6_prefix as u32);
                let host = match host {
                    Some(host) => host,
                    None => 0,
                };
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !host))
            }
        }
    }
}

/// The peer address was not there: see [`MissingClientPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingClientIdentity;

impl std::fmt::Display for MissingClientIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the request carries no peer address")
    }
}

impl std::error::Error for MissingClientIdentity {}

/// Finds the client of a request: see the [module](self) for the rules.
///
/// Allocates nothing.
///
/// # Errors
///
/// If there is no `peer`.
pub fn resolve_client_identity(
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    config: &ClientIpConfig,
) -> Result<ResolvedClient, MissingClientIdentity> {
    let peer = peer.ok_or(MissingClientIdentity)?.to_canonical();
    let from_peer = ResolvedClient {
        ip: peer,
        source: ClientIpSource::PeerSocket,
    };
    if !config.trusts(peer) {
        return Ok(from_peer);
    }
    let named = match &config.trusted_header {
        None => config.walk(headers, &X_FORWARDED_FOR, &List),
        Some(name) if *name == http::header::FORWARDED => config.walk(headers, name, &Forwarded),
        Some(name) => config.walk(headers, name, &List),
    };
    Ok(match named {
        Ok(ip) => ResolvedClient {
            ip,
            source: ClientIpSource::ForwardedHeader,
        },
        Err(Unusable) => {
            warn_once(peer);
            from_peer
        }
    })
}

/// The chain does not name a client.
struct Unusable;

impl ClientIpConfig {
    fn trusts(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|net| net.contains(ip))
    }

    fn walk(
        &self,
        headers: &HeaderMap,
        name: &HeaderName,
        grammar: &impl Grammar,
    ) -> Result<IpAddr, Unusable> {
        let mut to_skip = self.num_trusted_hops;
        let mut leftmost = Err(Unusable);
        for line in headers.get_all(name).into_iter().rev() {
            for entry in line.as_bytes().rsplit(|byte| *byte == b',') {
                let entry = entry.trim_ascii();
                if entry.is_empty() {
                    continue;
                }
                if to_skip > 0 {
                    // Garbage may have upset the count.
                    if !grammar.is_entry(entry) {
                        return Err(Unusable);
                    }
                    to_skip -= 1;
                    continue;
                }
                let ip = grammar.address(entry).ok_or(Unusable)?;
                if !self.trusts(ip) {
                    return Ok(ip);
                }
                leftmost = Ok(ip);
            }
        }
        leftmost
    }
}

#[cold]
fn warn_once(peer: IpAddr) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            target: "throttle_kit::client_ip",
            %peer,
            "a trusted proxy's forwarded header names no client (missing, malformed or too \
             short): limiting the proxy's own address; logged once"
        );
    }
}

#[cfg(test)]
mod tests;
