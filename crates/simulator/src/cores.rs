//! What hosts' CPUs take for packets: a model of the kernel's receive and send paths on the cores of a host.
//!
//! ```text
//!   packets arrive ──▶ queue of a core ──▶ poll: up to a batch ──▶ merged (GRO) ──▶ TCP ──▶ what it sends is charged here
//!                       (by the flow's hash)   wakeup (if it was idle) + packets x c_p + aggregates x c_a + bytes x c_b
//! ```
//!
//! A core does one thing after the other. What waits is polled in batches, as NAPI does (`NAPI_POLL_WEIGHT`), and the data of
//! one flow in a batch are merged as GRO does where the NIC coalesces; so the busier a core is, the more it merges. One that
//! polled nothing has to be woken first: an interrupt, and the scheduler where a thread polls. TCP gets
//! a batch when the time for all of it is over. What TCP sends leaves at once, and its time is taken after it: at the limit
//! of a core both are the same. A queue has no limit: what waits is bounded by the windows of TCP.

use std::collections::{BTreeMap, VecDeque};

use framegauge_fabric::HostIndex;
use framegauge_frames::{Picoseconds, mixed};

use crate::Simulation;
use crate::net::Net;
use crate::segment::Slab;
use crate::simulation::Event;

/// The largest aggregate, in bytes of payload (`GRO_LEGACY_MAX_SIZE`, `GSO_LEGACY_MAX_SIZE`).
const MOST_BYTES: u64 = 65_536;

/// What one way takes of a core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// For a packet: the driver's work.
    pub packet: Picoseconds,
    /// For an aggregate, or a packet that is none: the stack's.
    pub aggregate: Picoseconds,
    /// For a byte of payload, in picoseconds: copies and checksums.
    pub byte_picoseconds: f64,
}

impl Cost {
    fn of(&self, packets: u64, aggregates: u64, bytes: u64) -> Picoseconds {
        let copied = (bytes as f64 * self.byte_picoseconds) as u64;
        Picoseconds::new(packets * self.packet.get() + aggregates * self.aggregate.get() + copied)
    }
}

/// The CPUs of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    /// Whose they are: the first of a host's ends. What comes to the others is theirs, too.
    pub host: HostIndex,
    /// Cores, each with a queue of the NIC; a flow belongs to one of them.
    pub cores: u16,
    /// For each time that polling begins: the interrupt, and the scheduler's work.
    pub wakeup: Picoseconds,
    /// Of what arrives.
    pub receive: Cost,
    /// Of what is sent.
    pub send: Cost,
    /// The data of one flow in a batch are merged.
    pub merges: bool,
    /// The NIC cuts aggregates, so that the driver's work is for these, and not for packets.
    pub cuts: bool,
    /// Packets that are polled at once.
    pub batch: u32,
}

/// What the cores of a host did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuCounts {
    /// The host.
    pub host: u16,
    /// By core: the time that it was busy.
    pub busy: Vec<Picoseconds>,
    /// Packets that it took, and into how many aggregates these were merged.
    pub received_packets: u64,
    /// See there.
    pub received_aggregates: u64,
}

#[derive(Debug, Clone, Default)]
struct Core {
    waiting: VecDeque<u32>,
    /// What is being handled: segments, and whether the aggregate ends with one.
    batch: Vec<(u32, bool)>,
    is_polling: bool,
    /// It has been woken for what waits, which takes time.
    wakes: bool,
    until: Picoseconds,
    busy: Picoseconds,
    /// Who sent last, when, and how much at once.
    sent: (u32, Picoseconds, u64),
}

/// The cores of all hosts that have a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cores {
    /// By end.
    models: Vec<Option<Cpu>>,
    cores: BTreeMap<(HostIndex, u16), Core>,
    packets: Vec<(u64, u64)>,
}

impl Cores {
    /// By end; none if no host has a model.
    pub(crate) fn new(models: &[Option<Cpu>]) -> Option<Cores> {
        models.iter().any(Option::is_some).then(|| Cores {
            models: models.to_vec(),
            cores: BTreeMap::new(),
            packets: vec![(0, 0); models.len()],
        })
    }

    fn model(&self, host: HostIndex) -> Option<&Cpu> {
        self.models.get(usize::from(host.0))?.as_ref()
    }

    /// Which core of which host a flow that comes to an end belongs to; none: the host has no model.
    pub(crate) fn core_of(&self, end: HostIndex, flow: u64) -> Option<(HostIndex, u16)> {
        self.model(end).map(|model| (model.host, (mixed(flow) % u64::from(model.cores)) as u16))
    }

    /// A segment waits for a core. When it is polled, if the core did nothing.
    pub(crate) fn wait(&mut self, now: Picoseconds, place: (HostIndex, u16), id: u32) -> Option<Picoseconds> {
        let core = self.cores.entry(place).or_default();
        core.waiting.push_back(id);
        let was_idle = !std::mem::replace(&mut core.is_polling, true);
        core.wakes |= was_idle;
        was_idle.then(|| core.until.max(now))
    }

    /// A core begins with what waits, unless it is still busy: when it is to go on.
    pub(crate) fn poll(&mut self, now: Picoseconds, place: (HostIndex, u16), slab: &Slab) -> Picoseconds {
        let Some(model) = self.models[usize::from(place.0.0)].as_ref() else { return now };
        let Some(core) = self.cores.get_mut(&place) else { return now };
        if core.until > now {
            return core.until;
        }
        if std::mem::take(&mut core.wakes) && model.wakeup > Picoseconds::ZERO {
            core.busy += model.wakeup;
            core.until = now + model.wakeup;
            return core.until;
        }
        let count = core.waiting.len().min(model.batch as usize);
        let ids: Vec<u32> = core.waiting.drain(..count).collect();
        let (batch, bytes) = merged(&ids, slab, model.merges);
        let aggregates = batch.iter().filter(|(_, ends)| *ends).count() as u64;
        let cost = model.receive.of(count as u64, aggregates, bytes);
        let counts = &mut self.packets[usize::from(place.0.0)];
        *counts = (counts.0 + count as u64, counts.1 + aggregates);
        core.batch = batch;
        core.busy += cost;
        core.until = now + cost;
        core.until
    }

