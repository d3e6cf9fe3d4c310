//! A client of one server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quill_core::{BoxError, Error, Format, HttpVersion, MessageEncoding, Metadata, Method};
use quill_transport::Channel;
use quill_wire::{Call, Protocol, WireOptions};
use tower::ServiceExt;

use crate::balance::{Balanced, Balancer};
use crate::builder::ClientBuilder;
use crate::error::ConnectError;
use crate::layers::Layers;
use crate::stack::{Attempt, CallService};

/// A client of one server: makes calls, typed and untyped, in any protocol.
///
/// Cheap to clone, and meant to be shared: all clones use the same connections,
/// over which calls are multiplexed. Nothing is connected before the first call.
///
/// ```no_run
/// # async fn example() -> Result<(), quill_core::Error> {
/// use quill_client::QuillClient;
///
/// let client = QuillClient::new("http://localhost:8080");
/// let reply = client.call("echo.v1.EchoService", "Echo", "").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct QuillClient(Arc<Shared>);

struct Shared {
    settings: Settings,
    /// What is wrong with the URL shows at the call, not before.
    channel: Result<Channel, InvalidUrl>,
    /// What calls go through, where anything was put before the channel.
    layers: Option<CallService>,
    /// The servers, where there are several in place of the channel.
    balancer: Option<Balancer>,
}

/// What every call of a client starts from.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) protocol: Protocol,
    pub(crate) format: Format,
    pub(crate) timeout: Option<Duration>,
    pub(crate) options: Arc<WireOptions>,
    /// What every call gets that has nothing of the same name.
    pub(crate) metadata: Arc<Metadata>,
}

impl Settings {
    /// How an answer's messages are written.
    pub(crate) fn encoding(&self) -> MessageEncoding {
        MessageEncoding {
            format: self.format,
            limits: self.options.decode,
        }
    }
}

#[derive(Clone)]
struct InvalidUrl(String);

impl QuillClient {
    /// A client of the server at `url`, with the defaults of
    /// [`builder`](Self::builder). A URL that can't be used errs at each call.
    #[must_use]
    pub fn new(url: impl AsRef<str>) -> Self {
        Self::builder().base_url(url.as_ref()).build_lazily()
    }

    /// A client with other settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// A client of the server at `url`, with a connection that is there already.
    ///
    /// # Errors
    /// The URL can't be used, or no connection could be made.
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, ConnectError> {
        let client = Self::builder().base_url(url.as_ref()).build()?;
        client.ready().await?;
        Ok(client)
    }

    /// Makes a connection, unless there is one, so that the first call finds it.
    /// A client of several servers waits for one of them that takes calls.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn ready(&self) -> Result<(), ConnectError> {
        if let Some(balancer) = &self.0.balancer {
            return balancer.ready().await.map_err(ConnectError::from);
        }
        match &self.0.channel {
            Ok(channel) => channel.connect().await.map_err(ConnectError::from),
            Err(InvalidUrl(message)) => Err(ConnectError::setting(message.clone())),
        }
    }

    /// The version of HTTP that calls leave on, as the connection has it that is there
    /// or is made to know; `None` for a client of several servers, each of which may
    /// have another.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn http_version(&self) -> Result<Option<HttpVersion>, ConnectError> {
        if self.0.balancer.is_some() {
            return Ok(None);
        }
        match &self.0.channel {
            Ok(channel) => Ok(Some(channel.lease(None).await?.version())),
            Err(InvalidUrl(message)) => Err(ConnectError::setting(message.clone())),
        }
    }

    pub(crate) fn make(settings: Settings, channel: Result<Channel, ConnectError>) -> Self {
        let channel = channel.map_err(|error| InvalidUrl(error.to_string()));
        Self(Arc::new(Shared {
            settings,
            channel,
            layers: None,
            balancer: None,
        }))
    }

    /// A client of several servers.
    pub(crate) fn balanced(settings: Settings, balancer: Balancer, layers: &Layers) -> Self {
        let balanced = Balanced(balancer.clone());
        let innermost = CallService::new(balanced.map_err(BoxError::from));
        let none = InvalidUrl("the client's servers have a channel each".to_owned());
        Self(Arc::new(Shared {
            settings,
            channel: Err(none),
            layers: Some(layers.around(innermost)),
            balancer: Some(balancer),
        }))
    }

    /// The same client with messages in protobuf's binary format, for what the
    /// client asks for itself.
    pub(crate) fn in_binary(&self) -> Self {
        let mut settings = self.settings().clone();
        settings.format = Format::Proto;
        Self(Arc::new(Shared {
            settings,
            channel: self.0.channel.clone(),
            layers: None,
            balancer: None,
        }))
    }

    /// This client's calls, through layers.
    pub(crate) fn through(self, layers: &Layers) -> Self {
        if layers.is_empty() {
            return self;
        }
        let attempt = Attempt(self.clone());
        let innermost = CallService::new(attempt.map_err(BoxError::from));
        let Shared {
            settings, channel, ..
        } = &*self.0;
        Self(Arc::new(Shared {
            settings: settings.clone(),
            channel: channel.clone(),
            layers: Some(layers.around(innermost)),
            balancer: None,
        }))
    }

    /// What calls go through; `None` when there is nothing before the channel.
    pub(crate) fn layers(&self) -> Option<&CallService> {
        self.0.layers.as_ref()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn channel(&self) -> Result<&Channel, Error> {
        match &self.0.channel {
            Ok(channel) => Ok(channel),
            Err(InvalidUrl(message)) => Err(Error::invalid_argument(message.clone())),
        }
    }

    pub(crate) fn new_call(&self, method: Arc<Method>) -> Call {
        let Settings {
            protocol,
            format,
            options,
            ..
        } = self.settings();
        let wire = protocol.wire(method.kind());
        Call::outgoing(wire, method, *format, Arc::clone(options))
    }
}

impl fmt::Debug for QuillClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuillClient")
            .field("protocol", &self.settings().protocol)
            .finish_non_exhaustive()
    }
}
