//! Captures of other programs, and the packets in them.

use framegauge_packets::capture::{
    CaptureError, Checksums, Decoded, IcmpNote, LinkType, Reader, Record, Segment, decode, ends,
};
use std::io::{Error, ErrorKind, Read};

/// Gives so many bytes at a time, and is interrupted before each.
struct Dribble<'a> {
    rest: &'a [u8],
    step: usize,
    is_interrupted: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(Error::from(ErrorKind::Interrupted));
        }
        let step = self.step.min(out.len());
        self.rest.read(&mut out[..step])
    }
}

/// What was read: of every packet its time, interface, bytes and original length, then how it ended.
type Found = (Vec<(i64, u32, Vec<u8>, u32)>, Option<CaptureError>);

fn read(input: impl Read, length: usize) -> Found {
    let mut packets = Vec::new();
    let mut reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => return (packets, Some(error)),
    };
    let error = loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.number, packets.len() as u64 + 1);
                assert!(record.captured.len() <= record.original_bytes as usize);
                let _ = decode(&record, Checksums::Verify);
                let Record { nanoseconds, interface, captured, original_bytes, .. } = record;
                packets.push((nanoseconds, interface, captured.to_vec(), original_bytes));
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(error.is_none_or(|error| error.offset <= length as u64));
    assert_eq!(reader.next(), Ok(None), "the end is the end");
    assert!(packets.iter().all(|packet| (packet.1 as usize) < reader.interfaces().len()));
    assert!(reader.untimed_packets() <= packets.len() as u64);
    assert!(reader.loss().packets() >= reader.loss().before_packets);
    (packets, error)
}

/// A capture: the same is read of it however its bytes come, and no more than it holds.
pub fn capture_reader(bytes: &[u8]) {
    let outcome = read(bytes, bytes.len());
    assert!(outcome.0.iter().map(|packet| packet.2.len()).sum::<usize>() <= bytes.len());
    for step in [1, 13] {
        assert_eq!(read(Dribble { rest: bytes, step, is_interrupted: false }, bytes.len()), outcome);
    }
}

const LINKS: [LinkType; 14] = [
    LinkType::Ethernet,
    LinkType::Ip,
    LinkType::LinuxCooked,
    LinkType::LinuxCooked2,
    LinkType::Loopback,
    LinkType::Ppp,
    LinkType::PppEther,
    LinkType::CiscoHdlc,
    LinkType::Wireless,
    LinkType::Radiotap,
    LinkType::PerPacket,
    LinkType::FrameRelay,
    LinkType::Fddi,
    LinkType::Nflog,
];

/// Link type and two bytes of length that was not captured, then a packet: what is found does not change with bytes that
/// are cut from its end, as long as it is found.
pub fn capture_decode(bytes: &[u8]) {
    let Some((&[link, high, low], captured)) = bytes.split_first_chunk() else { return };
    let more = u32::from(u16::from_be_bytes([high, low]));
    let record = |captured| Record {
        number: 1,
        nanoseconds: 2,
        link: LINKS[usize::from(link) % LINKS.len()],
        interface: 0,
        captured,
        original_bytes: bytes.len() as u32 + more,
    };
    let whole = decode(&record(captured), Checksums::Verify);
    if let Decoded::Tcp(segment) = whole {
        assert!(segment.payload_bytes < segment.ip_bytes);
        assert_eq!((segment.nanoseconds, segment.number), (2, 1));
        let _ = segment.sack.as_slice();
    }
    match whole {
        Decoded::Tcp(segment) => {
            let mut stored = Vec::new();
            segment.store(&mut stored);
            assert_eq!(Segment::stored(&stored), Some(segment));
            assert_eq!(ends(&record(captured)), Some((segment.source, segment.destination)));
        }
        Decoded::Icmp(note) => {
            let mut stored = Vec::new();
            note.store(&mut stored);
            assert_eq!(IcmpNote::stored(&stored), Some(note));
            let quoted = note.quoted.map(|quoted| (quoted.source, quoted.destination));
            assert_eq!(ends(&record(captured)), quoted);
        }
        Decoded::Other(_) => {}
    }
    if let Decoded::Icmp(note) = whole {
        assert!(note.mtu.is_none() || note.is_too_big());
    }
    for length in 0..captured.len() {
        match (whole, decode(&record(&captured[..length]), Checksums::Ignore)) {
            (Decoded::Tcp(whole), Decoded::Tcp(cut)) => assert_eq!(certain(&cut), certain(&whole)),
            (Decoded::Icmp(whole), Decoded::Icmp(cut)) => {
                assert_eq!((cut.kind, cut.code, cut.mtu), (whole.kind, whole.code, whole.mtu));
            }
            (whole, Decoded::Tcp(_) | Decoded::Icmp(_)) => panic!("{whole:?} with {length} bytes of it"),
            _ => {}
        }
    }
}

/// All but what depends on bytes behind the first twenty of the TCP header.
fn certain(segment: &Segment) -> Segment {
    Segment {
        timestamps: None,
        sack: Default::default(),
        syn: None,
        multipath: false,
        fast_open: false,
        checksum_is_right: None,
        options_are_cut: false,
        ..*segment
    }
}
