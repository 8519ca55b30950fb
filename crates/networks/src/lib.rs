//! A network as data, between the words of the pipe and the numbers of the fabric.
//!
//! - [`NetworkSpec`] is a network as a study asks for it; [`NetworkSpec::network`] makes it a [`Network`], which is what the
//!   fabric is made of, or says in one line what cannot be.
//! - [`NetworkSpec::changed`] says what a change of some links means for a network at work.
//! - [`Network::describe`] is a network with every number, usual ones included.
//! - [`too_fast`] compares it with what a machine can carry.
//!
//! No clock and no I/O: the rack and the simulator share it.

mod background;
mod changes;
mod describe;
mod links;
mod network;
mod queues;
mod routing;
mod spec;
mod speed;
mod topology;

pub use background::{BackgroundSpec, ProcessSpec};
pub use changes::NetworkChange;
pub use describe::{
    CoDelDescription, LimitDescription, NetworkDescription, PortDescription, QueueDescription, Range,
    RedThresholds, SharedBufferDescription,
};
pub use links::{ActSpec, LinkOverride, RuleSpec};
pub use network::Network;
pub use queues::{QueueSpec, RedSpec};
pub use routing::{ChoiceSpec, PathsSpec, RoutingSpec};
pub use spec::{NetworkSpec, SharedBufferSpec};
pub use speed::{TooFast, is_beyond, shown, too_fast};
pub use topology::{BondSpec, IcmpSpec, RouterSpec, TopologySpec};
