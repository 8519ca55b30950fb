//! Probes that ask whether the other end lives (RFC 9293 section 3.8.4) or has opened its window (section 3.8.6.1), and what
//! follows from those that nobody answers.

use crate::connection::{Connection, SIDES, Side};
use crate::findings::Tally;
use crate::half::Half;
use crate::kinds::Kind;
use crate::words::duration;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// So many in a row without an answer are no chance: Linux gives up after 9, Windows after 10.
const DEAD: u32 = 3;

/// The probes of one end that were not answered yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keepalive {
    unanswered: u32,
    first: i64,
    first_number: u64,
    last_number: u64,
    /// The other end's window was closed when they began.
    is_of_window: bool,
    /// What follows from them was told.
    is_told: bool,
    /// What was told was of a closed window.
    told_of_window: bool,
}

impl Connection {
    /// Counts probes, and forgets them with whatever the other end sends.
    pub(crate) fn watch_keepalive(&mut self, segment: &Segment, from: Side, now: i64) {
        let probes = &mut self.half_mut(from.other()).keepalive;
        *probes = Keepalive { told_of_window: probes.told_of_window, ..Keepalive::default() };
        let half = self.half_mut(from);
        let of_window = half.asks_for_window(segment);
        let asks = of_window || half.asks_for_life(segment);
        if asks {
            let probes = &mut half.keepalive;
            if probes.unanswered == 0 {
                (probes.first, probes.first_number) = (now, segment.number);
                probes.is_of_window = of_window;
            }
            probes.unanswered += 1;
            probes.last_number = segment.number;
        }
    }

    /// Whether an end has answered none of the probes of the other, up to now; it is told then.
    pub(crate) fn is_dead(&mut self, end: Side, now: i64) -> bool {
        let probes = self.half(end.other()).keepalive;
        if probes.unanswered < DEAD {
            return false;
        }
        if !probes.is_told {
            let told = &mut self.half_mut(end.other()).keepalive;
            (told.is_told, told.told_of_window) = (true, told.is_of_window);
            self.tell_dead(&probes, now);
        }
        true
    }

    /// At the end: probes that nobody has answered.
    pub(crate) fn settle_keepalives(&mut self) {
        for side in SIDES {
            self.is_dead(side, self.last);
        }
    }

    /// Their time was that of an application without anything to send, or of a closed window.
    fn tell_dead(&mut self, probes: &Keepalive, now: i64) {
        let waited = now - probes.first;
        let rest = if probes.is_of_window { Kind::ZeroWindow } else { Kind::ApplicationLimited };
        let idle = self.tallies.iter_mut().find(|tally| tally.kind == rest);
        let lost = idle.map_or(0, |idle| {
            let lost = waited.min(idle.lost);
            idle.lost -= lost;
            lost
        });
        self.note(Kind::DeadPeer, probes.first, now, lost, &[probes.first_number, probes.last_number]);
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.kind == Kind::DeadPeer) {
            tally.count += u64::from(probes.unanswered) - 1;
        }
    }

    /// What was not answered, as sentences.
    pub(crate) fn dead_in_words(&self, tally: &Tally) -> String {
        let lost = duration(tally.lost);
        if self.halves.iter().any(|half| half.keepalive.told_of_window) {
            return format!(
                "{} probes whether the closed window has opened were not answered in {lost}: a receiver that lives answers each, so \
                 it had gone, or the path to it, and nothing could ever open that window.",
                tally.count
            );
        }
        format!(
            "{} probes were not answered in {lost}: the other end had gone, or the path to it.",
            tally.count
        )
    }
}

impl Half {
    /// Whether a segment asks whether the other end lives: it repeats the last byte, or none.
    fn asks_for_life(&self, segment: &Segment) -> bool {
        self.is_probe(segment)
            && self.flight.is_empty()
            && self.high > 0
            && self.places.near(segment.seq) + 1 == self.high
    }

    /// Whether a segment asks whether the closed window of the other end has opened: by the byte behind the window, or by
    /// what lies before it, as Linux does.
    fn asks_for_window(&self, segment: &Segment) -> bool {
        let place = self.places.near(segment.seq);
        let is_next = segment.payload_bytes == 1 && place == self.una;
        self.is_probe(segment) && self.is_shut && self.una > 0 && (is_next || place + 1 == self.una)
    }

    fn is_probe(&self, segment: &Segment) -> bool {
        let is_other =
            [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST].iter().any(|flag| segment.flags.contains(*flag));
        !is_other && segment.payload_bytes <= 1
    }
}
