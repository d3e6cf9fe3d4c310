//! How many connections each address has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of each address, as many as one may have. Clones are one count.
#[derive(Clone, Debug)]
pub(super) struct PerIp {
    most: usize,
    /// Of addresses that have one: as many as there are connections, at most.
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl PerIp {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            open: Arc::default(),
        }
    }

    /// A place for one more of this address; `None` when it has as many as it may.
    pub(super) fn admit(&self, address: SocketAddr) -> Option<Place> {
        let of = whose(address.ip());
        let mut open = self.lock();
        let count = open.entry(of).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(open);
        Some(Place {
            per_ip: self.clone(),
            of,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is behind an address: an IPv4 address in either form, or a network of 64 bits,
/// which is what one subscriber of IPv6 has at least (RFC 6177).
fn whose(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        ip => ip,
    }
}

/// A connection's place among those of its address, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    per_ip: PerIp,
    of: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.per_ip.lock().entry(self.of) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn an_address_has_so_many_whatever_its_ports_and_forms() {
        let per_ip = PerIp::new(2);
        let first = per_ip.admit(at("192.0.2.1:1")).unwrap();
        let _second = per_ip.admit(at("[::ffff:192.0.2.1]:2")).unwrap();
        assert!(per_ip.admit(at("192.0.2.1:3")).is_none());
        let _other = per_ip.admit(at("192.0.2.2:1")).unwrap();
        drop(first);
        assert!(per_ip.admit(at("192.0.2.1:4")).is_some());
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        let per_ip = PerIp::new(1);
        let place = per_ip.admit(at("[2001:db8::1]:1")).unwrap();
        assert!(per_ip.admit(at("[2001:db8::ffff:2]:1")).is_none());
        assert!(per_ip.admit(at("[2001:db8:0:1::1]:1")).is_some());
        drop(place);
        assert!(per_ip.lock().is_empty(), "nothing is left of who has gone");
    }
}
