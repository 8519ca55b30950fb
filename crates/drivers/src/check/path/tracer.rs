//! Runs traces over the flows' sockets.

use super::prober::padding;
use super::sockets::{FlowSockets, Heard};
use framegauge_frames::Family;
use framegauge_linux::clock::monotonic_nanoseconds;
use framegauge_linux::udp::Sent;
use framegauge_linux::udp_error::{Refusal, Report};
use framegauge_linux::{OsError, Result};
use framegauge_pathmtu::{
    Acknowledgement, Hop, HopOutcome, Probe, Token, TraceConfig, TraceProbe, TraceSize, Traces, header_bytes,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const LISTEN: Duration = Duration::from_millis(50);

/// One flow to trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceSpec {
    /// An address of this host.
    pub source: IpAddr,
    /// Its flow: a place in [`FlowSockets`].
    pub flow: usize,
    /// Where the far end answers.
    pub destination: SocketAddr,
    /// The pair's sizes, as IP packets.
    pub small_bytes: u32,
    /// The large one.
    pub large_bytes: u32,
}

impl TraceSpec {
    fn family(&self) -> Family {
        if self.source.is_ipv6() { Family::V6 } else { Family::V4 }
    }
}

/// What to trace, and how.
#[derive(Debug, Clone)]
pub struct TraceOrder {
    /// The flows, those first that tell most.
    pub traces: Vec<TraceSpec>,
    /// Of each.
    pub config: TraceConfig,
    /// The secret.
    pub token: Token,
}

/// Traces all flows, the first of each IP version before the others; their hops.
pub fn trace(
    order: &TraceOrder,
    sockets: &FlowSockets,
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Vec<Hop>>> {
    let mut work = Work {
        order,
        sockets,
        traces: Traces::new(order.config, order.traces.iter().map(TraceSpec::family)),
        payload: padding(),
        begun: monotonic_nanoseconds(),
    };
    let mut listening = sockets.listen()?;
    while !work.traces.done() {
        if cancelled() {
            return Err(OsError::errno("trace paths", 125));
        }
        let until = work.turn();
        let patience = until.saturating_sub(work.now()).min(LISTEN);
        listening.hear(patience.as_nanos() as u64, |source, flow, event| work.heard(source, flow, &event))?;
    }
    Ok(work.traces.hops().map(<[Hop]>::to_vec).collect())
}

struct Work<'a> {
    order: &'a TraceOrder,
    sockets: &'a FlowSockets,
    traces: Traces<Family>,
    payload: Vec<u8>,
    begun: u64,
}

impl Work<'_> {
    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_nanoseconds() - self.begun)
    }

    /// Sends what is to be sent; until when to wait.
    fn turn(&mut self) -> Duration {
        loop {
            let now = self.now();
            let Some((index, probe)) = self.traces.poll(now) else { break };
            self.send(index, probe);
        }
        let latest = self.now() + LISTEN;
        self.traces.deadline().map_or(latest, |deadline| deadline.min(latest))
    }

    fn send(&mut self, index: usize, probe: TraceProbe) {
        let spec = &self.order.traces[index];
        let Some(socket) = self.sockets.get(spec.source, spec.flow) else { return };
        let bytes = match probe.size {
            TraceSize::Small => spec.small_bytes,
            TraceSize::Large => spec.large_bytes,
        };
        let length = (bytes - header_bytes(spec.family())) as usize;
        let id = (index as u64) << 48 | u64::from(probe.number);
        Probe { id, ip_bytes: bytes }.write(&self.order.token, &mut self.payload);
        if let Sent::TooBig = socket.send(spec.destination, &self.payload[..length], Some(probe.ttl)) {
            let now = self.now();
            self.traces.on_outcome(now, index, probe.number, HopOutcome::TooBig(None, None));
        }
    }

    fn heard(&mut self, source: IpAddr, flow: usize, event: &Heard<'_>) {
        let now = self.now();
        let (id, outcome) = match event {
            Heard::Datagram(datagram) => {
                let Ok(answer) = Acknowledgement::read(&self.order.token, datagram.payload()) else { return };
                (answer.id, HopOutcome::Delivered)
            }
            Heard::Report(report) => {
                let Ok(probe) = Probe::read(&self.order.token, &report.quoted) else { return };
                let Some(outcome) = outcome(report) else { return };
                (probe.id, outcome)
            }
        };
        let index = (id >> 48) as usize;
        let Some(spec) = self.order.traces.get(index) else { return };
        if spec.source == source && spec.flow == flow {
            self.traces.on_outcome(now, index, id as u32, outcome);
        }
    }
}

fn outcome(report: &Report) -> Option<HopOutcome> {
    match (report.refusal, report.by) {
        (Refusal::Expired, Some(by)) => Some(HopOutcome::Expired(by)),
        (Refusal::TooBig(mtu), by) => Some(HopOutcome::TooBig(by, mtu)),
        (Refusal::Unreachable(..), Some(by)) => Some(HopOutcome::Unreachable(by)),
        _ => None,
    }
}
