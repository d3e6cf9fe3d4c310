//! The messages of the service, and how its methods are called.

/// Generated from `proto/grpc/reflection/v1/reflection.proto`.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/grpc.reflection.v1.rs"));
}

/// The older name of the same service; its messages are those of [`v1`] byte
/// by byte.
pub mod v1alpha {
    use quill_core::{Method, MethodKind};

    /// The service's full name.
    pub const NAME: &str = "grpc.reflection.v1alpha.ServerReflection";

    /// `/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo`
    pub static SERVER_REFLECTION_INFO: Method = Method::new(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        MethodKind::BidiStreaming,
    );

    /// The file of this package, as a serialized `google.protobuf.FileDescriptorSet`.
    pub const FILE_DESCRIPTOR_SET: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/v1alpha.binpb"));
}
