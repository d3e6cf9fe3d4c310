//! The real binary, as its users run it.

mod call;
mod clients;
mod curl;
mod errors;
#[cfg(unix)]
mod lifecycle;
#[cfg(unix)]
mod readme;
mod reflection;
mod schema;
mod shop;
mod streams;
mod support;
mod tls;
