//! Clients against servers that fail, slow down, die and come back.

mod balance;
mod breaker;
mod chaos;
mod hedge;
mod limits;
mod peers;
mod proxied;
mod proxy;
mod retry;
mod services;
mod tokens;
