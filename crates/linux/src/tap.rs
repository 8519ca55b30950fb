//! A TAP device: one end is a host's network interface, the other is this descriptor.

use crate::error::{Context, OsError, Result, check};
use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// The device file.
pub const DEVICE: &str = "/dev/net/tun";

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUNSETSNDBUF: libc::c_ulong = 0x4004_54d4;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54d8;
const IFF_NAPI: libc::c_int = 0x0010;
const OFFLOAD_CHECKSUM: libc::c_ulong = 0x01;
const OFFLOAD_TSO4: libc::c_ulong = 0x02;
const OFFLOAD_TSO6: libc::c_ulong = 0x04;
const OFFLOAD_TSO_ECN: libc::c_ulong = 0x08;

/// Bytes of the virtio header in front of every packet.
pub const VNET_HEADER_BYTES: usize = 10;

/// The fabric's end of a TAP device. The device is gone when this is dropped.
pub struct Tap {
    descriptor: OwnedFd,
}

impl Tap {
    /// Creates the device `name` in the calling thread's network namespace. With `checksum` the kernel may hand
    /// over unfinished checksums, with `tso`, which needs it, TCP aggregates too. Both are always taken.
    pub fn create(name: &str, checksum: bool, tso: bool) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE)
            .during(format!("open {DEVICE}"))?;
        let descriptor = OwnedFd::from(file);
        // SAFETY: all-zero is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= libc::IFNAMSIZ {
            return Err(OsError::errno(format!("create the TAP device {name}"), libc::ENAMETOOLONG));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | IFF_NAPI;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        let raw = descriptor.as_raw_fd();
        let operation = format!("create the TAP device {name}");
        // SAFETY: `request` is a valid ifreq, alive during the call.
        check(unsafe { libc::ioctl(raw, TUNSETIFF as _, &raw mut request) }, &operation)?;
        let size = VNET_HEADER_BYTES as libc::c_int;
        // SAFETY: points at a c_int, alive during the call.
        check(unsafe { libc::ioctl(raw, TUNSETVNETHDRSZ as _, &raw const size) }, &operation)?;
        let buffer = libc::c_int::MAX;
        // SAFETY: points at a c_int, alive during the call.
        check(unsafe { libc::ioctl(raw, TUNSETSNDBUF as _, &raw const buffer) }, &operation)?;
        let mut offload = if checksum { OFFLOAD_CHECKSUM } else { 0 };
        if tso {
            offload |= OFFLOAD_TSO4 | OFFLOAD_TSO6 | OFFLOAD_TSO_ECN;
        }
        // SAFETY: the argument is a number, no memory is passed.
        check(unsafe { libc::ioctl(raw, TUNSETOFFLOAD as _, offload) }, &operation)?;
        Ok(Self { descriptor })
    }

    /// The descriptor, for polling.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Reads one packet, virtio header first; `None` when there is none.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        // SAFETY: pointer and length describe `buffer`.
        let read = unsafe { libc::read(self.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        if read >= 0 {
            return Ok(Some(read as usize));
        }
        match io::Error::last_os_error() {
            // The device went with its namespace: its host has nothing to send any more.
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBADFD)) => Ok(None),
            source => Err(OsError { operation: "read from a TAP device".into(), source }),
        }
    }

    /// Writes one packet, the virtio header first.
    pub fn write_whole(&self, bytes: &[u8]) -> Result<()> {
        // SAFETY: pointer and length describe a live slice, which write only reads.
        let written = unsafe { libc::write(self.raw(), bytes.as_ptr().cast(), bytes.len()) };
        if written < 0 { Err(OsError::last("write to a TAP device")) } else { Ok(()) }
    }

    /// Writes one packet gathered from pieces, the virtio header first.
    pub fn write(&self, pieces: &[IoSlice<'_>]) -> Result<()> {
        // SAFETY: an IoSlice has the layout of an iovec and describes a live slice; writev only reads them.
        let written =
            unsafe { libc::writev(self.raw(), pieces.as_ptr().cast(), pieces.len() as libc::c_int) };
        if written < 0 { Err(OsError::last("write to a TAP device")) } else { Ok(()) }
    }
}
