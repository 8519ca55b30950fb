//! The client of synchronized reads: does what `traffic` decides, on a connection to each server of requests.

use crate::generators::progress::Progress;
use crate::generators::rr::message::{Buffers, Outgoing};
use crate::generators::rr::opening::{Opening, lost};
use crate::generators::rr::sent::Sent;
use crate::spool::{self, Column};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::epoll::{Epoll, Ready};
use framegauge_linux::{OsError, Result, sched, tcp};
use framegauge_traffic::{Incast, IncastSpec, RrHello, Silence, Span, Token};
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

/// A server and what it answers with.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Bytes in every answer.
    pub response_bytes: u32,
}

/// Rounds to make.
#[derive(Debug, Clone)]
pub struct IncastOrder {
    /// Who is asked, in this order.
    pub servers: Vec<Server>,
    /// The secret that all ends were given.
    pub token: Token,
    /// Bytes in every request.
    pub request_bytes: u32,
    /// Rounds, one at least.
    pub rounds: u32,
    /// A server of which nothing comes for so long has failed: while it connects, or owes an answer.
    pub silence_nanoseconds: u64,
    /// `TCP_NODELAY` on the client's sockets.
    pub nodelay: bool,
}

/// What the rounds came to.
pub struct IncastOutcome {
    /// Payload bytes of all answers.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub active_seconds: f64,
    /// When the first request could go, on `CLOCK_MONOTONIC`.
    pub started_seconds: f64,
    /// The fastest handshake.
    pub handshake_seconds: f64,
    /// The algorithms read back from the client's live sockets.
    pub congestion_control: Vec<String>,
    /// `TCP_NODELAY`, read back from the client's live sockets.
    pub nodelay: Vec<bool>,
    /// What these sockets tell of what they sent: requests.
    pub sent: Sent,
    /// One row a round, as a spool file.
    pub rounds: File,
    /// One row an answer, as a spool file.
    pub responses: File,
}

/// Runs all rounds. `progress` is told rounds and seconds about once a second and may stop it.
pub fn run(order: &IncastOrder, progress: &mut dyn FnMut(u32, f64) -> bool) -> Result<IncastOutcome> {
    sched::finest_timers();
    let began = monotonic_nanoseconds();
    let mut client = Client::new(order)?;
    let mut report = Progress::new(began, "synchronized reads", progress);
    let late = began.saturating_add(order.silence_nanoseconds);
    while client.open < client.connections.len() {
        let timeout = report.next.min(late).saturating_sub(monotonic_nanoseconds());
        for place in 0..client.epoll.wait(Some(timeout))? {
            client.open(client.epoll.ready(place))?;
        }
        let now = monotonic_nanoseconds();
        if now >= late && client.open < client.connections.len() {
            return Err(client.not_open());
        }
        report.tell(0, now)?;
    }
    let spec = IncastSpec {
        servers: order.servers.len() as u32,
        rounds: order.rounds,
        silence_nanoseconds: order.silence_nanoseconds,
    };
    let mut incast = Incast::new(spec, monotonic_nanoseconds());
    while !incast.ended() {
        client.hand_out(&mut incast)?;
        let latest = incast.deadline().map_or(report.next, |deadline| deadline.min(report.next));
        let timeout = latest.saturating_sub(monotonic_nanoseconds());
        for place in 0..client.epoll.wait(Some(timeout))? {
            client.serve(&mut incast, client.epoll.ready(place))?;
        }
        let now = monotonic_nanoseconds();
        if let Some(silence) = incast.silent(now) {
            return Err(client.silent(silence));
        }
        report.tell(incast.rounds_done(), now)?;
    }
    client.outcome(&incast)
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
    server: Server,
    /// Just before the connect.
    begun: u64,
    phase: Phase,
}

struct Client<'a> {
    order: &'a IncastOrder,
    epoll: Epoll,
    connections: Vec<Connection>,
    open: usize,
    handshake: u64,
    buffers: Buffers,
}

impl<'a> Client<'a> {
    /// Begins to connect to all servers.
    fn new(order: &'a IncastOrder) -> Result<Self> {
        let epoll = Epoll::new()?;
        let mut connections = Vec::with_capacity(order.servers.len());
        for (key, server) in order.servers.iter().enumerate() {
            let begun = monotonic_nanoseconds();
            let socket = tcp::start_connect(server.address, None)?;
            epoll.add(socket.as_raw_fd(), key as u64, false, true)?;
            connections.push(Connection {
                socket,
                server: *server,
                begun,
                phase: Phase::Opening(Opening::Connecting),
            });
        }
        Ok(Self { order, epoll, connections, open: 0, handshake: u64::MAX, buffers: Buffers::new() })
    }

    /// Takes one connection on through its handshake and greeting.
    fn open(&mut self, ready: Ready) -> Result<()> {
        let connection = &mut self.connections[ready.key as usize];
        let Phase::Opening(before) = connection.phase else {
            return Err(lost(&format!(
                "server {}: closed before the first request",
                connection.server.address
            )));
        };
        let hello = RrHello {
            token: self.order.token,
            request_bytes: self.order.request_bytes,
            response_bytes: connection.server.response_bytes,
            header_bytes: 0,
        };
        let opening = before
            .step(&connection.socket, &hello, self.order.nodelay)
            .map_err(|error| at(connection.server, error))?;
        connection.phase = if opening == Opening::Open { Phase::Idle } else { Phase::Opening(opening) };
        self.open += usize::from(opening == Opening::Open);
        if before == Opening::Connecting {
            self.handshake = self.handshake.min(monotonic_nanoseconds() - connection.begun);
            self.epoll.change(connection.socket.as_raw_fd(), ready.key, true, false)?;
        }
        Ok(())
    }

