//! The standard library's types as keys.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::{Key, KeyBuf, Kind};

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
