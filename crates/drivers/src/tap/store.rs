//! Where captured packets are kept: files without a name, of which the oldest is given up when all are full.
//!
//! They hold whole blocks of pcapng that follow each other. What comes before and behind them is written at the end,
//! when it is known.

use framegauge_linux::error::Context;
use framegauge_linux::{OsError, Result, files};
use framegauge_packets::pcapng::{Captured, Section};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};

/// Blocks are gathered up to here, so that few of them cost a system call.
const GATHERED_BYTES: usize = 256 * 1024;
/// What is given up at once: one of so many parts.
const PARTS: u64 = 16;
/// In an Enhanced Packet Block: its length, and the halves of its time.
const BLOCK_LENGTH: usize = 4;
const BLOCK_TIME: usize = 12;
const LEAST_BLOCK_BYTES: usize = 32;

/// What is in a [`Store`], or in the file that it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Packets.
    pub packets: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Older packets that gave way to newer ones.
    pub given_up: u64,
    /// Packets of before the time from which on they were wanted.
    pub cut: u64,
}

struct Part {
    file: File,
    bytes: u64,
    packets: u64,
    last_nanoseconds: u64,
}

/// The newest packets, up to a number of bytes.
pub struct Store {
    section: Section,
    most_bytes: u64,
    parts: VecDeque<Part>,
    gathered: Vec<u8>,
    gathered_packets: u64,
    last_nanoseconds: u64,
    kept: Kept,
}

impl Store {
    /// Of packets of this section. At least a megabyte is kept.
    pub fn new(section: Section, most_bytes: u64) -> Self {
        Self {
            section,
            most_bytes: most_bytes.max(1 << 20),
            parts: VecDeque::new(),
            gathered: Vec::with_capacity(2 * GATHERED_BYTES),
            gathered_packets: 0,
            last_nanoseconds: 0,
            kept: Kept::default(),
        }
    }

    /// What is in it.
    pub fn kept(&self) -> Kept {
        self.kept
    }

