//! What was found, in plain words.

use crate::connection::Connection;
use crate::findings::Tally;
use crate::kinds::Kind;

/// A kind's machine name.
pub fn name(kind: Kind) -> &'static str {
    NAMES.iter().find(|(each, _)| *each == kind).map_or("unexplained", |(_, name)| name)
}

macro_rules! names {
    ($($kind:ident $name:literal,)*) => {
        const NAMES: &[(Kind, &str)] = &[$((Kind::$kind, $name)),*];
    };
}

names! {
    RtoStall "rto_stall", TailLoss "tail_loss", FastRetransmit "fast_retransmit", DoubleLoss "double_loss",
    SpuriousRetransmit "spurious_retransmit", NagleDelayedAck "nagle_delayed_ack", PmtuBlackHole "pmtu_black_hole",
    MssMismatch "mss_mismatch", ZeroWindow "zero_window", ReceiverLimited "receiver_limited",
    ApplicationLimited "application_limited", SenderStall "sender_stall", NetworkLimited "network_limited",
    Bufferbloat "bufferbloat", Reordering "reordering", SynLoss "syn_loss", ConnectionRefused "connection_refused",
    Reset "reset", ResetStorm "reset_storm", WindowScalingOff "window_scaling_off", SillyWindow "silly_window",
    CwndCollapse "cwnd_collapse", IdleRestart "idle_restart", RetransmitStorm "retransmit_storm",
    ShortFlowSlowStart "short_flow_slow_start", Incast "incast", Outcast "outcast",
    ProtocolViolation "protocol_violation", ChallengeAck "challenge_ack", Paws "paws", DeadPeer "dead_peer",
    Unexplained "unexplained", CaptureDuplicates "capture_duplicates",
    CaptureLoss "capture_loss", HalfCapture "half_capture", CaptureMisordered "capture_misordered",
    Aggregates "aggregates", ChecksumOffload "checksum_offload", Truncated "truncated",
}

/// Kinds that a size may explain.
const SIZED: [Kind; 2] = [Kind::PmtuBlackHole, Kind::RtoStall];

/// One paragraph about what happened.
pub(crate) fn text(connection: &Connection, tally: &Tally) -> String {
    match tally.kind.is_quality() {
        true => of_capture(tally),
        false => {
            of_limit(connection, tally)
                + &of_sizes(connection, tally)
                + &connection.notes.sentence(tally.kind)
        }
    }
}

/// Which payloads passed and which never did, where a size may be the reason.
fn of_sizes(connection: &Connection, tally: &Tally) -> String {
    let Some(sizes) = connection.sizes.filter(|_| SIZED.contains(&tally.kind)) else { return String::new() };
    let passed = match sizes.passed {
        0 => "nothing but the handshake was".to_owned(),
        bytes => format!("the largest that was has {bytes} bytes"),
    };
    let doubt = match (sizes.is_certain, sizes.passed) {
        (true, _) => "",
        (false, 0) => {
            " Packets above some size may vanish on the way, or the other end died: `framegauge check` tells."
        }
        (false, _) => " Or the other end died at that moment, which this capture cannot tell.",
    };
    format!(" No segment of {} bytes was ever acknowledged; {passed}.{doubt}", sizes.lost)
}

fn times(tally: &Tally) -> String {
    if tally.count == 1 { "once".to_owned() } else { format!("{} times", tally.count) }
}

/// What was lost, or sent again.
fn of_loss(connection: &Connection, tally: &Tally) -> String {
    let lost = duration(tally.lost);
    let times = times(tally);
    match tally.kind {
        Kind::RtoStall => format!(
            "The sender fell silent {times}, {lost} in all, until its retransmission timer ran out, while more data was waiting."
        ),
        Kind::TailLoss => format!(
            "The last segments of a burst were lost {times}; it took {lost} until they were sent again, because nothing after them revealed the loss."
        ),
        Kind::FastRetransmit => format!(
            "Loss was repaired {times} after duplicate or selective acknowledgements, within about an RTT each."
        ),
        Kind::DoubleLoss => format!(
            "A retransmission was lost, too ({times}, {lost}), so that only the timer could repair it."
        ),
        Kind::SpuriousRetransmit => {
            format!("Data that had arrived was sent again {times}: the receiver says so (D-SACK).")
        }
        Kind::PmtuBlackHole => format!(
            "Large segments were sent again and never arrived, while smaller ones did ({times}, {lost} in all): packets above some size vanish on the way."
        ),
        Kind::Reordering => format!(
            "Segments arrived in another order {times}: holes closed without anything being sent again."
        ),
        Kind::RetransmitStorm => format!("Much of what was sent was sent again, within a second ({times})."),
        Kind::SynLoss => {
            format!("The handshake was repeated {times}, which took {lost}.{}", connection.syns_in_words())
        }
        other => format!("{} ({times}, {lost}).", name(other)),
    }
}

