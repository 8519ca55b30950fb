//! The fabric itself: events in order, frames from port to port.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use framegauge_frames::Picoseconds;

use crate::background::Backgrounds;
use crate::bounds::Bounds;
use crate::drops::DropLog;
use crate::lossless::Lossless;
use crate::nic::Nic;
use crate::port::{Departed, Peer, Port};
use crate::routing::Routes;
use crate::script::Scripts;
use crate::shared_buffer::SharedBuffers;
use crate::uplink::Uplink;
use crate::{
    BondConfig, ConfigError, FabricConfig, Fate, Frame, HostIndex, NodeIndex, PortConfig, PortEvent,
    PortIndex,
};

/// Learns what becomes of frames: of their ends in any case, of the rest if it wants to.
pub trait Sink {
    /// One interrupt at `due` hands these frames to the host: pairs of an aggregate and the number of a frame
    /// of it, in the order of their arrival; at least one.
    fn deliver(&mut self, host: HostIndex, frames: &[(u32, u16)], due: Picoseconds);
    /// Frame number `frame` of the aggregate was dropped and will never be delivered.
    fn discard(&mut self, aggregate: u32, frame: u16);
    /// Frame number `frame` of the aggregate was marked as having met congestion, and goes on.
    fn mark(&mut self, aggregate: u32, frame: u16) {
        let _ = (aggregate, frame);
    }
    /// Something has happened at a port that is watched ([`Fabric::watch`]). Told in the order in which it is known, at the
    /// latest when [`Fabric::advance`] ends, and before the frame is delivered or discarded. A frame of a background is
    /// seen as well; it has no aggregate ([`Frame::background`]).
    fn seen(&mut self, event: &PortEvent) {
        let _ = event;
    }
    /// Whether [`Fabric::advance_to_delivery`] ends with what has just happened.
    fn is_full(&self) -> bool {
        false
    }
    /// A frame has left a switch by `port`, to which it came by the link of `input_port`, and waited there so long for
    /// others: its own time on the wire is not part of it. Told when it arrives at the far end, or is lost just before.
    fn waited(&mut self, port: PortIndex, input_port: PortIndex, wait: Picoseconds) {
        let _ = (port, input_port, wait);
    }
}

/// Something that happens: a port's next arrival or, numbered after the ports, a host's interrupt, or, after these, that
/// a frame is held no longer, and last what only lossless networks have. The order of the fields is the total order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    pub(crate) time: Picoseconds,
    pub(crate) source: u32,
}

/// An event, with what is needed to act on it.
pub(crate) enum Happening {
    Arrival {
        port: PortIndex,
        peer: Peer,
        departed: Departed,
        input_limit_bytes: u32,
    },
    Interrupt {
        nic: usize,
    },
    /// Something is due at a port of a lossless network.
    Due,
    /// A script has held the frame at the end of a link until now.
    Released {
        peer: Peer,
        frame: Frame,
        input_limit_bytes: u32,
    },
}

/// A network in virtual time.
#[derive(Debug, Clone)]
pub struct Fabric {
    pub(crate) names: Vec<String>,
    pub(crate) ports: Vec<Port>,
    /// Of the ports, with all changes since.
    pub(crate) configs: Vec<PortConfig>,
    /// Ports that refused frames while nobody could be told.
    pub(crate) unsettled: Vec<PortIndex>,
    pub(crate) watched: Vec<PortIndex>,
    pub(crate) nics: Vec<Nic>,
    pub(crate) uplinks: Vec<Uplink>,
    pub(crate) routes: Routes,
    pub(crate) shared_buffers: Option<SharedBuffers>,
    /// By host: frames can be sent to those of the same number.
    pub(crate) segments: Vec<usize>,
    /// By switch: its ports.
    pub(crate) switch_ports: Vec<Vec<PortIndex>>,
    pub(crate) events: BinaryHeap<Reverse<Event>>,
    /// None since a port has changed.
    pub(crate) bounds: Option<Bounds>,
    /// Until when everything has happened.
    pub(crate) clock: Picoseconds,
    /// Until when it is known what hosts have sent; the clock may be ahead of that.
    pub(crate) heard: Picoseconds,
    pub(crate) clock_violations: u64,
    pub(crate) drops: DropLog,
    /// Empty, with the memory that it had.
    spare_fates: Vec<Fate>,
    pub(crate) backgrounds: Backgrounds,
    pub(crate) bonds: Option<BondConfig>,
    /// What links do to single frames, if any has a script.
    pub(crate) scripts: Option<Box<Scripts>>,
}

