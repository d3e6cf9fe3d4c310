//! Calls between Quill's server and client over real sockets.

mod cases;
mod cors;
mod credits;
mod endings;
mod layers;
mod limits;
mod matrix;
mod mounting;
mod peer;
mod probe;
