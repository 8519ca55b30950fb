//! One direction of a connection: what one end sent, and what the other let it send.

use crate::discarded::Discarded;
use crate::doubtful::{Doubt, Doubtful};
use crate::findings::Tally;
use crate::flight::Flight;
use crate::flows::{Progress, Run};
use crate::holes::Holes;
use crate::identities::Identities;
use crate::keepalive::Keepalive;
use crate::lag::Lag;
use crate::quality::Checksums;
use crate::repairs::Repairs;
use crate::resets::Origin;
use crate::rtt::RoundTrip;
use crate::sequence::Unwrapper;
use crate::tracking::Tracking;
use crate::vantage::Waiting;
use crate::violations::Suspects;
use crate::windows::Watch;
use framegauge_packets::SynOptions;
use framegauge_packets::capture::Segment;
use std::collections::VecDeque;

/// Without a SYN and before any data: the MSS that every IPv4 path carries (RFC 9293 section 3.7.1).
const MSS_DEFAULT: u32 = 536;

/// The state of one direction. Places are those of `Unwrapper`; 0 means none yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Half {
    pub(crate) places: Unwrapper,
    /// Its SYN's options, and the place of the SYN.
    pub(crate) syn: Option<SynOptions>,
    pub(crate) syn_place: u64,
    pub(crate) syns: u32,
    /// SYNs that acknowledge one of the other end.
    pub(crate) syn_acks: u32,
    pub(crate) keepalive: Keepalive,
    /// Its newest timestamp.
    pub(crate) stamp: Option<u32>,
    pub(crate) flight: Flight,
    pub(crate) holes: Holes,
    /// The place after all that was seen.
    pub(crate) high: u64,
    /// The place up to which the other end has acknowledged.
    pub(crate) una: u64,
    pub(crate) round_trip: RoundTrip,
    /// The least time from the tap to the receiver and back.
    pub(crate) nearest: Option<i64>,
    /// Timestamps of the other end as they passed the tap, and how long the newest took to come back from the sender.
    pub(crate) echoes: VecDeque<(u32, i64)>,
    pub(crate) echo: i64,
    /// The sender has echoed one of them: it echoes at all.
    pub(crate) echoes_any: bool,
    /// How long acknowledgements that were late, as the sender's data showed, took to be heard of: smoothed.
    pub(crate) late: i64,
    pub(crate) lag: Lag,
    /// When the last pause ended.
    pub(crate) paused: i64,
    /// Acknowledgements that have passed the tap and not reached the sender.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The right edge of the other end's window, and the window itself, in bytes.
    pub(crate) edge: u64,
    pub(crate) window: u64,
    pub(crate) window_is_known: bool,
    pub(crate) largest_window: u64,
    /// The newest acknowledgement closed the window.
    pub(crate) is_shut: bool,
    /// The largest payload of one segment that was sent, and that arrived.
    pub(crate) largest: u32,
    pub(crate) delivered: u32,
    pub(crate) duplicate_acks: u32,
    pub(crate) last_data: i64,
    /// When something new was acknowledged.
    pub(crate) last_progress: i64,
    pub(crate) last_payload: u32,
    pub(crate) last_number: u64,
    /// The last data ended with a full segment that was not the end of a write: more was there.
    pub(crate) unpushed: bool,
    /// It had PSH, which says that this was all unless a burst ended there.
    pub(crate) is_pushed: bool,
    /// It was full, and had no PSH.
    pub(crate) last_is_open: bool,
    pub(crate) identities: Identities,
    pub(crate) origin: Origin,
    /// Pauses that are the sender's own, or losses before the tap, if it turns out that it counts its packets by one.
    pub(crate) unsure: Vec<Tally>,
    pub(crate) finished: bool,
    pub(crate) episode: Option<Episode>,
    pub(crate) silence: Option<Silence>,
    /// Silences of which the hole that ended them will show whether they were losses.
    pub(crate) doubtful: Vec<Doubtful>,
    /// Repeats that timestamps have shown as needless, and of which the receiver may still say so (D-SACK).
    pub(crate) told_needless: u32,
    /// A repair by SACK or duplicate acknowledgements goes on until this place.
    pub(crate) recovery: u64,
    /// What lies before this place was under way when a timer ran out: its repair is that of the timeout.
    pub(crate) timed_out: u64,
    pub(crate) rounds: Rounds,
    pub(crate) watch: Option<Watch>,
    pub(crate) progress: Progress,
    pub(crate) run: Run,
    pub(crate) counts: Counts,
    pub(crate) checksums: Checksums,
    pub(crate) discarded: Discarded,
    pub(crate) tracking: Tracking,
    pub(crate) suspects: Suspects,
    pub(crate) storm: Second,
    pub(crate) storm_resends_before: u64,
    pub(crate) repairs: Repairs,
}

