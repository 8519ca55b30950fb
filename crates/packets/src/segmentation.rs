//! How an aggregate is cut into frames.
//!
//! Only headers are ever written: payload stays where the kernel put it and is named by its range. The rules
//! are those of Linux' `tcp_gso_segment` and `inet_gso_segment`.

use std::net::IpAddr;
use std::ops::Range;

use crate::error::Layer;
use crate::view::PROTOCOL_TCP;
use crate::{
    IpVersion, Packet, ParseError, TcpFlags, TrafficClass, Transport, VirtioNetHeader, checksum, ecn, parse,
};

/// The longest header [`Segmentation::write_header`] writes: Ethernet 14, tag 4, IPv4 60, TCP 60.
pub const MAX_HEADER_BYTES: usize = 138;

const ETHERNET_BYTES: usize = 14;
/// Where the checksum lies in a TCP header.
const TCP_CHECKSUM_OFFSET: u16 = 16;

/// The plan of one frame or aggregate from a TAP; holds no bytes.
///
/// Methods that take a frame index treat one beyond the last frame as the last, and write nothing when the
/// frame handed in is shorter than the one planned or `out` is too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segmentation {
    vnet: VirtioNetHeader,
    frames: u16,
    flow: u64,
    /// The version of its IP header, and where it begins.
    network: Option<(IpVersion, usize)>,
    class: TrafficClass,
    /// Bytes of Ethernet, IP and TCP headers that every frame carries.
    header_bytes: usize,
    /// End of the payload in the original frame.
    payload_end: usize,
    /// Payload of each frame but the last; of an unsegmented frame all of it.
    gso_bytes: usize,
    /// Bytes of transport payload if it is TCP.
    tcp_payload: bool,
    /// Where the headers to be patched are; nothing for an unsegmented frame, which is passed on as it is.
    patch: Option<Patch>,
}

/// Where the headers of a segmented frame lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Patch {
    version: IpVersion,
    source: IpAddr,
    destination: IpAddr,
    network_start: usize,
    transport_start: usize,
}

impl Segmentation {
    /// How this frame is cut. Not an aggregate: one frame, passed on as it is, whatever it holds.
    ///
    /// Fails for a frame without an Ethernet header, and for an aggregate that is not the TCP it claims to be.
    pub fn plan(vnet: &VirtioNetHeader, frame: &[u8]) -> Result<Segmentation, ParseError> {
        if vnet.gso_kind() == VirtioNetHeader::GSO_NONE {
            return Self::plan_single(vnet, frame);
        }
        let packet = parse(frame)?;
        let patch = Patch::find(vnet, &packet)?;
        let payload = packet.payload_range();
        if vnet.gso_bytes == 0 {
            return Err(gso_error("gso_size", 0, "at least 1"));
        }
        let gso_bytes = usize::from(vnet.gso_bytes);
        let frames = payload.len().div_ceil(gso_bytes).max(1);
        let frames = u16::try_from(frames)
            .map_err(|_| gso_error("number of segments", frames as u32, "at most 65535"))?;
        Ok(Segmentation {
            vnet: *vnet,
            frames,
            flow: packet.flow_hash(),
            network: packet.ip_version().map(|version| (version, packet.network_start())),
            class: packet.traffic_class().unwrap_or_default(),
            header_bytes: payload.start,
            payload_end: payload.end,
            gso_bytes,
            tcp_payload: true,
            patch: Some(patch),
        })
    }

    fn plan_single(vnet: &VirtioNetHeader, frame: &[u8]) -> Result<Segmentation, ParseError> {
        // A malformed packet is still a frame: a switch does not look further than the Ethernet header.
        let packet = match parse(frame) {
            Ok(packet) => Some(packet),
            Err(error) if frame.len() < ETHERNET_BYTES => return Err(error),
            Err(_) => None,
        };
        let is_tcp = |packet: &Packet<'_>| matches!(packet.transport(), Transport::Tcp(_));
        let inside = packet.and_then(|packet| packet.inside_vxlan());
        let tcp = packet.filter(is_tcp).or(inside.filter(is_tcp));
        let header_bytes = packet.map_or(ETHERNET_BYTES, |packet| packet.header_bytes());
        // Ethernet padding is part of the frame but not of its TCP payload, which is only counted.
        Ok(Segmentation {
            vnet: *vnet,
            frames: 1,
            flow: packet.map_or(0, |packet| packet.flow_hash()),
            network: packet.and_then(|packet| Some((packet.ip_version()?, packet.network_start()))),
            class: packet.and_then(|packet| packet.traffic_class()).unwrap_or_default(),
            header_bytes,
            payload_end: frame.len(),
            gso_bytes: tcp.map_or(0, |packet| packet.payload_bytes()),
            tcp_payload: tcp.is_some(),
            patch: None,
        })
    }

    /// What tells its flow from others ([`Packet::flow_hash`]); 0 for what cannot be parsed.
    pub fn flow(&self) -> u64 {
        self.flow
    }

    /// What its IP header tells queues; all zero for what is not IP or cannot be parsed.
    pub fn traffic_class(&self) -> TrafficClass {
        self.class
    }

    /// Frames on the wire.
    pub fn frames(&self) -> u16 {
        self.frames
    }

