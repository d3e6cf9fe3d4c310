//! Bringing generated code into a crate.

/// Brings in what `quill-codegen` generated in this crate's `build.rs`.
///
/// `quill::include_proto!("echo.v1");` puts one package's messages, traits,
/// servers and clients where it stands. `quill::include_proto!();` puts all
/// packages there, each in the modules of its name (`echo::v1::EchoRequest`):
/// messages of one package that use those of another need it so.
///
/// Use it once a module.
#[macro_export]
macro_rules! include_proto {
    () => {
        include!(concat!(env!("OUT_DIR"), "/all-packages.rs"));
    };
    ($package:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".rs"));
    };
}
