//! The Huffman code of strings (RFC 7541, 5.2 and Appendix B).
//!
//! The code is canonical: the lengths of the symbols say all of it. Everything else
//! here is made of them by the compiler.

use super::Error;

/// The octets of each code length, in the order of their codes (Appendix B). EOS,
/// which is no octet, has the last code of 30 bits.
const BY_LENGTH: [(u32, &[u8]); 21] = [
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b"!\"()?"),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\0$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, &[92, 195, 208]),
    (20, &[128, 130, 131, 162, 184, 194, 224, 226]),
    (
        21,
        &[
            153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230,
        ],
    ),
    (
        22,
        &[
            129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185,
            186, 187, 189, 190, 196, 198, 228, 232, 233,
        ],
    ),
    (
        23,
        &[
            1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166,
            168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239,
        ],
    ),
    (
        24,
        &[9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237],
    ),
    (25, &[199, 207, 234, 235]),
    (
        26,
        &[
            192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255,
        ],
    ),
    (
        27,
        &[
            203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252,
            253, 254,
        ],
    ),
    (
        28,
        &[
            2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28,
            29, 30, 31, 127, 220, 249,
        ],
    ),
    (30, &[10, 13, 22]),
];

/// An octet's code, in the low bits, and its length in bits.
#[derive(Clone, Copy)]
struct Symbol {
    code: u32,
    bits: u32,
}

const CODES: [Symbol; 256] = codes();

const fn codes() -> [Symbol; 256] {
    let mut codes = [Symbol { code: 0, bits: 0 }; 256];
    let (mut next, mut previous, mut group) = (0_u32, 0, 0);
    while group < BY_LENGTH.len() {
        let (bits, octets) = BY_LENGTH[group];
        next <<= bits - previous;
        previous = bits;
        let mut at = 0;
        while at < octets.len() {
            codes[octets[at] as usize] = Symbol { code: next, bits };
            next += 1;
            at += 1;
        }
        group += 1;
    }
    codes
}

/// Bits that one look-up sees: enough for two of the most common octets.
const LOOKUP_BITS: u32 = 11;

/// What the next bits begin with: one whole octet, or two, or the start of a longer
/// code (then `bits` is 0).
#[derive(Clone, Copy)]
struct Start {
    octets: [u8; 2],
    len: u8,
    bits: u8,
}

static STARTS: [Start; 1 << LOOKUP_BITS] = starts();

const fn starts() -> [Start; 1 << LOOKUP_BITS] {
    let mut starts = [Start {
        octets: [0; 2],
        len: 0,
        bits: 0,
    }; 1 << LOOKUP_BITS];
    let mut octet = 0;
    while octet < 256 {
        let Symbol { code, bits } = CODES[octet];
        if bits <= LOOKUP_BITS {
            let free = LOOKUP_BITS - bits;
            let mut low = 0;
            while low < 1 << free {
                let (second, second_bits) = first_within(low, free);
                starts[((code << free) | low) as usize] = Start {
                    octets: [octet as u8, second],
                    len: 1 + (second_bits != 0) as u8,
                    bits: (bits + second_bits) as u8,
                };
                low += 1;
            }
        }
        octet += 1;
    }
    starts
}

/// The octet whose whole code `value`, of `have` bits, begins with, and the bits of it;
/// none when the code is longer.
const fn first_within(value: u32, have: u32) -> (u8, u32) {
    let mut group = 0;
    while group < BY_LENGTH.len() && BY_LENGTH[group].0 <= have {
        let (bits, octets) = BY_LENGTH[group];
        let first = CODES[octets[0] as usize].code;
        let nth = (value >> (have - bits)).wrapping_sub(first) as usize;
        if nth < octets.len() {
            return (octets[nth], bits);
        }
        group += 1;
    }
    (0, 0)
}

/// The bytes that `text` takes encoded.
#[inline]
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&octet| CODES[usize::from(octet)].bits as usize)
        .sum();
    bits.div_ceil(8)
}

