//! Whom to believe.

use std::borrow::Cow;

use http::HeaderName;

use super::IpNet;

/// Whose headers to believe. See the [module](super).
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
