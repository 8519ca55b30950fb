//! The client's end of QUIC transfers: does what `traffic` decides, each flow on a connection and a socket of its own.
//!
//! quinn sends a probe of the path MTU only while it has nothing else to send. Where the host's own queue holds it back,
//! and not its window, a client that writes as much as it may would leave no such moment, and the search would stop half
//! way. So it writes the next piece only when the last one has been sent, as applications do that keep little unsent
//! (`TCP_NOTSENT_LOWAT`, of TCP).

use crate::generators::progress::Progress;
use crate::generators::quic::keys::{self, Key};
use crate::generators::quic::settings::QuicSettings;
use crate::generators::quic::wire::{Came, QuicSummary, Wire, until};
use crate::spool::{self, Column};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::PollSet;
use framegauge_linux::{OsError, Result, sched, udp};
use framegauge_traffic::{Action, Hello, Stream, StreamSpec, Token, Transfer};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, Dir, Event, ReadError, StreamId, WriteError};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// What is written at once.
const PIECE_BYTES: usize = 64 * 1024;
/// How long nothing is done at most.
const PAUSE_NANOSECONDS: u64 = 100_000_000;
const CONNECTION_RESET: i32 = 104;

/// QUIC transfers to run.
#[derive(Debug, Clone)]
pub struct QuicOrder {
    /// Where the serving end is.
    pub address: SocketAddr,
    /// The secret that both ends were given.
    pub token: Token,
    /// Who the serving end is.
    pub key: Key,
    /// Rounds, flows, size or duration; never in reverse.
    pub spec: StreamSpec,
    /// Of this end; the serving end has its own.
    pub settings: QuicSettings,
}

/// What QUIC transfers came to.
pub struct QuicOutcome {
    /// Rounds run.
    pub rounds: u32,
    /// Application bytes that the serving end confirmed.
    pub bytes: u64,
    /// Application bytes that were written.
    pub written: u64,
    /// Sum over rounds of (last end − first start).
    pub active_seconds: f64,
    /// When it began, on `CLOCK_MONOTONIC`.
    pub started_seconds: f64,
    /// What this end sent and found.
    pub summary: QuicSummary,
    /// One row a finished transfer, as a spool file.
    pub transfers: File,
}

/// Runs the transfers to their end. `progress` is told bytes and seconds about once a second and may stop it.
pub fn run(order: &QuicOrder, progress: &mut dyn FnMut(u64, f64) -> bool) -> Result<QuicOutcome> {
    sched::finest_timers();
    let mut client = Client::new(order)?;
    let mut report = Progress::new(client.started, "QUIC transfers", progress);
    let mut poll = PollSet::default();
    while !client.stream.ended() {
        client.act()?;
        let busy = client.serve()?;
        report.tell(client.written, monotonic_nanoseconds())?;
        if !busy {
            client.wait(&mut poll)?;
        }
    }
    client.outcome()
}

/// A flow's connection.
struct Link {
    wire: Wire,
    handle: ConnectionHandle,
    connection: Connection,
    stream: Option<StreamId>,
    greeting: [u8; Hello::BYTES],
    greeted: usize,
    is_to_finish: bool,
    answer: Vec<u8>,
    /// The bytes that have been sent when all that was written has; those that had been when it was written, and it.
    sent_by_then: u64,
    /// Nothing was left that could be sent: all was, or the window was full.
    is_idle: bool,
    /// As much is unconfirmed as may be; only what comes changes that.
    is_blocked: bool,
}

impl Link {
    /// Whether all that was written has been sent. Datagrams have more bytes than what is in them, so that these tell a
    /// full window from nothing left.
    fn has_sent(&self) -> bool {
        self.is_idle && self.sent_bytes() >= self.sent_by_then
    }

    fn sent_bytes(&self) -> u64 {
        self.connection.stats().udp_tx.bytes
    }
}

struct Client<'a> {
    order: &'a QuicOrder,
    tls: Arc<QuicClientConfig>,
    source: IpAddr,
    stream: Stream,
    started: u64,
    links: Vec<Option<Link>>,
    came: Came,
    piece: Vec<u8>,
    written: u64,
    summary: QuicSummary,
}

