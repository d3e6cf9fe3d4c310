//! The messages to send: JSON values, read as they are needed.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, stdin};
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

impl Input {
    /// `-` is standard input, `@file` a file, anything else the JSON itself.
    pub(crate) fn open(given: &str) -> Result<Self, Failure> {
        if given == "-" {
            return Ok(Self {
                text: Box::new(stdin()),
                name: "standard input".to_owned(),
            });
        }
        if let Some(path) = given.strip_prefix('@') {
            let file = File::open(path)
                .map_err(|error| Failure::input(format!("--input @{path}: {error}")))?;
            return Ok(Self {
                text: Box::new(file),
                name: path.to_owned(),
            });
        }
        Ok(Self {
            text: Box::new(Cursor::new(given.to_owned())),
            name: "--input".to_owned(),
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
        let values = serde_json::Deserializer::from_reader(BufReader::new(self.text))
            .into_iter::<Box<RawValue>>();
        for (index, value) in values.enumerate() {
            let read = match value {
                Ok(json) => message
                    .read_json(json.get().as_bytes(), false)
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let read = read.map_err(|error| {
                let (name, number) = (&self.name, index + 1);
                let full_name = message.full_name();
                Failure::input(format!("{name}, message {number} ({full_name}): {error}"))
            });
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
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
