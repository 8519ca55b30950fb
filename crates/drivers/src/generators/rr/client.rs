//! The client's end of request/response: does what `traffic` decides, on real sockets.
//!
//! A transaction costs three system calls: write, wait, read; on a single connection two, for it waits in the read.
//! Nothing is allocated for it, and nothing is asked of the kernel that does not belong to it.

use crate::generators::progress::Progress;
use crate::generators::rr::message::{Buffers, Outgoing};
use crate::generators::rr::opening::{Opening, lost};
use crate::spool::{self, Column};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::epoll::{Epoll, Ready};
use framegauge_linux::tcp;
use framegauge_linux::{OsError, Result, sched};
use framegauge_traffic::{Rr, RrHello, RrSpec, RrSummary, Token};
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Handshakes under way at once: a listener's queue holds 128.
const MOST_CONNECTING: usize = 64;
/// How long a single connection waits in one read before it looks whether the run is to end.
const BLOCKING: Duration = Duration::from_millis(250);

/// Requests to make.
#[derive(Debug, Clone, Copy)]
pub struct RrOrder {
    /// Where the serving end listens.
    pub address: SocketAddr,
    /// The secret that both ends were given.
    pub token: Token,
    /// Connections, load and duration.
    pub spec: RrSpec,
    /// Bytes in every request.
    pub request_bytes: u32,
    /// Bytes in every response.
    pub response_bytes: u32,
    /// Bytes of a longer message that are written alone, before the rest; 0: one write.
    pub header_bytes: u32,
    /// `TCP_NODELAY` on the client's sockets.
    pub nodelay: bool,
}

/// What the requests came to.
pub struct RrOutcome {
    /// Requests answered.
    pub requests: u64,
    /// Payload bytes of these requests and their responses.
    pub bytes: u64,
    /// The duration, or until the last response where that came later.
    pub active_seconds: f64,
    /// When the first request could go, on `CLOCK_MONOTONIC`.
    pub started_seconds: f64,
    /// The algorithms read back from the client's live sockets.
    pub congestion_control: Vec<String>,
    /// `TCP_NODELAY`, read back from the client's live sockets.
    pub nodelay: Vec<bool>,
    /// Requests that no connection was idle for when they became due.
    pub late_requests: u64,
    /// Requests that became due and were not answered.
    pub unfinished_requests: u64,
    /// One row an answered request, as a spool file.
    pub transactions: File,
}

/// Runs requests to their end. `progress` is told requests and seconds about once a second and may stop it.
pub fn run(order: &RrOrder, progress: &mut dyn FnMut(u64, f64) -> bool) -> Result<RrOutcome> {
    sched::finest_timers();
    let mut client = Client::new(order)?;
    let mut report = Progress::new(monotonic_nanoseconds(), "request and response", progress);
    while client.ready < client.connections.len() {
        client.connect_more()?;
        let timeout = report.next.saturating_sub(monotonic_nanoseconds());
        for place in 0..client.epoll.wait(Some(timeout))? {
            client.open(client.epoll.ready(place))?;
        }
        report.tell(0, monotonic_nanoseconds())?;
    }
    client.wait_in_reads()?;
    let mut rr = Rr::new(order.spec, monotonic_nanoseconds());
    let mut now = rr.started();
    while !rr.ended(now) {
        client.hand_out(&mut rr)?;
        client.turn(&mut rr, report.next)?;
        now = monotonic_nanoseconds();
        report.tell(rr.answered_requests() as u64, now)?;
        if rr.answered_requests() > Rr::MOST_REQUESTS {
            let most = Rr::MOST_REQUESTS;
            return Err(OsError::errno(format!("keep more than {most} transactions of one run"), 28));
        }
    }
    client.outcome(rr)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening(Opening),
    Idle,
    Sending(Outgoing),
    Receiving(usize),
}

struct Connection {
    socket: TcpStream,
    phase: Phase,
}

struct Client<'a> {
    order: &'a RrOrder,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    started: usize,
    ready: usize,
    buffers: Buffers,
}

impl<'a> Client<'a> {
    fn new(order: &'a RrOrder) -> Result<Self> {
        Ok(Self {
            order,
            epoll: Epoll::new()?,
            connections: (0..order.spec.connections).map(|_| None).collect(),
            started: 0,
            ready: 0,
            buffers: Buffers::new(),
        })
    }

    fn connect_more(&mut self) -> Result<()> {
        while self.started < self.connections.len() && self.started - self.ready < MOST_CONNECTING {
            let socket = tcp::start_connect(self.order.address, None)?;
            self.epoll.add(socket.as_raw_fd(), self.started as u64, false, true)?;
            self.connections[self.started] =
                Some(Connection { socket, phase: Phase::Opening(Opening::Connecting) });
            self.started += 1;
        }
        Ok(())
    }