    /// Asks every server whose turn it is.
    fn hand_out(&mut self, incast: &mut Incast) -> Result<()> {
        while let Some(server) = incast.next_request(monotonic_nanoseconds()) {
            self.push(server, Outgoing::new(self.order.request_bytes, 0))?;
        }
        Ok(())
    }

    /// Writes what goes of a request, and watches for whatever comes next.
    fn push(&mut self, number: u32, mut request: Outgoing) -> Result<()> {
        let connection = &mut self.connections[number as usize];
        let raw = connection.socket.as_raw_fd();
        let waited = matches!(connection.phase, Phase::Sending(_));
        let done = request.write(raw, &self.buffers).map_err(|error| at(connection.server, error))?;
        let all = connection.server.response_bytes as usize;
        connection.phase = if done { Phase::Receiving(all) } else { Phase::Sending(request) };
        if done == waited {
            self.epoll.change(raw, u64::from(number), done, !done)?;
        }
        Ok(())
    }

    fn serve(&mut self, incast: &mut Incast, ready: Ready) -> Result<()> {
        let number = ready.key as u32;
        let connection = &mut self.connections[number as usize];
        match connection.phase {
            Phase::Sending(request) => {
                self.push(number, request)?;
                incast.heard(number, monotonic_nanoseconds());
            }
            Phase::Receiving(left) => {
                let read = self.buffers.read(connection.socket.as_raw_fd(), left);
                let rest = read.map_err(|error| at(connection.server, error))?;
                let rest = rest.ok_or_else(|| {
                    lost(&format!("server {}: closed before it answered", connection.server.address))
                })?;
                connection.phase = Phase::Receiving(rest);
                let now = monotonic_nanoseconds();
                if rest == 0 {
                    connection.phase = Phase::Idle;
                    incast.answered(number, now);
                } else if rest < left {
                    incast.heard(number, now);
                }
            }
            _ => {
                let address = connection.server.address;
                return Err(lost(&format!("server {address}: closed, or sent what was not asked for")));
            }
        }
        Ok(())
    }

    /// The error that a server could not be connected to within the time.
    fn not_open(&self) -> OsError {
        let mut closed =
            self.connections.iter().filter(|connection| matches!(connection.phase, Phase::Opening(_)));
        let address =
            closed.next().map_or_else(String::new, |connection| connection.server.address.to_string());
        let waited = self.order.silence_nanoseconds as f64 / 1e9;
        OsError::errno(format!("server {address}: no connection after {waited} s"), 110)
    }

    /// The error that a server owes an answer and says nothing.
    fn silent(&self, silence: Silence) -> OsError {
        let Connection { server, phase, .. } = &self.connections[silence.server as usize];
        let all = server.response_bytes as usize;
        let received_bytes = if let Phase::Receiving(left) = phase { all - left } else { 0 };
        let (address, round) = (server.address, silence.round + 1);
        let waited = self.order.silence_nanoseconds as f64 / 1e9;
        OsError::errno(
            format!(
                "server {address}: {received_bytes} of the {all} bytes of round {round}, and nothing for {waited} s"
            ),
            110,
        )
    }

    fn outcome(self, incast: &Incast) -> Result<IncastOutcome> {
        let (mut congestion_control, mut nodelay) = (BTreeSet::new(), BTreeSet::new());
        let mut sent = Sent::default();
        for connection in &self.connections {
            let raw = connection.socket.as_raw_fd();
            congestion_control.insert(tcp::congestion_control(raw)?);
            nodelay.insert(tcp::nodelay(raw)?);
            sent.read(raw)?;
        }
        let rounds = incast.rounds();
        let round_bytes: u64 = self.order.servers.iter().map(|server| u64::from(server.response_bytes)).sum();
        let (first, last) =
            (rounds.first().map_or(0, |row| row.start), rounds.last().map_or(0, |row| row.end));
        Ok(IncastOutcome {
            bytes: round_bytes * rounds.len() as u64,
            active_seconds: seconds(last - first),
            started_seconds: seconds(incast.started()),
            handshake_seconds: seconds(self.handshake),
            congestion_control: congestion_control.into_iter().collect(),
            nodelay: nodelay.into_iter().collect(),
            sent,
            rounds: table(&rounds, (0..self.order.rounds).collect(), None, vec![round_bytes; rounds.len()])?,
            responses: responses(self.order, incast)?,
        })
    }
}

fn responses(order: &IncastOrder, incast: &Incast) -> Result<File> {
    let answers = || {
        order
            .servers
            .iter()
            .enumerate()
            .flat_map(|numbered| (0..order.rounds).map(move |round| (round, numbered)))
    };
    let rounds = answers().map(|(round, _)| round).collect();
    let flows = answers().map(|(_, (flow, _))| flow as u32).collect();
    let bytes = answers().map(|(_, (_, server))| u64::from(server.response_bytes)).collect();
    table(incast.answers(), rounds, Some(flows), bytes)
}

fn table(spans: &[Span], rounds: Vec<u32>, flows: Option<Vec<u32>>, bytes: Vec<u64>) -> Result<File> {
    let mut columns = vec![("round", Column::Word(rounds))];
    columns.extend(flows.map(|flows| ("flow", Column::Word(flows))));
    columns.extend([
        ("start_seconds", Column::Float(spans.iter().map(|span| seconds(span.start)).collect())),
        ("end_seconds", Column::Float(spans.iter().map(|span| seconds(span.end)).collect())),
        ("bytes", Column::Long(bytes)),
    ]);
    spool::write(columns)
}

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}

/// The same error with the server's address before it.
fn at(server: Server, error: OsError) -> OsError {
    OsError { operation: format!("server {}: {}", server.address, error.operation), source: error.source }
}
