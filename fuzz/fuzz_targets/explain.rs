//! Any bytes, explained as what they look like and as each of what they may be,
//! with a schema and without: it ends, in text that drives no terminal. The first
//! byte says which.
#![no_main]

use std::sync::{Arc, LazyLock};

use buffa_descriptor::DescriptorPool;
use libfuzzer_sys::fuzz_target;
use quill_explain::{Container, Form, Options, Schema, View, explain};
use quill_fuzz::FILE_DESCRIPTOR_SET;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("a set");
    let message = pool.message_index("probe.v1.Kinds").expect("the type");
    Schema {
        pool: Arc::new(pool),
        message,
    }
});

fuzz_target!(|input: &[u8]| {
    let [which, bytes @ ..] = input else {
        return;
    };
    let mut options = Options::default();
    options.message_bytes_max = 64 * 1024;
    options.container = match which & 7 {
        0 => Some(Container::Message),
        1 => Some(Container::Quill),
        2 => Some(Container::Envelopes),
        3 => Some(Container::Json),
        _ => None,
    };
    if which & 8 != 0 {
        options.schema = Some(SCHEMA.clone());
        options.view = if which & 16 != 0 {
            View::Json
        } else {
            View::Dump
        };
    }
    let form = match which >> 5 {
        0 => Form::recognise(bytes),
        1 => Form::Hex,
        2 => Form::Base64,
        _ => Form::Binary,
    };
    let mut text = Vec::new();
    // Text of a wrong form can't be read; all else can.
    if let Ok(summary) = explain(&mut *form.read(bytes), &mut text, &options) {
        assert_eq!(summary.first_fault.is_some(), summary.faults > 0);
    }
    let text = String::from_utf8(text).expect("text is UTF-8");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
});
