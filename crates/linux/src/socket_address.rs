//! Socket addresses as the kernel has them.

use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

/// As the kernel takes it, and its length.
pub(crate) fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero is a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage has room and alignment for a sockaddr_in.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            (storage, size_of::<libc::sockaddr_in>() as u32)
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: a sockaddr_storage has room and alignment for a sockaddr_in6.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            (storage, size_of::<libc::sockaddr_in6>() as u32)
        }
    }
}

/// From the kernel's; none of another family.
pub(crate) fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = raw.sin_addr.s_addr.to_ne_bytes().into();
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says what it is.
            let raw = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let port = u16::from_be(raw.sin6_port);
            Some(SocketAddrV6::new(raw.sin6_addr.s6_addr.into(), port, 0, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}
