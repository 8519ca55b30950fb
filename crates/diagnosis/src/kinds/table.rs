//! All kinds of findings, a row each. It is longer than other files because it is one table.
//!
//! - `means`: by which rule it is told, in the words of the documentation, which lists the rows. `headline`: as a cause.
//! - `says`: one sentence about a finding. Where many connections tell together (`Told::headline`), their detector writes it.
//! - `limits`: those that decide it. `least`: how much time must be lost; its limits belong to them.

use super::{About, Group, Least, Row};
use crate::Thresholds;
use crate::connection::Connection;
use crate::quality::packets;
use crate::words::duration;

kinds! {
    RtoStall {
        name: "rto_stall", about: Problem, group: Loss, least: Any,
        means: "silence until a retransmission timeout, while more data was waiting",
        headline: "The sender fell silent until its retransmission timer ran out",
        says: |told| format!(
            "The sender fell silent {}, {} in all, until its retransmission timer ran out, while more data was waiting.",
            told.times(), told.lost()
        ),
        remedy: "Find where the packets are dropped (buffers, errors); enable SACK and RACK-TLP; inside a data centre lower the minimum RTO (ip route … rto_min).",
        limits: [pause_rtts, pause_nanoseconds],
    }
    TailLoss {
        name: "tail_loss", about: Problem, group: Loss, least: Any,
        means: "the last segments of a burst were lost, and nothing after them revealed it",
        headline: "The last segments of a burst were lost",
        says: |told| format!(
            "The last segments of a burst were lost {}; it took {} until they were sent again, because nothing after them revealed the loss.",
            told.times(), told.lost()
        ),
        remedy: "Find where the packets are dropped; keep tail-loss probes on (net.ipv4.tcp_early_retrans=3).",
        limits: [pause_rtts, pause_nanoseconds],
    }
    FastRetransmit {
        name: "fast_retransmit", about: Problem, group: Loss, least: Any,
        means: "loss that SACK or three duplicate acknowledgements revealed (RFC 5681, RFC 6675); costs about an RTT",
        headline: "Segments were lost, and sent again within about an RTT",
        says: |told| format!(
            "Loss was repaired {} after duplicate or selective acknowledgements, within about an RTT each.",
            told.times()
        ),
        remedy: "Find where the packets are dropped: port counters on the path, errors, policers, small buffers.",
        limits: [duplicate_acks],
    }
    DoubleLoss {
        name: "double_loss", about: Problem, group: Loss, least: Any,
        means: "a retransmission was lost, too, whether the timer or SACK told",
        headline: "A retransmission was lost, too",
        says: |told| format!(
            "A retransmission was lost, too ({}), and what it carried had to be sent once more{}.", told.times(), told.waited()
        ),
        remedy: "Loss is so heavy that repairs are lost, too: look for a policer, a full queue or a bad link.",
        limits: [duplicate_acks],
    }
    SpuriousRetransmit {
        name: "spurious_retransmit", about: Problem, group: Loss, least: Any,
        means: "data that had arrived was sent again: by D-SACK (RFC 2883), timestamps (RFC 3522), or an acknowledgement before it",
        headline: "Data that had arrived was sent again",
        says: |told| format!(
            "Data that had arrived was sent again {}: the receiver says so (D-SACK, timestamps), or its acknowledgement had passed.", told.times()
        ),
        remedy: "Look for reordering or delay spikes on the path; keep timestamps, D-SACK and F-RTO on.",
        limits: [],
    }
    NagleDelayedAck {
        name: "nagle_delayed_ack", about: Problem, group: Sender, least: Any,
        means: "a segment below the MSS left within 2 ms of an acknowledgement that came 30 to 520 ms late; 3 times",
        headline: "Nagle's algorithm waited for a delayed acknowledgement",
        says: |told| format!(
            "A small segment was held back {} until the receiver's delayed acknowledgement came: {} in all (Nagle's algorithm).",
            told.times(), told.lost()
        ),
        remedy: "Set TCP_NODELAY in the sending application, or write a message at once (writev, MSG_MORE).",
        limits: [delayed_ack_least, delayed_ack_most, held_nanoseconds, repeats],
    }
    PmtuBlackHole {
        name: "pmtu_black_hole", about: Problem, group: Loss, least: Any,
        means: "resends larger than all that arrived, ever or since a time, stay unanswered: see below",
        headline: "Packets above some size vanish on the way",
        says: |told| format!(
            "Large segments were sent again and never arrived, while smaller ones did ({}, {} in all): packets above some size vanish on the way.",
            told.times(), told.lost()
        ),
        remedy: "`framegauge check` finds the link: mend its MTU, or let ICMP \"fragmentation needed\" pass; net.ipv4.tcp_mtu_probing=1 helps meanwhile.",
        limits: [pause_rtts, pause_nanoseconds],
    }
    MssMismatch {
        name: "mss_mismatch", about: Note, group: Network, least: Any,
        means: "the two SYNs announce different MSS",
        headline: "The two ends announce different MSSs",
        says: |told| format!(
            "The client announces an MSS of {}, the server of {}: the hosts have different MTUs, or a middlebox clamps one.",
            told.mss(0), told.mss(1)
        ),
        remedy: "Check that both hosts are meant to have different MTUs: `framegauge check` says what the path carries.",
        limits: [],
    }
    IpFragments {
        name: "ip_fragments", about: Note, group: Network, least: Any,
        means: "segments came in IP fragments: something cut packets that were too large for a link (RFC 791, RFC 8200)",
        headline: "Segments came in IP fragments",
        says: |told| told.detail(Connection::fragments_in_words),
        remedy: "Let senders know what the path carries: the MTU of that link on the hosts, or an MSS clamped there; `framegauge check` finds it. A lost fragment costs the whole segment, and many firewalls drop fragments.",
        limits: [],
    }
    ZeroWindow {
        name: "zero_window", about: Problem, group: Receiver, least: Any,
        means: "the receiver closed its window",
        headline: "The receiving application did not read",
        says: |told| told.detail(Connection::closings_in_words),
        remedy: "The receiving application does not read fast enough: profile it, or give it larger receive buffers.",
        limits: [],
    }
    ReceiverLimited {
        name: "receiver_limited", about: Problem, group: Receiver, least: OfLife,
        means: "less than three segments of the receiver's window were left, and slow start had not ended there as well; a tenth of the life or more",
        headline: "The receiver's window was the limit",
        says: |told| format!("The receiver's window was the limit for {}.", told.lost()),
        remedy: "Raise the receiver's buffer limit (net.ipv4.tcp_rmem), or remove the application's SO_RCVBUF.",
        limits: [window_slack_segments, share_of_life, pause_nanoseconds],
    }
    ApplicationLimited {
        name: "application_limited", about: Pace, group: Idle, least: OfLife,
        means: "nothing was under way: the application had nothing to send",
        headline: "The application had nothing to send",
        says: |told| format!("The application had nothing to send for {}.", told.lost()),
        remedy: "The network waits for the application: look there.",
        limits: [share_of_life, pause_nanoseconds],
    }
    SenderStall {
        name: "sender_stall", about: Problem, group: Sender, least: OfLife,
        means: "a full segment that ended no write was acknowledged, and nothing followed in an open window: see below",
        headline: "The sender paused with an open window and more to send",
        says: |told| format!(
            "The sender paused {}, {} in all, although the window was open and it had more to send.",
            told.times(), told.lost()
        ),
        remedy: "The sending host did not send although it could: look for CPU starvation, pacing, qdiscs or SO_SNDBUF there.",
        limits: [pause_rtts, share_of_life, pause_nanoseconds],
    }
    NetworkLimited {
        name: "network_limited", about: Pace, group: Way, least: OfLife,
        means: "data was under way: the congestion window and the path were the limit",
        headline: "The congestion window and the path were the limit",
        says: |told| format!(
            "The congestion window and the path were the limit for {}.{}", told.lost(), told.change()
        ),
        remedy: "The path and congestion control set the pace: compare its rate with that of the slowest link.",
        limits: [share_of_life, pause_nanoseconds],
    }
    Bufferbloat {
        name: "bufferbloat", about: Problem, group: Network, least: OfLife,
        means: "the RTT was above five times its minimum and 1 ms more",
        headline: "A queue on the path made the RTT long",
        says: |told| format!(
            "The RTT was far above its minimum of {} for {}: a queue on the path.", duration(told.rtt()), told.lost()
        ),
        remedy: "Bound the queue on the path (fq_codel, ECN), or the window of the senders.",
        limits: [bloat_factor, bloat_nanoseconds, share_of_life, pause_nanoseconds],
    }
    Reordering {
        name: "reordering", about: Problem, group: Network, least: Any,
        means: "a hole that SACK showed closed without anything being sent again",
        headline: "Segments arrived in another order",
        says: |told| format!(
            "Segments arrived in another order {}: holes closed without anything being sent again.", told.times()
        ),
        remedy: "Look for per-packet load balancing (bonding mode 0, spraying) or several queues on the path.",
        limits: [],
    }
    SynLoss {
        name: "syn_loss", about: Problem, group: Loss, least: Any,
        means: "a SYN or SYN-ACK was repeated",
        headline: "The handshake had to be repeated",
        says: |told| format!(
            "The handshake was repeated {}, which took {}.{}", told.times(), told.lost(), told.syns()
        ),
        remedy: "Look for a full accept queue (ss -ltn, ListenOverflows), a firewall, or loss on the path.",
        limits: [],
    }
    ConnectionRefused {
        name: "connection_refused", about: Problem, group: Other, least: Any,
        means: "a reset answered the SYN, or nobody but an ICMP error (RFC 1122 section 4.2.3.9)",
        headline: "A connection was refused",
        says: |told| told.refusal(),
        remedy: "Nothing listens at this address and port, or a firewall rejects.",
        limits: [],
    }
    Reset {
        name: "reset", about: Problem, group: Other, least: Any,
        means: "a reset cut the connection off",
        headline: "A connection was cut off by a reset",
        says: |told| told.detail(Connection::reset_in_words),
        remedy: "Look at the end that reset: a crash, a timeout, or a middlebox that forgot the connection.",
        limits: [],
    }
    ResetStorm {
        name: "reset_storm", about: Problem, group: Other, least: Any,
        means: "one host reset ten connections within a second",
        headline: "Many connections were cut off by resets",
        says: |told| told.headline(),
        remedy: "One host resets many connections: a service restarts or is overloaded, or a firewall lost its state.",
        limits: [resets],
    }
    WindowScalingOff {
        name: "window_scaling_off", about: Problem, group: Receiver, least: Any,
        means: "as `receiver_limited`, and a SYN lacked the window scale option (RFC 7323)",
        headline: "Window scaling is off",
        says: |told| format!(
            "Window scaling is off, and the window of at most 64 KiB was the limit for {}.", told.lost()
        ),
        remedy: "Turn net.ipv4.tcp_window_scaling on at both ends; look for a middlebox that removes the option.",
        limits: [window_slack_segments, share_of_life],
    }
    SillyWindow {
        name: "silly_window", about: Problem, group: Receiver, least: Any,
        means: "ten segments, a fifth of all, were below half an MSS and filled the receiver's window to its edge (RFC 9293)",
        headline: "The receiver opens its window by small steps",
        says: |told| format!(
            "{} segments of less than half an MSS filled the window to its edge: the receiver opens it by small steps (RFC 9293 section 3.8.6.2).",
            told.count()
        ),
        remedy: "The receiving application reads by small steps; read more at once, or enlarge its buffer.",
        limits: [silly_segments, silly_share],
    }
    CwndCollapse {
        name: "cwnd_collapse", about: Problem, group: Loss, least: OfBusy,
        means: "after a loss, half or less than before was under way for two RTTs or more; a tenth of the busy time",
        headline: "The congestion window became small after a loss",
        says: |told| format!(
            "After a loss, less than half of what had been under way before was under way, {}, for {} in all: the sender's congestion window had become small.",
            told.times(), told.lost()
        ),
        remedy: "Find where the packets are dropped: each loss costs a part of the window.",
        limits: [fallen_share, fallen_segments, share_of_life, pause_nanoseconds],
    }
    IdleRestart {
        name: "idle_restart", about: Problem, group: Sender, least: OfBusy,
        means: "after a pause above the RTO the window was half or less, and grew (RFC 5681 section 4.1); a tenth of the busy time",
        headline: "The sender began with a small window again after a pause",
        says: |told| format!(
            "After a pause longer than its retransmission timeout the sender began with a small window again, {}, and waited {} in all for acknowledgements until it was large (RFC 5681 section 4.1).",
            told.times(), told.lost()
        ),
        remedy: "Set net.ipv4.tcp_slow_start_after_idle=0 where bursts after pauses are harmless.",
        limits: [fallen_share, fallen_segments, held_nanoseconds, share_of_life, pause_nanoseconds],
    }
    RetransmitStorm {
        name: "retransmit_storm", about: Problem, group: Loss, least: Any,
        means: "30 resends and more than 5 % of all bytes within a second",
        headline: "Much of what was sent was sent again",
        says: |told| format!("Much of what was sent was sent again, within a second ({}).", told.times()),
        remedy: "Loss is heavy: look for a policer, a duplex mismatch, a full queue or a bad link.",
        limits: [storm_share, storm_resends],
    }
    ShortFlowSlowStart {
        name: "short_flow_slow_start", about: Problem, group: Sender, least: Any,
        means: "the transfer ended while the bytes under way still grew from RTT to RTT",
        headline: "A transfer ended while its window still grew",
        says: |told| format!(
            "The transfer ended while its window still grew: {} of its time it waited for acknowledgements.", told.lost()
        ),
        remedy: "Keep connections open, or raise the initial window (ip route … initcwnd).",
        limits: [slow_start_rounds],
    }
    Incast {
        name: "incast", about: Problem, group: Loss, least: Any,
        means: "three or more hosts that sent to one receiver fell silent within an RTT (Vasudevan et al., SIGCOMM 2009)",
        headline: "Many senders answered one host at the same time (incast)",
        says: |told| told.headline(),
        remedy: "Fewer senders at once, larger or shared buffers, ECN (DCTCP), or a lower minimum RTO.",
        limits: [incast_senders],
    }
    Outcast {
        name: "outcast", about: Problem, group: Loss, least: Any,
        means: "few flows by one input starve beside many by another (Prakash et al., NSDI 2012): see below",
        headline: "Few flows starved beside many (outcast)",
        says: |told| told.headline(),
        remedy: "Fair or random queueing (FQ-CoDel, SFQ, RED) at the receiver's switch port instead of tail drop, or ECN.",
        limits: [outcast_ratio, outcast_run],
    }
    ProtocolViolation {
        name: "protocol_violation", about: Problem, group: Other, least: Any,
        means: "TCP does not allow it (RFC 9293): see below",
        headline: "An end does not keep the rules of TCP",
        says: |told| told.breaches(),
        remedy: "Look for a middlebox that rewrites, or a broken stack.",
        limits: [],
    }
    ChallengeAck {
        name: "challenge_ack", about: Problem, group: Receiver, least: Any,
        means: "a SYN was answered by an acknowledgement of an older connection of these ports (RFC 5961): the other end has it still",
        headline: "An end still held an older connection of the same ports",
        says: |told| told.detail(Connection::challenge_in_words),
        remedy: "Let clients use other ports, or end their connections: a crashed client, a NAT or a firewall forgot this one.",
        limits: [],
    }
    UnheededReset {
        name: "unheeded_reset", about: Problem, group: Receiver, least: Any,
        means: "a SYN was answered by a reset alone that does not acknowledge it, so that its sender does not heed it (RFC 9293)",
        headline: "A reset came that does not acknowledge the SYN",
        says: |told| format!(
            "A reset that does not acknowledge the SYN came {}: the client does not heed it (RFC 9293 section 3.10.7.3), so it refuses nothing, and the SYN has no answer.",
            told.times()
        ),
        remedy: "Find what sends such resets (TTL, capture nearer to the server): a firewall or balancer, or a server that answers for an older connection. The client goes on to wait, and repeats its SYN.",
        limits: [],
    }
    Paws {
        name: "paws", about: Problem, group: Receiver, least: Any,
        means: "the sender's timestamps went back, so that the receiver discards its segments, and says so at once (RFC 7323)",
        headline: "Packets were discarded, because the timestamps of their sender went back",
        says: |told| format!(
            "The sender's timestamps went back, and the receiver answered each repeat at once without taking it (RFC 7323 section 5): {}. The packets arrived, and were discarded.",
            told.lost()
        ),
        remedy: "Look for a NAT or balancer that puts several hosts behind one address, or for a clock that went back; else turn net.ipv4.tcp_timestamps off at one end.",
        limits: [],
    }
    DeadPeer {
        name: "dead_peer", about: Problem, group: Receiver, least: Any,
        means: "three probes or more that ask whether the other end lives, or has opened its window, were not answered",
        headline: "The other end had gone, or the path to it",
        says: |told| told.detail(Connection::dead_in_words),
        remedy: "Look for a crash of the other end, or a firewall between that forgot the connection and drops what it does not know.",
        limits: [],
    }
    PacketTooBig {
        name: "packet_too_big", about: Problem, group: Network, least: Any,
        means: "a router asked for smaller packets (ICMP), and the capture has none of those that it spoke of",
        headline: "A router asked for smaller packets",
        says: |told| told.headline(),
        remedy: "`framegauge check` says what the path carries and which link is smaller: give that link the MTU of the others, or let these messages come to every sender.",
        limits: [],
    }
    AckUnheard {
        name: "ack_unheard", about: Problem, group: Receiver, least: Any,
        means: "the server sent its SYN-ACK again although the client's ACK had passed: accept queue full, or that ACK lost",
        headline: "The server did not hear the end of the handshake, or had no room for the connection",
        says: |told| told.detail(Connection::unheard_in_words),
        remedy: "Compare Recv-Q with Send-Q of the listener (ss -ltn) and watch ListenOverflows (nstat -az) on the server: a larger backlog (net.core.somaxconn), or a program that accepts sooner; if they are fine, look for loss between.",
        limits: [],
    }
    InjectedReset {
        name: "injected_reset", about: Problem, group: Network, least: Any,
        means: "a reset in the name of an end that something on the way sent: see below",
        headline: "Something on the way sent a reset in the name of an end",
        says: |told| told.detail(Connection::reset_in_words),
        remedy: "Look for a firewall, a balancer or a filter on the way that ends connections (idle timeouts, policies, intrusion prevention): the end in whose name it came knows nothing of it.",
        limits: [],
    }
    ForeignSack {
        name: "foreign_sack", about: Problem, group: Network, least: Any,
        means: "SACK blocks outside of all that the window has ever allowed: something on the way rewrites sequence numbers, but not those in them",
        headline: "Something on the way rewrites sequence numbers, and spoils SACK",
        says: |told| format!(
            "SACK blocks were of data that was never sent ({}), outside of all that the window has ever allowed: something on the way rewrites sequence numbers, and forgets these. Senders ignore such blocks, and repair losses as without SACK.",
            told.times()
        ),
        remedy: "Look for a firewall or balancer that rewrites sequence numbers without those in SACK blocks, and turn that off there (random-sequence-number disable); until then SACK off at one end (net.ipv4.tcp_sack=0) is better than this.",
        limits: [],
    }
    ReorderingTimer {
        name: "reordering_timer", about: Problem, group: Loss, least: Any,
        means: "a wait until RACK's reordering timer repaired a loss that fewer than three segments had revealed: a quarter of the RTT and up to 30 ms (RFC 8985)",
        headline: "A loss was repaired after a short wait for what may only be reordered",
        says: |told| format!(
            "A loss that fewer than three segments revealed was repaired {} after {} in all, when RACK's reordering timer ran out (RFC 8985): a quarter of the RTT, and the grain of the kernel's clock.",
            told.times(), told.lost()
        ),
        remedy: "Find where the packets are dropped; the wait itself is no fault: fewer than three segments followed the lost one, so that the sender waits for the rest of what may only be reordered (RFC 8985).",
        limits: [duplicate_acks, pause_rtts, pause_nanoseconds],
    }
    BadChecksum {
        name: "bad_checksum", about: Problem, group: Loss, least: Any,
        means: "segments with a wrong checksum were never acknowledged, and those with a right one were: the receiver discards them",
        headline: "The receiver discards segments with wrong checksums",
        says: |told| told.detail(Connection::discarded_in_words),
        remedy: "Turn off the checksum offload that does not see into the tunnel, at the sender (ethtool -K DEVICE tx-checksum-ip-generic off), or look for a link or switch that damages packets.",
        limits: [],
    }
    UnscaledWindow {
        name: "unscaled_window", about: Problem, group: Network, least: Any,
        means: "only segments beyond the receiver's window as written, without its scale, were lost: connection tracking",
        headline: "Something on the way drops what lies beyond a window that it does not scale",
        says: |told| told.detail(Connection::tracking_in_words),
        remedy: "Have the firewall see both directions of the SYNs and leave their options alone, or let it be liberal (net.netfilter.nf_conntrack_tcp_be_liberal=1). Captures on both sides of it (--host) show whether it is this one.",
        limits: [],
    }
    Unexplained {
        name: "unexplained", about: Problem, group: Other, least: Unexplained,
        means: "late answers that no cause above fits, a fifth of the life or more; or far slower than its peers: see below",
        headline: "Answers came late for no reason that the capture shows",
        says: |told| format!(
            "An answer came late {}, {} in all, and no timer, window or queue explains it.", told.times(), told.lost()
        ),
        remedy: "No known cause fits: look at the packets named.",
        limits: [pause_rtts, unexplained_share, unexplained_nanoseconds, peers, peer_distance],
    }
    CaptureDuplicates {
        name: "capture_duplicates", about: Capture, group: Other, least: Any,
        means: "the same packet twice: by one tap, or at a second one: see below",
        headline: "The capture has packets twice",
        says: |told| format!("The capture has {} twice.", packets(told.count())),
        remedy: "A mirror port sends packets in and out: capture one direction. Captures of several places say more if they are not merged: --host NAME=FILE for each.",
        limits: [duplicate_nanoseconds],
    }
    UnclearRepeats {
        name: "unclear_repeats", about: Capture, group: Other, least: Any,
        means: "data came twice, and nothing tells whether the capture or the sender repeated it: see below",
        headline: "Data came twice, and nothing tells who repeated it",
        says: |told| format!(
            "Segments came again ({}) although no answer and no timer had asked for that, and no identification, timestamp or TTL tells whether the capture has them twice or their sender repeated them.",
            told.times()
        ),
        remedy: "Capture at one place, and one direction of a mirror port; or read at the sender how often it repeats (nstat -az TcpRetransSegs).",
        limits: [],
    }
    CaptureLoss {
        name: "capture_loss", about: Capture, group: Other, least: Any,
        means: "data was acknowledged that the capture has not",
        headline: "The capture lacks packets",
        says: |told| told.detail(Connection::uncaptured_in_words),
        remedy: "Capture with larger buffers, fewer bytes per packet, or a filter (of IP fragments only the first has ports).",
        limits: [capture_loss],
    }
    HalfCapture {
        name: "half_capture", about: Capture, group: Other, least: Any,
        means: "only one direction was captured",
        headline: "The capture has one direction only",
        says: |_| "The capture has one direction of this connection only: what the other end did is not known.".to_owned(),
        remedy: "Capture both directions.",
        limits: [],
    }
    CaptureMisordered {
        name: "capture_misordered", about: Capture, group: Other, least: Any,
        means: "stamps go back",
        headline: "The capture's stamps go back",
        says: |told| format!("The stamps of {} packets go back.", told.count()),
        remedy: "Sort the capture (reordercap), or capture on one queue.",
        limits: [],
    }
    ClockJump {
        name: "clock_jump", about: Capture, group: Other, least: Any,
        means: "the capture's clock was set while it ran: half a second or more went by in it, and not at the ends, or its stamps go back and stay behind: see below",
        headline: "The capture's clock was set while it ran",
        says: |told| format!(
            "The capture's clock went ahead {}, by {} in all, while those of both ends stood still (their timestamps): it was set, or all hosts slept.",
            told.times(), told.lost()
        ),
        remedy: "Nothing to mend in the network: nobody waited for that time. Let the clock of the capturing host be slewed, and not stepped.",
        limits: [],
    }
    Aggregates {
        name: "aggregates", about: Capture, group: Other, least: Any,
        means: "segments above the MSS: nothing is wrong",
        headline: "The capture has aggregates",
        says: |_| "Segments are larger than the MSS: captured before TSO cut them, or after GRO merged them.".to_owned(),
        remedy: "Nothing to mend: sizes on the wire are smaller than they seem here.",
        limits: [],
    }
    ChecksumOffload {
        name: "checksum_offload", about: Capture, group: Other, least: Any,
        means: "nearly all checksums of one direction are wrong, and are answered: a NIC fills them in; needs whole packets",
        headline: "The capture was made before checksums were filled in",
        says: |_| "Checksums are not filled in yet: the NIC does that after the capture.".to_owned(),
        remedy: "Nothing to mend: the NIC fills them in after the capture.",
        limits: [],
    }
    Truncated {
        name: "truncated", about: Capture, group: Other, least: Any,
        means: "the capture's length cut packets, and what is lost by that",
        headline: "The capture ends early",
        says: |told| told.headline(),
        remedy: "Nothing to mend where all headers are whole; else capture at least 128 bytes per packet.",
        limits: [],
    }
}
