//! Why a call failed, as one value for every protocol.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::code::Code;
use crate::metadata::{Metadata, MetadataError};
use crate::{request_info, retry_info};

/// Any error, as tower's middleware hands it around.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call failed: a [`Code`], a message for people, typed details for
/// programs, metadata, and the source for the log.
///
/// Code, message, details and metadata travel to the peer in its own
/// protocol. The source and what was received never leave the process. The value is one pointer
/// wide, so a `Result` of it costs the good path nothing.
///
/// ```
/// use quill_core::{Code, Error};
///
/// let error = Error::not_found("no user 7").with_metadata("retry", "no")?;
/// assert_eq!(error.code(), Code::NotFound);
/// assert_eq!(error.to_string(), "not_found: no user 7");
/// # Ok::<(), quill_core::MetadataError>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    message: Cow<'static, str>,
    details: Vec<Detail>,
    metadata: Metadata,
    received: Metadata,
    source: Option<BoxError>,
    unprocessed: bool,
    pushback: Option<Pushback>,
}

/// The longest wait that is passed on.
const PUSHBACK_MAX: Duration = Duration::from_secs(365 * 86_400);

/// What a server says of another try of the call that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushback {
    /// Not before this long from now.
    After(Duration),
    /// Not at all.
    Never,
}

/// One typed detail of an error: a message under its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The message's full name, such as `google.rpc.RetryInfo`, without a
    /// `type.googleapis.com/` in front.
    pub type_name: String,
    /// The message in protobuf's binary format.
    pub value: Bytes,
}

/// What can be a detail of an [`Error`]: every generated message is.
pub trait ErrorDetail {
    /// The detail: the message's full name and its bytes.
    fn to_detail(&self) -> Detail;
}

impl ErrorDetail for Detail {
    fn to_detail(&self) -> Detail {
        self.clone()
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident,)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(message: impl Into<Cow<'static, str>>) -> Self {
            Self::new(Code::$code, message)
        }
    )*};
}

