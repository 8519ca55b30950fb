//! Captures the TCP handshakes on an interface, and counts its aggregates above 64 KiB.

use framegauge_linux::Result;
pub use framegauge_linux::packet_socket::{BigCount, BigSeen, HandshakeCapture};
use framegauge_packets::{TcpFlags, parse};

/// A SYN or SYN-ACK that passed the interface.
#[derive(Debug, Clone)]
pub struct Syn {
    /// Sent by this host, not received.
    pub outgoing: bool,
    /// Address and port it came from.
    pub source: String,
    /// Address and port it went to.
    pub destination: String,
    /// It is a SYN-ACK.
    pub ack: bool,
    /// The announced MSS in bytes.
    pub mss_bytes: Option<u16>,
    /// The timestamps option is there.
    pub timestamps: bool,
    /// The window scale shift.
    pub window_scale: Option<u8>,
    /// SACK is permitted.
    pub sack_permitted: bool,
}

/// What is at work on the interfaces of a host.
pub struct WireMeter {
    /// The captures of handshakes.
    pub captures: Vec<HandshakeCapture>,
    /// The counts of aggregates, where they were asked for.
    pub counts: Option<Vec<BigCount>>,
}

/// Starts to capture handshakes, on each of these interfaces.
pub fn start(interfaces: &[&str]) -> Result<Vec<HandshakeCapture>> {
    interfaces.iter().map(|interface| HandshakeCapture::start(interface)).collect()
}

/// Starts to count aggregates above 64 KiB, on each of these interfaces.
pub fn count(interfaces: &[&str]) -> Result<Vec<BigCount>> {
    interfaces.iter().map(|interface| BigCount::start(interface)).collect()
}

/// What was counted, over all interfaces: received, and sent.
pub fn counted(counts: &[BigCount]) -> [BigSeen; 2] {
    [BigCount::take, BigCount::take_sent]
        .map(|way| counts.iter().map(way).fold(BigSeen::default(), BigSeen::and))
}

/// Ends captures: what passed, and how many were lost for want of room.
pub fn finish(captures: &[HandshakeCapture]) -> Result<(Vec<Syn>, u32)> {
    let (mut all, mut lost) = (Vec::new(), 0);
    for capture in captures {
        let (captured, missed) = capture.take()?;
        all.extend(captured);
        lost += missed;
    }
    let syns = all
        .iter()
        .filter_map(|captured| {
            let packet = parse(&captured.frame).ok()?;
            let tcp = packet.tcp()?;
            let options = tcp.options();
            Some(Syn {
                outgoing: captured.outgoing,
                source: packet.source()?.to_string(),
                destination: packet.destination()?.to_string(),
                ack: tcp.flags().contains(TcpFlags::ACK),
                mss_bytes: options.mss,
                timestamps: options.timestamps,
                window_scale: options.window_scale,
                sack_permitted: options.sack_permitted,
            })
        })
        .collect();
    Ok((syns, lost))
}
