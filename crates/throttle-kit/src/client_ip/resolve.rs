//! The way from a request's headers to its client.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::entry::{Forwarded, Grammar, List};
use super::{ClientIpConfig, ClientIpSource, MissingClientIdentity, ResolvedClient};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Headers of a request that are looked at one by one.
const LOOKED_AT_MAX: usize = 16;

/// Finds the client of a request: see the [module](super) for the rules.
///
/// Allocates nothing.
///
/// # Errors
///
/// If there is no `peer`.
#[inline]
pub fn resolve_client_identity(
    headers: &HeaderMap,
    peer: Option<IpAddr>,
    config: &ClientIpConfig,
) -> Result<ResolvedClient, MissingClientIdentity> {
    resolve(peer, config, |config| match config.only_line(headers) {
        Some(line) => config.client(std::iter::once(line.as_bytes())),
        None => {
            let lines = headers.get_all(config.header()).into_iter().rev();
            config.client(lines.map(HeaderValue::as_bytes))
        }
    })
}

/// As [`resolve_client_identity`], for requests that are not of `http`'s types:
/// `lines` gives all values of the header with the (lower-case) name it is given,
/// in the order they came in.
///
/// # Errors
///
/// If there is no `peer`.
pub fn resolve_client_identity_in<'a, L: Iterator<Item = &'a [u8]>>(
    lines: impl FnOnce(&'a str) -> L,
    peer: Option<IpAddr>,
    config: &'a ClientIpConfig,
) -> Result<ResolvedClient, MissingClientIdentity> {
    resolve(peer, config, |config| {
        let mut lines = lines(config.header().as_str());
        match (lines.next(), lines.next()) {
            (first, None) => config.client(first.into_iter()),
            (first, second) => {
                let all = first.into_iter().chain(second).chain(lines);
                let all: Vec<&[u8]> = all.collect();
                config.client(all.into_iter().rev())
            }
        }
    })
}

/// By the rules, once a trusted peer's header was looked at.
#[inline]
fn resolve<'a>(
    peer: Option<IpAddr>,
    config: &'a ClientIpConfig,
    named: impl FnOnce(&'a ClientIpConfig) -> Result<IpAddr, Unusable>,
) -> Result<ResolvedClient, MissingClientIdentity> {
    let peer = peer.ok_or(MissingClientIdentity)?.to_canonical();
    let by_header = if config.trusts(peer) {
        let named = named(config);
        if named.is_err() {
            warn_once(peer);
        }
        named.ok()
    } else {
        None
    };
    Ok(match by_header {
        Some(ip) => ResolvedClient {
            ip,
            source: ClientIpSource::ForwardedHeader,
        },
        None => ResolvedClient {
            ip: peer,
            source: ClientIpSource::PeerSocket,
        },
    })
}

/// The chain does not name a client.
struct Unusable;

impl ClientIpConfig {
    #[inline]
    fn trusts(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|net| net.contains(ip))
    }

    #[inline]
    fn header(&self) -> &HeaderName {
        self.trusted_header.as_ref().unwrap_or(&X_FORWARDED_FOR)
    }

    /// The client that the header's lines name, the last one first.
    #[inline(never)]
    fn client<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> Result<IpAddr, Unusable> {
        if *self.header() == http::header::FORWARDED {
            self.walk(lines, &Forwarded)
        } else {
            self.walk(lines, &List)
        }
    }

    /// The header's line, where that is found by looking at each header: there is
    /// one, and the headers are few. A map's look-up has the hash of the name to
    /// wait for, which takes as long as some 25 headers.
    fn only_line<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        if headers.len() > LOOKED_AT_MAX {
            return None;
        }
        let name = self.header();
        let mut lines = headers.iter().filter(|(other, _)| *other == name);
        let (_, line) = lines.next()?;
        lines.next().is_none().then_some(line)
    }

    /// Through the lines of the header, the last one first.
    #[inline]
    fn walk<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        grammar: &impl Grammar,
    ) -> Result<IpAddr, Unusable> {
        let mut to_skip = self.num_trusted_hops;
        let mut leftmost = Err(Unusable);
        for line in lines {
            for entry in line.rsplit(|byte| *byte == b',') {
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
