//! A short TCP connection: which MSS is in force at either end, and does bulk get through?
//!
//! Where an agent is at the far end, the client shows the token and sends as much as several full segments; the server answers only when it has all of it, and
//! says what MSS its kernel had announced. Where the client's is smaller than both ends' links explain, somebody on
//! the way has changed it. Any other far end is connected to and sent nothing.

use framegauge_frames::{Family, Mtu, TIMESTAMPS_OPTION_BYTES};
use framegauge_linux::tcp;
use framegauge_pathmtu::{TOKEN_BYTES, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Application bytes: seven full segments of MTU 9000.
pub(super) const BULK_BYTES: usize = 64 * 1024;
const CONNECT: Duration = Duration::from_millis(1000);
/// TCP sends what was lost again after 0.2 s at least; a path that swallows it never answers.
const ANSWER: Duration = Duration::from_millis(450);

/// Whether bulk got through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bulk {
    /// All of it.
    Passed,
    /// The handshake did, bulk did not.
    Stalled,
}

/// What a connection showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpFinding {
    /// What was sent in a full segment, after options.
    pub mss_bytes: Option<u32>,
    /// The MSS that this end announced.
    pub announced_mss_bytes: Option<u32>,
    /// The MTU that this end's kernel believed in for the connection.
    pub route_mtu_bytes: Option<u32>,
    /// The MSS that the far end announced: by its own account, or as far as this end's is less than its route allows.
    pub peer_announced_mss_bytes: Option<u32>,
    /// Whether bulk got through; none: no connection came about.
    pub bulk: Option<Bulk>,
    /// The handshake came about.
    pub connected: bool,
    /// The far end is there and has said no.
    pub refused: bool,
    /// Why there is no connection.
    pub error: Option<String>,
}

/// Connects and reads what the kernel has learnt of the far end.
fn connect(to: SocketAddr) -> (TcpFinding, Option<TcpStream>) {
    let mut finding = TcpFinding {
        mss_bytes: None,
        announced_mss_bytes: None,
        route_mtu_bytes: None,
        peer_announced_mss_bytes: None,
        bulk: None,
        connected: false,
        refused: false,
        error: None,
    };
    let stream = match TcpStream::connect_timeout(&to, CONNECT) {
        Ok(stream) => stream,
        Err(error) => {
            finding.refused = error.kind() == ErrorKind::ConnectionRefused;
            finding.error = Some(error.to_string());
            return (finding, None);
        }
    };
    finding.connected = true;
    if let Ok(info) = tcp::info(stream.as_raw_fd()) {
        finding.mss_bytes = Some(info.mss_bytes);
        finding.announced_mss_bytes = Some(info.announced_mss_bytes);
        finding.route_mtu_bytes = Some(info.path_mtu);
        finding.peer_announced_mss_bytes = learnt_mss(&info, to);
    }
    (finding, Some(stream))
}

/// This end's MSS is the far end's, or what its own route allows: only below that it is known to be the far end's.
fn learnt_mss(info: &tcp::TcpInfo, to: SocketAddr) -> Option<u32> {
    let family = if to.is_ipv6() { Family::V6 } else { Family::V4 };
    let options = if info.timestamps { TIMESTAMPS_OPTION_BYTES } else { 0 };
    let allowed = Mtu::new(info.path_mtu).ok()?.mss(family);
    Some(info.mss_bytes + options).filter(|learnt| *learnt < allowed)
}

/// Connects and leaves: all that a far end without an agent is asked.
pub(crate) fn look(to: SocketAddr) -> TcpFinding {
    connect(to).0
}

/// Connects, sends, waits for the answer.
pub(crate) fn run(to: SocketAddr, token: &Token) -> TcpFinding {
    let (mut finding, stream) = connect(to);
    finding.peer_announced_mss_bytes = None;
    let Some(mut stream) = stream else { return finding };
    match exchange(&mut stream, token) {
        Ok(announced) => {
            finding.peer_announced_mss_bytes = Some(announced);
            finding.bulk = Some(Bulk::Passed);
        }
        Err(_) => finding.bulk = Some(Bulk::Stalled),
    }
    // What a black hole has swallowed must not be sent again for minutes.
    tcp::reset_on_close(&stream);
    finding
}

fn exchange(stream: &mut TcpStream, token: &Token) -> std::io::Result<u32> {
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let mut bulk = vec![0; BULK_BYTES];
    bulk[..TOKEN_BYTES].copy_from_slice(token);
    stream.write_all(&bulk)?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    Ok(u32::from_be_bytes(answer))
}
