//! TCP endpoints on a fabric in virtual time: what a rack of Linux hosts would do, for thousands of hosts.
//!
//! A [`Scenario`] is a network, hosts, what their TCP is set to, and work ([`Flow`]); [`Simulation::run`] makes an
//! [`Outcome`] of it. Every packet is simulated, by the switches of the emulated rack ([`framegauge_fabric`]). Endpoints
//! follow Linux 6.18, whose functions are named where its behaviour is kept. No clock, no I/O, no threads: equal scenarios
//! give equal outcomes.

mod applications;
mod beyond;
mod capture;
mod changes;
mod congestion;
mod connection;
mod cores;
mod endpoint;
mod log;
mod memory;
mod net;
mod outcome;
mod path_mtus;
mod receive_window;
mod receiver;
mod requests;
mod routers;
mod rtt;
mod scenario;
mod segment;
mod sender;
mod series;
mod settings;
mod simulation;
mod small_queue;
mod spec;
mod work;

pub use capture::{Passed, Point, Side};
pub use changes::Change;
pub use congestion::Algorithm;
pub use cores::{Cost, Cpu, CpuCounts};
pub use error::SimulationError;
pub use log::Logged;
pub use outcome::{FlowCounts, Outcome, Sample};
pub use requests::{RequestCounts, Requests};
pub use routers::Routers;
pub use scenario::Scenario;
pub use segment::Report;
pub use sender::SenderCounts;
pub use series::PortSample;
pub use settings::{Hystart, Nagle, Probing, TcpSettings};
pub use simulation::Simulation;
pub use spec::{
    ChangeSpec, CostSpec, CpuSpec, FlowSpec, HostSpec, HystartSpec, LinkSpec, NicSpec, OverlaySpec,
    RepeatSpec, RequestsSpec, ScenarioSpec, SetSpec, ShaperSpec, SideSpec, StepSpec, TcpSpec,
};
pub use work::{Flow, Repeat, Step, Transfer};

mod error {
    use framegauge_fabric::ConfigError;
    use thiserror::Error;

    /// Why a scenario cannot be.
    #[derive(Debug, Clone, PartialEq, Error)]
    pub enum SimulationError {
        /// The network cannot.
        #[error(transparent)]
        Network(#[from] ConfigError),
        /// An MTU for every host.
        #[error("found {found} MTUs, expected {expected}: one per host")]
        Mtus {
            /// How many there are.
            found: usize,
            /// How many hosts there are.
            expected: usize,
        },
        /// Requests cannot.
        #[error("requests {number} have no rate above 0")]
        Rate {
            /// Their position.
            number: usize,
        },
        /// A flow cannot.
        #[error("flow {number} {problem}")]
        Flow {
            /// Its position.
            number: usize,
            /// What is wrong with it.
            problem: &'static str,
        },
    }
}
