//! What a TCP endpoint is set to.

use framegauge_frames::{
    FRAME_OVERHEAD_BYTES, Family, Picoseconds, TCP_HEADER_BYTES, TIMESTAMPS_OPTION_BYTES, WIRE_OVERHEAD_BYTES,
};

use crate::Algorithm;

/// How slow start ends before anything is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hystart {
    /// It does not.
    Off,
    /// As CUBIC's in Linux (Ha and Rhee, "Taming the elephants", 2011); other algorithms have none.
    #[default]
    Linux,
    /// HyStart++ (RFC 9406), of every algorithm.
    Plus,
}

/// Whether a segment that is not full waits while data is unacknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nagle {
    /// It never waits: `TCP_NODELAY`.
    Off,
    /// It waits while an earlier one that was not full is unacknowledged: what Linux does (Minshall).
    #[default]
    Minshall,
    /// It waits while anything is unacknowledged (RFC 896).
    Classic,
}

/// Whether TCP looks for the path MTU by probes of its own (RFC 4821; `net.ipv4.tcp_mtu_probing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Probing {
    /// It does not.
    #[default]
    Off,
    /// Once timeouts in a row tell of a black hole.
    AfterBlackHole,
    /// From the beginning.
    Always,
}

/// The settings of a TCP endpoint. The defaults are those of Linux 6.18.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSettings {
    /// How cwnd grows and shrinks.
    pub algorithm: Algorithm,
    /// The initial window, in segments (RFC 6928).
    pub initial_window_segments: u32,
    /// Where the first slow start ends, in segments (the initial ssthresh of RFC 5681); none: where it meets a loss.
    pub slow_start_threshold_segments: Option<u32>,
    /// Selective acknowledgements (RFC 2018) with RACK-TLP (RFC 8985).
    pub sack: bool,
    /// The timestamps option (RFC 7323).
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Nagle's algorithm.
    pub nagle: Nagle,
    /// The smallest retransmission timeout beside the smoothed RTT (Linux' `rto_min`).
    pub minimum_rto: Picoseconds,
    /// The timeout before there is a sample of the RTT.
    pub initial_rto: Picoseconds,
    /// How long an acknowledgement may wait for another segment; zero: none waits.
    pub delayed_ack: Picoseconds,
    /// How many acknowledgements at the start of a connection do not wait (Linux' quick acknowledgements).
    pub quick_acks: u32,
    /// How slow start ends before anything is lost.
    pub hystart: Hystart,
    /// cwnd shrinks while nothing is sent for longer than an RTO (RFC 2861).
    pub slow_start_after_idle: bool,
    /// The largest super-segment that is handed to the NIC, in bytes of payload; 0: one segment at a time.
    pub gso_bytes: u32,
    /// A super-segment is doubled in size for each halving of an RTT below `1 << this` microseconds (`tcp_tso_rtt_log`); 0:
    /// its size is a millisecond's worth at the pacing rate, however short the RTT.
    pub tso_rtt_log: u32,
    /// Room for headers in every buffer (`MAX_TCP_HEADER`): 320 bytes in a kernel with wireless networks and tunnels, 192
    /// without.
    pub header_room_bytes: u32,
    /// A super-segment of more than that on the wire is cut in its host's queue (`tbf_segment`); 0: none is.
    pub uncut_bytes: u64,
    /// What a connection keeps in its host's queue at most, in bytes of memory (`tcp_limit_output_bytes`).
    pub output_limit_bytes: u64,
    /// The pacing rate in hundredths of cwnd per smoothed RTT, while cwnd is below half its threshold and otherwise
    /// (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    pub pacing_percent: (u32, u32),
    /// A NIC hands over neighbouring segments of one connection together (LRO, GRO).
    pub coalesces: bool,
    /// The receive buffer's window at the start, and the most that it grows to, in bytes.
    pub receive_window_bytes: (u32, u32),
    /// The timers' granularity: 4 ms with `CONFIG_HZ=250`.
    pub tick: Picoseconds,
    /// How long it believes what a router tells of a path MTU (`net.ipv4.route.mtu_expires`).
    pub path_mtu_expires: Picoseconds,
    /// Whether it looks for the path MTU.
    pub probing: Probing,
    /// The IP version.
    pub family: Family,
    /// Of BBR's draws.
    pub seed: u64,
}

