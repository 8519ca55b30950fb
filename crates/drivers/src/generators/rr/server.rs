//! The serving end of request/response: accepts connections that carry the token, and answers every request.
//!
//! The first few connections get a thread each that blocks in `recv`: waiting in `epoll` first costs a response a
//! microsecond. Many connections share one thread, where a turn serves all that are ready.

use crate::door::{Door, PAUSE_NANOSECONDS};
use crate::generators::rr::message::{Buffers, Outgoing};
use crate::generators::rr::sent::Sent;
use crate::meters::waits::counted;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::epoll::{Epoll, Ready};
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::tcp::{self, Moved};
use framegauge_linux::{OsError, Result};
use framegauge_traffic::{RrHello, Token};
use std::collections::BTreeSet;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Connections that may be open at once; more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 1024;
/// Connections that get a thread of their own.
const FEW_CONNECTIONS: usize = 4;
/// A client that does not show its token within this time is dropped.
const GREETING_NANOSECONDS: u64 = 5_000_000_000;
/// The same while there is no room for others: whoever knows the token shows it at once.
const HURRY_NANOSECONDS: u64 = 250_000_000;
const STOP: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// What a serving end saw.
#[derive(Debug, Default)]
pub struct RrServed {
    /// Requests answered.
    pub requests: u64,
    /// Payload bytes of these requests and their responses.
    pub bytes: u64,
    /// Connections served.
    pub connections: u64,
    /// Connections refused: no token or a wrong one.
    pub refused: u64,
    /// The algorithms read back from its live sockets.
    pub congestion_control: BTreeSet<String>,
    /// `TCP_NODELAY`, read back from its live sockets.
    pub nodelay: BTreeSet<bool>,
    /// What these sockets tell of what they sent.
    pub sent: Sent,
}

impl RrServed {
    fn answered(&mut self, hello: &RrHello) {
        self.requests += 1;
        self.bytes += u64::from(hello.request_bytes) + u64::from(hello.response_bytes);
    }

    /// Reads a last time from a socket that served.
    fn read_back(&mut self, socket: &TcpStream) {
        self.congestion_control.extend(tcp::congestion_control(socket.as_raw_fd()));
        self.nodelay.extend(tcp::nodelay(socket.as_raw_fd()));
        let _ = self.sent.read(socket.as_raw_fd());
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.congestion_control.extend(other.congestion_control);
        self.nodelay.extend(other.nodelay);
        self.sent.add(other.sent);
    }
}

/// A serving end at work on a thread of its own.
pub struct RrServing {
    port: u16,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Result<RrServed>>,
}

impl RrServing {
    /// Listens on `address`, at one of `ports`, for clients that know `token`; `nodelay` is
    /// set or cleared on every connection.
    pub fn start(address: IpAddr, ports: PortRange, token: Token, nodelay: bool) -> Result<Self> {
        let listener = tcp::listen(address, ports, None)?;
        let port = listener
            .local_addr()
            .map_err(|source| OsError { operation: "read the listening port".into(), source })?
            .port();
        let (stop, waker) = (Arc::new(AtomicBool::new(false)), Arc::new(Waker::new()?));
        let server = Server {
            epoll: Epoll::new()?,
            door: Door::new(listener),
            listening: true,
            token,
            nodelay,
            clients: Vec::new(),
            free: Vec::new(),
            greeting: 0,
            alone: Vec::new(),
            buffers: Buffers::new(),
            served: RrServed::default(),
        };
        server.epoll.add(waker.raw(), STOP, true, false)?;
        server.epoll.add(server.door.raw(), LISTENER, true, false)?;
        let stopping = stop.clone();
        let thread = std::thread::Builder::new()
            .name("rr-serving".into())
            .spawn(counted(move || server.run(&stopping)))
            .map_err(|source| OsError { operation: "start the serving thread".into(), source })?;
        Ok(Self { port, stop, waker, thread })
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops and reports.
    pub fn finish(self) -> Result<RrServed> {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|_| Err(OsError::errno("serve requests", 5)))
    }
}

#[derive(Clone, Copy)]
enum Phase {
    Greeting { bytes: [u8; RrHello::BYTES], got: usize, until: u64 },
    Receiving { hello: RrHello, left: usize },
    Sending { hello: RrHello, response: Outgoing },
}

/// What becomes of a client after its turn.
enum Next {
    /// It waits for its next.
    Wait,
    /// It goes on in a thread of its own.
    Leave,
    /// It is over.
    End,
}

