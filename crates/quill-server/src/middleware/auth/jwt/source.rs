//! Where an issuer's keys come from, and how they are kept fresh.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use quill_core::{Error, HttpMethod, RequestHead};
use quill_transport::{Body, Channel, Chunk, Empty};
use tokio::sync::watch;
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
}

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    /// When fetching was last begun, whatever came of it.
    tried: Option<Instant>,
    /// Of the task that fetches: closed once that is done, in whatever way.
    fetching: Option<watch::Receiver<()>>,
}

impl State {
    /// The task that fetches, while it does.
    fn fetching(&self) -> Option<&watch::Receiver<()>> {
        let fetching = self.fetching.as_ref();
        fetching.filter(|fetching| fetching.has_changed().is_ok())
    }
}

impl Keys {
    pub(super) fn fixed(keys: KeySet) -> Self {
        let never = Pace {
            refresh: Duration::MAX,
            cooldown: Duration::MAX,
        };
        let fixed = Self::new(Source::Fixed, never);
        fixed.note(keys);
        fixed
    }

    pub(super) fn new(source: Source, pace: Pace) -> Self {
        Self {
            source,
            pace,
            state: RwLock::default(),
        }
    }

    /// The keys, if they were fetched, and whether it is time to do so again.
    pub(super) fn at_hand(&self) -> (Option<Arc<KeySet>>, bool) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let refresh = self.pace.refresh;
        let is_old = state.tried.is_none_or(|tried| tried.elapsed() >= refresh);
        (state.keys.clone(), is_old && self.may_begin(&state))
    }

    /// Whether a token whose key is not among them may wait for others.
    pub(super) fn may_fetch(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.fetching().is_some() || self.may_begin(&state)
    }

    #[cfg(test)]
    pub(super) fn is_fetching(&self) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.fetching().is_some()
    }

    /// Whether fetching may begin, as often as it does.
    fn may_begin(&self, state: &State) -> bool {
        let cooldown = match state.keys {
            Some(_) => self.pace.cooldown,
            None => self.pace.cooldown.min(COOLDOWN_WITHOUT_KEYS),
        };
        let is_rested = |tried: Instant| tried.elapsed() >= cooldown;
        let is_fixed = matches!(self.source, Source::Fixed);
        !is_fixed && state.fetching().is_none() && state.tried.is_none_or(is_rested)
    }

    /// The keys after they were fetched, if they may be: once for all who wait.
    pub(super) async fn fetched(self: &Arc<Self>) -> Result<Arc<KeySet>, Error> {
        if let Some(mut fetching) = self.begin_fetch() {
            // Nothing is ever sent: this ends when the task does.
            let _ = fetching.changed().await;
        }
        let unavailable = || Error::unavailable("tokens can't be checked at the moment");
        self.at_hand().0.ok_or_else(unavailable)
    }

    /// Has the keys fetched, unless they are already or it is too soon. A task of its
    /// own does: callers come and go, and what they have begun still counts.
    pub(super) fn begin_fetch(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetching) = state.fetching() {
            return Some(fetching.clone());
        }
        if !self.may_begin(&state) {
            return None;
        }
        let (at_it, fetching) = watch::channel(());
        state.tried = Some(Instant::now());
        state.fetching = Some(fetching.clone());
        drop(state);
        let keys = Arc::clone(self);
        tokio::spawn(async move {
            keys.fetch_and_note().await;
            drop(at_it);
        });
        Some(fetching)
    }

    async fn fetch_and_note(&self) {
        let fetched = match timeout(FETCH_TIMEOUT, self.fetch()).await {
            Ok(fetched) => fetched,
            Err(_) => Err(JwtError::new("fetching them took too long")),
        };
        match fetched {
            Ok(keys) => self.note(keys),
            // What was fetched before is kept: issuers replace keys one by one.
            Err(error) => {
                tracing::warn!(%error, source = ?self, "the keys for tokens can't be fetched");
            }
        }
    }

    fn note(&self, keys: KeySet) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.keys = Some(Arc::new(keys));
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
