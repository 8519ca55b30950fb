//! The running fabric: the pure model driven by `CLOCK_MONOTONIC`, its hosts' ends in TAP devices.
//!
//! One thread. It sleeps until a host may be handed something, a TAP becomes readable, or it is called.
//! After it has read from a host it does not look at that TAP again for `moderation`: a NIC that
//! moderates its interrupts tells of neither direction more often, and each wake-up costs as much as
//! several frames.

use crate::ports::{Drops, FabricMeasurement, HostMeasurement, Snapshot, ThreadMeasurement};
use framegauge_fabric::{Aggregate, Fabric, FabricConfig, HostIndex, Sink};
use framegauge_frames::Picoseconds;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::poll::{PollSet, Waker};
use framegauge_linux::tap::{Tap, VNET_HEADER_BYTES};
use framegauge_linux::{OsError, Result, sched};
use framegauge_metering::{Lateness, parse_schedstat};
use framegauge_packets::{MAX_HEADER_BYTES, Segmentation, VirtioNetHeader, parse};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Wire bytes that a host's NIC may hold before its TAP is left alone: hides about a millisecond of
/// lateness at 1 Gb/s.
const READ_AHEAD_BYTES: u64 = 128 * 1024;
/// Room for the largest aggregate with its headers.
const BUFFER_BYTES: usize = VNET_HEADER_BYTES + 65_536 + 256;
const REAL_TIME_PRIORITY: i32 = 10;

/// A host's end of the fabric.
pub struct Attachment {
    /// Its TAP.
    pub tap: Tap,
    /// Its Ethernet address.
    pub hardware: [u8; 6],
}

enum Command {
    Begin(Sender<()>),
    End(Sender<(FabricMeasurement, Drops)>),
    Stop,
}

/// A fabric at work on a thread of its own.
pub struct RunningFabric {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RunningFabric {
    /// Starts a fabric; `cpu` binds its thread. Host i of `config` is `attachments[i]`.
    pub fn start(config: &FabricConfig, attachments: Vec<Attachment>, cpu: Option<usize>) -> Result<Self> {
        let fabric = Fabric::new(config).map_err(|error| OsError {
            operation: "build the fabric".into(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let (commands, orders) = channel();
        let waker = Arc::new(Waker::new()?);
        let names = config.hosts.iter().map(|host| host.name.clone()).collect();
        let moderation = config.nic.moderation.as_nanoseconds();
        let (wake, epoch) = (waker.clone(), monotonic_nanoseconds());
        let thread = std::thread::Builder::new()
            .name("fabric".into())
            .spawn(move || {
                let real_time = sched::real_time(0, REAL_TIME_PRIORITY).is_ok();
                if let Some(cpu) = cpu {
                    sched::bind(0, &[cpu])?;
                }
                sched::finest_timers();
                // Without it deliveries are a little later, which their lateness tells.
                let _awake = sched::stay_awake();
                Loop {
                    fabric,
                    names,
                    ports: Ports::new(attachments, epoch),
                    naps: vec![0; 0],
                    moderation,
                    started: Begun::default(),
                    scheduling: if real_time { "fifo" } else { "other" },
                    cpu,
                    wakeups: 0,
                }
                .run(&orders, &wake)
            })
            .map_err(|source| OsError { operation: "start the fabric's thread".into(), source })?;
        Ok(Self { commands, waker, thread: Some(thread) })
    }

    /// Begins an interval.
    pub fn begin(&self) -> Result<()> {
        let (reply, answer) = channel();
        self.send(Command::Begin(reply))?;
        answer.recv().map_err(|_| gone())
    }

    /// Ends the interval: what happened in it.
    pub fn end(&self) -> Result<(FabricMeasurement, Drops)> {
        let (reply, answer) = channel();
        self.send(Command::End(reply))?;
        answer.recv().map_err(|_| gone())
    }

    fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).map_err(|_| gone())?;
        self.waker.wake();
        Ok(())
    }

    /// Stops the fabric; its TAP devices go with it.
    pub fn stop(mut self) -> Result<()> {
        self.halt()
    }

    fn halt(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let _ = self.send(Command::Stop);
        thread.join().unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for RunningFabric {
    fn drop(&mut self) {
        let _ = self.halt();
    }
}

fn gone() -> OsError {
    OsError::errno("talk to the fabric's thread", 32)
}

/// A packet from a host, alive until its last frame is delivered or dropped.
struct Parcel {
    bytes: Box<[u8]>,
    plan: Segmentation,
    length: usize,
    frames_left: u16,
}

/// The hosts' ends and the packets under way; what the model tells is done here.
struct Ports {
    attachments: Vec<Attachment>,
    by_address: HashMap<[u8; 6], HostIndex>,
    parcels: Vec<Option<Parcel>>,
    free: Vec<u32>,
    spare: Vec<Box<[u8]>>,
    counts: Vec<HostMeasurement>,
    lateness: Lateness,
    epoch: u64,
}

impl Ports {
    fn new(attachments: Vec<Attachment>, epoch: u64) -> Self {
        Self {
            by_address: attachments
                .iter()
                .enumerate()
                .map(|(place, attachment)| (attachment.hardware, HostIndex(place as u16)))
                .collect(),
            counts: vec![HostMeasurement::default(); attachments.len()],
            attachments,
            parcels: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            lateness: Lateness::new(),
            epoch,
        }
    }

    fn now(&self) -> Picoseconds {
        Picoseconds::from_nanoseconds(monotonic_nanoseconds() - self.epoch)
    }

    /// Reads one packet of a host: `Ok(None)` when there is none, `Some(None)` when it goes nowhere.
    fn read(&mut self, host: usize) -> Result<Option<Option<Aggregate>>> {
        let mut bytes = self.spare.pop().unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        let Some(length) = self.attachments[host].tap.read(&mut bytes)? else {
            self.spare.push(bytes);
            return Ok(None);
        };
        let counts = &mut self.counts[host];
        counts.read_packets += 1;
        let Some(frame) = bytes.get(VNET_HEADER_BYTES..length) else {
            counts.unroutable_packets += 1;
            return Ok(Some(None));
        };
        counts.read_bytes += frame.len() as u64;
        counts.largest_packet_bytes = counts.largest_packet_bytes.max(frame.len() as u64);
        let destination = frame.get(..6).and_then(|address| self.by_address.get(address)).copied();
        let plan = VirtioNetHeader::parse(&bytes).and_then(|header| Segmentation::plan(&header, frame));
        let frames = plan.as_ref().map_or(1, Segmentation::frames);
        counts.read_frames += u64::from(frames);
        let (Some(destination), Ok(plan)) = (destination, plan) else {
            counts.unroutable_packets += 1;
            self.spare.push(bytes);
            return Ok(Some(None));
        };
        counts.aggregates += u64::from(frames > 1);
        let data = plan.tcp_payload_bytes(0) > 0;
        let (each, last) = (plan.captured_bytes(0), plan.captured_bytes(frames - 1));
        if data {
            let sizes = [each, last].map(framegauge_frames::frame_bytes).map(u64::from);
            counts.data_frames += u64::from(frames);
            counts.data_frame_bytes += u64::from(frames - 1) * sizes[0] + sizes[1];
            counts.largest_frame_bytes = counts.largest_frame_bytes.max(sizes[0]);
        }
        let flow = parse(frame).map_or(0, |packet| packet.flow_hash());
        let id = self.keep(Parcel { bytes, plan, length, frames_left: frames });
        Ok(Some(Some(Aggregate {
            id,
            frames,
            captured_bytes: each,
            last_captured_bytes: last,
            destination,
            flow,
            data,
        })))
    }

    fn keep(&mut self, parcel: Parcel) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(None);
            self.parcels.len() as u32 - 1
        });
        self.parcels[id as usize] = Some(parcel);
        id
    }