/// What the capture cannot tell.
fn of_capture(tally: &Tally) -> String {
    let times = times(tally);
    match tally.kind {
        Kind::CaptureDuplicates => format!("The capture has {} packets twice.", tally.count),
        Kind::CaptureLoss => format!("Data was acknowledged that the capture has not ({times})."),
        Kind::HalfCapture => {
            "The capture has one direction of this connection only: what the other end did is not known."
                .to_owned()
        }
        Kind::CaptureMisordered => format!("The stamps of {} packets go back.", tally.count),
        Kind::Aggregates => {
            "Segments are larger than the MSS: captured before TSO cut them, or after GRO merged them."
                .to_owned()
        }
        Kind::ChecksumOffload => {
            "Checksums are not filled in yet: the NIC does that after the capture.".to_owned()
        }
        other => format!("{} ({times}).", name(other)),
    }
}

/// What set the pace, and how the connection began and ended.
fn of_limit(connection: &Connection, tally: &Tally) -> String {
    let lost = duration(tally.lost);
    let times = times(tally);
    let mss = |side: usize| {
        connection.halves[side].syn.and_then(|syn| syn.mss).map_or("none".to_owned(), |mss| mss.to_string())
    };
    match tally.kind {
        Kind::NagleDelayedAck => format!(
            "A small segment was held back {times} until the receiver's delayed acknowledgement came: {lost} in all (Nagle's algorithm)."
        ),
        Kind::MssMismatch => format!(
            "The client announces an MSS of {}, the server of {}: the hosts have different MTUs, or a middlebox clamps one.",
            mss(0),
            mss(1)
        ),
        Kind::ZeroWindow => {
            format!("The receiver closed its window {times}, {lost} in all: its application did not read.")
        }
        Kind::ReceiverLimited => format!("The receiver's window was the limit for {lost}."),
        Kind::ApplicationLimited => format!("The application had nothing to send for {lost}."),
        Kind::SenderStall => format!(
            "The sender paused {times}, {lost} in all, although the window was open and it had more to send."
        ),
        Kind::NetworkLimited => format!("The congestion window and the path were the limit for {lost}."),
        Kind::Bufferbloat => format!(
            "The RTT was far above its minimum of {} for {lost}: a queue on the path.",
            duration(connection.path_rtt())
        ),
        Kind::ConnectionRefused => match connection.notes.refusal() {
            Some(said) => format!("Nobody answered the SYN but the network: {said}."),
            None => "The server answered the SYN with a reset.".to_owned(),
        },
        Kind::Reset => "The connection was cut off by a reset.".to_owned(),
        Kind::WindowScalingOff => {
            format!("Window scaling is off, and the window of at most 64 KiB was the limit for {lost}.")
        }
        Kind::ProtocolViolation => connection.breaches_in_words(),
        Kind::SillyWindow => format!(
            "{} segments of less than half an MSS filled the window to its edge: the receiver opens it by small steps (RFC 9293 section 3.8.6.2).",
            tally.count
        ),
        Kind::Unexplained => {
            format!("An answer came late {times}, {lost} in all, and no timer, window or queue explains it.")
        }
        Kind::CwndCollapse => format!(
            "After a loss, less than half of what had been under way before was under way, {times}, for {lost} in all: the sender's congestion window had become small."
        ),
        Kind::IdleRestart => format!(
            "After a pause longer than its retransmission timeout the sender began with a small window again, {times}, and waited {lost} in all for acknowledgements until it was large (RFC 5681 section 4.1)."
        ),
        Kind::ShortFlowSlowStart => format!(
            "The transfer ended while its window still grew: {lost} of its time it waited for acknowledgements."
        ),
        _ => of_ends(connection, tally),
    }
}

/// What an end did with what came, or did not do.
fn of_ends(connection: &Connection, tally: &Tally) -> String {
    let lost = duration(tally.lost);
    match tally.kind {
        Kind::ChallengeAck => format!(
            "The other end answered the SYN by an acknowledgement of an older connection of these ports (RFC 5961 section 4): the handshake took {lost} longer."
        ),
        Kind::Paws => format!(
            "The sender's timestamps went back, and the receiver answered each repeat at once without taking it (RFC 7323 section 5): {lost}. The packets arrived, and were discarded."
        ),
        Kind::DeadPeer => format!(
            "{} probes were not answered in {lost}: the other end had gone, or the path to it.",
            tally.count
        ),
        _ => of_loss(connection, tally),
    }
}

/// A time in words: "1.20 s", "40.0 ms", "12 us".
pub(crate) fn duration(nanoseconds: i64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.0} us", seconds * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_name_and_serde_agrees() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a word"), name(kind));
            assert!(kind.remedy().ends_with('.'), "{kind:?}");
        }
        assert_eq!(NAMES.len(), Kind::ALL.len());
    }
}