/// Appends `text` encoded.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The code so far, at the low end.
    let (mut pending, mut have) = (0_u64, 0);
    for &octet in text {
        let Symbol { code, bits } = CODES[usize::from(octet)];
        pending = (pending << bits) | u64::from(code);
        have += bits;
        // A code has at most 30 bits, so 32 and those fit.
        if have >= 32 {
            have -= 32;
            out.extend_from_slice(&((pending >> have) as u32).to_be_bytes());
        }
    }
    // The rest, filled up with the ones that EOS begins with.
    let padding = (8 - have % 8) % 8;
    let pending = (pending << padding) | ((1 << padding) - 1);
    let bytes = ((have + padding) / 8) as usize;
    out.extend_from_slice(&pending.to_be_bytes()[8 - bytes..]);
}

/// The most bytes that [`decode`] writes for `encoded_len` bytes, and one of room.
pub(super) fn decoded_len_max(encoded_len: usize) -> usize {
    encoded_len * 8 / 5 + 1
}

/// Decodes `input` into the front of `out`, which has room for [`decoded_len_max`],
/// and returns the length of the text.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let mut window = Window {
        bits: 0,
        have: 0,
        input,
    };
    let mut at = 0;
    // As long as any code, EOS too, would be there as a whole.
    while window.filled() {
        let start = STARTS[(window.bits >> (64 - LOOKUP_BITS)) as usize];
        if start.bits == 0 {
            let (octet, bits) = window.long_code()?;
            put(out, at, [octet, 0])?;
            at += 1;
            window.skip(bits);
        } else {
            put(out, at, start.octets)?;
            at += usize::from(start.len);
            window.skip(u32::from(start.bits));
        }
    }
    window.decode_end(out, at)
}

#[inline]
fn put(out: &mut [u8], at: usize, octets: [u8; 2]) -> Result<(), Error> {
    // There is room for the most that the input can say: never an error.
    let room = out.get_mut(at..at + 2).ok_or(Error::HuffmanPadding)?;
    room.copy_from_slice(&octets);
    Ok(())
}

/// The next bits of the input, at the high end of `bits`.
struct Window<'a> {
    bits: u64,
    /// How many of `bits` count. Below them may stand bits that come again.
    have: u32,
    input: &'a [u8],
}

impl Window<'_> {
    /// Bits of the longest code.
    const LONGEST: u32 = 30;

    /// Takes up input, and says whether the longest code would be there.
    #[inline]
    fn filled(&mut self) -> bool {
        if self.have >= Self::LONGEST {
            return true;
        }
        if let Some(next) = self.input.first_chunk::<8>() {
            self.bits |= u64::from_be_bytes(*next) >> self.have;
            let bytes = (63 - self.have) / 8;
            self.have += 8 * bytes;
            self.input = &self.input[bytes as usize..];
            return true;
        }
        while let Some((&byte, rest)) = self.input.split_first() {
            self.bits |= u64::from(byte) << (56 - self.have);
            self.have += 8;
            self.input = rest;
            if self.have > 56 {
                break;
            }
        }
        self.have >= Self::LONGEST
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.bits <<= bits;
        self.have -= bits;
    }

    /// The octet with a code longer than [`LOOKUP_BITS`] at the front, and its bits.
    #[cold]
    fn long_code(&self) -> Result<(u8, u32), Error> {
        match first_within((self.bits >> 32) as u32, 32) {
            (_, 0) => Err(Error::HuffmanEos),
            found => Ok(found),
        }
    }

    /// Decodes what is left when the input has ended and less than 30 bits are there.
    #[inline]
    fn decode_end(&mut self, out: &mut [u8], mut at: usize) -> Result<usize, Error> {
        loop {
            // As padding would go on: an octet is whole only within the bits that count.
            self.bits |= u64::MAX >> self.have;
            if self.have < 8 && self.bits == u64::MAX {
                return Ok(at);
            }
            let Start { octets, len, bits } = STARTS[(self.bits >> (64 - LOOKUP_BITS)) as usize];
            let (octets, len, bits) = if bits == 0 {
                let (octet, bits) = first_within((self.bits >> 32) as u32, 32);
                ([octet, 0], 1, bits)
            } else if u32::from(bits) <= self.have {
                (octets, len, u32::from(bits))
            } else {
                (octets, 1, CODES[usize::from(octets[0])].bits)
            };
            if bits == 0 || bits > self.have {
                return Err(Error::HuffmanPadding);
            }
            put(out, at, octets)?;
            at += usize::from(len);
            self.skip(bits);
        }
    }
}

#[cfg(test)]
mod tests;
