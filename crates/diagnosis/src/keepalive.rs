//! Probes that ask whether the other end lives (RFC 9293 section 3.8.4), and what follows from those that nobody answers.

use crate::connection::{Connection, SIDES, Side};
use crate::kinds::Kind;
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
    /// What follows from them was told.
    is_told: bool,
}

impl Connection {
    /// Counts probes, and forgets them with whatever the other end sends.
    pub(crate) fn watch_keepalive(&mut self, segment: &Segment, from: Side, now: i64) {
        self.half_mut(from.other()).keepalive = Keepalive::default();
        let half = self.half_mut(from);
        let asks =
            [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST].iter().all(|flag| !segment.flags.contains(*flag))
                && segment.payload_bytes <= 1
                && half.flight.is_empty()
                && half.high > 0
                && half.places.near(segment.seq) + 1 == half.high;
        if asks {
            let probes = &mut half.keepalive;
            if probes.unanswered == 0 {
                (probes.first, probes.first_number) = (now, segment.number);
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
            self.half_mut(end.other()).keepalive.is_told = true;
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

    /// Their time was that of an application without anything to send.
    fn tell_dead(&mut self, probes: &Keepalive, now: i64) {
        let waited = now - probes.first;
        let idle = self.tallies.iter_mut().find(|tally| tally.kind == Kind::ApplicationLimited);
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
}
