//! The running fabric: the pure model driven by `CLOCK_MONOTONIC`, its hosts' ends in TAP devices.
//!
//! One thread does the work. `thread.rs` begins with a page on when it sleeps and which hosts it hears.

pub mod capture;
mod closing;
mod edge;
mod meter;
mod orders;
mod outbox;
mod parcel;
pub mod ports;
pub mod record;
mod send_times;
mod series;
mod thread;
pub mod waits;
pub mod watching;

use edge::Edge;
use meter::Meter;
use orders::Command;
pub use orders::{Changed, Measured, Meters};
pub use parcel::Attachment;
use ports::PortLook;
pub use record::Record;
pub use series::Series;
use thread::Loop;
pub use watching::Watching;

use framegauge_fabric::{Fabric, FabricConfig, PortChange, PortIndex};
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::poll::Waker;
use framegauge_linux::{OsError, Result, precedence, sched};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

const REAL_TIME_PRIORITY: i32 = 10;

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
        let moderation = config.nic.moderation.as_nanoseconds();
        let (wake, epoch) = (waker.clone(), monotonic_nanoseconds());
        let thread = std::thread::Builder::new()
            .name("fabric".into())
            .spawn(move || {
                let real_time = !precedence::is_given_up() && sched::real_time(0, REAL_TIME_PRIORITY).is_ok();
                if let Some(cpu) = cpu {
                    sched::bind(0, &[cpu])?;
                }
                sched::finest_timers();
                // Without it deliveries are a little later, which their lateness tells.
                let _awake = sched::stay_awake();
                let names = attachments.iter().map(|attachment| attachment.host.clone()).collect();
                let edge = Edge::new(attachments, segments, large_receive, epoch);
                let meter = Meter::new(names, if real_time { "fifo" } else { "other" }, cpu);
                Loop::new(fabric, edge, meter, moderation).run(&orders, &wake)
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
