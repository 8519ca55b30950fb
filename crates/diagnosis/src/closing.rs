//! The end of a connection: what was kept aside gets its cause, and what only the whole life tells gets its name.

use crate::Thresholds;
use crate::connection::{Connection, SIDES, Side};
use crate::detectors::{ClosedWindow, Detector};
use crate::findings::{Ends, Finding, Tally};
use crate::flows::Flow;
use crate::half::Half;
use crate::kinds::Kind;
use crate::outage::Outages;
use crate::picture::Picture;
use crate::repairs::Reasons;
use crate::steps::Witness;
use crate::words;
use framegauge_packets::SynOptions;
use serde::Serialize;
use std::collections::BTreeMap;

/// Kinds of which each shows that something was lost.
const LOSSES: [Kind; 7] = [
    Kind::RtoStall,
    Kind::TailLoss,
    Kind::FastRetransmit,
    Kind::DoubleLoss,
    Kind::PmtuBlackHole,
    Kind::ReorderingTimer,
    Kind::BadChecksum,
];

/// A connection of the capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// Its number, from 1 in the order of the first packets.
    pub connection: u64,
    /// Its ends.
    #[serde(flatten)]
    pub ends: Ends,
    /// Since the capture's first packet, in seconds.
    pub begin_seconds: f64,
    /// Its last packet.
    pub end_seconds: f64,
    /// The RTT between the ends, in seconds: the smallest that was seen.
    pub rtt_seconds: f64,
    /// The retransmission timeout that each end had in the end, in seconds: an estimate from the tap (RFC 6298).
    pub rto_seconds: [f64; 2],
    /// The MSS that each end announced, client and server.
    pub mss: [Option<u16>; 2],
    /// How far the ends scale their windows; null: the option was missing.
    pub window_scale: [Option<u8>; 2],
    /// Both ends permit SACK.
    pub sack: bool,
    /// Both ends use timestamps.
    pub timestamps: bool,
    /// Multipath TCP was among the options.
    pub multipath: bool,
    /// The capture has its handshake.
    pub has_handshake: bool,
    /// Bytes that each end sent, resends not counted.
    pub bytes: [u64; 2],
    /// Segments with data.
    pub data_segments: [u64; 2],
    /// Segments that were sent again.
    pub resent_segments: [u64; 2],
    /// Bytes that were sent again.
    pub resent_bytes: [u64; 2],
    /// Why: segments with data that were sent again, by reason.
    pub resends: [Reasons; 2],
    /// The most bytes under way at a time.
    pub largest_flight_bytes: [u64; 2],
    /// The largest payload of one segment that each end sent, in bytes: the MSS is at least so much. Aggregates do not count.
    pub largest_segment_bytes: [u64; 2],
    /// The time of its life by cause, in seconds; they add up to it.
    pub time: BTreeMap<&'static str, f64>,
}

/// A connection that ended, with what was found in it.
pub(crate) struct Ended {
    pub(crate) report: ConnectionReport,
    pub(crate) findings: Vec<Finding>,
    pub(crate) stalls: Vec<(i64, Side)>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) ends: Ends,
    pub(crate) rtt: i64,
    pub(crate) reset_by: Option<Side>,
    pub(crate) last: i64,
    pub(crate) picture: Option<Box<Picture>>,
    pub(crate) witnesses: Vec<Witness>,
}

