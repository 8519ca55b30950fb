//! Multipath TCP (RFC 8684) by the kernel's own path manager: further subflows of a connection, and what they say.
//!
//! Hosts have one address. Their subflows differ in ports: the listening end announces its address with further ports
//! (ADD_ADDR), where the kernel listens, and the connecting end opens a subflow to each.

use crate::error::{OsError, Result, check};
use crate::netlink::{Message, Socket, attribute, family_of};
use crate::tcp::TcpInfo;
use std::net::IpAddr;
use std::os::fd::RawFd;

/// Subflows that a connection may have; the path manager allows as many beside the first (`MPTCP_PM_ADDR_MAX`).
pub const MOST_SUBFLOWS: u8 = 8;

const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Commands and attributes of `linux/mptcp_pm.h`.
const ADD_ENDPOINT: u8 = 1;
const FLUSH_ENDPOINTS: u8 = 4;
const SET_LIMITS: u8 = 5;
const ENDPOINT: u16 = 1;
const MOST_ANNOUNCED: u16 = 2;
const MOST_FURTHER: u16 = 3;
const OF_FAMILY: u16 = 1;
const OF_ADDRESS_4: u16 = 3;
const OF_ADDRESS_6: u16 = 4;
const OF_PORT: u16 = 5;
const OF_FLAGS: u16 = 6;
/// `MPTCP_PM_ADDR_FLAG_SIGNAL`.
const ANNOUNCED: u32 = 1;

const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
/// `mptcpi_bytes_acked`, since Linux 6.5.
const BYTES_ACKED: std::ops::Range<usize> = 72..80;

/// The path manager of the calling thread's network namespace.
struct Manager {
    socket: Socket,
    family: u16,
}

impl Manager {
    fn open(operation: &str) -> Result<Self> {
        let socket = Socket::open(libc::NETLINK_GENERIC)?;
        let mut ask = Message::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0]);
        ask.text(FAMILY_NAME, "mptcp_pm");
        let answers = socket.request(ask, operation)?;
        let family = answers
            .iter()
            .find_map(|body| attribute(body.get(4..)?, FAMILY_ID)?.try_into().ok().map(u16::from_ne_bytes))
            .ok_or_else(|| OsError::errno(operation, libc::ENOENT))?;
        Ok(Self { socket, family })
    }

    fn tell(&self, command: u8, fill: impl FnOnce(&mut Message), operation: &str) -> Result<()> {
        let mut message = Message::new(self.family, 0, &[command, 1, 0, 0]);
        fill(&mut message);
        self.socket.request(message, operation).map(drop)
    }
}

/// Allows connections of this network namespace so many subflows, the first included, and forgets what was announced.
pub fn allow(subflows: u8) -> Result<()> {
    let operation = format!("allow {subflows} subflows of MPTCP");
    let manager = Manager::open(&operation)?;
    manager.tell(FLUSH_ENDPOINTS, |_| {}, &operation)?;
    let further = u32::from(subflows.saturating_sub(1));
    let limits = |message: &mut Message| {
        message.u32(MOST_ANNOUNCED, further).u32(MOST_FURTHER, further);
    };
    manager.tell(SET_LIMITS, limits, &operation)
}

/// Announces the address with a port after `port` to every connection, so often; the kernel listens there.
pub fn announce(address: IpAddr, port: u16, times: u8) -> Result<()> {
    let operation = format!("announce {times} ports of {address} by MPTCP");
    let manager = Manager::open(&operation)?;
    let mut port = port;
    for _ in 0..times {
        loop {
            port = port.checked_add(1).ok_or_else(|| OsError::errno(operation.as_str(), libc::EADDRINUSE))?;
            match manager.tell(ADD_ENDPOINT, |message| endpoint(message, address, port), &operation) {
                Err(error) if error.source.raw_os_error() == Some(libc::EADDRINUSE) => {}
                other => break other?,
            }
        }
    }
    Ok(())
}

