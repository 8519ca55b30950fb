//! The path MTU as a sender knows it: by what routers tell (RFC 1191, RFC 8201), and by probes of its own where timeouts tell
//! of a black hole (RFC 4821; Linux' `tcp_mtu_probing`).
//!
//! All sizes are payload of a full segment: the headers before it have the same size in all segments of a connection.

use framegauge_frames::{Picoseconds, TCP_HEADER_BYTES, TIMESTAMPS_OPTION_BYTES};

use super::Sender;
use super::queue::Sent;
use crate::congestion::State;
use crate::endpoint::{Outgoing, Tick};
use crate::{Probing, TcpSettings};

/// Where a search begins (`tcp_base_mss`), and the least that it goes down to (`tcp_mtu_probe_floor`).
const BASE_PAYLOAD: u32 = 1024;
const LEAST_PAYLOAD: u32 = 48;
/// A search has ended when what is left is smaller (`tcp_probe_threshold`); after so long it begins again
/// (`tcp_probe_interval`).
const THRESHOLD_BYTES: u32 = 8;
const INTERVAL: Picoseconds = Picoseconds::from_nanoseconds(600_000_000_000);
/// Timeouts go on for so long before they tell of a black hole: three of the least, each twice the one before, after the
/// first (`tcp_retries1`, `tcp_model_timeout`).
const BLACK_HOLE_MILLISECONDS: u32 = 3000;
/// cwnd at which a probe may be lost without harm, and segments behind it by which that is seen.
const LEAST_WINDOW_SEGMENTS: u32 = 11;
const BEHIND_SEGMENTS: u64 = 4;

/// What came of looking for a larger path MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// No probe is due.
    Nothing,
    /// Nothing is to be sent before it.
    Waits,
    Sent,
}

/// Sizes between which the path MTU is (`icsk_mtup`).
#[derive(Debug, Clone, Copy)]
struct Range {
    is_on: bool,
    low: u32,
    high: u32,
    /// What the peer takes in.
    most: u32,
    /// A probe under way, by the numbers of its first byte and of that after its last.
    probe: Option<(u64, u64)>,
    since: Picoseconds,
}

/// What is known of the path.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// What the sender has taken note of (`icsk_pmtu_cookie`), and what its host knows (`dst_mtu`).
    known: u32,
    route: u32,
    /// What both ends take in: they announced it when the connection was opened.
    most: u32,
    range: Option<Box<Range>>,
}

impl Path {
    pub(super) fn new(payload: u32, settings: &TcpSettings) -> Path {
        let range = Range {
            is_on: settings.probing == Probing::Always,
            low: BASE_PAYLOAD,
            high: payload,
            most: payload,
            probe: None,
            since: Picoseconds::ZERO,
        };
        let range = (settings.probing != Probing::Off).then(|| Box::new(range));
        Path { known: payload, route: payload, most: payload, range }
    }

    /// Of a connection whose ends take in segments with so much payload.
    pub(super) fn first_mss(payload: u32, settings: &TcpSettings) -> u32 {
        match settings.probing {
            Probing::Always => payload.min(BASE_PAYLOAD),
            _ => payload,
        }
    }

    #[inline]
    pub(super) fn is_searched(&self) -> bool {
        self.range.as_ref().is_some_and(|range| range.is_on)
    }
}

fn header_bytes(settings: &TcpSettings) -> u32 {
    let options = if settings.timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
    settings.family.header_bytes() + TCP_HEADER_BYTES + options
}

impl Sender {
    /// The host has learned of the path by another connection.
    pub(crate) fn learn_path(&mut self, payload: u32) {
        self.path.route = self.path.route.min(payload);
    }

    /// The host's own MTU has become another.
    pub(crate) fn set_route(&mut self, payload: u32) {
        self.path.route = payload.min(self.path.most);
    }

    /// Takes note of what the host has learned (`tcp_current_mss`).
    #[inline]
    pub(super) fn follow_path(&mut self) {
        if self.path.route != self.path.known {
            self.set_path(self.path.route);
        }
    }

    /// `tcp_sync_mss`.
    fn set_path(&mut self, payload: u32) {
        self.path.known = payload;
        self.mss = payload;
        if let Some(range) = &mut self.path.range {
            range.high = range.high.min(payload);
            if range.is_on {
                self.mss = payload.min(range.low);
            }
        }
    }

    /// A router has dropped a segment of this connection as too large (`tcp_v4_mtu_reduced`).
    pub(crate) fn lower_payload(&mut self, tick: &mut impl Tick, payload: u32) {
        self.learn_path(payload);
        if payload < self.path.known {
            self.set_path(payload);
            self.resend_larger(tick);
        }
    }

    /// What is larger than a full segment is lost, and sent again in smaller ones: no sign of congestion
    /// (`tcp_simple_retransmit`).
    fn resend_larger(&mut self, tick: &mut impl Tick) {
        self.lost += u64::from(self.queue.lose_larger(self.mss));
        if self.queue.lost == 0 {
            return;
        }
        if self.state != State::Loss {
            self.high = self.next;
            self.window.ssthresh = self.current_threshold();
            self.undo.ssthresh = 0;
            self.undo.marker = None;
            self.set_state(tick, State::Loss);
        }
        self.resend_lost(tick);
    }