    /// Takes one connection on through its handshake and greeting.
    fn open(&mut self, ready: Ready) -> Result<()> {
        let Some(connection) = &mut self.connections[ready.key as usize] else { return Ok(()) };
        let Phase::Opening(before) = connection.phase else {
            return Err(lost("the serving end closed a connection before the first request"));
        };
        let hello = RrHello {
            token: self.order.token,
            request_bytes: self.order.request_bytes,
            response_bytes: self.order.response_bytes,
            header_bytes: self.order.header_bytes,
        };
        let opening = before.step(&connection.socket, &hello, self.order.nodelay)?;
        connection.phase = if opening == Opening::Open { Phase::Idle } else { Phase::Opening(opening) };
        self.ready += usize::from(opening == Opening::Open);
        if before == Opening::Connecting {
            self.epoll.change(connection.socket.as_raw_fd(), ready.key, true, false)?;
        }
        Ok(())
    }

    /// Lets a single connection wait in its reads. It never waits in a write: a long one could not be cancelled.
    fn wait_in_reads(&self) -> Result<()> {
        let [Some(only)] = self.connections.as_slice() else { return Ok(()) };
        let set = || {
            only.socket.set_nonblocking(false)?;
            only.socket.set_read_timeout(Some(BLOCKING))
        };
        set().map_err(|source| OsError { operation: "let a connection wait".into(), source })
    }

    /// Waits for something to happen, until `latest` at most, and serves it.
    fn turn(&mut self, rr: &mut Rr, latest: u64) -> Result<()> {
        if let [Some(Connection { phase: Phase::Receiving(_), .. })] = self.connections.as_slice() {
            let only = Ready { key: 0, readable: true, writable: false };
            return self.serve(rr, only).map(drop);
        }
        let timeout = rr.deadline().min(latest).saturating_sub(monotonic_nanoseconds());
        for place in 0..self.epoll.wait(Some(timeout))? {
            if self.serve(rr, self.epoll.ready(place))? {
                self.hand_out(rr)?;
            }
        }
        Ok(())
    }

    /// Sends every request that can go now.
    fn hand_out(&mut self, rr: &mut Rr) -> Result<()> {
        while let Some(number) = rr.next_request(monotonic_nanoseconds()) {
            let request = Outgoing::new(self.order.request_bytes, self.order.header_bytes);
            self.push(number, request)?;
        }
        Ok(())
    }

    /// Writes what goes of a request, and watches for whatever comes next.
    fn push(&mut self, number: u32, mut request: Outgoing) -> Result<()> {
        let Some(connection) = &mut self.connections[number as usize] else { return Ok(()) };
        let raw = connection.socket.as_raw_fd();
        let waited = matches!(connection.phase, Phase::Sending(_));
        let done = request.write(raw, &self.buffers)?;
        connection.phase =
            if done { Phase::Receiving(self.order.response_bytes as usize) } else { Phase::Sending(request) };
        if done == waited {
            self.epoll.change(raw, u64::from(number), done, !done)?;
        }
        Ok(())
    }

    /// Serves one connection; true when it has become idle.
    fn serve(&mut self, rr: &mut Rr, ready: Ready) -> Result<bool> {
        let number = ready.key as u32;
        let Some(connection) = &mut self.connections[number as usize] else { return Ok(false) };
        let raw = connection.socket.as_raw_fd();
        match connection.phase {
            Phase::Sending(request) => self.push(number, request).map(|()| false),
            Phase::Receiving(left) => {
                let left = self.buffers.read(raw, left)?;
                let left =
                    left.ok_or_else(|| lost("the serving end closed a connection before it answered"))?;
                connection.phase = Phase::Receiving(left);
                if left > 0 {
                    return Ok(false);
                }
                rr.answered(number, monotonic_nanoseconds());
                connection.phase = Phase::Idle;
                Ok(true)
            }
            _ => Err(lost("the serving end closed an idle connection or sent what was not asked for")),
        }
    }

    fn outcome(self, rr: Rr) -> Result<RrOutcome> {
        let (mut congestion_control, mut nodelay) = (BTreeSet::new(), BTreeSet::new());
        for connection in self.connections.iter().flatten() {
            let raw = connection.socket.as_raw_fd();
            congestion_control.insert(tcp::congestion_control(raw)?);
            nodelay.insert(tcp::nodelay(raw)?);
        }
        let started = rr.started();
        let summary = rr.finish();
        let requests = summary.transactions.len() as u64;
        let exchange_bytes = u64::from(self.order.request_bytes) + u64::from(self.order.response_bytes);
        Ok(RrOutcome {
            requests,
            bytes: requests * exchange_bytes,
            active_seconds: seconds(summary.active_nanoseconds),
            started_seconds: seconds(started),
            congestion_control: congestion_control.into_iter().collect(),
            nodelay: nodelay.into_iter().collect(),
            late_requests: summary.late,
            unfinished_requests: summary.unfinished,
            transactions: table(summary)?,
        })
    }
}

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}

fn table(summary: RrSummary) -> Result<File> {
    let all = summary.transactions;
    spool::write(vec![
        ("connection", Column::Word(all.iter().map(|request| request.connection).collect())),
        ("due_seconds", Column::Float(all.iter().map(|request| seconds(request.due)).collect())),
        ("sent_seconds", Column::Float(all.iter().map(|request| seconds(request.sent)).collect())),
        ("end_seconds", Column::Float(all.iter().map(|request| seconds(request.end)).collect())),
    ])
}