    /// What a core has handled; empty: it has yet to begin.
    pub(crate) fn handled(&mut self, now: Picoseconds, place: (HostIndex, u16)) -> Vec<(u32, bool)> {
        match self.cores.get_mut(&place) {
            Some(core) if core.until <= now => std::mem::take(&mut core.batch),
            _ => Vec::new(),
        }
    }

    /// After a batch: when the core is polled again, if anything waits.
    pub(crate) fn next(&mut self, now: Picoseconds, place: (HostIndex, u16)) -> Option<Picoseconds> {
        let core = self.cores.get_mut(&place)?;
        core.is_polling = !core.waiting.is_empty();
        core.is_polling.then(|| core.until.max(now))
    }

    /// An endpoint of a host sends a segment with so much payload: its core is busy with it from when it is free.
    pub(crate) fn charge(&mut self, now: Picoseconds, place: (HostIndex, u16), from: u32, bytes: u64) {
        let Some(model) = self.models[usize::from(place.0.0)].as_ref() else { return };
        let core = self.cores.entry(place).or_default();
        let (last, time, at_once) = core.sent;
        let joins = bytes > 0 && (last, time) == (from, now) && at_once > 0 && at_once + bytes <= MOST_BYTES;
        core.sent = (from, now, if joins { at_once + bytes } else { bytes });
        let aggregates = u64::from(!joins);
        let packets = if model.cuts { aggregates } else { 1 };
        let cost = model.send.of(packets, aggregates, bytes);
        core.busy += cost;
        core.until = core.until.max(now) + cost;
    }

    /// What the hosts' cores did.
    pub(crate) fn counts(&self) -> Vec<CpuCounts> {
        let of = |(place, model): (usize, &Option<Cpu>)| {
            let host = HostIndex(place as u16);
            let busy = |core| self.cores.get(&(host, core)).map_or(Picoseconds::ZERO, |core| core.busy);
            model.as_ref().filter(|model| model.host == host).map(|model| CpuCounts {
                host: host.0,
                busy: (0..model.cores).map(busy).collect(),
                received_packets: self.packets[place].0,
                received_aggregates: self.packets[place].1,
            })
        };
        self.models.iter().enumerate().filter_map(of).collect()
    }
}

/// A batch as TCP gets it: each segment, and whether an aggregate ends with it; and the payload of all. The data of a flow
/// are merged, wherever in the batch they are (`gro_list`); what has no data is not.
fn merged(segments: &[u32], slab: &Slab, merges: bool) -> (Vec<(u32, bool)>, u64) {
    let bytes = segments.iter().map(|id| u64::from(slab.get(*id).bytes)).sum();
    if !merges {
        return (segments.iter().map(|id| (*id, true)).collect(), bytes);
    }
    let mut flows: Vec<(u32, Vec<u32>)> = Vec::new();
    for id in segments {
        let to = slab.get(*id).to;
        match flows.iter_mut().find(|(flow, _)| *flow == to) {
            Some((_, ids)) => ids.push(*id),
            None => flows.push((to, vec![*id])),
        }
    }
    let mut batch = Vec::with_capacity(segments.len());
    for (_, ids) in flows {
        let mut held = 0;
        for (place, id) in ids.iter().enumerate() {
            let next = ids.get(place + 1).map(|next| slab.get(*next));
            let segment = slab.get(*id);
            held += u64::from(segment.bytes);
            let joins = segment.bytes > 0
                && next.is_some_and(|next| {
                    next.bytes > 0
                        && next.reported_mtu().is_none()
                        && next.sequence == segment.sequence + u64::from(segment.bytes)
                        && held + u64::from(next.bytes) <= MOST_BYTES
                });
            if !joins {
                held = 0;
            }
            batch.push((*id, !joins));
        }
    }
    (batch, bytes)
}

impl Simulation {
    /// What has come to a host waits for the core of its flow; an idle one begins when its host has got around to it.
    pub(crate) fn wait_for_core(&mut self, now: Picoseconds, id: u32) {
        let Some(place) = self.net.core_of(self.net.slab.get(id).to) else { return };
        let begins = self.net.cores.as_mut().and_then(|cores| cores.wait(now, place, id));
        if let Some(begins) = begins {
            let begins = begins.max(self.jittered(now, id).unwrap_or(now));
            self.schedule(begins, Event::Poll { host: place.0, core: place.1 });
        }
    }

    /// A core is done with a batch, or is to begin with one.
    pub(crate) fn poll(&mut self, now: Picoseconds, host: HostIndex, core: u16) {
        let place = (host, core);
        let handled = self.net.cores.as_mut().map_or_else(Vec::new, |cores| cores.handled(now, place));
        if handled.is_empty() {
            let Net { cores, slab, .. } = &mut self.net;
            let Some(cores) = cores else { return };
            let due = cores.poll(now, place, slab);
            return self.schedule(due, Event::Poll { host, core });
        }
        for (id, settles) in handled {
            self.take(now, id, settles);
        }
        let next = self.net.cores.as_mut().and_then(|cores| cores.next(now, place));
        if let Some(next) = next {
            self.schedule(next, Event::Poll { host, core });
        }
    }
}