    /// Adds a packet; the oldest ones may have to give way.
    pub fn add(&mut self, packet: &Captured<'_>) -> Result<()> {
        let before = self.gathered.len();
        self.section
            .packet(&mut self.gathered, packet)
            .map_err(|error| failed(std::io::Error::other(error)))?;
        self.gathered_packets += 1;
        self.last_nanoseconds = self.last_nanoseconds.max(packet.time_nanoseconds);
        self.kept.packets += 1;
        self.kept.bytes += (self.gathered.len() - before) as u64;
        if self.gathered.len() >= GATHERED_BYTES { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let part_bytes = self.most_bytes / PARTS;
        if self.parts.back().is_none_or(|part| part.bytes >= part_bytes) {
            let file = files::unnamed()?;
            self.parts.push_back(Part { file, bytes: 0, packets: 0, last_nanoseconds: 0 });
        }
        if let Some(part) = self.parts.back_mut() {
            part.file.write_all(&self.gathered).during("write a capture")?;
            part.bytes += self.gathered.len() as u64;
            part.packets += self.gathered_packets;
            part.last_nanoseconds = self.last_nanoseconds;
        }
        self.gathered.clear();
        self.gathered_packets = 0;
        while self.kept.bytes > self.most_bytes && self.parts.len() > 1 {
            self.give_up_oldest(|totals, packets| totals.given_up += packets);
        }
        Ok(())
    }

    fn give_up_oldest(&mut self, note: impl FnOnce(&mut Kept, u64)) {
        if let Some(part) = self.parts.pop_front() {
            self.kept.packets -= part.packets;
            self.kept.bytes -= part.bytes;
            note(&mut self.kept, part.packets);
        }
    }

    /// One file of `head`, the packets from this time on, and what `tail` makes of what is kept. It never takes more
    /// than one part in addition to what is kept already.
    pub fn finish(
        mut self,
        from_nanoseconds: u64,
        head: &[u8],
        tail: impl FnOnce(&Kept) -> Vec<u8>,
    ) -> Result<(File, Kept)> {
        self.write_out()?;
        while self.parts.front().is_some_and(|part| part.last_nanoseconds < from_nanoseconds) {
            self.give_up_oldest(|totals, packets| totals.cut += packets);
        }
        let mut whole = files::unnamed()?;
        whole.write_all(head).during("write a capture")?;
        let mut is_first = true;
        while let Some(mut part) = self.parts.pop_front() {
            part.file.rewind().during("read a capture")?;
            if is_first && from_nanoseconds > 0 {
                let mut bytes = Vec::with_capacity(part.bytes as usize);
                part.file.read_to_end(&mut bytes).during("read a capture")?;
                let (place, packets) = until(&bytes, from_nanoseconds);
                self.kept.cut += packets;
                self.kept.packets -= packets;
                self.kept.bytes -= place as u64;
                whole.write_all(&bytes[place..]).during("write a capture")?;
            } else {
                std::io::copy(&mut part.file, &mut whole).during("write a capture")?;
            }
            is_first = false;
        }
        whole.write_all(&tail(&self.kept)).during("write a capture")?;
        Ok((whole, self.kept))
    }
}

/// How many bytes of these blocks, and how many packets, come before the first one that is not older.
fn until(blocks: &[u8], from_nanoseconds: u64) -> (usize, u64) {
    let word = |place: usize| -> Option<u32> {
        Some(u32::from_le_bytes(blocks.get(place..place + 4)?.try_into().ok()?))
    };
    let (mut place, mut packets) = (0, 0);
    while let (Some(length), Some(high), Some(low)) =
        (word(place + BLOCK_LENGTH), word(place + BLOCK_TIME), word(place + BLOCK_TIME + 4))
    {
        let time = u64::from(high) << 32 | u64::from(low);
        if time >= from_nanoseconds || (length as usize) < LEAST_BLOCK_BYTES {
            break;
        }
        place += length as usize;
        packets += 1;
    }
    (place.min(blocks.len()), packets)
}

fn failed(source: std::io::Error) -> OsError {
    OsError { operation: "write a capture".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_packets::capture::Reader;

    fn numbers(store: Store, head: &[u8], from: u64) -> (Vec<u64>, Kept) {
        let (mut file, totals) = store.finish(from, head, |_| Vec::new()).expect("a file");
        file.rewind().expect("a file");
        let mut reader = Reader::new(file).expect("a capture");
        let mut numbers = Vec::new();
        while let Ok(Some(packet)) = reader.next() {
            numbers.push(u64::from_be_bytes(packet.captured[..8].try_into().expect("a number")));
        }
        (numbers, totals)
    }

    fn filled(most_bytes: u64, packets: u64) -> (Store, Vec<u8>) {
        let mut head = Vec::new();
        let mut section = Section::begin(&mut head);
        section.interface(&mut head, "eth0", 200);
        let mut store = Store::new(section, most_bytes);
        for number in 0..packets {
            let mut bytes = [0; 200];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let packet = Captured {
                interface: 0,
                time_nanoseconds: 1_000 * number,
                original_bytes: 1500,
                bytes: &bytes,
                direction: None,
                comment: None,
            };
            store.add(&packet).expect("room");
        }
        (store, head)
    }

    #[test]
    fn the_newest_packets_are_kept_within_the_bound() {
        let (store, head) = filled(1 << 20, 50_000);
        let (numbers, totals) = numbers(store, &head, 0);
        assert_eq!(totals.packets, numbers.len() as u64);
        assert_eq!(totals.packets + totals.given_up, 50_000);
        assert!(totals.bytes <= 1 << 20 && totals.bytes > 1 << 19, "{totals:?}");
        assert_eq!(numbers, (50_000 - totals.packets..50_000).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_older_than_asked_for_is_cut() {
        for from in [0, 1, 12_345, 39_999] {
            let (store, head) = filled(1 << 30, 40_000);
            let (numbers, totals) = numbers(store, &head, 1_000 * from);
            assert_eq!((totals.cut, totals.packets), (from, 40_000 - from));
            assert_eq!(numbers, (from..40_000).collect::<Vec<_>>());
        }
        let (store, head) = filled(1 << 30, 1_000);
        assert!(numbers(store, &head, 1_000_000).0.is_empty());
    }
}
