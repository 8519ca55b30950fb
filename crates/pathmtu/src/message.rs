//! What probes and acknowledgements look like: the payload of UDP datagrams, whose rest is padding.
//!
//! ```text
//! probe            "FGp1"  token (16)  id (8)  IP bytes (4)                      padding …
//! acknowledgement  "FGa1"  token (16)  id (8)  IP bytes (4)  largest fragment (4)
//! ```
//!
//! Numbers are big-endian. The token is drawn anew for every check and never on a wire before: who has not seen it
//! gets no answer and is not believed. An acknowledgement is never larger than the probe that it answers.

use framegauge_frames::Family;
use thiserror::Error;

/// Bytes of a token.
pub const TOKEN_BYTES: usize = 16;
/// The secret of a check.
pub type Token = [u8; TOKEN_BYTES];
/// Bytes of an acknowledgement, and the least of a probe.
pub const MESSAGE_BYTES: usize = 36;
const UDP_HEADER_BYTES: u32 = 8;
const PROBE: [u8; 4] = *b"FGp1";
const ACKNOWLEDGEMENT: [u8; 4] = *b"FGa1";

/// The smallest IP packet that can carry a probe over either family, in bytes; controls have this size.
pub const SMALLEST_PROBE_BYTES: u32 = 100;

/// IP and UDP header in bytes (RFC 791, RFC 8200, RFC 768).
pub const fn header_bytes(family: Family) -> u32 {
    family.header_bytes() + UDP_HEADER_BYTES
}

/// Why a datagram is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Too short.
    #[error("found {found} bytes, expected at least {MESSAGE_BYTES}")]
    Short {
        /// Bytes of it.
        found: usize,
    },
    /// Something else.
    #[error("found another kind of message")]
    Kind,
    /// Of another check, or of somebody who should not be answered.
    #[error("found another token")]
    Token,
}

/// A probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Comes back in the acknowledgement.
    pub id: u64,
    /// The size of its IP packet.
    pub ip_bytes: u32,
}

/// An answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Of the probe.
    pub id: u64,
    /// The size of the IP packet as it arrived.
    pub ip_bytes: u32,
    /// The largest IP fragment that it came in; none if it came whole.
    pub fragment_bytes: Option<u32>,
}

impl Probe {
    /// Writes the header over the beginning of a payload of at least [`MESSAGE_BYTES`]; the rest stays as it is.
    ///
    /// # Panics
    ///
    /// If the payload is shorter.
    pub fn write(&self, token: &Token, payload: &mut [u8]) {
        head(PROBE, token, self.id, self.ip_bytes, payload);
    }

    /// Reads what [`Probe::write`] wrote. A quoted datagram in an ICMP message may be cut behind the header: it still
    /// has at least 32 bytes, or it is [`MessageError::Short`].
    pub fn read(token: &Token, payload: &[u8]) -> Result<Probe, MessageError> {
        let (id, ip_bytes) = body(PROBE, token, payload, MESSAGE_BYTES - 4)?;
        Ok(Probe { id, ip_bytes })
    }
}

impl Acknowledgement {
    /// As bytes.
    pub fn to_bytes(&self, token: &Token) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        head(ACKNOWLEDGEMENT, token, self.id, self.ip_bytes, &mut bytes);
        bytes[32..36].copy_from_slice(&self.fragment_bytes.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// From a payload.
    pub fn read(token: &Token, payload: &[u8]) -> Result<Acknowledgement, MessageError> {
        let (id, ip_bytes) = body(ACKNOWLEDGEMENT, token, payload, MESSAGE_BYTES)?;
        let fragment = number(&payload[32..36]) as u32;
        Ok(Acknowledgement { id, ip_bytes, fragment_bytes: (fragment > 0).then_some(fragment) })
    }
}

/// Whether `received` is the token. Looks at all bytes, whichever differs: how long it takes tells nothing.
pub fn same_token(received: &[u8], token: &Token) -> bool {
    received.len() == TOKEN_BYTES
        && received.iter().zip(token).fold(0, |all, (received, own)| all | (received ^ own)) == 0
}

fn head(kind: [u8; 4], token: &Token, id: u64, ip_bytes: u32, payload: &mut [u8]) {
    payload[..4].copy_from_slice(&kind);
    payload[4..20].copy_from_slice(token);
    payload[20..28].copy_from_slice(&id.to_be_bytes());
    payload[28..32].copy_from_slice(&ip_bytes.to_be_bytes());
}

fn body(kind: [u8; 4], token: &Token, payload: &[u8], least: usize) -> Result<(u64, u32), MessageError> {
    if payload.len() < least {
        return Err(MessageError::Short { found: payload.len() });
    }
    if payload[..4] != kind {
        return Err(MessageError::Kind);
    }
    if !same_token(&payload[4..20], token) {
        return Err(MessageError::Token);
    }
    Ok((number(&payload[20..28]), number(&payload[28..32]) as u32))
}

/// A big-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
