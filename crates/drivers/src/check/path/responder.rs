//! Answers probes that carry the token, with fewer bytes than it received; it ignores all others.

use super::visitors::Visitors;
use framegauge_frames::Family;
use framegauge_linux::epoll::Epoll;
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::Waker;
use framegauge_linux::udp::{ProbeSocket, Sent};
use framegauge_linux::{OsError, Result, tcp};
use framegauge_pathmtu::{Acknowledgement, Probe, Token, header_bytes};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const CALLED: u64 = u64::MAX;

/// Where an address is answered: one port a peer, so that peers do not fill each other's queues.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Endpoint {
    pub address: IpAddr,
    pub ports: Vec<u16>,
    pub tcp_port: u16,
}

/// What a responder did.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs, reason = "the names of the pipe's documentation")]
pub struct Answered {
    pub answered: u64,
    pub refused: u64,
}

/// A responder at work on a thread of its own.
pub struct Responder {
    endpoints: Vec<Endpoint>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<Answered>>>,
}

struct Desk {
    token: Token,
    sockets: Vec<(ProbeSocket, u32)>,
    visitors: Visitors,
    answered: Answered,
}

impl Responder {
    /// Answers at these addresses, at so many ports each, which are of `among`.
    pub fn start(addresses: &[IpAddr], ports: usize, among: PortRange, token: Token) -> Result<Self> {
        let (mut sockets, mut listeners, mut endpoints) = (Vec::new(), Vec::new(), Vec::new());
        for &address in addresses {
            let listener = tcp::listen(address, among, None)?;
            let unknown = |source| OsError { operation: "read the listening port".into(), source };
            let tcp_port = listener.local_addr().map_err(unknown)?.port();
            listeners.push(listener);
            let mut endpoint = Endpoint { address, ports: Vec::new(), tcp_port };
            let family = if address.is_ipv6() { Family::V6 } else { Family::V4 };
            for _ in 0..ports {
                let socket = ProbeSocket::listen(address, among)?;
                endpoint.ports.push(socket.local()?.port());
                sockets.push((socket, header_bytes(family)));
            }
            endpoints.push(endpoint);
        }
        let visitors = Visitors::new(listeners);
        let desk = Desk { token, sockets, visitors, answered: Answered::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Waker::new()?);
        let (stopping, wake) = (stop.clone(), waker.clone());
        let thread = std::thread::Builder::new()
            .name("responder".into())
            .spawn(move || desk.run(&stopping, &wake))
            .map_err(|source| OsError { operation: "start the responder's thread".into(), source })?;
        Ok(Self { endpoints, stop, waker, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Stops and reports.
    pub fn finish(mut self) -> Result<Answered> {
        self.halt()
    }

    fn halt(&mut self) -> Result<Answered> {
        let Some(thread) = self.thread.take() else { return Ok(Answered::default()) };
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        thread.join().unwrap_or_else(|_| Err(OsError::errno("answer probes", 5)))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.halt();
    }
}

impl Desk {
    fn run(mut self, stop: &AtomicBool, waker: &Waker) -> Result<Answered> {
        let mut epoll = Epoll::new()?;
        epoll.add(waker.raw(), CALLED, true, false)?;
        for (index, (socket, _)) in self.sockets.iter().enumerate() {
            epoll.add(socket.raw(), index as u64, true, false)?;
        }
        self.visitors.begin(&epoll)?;
        let mut received = Vec::new();
        while !stop.load(Ordering::Acquire) {
            let ready = epoll.wait(self.visitors.patience())?;
            for place in 0..ready {
                match epoll.ready(place).key {
                    CALLED => waker.drain(),
                    key if Visitors::knows(key) => {
                        self.answered.refused += self.visitors.serve(key, &self.token, &epoll);
                    }
                    key => self.answer(key as usize, &mut received)?,
                }
            }
            self.answered.refused += self.visitors.look(&epoll)?;
        }
        Ok(self.answered)
    }

    /// Everything that one socket has.
    fn answer(&mut self, index: usize, received: &mut Vec<framegauge_linux::udp::Received>) -> Result<()> {
        let (socket, headers) = &self.sockets[index];
        while socket.receive(received)? > 0 {
            for datagram in received.iter() {
                let Ok(probe) = Probe::read(&self.token, datagram.payload()) else {
                    self.answered.refused += 1;
                    continue;
                };
                let answer = Acknowledgement {
                    id: probe.id,
                    ip_bytes: datagram.bytes as u32 + headers,
                    fragment_bytes: (datagram.fragment_bytes > 0).then_some(datagram.fragment_bytes),
                };
                let bytes = answer.to_bytes(&self.token);
                if datagram.bytes < bytes.len() {
                    self.answered.refused += 1;
                } else if matches!(socket.send(datagram.from, &bytes, None), Sent::Done) {
                    self.answered.answered += 1;
                }
            }
        }
        // What ICMP says of acknowledgements only has to be taken away.
        while socket.report().is_some() {}
        Ok(())
    }
}
