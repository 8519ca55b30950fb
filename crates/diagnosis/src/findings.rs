//! What was found, in the form in which it is told.

use crate::Kind;
use serde::Serialize;
use std::net::SocketAddr;

/// Packets that are named as evidence; more are counted only.
pub(crate) const MOST_PACKETS: usize = 20;

/// A named problem of one connection, or of the capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its name.
    pub kind: Kind,
    /// The connection's number, from 1; `None` for a finding about the capture or several connections.
    pub connection: Option<u64>,
    /// When it begins, in seconds since the capture's first packet.
    pub begin_seconds: f64,
    /// When it ends.
    pub end_seconds: f64,
    /// How often it happened.
    pub count: u64,
    /// The time that was lost by it, in seconds.
    pub lost_seconds: f64,
    /// The numbers of packets that show it.
    pub packets: Vec<u64>,
    /// What happened, in plain words.
    pub text: String,
    /// What helps.
    pub remedy: &'static str,
}

/// One kind of finding of one connection, while it is being collected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tally {
    pub(crate) kind: Kind,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) count: u64,
    pub(crate) lost: i64,
    pub(crate) packets: Vec<u64>,
}

impl Tally {
    /// It happened once, and cost nothing.
    pub(crate) fn new(kind: Kind, begin: i64, end: i64, packets: &[u64]) -> Tally {
        Tally { kind, begin, end, count: 1, lost: 0, packets: packets.to_vec() }
    }

    /// So often.
    pub(crate) fn times(self, count: u64) -> Tally {
        Tally { count, ..self }
    }

    /// For so much time, in nanoseconds.
    pub(crate) fn costing(self, lost: i64) -> Tally {
        Tally { lost, ..self }
    }

    /// Names one more packet as evidence, if there is room.
    pub(crate) fn add_packet(&mut self, number: u64) {
        if self.packets.len() < MOST_PACKETS {
            self.packets.push(number);
        }
    }
}

/// Adds an occurrence to those of its kind.
pub(crate) fn count(tallies: &mut Vec<Tally>, kind: Kind, begin: i64, end: i64, lost: i64, packets: &[u64]) {
    let place = tallies.iter().position(|tally| tally.kind == kind).unwrap_or_else(|| {
        tallies.push(Tally { kind, begin, end, count: 0, lost: 0, packets: Vec::new() });
        tallies.len() - 1
    });
    let tally = &mut tallies[place];
    tally.begin = tally.begin.min(begin);
    tally.end = tally.end.max(end);
    tally.count += 1;
    tally.lost += lost;
    if packets.is_empty() {
        // So it is of most gaps.
        return;
    }
    let room = MOST_PACKETS.saturating_sub(tally.packets.len());
    tally.packets.extend(packets.iter().filter(|number| **number > 0).take(room));
}

/// Adds a tally to that of its kind.
pub(crate) fn merge(tallies: &mut Vec<Tally>, tally: &Tally) {
    count(tallies, tally.kind, tally.begin, tally.end, tally.lost, &tally.packets);
    if let Some(all) = tallies.iter_mut().find(|all| all.kind == tally.kind) {
        all.count += tally.count - 1;
    }
}

/// The two ends of a connection: that which sent the first SYN, or else the first packet, is the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// Who opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
}
