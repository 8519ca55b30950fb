//! The one who reads a capture: what every packet is from, before its share looks at it.

use super::division::Division;
use super::shares::Seen;
use super::threads::Batch;
use super::{MOST_TAPS, Source, Taps, open};
use framegauge_diagnosis::{Clock, Finding, Righted, Stamps, Step, Witness};
use framegauge_packets::capture::{
    Checksums, Decoded, Fragment, Interface, Reader, Reassembly, Record, Segment, Why, decode, outline,
};
use std::path::Path;

/// What a capture says of itself, and its taps with the stamps of their first segments.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) file: String,
    pub(super) packets: u64,
    pub(super) missed_packets: Option<u64>,
    pub(super) broken: Option<String>,
    pub(super) taps: Vec<(String, Option<i64>)>,
    clocks: Clocks,
}

/// Where the clocks of a file were set, by the numbers of its interfaces.
pub(super) type Steps = Vec<Vec<Step>>;

impl Summary {
    /// Where clocks were set, by what connections of each tap say; once it is known, nothing more.
    pub(super) fn steps<'a>(&self, witnesses: impl Fn(usize) -> Vec<&'a [Witness]>) -> Option<Steps> {
        if !self.clocks.righted.is_empty() {
            return None;
        }
        let of = |(number, stamps): (usize, &Stamps)| {
            let tap = self.clocks.taps.get(number).copied().flatten();
            tap.map_or(Vec::new(), |tap| stamps.steps(&witnesses(tap).concat()))
        };
        let steps: Steps = self.clocks.seen.iter().enumerate().map(of).collect();
        steps.iter().any(|of| !of.is_empty()).then_some(steps)
    }

    /// What is told of the clock of a tap.
    pub(super) fn told(&self, tap: usize) -> Option<Finding> {
        let origin = self.taps[tap].1?;
        let is_of = |(number, _): &(usize, &Righted)| self.clocks.taps.get(*number) == Some(&Some(tap));
        let mut righted = self.clocks.righted.iter().enumerate().filter(is_of);
        righted.find_map(|(_, clock)| clock.finding(origin))
    }
}

/// The clocks of a capture, by the numbers of its interfaces: what their stamps say, or what these are without their steps.
#[derive(Debug, Default)]
struct Clocks {
    seen: Vec<Stamps>,
    righted: Vec<Righted>,
    taps: Vec<Option<usize>>,
}

impl Clocks {
    /// The stamp of a packet as if no clock had been set, as far as that is known.
    #[inline]
    fn right(&mut self, record: &Record<'_>) -> i64 {
        let (number, stamp) = (record.interface as usize, record.nanoseconds);
        if let Some(clock) = self.righted.get_mut(number) {
            return clock.right(record.number, stamp);
        }
        match self.seen.get_mut(number) {
            Some(clock) => clock.see(record.number, stamp),
            None => self.open(number),
        }
        stamp
    }

    #[cold]
    fn open(&mut self, number: usize) {
        if number < MOST_TAPS && self.righted.is_empty() {
            self.seen.resize_with(number + 1, Stamps::default);
        }
    }
}

/// The taps of a capture with the stamps of their first segments, and its latest stamp.
#[derive(Debug, Default)]
pub(super) struct Places {
    taps: Taps,
    origins: Vec<Option<i64>>,
    latest: i64,
    clocks: Clocks,
}

