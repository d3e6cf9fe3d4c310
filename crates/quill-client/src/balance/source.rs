//! Where the servers are.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quill_core::BoxError;
use quill_transport::{Endpoint, TransportError, TransportErrorKind};

type Ask =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Vec<String>, BoxError>> + Send>> + Send + Sync;

/// The most servers of one client; a source that names more is cut off there.
const ENDPOINTS_MAX: usize = 1000;
/// How long the source may take, and each look-up of a name: one that never
/// ends would be the last.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

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

    /// Reads URLs, each with as many authorities as there are commas between.
    ///
    /// # Errors
    /// One can't be used, or there is none.
    pub(crate) fn read(urls: &[String]) -> Result<Vec<Endpoint>, TransportError> {
        let mut endpoints = Vec::new();
        for url in urls {
            let Some((scheme, rest)) = url.split_once("://") else {
                endpoints.push(Endpoint::parse(url)?);
                continue;
            };
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authorities, path) = rest.split_at(end);
            for authority in authorities.split(',') {
                let url = format!("{scheme}://{}{path}", authority.trim());
                endpoints.push(Endpoint::parse(&url)?);
            }
        }
        if endpoints.is_empty() {
            let message = "a client needs a URL, and `endpoints` was given none";
            return Err(TransportError::new(TransportErrorKind::Url, message).unprocessed());
        }
        Ok(endpoints)
    }

    /// The addresses that there are now, in order. Names without one are left
    /// out, unless no name has any.
    pub(super) async fn endpoints(&self) -> Result<Vec<Endpoint>, TransportError> {
        let named = match self {
            Self::Urls(endpoints) => endpoints.clone(),
            Self::Asked(ask) => {
                let asked = async {
                    ask().await.map_err(|error| {
                        let message = format!("the source of the servers' URLs failed: {error}");
                        unresolved(message).with_source(error)
                    })
                };
                let urls = in_time(asked, "the source of the servers' URLs").await?;
                let read: Result<_, _> = urls.iter().map(|url| Endpoint::parse(url)).collect();
                read?
            }
        };
        let mut found = Vec::new();
        let mut failure = None;
        for endpoint in named {
            let name = format!("the look-up of {endpoint}");
            match in_time(endpoint.resolve(), &name).await {
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
            unresolved("there are no servers: the source of their URLs gave none")
        }))
    }
}

/// What `work` ends with, or that it took too long.
async fn in_time<T>(
    work: impl Future<Output = Result<T, TransportError>>,
    what: &str,
) -> Result<T, TransportError> {
    match tokio::time::timeout(ANSWER_WITHIN, work).await {
        Ok(result) => result,
        Err(_) => Err(unresolved(format!(
            "{what} gave no answer within {ANSWER_WITHIN:?}"
        ))),
    }
}

fn unresolved(message: impl Into<String>) -> TransportError {
    TransportError::new(TransportErrorKind::Resolve, message).unprocessed()
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

    #[tokio::test(start_paused = true)]
    async fn a_source_that_hangs_is_waited_for_so_long_and_no_longer() {
        let source = Source::asked(std::future::pending);
        let asked = tokio::time::timeout(ANSWER_WITHIN * 2, source.endpoints());
        let error = asked.await.expect("it ends").unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Resolve);
        assert!(error.to_string().contains("within 10s"), "{error}");
    }

    #[test]
    fn urls_have_one_authority_or_several() {
        let read = |urls: &[&str]| {
            let urls: Vec<_> = urls.iter().map(ToString::to_string).collect();
            let read = Source::read(&urls).map_err(|error| error.to_string())?;
            Ok::<_, String>(read.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let several = read(&["http://a:1, b:2/x,y"]).unwrap();
        assert_eq!(several, ["http://a:1/x,y", "http://b:2/x,y"]);
        let mixed = read(&["https://a", "unix:/c,d", "http://[::1]:7,e"]).unwrap();
        assert_eq!(
            mixed,
            ["https://a", "unix:/c,d", "http://[::1]:7", "http://e"]
        );
        for wrong in [
            &["a:1"][..],
            &["http://a,,b"],
            &["http://a,"],
            &["http://a,http://b"],
            &[],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
