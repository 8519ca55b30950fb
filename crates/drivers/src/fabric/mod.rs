//! The running fabric: the pure model driven by `CLOCK_MONOTONIC`, its hosts' ends in TAP devices.
//!
//! One thread. It sleeps until a host may be handed something, a TAP becomes readable, or it is called.
//!
//! The kernel writes down when each packet is sent, so that it need not be read at that time: nothing that is sent now
//! arrives anywhere before the network's shortest way is over, and as long as something is due within that time, the fabric
//! listens to nobody. Where the kernel does not tell, what a host sends counts as sent when it is read, and the
//! fabric listens, though not to a host that it has read from within `moderation`: each wake-up costs
//! as much as several frames.

pub mod capture;
mod closing;
mod edge;
mod meter;
mod outbox;
pub mod ports;
pub mod record;
mod send_times;
mod series;
mod thread;
pub mod waits;
pub mod watching;

pub use crate::fabric::edge::Attachment;
use crate::fabric::edge::Edge;
use crate::fabric::meter::Meter;
use crate::fabric::ports::{Drops, FabricMeasurement, PortLook};
pub use crate::fabric::record::Record;
use crate::fabric::send_times::Arrivals;
pub use crate::fabric::series::Series;
use crate::fabric::thread::Loop;
pub use crate::fabric::watching::Watching;
use framegauge_fabric::{Fabric, FabricConfig, PortChange, PortIndex};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::poll::Waker;
use framegauge_linux::{OsError, Result, sched};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

const REAL_TIME_PRIORITY: i32 = 10;
pub(crate) enum Command {
    Begin(Meters, Sender<Result<()>>),
    Change(Vec<(PortIndex, PortChange)>, Sender<Result<f64>>),
    End(Sender<Measured>),
    Look(Sender<PortLook>),
    Stop,
}

/// What is metered besides the counters.
#[derive(Debug, Clone, Default)]
pub struct Meters {
    /// A sample of every queue each so many nanoseconds.
    pub sample_nanoseconds: Option<u64>,
    /// Everything that goes in and comes out; takes 100 bytes a frame.
    pub record: bool,
    /// Everything that happens at these ports.
    pub watch: Vec<PortIndex>,
    /// A capture of these ports, too.
    pub capture: bool,
    /// Of what happens at these ports only what is so near to their longest run of drops.
    pub around_nanoseconds: Option<u64>,
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
    /// What happened at watched ports, if there were any.
    pub watching: Option<Watching>,
    /// What was changed meanwhile.
    pub changes: Vec<Changed>,
}

/// A port that was changed while it worked.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Since the begin of the interval, in seconds.
    pub time_seconds: f64,
    /// Its name.
    pub port: String,
}

/// A fabric at work on a thread of its own.
pub struct RunningFabric {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl RunningFabric {
    /// Starts a fabric; `cpu` binds its thread. End i of `config` is `attachments[i]`. With `large_receive`
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
        let segments = config.segments();
        let names = attachments.iter().map(|attachment| attachment.host.clone()).collect();
        let (naps, watched) = (vec![None; config.hosts.len()], vec![true; config.hosts.len()]);
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
                    edge: Edge::new(attachments, segments, large_receive, epoch),
                    arrivals: Arrivals::default(),
                    naps,
                    watched,
                    moderation,
                    meter: Meter::default(),
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
        answer.recv().map_err(|_| gone())?
    }

    /// Ends the interval: what happened in it.
    pub fn end(&self) -> Result<Measured> {
        let (reply, answer) = channel();
        self.send(Command::End(reply))?;
        answer.recv().map_err(|_| gone())
    }

    /// Changes ports while they work, in that order, up to one that cannot be so; when, on
    /// `CLOCK_MONOTONIC`.
    pub fn change(&self, changes: Vec<(PortIndex, PortChange)>) -> Result<f64> {
        let (reply, answer) = channel();
        self.send(Command::Change(changes, reply))?;
        answer.recv().map_err(|_| gone())?
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
