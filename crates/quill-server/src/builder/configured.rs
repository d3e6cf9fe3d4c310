//! What a config needs of a builder.

use quill_transport::ServerOptions;
use tower_layer::Stack as LayerStack;

use super::ServerBuilder;
use crate::middleware::metrics::MetricsCollector;

impl<L> ServerBuilder<L> {
    /// As [`layer`](Self::layer), where a layer may turn out to do nothing: then, and
    /// without others, calls take the way of a server that has none.
    pub(crate) fn layer_if<T>(self, is_needed: bool, layer: T) -> ServerBuilder<LayerStack<T, L>> {
        let is_layered = self.is_layered || is_needed;
        ServerBuilder {
            is_layered,
            ..self.layer(layer)
        }
    }

    /// What counts; made where there is none yet.
    pub(crate) fn collector_or_new(&mut self) -> MetricsCollector {
        let collector = &mut self.settings.metrics.collector;
        collector.get_or_insert_with(MetricsCollector::new).clone()
    }

    /// Most bytes of a received message, as was said so far.
    pub(crate) fn receive_bytes_max_so_far(&self) -> usize {
        self.settings.wire.receive_bytes_max
    }

    /// The limits of connections as they are so far.
    pub(crate) fn transport_mut(&mut self) -> &mut ServerOptions {
        self.settings.transport.get_or_insert_default()
    }
}
