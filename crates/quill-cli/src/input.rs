//! The messages to send: JSON values, read as they are needed.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, stdin};
use std::path::Path;
use std::task::Poll;

use buffa_descriptor::DynamicMessage;
use futures_util::{Stream, stream};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::message_type::MessageType;

/// Messages that are read before they are asked for; the reader waits then.
const READ_AHEAD_MESSAGES: usize = 16;

/// Where messages come from, and what to call it in errors.
pub(crate) struct Input {
    text: Box<dyn Read + Send>,
    name: String,
}

/// One JSON value of an input, or why there is none.
pub(crate) struct InputValue {
    json: Result<Box<RawValue>, serde_json::Error>,
    input: String,
    number: usize,
}

impl Input {
    /// `-` is standard input, `@file` a file, anything else the JSON itself.
    pub(crate) fn open(given: &str) -> Result<Self, Failure> {
        if given == "-" {
            return Ok(Self {
                text: Box::new(stdin()),
                name: "standard input".to_owned(),
            });
        }
        match given.strip_prefix('@') {
            Some(path) => Self::file(Path::new(path), "--input @"),
            None => Ok(Self::text(given.to_owned(), "--input".to_owned())),
        }
    }

    /// The JSON itself.
    pub(crate) fn text(json: String, name: String) -> Self {
        Self {
            text: Box::new(Cursor::new(json)),
            name,
        }
    }

    /// A file; `what` goes before its path in the error of one that can't be read.
    pub(crate) fn file(path: &Path, what: &str) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| Failure::input(format!("{what}{name}: {error}")))?;
        Ok(Self {
            text: Box::new(file),
            name,
        })
    }

    /// The values, one after the other.
    pub(crate) fn values(self) -> impl Iterator<Item = InputValue> {
        let name = self.name;
        serde_json::Deserializer::from_reader(BufReader::new(self.text))
            .into_iter()
            .enumerate()
            .map(move |(index, json)| InputValue {
                json,
                input: name.clone(),
                number: index + 1,
            })
    }

    /// Reads the messages in a thread of its own, as reading may block for ever.
    pub(crate) fn read(self, message: MessageType) -> Messages {
        let (sender, receiver) = mpsc::channel(READ_AHEAD_MESSAGES);
        let name = self.name.clone();
        std::thread::spawn(move || self.feed(&message, &sender));
        Messages { receiver, name }
    }

    fn feed(self, message: &MessageType, sender: &mpsc::Sender<Result<DynamicMessage, Failure>>) {
        for value in self.values() {
            let read = value.read(message);
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    }
}

impl InputValue {
    /// The value as a message of this type.
    pub(crate) fn read(&self, message: &MessageType) -> Result<DynamicMessage, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            let (input, number) = (&self.input, self.number);
            let full_name = message.full_name();
            Failure::input(format!("{input}, message {number} ({full_name}): {error}"))
        };
        match &self.json {
            Ok(json) => message
                .read_json(json.get().as_bytes(), false)
                .map_err(|error| wrong(&error)),
            Err(error) => Err(wrong(error)),
        }
    }

    /// The value's text, where nothing is known of its type.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        match &self.json {
            Ok(json) => Ok(json.get()),
            Err(error) => {
                let (input, number) = (&self.input, self.number);
                Err(Failure::input(format!(
                    "{input}, message {number}: {error}"
                )))
            }
        }
    }
}

/// The messages of an input.
pub(crate) struct Messages {
    receiver: mpsc::Receiver<Result<DynamicMessage, Failure>>,
    name: String,
}

impl Messages {
    /// The one message of a method that takes one.
    pub(crate) async fn only(mut self) -> Result<DynamicMessage, Failure> {
        let name = &self.name;
        let Some(first) = self.receiver.recv().await else {
            return Err(Failure::input(format!(
                "{name} holds no message, and the method takes one: {{}} is the empty one"
            )));
        };
        let message = first?;
        match self.receiver.recv().await {
            None => Ok(message),
            Some(Err(failure)) => Err(failure),
            Some(Ok(_)) => Err(Failure::input(format!(
                "{name} holds several messages, and the method takes one"
            ))),
        }
    }

    /// The messages as a stream. What can't be read never ends the stream, as
    /// that would look like its good end: it comes out of the receiver, and the
    /// call is to be given up.
    pub(crate) fn into_stream(
        mut self,
    ) -> (
        impl Stream<Item = DynamicMessage> + Send + 'static,
        oneshot::Receiver<Failure>,
    ) {
        let (failed, failure) = oneshot::channel();
        let mut failed = Some(failed);
        let stream = stream::poll_fn(move |cx| match self.receiver.poll_recv(cx) {
            Poll::Ready(Some(Ok(message))) => Poll::Ready(Some(message)),
            Poll::Ready(Some(Err(failure))) => {
                if let Some(failed) = failed.take() {
                    let _ = failed.send(failure);
                }
                Poll::Pending
            }
            Poll::Ready(None) if failed.is_none() => Poll::Pending,
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        (stream, failure)
    }
}
