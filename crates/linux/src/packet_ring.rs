//! A ring of blocks that the kernel and this process share, which the kernel fills with packets (`packet(7)`,
//! `TPACKET_V3`). Layouts: `linux/if_packet.h`.

use crate::error::{OsError, Result, check};
use crate::packet_socket::statistics;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_VNET_HDR: libc::c_int = 15;
const TPACKET_V3: libc::c_int = 2;
const STATUS_USER: u32 = 1;
const STATUS_VLAN: u32 = 1 << 4;
const STATUS_VLAN_KIND: u32 = 1 << 6;
/// In a block: its status, how many packets it has, and where the first is.
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;
/// `struct tpacket3_hdr`, before the `sockaddr_ll`.
const HEAD_BYTES: usize = 48;
const ADDRESS_BYTES: usize = 20;
/// The least `tp_frame_size` that the kernel takes; with blocks, packets have any size.
const FRAME_BYTES: u32 = 2048;
/// `struct virtio_net_hdr`, which is in front of a packet's bytes where segments are told, and places in it.
const SEGMENTS_BYTES: usize = 10;
const SEGMENTS_KIND: usize = 1;
const SEGMENT_SIZE: usize = 4;
/// What the kernel puts before a packet's bytes at most: its head, the address, and room to align.
const BEFORE_BYTES: u32 = 128;

/// One packet of a ring.
#[derive(Debug, Clone, Copy)]
pub struct RingPacket<'a> {
    /// When, since 1970.
    pub time_nanoseconds: u64,
    /// Its length before the filter cut it, without FCS.
    pub original_bytes: u32,
    /// What was kept, from its link header on (if there is one).
    pub bytes: &'a [u8],
    /// Where in these its network header begins.
    pub network: usize,
    /// Sent by this host, not received.
    pub outgoing: bool,
    /// The VLAN tag that the NIC or the kernel has taken off: its ethertype and its content.
    pub vlan: Option<(u16, u16)>,
    /// Of an aggregate, the payload of its segments but the last, where this is told.
    pub segment_bytes: Option<u32>,
}

/// Opens a packet socket that hears nothing yet. This alone of all that a ring takes needs CAP_NET_RAW.
pub fn socket() -> Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let raw = check(raw, "open a packet socket")?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// How large a ring is, and how long a packet may wait in it to be seen.
#[derive(Debug, Clone, Copy)]
pub struct RingSize {
    /// Of one block: a power of two, at least a page, and larger than any packet that is kept.
    pub block_bytes: u32,
    /// How many.
    pub blocks: u32,
    /// After this long a block is handed over as it is.
    pub wait_milliseconds: u32,
    /// Whether the kernel tells how aggregates are cut (`PACKET_VNET_HDR`, for rings since Linux 4.6).
    pub segments: bool,
}

/// A ring on one interface.
pub struct PacketRing {
    descriptor: OwnedFd,
    memory: *mut u8,
    size: RingSize,
    next: u32,
}

// SAFETY: the memory belongs to this value alone, and may be read by any thread that has it.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Gives a socket of [`socket`] its filter and ring, and binds it to an interface: from then on it takes what the
    /// filter keeps, both ways.
    pub fn start(
        descriptor: OwnedFd,
        interface: u32,
        filter: &[(u16, u8, u8, u32)],
        size: RingSize,
    ) -> Result<Self> {
        attach(&descriptor, filter)?;
        let raw = descriptor.as_raw_fd();
        set(raw, PACKET_VERSION, &TPACKET_V3, "choose TPACKET_V3 for a packet socket")?;
        if size.segments {
            set(raw, PACKET_VNET_HDR, &1_i32, "have a packet socket tell of segments")?;
        }
        let frames = size.block_bytes / FRAME_BYTES * size.blocks;
        let request: [u32; 7] =
            [size.block_bytes, size.blocks, FRAME_BYTES, frames, size.wait_milliseconds, 0, 0];
        let operation = format!("make a ring of {} blocks of {} bytes", size.blocks, size.block_bytes);
        set(raw, PACKET_RX_RING, &request, &operation)?;
        let length = size.block_bytes as usize * size.blocks as usize;
        // SAFETY: the kernel chooses the place; the ring has this length, as it was asked for above.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, raw, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(OsError::last("map the ring of a packet socket"));
        }
        let ring = Self { descriptor, memory: memory.cast(), size, next: 0 };
        ring.bind(interface)?;
        Ok(ring)
    }

    fn bind(&self, interface: u32) -> Result<()> {
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as i32;
        let (place, length) = ((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32);
        // SAFETY: `address` is valid and its size is passed.
        check(unsafe { libc::bind(self.raw(), place, length) }, "bind a packet socket").map(drop)
    }

    /// Takes what another filter keeps from now on.
    pub fn filter(&self, filter: &[(u16, u8, u8, u32)]) -> Result<()> {
        attach(&self.descriptor, filter)
    }

    /// Whether the kernel has no block left to fill.
    pub fn is_full(&self) -> bool {
        let last = (self.next + self.size.blocks - 1) % self.size.blocks;
        self.status(last).load(Ordering::Acquire) & STATUS_USER != 0
    }

    fn block(&self, number: u32) -> *mut u8 {
        // SAFETY: callers pass a number below `blocks`, so that the block is within the memory that was mapped.
        unsafe { self.memory.add(number as usize * self.size.block_bytes as usize) }
    }

    fn status(&self, number: u32) -> &AtomicU32 {
        // SAFETY: aligned, since blocks are whole pages; both sides read and write this word atomically, and it is
        // mapped as long as this value is there.
        unsafe { AtomicU32::from_ptr(self.block(number).add(BLOCK_STATUS).cast()) }
    }

    /// The descriptor to wait for.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Packets that passed the filter since the last call, and how many of them found no room.
    pub fn statistics(&self) -> [u32; 2] {
        statistics(&self.descriptor)
    }

    /// The largest packet that a block can hold.
    pub fn most_bytes(size: RingSize) -> u32 {
        size.block_bytes.saturating_sub(2 * BEFORE_BYTES)
    }

    /// Shows every packet of the next block that the kernel has handed over, and gives the block back; false if there
    /// is none.
    pub fn take(&mut self, mut handler: impl FnMut(&RingPacket<'_>)) -> bool {
        if self.status(self.next).load(Ordering::Acquire) & STATUS_USER == 0 {
            return false;
        }
        let length = self.size.block_bytes as usize;
        // SAFETY: until its status is written back, the kernel leaves the block alone.
        let block = unsafe { std::slice::from_raw_parts(self.block(self.next), length) };
        visit(block, self.size.segments, &mut handler);
        self.status(self.next).store(0, Ordering::Release);
        self.next = (self.next + 1) % self.size.blocks;
        true
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        let length = self.size.block_bytes as usize * self.size.blocks as usize;
        // SAFETY: mapped by `start` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.cast(), length) };
    }
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(place..place + 2)?.try_into().ok()?))
}

