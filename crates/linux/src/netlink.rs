//! Netlink messages and a blocking socket. RFC 3549; attribute layout as in `linux/netlink.h`.

use crate::error::{OsError, Result, check};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `NLM_F_CREATE`: make the object if it is missing.
pub const CREATE: u16 = libc::NLM_F_CREATE as u16;
/// `NLM_F_EXCL`: fail if the object exists.
pub const EXCLUSIVE: u16 = libc::NLM_F_EXCL as u16;
/// `NLM_F_REPLACE`: replace the object if it exists.
pub const REPLACE: u16 = libc::NLM_F_REPLACE as u16;
/// `NLM_F_DUMP`: list every object.
pub const DUMP: u16 = libc::NLM_F_DUMP as u16;

const HEADER: usize = 16;
const NESTED: u16 = 1 << 15;

/// One request, built front to back.
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of the given type with a fixed part (`ifinfomsg`, `tcmsg`, …).
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | libc::NLM_F_REQUEST as u16 | libc::NLM_F_ACK as u16).to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self { bytes }
    }

    /// Appends an attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.bytes.extend((4 + value.len() as u16).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.align();
        self
    }

    /// Appends a 32-bit attribute.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends a text attribute, with its terminating zero.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends an attribute whose value is what `fill` appends.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        fill(self);
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&(kind | NESTED).to_ne_bytes());
        self
    }

    /// Appends raw bytes (a nested fixed part).
    pub fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self.align();
        self
    }

    /// What follows the header.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The attributes in `bytes`, as (type without flags, value). Stops at the first malformed one.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The value of the attribute `kind` in `bytes`.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(own_kind, _)| *own_kind == kind).map(|(_, value)| value)
}

