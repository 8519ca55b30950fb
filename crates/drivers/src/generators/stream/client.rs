//! The client's end of a stream: does what `traffic` decides, on real sockets.

use crate::generators::progress::Progress;
use crate::generators::stream::log::SenderLog;
pub use crate::generators::stream::log::SenderSummary;
use crate::spool::{self, Column};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::multipath;
pub use framegauge_linux::multipath::MOST_SUBFLOWS;
use framegauge_linux::poll::PollSet;
use framegauge_linux::tcp::{self, Moved, Opening};
use framegauge_linux::{OsError, Result};
use framegauge_traffic::{Action, Amount, Hello, Stream, StreamSpec, Token};
use std::fs::File;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::fd::AsRawFd;

/// What is sent or received at once without a size of messages, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;

/// What an application chooses of its sockets and calls; `None`: the kernel tunes the buffers, and calls are large.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sizes {
    /// `SO_SNDBUF` and `SO_RCVBUF`, before the handshake.
    pub socket_buffer_bytes: Option<u32>,
    /// Of each write and each read.
    pub message_bytes: Option<NonZeroU32>,
    /// Of each connection, by MPTCP; `None`: TCP.
    pub subflows: Option<u8>,
}

impl Sizes {
    /// What sockets are before the handshake.
    pub(crate) fn opening(&self) -> Opening {
        Opening { buffer_bytes: self.socket_buffer_bytes, is_multipath: self.subflows.is_some() }
    }

    /// Room for what one call sends or receives.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        vec![0; self.message_bytes.map_or(CHUNK_BYTES, |size| size.get() as usize)]
    }
}

/// A stream to run.
#[derive(Debug, Clone, Copy)]
pub struct StreamOrder {
    /// Where the serving end listens.
    pub address: SocketAddr,
    /// The secret that both ends were given.
    pub token: Token,
    /// Rounds, flows, size or duration.
    pub spec: StreamSpec,
    /// Nanoseconds between two readings of a connection's state; 0: none.
    pub sample_nanoseconds: u64,
    /// What a flow may send at most, in payload bytes per second; `None`: as fast as it goes.
    pub pacing_bytes_per_second: Option<NonZeroU64>,
    /// Of this end; the serving end has its own.
    pub sizes: Sizes,
}

/// What a stream came to.
pub struct StreamOutcome {
    /// Rounds run.
    pub rounds: u32,
    /// Bytes delivered.
    pub bytes: u64,
    /// Sum over rounds of (last end − first start).
    pub active_seconds: f64,
    /// When it began, on `CLOCK_MONOTONIC`.
    pub started_seconds: f64,
    /// What the client's sockets said, if it was the sender; else their congestion control, buffers and calls.
    pub sender: SenderSummary,
    /// One row a finished transfer, as a spool file.
    pub transfers: File,
}

struct Connection {
    socket: TcpStream,
    connected: bool,
    greeting_sent: usize,
    greeting: [u8; Hello::BYTES],
    answer: Vec<u8>,
    received: u64,
    next_sample: u64,
    number: u32,
}

/// Runs a stream to its end. `progress` is told bytes and seconds about once a second and may stop it.
pub fn run(order: &StreamOrder, progress: &mut dyn FnMut(u64, f64) -> bool) -> Result<StreamOutcome> {
    if let Some(subflows) = order.sizes.subflows {
        multipath::allow(subflows)?;
    }
    let mut client = Client::new(order);
    let mut report = Progress::new(client.started, "stream", progress);
    let mut poll = PollSet::default();
    while !client.stream.ended() {
        client.act()?;
        client.wait(&mut poll)?;
        client.serve(&poll)?;
        report.tell(client.moved, monotonic_nanoseconds())?;
    }
    client.outcome()
}

struct Client<'a> {
    order: &'a StreamOrder,
    stream: Stream,
    started: u64,
    connections: Vec<Option<Connection>>,
    log: SenderLog,
    transfer_retransmits: Vec<u32>,
    buffer: Vec<u8>,
    moved: u64,
}

impl<'a> Client<'a> {
    fn new(order: &'a StreamOrder) -> Self {
        let started = monotonic_nanoseconds();
        Self {
            order,
            stream: Stream::new(order.spec, started),
            started,
            connections: (0..order.spec.flows).map(|_| None).collect(),
            log: SenderLog::of(order.sizes),
            transfer_retransmits: Vec::new(),
            buffer: order.sizes.buffer(),
            moved: 0,
        }
    }

