//! The names of problems, what each means in plain words, and what helps.

use serde::Serialize;

/// A named problem, or a property of a capture that limits what can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Silence until a retransmission timeout, with more data waiting behind.
    RtoStall,
    /// The last segments of a burst were lost, so that nothing after them could reveal it.
    TailLoss,
    /// Loss that duplicate acknowledgements or SACK revealed, repaired within about an RTT.
    FastRetransmit,
    /// A retransmission was lost, too.
    DoubleLoss,
    /// Data was sent again that had arrived.
    SpuriousRetransmit,
    /// A small segment waits at the sender for an acknowledgement that the receiver delays.
    NagleDelayedAck,
    /// Packets above some size vanish without an ICMP error.
    PmtuBlackHole,
    /// The two ends announce different MSS.
    MssMismatch,
    /// The receiver closed its window.
    ZeroWindow,
    /// The receiver's window was the limit.
    ReceiverLimited,
    /// The application had nothing to send.
    ApplicationLimited,
    /// The window was open and data waited, and nothing was sent.
    SenderStall,
    /// The congestion window and the path were the limit.
    NetworkLimited,
    /// The RTT grew with the data under way: a queue on the path.
    Bufferbloat,
    /// The network delivered segments in another order.
    Reordering,
    /// A SYN or SYN-ACK was repeated.
    SynLoss,
    /// A SYN was answered by a reset, or by an ICMP error alone.
    ConnectionRefused,
    /// A connection ended by a reset.
    Reset,
    /// Many resets from one host within a second.
    ResetStorm,
    /// No window scaling, and the window of 64 KiB was the limit.
    WindowScalingOff,
    /// Small segments because the receiver opens its window by small steps.
    SillyWindow,
    /// What was under way fell to a fraction after a loss.
    CwndCollapse,
    /// After a pause the sender began with a small window again.
    IdleRestart,
    /// Much of what was sent was sent again.
    RetransmitStorm,
    /// The transfer ended while its window still grew.
    ShortFlowSlowStart,
    /// Many senders to one receiver fell silent together.
    Incast,
    /// Few flows by one input starve beside many by another.
    Outcast,
    /// Something that TCP does not allow.
    ProtocolViolation,
    /// The other end still had an older connection of the same ports, and said so.
    ChallengeAck,
    /// The receiver discards what the sender's timestamps make older than it is.
    Paws,
    /// Probes that ask whether the other end lives were not answered.
    DeadPeer,
    /// Time that no named cause explains.
    Unexplained,
    /// The capture has packets twice.
    CaptureDuplicates,
    /// The capture lacks packets that were delivered.
    CaptureLoss,
    /// The capture has one direction only.
    HalfCapture,
    /// Stamps that go back.
    CaptureMisordered,
    /// Segments above the MSS: captured before TSO cut them, or after GRO merged them.
    Aggregates,
    /// Checksums that a NIC was still to fill in.
    ChecksumOffload,
    /// Packets were cut by the capture's length.
    Truncated,
}

impl Kind {
    /// Whether it is about the capture, not the network.
    pub fn is_quality(self) -> bool {
        self >= Kind::CaptureDuplicates
    }

    /// What helps against it, in one sentence.
    pub fn remedy(self) -> &'static str {
        REMEDIES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, remedy)| remedy)
    }

    /// Which kinds there are.
    pub const ALL: [Kind; 39] = [
        Kind::RtoStall,
        Kind::TailLoss,
        Kind::FastRetransmit,
        Kind::DoubleLoss,
        Kind::SpuriousRetransmit,
        Kind::NagleDelayedAck,
        Kind::PmtuBlackHole,
        Kind::MssMismatch,
        Kind::ZeroWindow,
        Kind::ReceiverLimited,
        Kind::ApplicationLimited,
        Kind::SenderStall,
        Kind::NetworkLimited,
        Kind::Bufferbloat,
        Kind::Reordering,
        Kind::SynLoss,
        Kind::ConnectionRefused,
        Kind::Reset,
        Kind::ResetStorm,
        Kind::WindowScalingOff,
        Kind::SillyWindow,
        Kind::CwndCollapse,
        Kind::IdleRestart,
        Kind::RetransmitStorm,
        Kind::ShortFlowSlowStart,
        Kind::Incast,
        Kind::Outcast,
        Kind::ProtocolViolation,
        Kind::ChallengeAck,
        Kind::Paws,
        Kind::DeadPeer,
        Kind::Unexplained,
        Kind::CaptureDuplicates,
        Kind::CaptureLoss,
        Kind::HalfCapture,
        Kind::CaptureMisordered,
        Kind::Aggregates,
        Kind::ChecksumOffload,
        Kind::Truncated,
    ];
}

