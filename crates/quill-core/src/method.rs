//! What a method is called and how it is called.

use std::borrow::Cow;
use std::time::Duration;

/// Which sides of a call send a stream of messages rather than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// One message each way.
    Unary,
    /// Many messages to the server, one back.
    ClientStreaming,
    /// One message to the server, many back.
    ServerStreaming,
    /// Many messages each way, at the same time where the transport can.
    BidiStreaming,
}

impl MethodKind {
    /// Whether the client may send any number of messages.
    #[must_use]
    pub const fn client_streams(self) -> bool {
        matches!(self, Self::ClientStreaming | Self::BidiStreaming)
    }

    /// Whether the server may send any number of messages.
    #[must_use]
    pub const fn server_streams(self) -> bool {
        matches!(self, Self::ServerStreaming | Self::BidiStreaming)
    }
}

/// What calling a method twice does: `google.protobuf.MethodOptions.idempotency_level`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Idempotency {
    /// Not stated; a call must not be repeated without the user's word.
    #[default]
    Unknown,
    /// No side effects: may be repeated, cached, and called by GET.
    NoSideEffects,
    /// May be repeated, as a second call changes nothing more.
    Idempotent,
}

/// A method of a service: its name, kind and options. Generated code holds one
/// `static` for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    path: Cow<'static, str>,
    kind: MethodKind,
    idempotency: Idempotency,
    cache_ttl: Option<Duration>,
}

impl Method {
    /// The method at `path`, which is `/package.Service/Method`.
    #[must_use]
    pub const fn new(path: &'static str, kind: MethodKind) -> Self {
        Self {
            path: Cow::Borrowed(path),
            kind,
            idempotency: Idempotency::Unknown,
            cache_ttl: None,
        }
    }

    /// A method whose names are known at run time only.
    #[must_use]
    pub fn named(service: &str, method: &str, kind: MethodKind) -> Self {
        Self {
            path: Cow::Owned(format!("/{service}/{method}")),
            kind,
            idempotency: Idempotency::Unknown,
            cache_ttl: None,
        }
    }

    /// The same method with this idempotency.
    #[must_use]
    pub const fn with_idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = idempotency;
        self
    }

    /// The same method, whose answers a private cache may keep for this long.
    /// It tells only for methods without side effects.
    #[must_use]
    pub const fn with_cache_ttl(mut self, cache_ttl: Duration) -> Self {
        self.cache_ttl = Some(cache_ttl);
        self
    }

    /// The path of its URL: `/package.Service/Method`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The service's full name: `package.Service`.
    #[must_use]
    pub fn service(&self) -> &str {
        self.halves().0
    }

    /// The method's own name: `Method`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.halves().1
    }

    /// Which sides stream.
    #[must_use]
    pub const fn kind(&self) -> MethodKind {
        self.kind
    }

    /// What calling it twice does.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    /// How long a private cache may keep its answers; `None`: not at all.
    #[must_use]
    pub const fn cache_ttl(&self) -> Option<Duration> {
        self.cache_ttl
    }

    fn halves(&self) -> (&str, &str) {
        let path = self.path.strip_prefix('/').unwrap_or(&self.path);
        path.rsplit_once('/').unwrap_or(("", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_service_and_method() {
        static ECHO: Method = Method::new("/echo.v1.EchoService/Echo", MethodKind::Unary)
            .with_idempotency(Idempotency::NoSideEffects);
        assert_eq!(ECHO.service(), "echo.v1.EchoService");
        assert_eq!(ECHO.name(), "Echo");
        assert_eq!(
            Method::named("echo.v1.EchoService", "Echo", MethodKind::Unary).path(),
            ECHO.path()
        );
    }
}
