//! The serving end of streams: accepts connections that carry the token, then receives and confirms, or sends.

use crate::door::{Door, PAUSE_NANOSECONDS};
use crate::generators::stream::client::Sizes;
use crate::generators::stream::log::{SenderLog, SenderSummary};
use crate::meters::waits::counted;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::listening::PortRange;
use framegauge_linux::multipath;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::tcp::{self, Moved};
use framegauge_linux::{OsError, Result};
use framegauge_traffic::{Amount, Hello, Token, next_write_bytes};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Connections that may be open at once; more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 1024;
/// A client that does not show its token within this time is dropped.
const GREETING_NANOSECONDS: u64 = 5_000_000_000;
/// The same while there is no room for others: whoever knows the token shows it at once.
const HURRY_NANOSECONDS: u64 = 250_000_000;

/// What a serving end saw.
pub struct Served {
    /// Application bytes received and sent.
    pub bytes: u64,
    /// Connections served.
    pub connections: u64,
    /// Connections refused: no token or a wrong one.
    pub refused: u64,
    /// What its sockets said. Where it was not the sender: their congestion control, buffers and calls.
    pub sender: SenderSummary,
}

/// A serving end at work on a thread of its own.
pub struct Serving {
    port: u16,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Result<Served>>,
}

impl Serving {
    /// Listens on `address`, at one of `ports`, for clients that know `token`.
    pub fn start(
        address: IpAddr,
        ports: PortRange,
        token: Token,
        sample_nanoseconds: u64,
        sizes: Sizes,
    ) -> Result<Self> {
        let listener = tcp::listen(address, ports, sizes.opening())?;
        let port = listener
            .local_addr()
            .map_err(|source| OsError { operation: "read the listening port".into(), source })?
            .port();
        if let Some(subflows) = sizes.subflows {
            multipath::allow(subflows)?;
            multipath::announce(address, port, subflows.saturating_sub(1))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Waker::new()?);
        let server = Server {
            door: Door::new(listener),
            token,
            sample_nanoseconds,
            started: monotonic_nanoseconds(),
            clients: Vec::new(),
            log: SenderLog::of(sizes),
            buffer: sizes.buffer(),
            sizes,
            bytes: 0,
            connections: 0,
            refused: 0,
        };
        let (stopping, wake) = (stop.clone(), waker.clone());
        let thread = std::thread::Builder::new()
            .name("serving".into())
            .spawn(counted(move || server.run(&stopping, &wake)))
            .map_err(|source| OsError { operation: "start the serving thread".into(), source })?;
        Ok(Self { port, stop, waker, thread })
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops and reports.
    pub fn finish(self) -> Result<Served> {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|_| Err(OsError::errno("serve streams", 5)))
    }
}

enum Phase {
    Greeting(Vec<u8>),
    Receiving { hello: Hello, received: u64 },
    Sending { hello: Hello, sent: u64, until: u64 },
    Draining { round: u32, flow: u32, sender: bool },
}

struct Client {
    socket: TcpStream,
    phase: Phase,
    accepted: u64,
    next_sample: u64,
}

struct Server {
    door: Door,
    token: Token,
    sample_nanoseconds: u64,
    started: u64,
    clients: Vec<Client>,
    log: SenderLog,
    buffer: Vec<u8>,
    sizes: Sizes,
    bytes: u64,
    connections: u64,
    refused: u64,
}

impl Server {
    fn run(mut self, stop: &AtomicBool, waker: &Waker) -> Result<Served> {
        let mut poll = PollSet::default();
        while !stop.load(Ordering::Acquire) {
            poll.clear();
            poll.add(waker.raw(), true, false);
            let listening = self.has_room() && self.door.is_open();
            poll.add(self.door.raw(), listening, false);
            let now = monotonic_nanoseconds();
            let mut deadline = now + if listening { 1_000_000_000 } else { PAUSE_NANOSECONDS };
            for client in &self.clients {
                let sending = matches!(client.phase, Phase::Sending { .. });
                poll.add(client.socket.as_raw_fd(), !sending, sending);
                if let Phase::Sending { until, .. } = client.phase {
                    deadline = deadline.min(until).min(client.next_sample.max(now));
                }
            }
            poll.wait(Some(deadline.saturating_sub(now)))?;
            self.serve(&poll);
            if poll.readable(1) {
                self.accept();
            }
        }
        // Whose client has everything, but had not closed yet when the end came.
        for client in std::mem::take(&mut self.clients) {
            if let Phase::Draining { round, flow, sender: true } = client.phase {
                let time = monotonic_nanoseconds() - self.started;
                let _ = self.log.finish(client.socket.as_raw_fd(), time, round, flow);
            }
        }
        Ok(Served {
            bytes: self.bytes,
            connections: self.connections,
            refused: self.refused,
            sender: self.log.summary()?,
        })
    }

    fn has_room(&self) -> bool {
        self.clients.len() < MOST_CONNECTIONS
    }

    fn accept(&mut self) {
        while self.has_room() {
            let Some(socket) = self.door.accept() else { break };
            if socket.set_nonblocking(true).is_ok() {
                let accepted = monotonic_nanoseconds();
                self.clients.push(Client {
                    socket,
                    phase: Phase::Greeting(Vec::new()),
                    accepted,
                    next_sample: u64::MAX,
                });
            }
        }
    }

