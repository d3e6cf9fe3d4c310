//! The exchanges of a connection, and the turn of those that send.

use std::collections::VecDeque;

use quill_h2::Key;

use super::StreamTask;

/// One of a connection's exchanges.
pub(crate) trait Exchange {
    fn stream(&self) -> &StreamTask;

    fn stream_mut(&mut self) -> &mut StreamTask;

    /// Whether its body is being sent.
    fn is_sending(&self) -> bool;
}

/// All exchanges of one connection, and the queue of those with something to send.
#[derive(Debug)]
pub(crate) struct Exchanges<E> {
    /// By the slots of the engine's streams.
    slots: Vec<Option<E>>,
    queue: VecDeque<Key>,
}

impl<E: Exchange> Exchanges<E> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            queue: VecDeque::new(),
        }
    }

    pub(crate) fn insert(&mut self, exchange: E) {
        let slot = exchange.stream().key.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(exchange);
        }
    }

    pub(crate) fn at(&mut self, stream: Key) -> Option<&mut E> {
        let exchange = self.slots.get_mut(stream.slot())?.as_mut()?;
        (exchange.stream().key == stream).then_some(exchange)
    }

    pub(crate) fn remove(&mut self, stream: Key) -> Option<E> {
        self.at(stream)?;
        self.slots.get_mut(stream.slot())?.take()
    }

    /// The streams that have one, for whoever changes some of them meanwhile.
    pub(crate) fn streams(&self) -> Vec<Key> {
        self.iter().map(|exchange| exchange.stream().key).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = E> {
        self.queue.clear();
        self.slots.drain(..).flatten()
    }

    /// Puts an exchange that sends in the queue, once.
    pub(crate) fn enqueue(&mut self, stream: Key) {
        let Some(exchange) = self.at(stream).filter(|exchange| exchange.is_sending()) else {
            return;
        };
        if !std::mem::replace(&mut exchange.stream_mut().is_queued, true) {
            self.queue.push_back(stream);
        }
    }

    pub(crate) fn enqueue_all(&mut self) {
        for exchange in self.slots.iter_mut().flatten() {
            if exchange.is_sending() {
                let task = exchange.stream_mut();
                if !std::mem::replace(&mut task.is_queued, true) {
                    self.queue.push_back(task.key);
                }
            }
        }
    }

    /// How many are in the queue.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the first of the queue out; it may have ended since.
    pub(crate) fn dequeue(&mut self) -> Option<Key> {
        let stream = self.queue.pop_front()?;
        if let Some(exchange) = self.at(stream) {
            exchange.stream_mut().is_queued = false;
        }
        Some(stream)
    }

    /// Takes no more memory than those that are open need.
    pub(crate) fn shrink(&mut self) {
        while self.slots.pop_if(|slot| slot.is_none()).is_some() {}
        self.slots.shrink_to_fit();
        self.queue.shrink_to_fit();
    }
}
