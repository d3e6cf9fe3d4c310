//! Calls between Quill's server and client over real sockets.

mod budgets;
mod building;
mod cases;
mod cors;
mod credits;
mod endings;
mod error_bodies;
mod layers;
mod limits;
mod matrix;
mod mounting;
mod passing_on;
mod peer;
mod probe;
mod progress;
mod versions;