impl Fabric {
    /// An empty fabric at time zero.
    pub fn new(config: &FabricConfig) -> Result<Fabric, ConfigError> {
        config.check()?;
        let hosts = config.hosts.len();
        let peer = |node: NodeIndex| match usize::from(node.0) < hosts {
            true => Peer::Host(HostIndex(node.0)),
            false => Peer::Switch(usize::from(node.0) - hosts),
        };
        let mut ports: Vec<Port> = config.ports.iter().map(|port| Port::new(port, peer(port.to))).collect();
        for port in &config.uplinks {
            ports[usize::from(port.0)].is_uplink = true;
        }
        for script in &config.scripts {
            ports[usize::from(script.port.0)].obey_script();
        }
        let lossless = Lossless::new(config, &mut ports);
        let uplink = |host: usize| {
            let port = config.uplinks[host];
            let rate = ports[usize::from(port.0)].rate();
            let filters_icmp_errors = config.ports[usize::from(port.0)].impairments.filters_icmp_errors;
            Uplink { port, rate, idle_from: Picoseconds::ZERO, filters_icmp_errors }
        };
        let index = |port: usize| PortIndex(port as u16);
        let mut switch_ports = vec![Vec::new(); config.switches.len()];
        for (port, config) in config.ports.iter().enumerate() {
            let switch = usize::from(config.from.0).checked_sub(hosts);
            if let Some(ports) = switch.and_then(|switch| switch_ports.get_mut(switch)) {
                ports.push(index(port));
            }
        }
        Ok(Fabric {
            names: config.port_names(),
            nics: (0..hosts).map(|host| Nic::new(HostIndex(host as u16), config.nic)).collect(),
            uplinks: (0..hosts).map(uplink).collect(),
            routes: Routes::new(&config.routes, hosts),
            events: BinaryHeap::with_capacity(ports.len() + hosts),
            bounds: None,
            configs: config.ports.clone(),
            unsettled: Vec::new(),
            watched: Vec::new(),
            shared_buffers: config
                .shared_buffer
                .map(|shared| SharedBuffers::new(shared, lossless, config.switches.len(), ports.len())),
            segments: config.segments(),
            switch_ports,
            clock: Picoseconds::ZERO,
            heard: Picoseconds::ZERO,
            clock_violations: 0,
            drops: DropLog::new(config.ports.iter().map(|port| port.to)),
            spare_fates: Vec::new(),
            backgrounds: Backgrounds::new(config),
            bonds: config.bonds.clone(),
            scripts: Scripts::new(config),
            ports,
        })
    }

    /// When something happens next: [`Fabric::advance`] to this time has an effect.
    pub fn next_deadline(&self) -> Option<Picoseconds> {
        let event = self.events.peek().map(|Reverse(event)| event.time);
        let pending = (!self.unsettled.is_empty()).then_some(self.clock);
        event.into_iter().chain(self.backgrounds.next()).chain(pending).min()
    }

    /// The latest time that this fabric was told of.
    pub fn now(&self) -> Picoseconds {
        self.heard
    }

    /// Lets everything happen that is due by `now`, in order of (time, port, sequence).
    pub fn advance(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        let now = self.tick(now);
        self.settle_refused(sink);
        while let Some(time) = self.backgrounds.next().filter(|time| *time <= now) {
            self.handle_events(time, sink);
            self.emit_backgrounds(time);
            self.settle_refused(sink);
        }
        self.handle_events(now, sink);
        if !self.watched.is_empty() {
            self.tell_all_seen(sink);
        }
    }

    pub(crate) fn handle_events(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        while let Some((time, happening)) = self.next_event(now) {
            self.handle(time, happening, sink);
        }
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, time: Picoseconds, happening: Happening, sink: &mut impl Sink) {
        let (peer, frame, input_limit_bytes) = match happening {
            Happening::Arrival {
                port,
                peer,
                departed: Departed { frame, waited, .. },
                input_limit_bytes,
            } => {
                let has_news = self.ports[usize::from(port.0)].has_news();
                if has_news {
                    self.settle(port, sink);
                }
                // A host's own NIC is no neighbour's queue.
                if frame.input_port != port {
                    sink.waited(port, frame.input_port, waited);
                }
                if has_news
                    && (self.loses(time, port, frame, sink)
                        || self.stops(time, (port, peer), frame, input_limit_bytes, sink))
                {
                    return;
                }
                (peer, Frame { input_port: port, ..frame }, input_limit_bytes)
            }
            Happening::Released { peer, frame, input_limit_bytes } => (peer, frame, input_limit_bytes),
            Happening::Interrupt { nic } => return self.nics[nic].interrupt(time, sink),
            Happening::Due => return self.handle_due(time, sink),
        };
        self.hand_over(time, peer, frame, input_limit_bytes, sink);
    }