struct Client {
    socket: TcpStream,
    phase: Phase,
}

/// A connection with a thread of its own; the socket is kept to end it from outside.
struct Alone {
    socket: TcpStream,
    thread: JoinHandle<RrServed>,
}

impl Alone {
    fn start(socket: &TcpStream, hello: RrHello) -> std::io::Result<Self> {
        let (handle, own) = (socket.try_clone()?, socket.try_clone()?);
        own.set_nonblocking(false)?;
        let work = move || {
            let mut served = RrServed::default();
            // A connection that failed ends here; its client reports what is missing.
            let _ = answer(&own, &hello, &mut served);
            served.read_back(&own);
            // The kept descriptor holds the connection open, so closing this one would not tell the client.
            let _ = own.shutdown(Shutdown::Both);
            served
        };
        let thread = std::thread::Builder::new().name("rr-serving-one".into()).spawn(counted(work))?;
        Ok(Self { socket: handle, thread })
    }

    fn end(self, served: &mut RrServed) {
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Ok(own) = self.thread.join() {
            served.add(own);
        }
    }
}

/// Answers requests on one blocking connection until it ends.
fn answer(socket: &TcpStream, hello: &RrHello, served: &mut RrServed) -> Result<()> {
    let mut buffers = Buffers::new();
    loop {
        let mut left = hello.request_bytes as usize;
        while left > 0 {
            let Some(rest) = buffers.read(socket.as_raw_fd(), left)? else { return Ok(()) };
            left = rest;
        }
        let mut response = Outgoing::new(hello.response_bytes, hello.header_bytes);
        while !response.write(socket.as_raw_fd(), &buffers)? {
            let mut poll = PollSet::default();
            poll.add(socket.as_raw_fd(), false, true);
            poll.wait(None)?;
        }
        served.answered(hello);
    }
}

struct Server {
    epoll: Epoll,
    door: Door,
    listening: bool,
    token: Token,
    nodelay: bool,
    /// By the key that epoll knows them by; `free` holds the places that are empty.
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    /// Clients that have not shown a token yet: only they need a clock.
    greeting: usize,
    /// Connections with a thread of their own.
    alone: Vec<Alone>,
    buffers: Buffers,
    served: RrServed,
}

impl Server {
    fn run(mut self, stop: &AtomicBool) -> Result<RrServed> {
        while !stop.load(Ordering::Acquire) {
            let timeout = match (self.listening, self.greeting) {
                (true, 0) => None,
                (true, _) => Some(1_000_000_000),
                (false, _) => Some(PAUSE_NANOSECONDS),
            };
            for place in 0..self.epoll.wait(timeout)? {
                match self.epoll.ready(place) {
                    Ready { key: STOP, .. } => {}
                    Ready { key: LISTENER, .. } => self.accept(),
                    ready => self.serve(ready),
                }
            }
            if self.greeting > 0 {
                self.drop_the_silent();
            }
            let is_listening = self.has_room() && self.door.is_open();
            if is_listening != self.listening {
                self.listening = is_listening;
                self.epoll.change(self.door.raw(), LISTENER, is_listening, false)?;
            }
        }
        let clients = std::mem::take(&mut self.clients);
        clients.into_iter().flatten().for_each(|client| self.retire(&client));
        self.alone.into_iter().for_each(|alone| alone.end(&mut self.served));
        Ok(self.served)
    }

    fn has_room(&self) -> bool {
        self.clients.len() - self.free.len() < MOST_CONNECTIONS
    }

