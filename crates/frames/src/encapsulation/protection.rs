//! Ciphers and check values of ESP, AH and OpenVPN: what each adds, with its source.

use super::headers::{Part, part};

/// A check value by HMAC, truncated as its RFC says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hmac {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-1-96.
    Sha1,
    /// HMAC-SHA-256-128.
    Sha256,
    /// HMAC-SHA-384-192.
    Sha384,
    /// HMAC-SHA-512-256.
    Sha512,
}

impl Hmac {
    /// All, as people write them.
    pub(super) const WORDS: [(&str, Hmac); 5] = [
        ("md5", Hmac::Md5),
        ("sha1", Hmac::Sha1),
        ("sha256", Hmac::Sha256),
        ("sha384", Hmac::Sha384),
        ("sha512", Hmac::Sha512),
    ];

    /// As IPsec sends it: the first half of the hash or less.
    pub(super) fn truncated(self) -> Part {
        match self {
            Self::Md5 => part("ICV", 12, "RFC 2403 section 3"),
            Self::Sha1 => part("ICV", 12, "RFC 2404 section 3"),
            Self::Sha256 => part("ICV", 16, "RFC 4868 section 2.6"),
            Self::Sha384 => part("ICV", 24, "RFC 4868 section 2.6"),
            Self::Sha512 => part("ICV", 32, "RFC 4868 section 2.6"),
        }
    }

    /// As OpenVPN sends it: the whole hash.
    fn whole(self) -> Part {
        let bytes = match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        };
        part("HMAC", bytes, "OpenVPN crypto.h: data channel crypto format")
    }

    pub(super) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, hmac)| *hmac == self).map_or("", |(word, _)| *word)
    }
}

/// A cipher of ESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EspCipher {
    /// AES-GCM with a check value of 8, 12 or 16 bytes.
    AesGcm {
        /// Its length.
        icv_bytes: u8,
    },
    /// ChaCha20-Poly1305.
    ChaCha20,
    /// AES-CBC.
    AesCbc,
    /// Triple DES-CBC.
    TripleDes,
    /// AES-CTR.
    AesCtr,
    /// No encryption.
    Null,
}

impl EspCipher {
    /// All, as people write them.
    pub(super) const WORDS: [(&str, EspCipher); 8] = [
        ("aes-gcm", EspCipher::AesGcm { icv_bytes: 16 }),
        ("aes-gcm-12", EspCipher::AesGcm { icv_bytes: 12 }),
        ("aes-gcm-8", EspCipher::AesGcm { icv_bytes: 8 }),
        ("chacha20", EspCipher::ChaCha20),
        ("aes-cbc", EspCipher::AesCbc),
        ("3des-cbc", EspCipher::TripleDes),
        ("aes-ctr", EspCipher::AesCtr),
        ("null", EspCipher::Null),
    ];

    /// Whether it authenticates by itself, so that no HMAC comes with it.
    pub(super) const fn authenticates(self) -> bool {
        matches!(self, Self::AesGcm { .. } | Self::ChaCha20)
    }

    fn initialisation_vector(self) -> Option<Part> {
        let (bytes, source) = match self {
            Self::AesGcm { .. } => (8, "RFC 4106 section 3.1"),
            Self::ChaCha20 => (8, "RFC 7634 section 2"),
            Self::AesCbc => (16, "RFC 3602 section 3"),
            Self::TripleDes => (8, "RFC 2451 section 3"),
            Self::AesCtr => (8, "RFC 3686 section 3.1"),
            Self::Null => return None,
        };
        Some(part("initialisation vector", bytes, source))
    }

    /// Ciphertext ends on a block of the cipher, and on 4 bytes at least (RFC 4303 section 2.4).
    pub(super) const fn alignment_bytes(self) -> u32 {
        match self {
            Self::AesCbc => 16,
            Self::TripleDes => 8,
            Self::AesGcm { .. } | Self::ChaCha20 | Self::AesCtr | Self::Null => 4,
        }
    }

    pub(super) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, cipher)| *cipher == self).map_or("", |(word, _)| *word)
    }
}

/// How ESP protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EspSuite {
    /// The cipher.
    pub cipher: EspCipher,
    /// The check value of ciphers that do not authenticate; unused with the others.
    pub hmac: Hmac,
}

impl Default for EspSuite {
    fn default() -> Self {
        Self { cipher: EspCipher::AesGcm { icv_bytes: 16 }, hmac: Hmac::Sha256 }
    }
}

impl EspSuite {
    /// What it adds to a packet, without padding.
    pub(super) fn parts(self) -> Vec<Part> {
        let mut parts = vec![part("ESP header", 8, "RFC 4303 section 2")];
        parts.extend(self.cipher.initialisation_vector());
        parts.push(part("ESP trailer", 2, "RFC 4303 section 2"));
        parts.push(match self.cipher {
            EspCipher::AesGcm { icv_bytes } => part("ICV", u32::from(icv_bytes), "RFC 4106 section 6"),
            EspCipher::ChaCha20 => part("ICV", 16, "RFC 7634 section 2"),
            _ => self.hmac.truncated(),
        });
        parts
    }

    /// The words that are not understood without being said.
    pub(super) fn words(self) -> Vec<(&'static str, bool)> {
        let usual = self.cipher == EspSuite::default().cipher;
        vec![(self.cipher.word(), !usual), (self.hmac.word(), !self.cipher.authenticates())]
    }
}

/// How OpenVPN protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenVpnSuite {
    /// AES-GCM or ChaCha20-Poly1305.
    Aead,
    /// A block cipher of 16 bytes in CBC mode, and an HMAC.
    Cbc(Hmac),
}

impl OpenVpnSuite {
    /// What comes before and behind the data, without padding.
    pub(super) fn parts(self) -> Vec<Part> {
        const FORMAT: &str = "OpenVPN crypto.h: data channel crypto format";
        let mut parts = vec![part("opcode and peer ID", 4, "OpenVPN ssl_pkt.h: P_DATA_V2")];
        match self {
            Self::Aead => {
                parts.push(part("packet ID", 4, FORMAT));
                parts.push(part("authentication tag", 16, FORMAT));
            }
            Self::Cbc(hmac) => {
                parts.push(hmac.whole());
                parts.push(part("initialisation vector", 16, FORMAT));
                parts.push(part("packet ID", 4, FORMAT));
                parts.push(part("padding, at least", 1, "RFC 5652 section 6.3"));
            }
        }
        parts
    }
}
