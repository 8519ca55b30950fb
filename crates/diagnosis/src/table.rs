//! Connections of a capture, in one pass: all of them, or a share. Memory is bounded by those that live, and a table can be
//! told how many these may be.
//!
//! What becomes of a connection depends on its own packets and the capture's clock alone, so that shares say together what
//! one table says.

use crate::connection::Connection;
use crate::keys::{Elsewhere, Key, Mix};
use crate::quality::Cut;
use crate::whole::{Diagnosis, Numbers, Part, Told};
use crate::{Picture, Thresholds};
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::{IcmpNote, Segment};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

/// A connection that was closed may still repeat its last packets for so long, in nanoseconds of the capture.
const LINGER: i64 = 60_000_000_000;

/// A connection that lives, and since when it is over by the capture's clock.
#[derive(Debug)]
struct Living {
    connection: Box<Connection>,
    over: Option<i64>,
}

impl Living {
    /// Whether it was closed so long ago that nothing belongs to it any more.
    fn is_forgotten(&self, clock: i64) -> bool {
        self.over.is_some_and(|over| clock - over >= LINGER)
    }

    /// Whether a segment begins another connection between the same ends.
    fn gives_way(&self, segment: &Segment, clock: i64) -> bool {
        self.is_forgotten(clock) || (opens(segment) && self.connection.is_another(segment))
    }

    /// Takes the next segment. Whether the connection is over by it.
    #[inline]
    fn take(&mut self, segment: &Segment, clock: i64, limits: &Thresholds) -> bool {
        match self.connection.picture {
            None => self.connection.take(segment, limits),
            Some(_) => self.connection.take_drawn(segment, limits),
        }
        let (is_over, was_over) = (self.connection.is_over(), self.over.is_some());
        if is_over != was_over {
            self.over = is_over.then_some(clock);
        }
        is_over && !was_over
    }
}

/// With FIN or RST it opens nothing.
#[inline]
fn opens(segment: &Segment) -> bool {
    let ends_or_answers = TcpFlags::ACK.with(TcpFlags::FIN).with(TcpFlags::RST);
    segment.flags.contains(TcpFlags::SYN) && segment.flags.0 & ends_or_answers.0 == 0
}

/// The clock of a capture, which never goes back, whatever its stamps do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The stamp of its first segment.
    pub origin: i64,
    /// The latest stamp so far.
    pub now: i64,
}

/// Takes segments in the order of their capture.
#[derive(Debug)]
pub struct Table {
    limits: Thresholds,
    living: HashMap<Key, Living, BuildHasherDefault<Mix>>,
    closing: VecDeque<(i64, Key)>,
    /// Those that it had no room for.
    elsewhere: Elsewhere,
    told: Vec<Told>,
    part: Part,
    /// Connections are called by the numbers of their first packets, since nobody knows how many the others have.
    is_share: bool,
    clock: Option<Clock>,
    connections: u64,
    /// The numbers of those that are drawn.
    drawn: Vec<u64>,
    /// Errors about the connection that was refused last, which came before it.
    refused: Vec<IcmpNote>,
}

