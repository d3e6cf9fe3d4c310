//! A client of one server.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quill_core::{Error, Format, Method};
use quill_wire::{Call, Protocol, WireOptions};

use crate::builder::ClientBuilder;

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

/// What every call of a client starts from.
pub(crate) struct Settings {
    pub(crate) protocol: Protocol,
    pub(crate) format: Format,
    pub(crate) timeout: Option<Duration>,
    pub(crate) options: Arc<WireOptions>,
}
