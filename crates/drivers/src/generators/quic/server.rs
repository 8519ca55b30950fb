//! The serving end of QUIC transfers: one socket, one thread; takes what comes, and confirms how much it was.

use crate::generators::quic::keys::{self, Key};
use crate::generators::quic::settings::QuicSettings;
use crate::generators::quic::wire::{Came, QuicSummary, Wire, until};
use crate::meters::waits::counted;
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::{OsError, Result, sched};
use framegauge_traffic::{Hello, Token};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{Connection, ConnectionHandle, Dir, Event, Incoming, ReadError, ServerConfig, StreamId};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections that may be open at once.
const MOST_CONNECTIONS: usize = 1024;
/// A client that does not show its token within this time is dropped.
const GREETING: Duration = Duration::from_secs(5);
/// How long nothing is done at most.
const PAUSE_NANOSECONDS: u64 = 100_000_000;
/// How long an end that is to be closed waits for the last datagrams of clients.
const LEAVE: Duration = Duration::from_millis(500);
/// What a connection is closed with whose greeting is none (any number: the application's own, RFC 9000 section 20.2).
const REFUSED: u32 = 1;

/// What a serving end saw.
#[derive(Debug)]
pub struct QuicServed {
    /// Application bytes received.
    pub bytes: u64,
    /// Connections served.
    pub connections: u64,
    /// Connections refused: no token or a wrong one.
    pub refused: u64,
    /// What this end sent and found.
    pub summary: QuicSummary,
}

/// A serving end at work on a thread of its own.
pub struct QuicServing {
    port: u16,
    key: Key,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Result<QuicServed>>,
}

impl QuicServing {
    /// Serves on `address`, at one of `ports`, whoever knows `token`.
    pub fn start(address: IpAddr, ports: PortRange, token: Token, settings: QuicSettings) -> Result<Self> {
        let (key, tls) = keys::serving()?;
        let tls = Arc::new(tls);
        let wire =
            Wire::open(address, ports, &settings, Some(Arc::new(ServerConfig::with_crypto(tls.clone()))))?;
        let port = wire.address()?.port();
        let (stop, waker) = (Arc::new(AtomicBool::new(false)), Arc::new(Waker::new()?));
        let (stopping, wake) = (stop.clone(), waker.clone());
        let server = Server {
            wire,
            tls,
            token,
            settings,
            address,
            clients: HashMap::new(),
            came: Came::default(),
            served: QuicServed { bytes: 0, connections: 0, refused: 0, summary: QuicSummary::default() },
        };
        let thread = std::thread::Builder::new()
            .name("quic".into())
            .spawn(counted(move || server.run(&stopping, &wake)))
            .map_err(|source| OsError { operation: "start the thread that serves QUIC".into(), source })?;
        Ok(Self { port, key, stop, waker, thread })
    }

    /// The port that it has.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who it is.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Ends once the clients have left, and reports.
    pub fn finish(self) -> Result<QuicServed> {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|_| Err(OsError::errno("serve QUIC", 5)))
    }
}

struct Client {
    connection: Connection,
    stream: Option<StreamId>,
    greeting: Vec<u8>,
    is_known: bool,
    bytes: u64,
    since: Instant,
}

struct Server {
    wire: Wire,
    tls: Arc<QuicServerConfig>,
    token: Token,
    settings: QuicSettings,
    address: IpAddr,
    clients: HashMap<ConnectionHandle, Client>,
    came: Came,
    served: QuicServed,
}

impl Server {
    fn run(mut self, stop: &AtomicBool, waker: &Waker) -> Result<QuicServed> {
        sched::finest_timers();
        let mut poll = PollSet::default();
        let mut leave = None;
        loop {
            let busy = self.serve()?;
            if stop.load(Ordering::Acquire) {
                let until = *leave.get_or_insert_with(|| Instant::now() + LEAVE);
                if Instant::now() >= until || self.clients.values().all(|peer| peer.connection.is_closed()) {
                    break;
                }
            }
            if !busy {
                self.wait(&mut poll, waker)?;
            }
        }
        for client in self.clients.values().filter(|client| client.is_known) {
            self.wire.summary.settle(&client.connection);
        }
        self.served.summary = self.wire.summary;
        Ok(self.served)
    }

