//! Probes that ask whether the other end lives (RFC 9293 section 3.8.4) or has opened its window (section 3.8.6.1), and what
//! follows from those that nobody answers.

use super::{Detector, Seen};
use crate::Thresholds;
use crate::account::Account;
use crate::connection::{Connection, SIDES, Side};
use crate::copies::LEAST_TIMEOUT;
use crate::findings::Tally;
use crate::kinds::Kind;
use crate::way::Way;
use crate::words::duration;
use framegauge_packets::TcpFlags;
use framegauge_packets::capture::Segment;

/// So many in a row without an answer are no chance: Linux gives up after 9, Windows after 10.
const DEAD: u64 = 3;
/// A probe waits for a timer: half of the least that Linux has, since delays on the way here may shorten that.
const LEAST_WAIT: i64 = LEAST_TIMEOUT / 2;
/// Flags that a probe has not.
const NO_PROBE: TcpFlags = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);

/// The probes of each end that were not answered yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keepalive([Probes; 2]);

#[derive(Debug, Clone, Copy, Default)]
struct Probes {
    unanswered: u64,
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

impl Detector for Keepalive {
    /// Counts probes, and forgets them with whatever the other end sends.
    fn segment(&mut self, of: &Connection, packet: &Seen, _: &mut Account) {
        self.0[packet.from.other() as usize].unanswered = 0;
        let segment = packet.segment;
        if segment.payload_bytes > 1 || segment.flags.0 & NO_PROBE.0 != 0 {
            return;
        }
        // What comes sooner than any timer is late, or a copy.
        if packet.now - of.half(packet.from).spoke() < LEAST_WAIT {
            return;
        }
        let way = &of.half(packet.from).way;
        let is_of_window = asks_for_window(way, segment);
        if !is_of_window && !asks_for_life(way, segment) {
            return;
        }
        let probes = &mut self.0[packet.from as usize];
        if probes.unanswered == 0 {
            let (first, first_number, told_of_window) = (packet.now, segment.number, probes.told_of_window);
            *probes = Probes { first, first_number, is_of_window, told_of_window, ..Probes::default() };
        }
        probes.unanswered += 1;
        probes.last_number = segment.number;
    }

    /// An end that has no answer gives up.
    fn close(&mut self, _: &Connection, packet: &Seen, account: &mut Account) {
        self.settle(packet.from, packet.now, account);
    }

    fn end(&mut self, of: &Connection, _: &Thresholds, account: &mut Account) {
        SIDES.into_iter().for_each(|side| self.settle(side, of.last, account));
    }
}

impl Keepalive {
    /// Up to now nobody has answered this end: the time was that of an application without anything to send, or of a closed
    /// window.
    fn settle(&mut self, side: Side, now: i64, account: &mut Account) {
        let probes = &mut self.0[side as usize];
        if probes.unanswered < DEAD || probes.is_told {
            return;
        }
        (probes.is_told, probes.told_of_window) = (true, probes.is_of_window);
        let rest = if probes.is_of_window { Kind::ZeroWindow } else { Kind::ApplicationLimited };
        let packets = [probes.first_number, probes.last_number];
        let tally = Tally::new(Kind::DeadPeer, probes.first, now, &packets);
        account.tell_instead(tally.times(probes.unanswered).costing(now - probes.first), rest);
    }

    /// What was not answered, as sentences.
    pub(crate) fn in_words(&self, tally: &Tally) -> String {
        let lost = duration(tally.lost);
        if self.0.iter().any(|probes| probes.told_of_window) {
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

/// Whether a segment asks whether the other end lives: it repeats the last byte, or none.
fn asks_for_life(way: &Way, segment: &Segment) -> bool {
    way.is_idle() && way.has_begun() && way.near(segment.seq) + 1 == way.high()
}

/// Whether a segment asks whether the closed window of the other end has opened: by the byte behind the window, or by
/// what lies before it, as Linux does.
fn asks_for_window(way: &Way, segment: &Segment) -> bool {
    if !way.is_shut() || way.una() == 0 {
        return false;
    }
    let place = way.near(segment.seq);
    let is_next = segment.payload_bytes == 1 && place == way.una();
    is_next || place + 1 == way.una()
}
