//! What a host agent holds while it takes part in a check.

use framegauge_drivers::check::path::{FlowSockets, Responder};
use framegauge_pathmtu::Token;

/// The end that answers, the flows that were probed, and the word by which the other end is known.
pub struct Check {
    pub(super) responder: Responder,
    pub(super) sockets: FlowSockets,
    pub(super) token: Token,
}
