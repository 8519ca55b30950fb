//! The running fabric: the pure model driven by `CLOCK_MONOTONIC`, its hosts' ends in TAP devices.
//!
//! One thread. It sleeps until a host may be handed something, a TAP becomes readable, or it is called.
//! After it has read from a host it does not look at that TAP again for `moderation`: a NIC that
//! moderates its interrupts tells of neither direction more often, and each wake-up costs as much as
//! several frames.

pub use crate::edge::Attachment;
use crate::edge::Edge;
use crate::ports::{Drops, FabricMeasurement, PortLook, Snapshot, ThreadMeasurement};
pub use crate::record::Record;
pub use crate::series::Series;
use crate::series::{Peaks, Since};
use framegauge_fabric::{Fabric, FabricConfig, HostIndex};
use framegauge_frames::Picoseconds;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::epoll::Epoll;
use framegauge_linux::poll::Waker;
use framegauge_linux::{OsError, Result, clock, sched};
use framegauge_metering::parse_schedstat;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Wire bytes that a host's NIC may hold before its TAP is left alone: hides about a millisecond of
/// lateness at 1 Gb/s.
const READ_AHEAD_BYTES: u64 = 128 * 1024;
const REAL_TIME_PRIORITY: i32 = 10;
/// In a virtual machine a sleep costs as much CPU time as spinning so long, and ends less exactly.
const SPIN_NANOSECONDS: u64 = 10_000;
/// The waker's name among the hosts' TAPs.
const CALLED: u64 = u64::MAX;

enum Command {
    Begin(Meters, Sender<()>),
    End(Sender<Measured>),
    Look(Sender<PortLook>),
    Stop,
}

/// What is metered besides the counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meters {
    /// A sample of every queue each so many nanoseconds.
    pub sample_nanoseconds: Option<u64>,
    /// Everything that goes in and comes out; takes 100 bytes a frame.
    pub record: bool,
}

/// What an interval came to.
pub struct Measured {
    /// Counters.
    pub measurement: FabricMeasurement,
    /// Every drop.
    pub drops: Drops,
    /// Samples of the queues, if they were asked for.
    pub series: Option<Series>,
    /// All of it, if that was asked for.
    pub record: Option<Record>,
}

