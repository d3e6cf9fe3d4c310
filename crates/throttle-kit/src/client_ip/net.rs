//! Networks of proxies.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpNet {
    /// Of IPv4 addresses.
    V4 {
        /// Its address; bits beyond the prefix do not count.
        addr: Ipv4Addr,
        /// 0 to 32; more is taken as 32.
        prefix: u8,
    },
    /// Of IPv6 addresses.
    V6 {
        /// Its address; bits beyond the prefix do not count.
        addr: Ipv6Addr,
        /// 0 to 128; more is taken as 128.
        prefix: u8,
    },
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientIpError {
    /// What should be an address is not.
    InvalidIp(String),
    /// What follows the slash is not a number of bits that such an address has.
    InvalidPrefix(String),
}

impl fmt::Display for ClientIpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidIp(text) => {
                write!(
                    f,
                    "{text:?} is no IP address (like 10.0.0.0/8 or 2001:db8::/32)"
                )
            }
            Self::InvalidPrefix(text) => {
                write!(
                    f,
                    "{text:?} is no prefix: 0 to 32 for IPv4, 0 to 128 for IPv6"
                )
            }
        }
    }
}

impl std::error::Error for ClientIpError {}

impl IpNet {
    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or an address alone. A v4-mapped
    /// network (`::ffff:10.0.0.0/104`) is the v4 network.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, ClientIpError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address.trim(), Some(prefix.trim())),
            None => (text.trim(), None),
        };
        let ip: IpAddr = address
            .parse()
            .map_err(|_| ClientIpError::InvalidIp(address.to_owned()))?;
        let bits_max = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits_max,
            // Digits only: `parse` would take a plus sign too.
            Some(text) => Some(text)
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|text| text.parse().ok())
                .filter(|bits| *bits <= bits_max)
                .ok_or_else(|| ClientIpError::InvalidPrefix(text.to_owned()))?,
        };
        Ok(match (ip, ip.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(addr)) if prefix >= 96 => Self::V4 {
                addr,
                prefix: prefix - 96,
            },
            (IpAddr::V4(addr), _) => Self::V4 { addr, prefix },
            (IpAddr::V6(addr), _) => Self::V6 { addr, prefix },
        })
    }

    /// Whether `ip` lies in it. A v4-mapped address is the v4 address.
    #[must_use]
    #[inline]
    pub const fn contains(&self, ip: IpAddr) -> bool {
        match (self, ip.to_canonical()) {
            (Self::V4 { addr, prefix }, IpAddr::V4(ip)) => {
                let differ = (addr.to_bits() ^ ip.to_bits()) as u128;
                agree(differ << 96, *prefix)
            }
            (Self::V6 { addr, prefix }, IpAddr::V6(ip)) => {
                agree(addr.to_bits() ^ ip.to_bits(), *prefix)
            }
            _ => false,
        }
    }
}

/// Whether no bit of the first `prefix` ones is set.
#[inline]
const fn agree(differ: u128, prefix: u8) -> bool {
    match differ.leading_zeros() {
        128 => true,
        zeros => zeros >= prefix as u32,
    }
}

impl FromStr for IpNet {
    type Err = ClientIpError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl From<IpAddr> for IpNet {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(addr) => Self::V4 { addr, prefix: 32 },
            IpAddr::V6(addr) => Self::V6 { addr, prefix: 128 },
        }
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4 { addr, prefix } => write!(f, "{addr}/{prefix}"),
            Self::V6 { addr, prefix } => write!(f, "{addr}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        IpNet::parse(text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_other() {
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3/8", "10.0.0.0", "9.255.255.255"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("192.0.2.0/31", "192.0.2.1", "192.0.2.2"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"),
            ("10.0.0.0/8", "::ffff:10.0.0.9", "::ffff:11.0.0.9"),
        ] {
            assert!(net(text).contains(ip(inside)), "{inside} in {text}");
            assert!(!net(text).contains(ip(outside)), "{outside} not in {text}");
        }
        assert!(net("0.0.0.0/0").contains(ip("255.1.2.3")));
        assert!(!net("0.0.0.0/0").contains(ip("::1")), "families are apart");
        assert!(net("::/0").contains(ip("ffff::")));
        assert!(!net("::/0").contains(ip("1.2.3.4")), "families are apart");
    }

    #[test]
    fn what_is_no_network_is_an_error() {
        for text in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
        ] {
            assert!(IpNet::parse(text).is_err(), "{text:?}");
        }
        for text in ["::/129", "example.com", "10.0.0.0/8/8", "::1/ x"] {
            assert!(IpNet::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn reads_back_what_it_writes() {
        for text in ["10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"] {
            assert_eq!(net(text).to_string(), text);
            assert_eq!(text.parse(), Ok(net(text)));
        }
    }
}
