//! The sending half of an endpoint: what to send, when to send it again, and how much at a time.
//!
//! It follows Linux 6.18 (`tcp_output.c`, `tcp_input.c`, `tcp_recovery.c`), whose names stand in brackets. Segments are
//! the unit of every count, as there.
//!
//! ```text
//!   application ──▶ written ──▶ output: window? cwnd? Nagle? small queue? pacing? ──▶ segments
//!                                   ▲                                                    │ queue (not acknowledged)
//!   acknowledgement ──▶ acks ──▶ losses (RACK) ──▶ recovery (PRR, undo) ──▶ cwnd ────────┘
//!                                   ▲
//!                   timers: reordering, tail-loss probe, RTO: one at a time
//! ```

mod acks;
mod losses;
mod opening;
mod output;
mod pacing;
mod path;
mod queue;
mod rates;
mod recovery;
mod timers;
mod usage;
mod writing;

use framegauge_frames::Picoseconds;

use self::pacing::Pace;
use self::path::Path;
use self::queue::Queue;
use self::rates::Rates;
use self::writing::Writing;
use crate::TcpSettings;
use crate::congestion::{Acked, Control, State, Window};
use crate::endpoint::Tick;
use crate::rtt::Rtt;

pub use self::counts::SenderCounts;

mod counts {
    /// What a sender did, by mechanism; the names are those of Linux' `TcpExt` counters where there is one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct SenderCounts {
        /// Segments with payload, resends included.
        pub segments: u64,
        /// Segments that were sent again.
        pub resends: u64,
        /// `TCPTimeouts`.
        pub timeouts: u64,
        /// Fast recoveries that began (`TCPSackRecovery`, `TCPRenoRecovery`).
        pub recoveries: u64,
        /// `TCPLossProbes`.
        pub probes: u64,
        /// Recoveries and timeouts that were taken back.
        pub undone: u64,
        /// Acknowledgements with a mark.
        pub marks: u64,
        /// Segments that were resent and lost again (`TCPLostRetransmit`).
        pub lost_resends: u64,
    }

    impl std::ops::AddAssign for SenderCounts {
        fn add_assign(&mut self, other: SenderCounts) {
            self.segments += other.segments;
            self.resends += other.resends;
            self.timeouts += other.timeouts;
            self.recoveries += other.recoveries;
            self.probes += other.probes;
            self.undone += other.undone;
            self.marks += other.marks;
            self.lost_resends += other.lost_resends;
        }
    }
}

/// What probes and the wait for what was overtaken add to a time (`TCP_TIMEOUT_MIN_US`).
const LEAST_TIMEOUT: Picoseconds = Picoseconds::from_nanoseconds(2_000_000);

const MILLISECOND: Picoseconds = Picoseconds::from_nanoseconds(1_000_000);

/// The one timer of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The head of the queue is sent again (RFC 6298).
    Timeout(Picoseconds),
    /// The tail is probed (RFC 8985 section 7).
    Probe(Picoseconds),
    /// What may have been overtaken is lost by now (RFC 8985 section 6.2).
    Reordering(Picoseconds),
    /// The window is closed (RFC 9293 section 3.8.6.1).
    Persist(Picoseconds),
}

impl Timer {
    pub(crate) fn deadline(self) -> Picoseconds {
        match self {
            Timer::Timeout(time) | Timer::Probe(time) | Timer::Reordering(time) | Timer::Persist(time) => {
                time
            }
        }
    }
}

/// The latest transmission of which it is known that it was delivered (RFC 8985 section 6.2).
#[derive(Debug, Clone, Copy, Default)]
struct Rack {
    sent: Picoseconds,
    end: u64,
    rtt: Picoseconds,
    advanced: bool,
    /// Window of reordering, in quarters of the least RTT.
    steps: u32,
    has_seen_reordering: bool,
    /// How many segments one was overtaken by at most, three at least (`tp->reordering`).
    degree: u32,
}

/// cwnd limits the sender, or something else does (`tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    is_limited: bool,
    most_out: u32,
    round_end: u64,
    used: u32,
    since: Picoseconds,
}

/// What is needed to take a reduction of cwnd back.
#[derive(Debug, Clone, Copy, Default)]
struct Undo {
    /// Where it began, if it can be.
    marker: Option<u64>,
    /// Resends of that time that were not told to be duplicates.
    resends: i64,
    cwnd: u32,
    ssthresh: u32,
    /// When the first segment was sent again, in milliseconds of the timestamps option.
    first_resend: Option<u32>,
}

/// Proportional rate reduction (RFC 6937).
#[derive(Debug, Clone, Copy, Default)]
struct Reduction {
    prior_cwnd: u32,
    delivered: u32,
    out: u32,
}

