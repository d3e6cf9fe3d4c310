//! `grpc-status-details-bin`: a `google.rpc.Status` in base64.
//!
//! `message Status { int32 code = 1; string message = 2; repeated
//! google.protobuf.Any details = 3; }`, with `message Any { string type_url = 1;
//! bytes value = 2; }`.

use bytes::Bytes;
use quill_core::{Code, Detail};

use crate::base64;

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
const FIELD_CODE: u64 = 1;
const FIELD_MESSAGE: u64 = 2;
const FIELD_DETAILS: u64 = 3;
const FIELD_TYPE_URL: u64 = 1;
const FIELD_VALUE: u64 = 2;

const WIRE_VARINT: u64 = 0;
const WIRE_FIXED64: u64 = 1;
const WIRE_BYTES: u64 = 2;
const WIRE_FIXED32: u64 = 5;

/// The value of the field.
pub(super) fn encode(code: Code, message: &str, details: &[Detail]) -> String {
    let mut status = Vec::with_capacity(64);
    put_varint(&mut status, FIELD_CODE << 3 | WIRE_VARINT);
    put_varint(&mut status, code.number().into());
    if !message.is_empty() {
        put_bytes(&mut status, FIELD_MESSAGE, &[message.as_bytes()]);
    }
    let mut any = Vec::new();
    for detail in details {
        any.clear();
        let type_url = [TYPE_URL_PREFIX.as_bytes(), detail.type_name.as_bytes()];
        put_bytes(&mut any, FIELD_TYPE_URL, &type_url);
        if !detail.value.is_empty() {
            put_bytes(&mut any, FIELD_VALUE, &[&detail.value]);
        }
        put_bytes(&mut status, FIELD_DETAILS, &[&any]);
    }
    base64::encode(&status)
}

/// What a reader needs of a status.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatusDetails {
    /// 0 when the status names none.
    pub(super) code: i32,
    pub(super) details: Vec<Detail>,
}

/// Undoes [`encode`]; fields that are not known are skipped. `None` for what is
/// no base64 or no such message.
pub(super) fn decode(value: &[u8]) -> Option<StatusDetails> {
    let bytes = Bytes::from(base64::decode(value)?);
    let mut status = StatusDetails::default();
    for_each_field(&bytes, |number, field| {
        match (number, field) {
            // An int32 is sign-extended to 64 bits; a parser keeps the low 32.
            (FIELD_CODE, Field::Varint(code)) => status.code = code as u32 as i32,
            (FIELD_DETAILS, Field::Bytes(any)) => status.details.push(decode_any(&bytes, any)?),
            _ => {}
        }
        Some(())
    })?;
    Some(status)
}

fn decode_any(status: &Bytes, any: &[u8]) -> Option<Detail> {
    let mut detail = Detail {
        type_name: String::new(),
        value: Bytes::new(),
    };
    for_each_field(any, |number, field| {
        match (number, field) {
            (FIELD_TYPE_URL, Field::Bytes(type_url)) => {
                let type_url = std::str::from_utf8(type_url).ok()?;
                let name = type_url.rsplit_once('/').map_or(type_url, |(_, name)| name);
                name.clone_into(&mut detail.type_name);
            }
            (FIELD_VALUE, Field::Bytes(value)) => detail.value = status.slice_ref(value),
            _ => {}
        }
        Some(())
    })?;
    Some(detail)
}

enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// Calls `visit` with each field of a message; `None` for malformed bytes, for
/// groups (which no field here is) and when `visit` says so.
fn for_each_field<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Field<'a>) -> Option<()>,
) -> Option<()> {
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let field = match tag & 7 {
            WIRE_VARINT => Field::Varint(take_varint(&mut bytes)?),
            WIRE_BYTES => {
                let len = usize::try_from(take_varint(&mut bytes)?).ok()?;
                Field::Bytes(take(&mut bytes, len)?)
            }
            WIRE_FIXED64 => take(&mut bytes, 8).map(|_| Field::Fixed)?,
            WIRE_FIXED32 => take(&mut bytes, 4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        visit(tag >> 3, field)?;
    }
    Some(())
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn put_bytes(out: &mut Vec<u8>, field: u64, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    put_varint(out, field << 3 | WIRE_BYTES);
    put_varint(out, len as u64);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn details_go_both_ways(
            number in 1..=16_u32,
            message in any::<String>(),
            details in prop::collection::vec(("[a-zA-Z.]{1,20}", any::<Vec<u8>>()), 0..4),
        ) {
            let code = Code::from_number(number).unwrap();
            let details: Vec<Detail> = details
                .into_iter()
                .map(|(type_name, value)| Detail { type_name, value: value.into() })
                .collect();
            let text = encode(code, &message, &details);
            prop_assert!(!text.contains('='));
            let decoded = decode(text.as_bytes()).unwrap();
            prop_assert_eq!(decoded, StatusDetails { code: number as i32, details });
        }

        #[test]
        fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
            let _ = decode(&bytes);
            let _ = decode(base64::encode(&bytes).as_bytes());
        }
    }

    #[test]
    fn the_bytes_are_those_of_protobuf() {
        let detail = Detail {
            type_name: "a.B".to_owned(),
            value: Bytes::from_static(&[8, 1]),
        };
        let text = encode(Code::NotFound, "no", &[detail]);
        let mut expected =
            b"\x08\x05\x12\x02no\x1a\x1d\x0a\x17type.googleapis.com/a.B\x12\x02".to_vec();
        expected.extend_from_slice(&[8, 1]);
        assert_eq!(base64::decode(text.as_bytes()), Some(expected));
    }

    #[test]
    fn unknown_fields_are_skipped_and_a_negative_code_is_read() {
        let mut bytes = b"\x08".to_vec();
        bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        bytes.extend_from_slice(
            b"\x25\x00\x00\x00\x00\x29\x00\x00\x00\x00\x00\x00\x00\x00\x38\x01\x1a\x00",
        );
        let status = decode(base64::encode(&bytes).as_bytes()).unwrap();
        assert_eq!(status.code, -1);
        assert_eq!(status.details.len(), 1);
    }

    #[test]
    fn malformed_bytes_are_none() {
        assert_eq!(decode(b"!"), None);
        for bytes in [
            &[0x1a, 9, 1][..],
            &[0x08],
            &[0x0b],
            &[0x1a, 2, 0x0a, 5],
            &[0xff; 11],
        ] {
            assert_eq!(decode(base64::encode(bytes).as_bytes()), None, "{bytes:?}");
        }
    }
}
