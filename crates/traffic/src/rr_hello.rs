//! The first bytes on a request/response connection: who may talk, and the size of every message.

use crate::hello::{HelloError, TOKEN_BYTES, Token, same_token};

const MAGIC: [u8; 4] = *b"FGR1";

/// The client's opening message. The serving end answers it with [`RrHello::ACCEPTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RrHello {
    /// The secret.
    pub token: Token,
    /// Bytes in every request.
    pub request_bytes: u32,
    /// Bytes in every response.
    pub response_bytes: u32,
    /// Bytes that are written alone, before the rest of a longer message; 0: one write a message.
    pub header_bytes: u32,
}

impl RrHello {
    /// Length of the message in bytes.
    pub const BYTES: usize = 36;
    /// What the serving end answers to a client that it accepts.
    pub const ACCEPTED: [u8; 4] = *b"FGRA";
    /// The largest request, response or header in bytes.
    pub const MOST_BYTES: u32 = 16 << 20;

    /// The message as sent.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.token);
        bytes[24..28].copy_from_slice(&self.request_bytes.to_be_bytes());
        bytes[28..32].copy_from_slice(&self.response_bytes.to_be_bytes());
        bytes[32..36].copy_from_slice(&self.header_bytes.to_be_bytes());
        bytes
    }

    /// Reads a message and checks its token, in time that does not depend on the token.
    pub fn decode(bytes: &[u8; Self::BYTES], token: &Token) -> Result<Self, HelloError> {
        if bytes[0..4] != MAGIC {
            return Err(HelloError::Magic);
        }
        let mut received = [0; TOKEN_BYTES];
        received.copy_from_slice(&bytes[8..24]);
        if !same_token(&received, token) {
            return Err(HelloError::Token);
        }
        let word = |place: usize| bytes[place..place + 4].try_into().map_or(0, u32::from_be_bytes);
        let hello = Self {
            token: received,
            request_bytes: word(24),
            response_bytes: word(28),
            header_bytes: word(32),
        };
        let sizes = 1..=Self::MOST_BYTES;
        let fits = sizes.contains(&hello.request_bytes)
            && sizes.contains(&hello.response_bytes)
            && hello.header_bytes <= Self::MOST_BYTES
            && bytes[4..8] == [0; 4];
        if fits { Ok(hello) } else { Err(HelloError::Field) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_it_wrote(token: Token, request in 1..=RrHello::MOST_BYTES, response in 1..=RrHello::MOST_BYTES, header in 0..=RrHello::MOST_BYTES) {
            let hello = RrHello { token, request_bytes: request, response_bytes: response, header_bytes: header };
            prop_assert_eq!(RrHello::decode(&hello.encode(), &token), Ok(hello));
        }

        #[test]
        fn never_panics_on_noise(noise: [u8; RrHello::BYTES - 4], token: Token, magic: bool) {
            let mut bytes = [0; RrHello::BYTES];
            bytes[4..].copy_from_slice(&noise);
            if magic {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[8..24].copy_from_slice(&token);
            }
            if let Ok(hello) = RrHello::decode(&bytes, &token) {
                prop_assert_eq!(hello.encode(), bytes);
            }
        }
    }

    #[test]
    fn refuses_what_is_not_meant_for_it() {
        let hello = RrHello { token: [1; 16], request_bytes: 1, response_bytes: 1, header_bytes: 0 };
        assert_eq!(RrHello::decode(&hello.encode(), &[2; 16]), Err(HelloError::Token));
        assert_eq!(RrHello::decode(&[0; RrHello::BYTES], &[0; 16]), Err(HelloError::Magic));
        for (place, value) in [(4, 1), (27, 0), (31, 0), (24, 2), (32, 2)] {
            let mut bytes = hello.encode();
            bytes[place] = value;
            assert_eq!(RrHello::decode(&bytes, &[1; 16]), Err(HelloError::Field), "byte {place}");
        }
    }
}
