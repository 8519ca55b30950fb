//! A share of a capture's connections: so many live at a time, what has no room waits in files, and what was found of those
//! that ended becomes rows.

use super::rows::{Place, Rows};
use super::spills::{Again, Spilled, Spills};
use super::{Others, Unread};
use framegauge_diagnosis::{Clock, Cut, Part, Rank, Table, Thresholds, Told};
use framegauge_packets::capture::{Decoded, IcmpNote, Segment, Why};

/// Connections that have ended and wait to become rows.
const UNTOLD: usize = 64;

/// What a share has found at one tap. Connections are called by the numbers of their first packets.
#[derive(Debug, Default)]
pub(super) struct AtTap {
    pub(super) connections: Vec<(u64, Place)>,
    pub(super) findings: Vec<(Rank, Place)>,
    pub(super) part: Part,
}

/// What a share has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rows: Rows,
    pub(super) taps: Vec<AtTap>,
    pub(super) others: Others,
    pub(super) unread: Unread,
}

/// A packet, as far as a share must know where it is from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// None for packets that belong to no connection of a tap.
    pub(super) tap: Option<usize>,
    pub(super) number: u64,
    pub(super) clock: Clock,
    /// Bytes that the capture has of it, and those that it says there were.
    pub(super) captured_bytes: usize,
    pub(super) original_bytes: usize,
}

impl Seen {
    /// What the capture's length cut off the packet.
    #[inline]
    pub(super) fn cut(self, decoded: &Decoded) -> Option<Cut> {
        match decoded {
            Decoded::Tcp(segment) if segment.options_are_cut => Some(Cut::Options),
            // Tools that cut packets may overwrite their length on the wire: then the IP header tells.
            Decoded::Tcp(segment)
                if self.captured_bytes < self.original_bytes.max(segment.ip_bytes as usize) =>
            {
                Some(Cut::Payload)
            }
            Decoded::Other(Why::Cut) => Some(Cut::Headers),
            _ => None,
        }
    }
}

/// The share, while the capture is read.
#[derive(Debug)]
pub(super) struct Share {
    limits: Thresholds,
    /// Connections that may live at all taps together.
    room: usize,
    tables: Vec<Option<Table>>,
    origins: Vec<i64>,
    living: usize,
    level: u64,
    spills: Option<Spills>,
    found: Found,
    failed: Option<String>,
}

impl Share {
    pub(super) fn new(limits: Thresholds, room: usize) -> Share {
        Share {
            limits,
            room,
            tables: Vec::new(),
            origins: Vec::new(),
            living: 0,
            level: 0,
            spills: None,
            found: Found::default(),
            failed: None,
        }
    }

    /// Takes the next packet.
    #[inline]
    pub(super) fn take(&mut self, decoded: &Decoded, seen: Seen) {
        let Some(tap) = seen.tap else {
            if let Decoded::Other(reason) = decoded {
                self.found.count(*reason);
            }
            return;
        };
        match decoded {
            Decoded::Tcp(segment) => self.segment(tap, segment, seen.clock),
            Decoded::Icmp(note) => {
                self.found.others.icmp += 1;
                self.note(tap, note, seen.clock.now);
            }
            Decoded::Other(reason) => self.found.count(*reason),
        }
        if let Some(cut) = seen.cut(decoded) {
            self.table(tap).take_cut(cut, seen.number);
        }
    }

    #[inline]
    fn table(&mut self, tap: usize) -> &mut Table {
        if self.tables.len() <= tap {
            self.make_room(tap);
        }
        self.tables[tap].get_or_insert_with(|| Table::share(self.limits))
    }

    #[cold]
    fn make_room(&mut self, tap: usize) {
        self.tables.resize_with(tap + 1, || None);
        self.origins.resize(tap + 1, 0);
        self.found.taps.resize_with(tap + 1, AtTap::default);
    }

    #[inline]
    fn segment(&mut self, tap: usize, segment: &Segment, clock: Clock) {
        let (room, living) = (self.room, self.living);
        let table = self.table(tap);
        let own = table.living();
        let is_taken = table.offer(segment, clock, room.saturating_sub(living - own));
        let (now, untold) = (table.living(), table.untold());
        self.living = living - own + now;
        if untold >= UNTOLD {
            self.tell(tap);
        }
        if !is_taken {
            // What came before its connection.
            for note in self.table(tap).refused_notes() {
                self.spill(tap, &note, clock.now);
            }
            self.origins[tap] = clock.origin;
            let level = self.level;
            let spilled = self.spills.get_or_insert_with(|| Spills::new(level)).segment(tap, segment, clock);
            self.fail(spilled);
        }
    }

    fn note(&mut self, tap: usize, note: &IcmpNote, now: i64) {
        if !self.table(tap).offer_note(note, now) {
            self.spill(tap, note, now);
        }
    }

    fn spill(&mut self, tap: usize, note: &IcmpNote, now: i64) {
        let level = self.level;
        let spilled = self.spills.get_or_insert_with(|| Spills::new(level)).note(tap, note, now);
        self.fail(spilled);
    }

    fn fail(&mut self, done: Result<(), String>) {
        if let (Err(reason), None) = (done, &self.failed) {
            self.failed = Some(reason);
        }
    }

    fn tell(&mut self, tap: usize) {
        let Some(table) = &mut self.tables[tap] else { return };
        let outcome = table.told().try_for_each(|outcome| self.found.tell(tap, &outcome));
        self.fail(outcome);
    }

    /// Ends all connections, those that had no room before as well.
    pub(super) fn finish(mut self) -> Result<Found, String> {
        let mut waiting: Vec<(Again, u64)> = Vec::new();
        loop {
            self.close()?;
            if let Some(spills) = self.spills.take() {
                waiting.extend(spills.finish()?);
            }
            let Some((mut again, level)) = waiting.pop() else { return Ok(self.found) };
            self.level = level;
            while let Some((tap, spilled)) = again.next()? {
                match spilled {
                    Spilled::Segment(segment, now) => {
                        let origin = self.origins[tap];
                        self.segment(tap, &segment, Clock { origin, now });
                    }
                    Spilled::Note(note, now) => self.note(tap, &note, now),
                }
            }
        }
    }

    fn close(&mut self) -> Result<(), String> {
        for tap in 0..self.tables.len() {
            let Some(table) = self.tables[tap].take() else { continue };
            let (outcome, part) = table.close();
            outcome.iter().try_for_each(|outcome| self.found.tell(tap, outcome))?;
            self.found.taps[tap].part.add(part);
        }
        self.living = 0;
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Found {
    fn count(&mut self, reason: Why) {
        self.others.count(reason);
        self.unread.count(reason);
    }

    /// Makes rows of a connection and of what was found in it.
    fn tell(&mut self, tap: usize, outcome: &Told) -> Result<(), String> {
        let place = self.rows.add(&outcome.report)?;
        let at = &mut self.taps[tap];
        at.connections.push((outcome.number(), place));
        for finding in &outcome.findings {
            at.findings.push((finding.rank(), self.rows.add(finding)?));
        }
        Ok(())
    }
}
