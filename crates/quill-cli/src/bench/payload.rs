//! The messages that a benchmark sends.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use quill::{Codec, Format};

use super::benchmark::Benchmark;
use crate::failure::Failure;
use crate::input::Input;
use crate::schema::MethodSchema;

/// Bytes of the encoded messages of one benchmark, which are sent again and again.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// Where the messages come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GivenPayload {
    /// From nowhere: one empty message, or none for a stream.
    Empty,
    /// From the command line: JSON, `@file`, or `-` for standard input.
    Input(String),
    /// From the benchmarks' file itself: JSON values, one after the other.
    Json(String),
    /// From a file that it names.
    File(PathBuf),
}

impl GivenPayload {
    /// The messages as they are sent: by their type, or as JSON where that is
    /// not known.
    pub(crate) fn encode(
        &self,
        benchmark: &Benchmark,
        method: Option<&MethodSchema>,
    ) -> Result<Vec<Bytes>, Failure> {
        let streams = method.is_some_and(|method| method.method.kind().client_streams());
        let name = || format!("the payload of {:?}", benchmark.name);
        let input = match self {
            Self::Empty if streams => return Ok(Vec::new()),
            Self::Empty => Input::text("{}".to_owned(), name()),
            Self::Input(given) => Input::open(given)?,
            Self::Json(text) => Input::text(text.clone(), name()),
            Self::File(path) => Input::file(path, &format!("{}: ", name()))?,
        };
        let mut messages = Vec::new();
        let mut bytes_left = BYTES_MAX;
        for value in input.values() {
            let message = match method {
                Some(method) => {
                    let mut encoded = BytesMut::new();
                    let message = value.read(&method.requests)?;
                    method
                        .requests
                        .encode(Format::Proto, &message, &mut encoded)
                        .map_err(|error| Failure::input(error.to_string()))?;
                    encoded.freeze()
                }
                None => Bytes::from(value.text()?.to_owned()),
            };
            bytes_left = bytes_left.checked_sub(message.len()).ok_or_else(|| {
                Failure::input(format!("{} takes more than {BYTES_MAX} bytes", name()))
            })?;
            messages.push(message);
        }
        if messages.is_empty() && !streams {
            return Err(Failure::input(format!(
                "{} holds no message, and the method takes one: {{}} is the empty one",
                name()
            )));
        }
        Ok(messages)
    }
}
