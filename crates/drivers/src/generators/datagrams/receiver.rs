//! The receiving end of datagrams: a thread that blocks until one comes, and reads the clock just behind.

use crate::meters::waits::counted;
use crate::spool::{self, Column};
use framegauge_linux::clock::{self, monotonic_nanoseconds};
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::{OsError, Result, datagrams, sched};
use framegauge_traffic::{DatagramHead, Datagrams, Token};
use std::fs::File;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The largest datagram, which the length field of UDP can say (RFC 768).
const LARGEST_BYTES: usize = 65_536;
/// How often whoever ends it looks whether something has come.
const LOOK_NANOSECONDS: u64 = 5_000_000;
/// After as many as expected have come, a second copy of one may still be under way.
const COPIES_NANOSECONDS: u64 = 50_000_000;

/// What came.
pub struct DatagramsReceived {
    /// Datagrams, second copies included.
    pub received: u64,
    /// Their payload.
    pub bytes: u64,
    /// Those of strangers: no token or a wrong one.
    pub refused: u64,
    /// Which clock the times are on.
    pub clock: String,
    /// One row a datagram in the order in which they came, as a spool file.
    pub datagrams: File,
}

/// Until when an end that is to be closed waits for what is still under way.
#[derive(Debug, Clone, Copy)]
pub struct Awaited {
    /// Datagrams that were sent.
    pub expected: u64,
    /// How long nothing comes while some are missing.
    pub silence_nanoseconds: u64,
}

/// What both threads see.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    received: AtomicU64,
}

/// A receiving end at work on a thread of its own.
pub struct Receiving {
    port: u16,
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    thread: JoinHandle<Result<DatagramsReceived>>,
}

impl Receiving {
    /// Receives on `address`, at one of `ports`, from whoever knows `token`.
    pub fn start(address: IpAddr, ports: PortRange, token: Token) -> Result<Self> {
        let socket = datagrams::open(address, ports)?;
        let port = socket
            .local_addr()
            .map_err(|source| OsError { operation: "read the port for datagrams".into(), source })?
            .port();
        let (shared, waker) = (Arc::new(Shared::default()), Arc::new(Waker::new()?));
        let (seen, woken) = (shared.clone(), waker.clone());
        let thread = std::thread::Builder::new()
            .name("datagrams".into())
            .spawn(counted(move || receive(&socket, &token, &seen, &woken)))
            .map_err(|source| OsError { operation: "start the thread that receives".into(), source })?;
        Ok(Self { port, shared, waker, thread })
    }

    /// The port that it has.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits for what is still under way, ends and reports.
    pub fn finish(self, awaited: Awaited) -> Result<DatagramsReceived> {
        let (mut last, mut since) = (self.shared.received.load(Ordering::Acquire), monotonic_nanoseconds());
        while !self.thread.is_finished() {
            let now = monotonic_nanoseconds();
            let received = self.shared.received.load(Ordering::Acquire);
            if received != last {
                (last, since) = (received, now);
            }
            let all_came = received >= awaited.expected;
            let patience = if all_came {
                COPIES_NANOSECONDS.min(awaited.silence_nanoseconds)
            } else {
                awaited.silence_nanoseconds
            };
            if now - since >= patience {
                break;
            }
            clock::sleep(LOOK_NANOSECONDS);
        }
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|_| Err(OsError::errno("receive datagrams", 5)))
    }
}

/// Takes what comes, until it is told to stop.
fn receive(socket: &UdpSocket, token: &Token, shared: &Shared, waker: &Waker) -> Result<DatagramsReceived> {
    sched::finest_timers();
    let mut buffer = vec![0; LARGEST_BYTES];
    let mut arrivals: Vec<(DatagramHead, u64)> = Vec::new();
    let (mut bytes, mut refused) = (0, 0);
    let mut set = PollSet::default();
    set.add(waker.raw(), true, false);
    set.add(socket.as_raw_fd(), true, false);
    while !shared.stop.load(Ordering::Acquire) {
        set.wait(None)?;
        while let Some(length) = datagrams::receive(socket, &mut buffer)? {
            let now = monotonic_nanoseconds();
            let Some(head) = DatagramHead::decode(&buffer[..length], token) else {
                refused += 1;
                continue;
            };
            if arrivals.len() >= Datagrams::MOST {
                let most = Datagrams::MOST;
                return Err(OsError::errno(format!("keep more than {most} datagrams of one run"), 28));
            }
            arrivals.push((head, now));
            bytes += length as u64;
            shared.received.store(arrivals.len() as u64, Ordering::Release);
        }
    }
    Ok(DatagramsReceived {
        received: arrivals.len() as u64,
        bytes,
        refused,
        clock: clock::monotonic_identity()?,
        datagrams: spool::write(vec![
            ("flow", Column::Word(arrivals.iter().map(|(head, _)| head.flow).collect())),
            ("sequence", Column::Word(arrivals.iter().map(|(head, _)| head.sequence).collect())),
            (
                "received_seconds",
                Column::Float(arrivals.iter().map(|(_, time)| *time as f64 * 1e-9).collect()),
            ),
        ])?,
    })
}
