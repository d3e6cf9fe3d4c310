//! Any bytes as what a server answers `quill call`: the files of its schema,
//! then a message of each of their types, in binary and in JSON. The first two
//! bytes say how long the message is, the next two how long the first file.
#![no_main]

use std::sync::Arc;

use buffa_descriptor::generated::descriptor::FileDescriptorSet;
use buffa_descriptor::{DescriptorPool, DynamicMessage};
use libfuzzer_sys::fuzz_target;
use quill::DecodeLimits;

// The command is a binary; these are the files of it that read what a server says.
#[path = "../../crates/quill-cli/src/schema/file_set.rs"]
mod file_set;
#[allow(dead_code)]
#[path = "../../crates/quill-cli/src/json_check.rs"]
mod json_check;
#[allow(dead_code)]
#[path = "../../crates/quill-cli/src/message_type.rs"]
mod message_type;
#[allow(dead_code)]
#[path = "../../crates/quill-cli/src/schema/reflection_files.rs"]
mod reflection_files;
#[path = "../../crates/quill-cli/src/output/template.rs"]
mod template;
#[path = "../../crates/quill-cli/src/schema/unknown_any.rs"]
mod unknown_any;
#[allow(dead_code)]
#[path = "../../crates/quill-cli/src/output/with_defaults.rs"]
mod with_defaults;

/// As the command names it.
mod output {
    pub(crate) use crate::template::template;
}

use message_type::MessageType;

/// Types of a schema that a message is read by.
const TYPES_MAX: usize = 8;

fuzz_target!(|input: &[u8]| {
    let [a, b, c, d, rest @ ..] = input else {
        return;
    };
    let cut = |bytes: &[u8], at: [u8; 2]| bytes.len().min(usize::from(u16::from_le_bytes(at)));
    let (message, files) = rest.split_at(cut(rest, [*a, *b]));
    let (first, second) = files.split_at(cut(files, [*c, *d]));

    let mut taken = reflection_files::ReflectionFiles::default();
    for file in [first, second] {
        if taken.take(file).is_err() {
            return;
        }
    }
    assert!(taken.missing(64).len() <= 64);
    let Ok(files) = taken.into_files() else {
        return;
    };
    let set = FileDescriptorSet {
        file: files,
        ..Default::default()
    };
    let Ok(pool) = DescriptorPool::new(set) else {
        return;
    };
    let pool = Arc::new(pool);
    for service in pool.services() {
        for method in service.methods() {
            assert!(
                !MessageType::new(Arc::clone(&pool), method.input())
                    .full_name()
                    .is_empty()
            );
        }
    }
    for descriptor in pool.messages().iter().take(TYPES_MAX) {
        let Some(of_type) = MessageType::named(&pool, descriptor.full_name()) else {
            panic!("{} is in the pool", descriptor.full_name());
        };
        let mut limits = DecodeLimits::default();
        limits.element_bytes_max = 1024 * 1024;
        for read in [
            of_type.read_bytes(message, &limits),
            of_type.read_json(message, true),
            of_type.read_json(message, false),
        ] {
            if let Ok(message) = read {
                show(&message);
            }
        }
    }
});

/// What the command does with an answer.
fn show(message: &DynamicMessage) {
    let _ = unknown_any::unknown_any(message);
    let _ = serde_json::to_string(message);
}
