//! Inputs on which other implementations went wrong, and their neighbours, as
//! bytes between a real socket and our server or client.

mod answers;
mod bad_input;
mod connect;
mod deadlines;
mod early_answers;
mod grpc;
mod json;
mod json_mapping;
mod kinds;
mod transport;