impl Connection {
    /// Ends it. `origin`: the time of the capture's first packet.
    pub(crate) fn end(mut self, origin: i64, limits: &Thresholds) -> Ended {
        let last = self.last;
        SIDES.into_iter().for_each(|side| self.take_waiting(side, last));
        if let Some(held) = self.held.take() {
            let kind = held.kind.unwrap_or(Kind::ApplicationLimited);
            self.note(kind, held.begin, held.end, held.end - held.begin, &held.packets);
        }
        for side in SIDES {
            self.end_repairs(side);
            if let Some(episode) = self.half_mut(side).silences.take_present() {
                self.keep_unanswered(&episode, side);
                self.end_episode(episode, side, last, None);
            }
            self.settle_unfilled(side, limits);
            self.settle_silence(side);
            self.settle_doubtful(side);
            self.end_watch(side);
            self.settle_suspects(side);
            self.settle_closed_holes(side);
        }
        self.show(|detectors, of, account| detectors.end(of, limits, account));
        self.judge_needless();
        self.rename_rare(Kind::NagleDelayedAck, limits.repeats, Kind::ApplicationLimited);
        self.count_unheard();
        self.count_challenges();
        self.judge_syns();
        self.judge_notes();
        self.judge_checksums();
        self.judge_tracking();
        self.judge_breaches();
        let flows = self.flows();
        let time = self.time();
        let findings = self.findings(origin, limits);
        Ended {
            report: self.report(origin, time),
            findings,
            stalls: std::mem::take(&mut self.stalls),
            flows,
            ends: self.ends,
            rtt: self.path_rtt(),
            // A refusal, or what only asked, cut nothing off.
            reset_by: self.reset_by.filter(|_| self.was_cut_off()),
            last,
            picture: self.picture.take(),
            witnesses: self
                .witnesses
                .iter()
                .map(|witness| Witness { rtt: self.path_rtt(), ..*witness })
                .collect(),
        }
    }

    /// Where all that was sent again was needless, nothing was lost that made the congestion window small, and there was no storm
    /// of losses.
    fn judge_needless(&mut self) {
        let is_loss = |tally: &Tally| LOSSES.contains(&tally.kind);
        if self.repeated_needlessly() && !self.tallies.iter().any(is_loss) {
            self.rename(Kind::CwndCollapse, Kind::NetworkLimited);
            self.tallies.retain(|tally| tally.kind != Kind::RetransmitStorm);
        }
    }

    fn repeated_needlessly(&self) -> bool {
        self.tallies.iter().any(|tally| tally.kind == Kind::SpuriousRetransmit)
    }

    /// Holes that closed without a repeat: what closed them was overtaken, unless the capture lacks packets of that sender, of
    /// which any may be the repeat.
    fn settle_closed_holes(&mut self, sender: Side) {
        let half = self.half_mut(sender);
        let is_whole = half.counts.unseen_bytes() == 0;
        if let Some(closed) = half.closed_holes.take().filter(|_| is_whole) {
            self.add(&closed);
        }
    }

    /// A pattern that was seen too seldom to have its name.
    fn rename_rare(&mut self, kind: Kind, least: u32, other: Kind) {
        if self.tallies.iter().any(|tally| tally.kind == kind && tally.count < u64::from(least)) {
            self.rename(kind, other);
        }
    }

    /// All that was told as one kind is another.
    pub(crate) fn rename(&mut self, kind: Kind, other: Kind) {
        if let Some(place) = self.tallies.iter().position(|tally| tally.kind == kind) {
            let tally = self.tallies.swap_remove(place);
            let picture = self.picture.take();
            self.note(other, tally.begin, tally.end, tally.lost, &tally.packets);
            self.picture = picture;
            if let Some(picture) = &mut self.picture {
                picture.rename(kind, other);
            }
        }
    }

    pub(crate) fn lost(&self, kind: Kind) -> i64 {
        self.tallies.iter().filter(|tally| tally.kind == kind).map(|tally| tally.lost).sum()
    }

    /// The options of both SYNs, if the capture has them.
    pub(crate) fn syns(&self) -> Option<[SynOptions; 2]> {
        Some([self.halves[0].opening.options()?, self.halves[1].opening.options()?])
    }

    /// From its first packet to its last, in nanoseconds; at least 1.
    pub(crate) fn life(&self) -> i64 {
        (self.last - self.first).max(1)
    }

