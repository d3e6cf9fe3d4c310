//! A short copy of a key.

/// Bytes that stay on the stack up to [`KeyBuf::INLINE`] and go to the heap beyond.
#[derive(Clone)]
pub struct KeyBuf(Repr);

#[derive(Clone)]
enum Repr {
    Inline {
        len: u8,
        bytes: [u8; KeyBuf::INLINE],
    },
    Heap(Vec<u8>),
}

impl KeyBuf {
    /// Bytes that need no allocation.
    pub const INLINE: usize = 62;

    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::Inline {
            len: 0,
            bytes: [0; Self::INLINE],
        })
    }

    /// Appends bytes.
    pub fn extend(&mut self, more: &[u8]) {
        match &mut self.0 {
            Repr::Heap(vec) => vec.extend_from_slice(more),
            Repr::Inline { len, bytes } => {
                let used = usize::from(*len);
                let end = used + more.len();
                if let Some(free) = bytes.get_mut(used..end) {
                    free.copy_from_slice(more);
                    *len = end as u8;
                } else {
                    let mut vec = Vec::with_capacity(end);
                    vec.extend_from_slice(&bytes[..used]);
                    vec.extend_from_slice(more);
                    self.0 = Repr::Heap(vec);
                }
            }
        }
    }
}

impl Default for KeyBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&[u8]> for KeyBuf {
    fn from(bytes: &[u8]) -> Self {
        let mut buf = Self::new();
        buf.extend(bytes);
        buf
    }
}

impl AsRef<[u8]> for KeyBuf {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(vec) => vec,
        }
    }
}

impl std::fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.as_ref().escape_ascii())
    }
}
