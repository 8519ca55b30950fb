//! Between endpoints and the fabric: segments become frames, and frames that arrive segments.

use framegauge_fabric::{Aggregate, Ecn, Fabric, HostIndex, PortEvent, Sink};
use framegauge_frames::{ETHERNET_HEADER_BYTES, Family, Picoseconds, TCP_HEADER_BYTES, mixed};

use crate::Scenario;
use crate::capture::Capture;
use crate::cores::Cores;
use crate::endpoint::Wire;
use crate::log::Log;
use crate::routers::Routers;
use crate::segment::{Segment, Slab};

/// Where an endpoint is, and what its frames look like to switches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) host: HostIndex,
    pub(crate) peer: HostIndex,
    /// To which end its frames go: the peer's, or a router's on the way to it.
    pub(crate) next: HostIndex,
    /// By which end its frames leave: of a bond, the member that its host has chosen.
    pub(crate) exit: HostIndex,
    /// Hash of the flow, one way.
    pub(crate) flow: u64,
    /// Segments that it has sent, modulo 65,536.
    pub(crate) sent: u16,
}

/// The network, with what is under way in it.
#[derive(Debug, Clone)]
pub(crate) struct Net {
    pub(crate) fabric: Fabric,
    pub(crate) slab: Slab,
    /// By endpoint.
    pub(crate) places: Vec<Place>,
    pub(crate) family: Family,
    pub(crate) timestamps: bool,
    /// What an overlay puts before every packet.
    pub(crate) tunnel_bytes: u32,
    /// What hosts' shapers let through at once.
    burst_bytes: u64,
    pub(crate) segments: u64,
    /// Of these, what hosts have got.
    pub(crate) delivered: u64,
    /// Every segment that is sent, if anybody asked for it.
    pub(crate) log: Option<Box<Log>>,
    /// What passes ports that are watched.
    pub(crate) capture: Capture,
    pub(crate) routers: Option<Box<Routers>>,
    /// The hosts' CPUs, if any are modelled.
    pub(crate) cores: Option<Box<Cores>>,
}

impl Net {
    /// Nothing is under way.
    pub(crate) fn new(fabric: Fabric, scenario: &Scenario) -> Net {
        Net {
            fabric,
            slab: Slab::default(),
            places: Vec::new(),
            family: scenario.tcp.family,
            timestamps: scenario.tcp.timestamps,
            tunnel_bytes: scenario.tunnel_bytes,
            burst_bytes: scenario.burst_bytes,
            segments: 0,
            delivered: 0,
            log: scenario.logs_segments.then(Box::default),
            capture: Capture::default(),
            routers: scenario.routers.clone().map(Box::new),
            cores: Cores::new(&scenario.cpus).map(Box::new),
        }
    }

    /// The fabric, and what learns from it.
    pub(crate) fn parts<'a>(&'a mut self, inbox: &'a mut Inbox) -> (&'a mut Fabric, Delivery<'a>) {
        let Net { fabric, slab, places, capture, .. } = self;
        (fabric, Delivery { slab, inbox, places, capture })
    }

    /// The IP packet that a segment stands for, in bytes; that of the underlay where there is an overlay.
    pub(crate) fn packet_bytes(&self, segment: &Segment) -> u32 {
        let tcp = match segment.reported_mtu() {
            None => TCP_HEADER_BYTES + segment.option_bytes(self.timestamps),
            Some(_) => 0,
        };
        self.tunnel_bytes + self.family.header_bytes() + tcp + segment.bytes
    }

    /// A segment as the fabric takes it, on its way to an end.
    pub(crate) fn aggregate(&self, id: u32, destination: HostIndex) -> Aggregate {
        let segment = self.slab.get(id);
        let captured_bytes = ETHERNET_HEADER_BYTES + self.packet_bytes(segment);
        let is_error = segment.reported_mtu().is_some();
        let flow = self.places[segment.from as usize].flow;
        Aggregate {
            id,
            frames: 1,
            captured_bytes,
            last_captured_bytes: captured_bytes,
            destination,
            // An error is of no flow of its endpoint's.
            flow: if is_error { mixed(flow) } else { flow },
            data: segment.bytes > 0 && !is_error,
            icmp_error: is_error,
            ecn: match (segment.is_marked, segment.is_ecn_capable) {
                (true, _) => Ecn::MARKED,
                (false, true) => Ecn::CAPABLE,
                (false, false) => Ecn::NOT_CAPABLE,
            },
            band: 0,
        }
    }
}

impl Net {
    /// The core of a host that has to do with what comes to an endpoint of its; none: it is not modelled.
    pub(crate) fn core_of(&self, endpoint: u32) -> Option<(HostIndex, u16)> {
        let end = self.places[endpoint as usize].host;
        // The hash is that of what the peer sends, also for what is sent to it.
        self.cores.as_ref()?.core_of(end, self.places[(endpoint ^ 1) as usize].flow)
    }

    #[cold]
    fn charge(&mut self, now: Picoseconds, host: HostIndex, segment: &Segment) {
        let Some(place) = self.core_of(segment.from) else { return };
        debug_assert_eq!(place.0, host);
        if let Some(cores) = &mut self.cores {
            cores.charge(now, place, segment.from, u64::from(segment.bytes));
        }
    }
}

impl Wire for Net {
    fn send(&mut self, now: Picoseconds, mut segment: Segment) -> Picoseconds {
        let place = &mut self.places[segment.from as usize];
        place.sent = place.sent.wrapping_add(1);
        segment.identification = place.sent;
        let Place { host, next, exit, .. } = *place;
        if let Some(log) = &mut self.log {
            log.note(now, &segment);
        }
        if self.cores.is_some() {
            self.charge(now, host, &segment);
        }
        let id = self.slab.insert(segment);
        self.segments += 1;
        let aggregate = self.aggregate(id, next);
        self.fabric.transmit(now, exit, aggregate);
        now + self.fabric.uplink_backlog_before(exit, self.burst_bytes)
    }

    fn held_back(&self, endpoint: u32) -> Picoseconds {
        self.fabric.uplink_held_back(self.places[endpoint as usize].exit)
    }
}

/// What arrives at one end at one time, by the numbers of segments.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    pub(crate) end: HostIndex,
    pub(crate) arrived: Vec<u32>,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { end: HostIndex(0), arrived: Vec::new() }
    }
}

/// A sink that keeps what arrives, and frees what is dropped.
pub(crate) struct Delivery<'a> {
    slab: &'a mut Slab,
    inbox: &'a mut Inbox,
    places: &'a [Place],
    capture: &'a mut Capture,
}

impl Sink for Delivery<'_> {
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], _due: Picoseconds) {
        self.inbox.end = host;
        self.inbox.arrived.extend(frames.iter().map(|(aggregate, _)| aggregate));
    }

    fn discard(&mut self, aggregate: u32, _frame: u16) {
        self.slab.remove(aggregate);
    }

    fn mark(&mut self, aggregate: u32, _frame: u16) {
        self.slab.get_mut(aggregate).is_marked = true;
    }

    fn seen(&mut self, event: &PortEvent) {
        self.capture.note(event, self.slab, self.places);
    }

    fn is_full(&self) -> bool {
        !self.inbox.arrived.is_empty()
    }
}
