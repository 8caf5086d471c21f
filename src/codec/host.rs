//! The address of a producer or a store, as a record holds it: the address bytes, then the port as an i32.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address and a port. An IPv4-mapped IPv6 address is the IPv4 address, as it is to Java.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    ip: IpAddr,
    /// The port; a record has four bytes for it, and whatever they hold is kept.
    pub port: i32,
}

impl Host {
    /// Length in bytes with an IPv4 address.
    pub const V4_LEN: usize = 8;
    /// Length in bytes with an IPv6 address.
    pub const V6_LEN: usize = 20;

    /// Makes a host.
    pub fn new(ip: IpAddr, port: i32) -> Self {
        Self { ip: ip.to_canonical(), port }
    }

    /// The address, never IPv4-mapped.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// Whether the address takes 16 bytes.
    pub const fn is_v6(self) -> bool {
        self.ip.is_ipv6()
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a host is never empty")]
    pub const fn len(self) -> usize {
        if self.is_v6() { Self::V6_LEN } else { Self::V4_LEN }
    }

    /// Reads a host of exactly [`Host::V4_LEN`] or [`Host::V6_LEN`] bytes; `None` for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (ip, port) = bytes.split_last_chunk::<4>()?;
        let ip = match ip.len() {
            4 => IpAddr::V4(Ipv4Addr::from(*ip.first_chunk::<4>()?)),
            16 => IpAddr::V6(Ipv6Addr::from(*ip.first_chunk::<16>()?)),
            _ => return None,
        };
        Some(Self::new(ip, i32::from_be_bytes(*port)))
    }

    /// Writes the host to the front of `bytes` and returns its length.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`Host::len`].
    pub fn write_to(self, bytes: &mut [u8]) -> usize {
        let ip_len = self.len() - 4;
        match self.ip {
            IpAddr::V4(ip) => bytes[..ip_len].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes[..ip_len].copy_from_slice(&ip.octets()),
        }
        bytes[ip_len..self.len()].copy_from_slice(&self.port.to_be_bytes());
        self.len()
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip(), i32::from(address.port()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{}", self.port),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_is_the_ipv4_address() {
        let host = Host::from("[::ffff:1.2.3.4]:80".parse::<SocketAddr>().unwrap());
        let mut bytes = [0xAA; 20];
        assert_eq!(host.write_to(&mut bytes), 8);
        assert_eq!(bytes[..8], [1, 2, 3, 4, 0, 0, 0, 80]);
        assert_eq!(Host::from_bytes(&bytes[..8]), Some(host));
        let mapped = [&[0; 10][..], &[0xFF, 0xFF, 1, 2, 3, 4], &80i32.to_be_bytes()].concat();
        assert_eq!(Host::from_bytes(&mapped), Some(host));
    }

    #[test]
    fn every_port_is_kept_and_other_lengths_are_none() {
        let host = Host::new("::1".parse().unwrap(), -1);
        let mut bytes = [0; 20];
        assert_eq!(host.write_to(&mut bytes), 20);
        assert_eq!(Host::from_bytes(&bytes), Some(host));
        assert_eq!(host.to_string(), "[::1]:-1");
        for len in (0..20).filter(|&len| len != 8) {
            assert_eq!(Host::from_bytes(&bytes[..len]), None, "{len}");
        }
    }
}
