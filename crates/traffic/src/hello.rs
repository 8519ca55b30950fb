//! The first bytes on every data connection: who may talk, which way the bytes go and how many.

/// Bytes in a token.
pub const TOKEN_BYTES: usize = 16;

/// The secret that the controller gave to both ends.
pub type Token = [u8; TOKEN_BYTES];

const MAGIC: [u8; 4] = *b"FGS1";

/// The client's opening message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The secret.
    pub token: Token,
    /// The serving end sends, instead of the client.
    pub reverse: bool,
    /// Bytes to send; `None` until the duration has passed.
    pub bytes: Option<u64>,
    /// Nanoseconds to send for, where the serving end sends without a size.
    pub duration_nanoseconds: u64,
    /// Which flow of its round this is.
    pub flow: u32,
    /// Which round.
    pub round: u32,
}

/// Why an opening message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelloError {
    /// It does not begin with `FGS1`.
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

impl Hello {
    /// Length of the message in bytes.
    pub const BYTES: usize = 48;

    /// The message as sent.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = u8::from(self.reverse);
        bytes[5] = u8::from(self.bytes.is_some());
        bytes[8..24].copy_from_slice(&self.token);
        bytes[24..32].copy_from_slice(&self.bytes.unwrap_or(0).to_be_bytes());
        bytes[32..40].copy_from_slice(&self.duration_nanoseconds.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.flow.to_be_bytes());
        bytes[44..48].copy_from_slice(&self.round.to_be_bytes());
        bytes
    }

    /// Reads a message and checks its token, in time that does not depend on the token.
    pub fn decode(bytes: &[u8; Self::BYTES], token: &Token) -> Result<Self, HelloError> {
        if bytes[0..4] != MAGIC {
            return Err(HelloError::Magic);
        }
        let mut found = [0; TOKEN_BYTES];
        found.copy_from_slice(&bytes[8..24]);
        let difference = found.iter().zip(token).fold(0, |sum, (left, right)| sum | (left ^ right));
        if difference != 0 {
            return Err(HelloError::Token);
        }
        if bytes[4] > 1 || bytes[5] > 1 || bytes[6..8] != [0, 0] {
            return Err(HelloError::Field);
        }
        let long = |place: usize| bytes[place..place + 8].try_into().map_or(0, u64::from_be_bytes);
        let word = |place: usize| bytes[place..place + 4].try_into().map_or(0, u32::from_be_bytes);
        Ok(Self {
            token: found,
            reverse: bytes[4] == 1,
            bytes: (bytes[5] == 1).then(|| long(24)),
            duration_nanoseconds: long(32),
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
        fn reads_what_it_wrote(token: Token, reverse: bool, bytes: Option<u64>, duration: u64, flow: u32, round: u32) {
            let hello = Hello { token, reverse, bytes, duration_nanoseconds: duration, flow, round };
            prop_assert_eq!(Hello::decode(&hello.encode(), &token), Ok(hello));
        }

        #[test]
        fn never_panics_on_noise(noise in proptest::collection::vec(any::<u8>(), Hello::BYTES), token: Token) {
            let noise: [u8; Hello::BYTES] = noise.try_into().expect("the length is fixed");
            let _ = Hello::decode(&noise, &token);
        }
    }

    #[test]
    fn refuses_another_token() {
        let hello =
            Hello { token: [1; 16], reverse: false, bytes: None, duration_nanoseconds: 0, flow: 0, round: 0 };
        assert_eq!(Hello::decode(&hello.encode(), &[2; 16]), Err(HelloError::Token));
    }
}
