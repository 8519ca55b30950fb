//! When each packet was sent to a TAP: a small BPF program, which the kernel runs for each, writes it into shared memory.
//!
//! The program sees a packet behind the interface's queueing discipline, just before it can be read, and lets all pass.

use crate::error::{OsError, Result, check};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many packets a TAP may hold until the time of the oldest is forgotten; a power of two.
const TIMES: usize = 4096;
/// The count has a cache line of its own, before the times.
const HEAD_BYTES: usize = 64;
const VALUE_BYTES: usize = HEAD_BYTES + 8 * TIMES;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_F_MMAPABLE: u32 = 1 << 10;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
const TUNSETFILTEREBPF: libc::c_ulong = 0x8004_54e1;

/// The times at which packets were sent to a TAP, as long as this lives.
pub struct Stamps {
    memory: NonNull<AtomicU64>,
    /// The program is in the TAP, and holds the map; both end with it.
    _map: OwnedFd,
}

// SAFETY: the memory is shared with the kernel, and only read here, by atomic operations.
unsafe impl Send for Stamps {}

impl Stamps {
    /// Has the kernel write down when packets are sent to the TAP with this descriptor. It takes the right to load BPF
    /// programs (`CAP_BPF` and `CAP_NET_ADMIN`), and Linux 5.12.
    pub fn of(tap: RawFd) -> Result<Self> {
        let map = create_map()?;
        let program = load(map.as_raw_fd())?;
        let raw = program.as_raw_fd();
        // SAFETY: points at a c_int, alive during the call.
        let done = unsafe { libc::ioctl(tap, TUNSETFILTEREBPF as _, &raw const raw) };
        check(done, "have a TAP's packets timed")?;
        // SAFETY: a new mapping, as long as the map's only value.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                VALUE_BYTES,
                libc::PROT_READ,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(memory.cast::<AtomicU64>()) {
            Some(memory) if memory.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { memory, _map: map }),
            _ => Err(OsError::last("map the times of a TAP's packets")),
        }
    }

    /// How many packets were sent so far; the last may not be there to be read yet.
    pub fn count(&self) -> u64 {
        self.word(0).load(Ordering::Acquire)
    }

    /// When packet number `number` was sent, counted from 0, on `CLOCK_MONOTONIC` in nanoseconds; `None` if there is none
    /// of this number, or it was too long ago.
    pub fn time(&self, number: u64) -> Option<u64> {
        let time = self.word(HEAD_BYTES / 8 + number as usize % TIMES).load(Ordering::Acquire);
        let count = self.count();
        (number < count && count - number < TIMES as u64).then_some(time)
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place < VALUE_BYTES / 8);
        // SAFETY: within the mapping, aligned, and alive as long as `self`.
        unsafe { &*self.memory.as_ptr().add(place) }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), VALUE_BYTES) };
    }
}

/// Whether BPF programs can be loaded here.
pub fn can_be_had() -> Result<()> {
    load(create_map()?.as_raw_fd()).map(drop)
}

/// bpf(2) with attributes of this many words.
fn bpf(command: libc::c_int, attributes: &[u64], doing: &str) -> Result<OwnedFd> {
    // SAFETY: the attributes are as long as said, and alive during the call, as is all that they point at.
    let raw = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes)) };
    if raw < 0 {
        return Err(OsError::last(doing));
    }
    // SAFETY: `raw` is a descriptor that this function just opened, and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