    fn serve(&mut self, poll: &PollSet) {
        let greeting = if self.has_room() { GREETING_NANOSECONDS } else { HURRY_NANOSECONDS };
        let clients = std::mem::take(&mut self.clients);
        for (place, mut client) in clients.into_iter().enumerate() {
            let (readable, writable) = (poll.readable(place + 2), poll.writable(place + 2));
            // A connection that failed ends here; its client reports why the transfer is missing.
            if self.step(&mut client, greeting, readable, writable).unwrap_or(false) {
                self.clients.push(client);
            }
        }
    }

    /// Serves one client; false when it is over.
    fn step(&mut self, client: &mut Client, greeting: u64, readable: bool, writable: bool) -> Result<bool> {
        let now = monotonic_nanoseconds();
        if readable && matches!(client.phase, Phase::Greeting(_)) && !self.greet(client, now)? {
            return Ok(false);
        }
        match client.phase {
            Phase::Greeting(_) => {
                let late = now - client.accepted > greeting;
                self.refused += u64::from(late);
                Ok(!late)
            }
            Phase::Receiving { hello, received } if readable => self.receive(client, hello, received),
            Phase::Sending { hello, sent, until } => self.send(client, hello, sent, until, writable),
            Phase::Draining { round, flow, sender } if readable => self.drain(client, round, flow, sender),
            _ => Ok(true),
        }
    }

    fn greet(&mut self, client: &mut Client, now: u64) -> Result<bool> {
        let Phase::Greeting(bytes) = &mut client.phase else { return Ok(true) };
        let mut rest = [0; Hello::BYTES];
        let missing = Hello::BYTES - bytes.len();
        match tcp::receive(client.socket.as_raw_fd(), &mut rest[..missing])? {
            Moved::Bytes(count) => bytes.extend_from_slice(&rest[..count]),
            Moved::Nothing => return Ok(true),
            Moved::End => {
                self.refused += 1;
                return Ok(false);
            }
        }
        let Ok(message) = <&[u8; Hello::BYTES]>::try_from(bytes.as_slice()) else { return Ok(true) };
        let Ok(hello) = Hello::decode(message, &self.token) else {
            self.refused += 1;
            tcp::reset_on_close(&client.socket);
            return Ok(false);
        };
        self.connections += 1;
        client.phase = if hello.reverse {
            client.next_sample = now + self.sample_nanoseconds;
            let until = match hello.amount {
                Amount::Bytes(_) => u64::MAX,
                Amount::Nanoseconds(duration) => now.saturating_add(duration),
            };
            if let Some(rate) = hello.pacing_bytes_per_second {
                tcp::pace(client.socket.as_raw_fd(), rate.get())?;
            }
            Phase::Sending { hello, sent: 0, until }
        } else {
            Phase::Receiving { hello, received: 0 }
        };
        Ok(true)
    }

    fn receive(&mut self, client: &mut Client, hello: Hello, mut received: u64) -> Result<bool> {
        let socket = client.socket.as_raw_fd();
        let mut ended = false;
        for _ in 0..8 {
            match tcp::receive(socket, &mut self.buffer)? {
                Moved::Bytes(count) => {
                    self.log.call(count);
                    received += count as u64;
                    self.bytes += count as u64;
                }
                Moved::Nothing => break,
                Moved::End => ended = true,
            }
            if ended || hello.bytes().is_some_and(|size| received >= size) {
                self.log.socket(socket)?;
                tcp::send(socket, &received.to_be_bytes())?;
                client.phase = Phase::Draining { round: hello.round, flow: hello.flow, sender: false };
                return Ok(!ended);
            }
        }
        client.phase = Phase::Receiving { hello, received };
        Ok(true)
    }

    fn send(
        &mut self,
        client: &mut Client,
        hello: Hello,
        mut sent: u64,
        until: u64,
        writable: bool,
    ) -> Result<bool> {
        let socket = client.socket.as_raw_fd();
        let now = monotonic_nanoseconds();
        if self.sample_nanoseconds > 0 && now >= client.next_sample {
            client.next_sample = now + self.sample_nanoseconds;
            self.log.sample(socket, now - self.started, hello.round, hello.flow)?;
        }
        for _ in 0..if writable { 8 } else { 0 } {
            let rest = hello.bytes().map_or(u64::MAX, |size| size - sent);
            let write_bytes = next_write_bytes(sent, rest, self.sizes.message_bytes);
            let write_bytes = write_bytes.min(self.buffer.len() as u64) as usize;
            if write_bytes == 0 {
                break;
            }
            let Moved::Bytes(count) = tcp::send(socket, &self.buffer[..write_bytes])? else { break };
            self.log.call(count);
            sent += count as u64;
            self.bytes += count as u64;
        }
        if hello.bytes() == Some(sent) || monotonic_nanoseconds() >= until {
            let _ = client.socket.shutdown(Shutdown::Write);
            client.phase = Phase::Draining { round: hello.round, flow: hello.flow, sender: true };
        } else {
            client.phase = Phase::Sending { hello, sent, until };
        }
        Ok(true)
    }

    /// Waits for the client to close, which it does when it has everything.
    fn drain(&mut self, client: &Client, round: u32, flow: u32, sender: bool) -> Result<bool> {
        let socket = client.socket.as_raw_fd();
        match tcp::receive(socket, &mut self.buffer)? {
            Moved::End => {
                if sender {
                    self.log.finish(socket, monotonic_nanoseconds() - self.started, round, flow)?;
                }
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}
