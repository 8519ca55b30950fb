//! A network of links, finite output queues and switches in virtual time.
//!
//! Sans-I/O: [`Fabric::transmit`] takes what a host's NIC is handed, [`Fabric::next_deadline`] says when
//! something happens next, [`Fabric::advance`] lets it happen and tells a [`Sink`]. Nothing here knows a
//! clock, so the same model runs in real time (the rack) and in virtual time (the simulator).
//!
//! # The model
//!
//! - A port sends one frame at a time, for the serialisation time of its wire bytes at the port's rate; the
//!   last bit arrives at the other end one link delay later, and only then is the frame handled there (store
//!   and forward, without processing time). A link may have jitter, which never reorders, and may lose frames.
//! - A frame is in a port's buffer, with its `frame_bytes`, from its arrival until its last bit has left. A
//!   departure at the same picosecond as an arrival comes first.
//! - A switch drops frames that are larger than the MTU of the port they came in or go out by (giants),
//!   silently, and counts them at the port they would have left by.
//! - The ports of a switch have buffers of their own, or share one with a dynamic threshold besides. Such a network may be
//!   lossless: who sends too much is paused.
//! - A receiving NIC with moderation interrupts its host at once after a silence, and then not again for
//!   that time; what arrives meanwhile is handed over together.
//! - A link may have a script: it loses, marks or holds exactly the frames that it names.
//! - A host may be joined to its switch by several links that are one to others: a bond. Each flow keeps to one of them.
//! - Background load enters by hosts' NICs beside their own frames, travels like any, and ends at the other NIC.
//! - Everything is integers in one total order (time, port, sequence): equal input gives equal output.
//!
//! # One event a hop
//!
//! Only the head of each link's in-flight ring is in the event set. What happens inside a port in between —
//! a frame leaves, the next begins — is caught up on when the port is next touched, at the times at which it
//! happened, which cannot be told from doing it at once because nothing else touches the port.

mod about;
mod background;
mod bond;
mod bounds;
mod change;
mod check;
mod config;
mod counters;
mod drops;
mod fabric;
mod frame;
mod impairments;
mod lossless;
mod nic;
mod port;
mod queue;
mod realtime;
mod routing;
mod script;
mod shared_buffer;
mod topology;
mod uplink;
mod virtual_time;
mod watch;

pub use background::{BackgroundConfig, BackgroundCounters, Process};
pub use bond::{BondConfig, BondHash};
pub use change::PortChange;
pub use config::{
    ConfigError, FabricConfig, HostConfig, HostIndex, LinkConfig, NicConfig, NodeIndex, PortConfig,
    PortIndex, SwitchConfig, star,
};
pub use counters::{Counters, PortCounters, PortInterval};
pub use drops::{DROP_RECORDS_MAXIMUM, Drop, Reason};
pub use fabric::{Fabric, Sink};
pub use frame::{Aggregate, Ecn, Frame};
pub use impairments::Impairments;
pub use lossless::LosslessConfig;
pub use queue::{
    Blackout, BlackoutConfig, CoDel, CoDelConfig, Discipline, Fate, FqCoDel, FqCoDelConfig, Limit, Priority,
    Queue, QueueConfig, RandomDrop, Red, RedConfig, Sfq, SfqConfig, Step, Taildrop,
};
pub use routing::{Choice, RouteConfig, RouteTable};
pub use script::{Act, Rule, Script};
pub use shared_buffer::SharedBufferConfig;
pub use topology::{Ends, Graph, Leg, Owner, Paths, Routing, Spans, Spread, TopologyError};
pub use watch::{PortEvent, PortEventKind};
