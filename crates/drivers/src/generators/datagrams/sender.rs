//! The sending end of datagrams: every flow has a socket of its own, and all share a thread.

use crate::generators::progress::Progress;
use crate::spool::{self, Column};
use framegauge_linux::clock::{self, monotonic_nanoseconds};
use framegauge_linux::datagrams::{self, Handed};
use framegauge_linux::listening::PortRange;
use framegauge_linux::poll::PollSet;
use framegauge_linux::{OsError, Result, sched};
use framegauge_traffic::{DatagramHead, Datagrams, DatagramsSpec, DueDatagram, Token};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams to send.
#[derive(Debug, Clone, Copy)]
pub struct DatagramsOrder {
    /// Where the receiving end is.
    pub address: SocketAddr,
    /// The secret that both ends were given.
    pub token: Token,
    /// Flows, rate and duration.
    pub spec: DatagramsSpec,
    /// Payload of every datagram, [`DatagramHead::BYTES`] at least.
    pub size_bytes: u32,
}

/// What was sent.
pub struct DatagramsSent {
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Their payload.
    pub bytes: u64,
    /// Those that this host dropped itself; they are not among those that were sent.
    pub dropped_by_host: u64,
    /// Until everything was handed over, the duration at least.
    pub active_seconds: f64,
    /// When the first could be due, on `CLOCK_MONOTONIC`.
    pub started_seconds: f64,
    /// Which clock that is.
    pub clock: String,
    /// One row a datagram that was sent, as a spool file.
    pub datagrams: File,
}

/// Sends until the duration has passed. `progress` is told datagrams and seconds about once a second and may stop it.
pub fn run(order: &DatagramsOrder, progress: &mut dyn FnMut(u64, f64) -> bool) -> Result<DatagramsSent> {
    sched::finest_timers();
    let mut sender = Sender::new(order)?;
    let mut datagrams = Datagrams::new(order.spec, monotonic_nanoseconds());
    let started = datagrams.started();
    let mut report = Progress::new(started, "send datagrams", progress);
    let mut now = started;
    while !datagrams.ended(now) {
        while let Some(due) = datagrams.next_datagram(now) {
            sender.send(due, started)?;
            now = monotonic_nanoseconds();
            report.tell(sender.sent.len() as u64, now)?;
        }
        clock::sleep(datagrams.deadline().min(report.next).saturating_sub(now));
        now = monotonic_nanoseconds();
        report.tell(sender.sent.len() as u64, now)?;
    }
    sender.outcome(started, now)
}

struct Sender<'a> {
    order: &'a DatagramsOrder,
    sockets: Vec<UdpSocket>,
    payload: Vec<u8>,
    /// Each that was sent, and when.
    sent: Vec<(DueDatagram, u64)>,
    dropped: u64,
}

impl<'a> Sender<'a> {
    fn new(order: &'a DatagramsOrder) -> Result<Self> {
        let any = match order.address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let spec = &order.spec;
        let expected = spec.rate_per_second * spec.duration_nanoseconds as f64 * 1e-9 * f64::from(spec.flows);
        Ok(Self {
            order,
            sockets: (0..spec.flows).map(|_| datagrams::open(any, PortRange::ANY)).collect::<Result<_>>()?,
            payload: vec![0; order.size_bytes as usize],
            sent: Vec::with_capacity((expected as usize).min(Datagrams::MOST)),
            dropped: 0,
        })
    }

    /// Hands a datagram over, and waits if there is no room: its time is that of the first attempt, since whoever sends
    /// a voice cannot know of the others' queue.
    fn send(&mut self, due: DueDatagram, started: u64) -> Result<()> {
        let Some(socket) = self.sockets.get(due.flow as usize) else { return Ok(()) };
        let head = DatagramHead { flow: due.flow, sequence: due.sequence }.encode(&self.order.token);
        self.payload[..head.len()].copy_from_slice(&head);
        let began = monotonic_nanoseconds();
        loop {
            match datagrams::send(socket, self.order.address, &self.payload)? {
                Handed::Taken => {
                    self.sent.push((due, began - started));
                    return Ok(());
                }
                Handed::Dropped => {
                    self.dropped += 1;
                    return Ok(());
                }
                Handed::Full => {
                    if monotonic_nanoseconds() - began > STUCK_NANOSECONDS {
                        return Err(OsError::errno("send a datagram: no room for it for 10 s", TIMED_OUT));
                    }
                    let mut room = PollSet::default();
                    room.add(socket.as_raw_fd(), false, true);
                    room.wait(Some(STUCK_NANOSECONDS / 100))?;
                }
            }
        }
    }

    fn outcome(self, started: u64, now: u64) -> Result<DatagramsSent> {
        let sent = self.sent.len() as u64;
        let last = self.sent.last().map_or(0, |(_, time)| *time);
        Ok(DatagramsSent {
            sent,
            bytes: sent * u64::from(self.order.size_bytes),
            dropped_by_host: self.dropped,
            active_seconds: seconds((now - started).max(last)),
            started_seconds: seconds(started),
            clock: clock::monotonic_identity()?,
            datagrams: spool::write(vec![
                ("flow", Column::Word(self.sent.iter().map(|(datagram, _)| datagram.flow).collect())),
                ("sequence", Column::Word(self.sent.iter().map(|(datagram, _)| datagram.sequence).collect())),
                (
                    "due_seconds",
                    Column::Float(self.sent.iter().map(|(datagram, _)| seconds(datagram.due)).collect()),
                ),
                ("sent_seconds", Column::Float(self.sent.iter().map(|(_, time)| seconds(*time)).collect())),
            ])?,
        })
    }
}

const STUCK_NANOSECONDS: u64 = 10_000_000_000;
const TIMED_OUT: i32 = 110;

fn seconds(time: u64) -> f64 {
    time as f64 * 1e-9
}
