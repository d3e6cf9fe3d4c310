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

mod client;
mod config;
mod entry;
mod net;
mod resolve;

pub use client::{ClientIpSource, IPV6_PREFIX_DEFAULT, MissingClientIdentity, ResolvedClient};
pub use config::{ClientIpConfig, MissingClientPolicy};
pub use net::{ClientIpError, IpNet};
pub use resolve::{resolve_client_identity, resolve_client_identity_in};

#[cfg(all(test, not(throttle_loom)))]
mod tests;