    /// Takes the first event out of the set if it is due by `now`, and puts its port's next one in.
    pub(crate) fn next_event(&mut self, now: Picoseconds) -> Option<(Picoseconds, Happening)> {
        loop {
            let mut top = self.events.peek_mut()?;
            let Event { time, source } = top.0;
            if time > now {
                return None;
            }
            let Some(port) = self.ports.get_mut(source as usize) else {
                PeekMut::pop(top);
                let nic = source as usize - self.ports.len();
                if nic > self.nics.len() {
                    return Some((time, Happening::Due));
                }
                if nic == self.nics.len() {
                    match self.release(time) {
                        Some(released) => return Some((time, released)),
                        None => continue,
                    }
                }
                return Some((time, Happening::Interrupt { nic }));
            };
            let arrived = port.arrive(time);
            // The same port mostly has another frame under way: replacing the top is half of pop and push.
            match port.next_arrival() {
                Some(next) => top.0.time = next,
                None => {
                    PeekMut::pop(top);
                }
            }
            // An event without a frame does not exist; it would do nothing.
            let Some(departed) = arrived else { continue };
            let (peer, input_limit_bytes) = (port.peer, port.input_limit_bytes);
            let port = PortIndex(source as u16);
            return Some((time, Happening::Arrival { port, peer, departed, input_limit_bytes }));
        }
    }

    /// A frame's last bit has arrived at the end of a link.
    fn hand_over(
        &mut self,
        now: Picoseconds,
        peer: Peer,
        frame: Frame,
        input_limit_bytes: u32,
        sink: &mut impl Sink,
    ) {
        let switch = match peer {
            Peer::Switch(switch) => switch,
            Peer::Host(_) if frame.background().is_some() => return self.backgrounds.deliver(&frame),
            Peer::Host(host) => {
                let interrupt = self.nics[usize::from(host.0)].receive(now, frame, sink);
                self.schedule(interrupt, self.ports.len() as u32 + u32::from(host.0));
                return;
            }
        };
        let output = self.routes.output(&frame);
        let is_shared = self.shared_buffers.is_some();
        let refused = match is_shared {
            true => self.refused_by_shared_buffer(now, (switch, output), &frame),
            false => None,
        };
        let port = &mut self.ports[usize::from(output.0)];
        let was_idle = port.next_arrival().is_none();
        let accepted = match refused {
            None => port.offer(now, frame, input_limit_bytes),
            Some(reason) => port.refuse(now, frame, input_limit_bytes, reason),
        };
        let is_taken = accepted.is_ok();
        match accepted {
            Ok(()) => {
                if !port.has_marked(&frame) {
                    self.drops.end_runs(output, frame.input_port);
                }
                if was_idle {
                    self.schedule_arrival(output.0.into());
                }
            }
            Err(reason) => {
                let queue_bytes = port.buffered_bytes();
                self.tell(&Fate { time: now, frame, reason, marked: false, queue_bytes }, output, sink);
            }
        }
        if is_shared {
            self.note_shared_buffer(now, (switch, output), &frame, is_taken);
        }
        if self.ports[usize::from(output.0)].has_news() {
            self.settle(output, sink);
        }
    }

    /// Tells what was refused by hosts' own NICs.
    pub(crate) fn settle_refused(&mut self, sink: &mut impl Sink) {
        for port in std::mem::take(&mut self.unsettled) {
            self.settle(port, sink);
        }
    }

    /// Tells what has become of frames inside the queue of a port.
    #[cold]
    pub(crate) fn settle(&mut self, output: PortIndex, sink: &mut impl Sink) {
        self.tell_seen(output, sink);
        // The port gets the empty one: no memory is asked for, however many frames are marked.
        let mut fates = std::mem::take(&mut self.spare_fates);
        let recorded = self.ports[usize::from(output.0)].swap_fates(&mut fates);
        for (place, fate) in fates.drain(..).enumerate() {
            match place < recorded {
                true => self.tell_sink(&fate, output, sink),
                false => self.tell(&fate, output, sink),
            }
        }
        self.spare_fates = fates;
    }

    /// Writes down and tells that a frame was dropped, or marked.
    pub(crate) fn tell(&mut self, fate: &Fate, output: PortIndex, sink: &mut impl Sink) {
        self.drops.record(fate, output);
        self.tell_sink(fate, output, sink);
    }

    /// Tells what is written down already.
    fn tell_sink(&mut self, fate: &Fate, output: PortIndex, sink: &mut impl Sink) {
        self.tell_seen(output, sink);
        if fate.frame.background().is_some() {
            return;
        }
        match fate.marked {
            true => sink.mark(fate.frame.aggregate, fate.frame.index),
            false => sink.discard(fate.frame.aggregate, fate.frame.index),
        }
    }

    /// Puts the next arrival by the link of a port that was idle into the event set.
    pub(crate) fn schedule_arrival(&mut self, port: u32) {
        self.schedule(self.ports[port as usize].next_arrival(), port);
    }

    pub(crate) fn schedule(&mut self, time: Option<Picoseconds>, source: u32) {
        if let Some(time) = time {
            self.events.push(Reverse(Event { time, source }));
        }
    }

    /// Time never goes back.
    pub(crate) fn tick(&mut self, now: Picoseconds) -> Picoseconds {
        if now < self.heard {
            self.clock_violations += 1;
        }
        self.heard = self.heard.max(now);
        self.clock = self.clock.max(now);
        self.heard
    }
}
