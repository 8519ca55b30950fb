//! The sockets of a prober: each flow is a source port, kept as long as the check lasts, so that a trace goes where
//! the search went.

use framegauge_frames::Family;
use framegauge_linux::Result;
use framegauge_linux::epoll::Epoll;
use framegauge_linux::ping;
use framegauge_linux::udp::{Kind, ProbeSocket, Received};
use framegauge_linux::udp_error::Report;
use framegauge_pathmtu::{Carrier, Echo, Token};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Flows of one source address.
#[derive(Default)]
pub struct FlowSockets {
    by_source: BTreeMap<IpAddr, Vec<(ProbeSocket, Carrier)>>,
}

impl FlowSockets {
    /// Opens as many flows from an address as are still missing.
    pub fn open(&mut self, source: IpAddr, flows: usize) -> Result<()> {
        let sockets = self.by_source.entry(source).or_default();
        while sockets.len() < flows {
            sockets.push((ProbeSocket::bind(source)?, Carrier::Udp));
        }
        Ok(())
    }

    /// Opens the one flow of echoes from an address, unless it is there.
    pub(crate) fn open_echo(&mut self, source: IpAddr, token: &Token) -> Result<()> {
        if self.by_source.contains_key(&source) {
            return Ok(());
        }
        let socket = ping::open(source)?;
        let identifier = match socket.kind() {
            // The kernel's choice, as it chooses the ports of UDP.
            Kind::Ping => socket.local()?.port(),
            Kind::Udp | Kind::RawIcmp => u16::from_be_bytes([token[0], token[1]]),
        };
        let family = if source.is_ipv6() { Family::V6 } else { Family::V4 };
        let headed = socket.kind() == Kind::RawIcmp && family == Family::V4;
        let echo = Carrier::Echo(Echo { family, identifier, headed });
        self.by_source.insert(source, vec![(socket, echo)]);
        Ok(())
    }

    /// The flow of a source address.
    pub(crate) fn get(&self, source: IpAddr, flow: usize) -> Option<&ProbeSocket> {
        self.carried(source, flow).map(|(socket, _)| socket)
    }

    /// The flow of a source address, and what carries its probes.
    pub(crate) fn carried(&self, source: IpAddr, flow: usize) -> Option<(&ProbeSocket, Carrier)> {
        let entry = self.by_source.get(&source).and_then(|sockets| sockets.get(flow));
        entry.map(|(socket, carrier)| (socket, *carrier))
    }

    /// The source port of a flow; 0 if there is none.
    pub fn port(&self, source: IpAddr, flow: usize) -> u16 {
        self.get(source, flow).and_then(|socket| socket.local().ok()).map_or(0, |local| local.port())
    }

    /// The flow with a source port.
    pub fn flow(&self, source: IpAddr, port: u16) -> Option<usize> {
        let sockets = self.by_source.get(&source)?;
        sockets.iter().position(|(socket, _)| socket.local().is_ok_and(|local| local.port() == port))
    }

    /// Something to wait with for all of them.
    pub(crate) fn listen(&self) -> Result<Listening<'_>> {
        let epoll = Epoll::new()?;
        let mut sockets = Vec::new();
        for (&source, all) in &self.by_source {
            for (flow, (socket, _)) in all.iter().enumerate() {
                epoll.add(socket.raw(), sockets.len() as u64, true, false)?;
                sockets.push((source, flow, socket));
            }
        }
        Ok(Listening { epoll, sockets, received: Vec::new() })
    }
}

/// What a socket heard.
pub(crate) enum Heard<'a> {
    /// A datagram.
    Datagram(&'a Received),
    /// What ICMP or this host's kernel said of one that was sent.
    Report(&'a Report),
}

/// All sockets, listened to.
pub(crate) struct Listening<'a> {
    epoll: Epoll,
    sockets: Vec<(IpAddr, usize, &'a ProbeSocket)>,
    received: Vec<Received>,
}

impl Listening<'_> {
    /// Waits up to `nanoseconds` and tells everything that was heard: source address, flow, what.
    pub(crate) fn hear(
        &mut self,
        nanoseconds: u64,
        mut tell: impl FnMut(IpAddr, usize, Heard<'_>),
    ) -> Result<()> {
        let ready = self.epoll.wait(Some(nanoseconds))?;
        for place in 0..ready {
            let (source, flow, socket) = self.sockets[self.epoll.ready(place).key as usize];
            while socket.receive(&mut self.received)? > 0 {
                for datagram in &self.received {
                    tell(source, flow, Heard::Datagram(datagram));
                }
            }
            while let Some(report) = socket.report() {
                tell(source, flow, Heard::Report(&report));
            }
        }
        Ok(())
    }
}
