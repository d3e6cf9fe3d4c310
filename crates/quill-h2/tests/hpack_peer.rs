//! HPACK against another implementation: the Python package `hpack`, where it is
//! installed. What one encodes the other decodes, and of broken blocks both think the
//! same.

mod python;

use python::Python;
use quill_h2::hpack::{Decoder, Encoder, Field, Sink};

/// Answers a line for each line: `new`; `size N`, what the encoder of its own may use;
/// `allow N`, what we may use; `encode FIELDS`, with the block; `decode BLOCK`, with the
/// fields or `error`. Bytes are in hex; a field is `name:value`, and fields have spaces
/// between them.
const PEER: &str = r#"
import sys
from hpack import Decoder, Encoder, HPACKError

def text(hex):
    return bytes.fromhex(hex)

for line in sys.stdin:
    verb, _, rest = line.strip().partition(" ")
    answer = "done"
    if verb == "new":
        encoder, decoder = Encoder(), Decoder(max_header_list_size=1 << 30)
    elif verb == "size":
        encoder.header_table_size = int(rest)
    elif verb == "allow":
        decoder.max_allowed_table_size = int(rest)
    elif verb == "encode":
        fields = [field.split(":") for field in rest.split()]
        fields = [(text(name), text(value)) for name, value in fields]
        answer = encoder.encode(fields, huffman=len(fields) % 2 == 0).hex()
    elif verb == "decode":
        try:
            fields = decoder.decode(text(rest), raw=True)
            answer = " ".join(f"{n.hex()}:{v.hex()}" for n, v in fields)
        except HPACKError:
            answer = "error"
    print(answer, flush=True)
"#;

/// Longer than any list here.
const LIST_BYTES_MAX: usize = 1 << 24;

fn peer() -> Option<Python> {
    Python::start("Python package hpack", "import hpack", PEER)
}

/// The same sequence of numbers in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn name(&mut self) -> Vec<u8> {
        const NAMES: [&str; 10] = [
            ":status",
            ":path",
            ":method",
            ":authority",
            "content-type",
            "cookie",
            "te",
            "grpc-status",
            "grpc-timeout",
            "x-request-id",
        ];
        match self.below(4) {
            0 => self.bytes(12),
            _ => NAMES[self.below(NAMES.len())].into(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        const VALUES: [&str; 6] = ["200", "POST", "/", "application/grpc", "0", ""];
        match self.below(4) {
            0 => self.bytes(300),
            1 => self.below(20).to_string().into_bytes(),
            _ => VALUES[self.below(VALUES.len())].into(),
        }
    }

    fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        (0..self.below(len_max))
            .map(|_| self.below(256) as u8)
            .collect()
    }

    fn fields(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..1 + self.below(7))
            .map(|_| (self.name(), self.value()))
            .collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter_map(|d| (d as char).to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn line<'a>(fields: impl IntoIterator<Item = &'a (Vec<u8>, Vec<u8>)>) -> String {
    let fields = fields
        .into_iter()
        .map(|(name, value)| format!("{}:{}", hex(name), hex(value)));
    fields.collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Line(Vec<String>);

impl Sink for Line {
    fn field(&mut self, field: Field<'_>) {
        self.0
            .push(format!("{}:{}", hex(field.name), hex(field.value)));
    }
}

/// What we make of a block, in the peer's words.
fn decoded(decoder: &mut Decoder, block: &[u8]) -> String {
    let mut fields = Line::default();
    match decoder.decode(block, LIST_BYTES_MAX, &mut fields) {
        Ok(_) => fields.0.join(" "),
        Err(_) => "error".to_owned(),
    }
}

#[test]
fn what_we_encode_the_peer_decodes() {
    let Some(mut peer) = peer() else {
        return;
    };
    let mut numbers = Numbers(1);
    for _ in 0..100 {
        peer.ask("new");
        let mut encoder = Encoder::new();
        for _ in 0..20 {
            if numbers.below(6) == 0 {
                let size = numbers.below(5000);
                peer.ask(&format!("allow {size}"));
                encoder.set_table_bytes_max(size as u32);
            }
            let fields = numbers.fields();
            let mut block = Vec::new();
            for (name, value) in &fields {
                encoder.field(name, value, numbers.below(9) == 0, &mut block);
            }
            assert_eq!(peer.ask(&format!("decode {}", hex(&block))), line(&fields));
        }
    }
}

#[test]
fn what_the_peer_encodes_we_decode() {
    let Some(mut peer) = peer() else {
        return;
    };
    let mut numbers = Numbers(2);
    for _ in 0..100 {
        peer.ask("new");
        let mut decoder = Decoder::default();
        for _ in 0..20 {
            if numbers.below(6) == 0 {
                let size = numbers.below(5000);
                peer.ask(&format!("size {size}"));
                decoder.set_table_bytes_max(size as u32);
            }
            let fields = numbers.fields();
            let block = bytes(&peer.ask(&format!("encode {}", line(&fields))));
            assert_eq!(decoded(&mut decoder, &block), line(&fields));
        }
    }
}

#[test]
fn of_broken_blocks_both_think_the_same() {
    let Some(mut peer) = peer() else {
        return;
    };
    let mut numbers = Numbers(3);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..1000 {
        peer.ask("new");
        let mut decoder = Decoder::default();
        let mut encoder = Encoder::new();
        for _ in 0..5 {
            let mut block = Vec::new();
            for (name, value) in numbers.fields() {
                encoder.field(&name, &value, numbers.below(9) == 0, &mut block);
            }
            for _ in 0..numbers.below(3) {
                let at = numbers.below(block.len());
                block[at] = numbers.below(256) as u8;
            }
            if numbers.below(8) == 0 {
                block.truncate(numbers.below(block.len()));
            }
            let ours = decoded(&mut decoder, &block);
            assert_eq!(
                ours,
                peer.ask(&format!("decode {}", hex(&block))),
                "{block:02x?}"
            );
            if ours == "error" {
                refused += 1;
                break;
            }
            accepted += 1;
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} and {refused}");
}
