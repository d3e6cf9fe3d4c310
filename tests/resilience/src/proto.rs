//! What is generated from `flaky.proto`.

quill::include_proto!("flaky.v1");