    fn act(&mut self) -> Result<()> {
        while let Some(action) = self.stream.next_action(monotonic_nanoseconds()) {
            match action {
                Action::Connect { flow, round } => self.connect(flow, round)?,
                Action::Finish { flow } => {
                    self.count(flow)?;
                    if let Some(connection) = &self.connections[flow as usize] {
                        let _ = connection.socket.shutdown(Shutdown::Write);
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes what has been delivered when a flow's time is over.
    fn count(&mut self, flow: u32) -> Result<()> {
        let now = monotonic_nanoseconds();
        let Some(connection) = &self.connections[flow as usize] else { return Ok(()) };
        if self.stream.is_to_be_counted(flow, now) {
            // The greeting and the SYN are acknowledged too.
            let socket = connection.socket.as_raw_fd();
            let (greeting, acknowledged) = match self.order.sizes.subflows {
                None => (Hello::BYTES as u64 + 1, tcp::info(socket)?.bytes_acked),
                Some(_) => (Hello::BYTES as u64, multipath::acknowledged_bytes(socket)?),
            };
            self.stream.counted(flow, acknowledged.saturating_sub(greeting), now);
        }
        Ok(())
    }

    fn connect(&mut self, flow: u32, round: u32) -> Result<()> {
        let greeting = Hello {
            token: self.order.token,
            reverse: self.order.spec.reverse,
            amount: self.order.spec.amount,
            pacing_bytes_per_second: self.order.pacing_bytes_per_second,
            flow,
            round,
        };
        let socket = tcp::start_connect(self.order.address, self.order.sizes.opening())?;
        if let Some(rate) = self.order.pacing_bytes_per_second.filter(|_| !self.order.spec.reverse) {
            tcp::pace(socket.as_raw_fd(), rate.get())?;
        }
        self.connections[flow as usize] = Some(Connection {
            socket,
            connected: false,
            greeting_sent: 0,
            greeting: greeting.encode(),
            answer: Vec::with_capacity(8),
            received: 0,
            next_sample: 0,
            number: flow,
        });
        Ok(())
    }

    fn wait(&self, poll: &mut PollSet) -> Result<()> {
        poll.clear();
        let now = monotonic_nanoseconds();
        let mut deadline = self.stream.deadline().unwrap_or(u64::MAX).min(now + 100_000_000);
        for connection in self.connections.iter().flatten() {
            let greeting = connection.greeting_sent < Hello::BYTES;
            // In reverse there is nothing to send and nothing to sample: it would wake up at once, again and again.
            let forward = !self.order.spec.reverse;
            let sending = forward && self.stream.allowance(connection.number, now) > 0;
            poll.add(
                connection.socket.as_raw_fd(),
                connection.connected,
                !connection.connected || greeting || sending,
            );
            if connection.connected && forward && self.order.sample_nanoseconds > 0 {
                deadline = deadline.min(connection.next_sample);
            }
        }
        poll.wait(Some(deadline.saturating_sub(now)))
    }

    fn serve(&mut self, poll: &PollSet) -> Result<()> {
        let mut place = 0;
        for flow in 0..self.connections.len() {
            let Some(mut connection) = self.connections[flow].take() else { continue };
            let (readable, writable) = (poll.readable(place), poll.writable(place));
            place += 1;
            if !self.step(&mut connection, readable, writable)? {
                self.connections[flow] = Some(connection);
            }
        }
        Ok(())
    }

    /// Serves one connection; true when it is over.
    fn step(&mut self, connection: &mut Connection, readable: bool, writable: bool) -> Result<bool> {
        let socket = connection.socket.as_raw_fd();
        if writable && !connection.connected {
            tcp::finish_connect(&connection.socket)?;
            connection.connected = true;
            self.stream.connected(connection.number, monotonic_nanoseconds());
        }
        if !connection.connected {
            return Ok(false);
        }
        if writable && !self.greet(connection)? {
            return Ok(false);
        }
        self.sample(connection)?;
        if writable && !self.order.spec.reverse {
            self.push(connection)?;
        }
        if !readable {
            return Ok(false);
        }
        let ended =
            if self.order.spec.reverse { self.pull(connection)? } else { self.confirmation(connection)? };
        let Some(bytes) = ended else { return Ok(false) };
        let now = monotonic_nanoseconds();
        let retransmits = if self.order.spec.reverse {
            self.log.socket(socket)?;
            0
        } else {
            self.log.finish(socket, now - self.started, self.stream.round(), connection.number)?
        };
        self.transfer_retransmits.push(retransmits);
        self.stream.confirmed(connection.number, bytes, now);
        Ok(true)
    }

    fn greet(&mut self, connection: &mut Connection) -> Result<bool> {
        if connection.greeting_sent == Hello::BYTES {
            return Ok(true);
        }
        let rest = &connection.greeting[connection.greeting_sent..];
        if let Moved::Bytes(count) = tcp::send(connection.socket.as_raw_fd(), rest)? {
            connection.greeting_sent += count;
        }
        Ok(connection.greeting_sent == Hello::BYTES)
    }

    fn push(&mut self, connection: &Connection) -> Result<()> {
        // A bound on the turn keeps parallel flows and the sampler served.
        for _ in 0..8 {
            let (message, now) = (self.order.sizes.message_bytes, monotonic_nanoseconds());
            let write_bytes = self.stream.next_write(connection.number, message, now);
            let count = write_bytes.min(self.buffer.len() as u64) as usize;
            if count == 0 {
                break;
            }
            match tcp::send(connection.socket.as_raw_fd(), &self.buffer[..count])? {
                Moved::Bytes(count) => {
                    self.log.call(count);
                    self.stream.sent(connection.number, count as u64);
                    self.moved += count as u64;
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn confirmation(&mut self, connection: &mut Connection) -> Result<Option<u64>> {
        let mut bytes = [0; 8];
        match tcp::receive(connection.socket.as_raw_fd(), &mut bytes[connection.answer.len()..])? {
            Moved::Bytes(count) => {
                let from = connection.answer.len();
                connection.answer.extend_from_slice(&bytes[from..from + count]);
            }
            Moved::Nothing => return Ok(None),
            Moved::End => {
                return Err(lost("the serving end closed the connection before it confirmed the transfer"));
            }
        }
        let Ok(bytes) = <[u8; 8]>::try_from(connection.answer.as_slice()) else { return Ok(None) };
        Ok(Some(u64::from_be_bytes(bytes)))
    }

    fn pull(&mut self, connection: &mut Connection) -> Result<Option<u64>> {
        for _ in 0..8 {
            match tcp::receive(connection.socket.as_raw_fd(), &mut self.buffer)? {
                Moved::Bytes(count) => {
                    let now = monotonic_nanoseconds();
                    if self.stream.is_to_be_counted(connection.number, now) {
                        self.stream.counted(connection.number, connection.received, now);
                    }
                    self.log.call(count);
                    connection.received += count as u64;
                    self.moved += count as u64;
                }
                Moved::Nothing => return Ok(None),
                Moved::End => {
                    return match self.order.spec.amount {
                        Amount::Bytes(size) if connection.received < size => {
                            Err(lost("the serving end closed the connection before it sent everything"))
                        }
                        _ => Ok(Some(connection.received)),
                    };
                }
            }
            if matches!(self.order.spec.amount, Amount::Bytes(size) if connection.received >= size) {
                return Ok(Some(connection.received));
            }
        }
        Ok(None)
    }

    fn sample(&mut self, connection: &mut Connection) -> Result<()> {
        if self.order.sample_nanoseconds == 0 || self.order.spec.reverse {
            return Ok(());
        }
        let now = monotonic_nanoseconds();
        if connection.next_sample == 0 {
            // The first reading waits a whole interval: before that there is no RTT to read.
            connection.next_sample = now + self.order.sample_nanoseconds;
        } else if now >= connection.next_sample {
            connection.next_sample = now + self.order.sample_nanoseconds;
            let (time, round) = (now - self.started, self.stream.round());
            self.log.sample(connection.socket.as_raw_fd(), time, round, connection.number)?;
        }
        Ok(())
    }

    fn outcome(self) -> Result<StreamOutcome> {
        let seconds = |time: u64| time as f64 * 1e-9;
        let transfers = self.stream.transfers();
        let column = |value: fn(&framegauge_traffic::Transfer) -> u64| -> Vec<f64> {
            transfers.iter().map(|transfer| seconds(value(transfer))).collect()
        };
        let table = spool::write(vec![
            ("round", Column::Word(transfers.iter().map(|transfer| transfer.round).collect())),
            ("flow", Column::Word(transfers.iter().map(|transfer| transfer.flow).collect())),
            ("start_seconds", Column::Float(column(|transfer| transfer.start_nanoseconds))),
            ("connected_seconds", Column::Float(column(|transfer| transfer.connected_nanoseconds))),
            ("end_seconds", Column::Float(column(|transfer| transfer.end_nanoseconds))),
            ("bytes", Column::Long(transfers.iter().map(|transfer| transfer.bytes).collect())),
            ("counted_seconds", Column::Float(column(|transfer| transfer.counted_nanoseconds))),
            (
                "counted_bytes",
                Column::Long(transfers.iter().map(|transfer| transfer.counted_bytes).collect()),
            ),
            ("retransmits", Column::Word(self.transfer_retransmits)),
        ])?;
        Ok(StreamOutcome {
            rounds: self.stream.round() + 1,
            bytes: transfers.iter().map(|transfer| transfer.bytes).sum(),
            active_seconds: seconds(self.stream.active_nanoseconds()),
            started_seconds: seconds(self.started),
            sender: self.log.summary()?,
            transfers: table,
        })
    }
}

fn lost(operation: &str) -> OsError {
    OsError::errno(operation, 104)
}
