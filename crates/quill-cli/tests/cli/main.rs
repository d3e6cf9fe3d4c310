//! The real binary, as its users run it.

mod bench;
mod call;
mod clients;
mod compat;
#[cfg(unix)]
mod config;
mod curl;
mod errors;
mod explain;
#[cfg(unix)]
mod generate;
mod guide;
#[cfg(unix)]
mod inspect;
#[cfg(unix)]
mod json;
#[cfg(unix)]
mod lifecycle;
#[cfg(unix)]
mod readme;
mod reflection;
mod schema;
#[cfg(unix)]
mod sessions;
mod shop;
mod streams;
mod support;
mod tls;
