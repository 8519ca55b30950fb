//! Measures the highest rate at which this machine hands packets from host to host.

use crate::rack::workshop::workshop;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::rtnetlink::{LinkChange, add_address, add_neighbours, change_link, set_route};
use framegauge_linux::tap::{Tap, VNET_HEADER_BYTES};
use framegauge_linux::{OsError, Result};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

const INTERFACE: &str = "fgspeed0";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1));
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2));
const NOBODY: [u8; 6] = [2, 0x66, 0x67, 0xff, 0, 1];
/// The largest MTU of a TAP, and what UDP can put into it: what costs most a packet costs least a byte.
const MTU: u32 = 65_521;
const PAYLOAD_BYTES: usize = MTU as usize - 28;
/// What the kernel takes in and drops at once: to nobody, of no protocol (IEEE 802 local experimental).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const PACKETS: usize = 32;
/// Best of so many: whatever else this machine does makes it slower, and never faster.
const GOES: usize = 8;

/// Bits per second that one thread, which does nothing else, reads from a TAP and writes to one, in packets of 64 KiB:
/// all that a fabric must do at the least, between hosts that cost nothing. It takes some milliseconds.
pub fn most_bits_per_second() -> Result<u64> {
    workshop()?.run(|| {
        let tap = Tap::create(INTERFACE, true, true)?;
        change_link(INTERFACE, LinkChange { up: Some(true), mtu: Some(MTU), ..LinkChange::default() })?;
        add_address(INTERFACE, HERE, 24)?;
        set_route(INTERFACE, IpAddr::V4(Ipv4Addr::new(10, 79, 0, 0)), 24, None, "reno")?;
        add_neighbours(INTERFACE, &[(THERE, NOBODY)])?;
        let socket =
            UdpSocket::bind((HERE, 0)).and_then(|socket| socket.connect((THERE, 9)).map(|()| socket));
        let socket = socket.map_err(|source| failed("open a socket", source))?;
        let (mut reading, mut writing) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..GOES {
            reading = reading.min(seconds_a_bit(|| read(&tap, &socket))?);
            writing = writing.min(seconds_a_bit(|| write(&tap))?);
        }
        Ok((1.0 / (reading + writing)) as u64)
    })
}

/// Seconds per bit of `work`, which returns how many bytes it moved and when it began.
fn seconds_a_bit(work: impl FnOnce() -> Result<(usize, u64)>) -> Result<f64> {
    let (bytes, begun) = work()?;
    Ok((monotonic_nanoseconds() - begun).max(1) as f64 * 1e-9 / (8.0 * bytes.max(1) as f64))
}

fn read(tap: &Tap, socket: &UdpSocket) -> Result<(usize, u64)> {
    let payload = vec![0; PAYLOAD_BYTES];
    for _ in 0..PACKETS {
        socket.send(&payload).map_err(|source| failed("send to a TAP", source))?;
    }
    let mut buffer = vec![0; VNET_HEADER_BYTES + MTU as usize + 14];
    let begun = monotonic_nanoseconds();
    let mut bytes = 0;
    while let Some(length) = tap.read(&mut buffer)? {
        bytes += length;
    }
    if bytes < PACKETS * PAYLOAD_BYTES {
        return Err(OsError::errno("read from a TAP all that was sent to it", 5));
    }
    Ok((bytes, begun))
}

fn write(tap: &Tap) -> Result<(usize, u64)> {
    let mut packet = vec![0; VNET_HEADER_BYTES + MTU as usize + 14];
    packet[VNET_HEADER_BYTES..][..6].copy_from_slice(&NOBODY);
    packet[VNET_HEADER_BYTES + 12..][..2].copy_from_slice(&ETHERTYPE);
    let begun = monotonic_nanoseconds();
    for _ in 0..PACKETS {
        tap.write_whole(&packet)?;
    }
    Ok((PACKETS * packet.len(), begun))
}

fn failed(operation: &str, source: std::io::Error) -> OsError {
    OsError { operation: operation.into(), source }
}