/// A fabric at work on a thread of its own.
pub struct RunningFabric {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RunningFabric {
    /// Starts a fabric; `cpu` binds its thread. Host i of `config` is `attachments[i]`. With `large_receive`
    /// the hosts' NICs merge what one interrupt hands over.
    pub fn start(
        config: &FabricConfig,
        attachments: Vec<Attachment>,
        large_receive: bool,
        cpu: Option<usize>,
    ) -> Result<Self> {
        let fabric = Fabric::new(config).map_err(|error| OsError {
            operation: "build the fabric".into(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let (commands, orders) = channel();
        let waker = Arc::new(Waker::new()?);
        let names = config.hosts.iter().map(|host| host.name.clone()).collect();
        let naps = vec![None; config.hosts.len()];
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
                    edge: Edge::new(attachments, large_receive, epoch),
                    naps,
                    moderation,
                    started: Begun::default(),
                    peaks: Peaks::default(),
                    series: None,
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
    pub fn begin(&self, meters: Meters) -> Result<()> {
        let (reply, answer) = channel();
        self.send(Command::Begin(meters, reply))?;
        answer.recv().map_err(|_| gone())
    }

    /// Ends the interval: what happened in it.
    pub fn end(&self) -> Result<Measured> {
        let (reply, answer) = channel();
        self.send(Command::End(reply))?;
        answer.recv().map_err(|_| gone())
    }

    /// All ports as they are now.
    pub fn look(&self) -> Result<PortLook> {
        let (reply, answer) = channel();
        self.send(Command::Look(reply))?;
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
    edge: Edge,
    /// Nanoseconds since the epoch until which a TAP is left alone; none: it is watched.
    naps: Vec<Option<u64>>,
    moderation: u64,
    started: Begun,
    peaks: Peaks,
    series: Option<Series>,
    scheduling: &'static str,
    cpu: Option<usize>,
    wakeups: u64,
}

impl Loop {
    fn run(mut self, orders: &Receiver<Command>, waker: &Waker) -> Result<()> {
        let mut watch = Epoll::new()?;
        for host in 0..self.names.len() {
            watch.add_once(self.edge.attachments[host].tap.raw(), host as u64)?;
        }
        watch.add_once(waker.raw(), CALLED)?;
        loop {
            self.wakeups += 1;
            let now = self.edge.now();
            self.fabric.advance(now, &mut self.edge);
            self.sample(now);
            let until = self.rearm(&watch, now)?;
            let ready = watch.wait(self.pass_time(until))?;
            let now = self.edge.now();
            let mut called = false;
            for place in 0..ready {
                match watch.ready(place).key {
                    CALLED => called = true,
                    host => self.ingest(host as usize, now)?,
                }
            }
            if called {
                waker.drain();
                watch.once_more(waker.raw(), CALLED)?;
                while let Ok(order) = orders.try_recv() {
                    let now = self.edge.now();
                    self.fabric.advance(now, &mut self.edge);
                    match order {
                        Command::Begin(meters, reply) => {
                            self.begin(meters);
                            let _ = reply.send(());
                        }
                        Command::End(reply) => drop(reply.send(self.end())),
                        Command::Look(reply) => drop(reply.send(self.look())),
                        Command::Stop => return Ok(()),
                    }
                }
            }
        }
    }

    /// Takes what a host has to send.
    fn ingest(&mut self, host: usize, now: Picoseconds) -> Result<()> {
        let index = HostIndex(host as u16);
        while self.fabric.uplink_backlog_bytes(index) < READ_AHEAD_BYTES {
            let Some(packet) = self.edge.read(host)? else { break };
            if let Some(aggregate) = packet {
                if let Some(record) = &mut self.edge.record {
                    record.handed_over.push((now, index, aggregate));
                }
                self.fabric.transmit(now, index, aggregate);
            }
        }
        self.naps[host] = Some(now.as_nanoseconds() + self.moderation);
        Ok(())
    }

    /// Watches the TAPs again that have been left alone long enough; the time until which to sleep.
    fn rearm(&mut self, watch: &Epoll, now: Picoseconds) -> Result<Option<u64>> {
        // To wake twice within a part of the moderation costs more than the exact time is worth.
        let (now, part) = (now.as_nanoseconds(), self.moderation / 4);
        let mut look = None;
        for host in 0..self.names.len() {
            let Some(nap) = self.naps[host] else { continue };
            if nap > now + part {
                sooner(&mut look, nap);
            } else if self.fabric.uplink_backlog_bytes(HostIndex(host as u16)) < READ_AHEAD_BYTES {
                self.naps[host] = None;
                watch.once_more(self.edge.attachments[host].tap.raw(), host as u64)?;
            } else {
                // The backlog drains at line rate; a quarter of it is a fair time to look again.
                sooner(&mut look, now + 50_000);
            }
        }
        let mut until = self.fabric.next_delivery().map(|time| time.as_nanoseconds() + 1);
        if let Some(series) = &self.series {
            sooner(&mut until, series.next());
        }
        if let Some(look) = look
            && until.is_none_or(|delivery| delivery > look + part)
        {
            sooner(&mut until, look);
        }
        Ok(until)
    }

    /// Lets a short time pass without listening to the TAPs; how long is left to wait while listening.
    ///
    /// Under load something is due within the moderation: a wake-up for each TAP meanwhile would cost more than
    /// all its frames, and what it holds is read a little later, as if by a NIC that is told at intervals.
    fn pass_time(&self, until: Option<u64>) -> Option<u64> {
        let until = until?;
        let rest = until.saturating_sub(self.edge.now().as_nanoseconds());
        if rest > self.moderation / 2 {
            return Some(rest);
        }
        if rest > SPIN_NANOSECONDS {
            clock::sleep(rest);
        }
        while self.edge.now().as_nanoseconds() < until {
            std::hint::spin_loop();
        }
        Some(0)
    }

    fn snapshot(&self) -> Snapshot {
        let counters = self.fabric.counters();
        let mut hosts = self.edge.counts.clone();
        for (host, interrupts) in hosts.iter_mut().zip(counters.interrupts) {
            host.interrupts = interrupts;
        }
        Snapshot {
            time_nanoseconds: self.edge.now().as_nanoseconds(),
            ports: counters.ports,
            hosts,
            background: counters.background,
        }
    }

    fn sample(&mut self, now: Picoseconds) {
        let now = now.as_nanoseconds();
        if let Some(series) = self.series.as_mut().filter(|series| series.next() <= now) {
            let peaks = self.peaks.take(&mut self.fabric, Since::Sample);
            series.take(now, self.fabric.counters().ports, &peaks);
        }
    }

    fn look(&mut self) -> PortLook {
        let peaks = self.peaks.take(&mut self.fabric, Since::Look);
        let mut ports = self.fabric.counters().ports;
        for (port, peak) in ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        PortLook {
            time_nanoseconds: self.edge.now().as_nanoseconds(),
            ports: self.port_names().into_iter().zip(ports).collect(),
        }
    }

    fn port_names(&self) -> Vec<String> {
        let name = |port: usize| self.fabric.port_name(framegauge_fabric::PortIndex(port as u16)).to_string();
        (0..self.fabric.ports()).map(name).collect()
    }

    fn begin(&mut self, meters: Meters) {
        self.peaks.take(&mut self.fabric, Since::Begin);
        self.edge.record = meters.record.then(Record::default);
        self.series = meters.sample_nanoseconds.map(|interval| {
            self.peaks.take(&mut self.fabric, Since::Sample);
            Series::begin(interval, self.edge.now().as_nanoseconds(), self.fabric.counters().ports)
        });
        self.fabric.take_drops();
        self.edge.lateness.reset();
        self.edge.waits.reset();
        for counts in &mut self.edge.counts {
            (counts.largest_packet_bytes, counts.largest_frame_bytes) = (0, 0);
        }
        self.started = Begun {
            snapshot: Some(self.snapshot()),
            thread: sched::thread_use(),
            waited_nanoseconds: waited(),
            wakeups: self.wakeups,
        };
    }

    fn end(&mut self) -> Measured {
        let used = sched::thread_use();
        let thread = ThreadMeasurement {
            cpu_seconds: used.cpu_seconds - self.started.thread.cpu_seconds,
            involuntary_switches: used.involuntary_switches - self.started.thread.involuntary_switches,
            waited_seconds: (waited() - self.started.waited_nanoseconds) as f64 * 1e-9,
            wakeups: self.wakeups - self.started.wakeups,
            scheduling: self.scheduling,
            cpu: self.cpu,
        };
        let peaks = self.peaks.take(&mut self.fabric, Since::Begin);
        let mut later = self.snapshot();
        for (port, peak) in later.ports.iter_mut().zip(peaks) {
            port.peak_queue_bytes = peak;
        }
        let earlier = self.started.snapshot.take().unwrap_or_else(|| later.clone());
        let names = self.port_names();
        let series = self.series.take();
        let drops = Drops::collect(&self.fabric.take_drops(), &names, earlier.time_nanoseconds);
        let waits = self.edge.waits.measurement(&names);
        let late = &self.edge.lateness;
        let measurement =
            FabricMeasurement::between(&earlier, &later, names, &self.names, late, waits, thread);
        let mut record = self.edge.record.take();
        if let Some(record) = &mut record {
            record.until = self.fabric.now();
        }
        Measured { measurement, drops, series, record }
    }
}

/// Brings `until` forward to `time`.
fn sooner(until: &mut Option<u64>, time: u64) {
    *until = Some(until.map_or(time, |until| until.min(time)));
}

/// Nanoseconds that the calling thread has waited for a CPU.
fn waited() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| parse_schedstat(&text).ok())
        .map_or(0, |stat| stat.wait_nanoseconds)
}
