//! Who is limited: keys, and the namespaces that keep them apart.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// What the bytes of a key are, so that keys of different kinds never meet:
/// the text `AAAA` and the address 65.65.65.65 are two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// Text, or any other bytes as they are.
    Bytes,
    /// A number, big-endian: 8 bytes, or 16 of a `u128`.
    Int,
    /// An address: 4 or 16 bytes.
    Ip,
    /// Several keys, each as its kind's letter, its length (four bytes,
    /// big-endian) and its bytes.
    Tuple,
    /// What a [`Hash`] implementation fed to its hasher.
    Hashed,
}

/// How many kinds there are.
pub(crate) const KINDS: usize = 5;

impl Kind {
    /// The letter that stands for it in canonical forms.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Bytes => b'b',
            Self::Int => b'i',
            Self::Ip => b'a',
            Self::Tuple => b't',
            Self::Hashed => b'h',
        }
    }
}

/// Something that can be limited: text, bytes, numbers, addresses, tuples of
/// them, and through [`Hashed`] anything that is `Hash`.
///
/// A key gives its canonical bytes, the same on every machine, because stores
/// outside the process (Redis, SQLite) keep them.
///
/// ```
/// use throttle_kit::{Key, Kind};
///
/// struct ApiKey(String);
///
/// impl Key for ApiKey {
///     const KIND: Kind = Kind::Bytes;
///     type Bytes<'a> = &'a [u8];
///     fn bytes(&self) -> &[u8] {
///         self.0.as_bytes()
///     }
/// }
/// ```
pub trait Key {
    /// What the bytes are.
    const KIND: Kind;
    /// Borrowed from the key, or held in place.
    type Bytes<'a>: AsRef<[u8]> + Send + Sync
    where
        Self: 'a;
    /// The canonical bytes.
    fn bytes(&self) -> Self::Bytes<'_>;
}

/// A key as a store sees it.
#[derive(Debug, Clone, Copy)]
pub struct KeyRef<'a> {
    /// Keeps equal keys of different limiters apart.
    pub namespace: &'a Namespace,
    /// What the bytes are.
    pub kind: Kind,
    /// The key's canonical bytes.
    pub bytes: &'a [u8],
}

impl<'a> KeyRef<'a> {
    /// A key of the namespace that limiters have unless told otherwise.
    #[must_use]
    pub const fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        Self {
            namespace: &Namespace::DEFAULT,
            kind,
            bytes,
        }
    }

    /// Appends a form that no other key of any namespace has: the namespace's
    /// length and name, the kind's letter, and the bytes, parted by colons.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        let name = self.namespace.name().as_bytes();
        out.extend_from_slice(name.len().to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(name);
        out.extend_from_slice(&[b':', self.kind.letter(), b':']);
        out.extend_from_slice(self.bytes);
    }
}

/// Keeps the budgets of equal keys apart.
///
/// Limiters that share a backend share the budget of an equal key, unless they
/// are given different namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    id: u64,
    name: Name,
}