    /// The time by cause, in nanoseconds.
    fn time(&self) -> BTreeMap<&'static str, i64> {
        let mut causes = BTreeMap::new();
        if self.handshake > 0 {
            causes.insert("handshake", self.handshake);
        }
        for tally in self.tallies.iter().filter(|tally| tally.lost > 0) {
            *causes.entry(tally.kind.name()).or_insert(0) += tally.lost;
        }
        causes
    }

    fn findings(&self, origin: i64, limits: &Thresholds) -> Vec<Finding> {
        let seconds = |at: i64| (at - origin) as f64 / 1e9;
        let life = self.life();
        let busy = (life - self.lost(Kind::ApplicationLimited)).max(1);
        let mut findings: Vec<Finding> = self
            .tallies
            .iter()
            .filter(|tally| tally.kind.is_worth(tally.lost, life, busy, limits))
            .map(|tally| Finding {
                kind: tally.kind,
                connection: Some(self.number),
                begin_seconds: seconds(tally.begin),
                end_seconds: seconds(tally.end),
                count: tally.count,
                lost_seconds: tally.lost as f64 / 1e9,
                packets: tally.packets.clone(),
                text: words::text(self, tally),
                remedy: self.remedy(tally.kind),
            })
            .collect();
        findings.sort_by(|one, other| {
            other.lost_seconds.total_cmp(&one.lost_seconds).then(one.kind.cmp(&other.kind))
        });
        findings
    }

    /// What helps. Where a size may be the reason, or the other end had gone, no timer is.
    fn remedy(&self, kind: Kind) -> &'static str {
        let is_sized = kind == Kind::RtoStall && self.sizes.is_some_and(|sizes| sizes.is_of(kind));
        match self.tallies.iter().find(|tally| tally.kind == kind) {
            _ if is_sized => Kind::PmtuBlackHole.remedy(),
            _ if kind == Kind::SynLoss => self.remedy_of_syns(),
            _ if kind == Kind::ZeroWindow && self.answered_shut() => ClosedWindow::REMEDY_OF_OPENING,
            Some(tally) if tally.count == 1 && self.unanswered_of(tally).is_some() => Kind::DeadPeer.remedy(),
            Some(tally) if self.is_outage(tally) => Outages::REMEDY,
            _ => kind.remedy(),
        }
    }

    fn report(&self, origin: i64, time: BTreeMap<&'static str, i64>) -> ConnectionReport {
        let seconds = |at: i64| (at - origin) as f64 / 1e9;
        let both = |test: fn(&Half) -> bool| self.halves.iter().all(test);
        let per_side = |take: fn(&Half) -> u64| [take(&self.halves[0]), take(&self.halves[1])];
        ConnectionReport {
            connection: self.number,
            ends: self.ends,
            begin_seconds: seconds(self.first),
            end_seconds: seconds(self.last),
            rtt_seconds: self.path_rtt() as f64 / 1e9,
            rto_seconds: [0, 1].map(|side| self.halves[side].round_trip.timeout() as f64 / 1e9),
            mss: [0, 1].map(|side| self.halves[side].opening.options().and_then(|syn| syn.mss)),
            window_scale: [0, 1]
                .map(|side| self.halves[side].opening.options().and_then(|syn| syn.window_scale)),
            sack: both(|half| half.opening.options().is_some_and(|syn| syn.sack_permitted)),
            timestamps: both(|half| half.opening.options().is_some_and(|syn| syn.timestamps)),
            multipath: self.multipath,
            has_handshake: both(|half| half.opening.options().is_some()),
            bytes: per_side(|half| half.counts.bytes()),
            data_segments: per_side(|half| half.counts.data_segments()),
            resent_segments: per_side(|half| half.counts.resent_segments()),
            resent_bytes: per_side(|half| half.counts.resent_bytes()),
            resends: [0, 1].map(|side| self.halves[side].repairs.reasons()),
            largest_flight_bytes: per_side(|half| half.rounds.largest_peak()),
            largest_segment_bytes: per_side(|half| half.sent.largest_bytes().into()),
            time: time.into_iter().map(|(name, lost)| (name, lost as f64 / 1e9)).collect(),
        }
    }
}