    /// Bytes of all headers that were understood, TCP options included (of a malformed packet: 14).
    pub fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Bytes of frame `i` without FCS, unpadded.
    pub fn captured_bytes(&self, i: u16) -> u32 {
        let payload = self.payload_range(i);
        u32::try_from(self.header_bytes + payload.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of TCP payload in frame `i`, also inside VXLAN; 0 if it is not TCP.
    pub fn tcp_payload_bytes(&self, i: u16) -> u32 {
        let bytes = match (self.tcp_payload, self.patch) {
            (false, _) => 0,
            (true, None) => self.gso_bytes,
            (true, Some(_)) => self.payload_range(i).len(),
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Where the payload of frame `i` lies in the original frame.
    pub fn payload_range(&self, i: u16) -> Range<usize> {
        if self.patch.is_none() {
            return self.header_bytes..self.payload_end;
        }
        let start = self.header_bytes + self.clamp(i) * self.gso_bytes;
        start.min(self.payload_end)..(start + self.gso_bytes).min(self.payload_end)
    }

    /// Writes the header of frame `i` to `out` (at least [`Self::header_bytes`] long, [`MAX_HEADER_BYTES`]
    /// always suffice) and returns its bytes; 0 if `out` or `frame` is too short.
    ///
    /// `frame` is the original one. Its checksum is left for the receiver: the TCP checksum field holds the
    /// pseudo-header sum that [`VirtioNetHeader::NEEDS_CSUM`] announces.
    pub fn write_header(&self, frame: &[u8], i: u16, out: &mut [u8]) -> usize {
        if frame.len() < self.payload_end || out.len() < self.header_bytes {
            return 0;
        }
        let header = &mut out[..self.header_bytes];
        header.copy_from_slice(&frame[..self.header_bytes]);
        if let Some(patch) = self.patch {
            let payload_bytes = self.payload_range(i).len();
            let index = self.clamp(i);
            patch.network(header, payload_bytes, index);
            let ends = index + 1 == usize::from(self.frames);
            patch.transport(header, payload_bytes, index * self.gso_bytes, index == 0, ends);
        }
        self.header_bytes
    }

    /// Makes ECT in an IP header CE, and nothing else but its checksum: the header of the original frame, or one that
    /// [`Self::write_header`] wrote (RFC 3168). What is not ECT stays as it is.
    pub fn mark(&self, header: &mut [u8]) {
        if let Some((version, start)) = self.network
            && let Some(ip) = header.get_mut(start..)
        {
            ecn::mark(version, ip);
        }
    }

    /// What to write before each of the frames to the receiving TAP.
    pub fn vnet_header(&self) -> VirtioNetHeader {
        match self.patch {
            None => self.vnet,
            Some(patch) => VirtioNetHeader {
                flags: VirtioNetHeader::NEEDS_CSUM,
                gso_type: VirtioNetHeader::GSO_NONE,
                header_bytes: self.header_bytes as u16,
                gso_bytes: 0,
                checksum_start: patch.transport_start as u16,
                checksum_offset: TCP_CHECKSUM_OFFSET,
            },
        }
    }

    /// A frame that exists: none beyond the last.
    fn clamp(&self, i: u16) -> usize {
        usize::from(i.min(self.frames - 1))
    }
}

impl Patch {
    fn find(vnet: &VirtioNetHeader, packet: &Packet<'_>) -> Result<Patch, ParseError> {
        let kind = vnet.gso_kind();
        let version = match kind {
            VirtioNetHeader::GSO_TCPV4 => IpVersion::V4,
            VirtioNetHeader::GSO_TCPV6 => IpVersion::V6,
            _ => {
                return Err(gso_error("gso_type", u32::from(kind), "0 (none), 1 (TCPv4) or 4 (TCPv6)"));
            }
        };
        let (Some(tcp), Some(source), Some(destination)) =
            (packet.tcp(), packet.source(), packet.destination())
        else {
            return Err(gso_error("gso_type", u32::from(kind), "0 (none), as this is not TCP"));
        };
        if packet.ip_version() != Some(version) {
            return Err(gso_error("gso_type", u32::from(kind), "that of the IP version in the frame"));
        }
        Ok(Patch {
            version,
            source: source.ip(),
            destination: destination.ip(),
            network_start: packet.network_start(),
            transport_start: packet.header_bytes() - tcp.header_bytes(),
        })
    }

    /// The IP header of frame `index`.
    fn network(&self, header: &mut [u8], payload_bytes: usize, index: usize) {
        let network_bytes = header.len() + payload_bytes - self.network_start;
        let ip = &mut header[self.network_start..self.transport_start];
        match self.version {
            IpVersion::V4 => {
                put(ip, 2, network_bytes as u16);
                let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
                put(ip, 4, id);
                put(ip, 10, 0);
                let sum = checksum::internet_checksum(ip);
                put(ip, 10, sum);
            }
            IpVersion::V6 => put(ip, 4, (network_bytes - ip.len()) as u16),
        }
    }

    /// The TCP header of a frame whose payload begins at `offset`; `begins` and `ends` say whether it is the
    /// first and the last frame of the aggregate.
    fn transport(&self, header: &mut [u8], payload_bytes: usize, offset: usize, begins: bool, ends: bool) {
        let tcp = &mut header[self.transport_start..];
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset as u32);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        let mut flags = TcpFlags(tcp[13]);
        if !ends {
            flags = flags.without(TcpFlags::FIN.with(TcpFlags::PSH));
        }
        if !begins {
            flags = flags.without(TcpFlags::CWR);
        }
        tcp[13] = flags.0;
        let segment_bytes = (tcp.len() + payload_bytes) as u32;
        let sum = checksum::pseudo_header(self.source, self.destination, PROTOCOL_TCP, segment_bytes);
        put(tcp, usize::from(TCP_CHECKSUM_OFFSET), checksum::fold(sum));
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn gso_error(field: &'static str, actual: u32, expected: &'static str) -> ParseError {
    ParseError::Value { layer: Layer::VirtioNet, field, found: actual, expected }
}
