//! The one who reads a capture: what every packet is from, before its share looks at it.

use super::shares::Seen;
use super::threads::Batch;
use super::{Source, Taps, open};
use framegauge_diagnosis::{Clock, share};
use framegauge_packets::capture::{Checksums, Decoded, Interface, Reader, Record, Why, decode, ends};
use std::path::Path;

/// What a capture says of itself, and its taps with the stamps of their first segments.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) file: String,
    pub(super) packets: u64,
    pub(super) missed_packets: Option<u64>,
    pub(super) broken: Option<String>,
    pub(super) taps: Vec<(String, Option<i64>)>,
}

/// The taps of a capture with the stamps of their first segments, and its latest stamp.
#[derive(Debug, Default)]
pub(super) struct Places {
    taps: Taps,
    origins: Vec<Option<i64>>,
    latest: i64,
}

impl Places {
    /// Takes note of a packet's stamp.
    pub(super) fn see(&mut self, stamp: i64) {
        // Not so far that differences overflow.
        self.latest = self.latest.max(stamp.clamp(0, i64::MAX / 2));
    }

    /// The tap of a packet, if it is of TCP, of an error, or lacks the end of its headers.
    #[inline]
    pub(super) fn of(
        &mut self,
        decoded: &Decoded,
        interface: u32,
        interfaces: &[Interface],
    ) -> Option<usize> {
        if let Decoded::Other(reason) = decoded
            && *reason != Why::Cut
        {
            return None;
        }
        let tap = self.taps.at(interface, interfaces);
        if self.origins.len() <= tap {
            self.origins.resize(tap + 1, None);
        }
        if let Decoded::Tcp(segment) = decoded {
            self.origins[tap].get_or_insert(segment.nanoseconds);
        }
        Some(tap)
    }

    /// The tap of an interface whose first segment was seen.
    pub(super) fn begun(&self, interface: u32) -> Option<usize> {
        let tap = (*self.taps.of_interface.get(interface as usize)?)?;
        self.origins[tap].map(|_| tap)
    }

    /// The stamps of the taps' first segments so far; 0 where there is none.
    pub(super) fn origins(&self) -> Vec<i64> {
        self.origins.iter().map(|origin| origin.unwrap_or(0)).collect()
    }

    /// The capture's clock at a tap.
    pub(super) fn clock(&self, tap: Option<usize>) -> Clock {
        let origin = tap.and_then(|tap| self.origins[tap]).unwrap_or(0);
        Clock { origin, now: self.latest }
    }

    pub(super) fn finish(self) -> Vec<(String, Option<i64>)> {
        self.taps.names.into_iter().zip(self.origins).collect()
    }
}

/// Which of so many shares has a packet. Those of no connection are the first one's.
#[inline]
pub(super) fn of_share(record: &Record<'_>, shares: usize) -> usize {
    ends(record).map_or(0, |(one, other)| share(one, other, shares, 0))
}

/// A capture that is read.
pub(super) struct Front {
    pub(super) file: String,
    pub(super) reader: Reader<Source>,
    pub(super) places: Places,
    pub(super) packets: u64,
    broken: Option<String>,
}

impl Front {
    pub(super) fn open(path: &Path) -> Result<Front, String> {
        Front::open_to(path, u64::MAX)
    }

    /// What is behind so many bytes is not read.
    pub(super) fn open_to(path: &Path, bytes: u64) -> Result<Front, String> {
        let (file, reader) = open(path, bytes)?;
        Ok(Front { file, reader, places: Places::default(), packets: 0, broken: None })
    }

    /// Reads all packets.
    pub(super) fn read(&mut self, mut take: impl FnMut(&Decoded, Seen)) {
        loop {
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return;
                }
            };
            self.packets += 1;
            let (interface, number) = (record.interface, record.number);
            let (captured_bytes, original_bytes) = (record.captured.len(), record.original_bytes as usize);
            self.places.see(record.nanoseconds);
            // Looked at in its place: a copy would take as long as the decoding.
            let decoded = &decode(&record, Checksums::Verify);
            let tap = self.places.of(decoded, interface, self.reader.interfaces());
            let clock = self.places.clock(tap);
            take(decoded, Seen { tap, number, clock, captured_bytes, original_bytes });
        }
    }

    /// Reads all packets, and gives those of one share of so many.
    pub(super) fn read_share(&mut self, (own, shares): (usize, usize), mut take: impl FnMut(&Decoded, Seen)) {
        loop {
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return;
                }
            };
            self.packets += 1;
            let (interface, number) = (record.interface, record.number);
            self.places.see(record.nanoseconds);
            let is_own = of_share(&record, shares) == own;
            // Of those of others only the first tell which tap they are from.
            if !is_own && self.places.begun(interface).is_some() {
                continue;
            }
            let (captured_bytes, original_bytes) = (record.captured.len(), record.original_bytes as usize);
            let decoded = &decode(&record, Checksums::Verify);
            let tap = self.places.of(decoded, interface, self.reader.interfaces());
            if is_own {
                let clock = self.places.clock(tap);
                take(decoded, Seen { tap, number, clock, captured_bytes, original_bytes });
            }
        }
    }

    /// Fills a batch with packets, each for the share that has its connection. Whether more may follow.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        while batch.has_room() {
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return false,
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return false;
                }
            };
            self.packets += 1;
            self.places.see(record.nanoseconds);
            let interface = record.interface;
            let begun = self.places.begun(interface);
            let place = batch.add(&record, begun, self.places.latest);
            if begun.is_none() {
                let decoded = decode(&record, Checksums::Ignore);
                batch.settle(place, self.places.of(&decoded, interface, self.reader.interfaces()));
            }
        }
        true
    }

    /// What the capture says of itself. An error only if nothing can be read.
    pub(super) fn finish(self) -> Result<Summary, String> {
        if let (0, Some(reason)) = (self.packets, &self.broken) {
            return Err(format!("{}: {reason}", self.file));
        }
        Ok(Summary {
            missed_packets: self.reader.loss().packets(),
            file: self.file,
            packets: self.packets,
            broken: self.broken,
            taps: self.places.finish(),
        })
    }
}
