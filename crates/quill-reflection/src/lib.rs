//! The standard gRPC reflection service for Quill servers:
//! `grpc.reflection.v1` and, for older clients, `v1alpha`.
//!
//! ```
//! use quill_reflection::proto::v1::FILE_DESCRIPTOR_SET;
//!
//! // FILE_DESCRIPTOR_SET is in every package that quill-codegen generates.
//! let reflection = quill_reflection::server(FILE_DESCRIPTOR_SET);
//! // Server::builder().service(reflection)
//! # assert!(reflection.error().is_none());
//! ```
//!
//! A server of several packages adds the others by
//! [`with_descriptor_set`](ReflectionServer::with_descriptor_set).

mod answer;
mod catalog;
pub mod proto;
mod server;

pub use catalog::DescriptorSetError;
pub use server::{ReflectionServer, server};