const REMEDIES: [(Kind, &str); 39] = [
    (
        Kind::RtoStall,
        "Find where the packets are dropped (buffers, errors); enable SACK and RACK-TLP; inside a data centre lower the minimum RTO (ip route … rto_min).",
    ),
    (
        Kind::TailLoss,
        "Find where the packets are dropped; keep tail-loss probes on (net.ipv4.tcp_early_retrans=3).",
    ),
    (
        Kind::FastRetransmit,
        "Find where the packets are dropped: port counters on the path, errors, policers, small buffers.",
    ),
    (
        Kind::DoubleLoss,
        "Loss is so heavy that repairs are lost, too: look for a policer, a full queue or a bad link.",
    ),
    (
        Kind::SpuriousRetransmit,
        "Look for reordering or delay spikes on the path; keep timestamps, D-SACK and F-RTO on.",
    ),
    (
        Kind::NagleDelayedAck,
        "Set TCP_NODELAY in the sending application, or write a message at once (writev, MSG_MORE).",
    ),
    (
        Kind::PmtuBlackHole,
        "`framegauge check` finds the link: mend its MTU, or let ICMP \"fragmentation needed\" pass; net.ipv4.tcp_mtu_probing=1 helps meanwhile.",
    ),
    (
        Kind::MssMismatch,
        "Check that both hosts are meant to have different MTUs: `framegauge check` says what the path carries.",
    ),
    (
        Kind::ZeroWindow,
        "The receiving application does not read fast enough: profile it, or give it larger receive buffers.",
    ),
    (
        Kind::ReceiverLimited,
        "Raise the receiver's buffer limit (net.ipv4.tcp_rmem), or remove the application's SO_RCVBUF.",
    ),
    (Kind::ApplicationLimited, "The network waits for the application: look there."),
    (
        Kind::SenderStall,
        "The sending host did not send although it could: look for CPU starvation, pacing, qdiscs or SO_SNDBUF there.",
    ),
    (
        Kind::NetworkLimited,
        "The path and congestion control set the pace: compare its rate with that of the slowest link.",
    ),
    (Kind::Bufferbloat, "Bound the queue on the path (fq_codel, ECN), or the window of the senders."),
    (
        Kind::Reordering,
        "Look for per-packet load balancing (bonding mode 0, spraying) or several queues on the path.",
    ),
    (
        Kind::SynLoss,
        "Look for a full accept queue (ss -ltn, ListenOverflows), a firewall, or loss on the path.",
    ),
    (Kind::ConnectionRefused, "Nothing listens at this address and port, or a firewall rejects."),
    (
        Kind::Reset,
        "Look at the end that reset: a crash, a timeout, or a middlebox that forgot the connection.",
    ),
    (
        Kind::ResetStorm,
        "One host resets many connections: a service restarts or is overloaded, or a firewall lost its state.",
    ),
    (
        Kind::WindowScalingOff,
        "Turn net.ipv4.tcp_window_scaling on at both ends; look for a middlebox that removes the option.",
    ),
    (
        Kind::SillyWindow,
        "The receiving application reads by small steps; read more at once, or enlarge its buffer.",
    ),
    (Kind::CwndCollapse, "Find where the packets are dropped: each loss costs a part of the window."),
    (Kind::IdleRestart, "Set net.ipv4.tcp_slow_start_after_idle=0 where bursts after pauses are harmless."),
    (
        Kind::RetransmitStorm,
        "Loss is heavy: look for a policer, a duplex mismatch, a full queue or a bad link.",
    ),
    (Kind::ShortFlowSlowStart, "Keep connections open, or raise the initial window (ip route … initcwnd)."),
    (Kind::Incast, "Fewer senders at once, larger or shared buffers, ECN (DCTCP), or a lower minimum RTO."),
    (
        Kind::Outcast,
        "Fair or random queueing (FQ-CoDel, SFQ, RED) at the receiver's switch port instead of tail drop, or ECN.",
    ),
    (Kind::ProtocolViolation, "Look for a middlebox that rewrites, or a broken stack."),
    (
        Kind::ChallengeAck,
        "Let clients use other ports, or end their connections: a crashed client, a NAT or a firewall forgot this one.",
    ),
    (
        Kind::Paws,
        "Look for a NAT or balancer that puts several hosts behind one address, or for a clock that went back; else turn net.ipv4.tcp_timestamps off at one end.",
    ),
    (
        Kind::DeadPeer,
        "Look for a crash of the other end, or a firewall between that forgot the connection and drops what it does not know.",
    ),
    (Kind::Unexplained, "No known cause fits: look at the packets named."),
    (Kind::CaptureDuplicates, "A mirror port sends packets in and out: capture one direction."),
    (Kind::CaptureLoss, "Capture with larger buffers, fewer bytes per packet, or a filter."),
    (Kind::HalfCapture, "Capture both directions."),
    (Kind::CaptureMisordered, "Sort the capture (reordercap), or capture on one queue."),
    (Kind::Aggregates, "Nothing to mend: sizes on the wire are smaller than they seem here."),
    (Kind::ChecksumOffload, "Nothing to mend: the NIC fills them in after the capture."),
    (
        Kind::Truncated,
        "Nothing to mend where all headers are whole; else capture at least 128 bytes per packet.",
    ),
];