    /// Timeouts that go on are taken for a black hole (`tcp_mtu_probing`).
    pub(super) fn look_for_black_hole(&mut self, tick: &impl Tick) {
        let since = self.undo.first_resend.map_or(0, |first| tick.stamp().wrapping_sub(first));
        if self.timeouts == 0 || since < BLACK_HOLE_MILLISECONDS {
            return;
        }
        let known = self.path.known;
        let Some(range) = &mut self.path.range else { return };
        if range.is_on {
            range.low = (range.low >> 1).clamp(LEAST_PAYLOAD, BASE_PAYLOAD);
        } else {
            (range.is_on, range.since) = (true, tick.now());
        }
        self.set_path(known);
    }

    /// Sends a larger segment if one is due (`tcp_mtu_probe`).
    pub(super) fn probe_path(&mut self, tick: &mut impl Tick) -> Search {
        let Some(range) = &mut self.path.range else { return Search::Nothing };
        let sacked = self.queue.acked > 0 || self.known_blocks[0].1 > self.unacknowledged;
        if range.probe.is_some()
            || self.state != State::Open
            || self.window.cwnd < LEAST_WINDOW_SEGMENTS
            || sacked
        {
            return Search::Nothing;
        }
        let size = (range.high + range.low) >> 1;
        if size > range.high || range.high.saturating_sub(range.low) < THRESHOLD_BYTES {
            if tick.now() - range.since >= INTERVAL {
                (range.low, range.high, range.since) = (self.mss, range.most, tick.now());
            }
            return Search::Nothing;
        }
        let needed = u64::from(size) + BEHIND_SEGMENTS * u64::from(self.mss);
        if self.unsent() < needed || u64::from(self.peer_window) < needed {
            return Search::Nothing;
        }
        let in_flight = self.queue.in_flight();
        if self.next + needed > self.window_end || in_flight + 2 > self.window.cwnd {
            return if in_flight == 0 { Search::Nothing } else { Search::Waits };
        }
        self.send_path_probe(tick, size);
        Search::Sent
    }

    fn send_path_probe(&mut self, tick: &mut impl Tick, bytes: u32) {
        let (now, flight) = (tick.now(), self.note_flight(tick));
        let was_empty = self.queue.is_empty();
        let sent = Sent::new(self.next, bytes, false, now);
        let departs =
            tick.transmit(Outgoing { sequence: self.next, bytes, is_new: true, ..Outgoing::default() });
        self.counts.segments += 1;
        self.last_part = self.next;
        self.next = sent.end();
        self.queue.push(sent);
        self.queue.push_flight(flight);
        self.hand_over(tick, departs, u64::from(bytes));
        self.last_sent = now;
        // It stands for two segments.
        self.window.cwnd -= 1;
        if let Some(range) = &mut self.path.range {
            range.probe = Some((sent.sequence, sent.end()));
        }
        if was_empty {
            self.set_timeout(tick);
        }
    }

    /// Whether the probe has come (`tcp_mtup_probe_success`): cwnd stays the same in bytes.
    pub(super) fn look_at_path_probe(&mut self, settings: &TcpSettings) {
        let (mss, known, acknowledged) = (self.mss, self.path.known, self.unacknowledged);
        let Some(range) = &mut self.path.range else { return };
        let Some((begin, end)) = range.probe.filter(|(_, end)| *end <= acknowledged) else { return };
        let size = (end - begin) as u32;
        let headers = header_bytes(settings);
        (range.low, range.probe) = (size, None);
        self.window.cwnd = (u64::from(self.window.cwnd) * u64::from(mss + headers)
            / u64::from(size + headers))
        .max(1) as u32;
        self.window.count = 0;
        self.usage.since = self.last_sent.max(self.usage.since);
        self.window.ssthresh = self.current_threshold();
        self.set_path(known);
    }

    /// Whether what was lost is the probe: it was too large, and cwnd does not shrink (`tcp_mtup_probe_failed`).
    pub(super) fn fails_path_probe(&mut self, tick: &mut impl Tick) -> bool {
        let (state, acknowledged) = (self.state, self.unacknowledged);
        let Some(range) = &mut self.path.range else { return false };
        let Some((begin, end)) = range.probe.filter(|(begin, _)| *begin == acknowledged) else {
            return false;
        };
        if state >= State::Reduced {
            return false;
        }
        (range.high, range.probe) = ((end - begin) as u32 - 1, None);
        self.window.cwnd += 1;
        self.resend_larger(tick);
        true
    }

    /// Something is sent again while a probe is under way: it tells nothing any more.
    pub(super) fn forget_path_probe(&mut self) {
        self.path.range.iter_mut().for_each(|range| range.probe = None);
    }
}
