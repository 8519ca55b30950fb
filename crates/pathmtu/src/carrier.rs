//! What carries probes: UDP datagrams, which an agent at the far end acknowledges, or ICMP echoes (RFC 792, RFC 4443), which
//! any host returns.
//!
//! An echo holds the same probe behind its own header. Its answer is the echo itself, so that a packet of the probe's
//! size has passed both ways when all of it comes back. The token in it was seen by nobody but those on the way: who was not
//! asked cannot answer, and what another check has sent is not taken for this one's.

use crate::message::{Acknowledgement, MESSAGE_BYTES, MessageError, Probe, Token};
use framegauge_frames::Family;
use framegauge_packets::checksum::internet_checksum;

/// Type, code, checksum, identifier, sequence number.
const ECHO_HEADER_BYTES: usize = 8;
const LEAST_IPV4_HEADER_BYTES: usize = 20;

/// What carries the probes of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The far end acknowledges.
    Udp,
    /// The far end returns them.
    Echo(Echo),
}

/// Echoes of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Of both ends' addresses.
    pub family: Family,
    /// Tells this socket's echoes from others' of this host.
    pub identifier: u16,
    /// The socket shows the IPv4 header before each answer.
    pub headed: bool,
}

/// What a socket received.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Its beginning.
    pub kept: &'a [u8],
    /// Bytes of the whole.
    pub bytes: usize,
    /// The largest IP fragment that it came in; 0: it came whole.
    pub fragment_bytes: u32,
}

/// An answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Of the probe.
    pub id: u64,
    /// The size of the probe's IP packet.
    pub ip_bytes: u32,
    /// The largest IP fragment, of the probe (UDP) or of its echo; none if it came whole.
    pub fragment_bytes: Option<u32>,
    /// The echo's IP packet, if it came back shorter than it was sent: then nothing is known of larger ones on the way back.
    pub cut_bytes: Option<u32>,
}

impl Carrier {
    /// Writes a probe over the beginning of `payload` and gives what is to be sent, the part that makes an IP packet of the
    /// probe's size.
    ///
    /// # Panics
    ///
    /// If the payload, or the probe's size, is smaller than headers and [`MESSAGE_BYTES`].
    pub fn write<'a>(&self, probe: &Probe, token: &Token, family: Family, payload: &'a mut [u8]) -> &'a [u8] {
        match self {
            Carrier::Udp => {
                probe.write(token, payload);
                &payload[..(probe.ip_bytes - crate::header_bytes(family)) as usize]
            }
            Carrier::Echo(echo) => {
                let whole = &mut payload[..(probe.ip_bytes - family.header_bytes()) as usize];
                probe.write(token, &mut whole[ECHO_HEADER_BYTES..]);
                echo.write_header(probe.id as u16, whole);
                whole
            }
        }
    }

    /// Reads an answer.
    pub fn answer(&self, token: &Token, datagram: Datagram<'_>) -> Result<Answer, MessageError> {
        match self {
            Carrier::Udp => Acknowledgement::read(token, datagram.kept).map(|answer| Answer {
                id: answer.id,
                ip_bytes: answer.ip_bytes,
                fragment_bytes: answer.fragment_bytes,
                cut_bytes: None,
            }),
            Carrier::Echo(echo) => echo.answer(token, datagram),
        }
    }

    /// Reads what an ICMP message quotes of a packet that was sent. [`MessageError::Short`]: it is of this socket, as far as it
    /// goes, but too little to say which.
    pub fn quoted(&self, token: &Token, quoted: &[u8]) -> Result<Probe, MessageError> {
        match self {
            Carrier::Udp => Probe::read(token, quoted),
            Carrier::Echo(echo) => {
                // Without the header it might be anybody's.
                let sequence = echo.sequence(quoted, echo.request()).map_err(|_| MessageError::Kind)?;
                let probe = Probe::read(token, &quoted[ECHO_HEADER_BYTES..])?;
                if probe.id as u16 == sequence { Ok(probe) } else { Err(MessageError::Kind) }
            }
        }
    }
}

impl Echo {
    fn request(&self) -> u8 {
        match self.family {
            Family::V4 => 8,
            Family::V6 => 128,
        }
    }

    fn reply(&self) -> u8 {
        match self.family {
            Family::V4 => 0,
            Family::V6 => 129,
        }
    }

    /// The kernel sets the checksum of ICMPv6, which covers addresses that it chooses.
    fn write_header(&self, sequence: u16, whole: &mut [u8]) {
        whole[..4].copy_from_slice(&[self.request(), 0, 0, 0]);
        whole[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        whole[6..8].copy_from_slice(&sequence.to_be_bytes());
        if self.family == Family::V4 {
            let sum = internet_checksum(whole);
            whole[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// The sequence number of an echo of this kind and identifier.
    fn sequence(&self, bytes: &[u8], kind: u8) -> Result<u16, MessageError> {
        let Some(header) = bytes.first_chunk::<ECHO_HEADER_BYTES>() else {
            return Err(MessageError::Short { found: bytes.len() });
        };
        if header[..2] != [kind, 0] || header[4..6] != self.identifier.to_be_bytes() {
            return Err(MessageError::Kind);
        }
        Ok(u16::from_be_bytes([header[6], header[7]]))
    }

    fn answer(&self, token: &Token, datagram: Datagram<'_>) -> Result<Answer, MessageError> {
        let before = if self.headed { header_length(datagram.kept)? } else { 0 };
        let short = MessageError::Short { found: datagram.bytes };
        let echo = datagram.kept.get(before..).ok_or(short)?;
        let sequence = self.sequence(echo, self.reply())?;
        let probe = Probe::read(token, &echo[ECHO_HEADER_BYTES..])?;
        let bytes = u32::try_from(datagram.bytes.saturating_sub(before)).unwrap_or(u32::MAX);
        let ip_bytes = bytes.saturating_add(self.family.header_bytes());
        // An echo cannot grow, and has the sequence number of its own probe.
        if probe.id as u16 != sequence || ip_bytes > probe.ip_bytes {
            return Err(MessageError::Kind);
        }
        Ok(Answer {
            id: probe.id,
            ip_bytes: probe.ip_bytes,
            fragment_bytes: (datagram.fragment_bytes > 0).then_some(datagram.fragment_bytes),
            cut_bytes: (ip_bytes < probe.ip_bytes).then_some(ip_bytes),
        })
    }
}

/// Of the IPv4 header at the beginning.
fn header_length(bytes: &[u8]) -> Result<usize, MessageError> {
    let first = *bytes.first().ok_or(MessageError::Short { found: 0 })?;
    let length = usize::from(first & 0x0f) * 4;
    if first >> 4 == 4 && length >= LEAST_IPV4_HEADER_BYTES { Ok(length) } else { Err(MessageError::Kind) }
}

const _: () = assert!(crate::SMALLEST_PROBE_BYTES as usize >= 40 + ECHO_HEADER_BYTES + MESSAGE_BYTES);