    fn release(&mut self, id: u32) {
        let place = &mut self.parcels[id as usize];
        if let Some(parcel) = place {
            parcel.frames_left -= 1;
            if parcel.frames_left == 0 {
                if let Some(parcel) = place.take() {
                    self.spare.push(parcel.bytes);
                }
                self.free.push(id);
            }
        }
    }

    fn write(&mut self, host: usize, id: u32, frame: u16) {
        let Some(parcel) = &self.parcels[id as usize] else { return };
        let packet = &parcel.bytes[VNET_HEADER_BYTES..parcel.length];
        let header = parcel.plan.vnet_header(frame).to_bytes();
        let tap = &self.attachments[host].tap;
        let written = if parcel.plan.frames() == 1 {
            tap.write([&header, packet, &[]])
        } else {
            let mut scratch = [0; MAX_HEADER_BYTES];
            let length = parcel.plan.write_header(packet, frame, &mut scratch);
            tap.write([&header, &scratch[..length], &packet[parcel.plan.payload_range(frame)]])
        };
        let counts = &mut self.counts[host];
        match written {
            Ok(()) => {
                counts.written_packets += 1;
                counts.written_frames += 1;
                counts.written_bytes += u64::from(parcel.plan.captured_bytes(frame));
            }
            Err(_) => counts.write_errors += 1,
        }
    }
}

impl Sink for Ports {
    fn deliver(&mut self, host: HostIndex, aggregate: u32, frame: u16, due: Picoseconds) {
        self.write(usize::from(host.0), aggregate, frame);
        self.release(aggregate);
        let late = self.now().as_nanoseconds().saturating_sub(due.as_nanoseconds());
        self.lateness.record(late);
    }

