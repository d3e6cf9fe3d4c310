//! The types that are known without a schema: `google.protobuf` and the details
//! of `google.rpc`.

use buffa::Message;
use buffa_descriptor::generated::descriptor::{FileDescriptorProto, FileDescriptorSet};

const SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/known.binpb"));

pub(crate) fn files() -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode_from_slice(SET)
        .map(|set| set.file)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_types_are_there() {
        let pool = super::super::pool(Vec::new()).unwrap();
        for name in [
            "google.rpc.RetryInfo",
            "google.rpc.BadRequest.FieldViolation",
            "google.rpc.Status",
            "google.protobuf.Struct",
            "google.protobuf.Empty",
        ] {
            assert!(pool.message_by_name(name).is_some(), "{name}");
        }
        assert!(files().len() >= 11);
    }
}