impl Places {
    /// Takes note of a packet's stamp, and rights it.
    pub(super) fn see(&mut self, record: &mut Record<'_>) {
        record.nanoseconds = self.clocks.right(record);
        // Not so far that differences overflow.
        self.latest = self.latest.max(record.nanoseconds.clamp(0, i64::MAX / 2));
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

    fn finish(mut self) -> (Vec<(String, Option<i64>)>, Clocks) {
        self.clocks.taps = self.taps.of_interface;
        (self.taps.names.into_iter().zip(self.origins).collect(), self.clocks)
    }
}

/// What a packet is a fragment of, if it is one that was decoded.
#[inline]
fn fragment_of(decoded: &Decoded, record: &Record<'_>) -> Option<Fragment> {
    match decoded {
        Decoded::Tcp(segment) if segment.fragments.is_some() => outline(record).fragment,
        Decoded::Other(Why::Fragment) => outline(record).fragment,
        _ => None,
    }
}

/// The next segment that waits for no fragment any more.
fn next_ready(parts: &mut Reassembly<Seen>, places: &Places) -> Option<(Segment, Seen)> {
    let (segment, seen) = parts.next_ready()?;
    // The other fragments were cut by the capture's length as the first one was, if at all.
    let first_bytes = segment.fragments.map_or(segment.ip_bytes, |fragments| fragments.first_bytes.into());
    let more = segment.ip_bytes.saturating_sub(first_bytes) as usize;
    let (captured_bytes, original_bytes) = (seen.captured_bytes + more, seen.original_bytes + more);
    Some((segment, Seen { clock: places.clock(seen.tap), captured_bytes, original_bytes, ..seen }))
}

/// Adds all such to a batch.
fn add_ready(parts: &mut Reassembly<Seen>, places: &Places, division: &mut Division, batch: &mut Batch) {
    while let Some((segment, seen)) = next_ready(parts, places) {
        batch.add_whole(division.take(Some((segment.source, segment.destination))), segment, seen);
    }
}

/// A capture that is read.
pub(super) struct Front {
    pub(super) file: String,
    pub(super) reader: Reader<Source>,
    pub(super) places: Places,
    pub(super) packets: u64,
    broken: Option<String>,
    /// Segments of which IP fragments are missing so far.
    parts: Reassembly<Seen>,
    division: Division,
}

impl Front {
    pub(super) fn open(path: &Path, steps: Option<&Steps>) -> Result<Front, String> {
        Front::open_to(path, u64::MAX, steps)
    }

    /// What is behind so many bytes is not read.
    /// `steps`: where its clocks were set, if that is known.
    pub(super) fn open_to(path: &Path, bytes: u64, steps: Option<&Steps>) -> Result<Front, String> {
        let (file, reader) = open(path, bytes)?;
        let righted = steps.into_iter().flatten().cloned().map(Righted::new).collect();
        let clocks = Clocks { righted, ..Clocks::default() };
        Ok(Front {
            file,
            reader,
            places: Places { clocks, ..Places::default() },
            packets: 0,
            broken: None,
            parts: Reassembly::default(),
            division: Division::among(1),
        })
    }

    /// Its packets are for so many shares.
    pub(super) fn divided(self, shares: usize) -> Front {
        Front { division: Division::among(shares), ..self }
    }

