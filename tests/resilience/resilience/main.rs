//! Clients against servers that fail, slow down, die and come back.

mod breaker;
mod hedge;
mod limits;
mod peers;
mod retry;
mod services;
mod tokens;