impl Default for TcpSettings {
    fn default() -> Self {
        let milliseconds = |count: u64| Picoseconds::from_nanoseconds(count * 1_000_000);
        TcpSettings {
            algorithm: Algorithm::default(),
            initial_window_segments: 10,
            slow_start_threshold_segments: None,
            sack: true,
            timestamps: true,
            ecn: false,
            nagle: Nagle::default(),
            minimum_rto: milliseconds(200),
            initial_rto: milliseconds(1000),
            delayed_ack: milliseconds(40),
            quick_acks: 16,
            hystart: Hystart::default(),
            slow_start_after_idle: true,
            gso_bytes: 65_536,
            tso_rtt_log: 9,
            header_room_bytes: 320,
            uncut_bytes: 0,
            output_limit_bytes: 4_194_304,
            pacing_percent: (200, 120),
            coalesces: false,
            receive_window_bytes: (65_535, 16_777_216),
            tick: milliseconds(4),
            path_mtu_expires: milliseconds(600_000),
            probing: Probing::default(),
            family: Family::V4,
            seed: 0,
        }
    }
}

/// What a buffer takes in memory beside its payload and the room for headers: what describes it (`struct sk_buff`,
/// `struct skb_shared_info`), and what a small head has more room for (`SKB_SMALL_HEAD_SIZE`: `NET_SKB_PAD`).
const DESCRIPTION_BYTES: u64 = 256 + 320 + 64;

impl TcpSettings {
    /// What a buffer takes in memory beside its payload (`skb->truesize`): 832 bytes with a room of 192, as `ss -m` shows.
    pub(crate) fn buffer_overhead_bytes(&self) -> u64 {
        u64::from(self.header_room_bytes) + DESCRIPTION_BYTES
    }

    /// The largest super-segment, of payload (`sk_dst_gso_max_size`).
    pub(crate) fn gso_payload(&self) -> u64 {
        u64::from(self.gso_bytes.saturating_sub(self.header_room_bytes + 1))
    }

    /// Whether so many full segments and bytes of payload are cut in the host's queue.
    pub(crate) fn cuts(&self, bytes: u64, segments: u64) -> bool {
        let options = if self.timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
        let headers = FRAME_OVERHEAD_BYTES
            + WIRE_OVERHEAD_BYTES
            + self.family.header_bytes()
            + TCP_HEADER_BYTES
            + options;
        self.uncut_bytes > 0 && segments > 1 && bytes + segments * u64::from(headers) > self.uncut_bytes
    }

    /// When a timer of that span fires that is set now: never early, and at a tick.
    ///
    /// Linux' timer wheel (`kernel/time/timer.c`) counts ticks, rounds the span up, and adds the granularity of the level
    /// that it falls into: one tick up to 63, eight up to 504, and so on.
    pub fn expiry(&self, now: Picoseconds, span: Picoseconds) -> Picoseconds {
        let tick = self.tick.get();
        if tick == 0 {
            return now + span;
        }
        let start = now.get() / tick;
        let due = start + span.get().div_ceil(tick);
        let mut granularity = 1;
        while due - start >= 63 * granularity && granularity < 8u64.pow(8) {
            granularity *= 8;
        }
        Picoseconds::new((due + granularity) / granularity * granularity * tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_at_the_tick_after_theirs() {
        let settings = TcpSettings::default();
        let at = |now: u64, span: u64| {
            let [now, span] = [now, span].map(|us| Picoseconds::from_nanoseconds(us * 1000));
            settings.expiry(now, span).as_nanoseconds() / 1000
        };
        assert_eq!(at(0, 40_000), 44_000);
        assert_eq!(at(3_999, 40_000), 44_000);
        assert_eq!(at(4_000, 40_001), 52_000);
        // 300 ms are 75 ticks, which the second level holds: multiples of 32 ms.
        assert_eq!(at(0, 300_000), 320_000);
    }
}
