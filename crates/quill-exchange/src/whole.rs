//! A half that is whole before it leaves.

use std::pin::Pin;
use std::task::{Context, Poll};

use quill_transport::{Body, Chunk, TransportError, Whole};
use quill_wire::Out;

/// The body of a half that an encoder has written to its end: a unary answer,
/// a refusal, a unary request.
#[derive(Debug)]
pub struct WholeBody(Out);

impl WholeBody {
    /// The body that waits in `out`.
    #[must_use]
    pub fn new(out: Out) -> Self {
        Self(out)
    }
}

impl Body for WholeBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        Poll::Ready(take_chunk(&mut self.0).map(Ok))
    }

    fn is_ended(&self) -> bool {
        self.0.body_bytes() == 0 && !self.0.has_trailers()
    }

    fn take_whole(&mut self, bytes_max: usize) -> Option<Whole> {
        if self.0.body_bytes() > bytes_max {
            return None;
        }
        let data = self.0.take_whole()?;
        let trailers = self.0.take_trailers();
        Some(Whole { data, trailers })
    }

    fn bytes_left(&self) -> Option<u64> {
        (!self.0.has_trailers()).then(|| self.0.body_bytes() as u64)
    }
}

/// The next piece that waits in `out`; trailers once the half has ended.
pub(crate) fn take_chunk(out: &mut Out) -> Option<Chunk> {
    if let Some(bytes) = out.take_chunk() {
        return Some(Chunk::Data(bytes));
    }
    if !out.is_ended() {
        return None;
    }
    out.take_trailers().map(Chunk::Trailers)
}