    fn accept(&mut self) {
        while self.has_room() {
            let Some(socket) = self.door.accept() else { return };
            let place = self.free.pop().unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() - 1
            });
            let raw = socket.as_raw_fd();
            let prepared = socket.set_nonblocking(true).is_ok()
                && tcp::set_nodelay(raw, self.nodelay).is_ok()
                && self.epoll.add(raw, place as u64, true, false).is_ok();
            if !prepared {
                self.free.push(place);
                continue;
            }
            let until = monotonic_nanoseconds() + GREETING_NANOSECONDS;
            self.greeting += 1;
            let phase = Phase::Greeting { bytes: [0; RrHello::BYTES], got: 0, until };
            self.clients[place] = Some(Client { socket, phase });
        }
    }

    fn serve(&mut self, ready: Ready) {
        let place = ready.key as usize;
        let Some(mut client) = self.clients.get_mut(place).and_then(Option::take) else { return };
        // A connection that failed ends here; its client reports what is missing.
        match self.step(&mut client, ready.key).unwrap_or(Next::End) {
            Next::Wait => {
                self.clients[place] = Some(client);
                return;
            }
            Next::Leave => {}
            Next::End => self.retire(&client),
        }
        self.free.push(place);
    }

    /// Gives a client that has just shown its token a thread of its own, if there are few.
    fn hand_over(&mut self, client: &Client, hello: RrHello) -> Result<Next> {
        for done in self.alone.extract_if(.., |alone| alone.thread.is_finished()) {
            done.end(&mut self.served);
        }
        if self.alone.len() >= FEW_CONNECTIONS {
            return Ok(Next::Wait);
        }
        let raw = client.socket.as_raw_fd();
        // Its descriptors outlive this one: epoll would go on watching them.
        self.epoll.remove(raw)?;
        let alone = Alone::start(&client.socket, hello);
        self.alone
            .push(alone.map_err(|source| OsError { operation: "start a serving thread".into(), source })?);
        Ok(Next::Leave)
    }

    /// Serves one client.
    fn step(&mut self, client: &mut Client, key: u64) -> Result<Next> {
        let socket = client.socket.as_raw_fd();
        match client.phase {
            Phase::Greeting { bytes, got: received, until } => self.greet(client, bytes, received, until),
            Phase::Receiving { hello, left } => {
                let Some(left) = self.buffers.read(socket, left)? else { return Ok(Next::End) };
                client.phase = Phase::Receiving { hello, left };
                if left > 0 {
                    return Ok(Next::Wait);
                }
                let response = Outgoing::new(hello.response_bytes, hello.header_bytes);
                self.respond(client, key, hello, response)
            }
            Phase::Sending { hello, response } => self.respond(client, key, hello, response),
        }
    }

    fn respond(
        &mut self,
        client: &mut Client,
        key: u64,
        hello: RrHello,
        mut response: Outgoing,
    ) -> Result<Next> {
        let socket = client.socket.as_raw_fd();
        let waited = matches!(client.phase, Phase::Sending { .. });
        let done = response.write(socket, &self.buffers)?;
        if done {
            self.served.answered(&hello);
            client.phase = Phase::Receiving { hello, left: hello.request_bytes as usize };
        } else {
            client.phase = Phase::Sending { hello, response };
        }
        if done == waited {
            self.epoll.change(socket, key, done, !done)?;
        }
        Ok(Next::Wait)
    }

    fn greet(
        &mut self,
        client: &mut Client,
        mut bytes: [u8; RrHello::BYTES],
        mut received: usize,
        until: u64,
    ) -> Result<Next> {
        let socket = client.socket.as_raw_fd();
        match tcp::receive(socket, &mut bytes[received..])? {
            Moved::Bytes(count) => received += count,
            Moved::Nothing => {}
            Moved::End => return Ok(Next::End),
        }
        if received < RrHello::BYTES {
            client.phase = Phase::Greeting { bytes, got: received, until };
            return Ok(Next::Wait);
        }
        let Ok(hello) = RrHello::decode(&bytes, &self.token) else {
            tcp::reset_on_close(&client.socket);
            return Ok(Next::End);
        };
        self.greeting -= 1;
        self.served.connections += 1;
        client.phase = Phase::Receiving { hello, left: hello.request_bytes as usize };
        // A new connection's buffer always holds the answer.
        if tcp::send(socket, &RrHello::ACCEPTED)? != Moved::Bytes(RrHello::ACCEPTED.len()) {
            return Ok(Next::End);
        }
        self.hand_over(client, hello)
    }

    /// Reads a last time from the socket of a client that goes.
    fn retire(&mut self, client: &Client) {
        if let Phase::Greeting { .. } = client.phase {
            self.greeting -= 1;
            self.served.refused += 1;
            return;
        }
        self.served.read_back(&client.socket);
    }

    fn drop_the_silent(&mut self) {
        let early = if self.has_room() { 0 } else { GREETING_NANOSECONDS - HURRY_NANOSECONDS };
        let now = monotonic_nanoseconds() + early;
        for place in 0..self.clients.len() {
            let late = self.clients[place]
                .take_if(|client| matches!(client.phase, Phase::Greeting { until, .. } if now > until));
            if let Some(client) = late {
                self.retire(&client);
                self.free.push(place);
            }
        }
    }
}
