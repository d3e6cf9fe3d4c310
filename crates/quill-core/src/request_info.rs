//! `google.rpc.RequestInfo`: the name by which both sides can speak of a call.
//!
//! `message RequestInfo { string request_id = 1; string serving_data = 2; }`

use bytes::Bytes;

use crate::error::Detail;
use crate::varint;

const TYPE_NAME: &str = "google.rpc.RequestInfo";
/// Fields 1 and 2: length-delimited.
const TAG_REQUEST_ID: u8 = 0x0a;
const TAG_SERVING_DATA: u8 = 0x12;

/// The detail of a call of this name; a name of 4 GiB and more is none.
pub(crate) fn encode(request_id: &str) -> Detail {
    let mut length = [0; varint::BYTES_MAX];
    let bytes = u32::try_from(request_id.len()).unwrap_or_default();
    let length_bytes = varint::encode(bytes, &mut length);
    let mut value = Vec::with_capacity(1 + length_bytes + request_id.len());
    value.push(TAG_REQUEST_ID);
    value.extend(length.iter().take(length_bytes));
    value.extend(request_id.bytes().take(bytes as usize));
    Detail {
        type_name: TYPE_NAME.to_owned(),
        value: Bytes::from(value),
    }
}

/// The name in a `RequestInfo`; `None` for another detail and for one that is
/// malformed or has no name.
pub(crate) fn decode(detail: &Detail) -> Option<&str> {
    if detail.type_name != TYPE_NAME {
        return None;
    }
    let mut left = detail.value.as_ref();
    let mut request_id = "";
    while let Some((tag, rest)) = left.split_first() {
        let (bytes, length_bytes) = varint::decode(rest).ok()??;
        let rest = rest.get(length_bytes..)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        match *tag {
            TAG_REQUEST_ID => request_id = std::str::from_utf8(text).ok()?,
            TAG_SERVING_DATA => {}
            _ => return None,
        }
        left = rest;
    }
    (!request_id.is_empty()).then_some(request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(value: &'static [u8]) -> Detail {
        Detail {
            type_name: TYPE_NAME.to_owned(),
            value: Bytes::from_static(value),
        }
    }

    #[test]
    fn a_name_goes_both_ways() {
        for name in ["a", "4bf92f3577b34da6a3ce929d0e0e4736", &"x".repeat(300)] {
            assert_eq!(decode(&encode(name)), Some(name));
        }
        assert_eq!(encode("ab").value.as_ref(), [0x0a, 2, b'a', b'b']);
        assert_eq!(decode(&detail(b"\x12\x01s\x0a\x01a")), Some("a"));
    }

    #[test]
    fn what_is_malformed_has_no_name() {
        for value in [
            &b""[..],
            b"\x0a",
            b"\x0a\x00",
            b"\x0a\x02a",
            b"\x0a\x01\xff",
            b"\x0a\xff\xff\xff\xff\xff",
            b"\x12\x01s",
            b"\x18\x01",
        ] {
            assert_eq!(decode(&detail(value)), None, "{value:?}");
        }
    }
}