    fn discard(&mut self, aggregate: u32, _frame: u16) {
        self.release(aggregate);
    }
}

#[derive(Default)]
struct Begun {
    snapshot: Option<Snapshot>,
    thread: sched::ThreadUse,
    waited_nanoseconds: u64,
    wakeups: u64,
}

struct Loop {
    fabric: Fabric,
    names: Vec<String>,
    ports: Ports,
    /// Nanoseconds since the epoch until which each TAP is left alone.
    naps: Vec<u64>,
    moderation: u64,
    started: Begun,
    scheduling: &'static str,
    cpu: Option<usize>,
    wakeups: u64,
}

impl Loop {
    fn run(mut self, orders: &Receiver<Command>, waker: &Waker) -> Result<()> {
        self.naps = vec![0; self.names.len()];
        let mut poll = PollSet::default();
        loop {
            self.wakeups += 1;
            let now = self.ports.now();
            self.fabric.advance(now, &mut self.ports);
            for host in 0..self.names.len() {
                self.ingest(host, now)?;
            }
            if poll_called(&mut poll, waker, &self.wait_set(now))? {
                waker.drain();
                while let Ok(order) = orders.try_recv() {
                    let now = self.ports.now();
                    self.fabric.advance(now, &mut self.ports);
                    match order {
                        Command::Begin(reply) => {
                            self.begin();
                            let _ = reply.send(());
                        }
                        Command::End(reply) => drop(reply.send(self.end())),
                        Command::Stop => return Ok(()),
                    }
                }
            }
        }
    }

    /// Takes what a host has to send, unless its TAP is left alone.
    fn ingest(&mut self, host: usize, now: Picoseconds) -> Result<()> {
        if self.naps[host] > now.as_nanoseconds() {
            return Ok(());
        }
        let index = HostIndex(host as u16);
        let mut any = false;
        while self.fabric.uplink_backlog_bytes(index) < READ_AHEAD_BYTES {
            let Some(packet) = self.ports.read(host)? else { break };
            any = true;
            if let Some(aggregate) = packet {
                self.fabric.transmit(now, index, aggregate);
            }
        }
        if any {
            self.naps[host] = now.as_nanoseconds() + self.moderation;
        }
        Ok(())
    }

    /// Which TAPs to watch, and for how many nanoseconds at most.
    fn wait_set(&self, now: Picoseconds) -> WaitSet {
        let now = now.as_nanoseconds();
        let mut until = self.fabric.next_delivery().map(|time| time.as_nanoseconds() + 1);
        let mut sooner = |time: u64| until = Some(until.map_or(time, |until| until.min(time)));
        let mut watched = Vec::with_capacity(self.names.len());
        for host in 0..self.names.len() {
            if self.naps[host] > now {
                sooner(self.naps[host]);
            } else if self.fabric.uplink_backlog_bytes(HostIndex(host as u16)) < READ_AHEAD_BYTES {
                watched.push(self.ports.attachments[host].tap.raw());
            } else {
                // The backlog drains at line rate; a quarter of it is a fair time to look again.
                sooner(now + 50_000);
            }
        }
        let now = self.ports.now().as_nanoseconds();
        WaitSet { watched, timeout: until.map(|until| until.saturating_sub(now)) }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            time_nanoseconds: self.ports.now().as_nanoseconds(),
            ports: self.fabric.counters().ports,
            hosts: self.ports.counts.clone(),
        }
    }

    fn begin(&mut self) {
        self.fabric.reset_peaks();
        self.fabric.take_drops();
        self.ports.lateness.reset();
        for counts in &mut self.ports.counts {
            (counts.largest_packet_bytes, counts.largest_frame_bytes) = (0, 0);
        }
        self.started = Begun {
            snapshot: Some(self.snapshot()),
            thread: sched::thread_use(),
            waited_nanoseconds: waited(),
            wakeups: self.wakeups,
        };
    }

    fn end(&mut self) -> (FabricMeasurement, Drops) {
        let used = sched::thread_use();
        let thread = ThreadMeasurement {
            cpu_seconds: used.cpu_seconds - self.started.thread.cpu_seconds,
            involuntary_switches: used.involuntary_switches - self.started.thread.involuntary_switches,
            waited_seconds: (waited() - self.started.waited_nanoseconds) as f64 * 1e-9,
            wakeups: self.wakeups - self.started.wakeups,
            scheduling: self.scheduling,
            cpu: self.cpu,
        };
        let later = self.snapshot();
        let earlier = self.started.snapshot.take().unwrap_or_else(|| later.clone());
        let name = |port: usize| self.fabric.port_name(framegauge_fabric::PortIndex(port as u16)).to_string();
        let names = (0..later.ports.len()).map(name).collect();
        let drops = Drops::collect(&self.fabric.take_drops(), &names, earlier.time_nanoseconds);
        let measurement =
            FabricMeasurement::between(&earlier, &later, names, &self.names, &self.ports.lateness, thread);
        (measurement, drops)
    }
}

struct WaitSet {
    watched: Vec<i32>,
    timeout: Option<u64>,
}

/// Waits; true when the waker called.
fn poll_called(poll: &mut PollSet, waker: &Waker, set: &WaitSet) -> Result<bool> {
    poll.clear();
    let place = poll.add(waker.raw(), true, false);
    for tap in &set.watched {
        poll.add(*tap, true, false);
    }
    poll.wait(set.timeout)?;
    Ok(poll.readable(place))
}

/// Nanoseconds that the calling thread has waited for a CPU.
fn waited() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| parse_schedstat(&text).ok())
        .map_or(0, |stat| stat.wait_nanoseconds)
}