impl<'a> Client<'a> {
    fn new(order: &'a QuicOrder) -> Result<Self> {
        let any = if order.address.is_ipv6() { IpAddr::from([0; 16]) } else { IpAddr::from([0; 4]) };
        let (tls, source) = (Arc::new(keys::asking(&order.key)?), udp::way(any, order.address.ip())?.source);
        let started = monotonic_nanoseconds();
        Ok(Self {
            order,
            tls,
            source,
            stream: Stream::new(order.spec, started),
            started,
            links: (0..order.spec.flows).map(|_| None).collect(),
            came: Came::default(),
            piece: vec![0; PIECE_BYTES],
            written: 0,
            summary: QuicSummary::default(),
        })
    }

    fn act(&mut self) -> Result<()> {
        while let Some(action) = self.stream.next_action(monotonic_nanoseconds()) {
            match action {
                Action::Connect { flow, round } => self.connect(flow, round)?,
                Action::Finish { flow } => {
                    if let Some(link) = &mut self.links[flow as usize] {
                        link.is_to_finish = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn connect(&mut self, flow: u32, round: u32) -> Result<()> {
        let order = self.order;
        let mut wire = Wire::open(self.source, PortRange::ANY, &order.settings, None)?;
        let mut config = ClientConfig::new(self.tls.clone());
        config.transport_config(Arc::new(order.settings.transport(self.source, order.address)));
        let (handle, connection) = wire
            .endpoint
            .connect(Instant::now(), config, order.address, keys::NAME)
            .map_err(|error| lost(order.address, error))?;
        let greeting = Hello {
            token: order.token,
            reverse: false,
            amount: order.spec.amount,
            pacing_bytes_per_second: None,
            flow,
            round,
        };
        self.links[flow as usize] = Some(Link {
            wire,
            handle,
            connection,
            stream: None,
            greeting: greeting.encode(),
            greeted: 0,
            is_to_finish: false,
            answer: Vec::with_capacity(8),
            sent_by_then: 0,
            is_idle: true,
            is_blocked: false,
        });
        Ok(())
    }

    /// Serves every flow once; true if one has more to do at once.
    fn serve(&mut self) -> Result<bool> {
        let mut busy = false;
        for flow in 0..self.links.len() {
            let Some(mut link) = self.links[flow].take() else { continue };
            let (more, ended) = self.step(flow as u32, &mut link)?;
            busy |= more || ended;
            if ended {
                self.summary.add(&link.wire.summary);
            } else {
                self.links[flow] = Some(link);
            }
        }
        Ok(busy)
    }

    /// Serves one flow: whether it has more to do at once, and whether it is over.
    fn step(&mut self, flow: u32, link: &mut Link) -> Result<(bool, bool)> {
        let now = Instant::now();
        let mut more = link.wire.receive(now, &mut self.came)?;
        for (_, event) in self.came.events.drain(..) {
            link.is_blocked = false;
            link.connection.handle_event(event);
        }
        while let Some(event) = link.connection.poll() {
            match event {
                Event::Connected => {
                    link.stream = link.connection.streams().open(Dir::Bi);
                    self.stream.connected(flow, monotonic_nanoseconds());
                }
                Event::ConnectionLost { reason } => return Err(lost(self.order.address, reason)),
                _ => {}
            }
        }
        let confirmed = match link.stream {
            Some(id) => {
                if link.has_sent() {
                    self.push(flow, link, id)?;
                }
                pull(link, id, self.order.address)?
            }
            None => None,
        };
        if let Some(bytes) = confirmed {
            link.wire.summary.settle(&link.connection);
            link.connection.close(now, 0u32.into(), bytes::Bytes::new());
            self.stream.confirmed(flow, bytes, monotonic_nanoseconds());
        }
        let is_cut_short = link.wire.drive(link.handle, &mut link.connection, now)?;
        link.is_idle = !is_cut_short && !link.wire.is_full();
        more |= is_cut_short || (link.has_sent() && self.has_to_write(flow, link));
        Ok((more, confirmed.is_some()))
    }

    /// Whether there is a piece to write, or the end of the stream.
    fn has_to_write(&self, flow: u32, link: &Link) -> bool {
        link.stream.is_some()
            && !link.is_blocked
            && (link.is_to_finish || self.stream.allowance(flow, monotonic_nanoseconds()) > 0)
    }

    /// Writes the greeting, the next piece, or the end.
    fn push(&mut self, flow: u32, link: &mut Link, id: StreamId) -> Result<()> {
        let sent = link.sent_bytes();
        let mut stream = link.connection.send_stream(id);
        let is_greeting = link.greeted < Hello::BYTES;
        let part = if is_greeting {
            &link.greeting[link.greeted..]
        } else {
            let most = self.stream.allowance(flow, monotonic_nanoseconds());
            &self.piece[..most.min(PIECE_BYTES as u64) as usize]
        };
        if part.is_empty() {
            if link.is_to_finish {
                link.is_to_finish = false;
                stream.finish().map_err(|error| lost(self.order.address, error))?;
            }
            return Ok(());
        }
        let count = match stream.write(part) {
            Ok(count) => count,
            Err(WriteError::Blocked) => {
                link.is_blocked = true;
                return Ok(());
            }
            Err(error) => return Err(lost(self.order.address, error)),
        };
        link.sent_by_then = sent + count as u64;
        if is_greeting {
            link.greeted += count;
        } else {
            self.stream.sent(flow, count as u64);
            self.written += count as u64;
        }
        Ok(())
    }

    fn wait(&mut self, poll: &mut PollSet) -> Result<()> {
        poll.clear();
        let (now, at) = (monotonic_nanoseconds(), Instant::now());
        let mut timeout = self.stream.deadline().map_or(PAUSE_NANOSECONDS, |time| time.saturating_sub(now));
        for link in self.links.iter_mut().flatten() {
            link.wire.watch(poll);
            if let Some(time) = link.connection.poll_timeout() {
                timeout = timeout.min(until(time, at));
            }
        }
        poll.wait(Some(timeout.min(PAUSE_NANOSECONDS)))
    }

    fn outcome(self) -> Result<QuicOutcome> {
        let transfers = self.stream.transfers();
        let column = |value: fn(&Transfer) -> u64| -> Column {
            Column::Float(transfers.iter().map(|transfer| seconds(value(transfer))).collect())
        };
        let table = spool::write(vec![
            ("round", Column::Word(transfers.iter().map(|transfer| transfer.round).collect())),
            ("flow", Column::Word(transfers.iter().map(|transfer| transfer.flow).collect())),
            ("start_seconds", column(|transfer| transfer.start_nanoseconds)),
            ("connected_seconds", column(|transfer| transfer.connected_nanoseconds)),
            ("end_seconds", column(|transfer| transfer.end_nanoseconds)),
            ("bytes", Column::Long(transfers.iter().map(|transfer| transfer.bytes).collect())),
            ("counted_seconds", column(|transfer| transfer.counted_nanoseconds)),
            (
                "counted_bytes",
                Column::Long(transfers.iter().map(|transfer| transfer.counted_bytes).collect()),
            ),
        ])?;
        Ok(QuicOutcome {
            rounds: self.stream.round() + 1,
            bytes: transfers.iter().map(|transfer| transfer.bytes).sum(),
            written: self.written,
            active_seconds: seconds(self.stream.active_nanoseconds()),
            started_seconds: seconds(self.started),
            summary: self.summary,
            transfers: table,
        })
    }
}

/// The number of bytes that the serving end confirms, once it has come.
fn pull(link: &mut Link, id: StreamId, address: SocketAddr) -> Result<Option<u64>> {
    let mut stream = link.connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
    loop {
        match chunks.next(8) {
            Ok(Some(chunk)) => link.answer.extend_from_slice(&chunk.bytes),
            Ok(None) | Err(ReadError::Blocked) => break,
            Err(error) => return Err(lost(address, error)),
        }
    }
    let _ = chunks.finalize();
    Ok(<[u8; 8]>::try_from(link.answer.as_slice()).ok().map(u64::from_be_bytes))
}

fn lost(address: SocketAddr, reason: impl std::fmt::Display) -> OsError {
    OsError::errno(format!("QUIC connection to {address}: {reason}"), CONNECTION_RESET)
}

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}
