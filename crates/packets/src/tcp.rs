//! A view of a TCP header.

use crate::ParseError;
use crate::error::{Layer, LengthSource, require};

pub(crate) const TCP_MINIMUM_BYTES: usize = 20;

/// The eight flag bits of a TCP header (RFC 9293 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Hand over to the application at once.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number counts.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// The urgent pointer counts.
    pub const URG: TcpFlags = TcpFlags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// Whether all of these bits are set.
    pub const fn contains(self, bits: TcpFlags) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// These bits added.
    pub const fn with(self, bits: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | bits.0)
    }

    /// These bits taken away.
    pub const fn without(self, bits: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !bits.0)
    }
}

/// What the ends of a connection tell each other in its SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SynOptions {
    /// MSS as announced, in bytes (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Timestamps are offered (RFC 7323).
    pub timestamps: bool,
    /// Window scale shift (RFC 7323).
    pub window_scale: Option<u8>,
    /// Selective acknowledgement is offered (RFC 2018).
    pub sack_permitted: bool,
}

impl SynOptions {
    /// Takes an option, if it is one of these and as long as it should be.
    pub(crate) fn read(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (3, &[shift]) => self.window_scale = Some(shift),
            (4, []) => self.sack_permitted = true,
            (8, values) if values.len() == 8 => self.timestamps = true,
            _ => {}
        }
    }
}

/// A TCP header, its options and its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView<'a> {
    /// From the first header byte to the end of the payload; at least `header_bytes` long.
    segment: &'a [u8],
    header_bytes: usize,
}

impl<'a> TcpView<'a> {
    /// `segment` ends where the IP packet ends.
    pub(crate) fn new(segment: &'a [u8], length_source: LengthSource) -> Result<TcpView<'a>, ParseError> {
        require(Layer::Tcp, TCP_MINIMUM_BYTES, segment.len(), length_source)?;
        let header_bytes = usize::from(segment[12] >> 4) * 4;
        if header_bytes < TCP_MINIMUM_BYTES {
            let words = u32::from(segment[12] >> 4);
            return Err(ParseError::Value {
                layer: Layer::Tcp,
                field: "data offset",
                found: words,
                expected: "5 to 15",
            });
        }
        require(Layer::Tcp, header_bytes, segment.len(), length_source)?;
        Ok(TcpView { segment, header_bytes })
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.segment[at], self.segment[at + 1]])
    }

    fn long(&self, at: usize) -> u32 {
        u32::from(self.word(at)) << 16 | u32::from(self.word(at + 2))
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        self.word(0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        self.word(2)
    }

    /// Sequence number of the first payload byte (of the SYN or FIN if there is none).
    pub fn seq(&self) -> u32 {
        self.long(4)
    }

    /// Acknowledgement number; counts only with [`TcpFlags::ACK`].
    pub fn ack(&self) -> u32 {
        self.long(8)
    }

    /// The flag bits.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.segment[13])
    }

    /// Receive window as sent, before scaling.
    pub fn window(&self) -> u16 {
        self.word(14)
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        self.word(16)
    }

    /// Bytes of the header with its options.
    pub fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        &self.segment[self.header_bytes..]
    }

    /// The options that SYNs carry; a malformed option ends the list (RFC 9293 section 3.1).
    pub fn options(&self) -> SynOptions {
        let mut options = SynOptions::default();
        for (kind, value) in Options::new(&self.segment[TCP_MINIMUM_BYTES..self.header_bytes]) {
            options.read(kind, value);
        }
        options
    }
}

/// Kind and value of every option of a TCP header, without those that only pad; a malformed one ends the list.
#[derive(Debug, Clone)]
pub(crate) struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    pub(crate) fn new(options: &'a [u8]) -> Options<'a> {
        Options { rest: options }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.rest {
                [1, ref rest @ ..] => self.rest = rest,
                [kind, length, ..] if kind != 0 && length >= 2 => {
                    let (option, rest) = self.rest.split_at_checked(usize::from(length))?;
                    self.rest = rest;
                    return Some((kind, &option[2..]));
                }
                _ => return None,
            }
        }
    }
}
