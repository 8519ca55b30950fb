//! Captures the TCP handshakes on an interface.

use framegauge_linux::Result;
pub use framegauge_linux::packet_socket::HandshakeCapture;
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

/// Starts to capture handshakes, on each of these interfaces.
pub fn start(interfaces: &[&str]) -> Result<Vec<HandshakeCapture>> {
    interfaces.iter().map(|interface| HandshakeCapture::start(interface)).collect()
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
