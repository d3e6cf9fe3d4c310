//! Where a key lies in a Cluster.

/// Slots of a Cluster.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key: CRC-16/XMODEM of its hash tag, or of the whole key if it
/// has none (Redis Cluster specification, "Key distribution model").
pub(super) fn slot(key: &[u8]) -> u16 {
    crc16(tag(key)) % SLOTS
}

/// What lies between the first `{` and the next `}`, if that is anything.
fn tag(key: &[u8]) -> &[u8] {
    let mut parts = key.splitn(2, |&byte| byte == b'{');
    let tag = parts.nth(1).and_then(|rest| {
        let end = rest.iter().position(|&byte| byte == b'}')?;
        rest.get(..end)
    });
    match tag {
        Some(tag) if !tag.is_empty() => tag,
        _ => key,
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), crc16(b"{bar") % SLOTS);
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        assert_eq!(slot(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
    }
}
