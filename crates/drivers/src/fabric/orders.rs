//! What the fabric's thread can be asked for, and what it answers.

use crate::fabric::ports::{Drops, FabricMeasurement, PortLook};
use crate::fabric::record::Record;
use crate::fabric::series::Series;
use crate::fabric::watching::Watching;
use framegauge_fabric::{PortChange, PortIndex};
use framegauge_linux::Result;
use std::sync::mpsc::Sender;

/// What the fabric's thread is asked for.
pub(super) enum Command {
    /// Begin an interval.
    Begin(Meters, Sender<Result<()>>),
    /// Change ports.
    Change(Vec<(PortIndex, PortChange)>, Sender<Result<f64>>),
    /// End the interval.
    End(Sender<Measured>),
    /// Say how all ports are now.
    Look(Sender<PortLook>),
    /// Stop.
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
    /// Of what happens at these ports, keep only what is this close to their longest run of drops.
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
