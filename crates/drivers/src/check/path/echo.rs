//! Searches paths to hosts at which no agent runs: by ICMP echoes, which come back as large as they went, and by a look at TCP.

use super::handshake::{self, TcpFinding};
use super::prober::{Order, PathOutcome, search};
use super::sockets::FlowSockets;
use framegauge_linux::Result;
use framegauge_linux::ping::forbidden;
use std::net::SocketAddr;

/// What was found.
pub enum Echoed {
    /// On each path.
    Paths(Vec<PathOutcome>),
    /// This user may not send echoes; what TCP showed on each path, and what is missing.
    #[allow(missing_docs, reason = "they say it")]
    Forbidden { tcp: Vec<Option<TcpFinding>>, missing: String },
}

/// Searches all paths of an order of one flow each.
pub fn run(order: &Order, cancelled: &dyn Fn() -> bool, progress: &dyn Fn(f64)) -> Result<Echoed> {
    let mut sockets = FlowSockets::default();
    for path in &order.paths {
        match sockets.open_echo(path.source, &order.token) {
            Ok(()) => {}
            Err(error) if forbidden(&error) => {
                let missing = format!(
                    "{error}; expected a group of this user in the sysctl net.ipv4.ping_group_range, or the capability \
                     CAP_NET_RAW"
                );
                return Ok(Echoed::Forbidden { tcp: look(order), missing });
            }
            Err(error) => return Err(error),
        }
    }
    search(order, &sockets, &handshake::look, cancelled, progress).map(Echoed::Paths)
}

/// TCP alone, to all at the same time.
fn look(order: &Order) -> Vec<Option<TcpFinding>> {
    std::thread::scope(|scope| {
        let connect = |to| scope.spawn(move || handshake::look(to));
        let started: Vec<_> = order
            .paths
            .iter()
            .map(|path| path.tcp_port.map(|port| connect(SocketAddr::new(path.destination.ip(), port))))
            .collect();
        started.into_iter().map(|thread| thread.and_then(|thread| thread.join().ok())).collect()
    })
}