impl Error {
    /// An error with this code and a message for people, without details.
    #[must_use]
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            details: Vec::new(),
            metadata: Metadata::new(),
            received: Metadata::new(),
            source: None,
            unprocessed: false,
            pushback: None,
        }))
    }

    constructors! {
        /// [`Code::Canceled`]
        canceled => Canceled,
        /// [`Code::Unknown`]
        unknown => Unknown,
        /// [`Code::InvalidArgument`]
        invalid_argument => InvalidArgument,
        /// [`Code::DeadlineExceeded`]
        deadline_exceeded => DeadlineExceeded,
        /// [`Code::NotFound`]
        not_found => NotFound,
        /// [`Code::AlreadyExists`]
        already_exists => AlreadyExists,
        /// [`Code::PermissionDenied`]
        permission_denied => PermissionDenied,
        /// [`Code::ResourceExhausted`]
        resource_exhausted => ResourceExhausted,
        /// [`Code::FailedPrecondition`]
        failed_precondition => FailedPrecondition,
        /// [`Code::Aborted`]
        aborted => Aborted,
        /// [`Code::OutOfRange`]
        out_of_range => OutOfRange,
        /// [`Code::Unimplemented`]
        unimplemented => Unimplemented,
        /// [`Code::Internal`]
        internal => Internal,
        /// [`Code::Unavailable`]
        unavailable => Unavailable,
        /// [`Code::DataLoss`]
        data_loss => DataLoss,
        /// [`Code::Unauthenticated`]
        unauthenticated => Unauthenticated,
    }

    /// Adds a typed detail.
    #[must_use]
    pub fn with_detail(mut self, detail: &impl ErrorDetail) -> Self {
        self.0.details.push(detail.to_detail());
        self
    }

    /// Adds metadata that travels with the error.
    ///
    /// # Errors
    /// As [`Metadata::append`].
    pub fn with_metadata(mut self, name: &str, value: &str) -> Result<Self, MetadataError> {
        self.0.metadata.append(name, value)?;
        Ok(self)
    }

    /// Keeps what caused this, for logs; it never leaves the process.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Tells the caller how long to wait before it tries again, as a
    /// `google.rpc.RetryInfo` detail.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.0.details.push(retry_info::encode(retry_after));
        self
    }

    /// Tells the caller what the call is called here, in logs and traces, as a
    /// `google.rpc.RequestInfo` detail, unless it is told that already. A server
    /// that traces its calls gives its errors the id of their trace.
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl AsRef<str>) -> Self {
        if self.request_id().is_none() {
            self.0
                .details
                .push(request_info::encode(request_id.as_ref()));
        }
        self
    }

    /// Notes that no handler has surely begun with the call, so that making it
    /// again is safe whatever the method does. It says something of this side's
    /// knowledge, and never leaves the process.
    #[must_use]
    pub fn unprocessed(mut self) -> Self {
        self.0.unprocessed = true;
        self
    }

    /// Notes what the server, or what keeps calls from it, says of another try.
    /// It never leaves the process: [`with_retry_after`](Self::with_retry_after)
    /// is what travels.
    #[must_use]
    pub fn with_pushback(mut self, pushback: Pushback) -> Self {
        self.0.pushback = Some(pushback);
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message for people; may be empty.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The typed details, in order.
    #[must_use]
    pub fn details(&self) -> &[Detail] {
        &self.0.details
    }

    /// Metadata that was set on the error and travels with it.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.0.metadata
    }

    /// The metadata, to be changed.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.0.metadata
    }

    /// On a caller's side: what the peer sent as leading or trailing metadata of
    /// the failed call. It goes no further: a handler that passes an error on with
    /// `?` does not send its own caller the headers of the server that it asked.
    #[must_use]
    pub fn received_metadata(&self) -> &Metadata {
        &self.0.received
    }

    /// The received metadata, for whoever receives some.
    pub fn received_metadata_mut(&mut self) -> &mut Metadata {
        &mut self.0.received
    }

    /// How long the peer asks to wait before the next try, from a
    /// `google.rpc.RetryInfo` detail.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.details.iter().find_map(retry_info::decode)
    }

    /// What the call is called in the logs and traces of the peer, from a
    /// `google.rpc.RequestInfo` detail: to be named where help is asked for.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.details.iter().find_map(request_info::decode)
    }

    /// What was said of another try: by the protocol's own means, by a
    /// `google.rpc.RetryInfo` detail, or by a received `retry-after` in seconds,
    /// which is also how servers and proxies of plain HTTP say it (RFC 9110,
    /// section 10.2.3). A year at most, whatever was said: it can be added to any
    /// time of now.
    #[must_use]
    pub fn pushback(&self) -> Option<Pushback> {
        let seconds = || self.0.received.get("retry-after")?.parse().ok();
        let after = || {
            let delay = self.retry_after();
            let delay = delay.or_else(|| seconds().map(Duration::from_secs));
            delay.map(Pushback::After)
        };
        self.0.pushback.or_else(after).map(|said| match said {
            Pushback::After(delay) => Pushback::After(delay.min(PUSHBACK_MAX)),
            Pushback::Never => Pushback::Never,
        })
    }

    /// On a caller's side: whether a handler may have begun with the call. `false`
    /// where it surely has not, since the call never left, or the server said
    /// so; then making it again is safe whatever the method does.
    #[must_use]
    pub fn maybe_processed(&self) -> bool {
        !self.0.unprocessed
    }
}

/// An error that middleware boxed: ours is taken out again, from however
/// deep in the chain of sources; any other is [`Code::Unknown`] with the text
/// kept inside the process.
impl From<BoxError> for Error {
    fn from(error: BoxError) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::unknown("the call failed").with_source(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.message.is_empty() {
            write!(f, "{}", self.0.code)
        } else {
            write!(f, "{}: {}", self.0.code, self.0.message)
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("metadata", &self.0.metadata)
            .field("received_metadata", &self.0.received)
            .field("source", &self.0.source)
            .field("maybe_processed", &self.maybe_processed())
            .field("pushback", &self.0.pushback)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn a_boxed_error_of_ours_comes_back_whole() {
        let boxed: BoxError = Box::new(Error::aborted("lost the race"));
        let error = Error::from(boxed);
        assert_eq!(error.code(), Code::Aborted);
        assert_eq!(error.message(), "lost the race");
    }

    #[test]
    fn pushback_is_what_was_said_first() {
        let after = |seconds| Some(Pushback::After(Duration::from_secs(seconds)));
        let mut error = Error::unavailable("later");
        assert_eq!(error.pushback(), None);
        error.received_metadata_mut().receive("retry-after", b"7");
        assert_eq!(error.pushback(), after(7));
        let error = error.with_retry_after(Duration::from_secs(2));
        assert_eq!(error.pushback(), after(2));
        let error = error.with_pushback(Pushback::Never);
        assert_eq!(error.pushback(), Some(Pushback::Never));
        let error = error.with_pushback(Pushback::After(Duration::MAX));
        assert_eq!(error.pushback(), after(365 * 86_400));
    }

    #[test]
    fn a_foreign_error_keeps_its_text_inside() {
        let foreign: BoxError = "password is hunter2".into();
        let error = Error::from(foreign);
        assert_eq!(error.code(), Code::Unknown);
        assert!(!error.to_string().contains("hunter2"));
        assert!(error.source().is_some());
    }
}