impl Table {
    /// Begins a capture.
    pub fn new(limits: Thresholds) -> Table {
        Table {
            limits,
            living: HashMap::default(),
            closing: VecDeque::new(),
            elsewhere: Elsewhere::default(),
            told: Vec::new(),
            part: Part::default(),
            is_share: false,
            clock: None,
            connections: 0,
            drawn: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Begins a share of a capture.
    pub fn share(limits: Thresholds) -> Table {
        Table { is_share: true, ..Table::new(limits) }
    }

    /// Draws the connections of these numbers, which a first pass over the same segments has told.
    pub fn draw(&mut self, connections: &[u64]) {
        self.drawn = connections.to_vec();
    }

    /// Takes the next segment.
    pub fn take(&mut self, segment: &Segment) {
        let stamp = segment.nanoseconds;
        let clock = self.clock.unwrap_or(Clock { origin: stamp, now: stamp });
        let clock = Clock { now: clock.now.max(stamp), ..clock };
        self.clock = Some(clock);
        let is_taken = self.offer(segment, clock, usize::MAX);
        debug_assert!(is_taken, "there is room for all");
    }

    /// Takes the next segment, unless it is of a connection that it has no room for: at most `room` may live. Then all
    /// segments of that connection are refused.
    pub fn offer(&mut self, segment: &Segment, clock: Clock, room: usize) -> bool {
        let key = Key::between(segment.source, segment.destination);
        let limits = self.limits;
        if let Some(living) = self.living.get_mut(&key)
            && !living.gives_way(segment, clock.now)
        {
            if living.take(segment, clock.now, &limits) {
                self.closing.push_back((clock.now, key));
            }
            self.part.take(segment);
            return true;
        }
        self.open(key, segment, clock, room)
    }

    /// Begins a connection, if there is room.
    fn open(&mut self, key: Key, segment: &Segment, clock: Clock, room: usize) -> bool {
        self.end(key);
        self.sweep(clock.now);
        let notes = self.part.unclaimed.claim(key, segment.nanoseconds);
        if self.elsewhere.may_have(key) || self.living.len() >= room {
            self.elsewhere.add(key);
            self.refused = notes;
            return false;
        }
        self.connections += 1;
        let number = if self.is_share { segment.number } else { self.connections };
        let mut connection = Box::new(Connection::new(number, segment));
        let now = segment.nanoseconds;
        let origin = *self.part.origin.get_or_insert(clock.origin);
        if self.drawn.contains(&number) {
            connection.picture = Some(Box::new(Picture::new(number, connection.ends, now, origin)));
        }
        notes.iter().for_each(|note| connection.take_note(note));
        let mut living = Living { connection, over: None };
        if living.take(segment, clock.now, &self.limits) {
            self.closing.push_back((clock.now, key));
        }
        self.part.take(segment);
        self.living.insert(key, living);
        true
    }

    /// How many connections live.
    pub fn living(&self) -> usize {
        self.living.len()
    }

    /// Takes an ICMP error, which belongs to the connection whose segment it quotes.
    pub fn take_note(&mut self, note: &IcmpNote) {
        let now = self.clock.map_or(note.nanoseconds, |clock| clock.now.max(note.nanoseconds));
        let is_taken = self.offer_note(note, now);
        debug_assert!(is_taken, "there is room for all");
    }

    /// The same at this time of the capture, unless there was no room for the connection.
    pub fn offer_note(&mut self, note: &IcmpNote, now: i64) -> bool {
        let key = note.quoted.map(|quoted| Key::between(quoted.source, quoted.destination));
        let living = key.and_then(|key| self.living.get_mut(&key));
        if let Some(living) = living.filter(|living| !living.is_forgotten(now)) {
            living.connection.take_note(note);
            return true;
        }
        if key.is_some_and(|key| self.elsewhere.may_have(key)) {
            return false;
        }
        self.part.unclaimed.take(key, note);
        true
    }

    /// The errors that it has taken about the connection whose segment was just refused: whoever takes that one takes them
    /// before.
    pub fn refused_notes(&mut self) -> Vec<IcmpNote> {
        std::mem::take(&mut self.refused)
    }

    /// Notes that the capture's length cut a packet. `number`: that of the packet.
    pub fn take_cut(&mut self, cut: Cut, number: u64) {
        self.part.cuts.take(cut, number);
    }

    /// The capture says that it lacks packets, which looks like a breach of protocol: none is told.
    pub fn lacks_packets(&mut self) {
        self.part.is_lacking = true;
    }

    /// Ends connections that were closed long ago.
    fn sweep(&mut self, clock: i64) {
        while let Some((at, key)) = self.closing.front().copied() {
            if clock - at < LINGER {
                break;
            }
            self.closing.pop_front();
            if self.living.get(&key).is_some_and(|living| living.is_forgotten(clock)) {
                self.end(key);
            }
        }
    }

    fn end(&mut self, key: Key) {
        let Some(living) = self.living.remove(&key) else { return };
        let ended = living.connection.end(self.part.origin.unwrap_or(0), &self.limits);
        self.told.push(self.part.keep(ended));
    }

    /// How many connections have ended since they were told.
    pub fn untold(&self) -> usize {
        self.told.len()
    }

    /// Tells the connections that have ended since.
    pub fn told(&mut self) -> std::vec::Drain<'_, Told> {
        self.told.drain(..)
    }

    /// Ends all connections: those that were not told yet, and what they say together with others.
    pub fn close(mut self) -> (Vec<Told>, Part) {
        let mut keys: Vec<(u64, Key)> =
            self.living.iter().map(|(key, living)| (living.connection.number, *key)).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        for (_, key) in keys {
            self.end(key);
        }
        (self.told, self.part)
    }

    /// Ends the capture.
    pub fn finish(self) -> Diagnosis {
        let limits = self.limits;
        let (ended, part) = self.close();
        let numbers = Numbers::new(ended.iter().map(Told::number).collect());
        let whole = part.conclude(&numbers, &limits);
        let mut connections = Vec::with_capacity(ended.len());
        let mut findings = Vec::new();
        for entry in ended {
            connections.push(entry.report);
            findings.extend(entry.findings.into_iter().filter(|finding| whole.keeps(finding.kind)));
        }
        findings.extend(whole.findings);
        findings.sort_by_key(crate::Finding::rank);
        connections.sort_unstable_by_key(|entry| entry.connection);
        Diagnosis {
            connections,
            findings,
            segments: whole.segments,
            seconds: whole.seconds,
            pictures: whole.pictures,
            witnesses: whole.witnesses,
        }
    }
}
