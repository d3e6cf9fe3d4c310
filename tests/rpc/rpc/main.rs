//! Calls between Quill's server and client over real sockets.

mod credits;
mod endings;
mod layers;
mod limits;
mod matrix;
mod mounting;
mod probe;
