//! Calls between Quill's server and client over real sockets.

mod budgets;
mod cases;
mod credits;
mod endings;
mod layers;
mod limits;
mod matrix;
mod mounting;
mod peer;
mod probe;
