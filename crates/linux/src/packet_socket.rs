//! Captures TCP handshakes on an interface, and counts its aggregates above 64 KiB (`packet(7)` with a BPF filter).

use crate::error::{OsError, Result, check};
use crate::rtnetlink;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One captured frame.
#[derive(Debug, Clone)]
pub struct Captured {
    /// Sent by this host, not received.
    pub outgoing: bool,
    /// The frame from its Ethernet header on, without FCS.
    pub frame: Vec<u8>,
}

/// A socket that receives every TCP segment with SYN set that passes an interface, either way.
pub struct HandshakeCapture {
    descriptor: OwnedFd,
}

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// `(ip or ip6) and tcp and tcp[tcpflags] & tcp-syn != 0`, for IPv6 without extension headers.
/// Jumps count the instructions to leave out.
const FILTER: [libc::sock_filter; 14] = [
    instruction(0x28, 0, 0, 12),     //  0 load the ethertype
    instruction(0x15, 0, 5, 0x0800), //  1 IPv4, else 7
    instruction(0x30, 0, 0, 23),     //  2 load the protocol
    instruction(0x15, 0, 8, 6),      //  3 TCP, else 12
    instruction(0xb1, 0, 0, 14),     //  4 x = bytes of the IPv4 header
    instruction(0x50, 0, 0, 27),     //  5 load the flags
    instruction(0x45, 6, 5, 0x02),   //  6 SYN: 13, else 12
    instruction(0x15, 0, 4, 0x86dd), //  7 IPv6, else 12
    instruction(0x30, 0, 0, 20),     //  8 load the next header
    instruction(0x15, 0, 2, 6),      //  9 TCP, else 12
    instruction(0x30, 0, 0, 67),     // 10 load the flags
    instruction(0x45, 1, 0, 0x02),   // 11 SYN: 13, else 12
    instruction(0x06, 0, 0, 0),      // 12 leave it
    instruction(0x06, 0, 0, 512),    // 13 take it
];

impl HandshakeCapture {
    /// Starts to capture on `interface`.
    pub fn start(interface: &str) -> Result<Self> {
        let operation = format!("capture handshakes on {interface}");
        let descriptor = open(interface, libc::ETH_P_ALL as u16, &FILTER, 8 << 20, &operation)?;
        Ok(Self { descriptor })
    }

    /// Takes what was captured so far, and the number of frames lost for want of room.
    pub fn take(&self) -> Result<(Vec<Captured>, u32)> {
        let mut captured = Vec::new();
        let mut buffer = [0u8; 2048];
        loop {
            // SAFETY: all-zero is a valid sockaddr_ll.
            let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            // SAFETY: both buffers are described by their true sizes.
            let read = unsafe {
                libc::recvfrom(
                    self.descriptor.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                    (&raw mut address).cast(),
                    &mut length,
                )
            };
            if read < 0 {
                match io::Error::last_os_error() {
                    error if error.raw_os_error() == Some(libc::EAGAIN) => break,
                    source => return Err(OsError { operation: "read captured handshakes".into(), source }),
                }
            }
            captured.push(Captured {
                outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
                frame: buffer[..read as usize].to_vec(),
            });
        }
        Ok((captured, statistics(&self.descriptor)[1]))
    }
}

/// IP packets from this size on are BIG TCP: the length in an IP header has no more than 16 bits.
pub const BIG_BYTES: u32 = 65_536;
const FRAME_HEADER_BYTES: u32 = 14;
/// Room for a few packets: of the others the kernel counts that there was none, which costs it next to nothing.
const FEW_PACKETS: libc::c_int = 1 << 20;

/// What a [`BigCount`] has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BigSeen {
    /// Packets of at least [`BIG_BYTES`].
    pub count: u64,
    /// The largest of the first few of them, in bytes.
    pub largest_bytes: Option<u32>,
}

/// Counts the aggregates above 64 KiB that an interface hands to the stack, after GRO, and those that it is handed.
///
/// Both go by the length of the packet as a whole: the length in the header of such an IP packet is 0.
pub struct BigCount {
    received: Vec<OwnedFd>,
    sent: OwnedFd,
}

