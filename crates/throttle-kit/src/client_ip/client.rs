//! A client, once it is found.

use std::net::{IpAddr, Ipv6Addr};

#[cfg(doc)]
use super::MissingClientPolicy;

/// How many bits of an IPv6 address make a client, unless told otherwise.
pub const IPV6_PREFIX_DEFAULT: u8 = 64;

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
    #[inline]
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
