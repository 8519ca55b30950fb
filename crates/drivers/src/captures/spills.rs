//! Segments that a table has no room for, in files until there is room: each with others whose connections belong together.

use super::rows::cannot_keep;
use framegauge_diagnosis::{Clock, share};
use framegauge_linux::files;
use framegauge_packets::capture::{IcmpNote, Segment};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::net::SocketAddr;

/// Files among which connections are divided.
const FILES: usize = 16;
const BUFFER_BYTES: usize = 1 << 16;
const SEGMENT: u8 = 0;
const NOTE: u8 = 1;
/// Length, kind, tap and time.
const HEAD_BYTES: usize = 2 + 1 + 2 + 8;

/// What is read again.
#[derive(Debug)]
pub(super) enum Spilled {
    /// A segment, with the capture's time.
    Segment(Segment, i64),
    /// An ICMP error, with the capture's time.
    Note(IcmpNote, i64),
}

/// What was written.
#[derive(Debug)]
pub(super) struct Spills {
    files: Vec<Option<BufWriter<File>>>,
    /// Each level divides the connections of a file of the level before.
    level: u64,
    bytes: Vec<u8>,
}

impl Spills {
    pub(super) fn new(level: u64) -> Spills {
        Spills { files: (0..FILES).map(|_| None).collect(), level, bytes: Vec::new() }
    }

    pub(super) fn segment(&mut self, tap: usize, segment: &Segment, clock: Clock) -> Result<(), String> {
        self.begin(SEGMENT, tap, clock.now);
        segment.store(&mut self.bytes);
        self.write(segment.source, segment.destination)
    }

    /// An error about a segment.
    pub(super) fn note(&mut self, tap: usize, note: &IcmpNote, now: i64) -> Result<(), String> {
        let Some(quoted) = note.quoted else { return Ok(()) };
        self.begin(NOTE, tap, now);
        note.store(&mut self.bytes);
        self.write(quoted.source, quoted.destination)
    }

    fn begin(&mut self, kind: u8, tap: usize, now: i64) {
        self.bytes.clear();
        self.bytes.extend([0, 0, kind]);
        self.bytes.extend((tap as u16).to_le_bytes());
        self.bytes.extend(now.to_le_bytes());
    }

    fn write(&mut self, one: SocketAddr, other: SocketAddr) -> Result<(), String> {
        let length = (self.bytes.len() - HEAD_BYTES) as u16;
        self.bytes[..2].copy_from_slice(&length.to_le_bytes());
        // The first division, among threads, is that of salt 0.
        let file = &mut self.files[share(one, other, FILES, self.level + 1)];
        let file = match file {
            Some(file) => file,
            none => {
                let fresh = files::unnamed().map_err(|error| error.to_string())?;
                none.insert(BufWriter::with_capacity(BUFFER_BYTES, fresh))
            }
        };
        file.write_all(&self.bytes).map_err(cannot_keep)
    }

    /// The files that have something, from their begin, with the level of what they are divided into.
    pub(super) fn finish(self) -> Result<Vec<(Again, u64)>, String> {
        let level = self.level + 1;
        self.files.into_iter().flatten().map(|file| Ok((Again::new(file)?, level))).collect()
    }
}

/// A file that is read again.
#[derive(Debug)]
pub(super) struct Again {
    file: BufReader<File>,
    bytes: Vec<u8>,
}

impl Again {
    fn new(file: BufWriter<File>) -> Result<Again, String> {
        let mut file = file.into_inner().map_err(|error| cannot_keep(error.into_error()))?;
        file.rewind().map_err(cannot_keep)?;
        Ok(Again { file: BufReader::with_capacity(BUFFER_BYTES, file), bytes: Vec::new() })
    }

    /// The next, with its tap.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Spilled)>, String> {
        let mut head = [0; HEAD_BYTES];
        match self.file.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(cannot_keep(error)),
        }
        let [low, high, kind, tap_low, tap_high, now @ ..] = head;
        self.bytes.resize(u16::from_le_bytes([low, high]).into(), 0);
        self.file.read_exact(&mut self.bytes).map_err(cannot_keep)?;
        let tap = u16::from_le_bytes([tap_low, tap_high]).into();
        let now = i64::from_le_bytes(now);
        let spilled = match kind {
            SEGMENT => Segment::stored(&self.bytes).map(|segment| Spilled::Segment(segment, now)),
            _ => IcmpNote::stored(&self.bytes).map(|note| Spilled::Note(note, now)),
        };
        Ok(Some((tap, spilled.expect("it was stored whole"))))
    }
}
