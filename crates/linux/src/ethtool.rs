//! Offload switches by the `SIOCETHTOOL` request (`ethtool -k`, `-K`).

use crate::error::{OsError, Result, check};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One offload that a device can switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// TCP segmentation by the device.
    Tso,
    /// Generic segmentation just before the device.
    Gso,
    /// Generic receive offload.
    Gro,
    /// Checksums on transmit.
    TxChecksum,
    /// Scatter-gather, which segmentation offloads need.
    ScatterGather,
}

impl Offload {
    /// The (get, set) commands of `linux/ethtool.h`.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
            Self::TxChecksum => (0x16, 0x17),
            Self::ScatterGather => (0x18, 0x19),
        }
    }
}

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn request(interface: &str, command: u32, data: u32, operation: &str) -> Result<u32> {
    // SAFETY: no memory is passed.
    let raw = check(
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) },
        "open a socket for ethtool",
    )?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut value = Value { command, data };
    // SAFETY: all-zero is a valid ifreq.
    let mut message: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= libc::IFNAMSIZ {
        return Err(OsError::errno(operation, libc::ENODEV));
    }
    for (place, byte) in message.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    message.ifr_ifru.ifru_data = (&raw mut value).cast();
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: `message` names a terminated interface and points at `value`, both alive during the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut message) }, operation)?;
    Ok(value.data)
}

/// Whether `offload` is on.
pub fn get(interface: &str, offload: Offload) -> Result<bool> {
    request(interface, offload.commands().0, 0, &format!("read {offload:?} of {interface}"))
        .map(|value| value != 0)
}

/// Switches `offload`. The device may refuse silently: read it back.
pub fn set(interface: &str, offload: Offload, on: bool) -> Result<()> {
    let word = if on { "on" } else { "off" };
    request(
        interface,
        offload.commands().1,
        u32::from(on),
        &format!("switch {offload:?} of {interface} {word}"),
    )
    .map(drop)
}