/// Every packet of a block; the block ends early where it is damaged.
fn visit(block: &[u8], segments: bool, handler: &mut impl FnMut(&RingPacket<'_>)) {
    let Some((packets, first)) = word(block, BLOCK_PACKETS).zip(word(block, BLOCK_FIRST)) else { return };
    let mut place = first as usize;
    for _ in 0..packets {
        let Some((packet, next)) = block.get(place..).and_then(|bytes| parse(bytes, segments)) else {
            return;
        };
        handler(&packet);
        place += next;
    }
}

/// The packet at the beginning of these bytes, and how far behind it the next one is.
fn parse(bytes: &[u8], segments: bool) -> Option<(RingPacket<'_>, usize)> {
    let head = bytes.get(..HEAD_BYTES + ADDRESS_BYTES)?;
    let (status, link) = (word(head, 20)?, usize::from(short(head, 24)?));
    let network = usize::from(short(head, 26)?).saturating_sub(link);
    let snap_bytes = word(head, 12)? as usize;
    let kind = if status & STATUS_VLAN_KIND != 0 { short(head, 36)? } else { libc::ETH_P_8021Q as u16 };
    let packet = RingPacket {
        time_nanoseconds: u64::from(word(head, 4)?) * 1_000_000_000 + u64::from(word(head, 8)?),
        original_bytes: word(head, 16)?,
        bytes: bytes.get(link..link + snap_bytes)?,
        network,
        outgoing: head[HEAD_BYTES + 10] == libc::PACKET_OUTGOING,
        vlan: (status & STATUS_VLAN != 0).then_some((kind, word(head, 32)? as u16)),
        segment_bytes: segments.then(|| segment_bytes(bytes.get(..link)?)).flatten(),
    };
    Some((packet, word(head, 0)? as usize))
}

/// The size of an aggregate's segments, from the end of what is before its bytes.
fn segment_bytes(before: &[u8]) -> Option<u32> {
    let header = before.get(before.len().checked_sub(SEGMENTS_BYTES)?..)?;
    (header[SEGMENTS_KIND] != 0).then_some(u32::from(short(header, SEGMENT_SIZE)?)).filter(|size| *size > 0)
}

fn attach(descriptor: &OwnedFd, filter: &[(u16, u8, u8, u32)]) -> Result<()> {
    let mut code: Vec<libc::sock_filter> =
        filter.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: `program` points at `code`; both live during the call.
    let done = unsafe {
        let (place, length) = ((&raw const program).cast(), size_of::<libc::sock_fprog>() as u32);
        libc::setsockopt(descriptor.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, place, length)
    };
    check(done, "give a packet socket its filter").map(drop)
}

fn set<T>(raw: RawFd, name: libc::c_int, value: &T, operation: &str) -> Result<()> {
    let (place, length) = ((&raw const *value).cast(), size_of::<T>() as u32);
    // SAFETY: pointer and length describe `value`.
    check(unsafe { libc::setsockopt(raw, libc::SOL_PACKET, name, place, length) }, operation).map(drop)
}