/// The sending half.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) mss: u32,
    path: Path,
    /// Everything before is acknowledged (`snd_una`).
    pub(crate) unacknowledged: u64,
    /// The next new sequence number (`snd_nxt`).
    pub(crate) next: u64,
    /// The application has written up to here, without the FIN.
    pub(crate) written: u64,
    /// The application has no more; the FIN follows.
    pub(crate) is_closing: bool,
    writing: Writing,
    /// The peer's window ends here.
    pub(crate) window_end: u64,
    pub(crate) peer_window: u32,
    /// Of the segment that said so (`snd_wl1`).
    pub(crate) window_sequence: u64,
    pub(crate) queue: Queue,
    pub(crate) window: Window,
    control: Control,
    pub(crate) rtt: Rtt,
    pub(crate) state: State,
    /// The state ends when this is acknowledged (`high_seq`).
    high: u64,
    rack: Rack,
    usage: Usage,
    undo: Undo,
    reduction: Reduction,
    /// A tail-loss probe ends when this is acknowledged; whether it sent something again.
    probe: Option<(u64, bool)>,
    /// F-RTO (RFC 5682).
    may_be_spurious: bool,
    /// Its SYN answers another.
    pub(crate) answers_syn: bool,
    /// Timeouts in a row.
    timeouts: u32,
    /// What SACK blocks said the last time: they are not gone through again.
    known_blocks: [(u64, u64); 4],
    pub(crate) timer: Option<Timer>,
    pub(crate) pace: Pace,
    /// Bytes handed to the NIC that have not left, and when the last of them does.
    pub(crate) held: crate::small_queue::SmallQueue,
    /// The end of the last segment that was not full (`snd_sml`).
    last_small: u64,
    /// The begin of the last super-segment.
    last_part: u64,
    pub(crate) last_sent: Picoseconds,
    delivered: u64,
    delivered_marked: u64,
    lost: u64,
    /// For BBR alone.
    rates: Rates,
    /// Of BBR's draws.
    pub(crate) seed: u64,
    /// A mark was seen; tell the peer that cwnd shrank (CWR).
    pub(crate) owes_reduction: bool,
    pub(crate) is_ecn: bool,
    pub(crate) counts: SenderCounts,
}

impl Sender {
    pub(crate) fn new(mss: u32, settings: &TcpSettings) -> Sender {
        Sender {
            mss: Path::first_mss(mss, settings),
            path: Path::new(mss, settings),
            unacknowledged: 0,
            next: 0,
            written: 1,
            is_closing: false,
            writing: Writing::default(),
            window_end: 1,
            peer_window: 0,
            window_sequence: 0,
            queue: Queue::default(),
            window: Window::new(settings),
            control: Control::new(settings),
            rtt: Rtt::new(settings.minimum_rto, settings.initial_rto),
            state: State::Open,
            high: 0,
            rack: Rack { steps: 1, degree: acks::USUAL_DEGREE, ..Rack::default() },
            usage: Usage::default(),
            undo: Undo::default(),
            reduction: Reduction::default(),
            probe: None,
            may_be_spurious: false,
            answers_syn: false,
            timeouts: 0,
            known_blocks: [(0, 0); 4],
            timer: None,
            pace: Pace::default(),
            held: crate::small_queue::SmallQueue::default(),
            last_small: 0,
            last_part: 0,
            last_sent: Picoseconds::ZERO,
            delivered: 0,
            delivered_marked: 0,
            lost: 0,
            rates: Rates::default(),
            seed: 0,
            owes_reduction: false,
            is_ecn: false,
            counts: SenderCounts::default(),
        }
    }

    /// Whether cwnd shrinks by proportional rate reduction.
    fn is_reducing(&self) -> bool {
        matches!(self.state, State::Reduced | State::Recovery)
    }

    /// The threshold now (`tcp_current_ssthresh`).
    fn current_threshold(&self) -> u32 {
        match self.is_reducing() {
            true => self.window.ssthresh,
            false => self.window.ssthresh.max((self.window.cwnd >> 1) + (self.window.cwnd >> 2)),
        }
    }

    fn acked(&self, tick: &impl Tick, rtt: Option<Picoseconds>) -> Acked {
        let rate = self.pacing_rate(tick.settings()).unwrap_or(0);
        let burst = match rate {
            0 => Picoseconds::ZERO,
            rate => Picoseconds::from_nanoseconds(tick.settings().gso_payload() * 4 * 1_000_000_000 / rate),
        };
        Acked {
            now: tick.now(),
            rtt,
            unacknowledged: self.unacknowledged,
            next: self.next,
            delivered: self.delivered,
            delivered_marked: self.delivered_marked,
            burst,
            is_paced: self.is_paced(),
        }
    }

    /// Everything that was written is acknowledged, the FIN included.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.unacknowledged == self.written + u64::from(self.is_closing)
    }

    /// When the sender must be woken.
    pub(crate) fn deadline(&self) -> Option<Picoseconds> {
        self.timer.map(Timer::deadline)
    }
}