fn words(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// An array of one value, which can be mapped.
fn create_map() -> Result<OwnedFd> {
    let attributes = [words(BPF_MAP_TYPE_ARRAY, 4), words(VALUE_BYTES as u32, 1), words(BPF_F_MMAPABLE, 0)];
    bpf(BPF_MAP_CREATE, &attributes, "create a BPF map")
}

/// One instruction: operation, destination and source register, offset, number.
fn instruction(operation: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    u64::from(operation)
        | u64::from(to | from << 4) << 8
        | u64::from(offset as u16) << 16
        | u64::from(number as u32) << 32
}

/// Counts, writes the time down by that number, and answers that no byte is to be cut off. Registers: 0 the answer, 6 the
/// time, 7 the memory. Places are taken in one step, as a host with two CPUs may send on both.
fn program(map: RawFd) -> [u64; 12] {
    const LOAD_NUMBER: u8 = 0x18;
    const CALL: u8 = 0x85;
    const MOVE: u8 = 0xbf;
    const MOVE_NUMBER: u8 = 0xb7;
    const ATOMIC: u8 = 0xdb;
    const AND_NUMBER: u8 = 0x57;
    const SHIFT_LEFT: u8 = 0x67;
    const ADD: u8 = 0x0f;
    const STORE: u8 = 0x7b;
    const EXIT: u8 = 0x95;
    const FETCH_AND_ADD: i32 = 1;
    const MAP_VALUE: u8 = 2;
    const KTIME_GET_NS: i32 = 5;
    [
        instruction(CALL, 0, 0, 0, KTIME_GET_NS),
        instruction(MOVE, 6, 0, 0, 0),
        instruction(LOAD_NUMBER, 7, MAP_VALUE, 0, map),
        0,
        instruction(MOVE_NUMBER, 1, 0, 0, 1),
        instruction(ATOMIC, 7, 1, 0, FETCH_AND_ADD),
        instruction(AND_NUMBER, 1, 0, 0, TIMES as i32 - 1),
        instruction(SHIFT_LEFT, 1, 0, 0, 3),
        instruction(ADD, 7, 1, 0, 0),
        instruction(STORE, 7, 6, HEAD_BYTES as i16, 0),
        instruction(MOVE_NUMBER, 0, 0, 0, i32::MAX),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

fn load(map: RawFd) -> Result<OwnedFd> {
    let (program, license) = (program(map), c"Apache-2.0");
    let attributes = [
        words(BPF_PROG_TYPE_SOCKET_FILTER, program.len() as u32),
        program.as_ptr() as u64,
        license.as_ptr() as u64,
    ];
    bpf(BPF_PROG_LOAD, &attributes, "load a BPF program")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_nanoseconds;
    use crate::tap::Tap;
    use std::net::UdpSocket;

    /// A TAP and a socket that sends to it.
    fn tap() -> Option<(Tap, Stamps, UdpSocket)> {
        let (tap, socket) = crate::trial::tap()?;
        match Stamps::of(tap.raw()) {
            Ok(stamps) => Some((tap, stamps, socket)),
            Err(error) => crate::trial::not_run("BPF", &error),
        }
    }

    #[test]
    fn each_packet_has_the_time_at_which_it_was_sent() {
        let Some((tap, stamps, socket)) = tap() else { return };
        assert_eq!((stamps.count(), stamps.time(0)), (0, None));
        let mut brackets = Vec::new();
        for number in 0..100 {
            let before = monotonic_nanoseconds();
            socket.send(&[number; 10]).expect("it is sent");
            brackets.push(before..=monotonic_nanoseconds());
            assert_eq!(stamps.count(), u64::from(number) + 1);
        }
        for (number, bracket) in brackets.iter().enumerate() {
            let time = stamps.time(number as u64).expect("it was sent");
            assert!(bracket.contains(&time), "{number}: {time} is not in {bracket:?}");
        }
        assert_eq!(stamps.time(100), None);
        // All came through, whole: 10 bytes of virtio header, 14, 20 and 8 of headers, and the payload.
        let mut buffer = [0; 2048];
        for number in 0..100 {
            assert_eq!(tap.read(&mut buffer).expect("it is readable"), Some(62));
            assert_eq!(buffer[52..62], [number; 10]);
        }
        assert_eq!(tap.read(&mut buffer).expect("it is readable"), None);
    }

    #[test]
    fn a_time_that_was_written_over_is_not_told() {
        let Some((tap, stamps, socket)) = tap() else { return };
        let mut buffer = [0; 2048];
        for _ in 0..=TIMES {
            socket.send(&[1]).expect("it is sent");
            tap.read(&mut buffer).expect("it is readable").expect("it is there");
        }
        let count = TIMES as u64 + 1;
        assert_eq!((stamps.count(), stamps.time(0), stamps.time(1)), (count, None, None));
        let times: Vec<Option<u64>> = (2..count).map(|number| stamps.time(number)).collect();
        assert!(times.iter().all(Option::is_some) && times.is_sorted());
    }

    /// Linux's numbers (include/uapi/linux/bpf.h): an atomic add that fetches is 0xdb with 1, a map's value is pseudo source 2.
    #[test]
    fn an_instruction_is_laid_out_as_the_kernel_reads_it() {
        assert_eq!(instruction(0x7b, 7, 6, 64, 0).to_ne_bytes(), [0x7b, 0x67, 64, 0, 0, 0, 0, 0]);
        assert_eq!(
            instruction(0xb7, 1, 0, -2, -1).to_ne_bytes(),
            [0xb7, 1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff]
        );
    }
}