/// A 32-bit attribute.
pub fn attribute_u32(bytes: &[u8], kind: u16) -> Option<u32> {
    attribute(bytes, kind)?.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// A text attribute, without its terminating zero.
pub fn attribute_text(bytes: &[u8], kind: u16) -> Option<String> {
    let value = attribute(bytes, kind)?;
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    Some(String::from_utf8_lossy(&value[..end]).into_owned())
}

/// An address from its 4 or 16 bytes.
pub(crate) fn address_of(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(octets).ok().map(|octets| Ipv6Addr::from(octets).into())
}

/// The family of an address, as netlink numbers it.
pub(crate) fn family_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

/// A netlink socket in the network namespace of the thread that opened it.
pub struct Socket {
    descriptor: OwnedFd,
}

impl Socket {
    /// Opens a socket for `protocol` (`NETLINK_ROUTE`, …).
    pub fn open(protocol: i32) -> Result<Self> {
        // SAFETY: no memory is passed.
        let raw = check(
            unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) },
            "open a netlink socket",
        )?;
        // SAFETY: `raw` is a descriptor that this function just opened.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        let socket = Self { descriptor };
        // NETLINK_EXT_ACK only makes errors clearer.
        socket.switch_on(11);
        Ok(socket)
    }

    /// Lets the kernel filter what is listed by the request's fixed part (`NETLINK_GET_STRICT_CHK`), where it can: older
    /// kernels list everything.
    pub fn filtering(self) -> Self {
        self.switch_on(12);
        self
    }

    /// An option that a kernel may lack.
    fn switch_on(&self, option: libc::c_int) {
        self.set(libc::SOL_NETLINK, option, 1);
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> libc::c_int {
        // SAFETY: passes a valid c_int with its size.
        unsafe {
            libc::setsockopt(
                self.descriptor.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as u32,
            )
        }
    }

    /// Has the kernel tell what happens to the objects of groups, once. Room for `room_bytes` of it is asked for; with
    /// fewer rights it is less.
    pub fn join(&self, groups: &[u32], room_bytes: libc::c_int) -> Result<()> {
        self.bind()?;
        // NETLINK_NO_ENOBUFS: what finds no room is counted, and does not silence the group.
        self.switch_on(5);
        for name in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            self.set(libc::SOL_SOCKET, name, room_bytes);
        }
        for group in groups {
            // NETLINK_ADD_MEMBERSHIP
            let joined = self.set(libc::SOL_NETLINK, 1, *group as libc::c_int);
            check(joined, &format!("join the netlink group {group}"))?;
        }
        Ok(())
    }

    /// Takes an address of the kernel's choice: without one a socket is told nothing.
    fn bind(&self) -> Result<()> {
        // SAFETY: all-zero is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: passes a valid address with its length.
        let bound = unsafe { libc::bind(self.descriptor.as_raw_fd(), (&raw const address).cast(), length) };
        check(bound, "bind a netlink socket").map(drop)
    }

    /// Messages that found no room since the socket was opened (`SO_MEMINFO`).
    pub fn dropped(&self) -> Result<u64> {
        // SK_MEMINFO_VARS words, of which SK_MEMINFO_DROPS is the last.
        let mut words = [0u32; 9];
        let mut length = size_of_val(&words) as libc::socklen_t;
        let (raw, level) = (self.descriptor.as_raw_fd(), libc::SOL_SOCKET);
        // SAFETY: pointer and length describe `words`.
        let read =
            unsafe { libc::getsockopt(raw, level, libc::SO_MEMINFO, words.as_mut_ptr().cast(), &mut length) };
        check(read, "read SO_MEMINFO").map(|_| u64::from(words[8]))
    }

    /// The messages of joined groups that have come; it does not wait.
    pub fn waiting(&self, operation: &str) -> Result<Vec<Vec<u8>>> {
        let (mut answers, mut buffer) = (Vec::new(), vec![0u8; 1 << 15]);
        loop {
            let (raw, flags) = (self.descriptor.as_raw_fd(), libc::MSG_DONTWAIT);
            // SAFETY: pointer and length describe `buffer`, alive during the call.
            let read = unsafe { libc::recv(raw, buffer.as_mut_ptr().cast(), buffer.len(), flags) };
            if read < 0 {
                let error = OsError::last(operation);
                return match error.code() {
                    libc::EAGAIN | libc::EINTR => Ok(answers),
                    _ => Err(error),
                };
            }
            collect(&buffer[..read as usize], operation, &mut answers)?;
        }
    }

    /// Opens a routing socket (links, addresses, routes, queue disciplines).
    pub fn route() -> Result<Self> {
        Self::open(libc::NETLINK_ROUTE)
    }

    /// Sends a request and collects the answers (their fixed part and attributes, without the header).
    /// `operation` names it in the error; the kernel's own words are added where it gives them.
    pub fn request(&self, mut message: Message, operation: &str) -> Result<Vec<Vec<u8>>> {
        let length = message.bytes.len() as u32;
        message.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        // SAFETY: pointer and length describe `message.bytes`, alive during the call.
        let sent = unsafe {
            libc::send(self.descriptor.as_raw_fd(), message.bytes.as_ptr().cast(), message.bytes.len(), 0)
        };
        if sent < 0 {
            return Err(OsError::last(operation));
        }
        let mut answers = Vec::new();
        let mut buffer = vec![0u8; 1 << 17];
        loop {
            // SAFETY: pointer and length describe `buffer`, alive during the call.
            let read = unsafe {
                libc::recv(self.descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
            };
            if read < 0 {
                return Err(OsError::last(operation));
            }
            if collect(&buffer[..read as usize], operation, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Sorts one datagram into answers; true at the end of the conversation. An error names `operation`.
pub fn collect(mut bytes: &[u8], operation: &str, answers: &mut Vec<Vec<u8>>) -> Result<bool> {
    while bytes.len() >= HEADER {
        let length = u32::from_ne_bytes(bytes[0..4].try_into().unwrap_or_default()) as usize;
        let kind = u16::from_ne_bytes(bytes[4..6].try_into().unwrap_or_default());
        let flags = u16::from_ne_bytes(bytes[6..8].try_into().unwrap_or_default());
        if length < HEADER || length > bytes.len() {
            break;
        }
        let body = &bytes[HEADER..length];
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                let code = body.get(..4).and_then(|code| code.try_into().ok()).map_or(0, i32::from_ne_bytes);
                if code == 0 {
                    return Ok(true);
                }
                // With NLM_F_ACK_TLVS the attributes follow the echoed header.
                let words = if flags & 0x200 != 0 {
                    let echoed = if flags & 0x100 != 0 { HEADER } else { body_length(body) };
                    body.get(4 + echoed..).and_then(|rest| attribute_text(rest, 1))
                } else {
                    None
                };
                let operation = words.map_or(operation.to_string(), |words| format!("{operation} ({words})"));
                return Err(OsError::errno(operation, code.saturating_neg()));
            }
            _ => answers.push(body.to_vec()),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

fn body_length(body: &[u8]) -> usize {
    body.get(4..8)
        .and_then(|length| length.try_into().ok())
        .map_or(HEADER, |length| u32::from_ne_bytes(length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_read_back() {
        let mut message = Message::new(16, 0, &[0; 16]);
        message.text(3, "fg1").nest(5, |nest| {
            nest.u32(1, 7).u32(2, 9);
        });
        let body = &message.bytes[HEADER + 16..];
        assert_eq!(attribute_text(body, 3).as_deref(), Some("fg1"));
        let nest = attribute(body, 5).expect("the nest is there");
        assert_eq!(attribute_u32(nest, 2), Some(9));
    }

    #[test]
    fn malformed_attributes_end_the_walk() {
        assert_eq!(attributes(&[255, 255, 1, 0, 1]).count(), 0);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0);
    }
}
