//! Calls between Quill's server and client over real sockets.

mod auth;
mod budgets;
mod building;
mod cases;
mod connections;
mod cors;
mod credits;
mod endings;
mod error_bodies;
mod external;
mod layers;
mod limits;
mod line_ends;
mod matrix;
mod metrics;
mod mounting;
mod overload;
mod panics;
mod passing_on;
mod peer;
mod probe;
mod progress;
mod rate_limit;
mod shutdown;
mod uncompressed;
mod versions;
