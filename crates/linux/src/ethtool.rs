//! Offload switches, driver and speed by the `SIOCETHTOOL` request (`ethtool -k`, `-K`, `-i` and without an option).

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
    /// Large receive offload, by the device.
    Lro,
}

/// Of the word that some offloads share (`ETH_FLAG_LRO`).
const LRO_FLAG: u32 = 1 << 15;

impl Offload {
    /// Those that bear on frames, by the names that readings have for them.
    pub const NAMED: [(&'static str, Self); 5] = [
        ("tso", Self::Tso),
        ("gso", Self::Gso),
        ("gro", Self::Gro),
        ("tx_checksum", Self::TxChecksum),
        ("lro", Self::Lro),
    ];

    /// The (get, set) commands of `linux/ethtool.h`.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
            Self::TxChecksum => (0x16, 0x17),
            Self::ScatterGather => (0x18, 0x19),
            Self::Lro => (0x25, 0x26),
        }
    }
}

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn request(interface: &str, command: u32, data: u32, operation: &str) -> Result<u32> {
    let mut value = Value { command, data };
    exchange(interface, &mut value, operation)?;
    Ok(value.data)
}

/// A request or answer of `linux/ethtool.h`: a C structure of integers and bytes that begins with its command.
trait Exchanged {}
impl Exchanged for Value {}
impl Exchanged for DriverInformation {}
impl Exchanged for Settings {}

fn exchange<T: Exchanged>(interface: &str, value: &mut T, operation: &str) -> Result<()> {
    // SAFETY: `value` is the whole structure that its command reads and writes, and alive during the call.
    unsafe { ask(interface, std::ptr::from_mut(value).cast(), operation) }.map(drop)
}

/// Exchanges a request whose length is in it, which begins with its command; what the kernel returned.
pub(crate) fn exchange_words(interface: &str, words: &mut [u32], operation: &str) -> Result<i32> {
    // SAFETY: the words are alive during the call; the requests of features say in their head how many there are, and
    // their names are as many as the kernel has just said.
    unsafe { ask(interface, words.as_mut_ptr().cast(), operation) }
}

/// # Safety
///
/// `value` must point at everything that its command reads and writes.
unsafe fn ask(interface: &str, value: *mut libc::c_char, operation: &str) -> Result<i32> {
    // SAFETY: no memory is passed.
    let raw = check(
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) },
        "open a socket for ethtool",
    )?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: all-zero is a valid ifreq.
    let mut message: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= libc::IFNAMSIZ {
        return Err(OsError::errno(operation, libc::ENODEV));
    }
    for (place, byte) in message.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    message.ifr_ifru.ifru_data = value;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // SAFETY: `message` names a terminated interface and points at `value`, as the caller promises.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut message) }, operation)
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInformation {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// `struct ethtool_cmd`.
#[repr(C)]
struct Settings {
    command: u32,
    modes: [u32; 2],
    speed_low: u16,
    ports: [u8; 6],
    packets: [u32; 2],
    speed_high: u16,
    crossover: [u8; 2],
    partner_modes: u32,
    reserved: [u32; 2],
}

/// The name of the driver, as `ethtool -i` shows it.
pub fn driver(interface: &str) -> Result<String> {
    const GET_DRIVER_INFORMATION: u32 = 0x3;
    let mut value = DriverInformation { command: GET_DRIVER_INFORMATION, driver: [0; 32], rest: [0; 160] };
    exchange(interface, &mut value, &format!("read the driver of {interface}"))?;
    let name = value.driver.split(|byte| *byte == 0).next().unwrap_or(&[]);
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The speed that the device says it has, in bits per second; `None` if it says none.
pub fn speed(interface: &str) -> Result<Option<u64>> {
    const GET_SETTINGS: u32 = 0x1;
    let mut value = Settings {
        command: GET_SETTINGS,
        modes: [0; 2],
        speed_low: 0,
        ports: [0; 6],
        packets: [0; 2],
        speed_high: 0,
        crossover: [0; 2],
        partner_modes: 0,
        reserved: [0; 2],
    };
    exchange(interface, &mut value, &format!("read the speed of {interface}"))?;
    let megabits = u32::from(value.speed_high) << 16 | u32::from(value.speed_low);
    // SPEED_UNKNOWN is -1, of 16 bits in older drivers.
    let is_known = !matches!(megabits, 0 | 0xffff | u32::MAX);
    Ok(is_known.then_some(u64::from(megabits) * 1_000_000))
}

/// Whether `offload` is on.
pub fn get(interface: &str, offload: Offload) -> Result<bool> {
    let value = request(interface, offload.commands().0, 0, &format!("read {offload:?} of {interface}"))?;
    Ok(if offload == Offload::Lro { value & LRO_FLAG } else { value } != 0)
}

/// Switches `offload`. The device may refuse silently: read it back.
pub fn set(interface: &str, offload: Offload, on: bool) -> Result<()> {
    let word = if on { "on" } else { "off" };
    let operation = format!("switch {offload:?} of {interface} {word}");
    let (get, set) = offload.commands();
    let value = match offload {
        Offload::Lro if on => request(interface, get, 0, &operation)? | LRO_FLAG,
        Offload::Lro => request(interface, get, 0, &operation)? & !LRO_FLAG,
        _ => u32::from(on),
    };
    request(interface, set, value, &operation).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!(size_of::<DriverInformation>(), 196);
        assert_eq!(size_of::<Settings>(), 44);
    }

    #[test]
    fn a_loopback_has_offloads_and_no_speed() {
        assert!(get("lo", Offload::Gso).is_ok());
        assert!(!matches!(speed("lo"), Ok(Some(_))));
        assert_eq!(driver("no-such-if").expect_err("there is none").code(), libc::ENODEV);
        assert_eq!(driver("a-name-that-is-too-long").expect_err("there is none").code(), libc::ENODEV);
    }
}
