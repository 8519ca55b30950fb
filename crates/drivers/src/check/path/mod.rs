//! The path MTU check on one host: a responder that acknowledges probes, and a prober that searches and traces. Hosts without
//! an agent are asked for echoes.

mod echo;
mod handshake;
mod prober;
mod responder;
mod sockets;
mod tracer;
mod visitors;

pub use echo::{Echoed, run as echo};
pub use handshake::{Bulk, TcpFinding};
pub use prober::{Order, PathOutcome, PathSpec, run};
pub use responder::{Answered, Endpoint, Responder};
pub use sockets::FlowSockets;
pub use tracer::{TraceOrder, TraceSpec, trace};
