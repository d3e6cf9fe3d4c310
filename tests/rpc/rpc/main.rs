//! Calls between Quill's server and client over real sockets.

mod cases;
mod credits;
mod endings;
mod error_bodies;
mod layers;
mod limits;
mod matrix;
mod mounting;
mod peer;
mod probe;
mod versions;