/// What a direction carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) segments: u64,
    pub(crate) data_segments: u64,
    pub(crate) bytes: u64,
    pub(crate) resent_segments: u64,
    pub(crate) resent_bytes: u64,
    /// Acknowledged bytes that the capture has not.
    pub(crate) unseen_bytes: u64,
    pub(crate) aggregates: u64,
    /// How often the other end closed its window.
    pub(crate) closings: u64,
    /// Segments that only acknowledge.
    pub(crate) pure_acks: u64,
    /// Acknowledgements of something new that it received.
    pub(crate) acknowledgements: u64,
}

/// The resends of one second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Second {
    pub(crate) begin: i64,
    pub(crate) bytes: u64,
    pub(crate) resent_bytes: u64,
    pub(crate) resends: u32,
}

/// Silence that resends of the same data ended, until that data is acknowledged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Episode {
    pub(crate) una: u64,
    pub(crate) begin: i64,
    pub(crate) lost: i64,
    pub(crate) resends: u32,
    /// The largest payload that was resent, and the largest that had ever arrived before.
    pub(crate) largest: u32,
    pub(crate) delivered: u32,
    /// SACK or three duplicate acknowledgements had revealed the loss.
    pub(crate) revealed: bool,
    /// The data had been resent before the silence.
    pub(crate) repaired_before: bool,
    /// The other end was heard meanwhile.
    pub(crate) heard: bool,
    /// New data ended the silence, so that more had been waiting if the data before it is lost.
    pub(crate) probed: bool,
    /// What ended it was the other end, which asked again for what had been answered.
    pub(crate) asked_again: bool,
    /// What was sent again has an older timestamp than what was sent before.
    pub(crate) is_stale: bool,
    /// It was sent to a server that had not heard the end of the handshake.
    pub(crate) is_unheard: bool,
    /// It ended by RACK's reordering timer.
    pub(crate) by_reordering_timer: bool,
    /// The timestamp of the first repeat, or of the new data.
    pub(crate) stamp: Option<u32>,
    /// The place after all that had been sent when it began.
    pub(crate) high: u64,
    pub(crate) packets: Vec<u64>,
}

impl Episode {
    /// Whether an acknowledgement that ends it answers what was sent before its repeat: it echoes an older timestamp.
    pub(crate) fn was_needless(&self, ack: &Segment) -> bool {
        match (self.stamp, ack.timestamps) {
            (Some(stamp), Some((_, echo))) => (echo.wrapping_sub(stamp) as i32) < 0,
            _ => false,
        }
    }
}

/// Payloads of one direction of which those up to a size passed, and larger ones never did, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// The largest that passed; 0: none but the handshake.
    pub(crate) passed: u32,
    /// The largest that was sent again and again.
    pub(crate) lost: u32,
    /// The other end lived meanwhile.
    pub(crate) is_certain: bool,
}

/// A silence that is over, and of which the next new data will tell whether more was waiting.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) lost: i64,
    pub(crate) acknowledged: i64,
    /// The place after what was lost: data beyond it is new.
    pub(crate) high: u64,
    /// What was repeated first had arrived; whether all had, will show.
    pub(crate) needless: bool,
    /// Why it may be no loss.
    pub(crate) doubt: Option<Doubt>,
    pub(crate) packets: Vec<u64>,
}

/// How the bytes under way grow from RTT to RTT.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounds {
    /// The round ends when this place is acknowledged; 0: none has begun.
    pub(crate) end: u64,
    /// What had been acknowledged when it began: all that is sent until the next acknowledgement belongs to it.
    begin: u64,
    pub(crate) count: u32,
    pub(crate) growing: u32,
    /// Rounds since the last that grew.
    pub(crate) steady: u32,
    /// Rounds that grew, and since, when the last new data left; with the round that goes on.
    pub(crate) at_data: (u32, u32),
    pub(crate) peak: u64,
    pub(crate) last_peak: u64,
    pub(crate) largest_peak: u64,
    /// The most in a round that has ended.
    ceiling: u64,
    /// The most since the last pause.
    pub(crate) busy_peak: u64,
    /// The most before anything of the round was acknowledged.
    opening: u64,
    /// The least that the window left.
    room: u64,
    /// Both of the last round, and what had been acknowledged when that began.
    last_opening: u64,
    last_room: u64,
    last_begin: u64,
}

