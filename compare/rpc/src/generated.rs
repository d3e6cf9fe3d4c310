//! What each subject's generator makes of `proto/echo.proto`.

pub(crate) mod quill {
    quill::include_proto!("echo.v1");
}

#[allow(clippy::all, dead_code, unused)]
pub(crate) mod tonic {
    include!(concat!(env!("OUT_DIR"), "/tonic/echo.v1.rs"));
}

#[allow(clippy::all, dead_code, unused)]
pub(crate) mod connectrpc {
    include!(concat!(env!("OUT_DIR"), "/connectrpc/all.rs"));
}
