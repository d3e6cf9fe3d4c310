//! SETTINGS (RFC 9113, section 6.5).

use crate::fault::Fault;
use crate::frame::PAYLOAD_BYTES_DEFAULT;
use crate::window::{WINDOW_BYTES_DEFAULT, WINDOW_BYTES_MAX};

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// The largest payload that can be agreed on.
const PAYLOAD_BYTES_MAX: u32 = (1 << 24) - 1;

/// What the peer set, or what holds until it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings {
    /// The least and the last size of the header table that a frame gave and that the
    /// encoder was not told of.
    pub(crate) table_bytes: Option<(u32, u32)>,
    pub(crate) streams_max: u32,
    pub(crate) window_bytes: u32,
    pub(crate) frame_bytes_max: u32,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            table_bytes: None,
            streams_max: u32::MAX,
            window_bytes: WINDOW_BYTES_DEFAULT,
            frame_bytes_max: PAYLOAD_BYTES_DEFAULT,
        }
    }
}

impl PeerSettings {
    /// Takes in a frame's payload; later values of a setting replace earlier ones.
    pub(crate) fn update(&mut self, payload: &[u8], from_server: bool) -> Result<(), Fault> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Fault::size("a SETTINGS frame's length is no multiple of 6"));
        }
        for [i0, i1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([*v0, *v1, *v2, *v3]);
            match u16::from_be_bytes([*i0, *i1]) {
                HEADER_TABLE_SIZE => {
                    let before = self.table_bytes;
                    let least = before.map_or(value, |(least, _)| least.min(value));
                    self.table_bytes = Some((least, value));
                }
                // A server may not even set it to what it is (section 6.5.2).
                ENABLE_PUSH if value > 1 || (from_server && value == 1) => {
                    return Err(Fault::protocol(
                        "ENABLE_PUSH has a value that it can't have",
                    ));
                }
                MAX_CONCURRENT_STREAMS => self.streams_max = value,
                INITIAL_WINDOW_SIZE if value > WINDOW_BYTES_MAX => {
                    return Err(Fault::flow("INITIAL_WINDOW_SIZE is over 2^31-1"));
                }
                INITIAL_WINDOW_SIZE => self.window_bytes = value,
                MAX_FRAME_SIZE if !(PAYLOAD_BYTES_DEFAULT..=PAYLOAD_BYTES_MAX).contains(&value) => {
                    return Err(Fault::protocol("MAX_FRAME_SIZE is out of its bounds"));
                }
                MAX_FRAME_SIZE => self.frame_bytes_max = value,
                // The others ask nothing of this side, or are unknown.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes one setting.
pub(crate) fn put(out: &mut Vec<u8>, name: u16, value: u32) {
    out.extend_from_slice(&name.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;

    fn one(name: u16, value: u32) -> Vec<u8> {
        let mut payload = Vec::new();
        put(&mut payload, name, value);
        payload
    }

    #[test]
    fn values_are_taken_and_unknown_settings_ignored() {
        let mut settings = PeerSettings::default();
        let mut payload = one(INITIAL_WINDOW_SIZE, 5);
        payload.extend(one(INITIAL_WINDOW_SIZE, 7));
        payload.extend(one(MAX_FRAME_SIZE, 16_385));
        payload.extend(one(0xabcd, 1));
        settings.update(&payload, false).unwrap();
        assert_eq!(
            (settings.window_bytes, settings.frame_bytes_max),
            (7, 16_385)
        );
    }

    #[test]
    fn values_out_of_bounds_are_faults() {
        for (name, value, from_server, code) in [
            (ENABLE_PUSH, 2, false, ErrorCode::PROTOCOL_ERROR),
            (ENABLE_PUSH, 1, true, ErrorCode::PROTOCOL_ERROR),
            (
                INITIAL_WINDOW_SIZE,
                1 << 31,
                false,
                ErrorCode::FLOW_CONTROL_ERROR,
            ),
            (MAX_FRAME_SIZE, 16_383, false, ErrorCode::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, false, ErrorCode::PROTOCOL_ERROR),
        ] {
            let mut settings = PeerSettings::default();
            let fault = settings.update(&one(name, value), from_server);
            assert!(matches!(fault, Err(Fault::Connection(found, _)) if found == code));
        }
        assert!(
            PeerSettings::default()
                .update(&one(ENABLE_PUSH, 1), false)
                .is_ok()
        );
        assert!(PeerSettings::default().update(&[0; 5], false).is_err());
    }
}