impl Rounds {
    /// Whether more is under way than in any round before: an application that sends now less and now more does not grow.
    fn has_grown(&self) -> bool {
        self.ceiling > 0 && self.peak * 2 >= self.ceiling * 3
    }

    /// Whether so much is under way that the congestion window must be the limit, wherever the other end's window ends: in slow
    /// start it grows by what is acknowledged (RFC 5681 section 3.1), and Linux asks it first. Not where something else had been
    /// the limit before: the application, or the other end's window, which then left less than `slack`.
    pub(crate) fn fills_slow_start(&self, una: u64, slack: u64, mss: u64) -> bool {
        let grown = self.last_opening + una.saturating_sub(self.last_begin);
        self.last_opening > 0 && self.peak.abs_diff(grown) <= 2 * mss && self.last_room >= slack
    }

    /// New data has left: what comes after the last of it is no round of growth.
    pub(crate) fn note_data(&mut self) {
        let grown = self.has_grown();
        self.at_data = (self.growing + u32::from(grown), if grown { 0 } else { self.steady });
    }

    /// Takes the bytes under way after data left or was acknowledged, and those that the other end's window leaves. Whether a
    /// round has ended, of which `last_peak` tells.
    pub(crate) fn take(&mut self, flight: u64, una: u64, high: u64, room: u64) -> bool {
        self.room = self.room.min(room);
        self.largest_peak = self.largest_peak.max(flight);
        self.busy_peak = self.busy_peak.max(flight);
        self.peak = self.peak.max(flight);
        let has_ended = self.end > 0 && una >= self.end;
        if has_ended {
            self.count += 1;
            self.growing += u32::from(self.has_grown());
            if self.peak * 2 < self.last_peak {
                self.growing = 0; // the sender had less to send: its window was not the limit
            }
            self.steady = if self.has_grown() { 0 } else { self.steady + 1 };
            self.last_peak = self.peak;
            (self.last_opening, self.last_room, self.last_begin) = (self.opening, self.room, self.begin);
            self.ceiling = self.ceiling.max(self.peak);
            self.end = 0;
        }
        if self.end == 0 {
            (self.peak, self.room) = (flight, room);
            self.begin = una;
        }
        if self.begin == una {
            self.opening = self.peak;
            self.end = if flight > 0 { high } else { 0 };
        }
        has_ended
    }
}

impl Half {
    /// The MSS that counts for this direction: what its own and the other end's SYN leave, or else the largest payload.
    pub(crate) fn mss(&self, other: &Half) -> u32 {
        match (self.syn.and_then(|syn| syn.mss), other.syn.and_then(|syn| syn.mss)) {
            (Some(own), Some(their)) => {
                let options = if self.has_timestamps(other) { 12 } else { 0 };
                u32::from(own.min(their)).saturating_sub(options).max(1)
            }
            _ if self.largest > 0 => self.largest,
            _ => MSS_DEFAULT,
        }
    }

    fn has_timestamps(&self, other: &Half) -> bool {
        let offered = |half: &Half| half.syn.is_some_and(|syn| syn.timestamps);
        offered(self) && offered(other)
    }

    /// Bytes that the other end's window still allows.
    pub(crate) fn room(&self) -> u64 {
        self.edge.saturating_sub(self.high)
    }

    /// Whether the loss at `una` is revealed, by SACK or duplicate acknowledgements.
    pub(crate) fn is_revealed(&self, duplicate_acks: u32) -> bool {
        self.duplicate_acks >= duplicate_acks || self.flight.sacked_bytes() > 0
    }

    /// Takes the window in an acknowledgement, as far as it is known. `shift`: how far it is scaled.
    pub(crate) fn hear_window(&mut self, segment: &Segment, ack: u64, shift: Option<u8>) {
        match shift {
            None => self.window_is_known = self.window_is_known && segment.window == 0,
            Some(shift) => {
                self.window_is_known = true;
                self.set_window(segment, ack, shift);
            }
        }
        self.counts.closings += u64::from(segment.window == 0 && !self.is_shut);
        self.is_shut = segment.window == 0;
        if self.is_shut {
            self.window = 0;
            self.edge = ack;
            self.window_is_known = true;
        }
    }

    fn set_window(&mut self, segment: &Segment, ack: u64, shift: u8) {
        self.window = u64::from(segment.window) << shift.min(14);
        self.largest_window = self.largest_window.max(self.window);
        self.edge = self.edge.max(ack + self.window);
        // A window may shrink, although it should not (RFC 9293 section 3.8.6).
        if ack >= self.una {
            self.edge = ack + self.window;
        }
    }
}