#[derive(Debug, Clone)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Static(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl Namespace {
    /// The one that limiters have unless told otherwise; its name is empty.
    pub const DEFAULT: Self = Self {
        id: 0,
        name: Name::Static(""),
    };

    /// A namespace of this name. Equal names are one namespace.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        let name = match name.into() {
            Cow::Borrowed(name) => Name::Static(name),
            Cow::Owned(name) => Name::Shared(name.into()),
        };
        Self {
            id: fnv1a(name.as_str()),
            name,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// A 64-bit hash of the name, 0 of the default one. Names are the
    /// operator's choice, not a client's, so it needs no secret.
    #[must_use]
    #[inline]
    pub const fn id(&self) -> u64 {
        self.id
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// FNV-1a, with the empty name at 0.
fn fnv1a(name: &str) -> u64 {
    if name.is_empty() {
        return 0;
    }
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

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

macro_rules! key_borrowing {
    ($($type:ty: $bytes:ident),* $(,)?) => {$(
        impl Key for $type {
            const KIND: Kind = Kind::Bytes;
            type Bytes<'a> = &'a [u8];
            #[inline]
            fn bytes(&self) -> &[u8] {
                self.$bytes()
            }
        }
    )*};
}

key_borrowing!(str: as_bytes, String: as_bytes, [u8]: as_ref, Vec<u8>: as_slice);

impl<const N: usize> Key for [u8; N] {
    const KIND: Kind = Kind::Bytes;
    type Bytes<'a> = &'a [u8];
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Numbers of up to 64 bits are one kind of key, whatever their type: `5_i32`
/// and `5_u64` are equal. A negative one equals the `u64` of the same bits.
macro_rules! key_int {
    ($($type:ty as $wide:ty),* $(,)?) => {$(
        impl Key for $type {
            const KIND: Kind = Kind::Int;
            type Bytes<'a> = [u8; size_of::<$wide>()];
            #[inline]
            fn bytes(&self) -> Self::Bytes<'_> {
                <$wide>::from(*self).to_be_bytes()
            }
        }
    )*};
}

key_int!(
    u8 as u64,
    u16 as u64,
    u32 as u64,
    u64 as u64,
    i8 as i64,
    i16 as i64,
    i32 as i64,
    i64 as i64,
    bool as u64,
    u128 as u128,
);

impl Key for usize {
    const KIND: Kind = Kind::Int;
    type Bytes<'a> = [u8; 8];
    #[inline]
    fn bytes(&self) -> [u8; 8] {
        (*self as u64).to_be_bytes()
    }
}

impl Key for () {
    const KIND: Kind = Kind::Tuple;
    type Bytes<'a> = [u8; 0];
    #[inline]
    fn bytes(&self) -> [u8; 0] {
        []
    }
}

/// The bytes of an address: 4 or 16.
#[derive(Debug, Clone, Copy)]
pub struct IpBytes {
    bytes: [u8; 16],
    v6: bool,
}

impl AsRef<[u8]> for IpBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        if self.v6 {
            &self.bytes
        } else {
            &self.bytes[..4]
        }
    }
}

/// An address as it is. Clients are better keyed by
/// [`ClientIpConfig`](crate::client_ip::ClientIpConfig), which makes one key of
/// a v4-mapped address and its v4 form, and of a whole IPv6 prefix.
impl Key for IpAddr {
    const KIND: Kind = Kind::Ip;
    type Bytes<'a> = IpBytes;
    #[inline]
    fn bytes(&self) -> IpBytes {
        match self {
            Self::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                IpBytes {
                    bytes: [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    v6: false,
                }
            }
            Self::V6(ip) => IpBytes {
                bytes: ip.octets(),
                v6: true,
            },
        }
    }
}

impl Key for Ipv4Addr {
    const KIND: Kind = Kind::Ip;
    type Bytes<'a> = [u8; 4];
    #[inline]
    fn bytes(&self) -> [u8; 4] {
        self.octets()
    }
}

impl Key for Ipv6Addr {
    const KIND: Kind = Kind::Ip;
    type Bytes<'a> = [u8; 16];
    #[inline]
    fn bytes(&self) -> [u8; 16] {
        self.octets()
    }
}

macro_rules! key_through {
    ($($type:ty),* $(,)?) => {$(
        impl<K: Key + ?Sized> Key for $type {
            const KIND: Kind = K::KIND;
            type Bytes<'b> = K::Bytes<'b> where Self: 'b;
            #[inline]
            fn bytes(&self) -> Self::Bytes<'_> {
                (**self).bytes()
            }
        }
    )*};
}

key_through!(&K, Box<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    const KIND: Kind = K::KIND;
    type Bytes<'b>
        = K::Bytes<'b>
    where
        Self: 'b;
    #[inline]
    fn bytes(&self) -> Self::Bytes<'_> {
        (**self).bytes()
    }
}

macro_rules! key_tuple {
    ($($name:ident)+) => {
        #[allow(non_snake_case)]
        impl<$($name: Key),+> Key for ($($name,)+) {
            const KIND: Kind = Kind::Tuple;
            type Bytes<'a> = KeyBuf where Self: 'a;
            fn bytes(&self) -> KeyBuf {
                let ($($name,)+) = self;
                let mut out = KeyBuf::new();
                $(
                    let bytes = $name.bytes();
                    let bytes = bytes.as_ref();
                    out.extend(&[$name::KIND.letter()]);
                    // A key of 4 GiB is not told from one of 0 bytes more.
                    out.extend(&(bytes.len() as u32).to_be_bytes());
                    out.extend(bytes);
                )+
                out
            }
        }
    };
}

key_tuple!(A);
key_tuple!(A B);
key_tuple!(A B C);
key_tuple!(A B C D);

/// Any value that is `Hash`, by what it feeds to its hasher.
///
/// The bytes do not depend on the machine's endianness or word size, but what
/// the standard library's types feed may change between compiler versions: for
/// stores outside the process, a [`Key`] of your own is steadier.
///
/// ```
/// use throttle_kit::{Hashed, Key};
///
/// #[derive(Hash)]
/// struct Caller { tenant: u32, user: String }
///
/// let key = Hashed(Caller { tenant: 7, user: "ann".into() });
/// assert!(!key.bytes().as_ref().is_empty());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Hashed<T>(pub T);

impl<T: Hash> Key for Hashed<T> {
    const KIND: Kind = Kind::Hashed;
    type Bytes<'a>
        = KeyBuf
    where
        Self: 'a;
    fn bytes(&self) -> KeyBuf {
        let mut collector = Collector(KeyBuf::new());
        self.0.hash(&mut collector);
        collector.0
    }
}

/// A hasher that keeps what it is fed.
struct Collector(KeyBuf);

macro_rules! collect_int {
    ($($method:ident($type:ty)),*) => {$(
        fn $method(&mut self, i: $type) {
            self.0.extend(&i.to_le_bytes());
        }
    )*};
}

impl Hasher for Collector {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    collect_int!(
        write_u16(u16),
        write_u32(u32),
        write_u64(u64),
        write_u128(u128),
        write_i16(i16),
        write_i32(i32),
        write_i64(i64),
        write_i128(i128)
    );

    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
    }

    fn write_isize(&mut self, i: isize) {
        self.write_i64(i as i64);
    }
}
