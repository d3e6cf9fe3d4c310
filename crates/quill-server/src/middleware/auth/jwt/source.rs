//! Where an issuer's keys come from, and how they are kept fresh.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use quill_core::{Error, HttpMethod, RequestHead};
use quill_transport::{Body, Channel, Chunk, Empty};
use tokio::time::{Instant, timeout};

use super::error::JwtError;
use super::key_set::{DOCUMENT_BYTES_MAX, KeySet};

/// How long fetching the keys may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// While there are no keys at all, they are fetched this often at most.
const COOLDOWN_WITHOUT_KEYS: Duration = Duration::from_secs(1);

/// Where keys come from.
pub(super) enum Source {
    /// They never change.
    Fixed,
    File(PathBuf),
    Url {
        channel: Channel,
        target: String,
    },
}

/// How often keys are fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Keys of this age are fetched anew.
    pub(super) refresh: Duration,
    /// However many tokens name unknown keys, keys are not fetched more often.
    pub(super) cooldown: Duration,
}

/// An issuer's keys, as they were fetched last.
pub(super) struct Keys {
    source: Source,
    pace: Pace,
    state: RwLock<State>,
    /// Held by the one who fetches.
    fetching: tokio::sync::Mutex<()>,
    /// A task fetches keys that are old.
    is_refreshing: AtomicBool,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// When keys were fetched last, well or not.
    tried: Option<Instant>,
}

impl Keys {
    pub(super) fn fixed(keys: KeySet) -> Self {
        let never = Pace {
            refresh: Duration::MAX,
            cooldown: Duration::MAX,
        };
        let fixed = Self::new(Source::Fixed, never);
        fixed.note(Some(keys));
        fixed
    }

    pub(super) fn new(source: Source, pace: Pace) -> Self {
        Self {
            source,
            pace,
            state: RwLock::default(),
            fetching: tokio::sync::Mutex::new(()),
            is_refreshing: AtomicBool::new(false),
        }
    }

    /// The keys, if they were fetched, and whether it is time to do so again.
    pub(super) fn at_hand(&self) -> (Option<Arc<KeySet>>, bool) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let is_old = match state.tried {
            Some(tried) => tried.elapsed() >= self.pace.refresh,
            None => true,
        };
        (state.keys.clone(), is_old && !self.is_fixed())
    }

    /// Whether whoever asks is to fetch keys that are old: one at a time is.
    pub(super) fn begin_refresh(&self) -> bool {
        !self.is_refreshing.swap(true, Ordering::Relaxed)
    }

    /// Fetches keys that are old.
    pub(super) async fn refresh(&self) {
        // That it failed was told, and those at hand serve on.
        let _ = self.fetched().await;
        self.is_refreshing.store(false, Ordering::Relaxed);
    }

    /// Whether they may be fetched for a token whose key is not among them.
    pub(super) fn may_fetch(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let cooldown = match state.keys {
            Some(_) => self.pace.cooldown,
            None => self.pace.cooldown.min(COOLDOWN_WITHOUT_KEYS),
        };
        let is_rested = |tried: Instant| tried.elapsed() >= cooldown;
        !self.is_fixed() && state.tried.is_none_or(is_rested)
    }

    fn is_fixed(&self) -> bool {
        matches!(self.source, Source::Fixed)
    }

    /// The keys after they were fetched: by this call, or by another that was at
    /// it already.
    pub(super) async fn fetched(&self) -> Result<Arc<KeySet>, Error> {
        let asked = Instant::now();
        let _alone = self.fetching.lock().await;
        let is_done = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state.tried.is_some_and(|tried| tried >= asked)
        };
        if !is_done && self.may_fetch() {
            let keys = match timeout(FETCH_TIMEOUT, self.fetch()).await {
                Ok(fetched) => fetched,
                Err(_) => Err(JwtError::new("fetching them took too long")),
            };
            if let Err(error) = &keys {
                tracing::warn!(%error, source = ?self, "the keys for tokens can't be fetched");
            }
            // What was fetched before is kept: issuers replace keys one by one.
            self.note(keys.ok());
        }
        let unavailable = || Error::unavailable("tokens can't be checked at the moment");
        self.at_hand().0.ok_or_else(unavailable)
    }

    fn note(&self, keys: Option<KeySet>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = keys {
            state.keys = Some(Arc::new(keys));
        }
        state.tried = Some(Instant::now());
    }

    async fn fetch(&self) -> Result<KeySet, JwtError> {
        let document = match &self.source {
            Source::Fixed => return Err(JwtError::new("they are fixed")),
            Source::File(path) => read_file(path.clone()).await?,
            Source::Url { channel, target } => get(channel, target).await?,
        };
        KeySet::read(&document)
    }
}

async fn read_file(path: PathBuf) -> Result<Vec<u8>, JwtError> {
    let name = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::Read;
        let file = std::fs::File::open(path)?;
        let mut document = Vec::new();
        // One byte more, so that a document that is too long is seen to be.
        let most = DOCUMENT_BYTES_MAX as u64 + 1;
        file.take(most).read_to_end(&mut document)?;
        std::io::Result::Ok(document)
    });
    match read.await {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(error)) => Err(JwtError::new(format!("{name}: {error}"))),
        Err(error) => Err(JwtError::new(format!("{name}: {error}"))),
    }
}

async fn get(channel: &Channel, target: &str) -> Result<Vec<u8>, JwtError> {
    let failed = |error: quill_transport::TransportError| JwtError::new(error.to_string());
    let mut head = RequestHead::post(target);
    head.method = HttpMethod::Get;
    head.headers
        .append("accept", "application/jwk-set+json, application/json");
    let (head, mut body) = channel.send(head, Empty).await.map_err(failed)?;
    if head.status != 200 {
        return Err(JwtError::new(format!("the answer is HTTP {}", head.status)));
    }
    let mut document = Vec::new();
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut body).poll_chunk(cx)).await {
        if let Chunk::Data(data) = chunk.map_err(failed)? {
            document.extend_from_slice(&data);
        }
        if document.len() > DOCUMENT_BYTES_MAX {
            break;
        }
    }
    Ok(document)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Fixed => f.write_str("fixed"),
            Source::File(path) => path.fmt(f),
            Source::Url { channel, target } => write!(f, "{} {target}", channel.endpoint()),
        }
    }
}
