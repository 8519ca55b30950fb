//! Every segment as its end sends it, for those who compare exchanges one by one.

use framegauge_frames::Picoseconds;

use crate::endpoint::Endpoint;
use crate::segment::{Flags, Report, Segment};

/// A segment that was sent. Sequence numbers begin at 0 with the SYN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// When.
    pub time: Picoseconds,
    /// Connections are numbered in the order in which they were opened.
    pub connection: u32,
    /// From the side that opened it.
    pub from_client: bool,
    /// Of its first byte, or of its SYN or FIN.
    pub sequence: u64,
    /// Payload.
    pub bytes: u32,
    /// As in the header: FIN 1, SYN 2, ACK 16, ECE 64, CWR 128.
    pub flags: u8,
    /// The acknowledgement number.
    pub acknowledged: u64,
    /// The window that it announces.
    pub window_bytes: u32,
    /// SACK blocks, first and past-the-last numbers.
    pub blocks: Vec<(u64, u64)>,
    /// All of it was sent before.
    pub is_resend: bool,
    /// Of its sender, in segments, after all that was done at that time.
    pub cwnd_segments: u32,
    /// Likewise.
    pub ssthresh_segments: u32,
    /// The timestamps option, its own and the one that it answers; 0: none.
    pub stamps: (u32, u32),
    /// Of its IP header.
    pub identification: u16,
    /// What its IP header says of congestion: ECT(0) 2, CE 3, neither 0 (RFC 3168).
    pub ecn: u8,
    /// It is no segment, but a router's ICMP error of `bytes` bytes about one with that sequence number of the other side.
    pub report: Option<Report>,
}

impl Logged {
    /// A segment as it is at that time.
    pub(crate) fn of(time: Picoseconds, segment: &Segment) -> Logged {
        let flag = |flag, bit: u8| if segment.flags.has(flag) { bit } else { 0 };
        let ecn = match (segment.is_marked, segment.is_ecn_capable) {
            (true, _) => 3,
            (false, capable) => 2 * u8::from(capable),
        };
        Logged {
            time,
            connection: segment.from / 2,
            from_client: segment.from.is_multiple_of(2),
            sequence: segment.sequence,
            bytes: segment.bytes,
            flags: flag(Flags::FIN, 1)
                | flag(Flags::SYN, 2)
                | flag(Flags::ACK, 16)
                | flag(Flags::ECE, 64)
                | flag(Flags::CWR, 128),
            acknowledged: segment.acknowledged,
            window_bytes: segment.window_bytes,
            blocks: segment.blocks.ranges(segment.acknowledged).collect(),
            is_resend: false,
            cwnd_segments: 0,
            ssthresh_segments: 0,
            stamps: (segment.stamp, segment.echo),
            identification: segment.identification,
            ecn,
            report: segment.report(),
        }
    }
}

/// What was sent so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    pub(crate) segments: Vec<Logged>,
    /// By endpoint: the end of what it has sent.
    ends: Vec<u64>,
    /// Of how many the windows are known.
    completed: usize,
}

impl Log {
    pub(crate) fn note(&mut self, now: Picoseconds, segment: &Segment) {
        let from = segment.from as usize;
        if self.ends.len() <= from {
            self.ends.resize(from + 1, 0);
        }
        let is_resend = segment.end() > segment.sequence && segment.end() <= self.ends[from];
        self.ends[from] = self.ends[from].max(segment.end());
        self.segments.push(Logged { is_resend, ..Logged::of(now, segment) });
    }

    /// What was sent since the last call was sent by these.
    pub(crate) fn note_windows(&mut self, ends: &[Endpoint; 2]) {
        for logged in &mut self.segments[self.completed..] {
            let window = &ends[usize::from(!logged.from_client)].send.window;
            logged.cwnd_segments = window.cwnd;
            logged.ssthresh_segments = window.ssthresh;
        }
        self.completed = self.segments.len();
    }
}
