//! The first bytes on every data connection: who may talk, which way the bytes go and how many.

use crate::Amount;
use std::num::NonZeroU64;

/// Bytes in a token.
pub const TOKEN_BYTES: usize = 16;

/// The secret that the controller gave to both ends.
pub type Token = [u8; TOKEN_BYTES];

/// Counts up when the layout changes: an end that speaks another version is refused by its first bytes. The length
/// stays, so that neither waits for more.
const MAGIC: [u8; 4] = *b"FGS2";

/// The client's opening message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The secret.
    pub token: Token,
    /// The serving end sends, instead of the client.
    pub reverse: bool,
    /// How much the sending end sends.
    pub amount: Amount,
    /// What the serving end may send at most, in payload bytes per second; `None`: as fast as it goes.
    pub pacing_bytes_per_second: Option<NonZeroU64>,
    /// Which flow of its round this is.
    pub flow: u32,
    /// Which round.
    pub round: u32,
}

/// Why an opening message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelloError {
    /// It does not begin with `FGS2`.
    Magic,
    /// Its token is not ours.
    Token,
    /// A field has a value that means nothing.
    Field,
}

impl std::fmt::Display for HelloError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Magic => "not a framegauge stream",
            Self::Token => "wrong token",
            Self::Field => "a field without meaning",
        })
    }
}

impl std::error::Error for HelloError {}

/// Compares in time that does not depend on where the two differ.
pub(crate) fn same_token(received: &Token, token: &Token) -> bool {
    received.iter().zip(token).fold(0, |sum, (left, right)| sum | (left ^ right)) == 0
}

impl Hello {
    /// Length of the message in bytes.
    pub const BYTES: usize = 48;

    /// The size to send; `None` until a duration has passed.
    pub fn bytes(&self) -> Option<u64> {
        if let Amount::Bytes(size) = self.amount { Some(size) } else { None }
    }

    /// The message as sent.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = u8::from(self.reverse);
        let (kind, amount) = match self.amount {
            Amount::Nanoseconds(duration) => (0, duration),
            Amount::Bytes(size) => (1, size),
        };
        bytes[5] = kind;
        bytes[8..24].copy_from_slice(&self.token);
        bytes[24..32].copy_from_slice(&amount.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.pacing_bytes_per_second.map_or(0, u64::from).to_be_bytes());
        bytes[40..44].copy_from_slice(&self.flow.to_be_bytes());
        bytes[44..48].copy_from_slice(&self.round.to_be_bytes());
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
        if bytes[4] > 1 || bytes[5] > 1 || bytes[6..8] != [0, 0] {
            return Err(HelloError::Field);
        }
        let long = |place: usize| bytes[place..place + 8].try_into().map_or(0, u64::from_be_bytes);
        let word = |place: usize| bytes[place..place + 4].try_into().map_or(0, u32::from_be_bytes);
        Ok(Self {
            token: received,
            reverse: bytes[4] == 1,
            amount: if bytes[5] == 1 { Amount::Bytes(long(24)) } else { Amount::Nanoseconds(long(24)) },
            pacing_bytes_per_second: NonZeroU64::new(long(32)),
            flow: word(40),
            round: word(44),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_it_wrote(token: Token, reverse: bool, sized: bool, amount: u64, pacing: u64, flow: u32, round: u32) {
            let amount = if sized { Amount::Bytes(amount) } else { Amount::Nanoseconds(amount) };
            let pacing_bytes_per_second = NonZeroU64::new(pacing);
            let hello = Hello { token, reverse, amount, pacing_bytes_per_second, flow, round };
            prop_assert_eq!(Hello::decode(&hello.encode(), &token), Ok(hello));
        }

        #[test]
        fn never_panics_on_noise(noise in proptest::collection::vec(any::<u8>(), Hello::BYTES), token: Token) {
            let noise: [u8; Hello::BYTES] = noise.try_into().expect("the length is fixed");
            let _ = Hello::decode(&noise, &token);
        }
    }

    fn plain() -> [u8; Hello::BYTES] {
        let amount = Amount::Nanoseconds(0);
        Hello { token: [1; 16], reverse: false, amount, pacing_bytes_per_second: None, flow: 0, round: 0 }
            .encode()
    }

    #[test]
    fn refuses_another_token() {
        assert_eq!(Hello::decode(&plain(), &[2; 16]), Err(HelloError::Token));
    }

    #[test]
    fn refuses_the_version_before_by_its_first_bytes() {
        let mut old = plain();
        old[..4].copy_from_slice(b"FGS1");
        assert_eq!(Hello::decode(&old, &[1; 16]), Err(HelloError::Magic));
    }
}