    /// Serves everybody once; true if there is more to do at once.
    fn serve(&mut self) -> Result<bool> {
        let now = Instant::now();
        let mut busy = self.wire.receive(now, &mut self.came)?;
        let mut came = std::mem::take(&mut self.came);
        for (handle, event) in came.events.drain(..) {
            if let Some(client) = self.clients.get_mut(&handle) {
                client.connection.handle_event(event);
            }
        }
        for incoming in came.incoming.drain(..) {
            self.accept(incoming, now);
        }
        self.came = came;
        let handles: Vec<ConnectionHandle> = self.clients.keys().copied().collect();
        for handle in handles {
            let Some(mut client) = self.clients.remove(&handle) else { continue };
            self.step(&mut client, now);
            busy |= self.wire.drive(handle, &mut client.connection, now)?;
            if !client.connection.is_drained() {
                self.clients.insert(handle, client);
            } else if client.is_known {
                self.wire.summary.settle(&client.connection);
            }
        }
        Ok(busy)
    }

    fn accept(&mut self, incoming: Incoming, now: Instant) {
        let mut answer = Vec::new();
        if self.clients.len() >= MOST_CONNECTIONS {
            self.wire.endpoint.ignore(incoming);
            return;
        }
        let mut config = ServerConfig::with_crypto(self.tls.clone());
        let source = incoming.local_ip().unwrap_or(self.address);
        config.transport_config(Arc::new(self.settings.transport(source, incoming.remote_address())));
        // What is no handshake of ours gets no answer.
        if let Ok((handle, connection)) =
            self.wire.endpoint.accept(incoming, now, &mut answer, Some(Arc::new(config)))
        {
            let client = Client {
                connection,
                stream: None,
                greeting: Vec::new(),
                is_known: false,
                bytes: 0,
                since: now,
            };
            self.clients.insert(handle, client);
        }
    }

    /// Takes what one client has sent.
    fn step(&mut self, client: &mut Client, now: Instant) {
        while let Some(event) = client.connection.poll() {
            if let Event::ConnectionLost { .. } = event {
                client.stream = None;
            }
        }
        if client.stream.is_none() && !client.connection.is_closed() {
            client.stream = client.connection.streams().accept(Dir::Bi);
        }
        if !client.is_known && now > client.since + GREETING && !client.connection.is_closed() {
            self.refuse(client, now);
        }
        let Some(id) = client.stream else { return };
        let ended = self.pull(client, id);
        if client.greeting.len() == Hello::BYTES && !client.is_known {
            client.is_known = self.knows(&client.greeting);
            self.served.connections += u64::from(client.is_known);
        }
        let is_stranger = !client.is_known && (ended || client.greeting.len() == Hello::BYTES);
        if is_stranger {
            self.refuse(client, now);
        } else if ended {
            self.served.bytes += client.bytes;
            let mut back = client.connection.send_stream(id);
            // Eight bytes are within any window; a client that is gone needs none.
            let _ = back.write(&client.bytes.to_be_bytes());
            let _ = back.finish();
        }
        if ended {
            client.stream = None;
        }
    }

    fn refuse(&mut self, client: &mut Client, now: Instant) {
        self.served.refused += 1;
        client.stream = None;
        client.connection.close(now, REFUSED.into(), bytes::Bytes::new());
    }

    /// Takes what has come on a stream; true if that was the last.
    fn pull(&self, client: &mut Client, id: StreamId) -> bool {
        let mut stream = client.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return false };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let part = (Hello::BYTES - client.greeting.len()).min(chunk.bytes.len());
                    client.greeting.extend_from_slice(&chunk.bytes[..part]);
                    client.bytes += (chunk.bytes.len() - part) as u64;
                }
                Ok(None) => break true,
                Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
            }
        };
        let _ = chunks.finalize(); // what it says is to be sent, `drive` sends anyway
        ended
    }

    fn knows(&self, greeting: &[u8]) -> bool {
        <&[u8; Hello::BYTES]>::try_from(greeting).is_ok_and(|bytes| Hello::decode(bytes, &self.token).is_ok())
    }

    fn wait(&mut self, poll: &mut PollSet, waker: &Waker) -> Result<()> {
        poll.clear();
        poll.add(waker.raw(), true, false);
        self.wire.watch(poll);
        let now = Instant::now();
        let next = self.clients.values_mut().filter_map(|client| client.connection.poll_timeout()).min();
        let timeout = next.map_or(PAUSE_NANOSECONDS, |time| until(time, now));
        poll.wait(Some(timeout.min(PAUSE_NANOSECONDS)))?;
        waker.drain();
        Ok(())
    }
}