    /// Reads all packets.
    pub(super) fn read(&mut self, mut take: impl FnMut(&Decoded, Seen)) {
        loop {
            let mut record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return self.end_parts(&mut take),
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return self.end_parts(&mut take);
                }
            };
            self.packets += 1;
            self.places.see(&mut record);
            let (interface, number, at) = (record.interface, record.number, record.nanoseconds);
            let (captured_bytes, original_bytes) = (record.captured.len(), record.original_bytes as usize);
            // Looked at in its place: a copy would take as long as the decoding.
            let decoded = &decode(&record, Checksums::Verify);
            let part = fragment_of(decoded, &record);
            let tap = self.places.of(decoded, interface, self.reader.interfaces());
            let clock = self.places.clock(tap);
            let seen = Seen { tap, number, clock, captured_bytes, original_bytes };
            if part.is_none() && !self.parts.waits() {
                take(decoded, seen);
            } else {
                self.rejoin(decoded, seen, part, (interface, at), &mut take);
            }
        }
    }

    /// Reads all packets, and gives those of one share.
    pub(super) fn read_share(&mut self, own: usize, mut take: impl FnMut(&Decoded, Seen)) {
        loop {
            let mut record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return self.end_parts(&mut take),
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return self.end_parts(&mut take);
                }
            };
            self.packets += 1;
            self.places.see(&mut record);
            let (interface, number, at) = (record.interface, record.number, record.nanoseconds);
            let outline = outline(&record);
            let is_own = self.division.take(outline.ends) == own;
            // Of a segment that is its own a fragment without ports tells nothing.
            if !is_own && let Some(part) = outline.fragment.filter(|_| outline.ends.is_none()) {
                self.parts.take(&part, interface, None, at);
                while let Some((segment, seen)) = next_ready(&mut self.parts, &self.places) {
                    take(&Decoded::Tcp(segment), seen);
                }
            }
            // Of those of others only the first tell which tap they are from.
            if !is_own && self.places.begun(interface).is_some() {
                continue;
            }
            let (captured_bytes, original_bytes) = (record.captured.len(), record.original_bytes as usize);
            let decoded = &decode(&record, Checksums::Verify);
            let tap = self.places.of(decoded, interface, self.reader.interfaces());
            if is_own {
                let clock = self.places.clock(tap);
                let seen = Seen { tap, number, clock, captured_bytes, original_bytes };
                if outline.fragment.is_none() && !self.parts.waits() {
                    take(decoded, seen);
                } else {
                    self.rejoin(decoded, seen, outline.fragment, (interface, at), &mut take);
                }
            }
        }
    }

    /// Takes a packet that is a fragment, or comes while segments wait for theirs: gives what waits no more, and the packet
    /// itself unless it begins a segment, which waits then.
    #[cold]
    fn rejoin(
        &mut self,
        decoded: &Decoded,
        seen: Seen,
        part: Option<Fragment>,
        (interface, at): (u32, i64),
        take: &mut impl FnMut(&Decoded, Seen),
    ) {
        let begins = match (decoded, part) {
            (Decoded::Tcp(segment), Some(part)) => {
                self.parts.take(&part, interface, Some((*segment, seen)), at);
                true
            }
            (_, Some(part)) => {
                self.parts.take(&part, interface, None, at);
                false
            }
            (Decoded::Tcp(segment), None) => {
                self.parts.pass(segment, interface);
                false
            }
            (_, None) => false,
        };
        self.give_ready(take);
        if !begins {
            take(decoded, seen);
        }
    }

    fn give_ready(&mut self, take: &mut impl FnMut(&Decoded, Seen)) {
        while let Some((segment, seen)) = next_ready(&mut self.parts, &self.places) {
            take(&Decoded::Tcp(segment), seen);
        }
    }

    fn end_parts(&mut self, take: &mut impl FnMut(&Decoded, Seen)) {
        self.parts.finish();
        self.give_ready(take);
    }

    /// Fills a batch with packets, each for the share that has its connection. Whether more may follow.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> bool {
        batch.clear();
        while batch.has_room() {
            let mut record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return self.end_filling(batch),
                Err(error) => {
                    self.broken = Some(error.to_string());
                    return self.end_filling(batch);
                }
            };
            self.packets += 1;
            self.places.see(&mut record);
            let (interface, number, at) = (record.interface, record.number, record.nanoseconds);
            let outline = outline(&record);
            let is_concerned = outline.fragment.is_some() || self.parts.waits();
            let decoded = is_concerned.then(|| decode(&record, Checksums::Ignore));
            match (decoded, outline.fragment) {
                (Some(Decoded::Tcp(segment)), Some(part)) => {
                    // It begins a segment, and waits for the rest of it.
                    let (captured_bytes, original_bytes) =
                        (record.captured.len(), record.original_bytes as usize);
                    let tap = self.places.of(&Decoded::Tcp(segment), interface, self.reader.interfaces());
                    let clock = self.places.clock(tap);
                    let seen = Seen { tap, number, clock, captured_bytes, original_bytes };
                    self.parts.take(&part, interface, Some((segment, seen)), at);
                    add_ready(&mut self.parts, &self.places, &mut self.division, batch);
                    continue;
                }
                (_, Some(part)) => self.parts.take(&part, interface, None, at),
                (Some(Decoded::Tcp(segment)), None) => self.parts.pass(&segment, interface),
                _ => {}
            }
            add_ready(&mut self.parts, &self.places, &mut self.division, batch);
            let begun = self.places.begun(interface);
            let own = self.division.take(outline.ends);
            let place = batch.add(&record, own, begun, self.places.latest);
            if begun.is_none() {
                let decoded = decode(&record, Checksums::Ignore);
                batch.settle(place, self.places.of(&decoded, interface, self.reader.interfaces()));
            }
        }
        true
    }

    /// Nothing more follows.
    fn end_filling(&mut self, batch: &mut Batch) -> bool {
        self.parts.finish();
        add_ready(&mut self.parts, &self.places, &mut self.division, batch);
        false
    }

    /// What the capture says of itself. An error only if nothing can be read.
    pub(super) fn finish(self) -> Result<Summary, String> {
        if let (0, Some(reason)) = (self.packets, &self.broken) {
            return Err(format!("{}: {reason}", self.file));
        }
        let (taps, clocks) = self.places.finish();
        Ok(Summary {
            missed_packets: self.reader.loss().packets(),
            file: self.file,
            packets: self.packets,
            broken: self.broken,
            taps,
            clocks,
        })
    }
}
