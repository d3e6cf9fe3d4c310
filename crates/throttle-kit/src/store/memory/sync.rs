//! The synchronisation that the table uses, replaced by loom's in its tests.

#[cfg(not(throttle_loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicU64, Ordering},
    thread::yield_now,
};

#[cfg(throttle_loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicU64, Ordering},
    thread::yield_now,
};
