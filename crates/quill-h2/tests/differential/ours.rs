//! Our own connections.

use bytes::BytesMut;
use quill_core::{HttpMethod, HttpVersion, RequestHead};
use quill_h2::{Config, Connection, Event};

use crate::verdict::Verdict;

/// A server that answers nothing.
pub(crate) fn server(input: &[u8]) -> Verdict {
    feed(Connection::server(Config::default()), input)
}

/// A client with two requests under way.
pub(crate) fn client(input: &[u8]) -> Verdict {
    let mut connection = Connection::client(Config::default());
    for _ in 0..2 {
        let head = RequestHead {
            method: HttpMethod::Get,
            target: "/".into(),
            version: HttpVersion::Http2,
            authority: "a".into(),
            headers: quill_core::Headers::default(),
        };
        let opened = connection.open("http", &head, &[], true);
        assert!(opened.is_ok());
    }
    feed(connection, input)
}

fn feed(mut connection: Connection, input: &[u8]) -> Verdict {
    let mut input = BytesMut::from(input);
    while let Some(event) = connection.receive(&mut input) {
        if let Event::Request { key, .. } = event {
            connection.accept(key);
        }
    }
    let mut slices = [std::io::IoSlice::new(&[]); 16];
    let mut output = Vec::new();
    let filled = connection.output().slices(&mut slices);
    for slice in &slices[..filled] {
        output.extend_from_slice(slice);
    }
    assert_eq!(output.len(), connection.output().len());
    Verdict::of(&output)
}
