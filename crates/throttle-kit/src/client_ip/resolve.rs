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
    let peer = peer.ok_or(MissingClientIdentity)?.to_canonical();
    let named = if config.trusts(peer) {
        config.named(headers, peer)
    } else {
        None
    };
    Ok(match named {
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

    /// The client that the trusted `peer` names.
    #[inline(never)]
    fn named(&self, headers: &HeaderMap, peer: IpAddr) -> Option<IpAddr> {
        let named = match &self.trusted_header {
            None => self.client(headers, &X_FORWARDED_FOR, &List),
            Some(name) if *name == http::header::FORWARDED => {
                self.client(headers, name, &Forwarded)
            }
            Some(name) => self.client(headers, name, &List),
        };
        if named.is_err() {
            warn_once(peer);
        }
        named.ok()
    }

    fn client(
        &self,
        headers: &HeaderMap,
        name: &HeaderName,
        grammar: &impl Grammar,
    ) -> Result<IpAddr, Unusable> {
        match only_line(headers, name) {
            Some(line) => self.walk(std::iter::once(line), grammar),
            None => self.walk(headers.get_all(name).into_iter().rev(), grammar),
        }
    }

    /// Through the lines of the header, the last one first.
    #[inline]
    fn walk<'a>(
        &self,
        lines: impl Iterator<Item = &'a HeaderValue>,
        grammar: &impl Grammar,
    ) -> Result<IpAddr, Unusable> {
        let mut to_skip = self.num_trusted_hops;
        let mut leftmost = Err(Unusable);
        for line in lines {
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

/// The header's line, where that is found by looking at each header: there is
/// one, and the headers are few. A map's look-up has the hash of the name to wait
/// for, which takes as long as some 25 headers.
fn only_line<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.len() > LOOKED_AT_MAX {
        return None;
    }
    let mut lines = headers.iter().filter(|(other, _)| *other == name);
    let (_, line) = lines.next()?;
    lines.next().is_none().then_some(line)
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