impl BigCount {
    /// Starts to count on `interface`. Bound to IP packets, and not to all, sockets are not shown what is sent.
    pub fn start(interface: &str) -> Result<Self> {
        let operation = format!("count aggregates on {interface}");
        let filter = [
            instruction(0x80, 0, 0, 0),                              // load the frame's length
            instruction(0x35, 0, 1, BIG_BYTES + FRAME_HEADER_BYTES), // at least this, else leave it
            instruction(0x06, 0, 0, u32::MAX),                       // whole: only then its length is told
            instruction(0x06, 0, 0, 0),
        ];
        let kinds = [libc::ETH_P_IP as u16, libc::ETH_P_IPV6 as u16];
        let received = kinds.iter().map(|kind| open(interface, *kind, &filter, FEW_PACKETS, &operation));
        let received = received.collect::<Result<_>>()?;
        const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
        let outgoing = [
            instruction(0x20, 0, 0, PACKET_TYPE), // load which way it goes
            instruction(0x15, 0, 3, libc::PACKET_OUTGOING as u32), // sent, else leave it
            filter[0],
            filter[1],
            filter[2],
            filter[3],
        ];
        let sent = open(interface, libc::ETH_P_ALL as u16, &outgoing, FEW_PACKETS, &operation)?;
        Ok(Self { received, sent })
    }

    /// What the stack was handed so far, since the last call.
    pub fn take(&self) -> BigSeen {
        self.received.iter().map(seen).fold(BigSeen::default(), BigSeen::and)
    }

    /// What the interface was handed, since the last call. What it does not take whole, the stack cuts before.
    pub fn take_sent(&self) -> BigSeen {
        seen(&self.sent)
    }
}

impl BigSeen {
    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, largest_bytes: self.largest_bytes.max(other.largest_bytes) }
    }
}

fn seen(socket: &OwnedFd) -> BigSeen {
    // The kernel counts the lost ones among all.
    let mut tally = BigSeen { count: u64::from(statistics(socket)[0]), largest_bytes: None };
    while let Some(frame_bytes) = length_of_next(socket) {
        tally.largest_bytes = tally.largest_bytes.max(Some(frame_bytes.saturating_sub(FRAME_HEADER_BYTES)));
    }
    tally
}

/// The length of the next frame; `None` when there is no more.
fn length_of_next(socket: &OwnedFd) -> Option<u32> {
    let mut byte = 0u8;
    // SAFETY: `byte` is one byte, as is said. MSG_TRUNC asks for the length of the frame.
    let read = unsafe {
        libc::recv(socket.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_TRUNC | libc::MSG_DONTWAIT)
    };
    u32::try_from(read).ok()
}

/// Opens a socket for the packets of one kind (`ETH_P_…`) that pass an interface and its filter.
fn open(
    interface: &str,
    kind: u16,
    filter: &[libc::sock_filter],
    room_bytes: libc::c_int,
    operation: &str,
) -> Result<OwnedFd> {
    let index = rtnetlink::link(interface)?.index;
    // Protocol 0 keeps the socket deaf until its filter is set and it is bound.
    // SAFETY: no memory is passed.
    let raw = check(
        unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
        },
        operation,
    )?;
    // SAFETY: `raw` is a descriptor that this function just opened.
    let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut filter = filter.to_vec();
    let code = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `code` points at `filter`, `room_bytes` is a c_int; both live during the calls.
    unsafe {
        check(
            libc::setsockopt(
                raw,
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const code).cast(),
                size_of::<libc::sock_fprog>() as u32,
            ),
            operation,
        )?;
        libc::setsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const room_bytes).cast(),
            size_of::<libc::c_int>() as u32,
        );
    }
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = kind.to_be();
    address.sll_ifindex = index;
    // SAFETY: `address` is valid and its size is passed.
    let bound =
        unsafe { libc::bind(raw, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32) };
    check(bound, operation)?;
    Ok(descriptor)
}

/// Packets that passed the filter since the last call, and how many of them were lost for want of room.
pub(crate) fn statistics(socket: &OwnedFd) -> [u32; 2] {
    const PACKET_STATISTICS: libc::c_int = 6;
    let mut statistics = [0u32; 2];
    let mut length = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: pointer and length describe `statistics`.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &mut length,
        )
    };
    statistics
}
