//! Where the servers are.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use quill_core::BoxError;
use quill_transport::{Endpoint, TransportError, TransportErrorKind};

type Ask =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<String>, BoxError>> + Send>> + Send + Sync;

/// The most servers of one client; a source that names more is cut off there.
const ENDPOINTS_MAX: usize = 1000;

/// The servers of a client: URLs that were given once, or that a source gives.
#[derive(Clone)]
pub(crate) enum Source {
    Urls(Vec<Endpoint>),
    Asked(Arc<Ask>),
}

impl Source {
    pub(crate) fn asked<F, T>(ask: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<Vec<String>, BoxError>> + Send + 'static,
    {
        Self::Asked(Arc::new(move || Box::pin(ask())))
    }

    /// Reads URLs in a list with commas: those without a scheme have that of the
    /// one before.
    pub(crate) fn read(urls: &str) -> Result<Vec<Endpoint>, TransportError> {
        let mut scheme = "";
        urls.split(',')
            .map(str::trim)
            .map(|url| match url.split_once("://") {
                Some((own, _)) => {
                    scheme = own;
                    Endpoint::parse(url)
                }
                None if scheme.is_empty() || url.starts_with("unix:") => Endpoint::parse(url),
                None => Endpoint::parse(&format!("{scheme}://{url}")),
            })
            .collect()
    }

    /// The addresses that there are now, in order. Names without one are left
    /// out, unless no name has any.
    pub(super) async fn endpoints(&self) -> Result<Vec<Endpoint>, TransportError> {
        let named = match self {
            Self::Urls(endpoints) => endpoints.clone(),
            Self::Asked(ask) => {
                let urls = ask().await.map_err(|error| {
                    let message = format!("the source of the servers' URLs failed: {error}");
                    TransportError::new(TransportErrorKind::Resolve, message)
                        .unprocessed()
                        .with_source(error)
                })?;
                let read: Result<_, _> = urls.iter().map(|url| Endpoint::parse(url)).collect();
                read?
            }
        };
        let mut found = Vec::new();
        let mut failure = None;
        for endpoint in named {
            match endpoint.resolve().await {
                Ok(resolved) => found.extend(resolved),
                Err(error) => {
                    tracing::debug!(%error, "a server's name was not found");
                    failure = Some(error);
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|endpoint| seen.insert(endpoint.clone()));
        found.truncate(ENDPOINTS_MAX);
        if !found.is_empty() {
            return Ok(found);
        }
        Err(failure.unwrap_or_else(|| {
            let message = "there are no servers: the source of their URLs gave none";
            TransportError::new(TransportErrorKind::Resolve, message).unprocessed()
        }))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Urls(endpoints) => f.debug_tuple("Urls").field(endpoints).finish(),
            Self::Asked(_) => f.write_str("Asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_urls_are_read() {
        let read = |urls: &str| {
            let read = Source::read(urls).map_err(|error| error.to_string())?;
            Ok::<_, String>(read.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            read("http://a:1,b:2").unwrap(),
            ["http://a:1", "http://b:2"]
        );
        assert_eq!(
            read("https://a/x, b, unix:/c,http://d").unwrap(),
            ["https://a/x", "https://b", "unix:/c", "http://d"]
        );
        for wrong in ["a:1,http://b", "http://a,,b", "http://a,", ""] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
