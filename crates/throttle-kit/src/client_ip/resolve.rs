//! The way from a request's headers to its client.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName};

use super::entry::{Forwarded, Grammar, List};
use super::{ClientIpConfig, ClientIpSource, MissingClientIdentity, ResolvedClient};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Finds the client of a request: see the [module](super) for the rules.
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