fn endpoint(message: &mut Message, address: IpAddr, port: u16) {
    message.nest(ENDPOINT, |inner| {
        inner.attribute(OF_FAMILY, &u16::from(family_of(address)).to_ne_bytes());
        match address {
            IpAddr::V4(address) => inner.attribute(OF_ADDRESS_4, &address.octets()),
            IpAddr::V6(address) => inner.attribute(OF_ADDRESS_6, &address.octets()),
        };
        inner.attribute(OF_PORT, &port.to_ne_bytes());
        inner.u32(OF_FLAGS, ANNOUNCED);
    });
}

/// What the kernel says of every subflow of a connection (`MPTCP_TCPINFO`); none if it has fallen back to TCP.
pub fn subflows(socket: RawFd) -> Result<Vec<TcpInfo>> {
    const HEAD: usize = 16;
    const EACH: usize = 256;
    let mut bytes = [0u8; HEAD + EACH * (MOST_SUBFLOWS as usize + 1)];
    bytes[..4].copy_from_slice(&(HEAD as u32).to_ne_bytes());
    bytes[12..16].copy_from_slice(&(EACH as u32).to_ne_bytes());
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`.
    let read = unsafe {
        libc::getsockopt(socket, SOL_MPTCP, MPTCP_TCPINFO, bytes.as_mut_ptr().cast(), &raw mut length)
    };
    if read < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EOPNOTSUPP) {
        return Ok(Vec::new());
    }
    check(read, "read TCP_INFO of subflows")?;
    let word = |place: usize| u32::from_ne_bytes(bytes[place..place + 4].try_into().unwrap_or_default());
    // The kernel's own size of each, no more than what was asked for.
    let (head, kernels, user_bytes) = (word(0) as usize, word(8) as usize, word(12) as usize);
    let size = kernels.min(user_bytes).min(EACH);
    let end = bytes.len().min(length as usize);
    Ok((0..word(4) as usize)
        .map(|number| head + number * user_bytes)
        .take_while(|begin| begin + size <= end)
        .map(|begin| TcpInfo::parse(&bytes[begin..begin + size]))
        .collect())
}

/// Payload of a connection that the other end has acknowledged, whichever subflow carried it.
pub fn acknowledged_bytes(socket: RawFd) -> Result<u64> {
    let mut bytes = [0u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `bytes`.
    let read = unsafe {
        libc::getsockopt(socket, SOL_MPTCP, MPTCP_INFO, bytes.as_mut_ptr().cast(), &raw mut length)
    };
    check(read, "read MPTCP_INFO")?;
    if (length as usize) < BYTES_ACKED.end {
        return Err(OsError::errno(
            "read the acknowledged bytes of MPTCP, which Linux 6.5 tells",
            libc::ENOSYS,
        ));
    }
    Ok(u64::from_ne_bytes(bytes[BYTES_ACKED].try_into().unwrap_or_default()))
}

/// The subflows of a connection as one: what is counted is summed up, times and sizes are those of the first.
pub fn together(subflows: &[TcpInfo]) -> TcpInfo {
    let Some((first, rest)) = subflows.split_first() else { return TcpInfo::default() };
    rest.iter().fold(*first, |sum, flow| TcpInfo {
        cwnd_segments: sum.cwnd_segments + flow.cwnd_segments,
        retransmits: sum.retransmits + flow.retransmits,
        unacked_segments: sum.unacked_segments + flow.unacked_segments,
        sacked_segments: sum.sacked_segments + flow.sacked_segments,
        not_sent_bytes: sum.not_sent_bytes + flow.not_sent_bytes,
        delivery_rate_bits_per_second: sum.delivery_rate_bits_per_second + flow.delivery_rate_bits_per_second,
        bytes_acked: sum.bytes_acked + flow.bytes_acked,
        bytes_received: sum.bytes_received + flow.bytes_received,
        bytes_sent: sum.bytes_sent + flow.bytes_sent,
        bytes_retransmitted: sum.bytes_retransmitted + flow.bytes_retransmitted,
        data_segments_sent: sum.data_segments_sent + flow.data_segments_sent,
        data_segments_received: sum.data_segments_received + flow.data_segments_received,
        segments_sent: sum.segments_sent + flow.segments_sent,
        segments_received: sum.segments_received + flow.segments_received,
        duplicates_told: sum.duplicates_told + flow.duplicates_told,
        reorderings: sum.reorderings + flow.reorderings,
        timeouts: sum.timeouts + flow.timeouts,
        ..sum
    })
}
