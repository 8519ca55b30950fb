//! The first bytes of every datagram: who may send it, which it is.

use crate::Token;

/// Counts up when the layout changes.
const MAGIC: [u8; 4] = *b"FGD1";
/// Bytes of the token that a datagram has: those of voice are short.
const KEPT_BYTES: usize = 8;

/// Which datagram it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramHead {
    /// Its flow.
    pub flow: u32,
    /// Its number within the flow, from 0.
    pub sequence: u32,
}

impl DatagramHead {
    /// Its length, which every datagram has at least.
    pub const BYTES: usize = 20;

    /// As it is sent.
    pub fn encode(&self, token: &Token) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&token[..KEPT_BYTES]);
        bytes[12..16].copy_from_slice(&self.flow.to_be_bytes());
        bytes[16..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// Of a datagram that was received; `None`: it is not one of those that know the token, which is compared in a time
    /// that does not depend on it.
    pub fn decode(bytes: &[u8], token: &Token) -> Option<Self> {
        let bytes = bytes.first_chunk::<{ Self::BYTES }>()?;
        let word = |place: usize| bytes[place..].first_chunk().map(|four| u32::from_be_bytes(*four));
        let differing = bytes[4..12].iter().zip(token).fold(0, |all, (one, other)| all | (one ^ other));
        if bytes[..4] != MAGIC || differing != 0 {
            return None;
        }
        Some(Self { flow: word(12)?, sequence: word(16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: DatagramHead = DatagramHead { flow: 3, sequence: 70_000 };

    #[test]
    fn a_datagram_is_read_as_it_was_sent_and_a_strangers_is_not() {
        let bytes = HEAD.encode(&[7; 16]);
        assert_eq!(bytes, *b"FGD1\x07\x07\x07\x07\x07\x07\x07\x07\0\0\0\x03\0\x01\x11\x70");
        assert_eq!(DatagramHead::decode(&[&bytes[..], &[0; 100]].concat(), &[7; 16]), Some(HEAD));
        assert_eq!(DatagramHead::decode(&bytes, &[8; 16]), None);
        assert_eq!(DatagramHead::decode(&bytes[..19], &[7; 16]), None);
        assert_eq!(DatagramHead::decode(b"FGD2 and more than twenty", &[7; 16]), None);
    }
}
