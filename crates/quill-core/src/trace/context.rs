//! Where in which trace a call is.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::id::{SpanId, TraceId, bytes_of};
use super::state;
use crate::metadata::Metadata;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// `00-`, 32 digits, `-`, 16 digits, `-`, two digits.
const BYTES: usize = 55;
/// The only flag that version 00 knows.
const SAMPLED: u8 = 1;

/// Where in which trace a call is: the W3C's `traceparent` and `tracestate`.
///
/// A server has the one its caller sent, and with a [`Tracer`](super::Tracer) one
/// of its own; calls that a handler makes are the next below it.
///
/// ```
/// use quill_core::Metadata;
/// use quill_core::trace::TraceContext;
///
/// let mut metadata = Metadata::new();
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// metadata.insert("traceparent", parent)?;
/// let context = TraceContext::from_metadata(&metadata).expect("it is well formed");
/// assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), parent);
/// # Ok::<(), quill_core::MetadataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    parent_id: Option<SpanId>,
    is_sampled: bool,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// A place that another tracing library has begun, for calls to go on from.
    #[must_use]
    pub fn new(trace_id: TraceId, span_id: SpanId, is_sampled: bool) -> Self {
        Self {
            trace_id,
            span_id,
            parent_id: None,
            is_sampled,
            state: None,
        }
    }

    /// What a caller sent. `None` where there is no `traceparent`, or more than
    /// one, or one that is not well formed; a `tracestate` that is not is left
    /// out. Of a version that is yet to come, what version 00 has is read.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let mut context = Self::read(metadata.get(TRACEPARENT)?.as_bytes())?;
        if metadata.all(TRACEPARENT).count() > 1 {
            return None;
        }
        context.state = state::read(metadata.all(TRACESTATE)).map(Arc::from);
        Some(context)
    }

    fn read(parent: &[u8]) -> Option<Self> {
        let (known, more) = parent.split_at_checked(BYTES)?;
        let [version] = bytes_of::<1>(known.get(..2)?)?;
        let ends_well = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more.starts_with(b"-"),
        };
        let has_dashes = [2, 35, 52].iter().all(|at| known.get(*at) == Some(&b'-'));
        if !ends_well || !has_dashes {
            return None;
        }
        let [flags] = bytes_of::<1>(known.get(53..)?)?;
        Some(Self::new(
            TraceId::read(known.get(3..35)?)?,
            SpanId::read(known.get(36..52)?)?,
            flags & SAMPLED != 0,
        ))
    }

    /// The next place below this one, with a name of its own.
    pub(super) fn child(&self, is_sampled: bool) -> Self {
        Self {
            span_id: SpanId::random(),
            parent_id: Some(self.span_id),
            is_sampled,
            ..self.clone()
        }
    }

    /// The trace.
    #[must_use]
    pub fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// The span: the call itself, as one side sees it.
    #[must_use]
    pub fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// The span that this one is the next below; `None` at the top of a trace,
    /// and for what a caller sent.
    #[must_use]
    pub fn parent_id(&self) -> Option<SpanId> {
        self.parent_id
    }

    /// Whether the trace is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// What tracing systems pass on to themselves: the `tracestate`.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Writes it for the callee, in place of what is there.
    pub fn write_to(&self, metadata: &mut Metadata) {
        // Both are printable and no reserved names, so that neither is refused.
        let _ = metadata.insert(TRACEPARENT, &self.to_string());
        metadata.remove(TRACESTATE);
        if let Some(state) = &self.state {
            let _ = metadata.insert(TRACESTATE, state);
        }
    }
}

/// As a `traceparent`, of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(BYTES);
        let flags = u8::from(self.is_sampled);
        write!(text, "00-{}-{}-{flags:02x}", self.trace_id, self.span_id)?;
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn of(parent: &str) -> Option<TraceContext> {
        let mut metadata = Metadata::new();
        metadata.insert(TRACEPARENT, parent).ok()?;
        TraceContext::from_metadata(&metadata)
    }

    #[test]
    fn the_only_flag_is_whether_it_is_sampled() {
        for (flags, is_sampled) in [("00", false), ("01", true), ("02", false), ("ff", true)] {
            let context = of(&format!("{}{flags}", &PARENT[..53])).unwrap();
            assert_eq!(context.is_sampled(), is_sampled, "{flags}");
            let written = format!("{}{:02x}", &PARENT[..53], u8::from(is_sampled));
            assert_eq!(context.to_string(), written);
        }
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        let of_version = |version: &str, more: &str| format!("{version}{}{more}", &PARENT[2..]);
        for parent in [
            "",
            "00",
            &PARENT[..54],
            &of_version("00", "-"),
            &of_version("00", "-01"),
            &of_version("ff", ""),
            &of_version("01", "x"),
            &of_version("0g", ""),
            &PARENT.to_uppercase(),
            &PARENT.replace("-b7", "_b7"),
            &PARENT.replace("319c-", "319c0"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &PARENT.replace("b7ad6b7169203331", "B7ad6b7169203331"),
            &PARENT.replace("-01", "-0x"),
        ] {
            assert_eq!(of(parent), None, "{parent}");
        }
        for parent in [of_version("01", ""), of_version("cc", "-what-comes")] {
            assert_eq!(of(&parent).unwrap().to_string(), PARENT, "{parent}");
        }
    }

    #[test]
    fn two_parents_are_none() {
        let mut metadata = Metadata::new();
        metadata.append(TRACEPARENT, PARENT).unwrap();
        assert!(TraceContext::from_metadata(&metadata).is_some());
        metadata.append(TRACEPARENT, PARENT).unwrap();
        assert_eq!(TraceContext::from_metadata(&metadata), None);
    }

    #[test]
    fn the_state_goes_along_where_it_is_well_formed() {
        let mut metadata = Metadata::new();
        metadata.append(TRACEPARENT, PARENT).unwrap();
        metadata.append(TRACESTATE, "a=1").unwrap();
        metadata.append(TRACESTATE, "b=2").unwrap();
        let context = TraceContext::from_metadata(&metadata).unwrap();
        let child = context.child(false);
        assert_eq!(child.trace_id(), context.trace_id());
        assert_eq!(child.parent_id(), Some(context.span_id()));
        let mut sent = Metadata::new();
        sent.append(TRACESTATE, "old=1").unwrap();
        child.write_to(&mut sent);
        let state: Vec<_> = sent.all(TRACESTATE).collect();
        assert_eq!(state, [b"a=1,b=2"]);
        assert_eq!(sent.get(TRACEPARENT), Some(child.to_string().as_str()));

        metadata.append(TRACESTATE, "broken").unwrap();
        let context = TraceContext::from_metadata(&metadata).unwrap();
        assert_eq!(context.state(), None);
    }
}
