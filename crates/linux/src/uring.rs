//! Many packets written with one call of the kernel (io_uring).

use crate::error::{Context, Result};
use crate::tap::Tap;
use io_uring::squeue::Entry;
use io_uring::{IoUring, Probe, opcode, types};

/// Packets that one call writes at most.
pub const CALL_MAXIMUM: usize = 64;

/// Writes packets to TAP devices, many with one call.
pub struct Writes {
    /// None after an error: what it still holds must not be written later.
    ring: Option<IoUring>,
    entries: Vec<Entry>,
    taken: Vec<bool>,
}

impl Writes {
    /// Fails where the kernel has no io_uring that writes (before Linux 5.6) or refuses it, as many containers do.
    pub fn new() -> Result<Self> {
        let ring = ring().during("set up io_uring")?;
        Ok(Self { ring: Some(ring), entries: Vec::new(), taken: Vec::new() })
    }

    /// Whether it has failed as a whole; no packet is taken from then on.
    pub fn has_failed(&self) -> bool {
        self.ring.is_none()
    }

    /// Writes packets, virtio header first, in this order; of each whether it was taken.
    pub fn write<'a>(&mut self, packets: impl Iterator<Item = (&'a Tap, &'a [u8])>) -> &[bool] {
        // All of them first: nothing in `packets` can panic while the ring points to some.
        self.entries.clear();
        self.entries.extend(packets.enumerate().map(|(place, (tap, bytes))| {
            let write = opcode::Write::new(types::Fd(tap.raw()), bytes.as_ptr(), bytes.len() as u32);
            write.build().user_data(place as u64)
        }));
        self.taken.clear();
        self.taken.resize(self.entries.len(), false);
        if let Some(mut ring) = self.ring.take() {
            // SAFETY: the entries' bytes are borrowed for longer than this call.
            let done = self
                .entries
                .chunks(CALL_MAXIMUM)
                .all(|entries| unsafe { hand_in(&mut ring, entries, &mut self.taken).is_ok() });
            self.ring = done.then_some(ring);
        }
        &self.taken
    }
}

/// Writes up to `CALL_MAXIMUM` packets. After an error nothing is under way, as no TAP is opened such that a write could block,
/// but some may still be in the ring.
///
/// # Safety
///
/// The entries point to memory that lives until this returns, and if it fails until the ring is closed.
unsafe fn hand_in(ring: &mut IoUring, entries: &[Entry], written: &mut [bool]) -> std::io::Result<()> {
    // SAFETY: as the caller promises.
    unsafe { ring.submission().push_multiple(entries) }.map_err(std::io::Error::other)?;
    let mut missing = entries.len();
    while missing > 0 {
        ring.submit_and_wait(missing).or_else(again)?;
        for done in ring.completion() {
            missing -= 1;
            written[done.user_data() as usize] = done.result() >= 0;
        }
    }
    Ok(())
}

fn ring() -> std::io::Result<IoUring> {
    let ring = IoUring::new(CALL_MAXIMUM as u32)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    match probe.is_supported(opcode::Write::CODE) {
        true => Ok(ring),
        false => Err(std::io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}

/// Errors after which the same call may succeed.
fn again(error: std::io::Error) -> std::io::Result<usize> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(0),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::VNET_HEADER_BYTES;
    use crate::trial::{HERE, THERE};
    use framegauge_packets::build::{Addresses, udp_frame};
    use std::net::UdpSocket;
    use std::time::Duration;

    /// With a TAP and the socket that hears what is written to it.
    fn writes() -> Option<(Writes, Tap, UdpSocket)> {
        let (tap, socket) = crate::trial::tap()?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        match Writes::new() {
            Ok(writes) => Some((writes, tap, socket)),
            Err(error) => crate::trial::not_run("io_uring", &error),
        }
    }

    /// What the station beyond the TAP sends to the socket.
    fn packet(socket: &UdpSocket, payload: &[u8]) -> Vec<u8> {
        let addresses = Addresses {
            source_mac: [2, 0, 0, 0, 0, 2],
            destination_mac: [0xff; 6],
            source: (THERE, 9).into(),
            destination: (HERE, socket.local_addr().expect("it is bound").port()).into(),
        };
        [&[0; VNET_HEADER_BYTES][..], &udp_frame(&addresses, payload)].concat()
    }

    /// Three calls of the kernel.
    #[test]
    fn all_come_through_in_their_order() {
        let Some((mut writes, tap, socket)) = writes() else { return };
        let count = 2 * CALL_MAXIMUM + 1;
        // The n-th has n + 1 bytes.
        let packets: Vec<Vec<u8>> =
            (0..count).map(|number| packet(&socket, &vec![number as u8; number + 1])).collect();
        assert_eq!(writes.write(packets.iter().map(|packet| (&tap, &packet[..]))), vec![true; count]);
        let mut buffer = [0; 2048];
        for number in 0..count {
            assert_eq!(socket.recv(&mut buffer).expect("it comes"), number + 1);
            assert!(buffer[..=number].iter().all(|byte| *byte == number as u8));
        }
    }

    #[test]
    fn a_packet_that_is_not_taken_holds_up_nobody() {
        let Some((mut writes, tap, socket)) = writes() else { return };
        let good = packet(&socket, &[7]);
        // Shorter than a virtio header.
        let packets = [&good[..], &good[..4], &[], &good[..]];
        let written = writes.write(packets.into_iter().map(|packet| (&tap, packet)));
        assert_eq!(written, [true, false, false, true]);
        let mut buffer = [0; 16];
        assert_eq!([(); 2].map(|()| socket.recv(&mut buffer).expect("it comes")), [1, 1]);
        assert!(writes.write([].into_iter()).is_empty() && !writes.has_failed());
    }
}
