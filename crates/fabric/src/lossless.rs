//! Lossless operation: a switch whose buffer fills tells its neighbours to pause.
//!
//! It is priority flow control (IEEE 802.1Qbb) with one priority, or PAUSE (IEEE 802.3 annex 31B): a pause lasts until it is
//! taken back, and neither is ever lost. A switch counts by input link what its output queues hold. The buffer that its
//! ports share has a dynamic threshold for each link; the frame that crosses it, and all that still come, go into the
//! headroom of that link:
//!
//! ```text
//!   frame over the threshold   PAUSE waits for     PAUSE: 64 bytes,    614.4 ns    a frame that has just begun
//!   has arrived                a frame being sent  then the link                   is finished, then the link
//!   ├──────────────────────────┼───────────────────┼───────────────────┼───────────┼──────────────────────────▶ silence
//! ```
//!
//! With such headroom nothing is dropped at any load. Where links with waiting frames form a circle, all of them may pause
//! for ever: lossless networks can deadlock. Routes without circles among the links, as up and down a tree, cannot.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use framegauge_frames::{Picoseconds, frame_bytes, wire_bytes};

use crate::port::Port;
use crate::{Act, ConfigError, Fabric, FabricConfig, Limit, PortConfig, PortIndex, QueueConfig, Sink};

/// A PAUSE, or a RESUME, with header and FCS.
pub(crate) const PAUSE_FRAME_BYTES: u32 = 64;
/// From the arrival of a PAUSE to the time from which no frame begins: 614.4 ns at any speed (IEEE 802.1Qbb, 36.1.3.3).
const RESPONSE: Picoseconds = Picoseconds::new(614_400);

/// What lossless operation needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LosslessConfig {
    /// The largest frame that anybody sends, in `frame_bytes`.
    pub frame_bytes: u32,
    /// Of each link, instead of what it needs: frames that find it full are dropped.
    pub headroom_bytes: Option<u64>,
}

/// A link that ends at a switch.
#[derive(Debug, Clone)]
struct Link {
    /// The switch, and its port in the other direction.
    switch: usize,
    back: PortIndex,
    headroom_bytes: u64,
    frame_bytes: u64,
    /// What the switch's queues hold of what came by it, and how much of that is in the headroom.
    held_bytes: u64,
    over_bytes: u64,
    is_paused: bool,
}

/// What is to happen at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Pause(bool),
    Touch,
}

/// The input links of all switches, and what they have in common.
#[derive(Debug, Clone)]
pub(crate) struct Lossless {
    alpha: f64,
    /// By port.
    links: Vec<Option<Link>>,
    /// By port of a switch: the one that it tells to pause.
    senders: Vec<Option<PortIndex>>,
    /// By switch: what is free of the buffer but for the headroom.
    free_bytes: Vec<u64>,
    due: BinaryHeap<Reverse<(Picoseconds, u64, PortIndex, Due)>>,
    numbered: u64,
    /// By port: when it is touched next.
    touched: Vec<Picoseconds>,
}

impl FabricConfig {
    /// The input links of its switches with their headroom, by port.
    fn lossless_links(&self, lossless: &LosslessConfig) -> Result<Vec<Option<Link>>, ConfigError> {
        let mut numbered = HashMap::new();
        let mut number = |from, to| {
            let next = numbered.entry((from, to)).or_insert(0_usize);
            std::mem::replace(next, *next + 1)
        };
        let places: Vec<_> = self.ports.iter().map(|port| (port.from, port.to)).collect();
        let places: Vec<_> = places.into_iter().map(|(from, to)| (from, to, number(from, to))).collect();
        let by_place: HashMap<_, usize> =
            places.iter().enumerate().map(|(port, place)| (*place, port)).collect();
        let link = |(port, (from, to, number)): (usize, &(_, crate::NodeIndex, usize))| {
            let Some(switch) = usize::from(to.0).checked_sub(self.hosts.len()) else { return Ok(None) };
            let Some(back) = by_place.get(&(*to, *from, *number)) else {
                let name = self.port_name(PortIndex(port as u16));
                let problem = format!("found no link back for {name}, by which its sender could be paused");
                return Err(ConfigError::SharedBuffer { problem });
            };
            let (forth, other) = (&self.ports[port], &self.ports[*back]);
            Ok(Some(Link {
                switch,
                back: PortIndex(*back as u16),
                headroom_bytes: lossless.headroom_bytes.unwrap_or_else(|| lossless.headroom(forth, other)),
                frame_bytes: lossless.largest(forth),
                held_bytes: 0,
                over_bytes: 0,
                is_paused: false,
            }))
        };
        places.iter().enumerate().map(link).collect()
    }

    /// What cannot be lossless, or has too small a buffer.
    pub(crate) fn check_lossless(&self) -> Result<(), ConfigError> {
        let Some((shared, lossless)) = self.shared_buffer.and_then(|shared| Some((shared, shared.lossless?)))
        else {
            return Ok(());
        };
        let wrong = |problem: String| Err(ConfigError::SharedBuffer { problem });
        let least = frame_bytes(0);
        if lossless.frame_bytes < least {
            return wrong(format!(
                "found frames of {} bytes, expected {least} or more",
                lossless.frame_bytes
            ));
        }
        for (port, config) in self.ports.iter().enumerate() {
            let is_switch = usize::from(config.from.0) >= self.hosts.len();
            let name = || self.port_name(PortIndex(port as u16));
            if is_switch && !holds(&config.queue, shared.bytes) {
                let expected = "taildrop, step or priority with room for all of it where it is lossless";
                return wrong(format!("found another queue at {}, expected {expected}", name()));
            }
        }
        let holds = |script: &crate::Script| {
            script.rules.iter().any(|rule| matches!(rule.act, Act::Hold(_))).then_some(script.port)
        };
        if let Some(port) = self.scripts.iter().find_map(holds) {
            let name = self.port_name(port);
            return wrong(format!(
                "found a script that holds frames of {name}, expected none where it is lossless"
            ));
        }
        let links = self.lossless_links(&lossless)?;
        let needed = |switch: usize| {
            let own = links.iter().flatten().filter(|link| link.switch == switch);
            let bytes = own.clone().map(|link| link.headroom_bytes.saturating_add(link.frame_bytes));
            (bytes.fold(0, u64::saturating_add), own.count(), switch)
        };
        let most = (0..self.switches.len()).map(needed).max_by_key(|(bytes, ..)| *bytes);
        if let Some((needed, count, switch)) = most.filter(|(needed, ..)| *needed > shared.bytes) {
            let (actual, name) = (shared.bytes, &self.switches[switch]);
            return wrong(format!(
                "found {actual} bytes, expected {needed} or more: headroom and a full frame of the {count} links to {name}"
            ));
        }
        Ok(())
    }
}

/// Whether a queue keeps whatever a buffer of that size may hold.
fn holds(queue: &QueueConfig, bytes: u64) -> bool {
    match *queue {
        QueueConfig::Taildrop { limit: Limit::Bytes(limit) } => limit >= bytes,
        QueueConfig::Priority { limit: Limit::Bytes(limit), .. } => limit >= bytes,
        QueueConfig::Step { limit_bytes, .. } => limit_bytes >= bytes,
        _ => false,
    }
}

impl LosslessConfig {
    /// The largest frame that a port sends and the far end of its link takes.
    fn largest(&self, port: &PortConfig) -> u64 {
        let mtus = [port.output_mtu, port.input_mtu].into_iter().flatten();
        mtus.map(|mtu| mtu.frame_bytes()).fold(self.frame_bytes, u32::min).into()
    }

    /// What a link needs: the frame over the threshold, what its sender begins until it obeys, and the one that it has just
    /// begun then. `IXGBE_DV` of Linux' ixgbe driver has the same terms.
    fn headroom(&self, port: &PortConfig, back: &PortConfig) -> u64 {
        let on_wire = |port: &PortConfig, frame_bytes: u64| {
            u64::from(wire_bytes(frame_bytes as u32)) + port.impairments.tag_bytes()
        };
        let notice_bytes = on_wire(back, self.largest(back)) + on_wire(back, PAUSE_FRAME_BYTES.into());
        let notice = back.line_rate().unwrap_or(back.rate).serialisation(notice_bytes);
        let links = [port, back].map(|port| port.delay + port.impairments.phase);
        let span = notice + links[0] + links[1] + port.impairments.jitter + RESPONSE;
        let wire_bytes = port.line_rate().unwrap_or(port.rate).bytes_within(span);
        let largest = self.largest(port);
        // No frame is more of what is on the wire than the largest.
        let frames = u128::from(wire_bytes) * u128::from(largest);
        let frame_bytes = frames.div_ceil(on_wire(port, largest).into());
        u64::try_from(frame_bytes).unwrap_or(u64::MAX).saturating_add(2 * largest)
    }
}

impl Lossless {
    /// None unless it is asked for. The configuration must have been checked.
    pub(crate) fn new(config: &FabricConfig, ports: &mut [Port]) -> Option<Box<Lossless>> {
        let shared = config.shared_buffer?;
        let links = config.lossless_links(&shared.lossless?).ok()?;
        let mut senders = vec![None; links.len()];
        let mut free_bytes = vec![shared.bytes; config.switches.len()];
        for (port, link) in links.iter().enumerate() {
            let is_switch = usize::from(config.ports[port].from.0) >= config.hosts.len();
            ports[port].obey_pauses(is_switch);
            let Some(link) = link else { continue };
            senders[usize::from(link.back.0)] = Some(PortIndex(port as u16));
            free_bytes[link.switch] -= link.headroom_bytes;
        }
        Some(Box::new(Lossless {
            alpha: shared.alpha,
            touched: vec![Picoseconds::ZERO; links.len()],
            links,
            senders,
            free_bytes,
            due: BinaryHeap::new(),
            numbered: 0,
        }))
    }

    /// Whether a frame that came by that link still fits, into the shared part or into the headroom.
    pub(crate) fn has_room(&self, input: PortIndex, frame_bytes: u32) -> bool {
        let Some(link) = &self.links[usize::from(input.0)] else { return true };
        let frame_bytes = u64::from(frame_bytes);
        self.is_below(link, frame_bytes) || link.over_bytes + frame_bytes <= link.headroom_bytes
    }

    fn is_below(&self, link: &Link, frame_bytes: u64) -> bool {
        let free_bytes = self.free_bytes[link.switch];
        !link.is_paused
            && (link.held_bytes as f64) < self.alpha * free_bytes as f64
            && frame_bytes <= free_bytes
    }

    /// A frame that came by that link was taken in. The port by which its sender is to be paused now, if it is.
    fn take(&mut self, input: PortIndex, frame_bytes: u32) -> Option<PortIndex> {
        let frame_bytes = u64::from(frame_bytes);
        let is_below =
            self.links[usize::from(input.0)].as_ref().is_some_and(|link| self.is_below(link, frame_bytes));
        let link = self.links[usize::from(input.0)].as_mut()?;
        link.held_bytes += frame_bytes;
        if is_below {
            self.free_bytes[link.switch] -= frame_bytes;
            return None;
        }
        link.over_bytes += frame_bytes;
        let was_paused = std::mem::replace(&mut link.is_paused, true);
        (!was_paused).then_some(link.back)
    }

    /// A frame that came by that link has left. The port by which its sender is to be told to go on, if it is: the headroom
    /// is empty, and two full frames would come below the threshold, or nothing is held any more.
    fn release(&mut self, input: PortIndex, frame_bytes: u32) -> Option<PortIndex> {
        let link = self.links[usize::from(input.0)].as_mut()?;
        let frame_bytes = u64::from(frame_bytes);
        let over_bytes = frame_bytes.min(link.over_bytes);
        link.held_bytes -= frame_bytes;
        link.over_bytes -= over_bytes;
        let free_bytes = &mut self.free_bytes[link.switch];
        *free_bytes += frame_bytes - over_bytes;
        let is_low = link.held_bytes == 0
            || ((link.held_bytes + 2 * link.frame_bytes) as f64) <= self.alpha * *free_bytes as f64;
        let goes_on = link.is_paused && link.over_bytes == 0 && is_low;
        link.is_paused &= !goes_on;
        goes_on.then_some(link.back)
    }

    fn add(&mut self, time: Picoseconds, port: PortIndex, due: Due) {
        self.due.push(Reverse((time, self.numbered, port, due)));
        self.numbered += 1;
    }
}

impl Fabric {
    fn lossless(&mut self) -> Option<&mut Lossless> {
        self.shared_buffers.as_mut()?.lossless.as_deref_mut()
    }

    /// Whether switches pause their neighbours instead of dropping.
    pub fn is_lossless(&self) -> bool {
        self.shared_buffers.as_ref().is_some_and(|shared| shared.lossless.is_some())
    }

    /// Something is due at a port.
    #[cold]
    pub(crate) fn handle_due(&mut self, now: Picoseconds, sink: &mut impl Sink) {
        let Some(Reverse((_, _, index, due))) = self.lossless().and_then(|lossless| lossless.due.pop())
        else {
            return;
        };
        self.at_port(index, |port| match due {
            Due::Touch => port.touch(now),
            Due::Pause(is_paused) => port.pause(now, is_paused),
        });
        self.settle_lossless(now, index);
        if self.ports[usize::from(index.0)].has_news() {
            self.settle(index, sink);
        }
    }

    /// Does something to a port that may let it begin to send.
    fn at_port(&mut self, index: PortIndex, act: impl FnOnce(&mut Port)) {
        let port = &mut self.ports[usize::from(index.0)];
        let was_idle = port.next_arrival().is_none();
        act(port);
        if was_idle {
            self.schedule_arrival(index.0.into());
        }
    }

    /// A frame was taken in by a port of a switch.
    pub(crate) fn note_held(
        &mut self,
        now: Picoseconds,
        output: PortIndex,
        (input, frame_bytes): (PortIndex, u32),
    ) {
        // What has left at this time has left before.
        self.settle_lossless(now, output);
        if let Some(back) = self.lossless().and_then(|lossless| lossless.take(input, frame_bytes)) {
            self.at_port(back, |port| port.ask_to_pause(now, true));
            self.settle_lossless(now, back);
        }
    }

    /// Takes in what has happened at a port of a switch, and what follows from it at others.
    pub(crate) fn settle_lossless(&mut self, now: Picoseconds, index: PortIndex) {
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            let place = usize::from(index.0);
            while let Some((input, frame_bytes)) = self.ports[place].take_left() {
                let upstream = self.lossless().and_then(|lossless| lossless.release(input, frame_bytes));
                if let Some(back) = upstream {
                    self.at_port(back, |port| port.ask_to_pause(now, false));
                    open.push(back);
                }
            }
            while let Some((knows, is_paused)) = self.ports[place].take_said() {
                let sender = self.lossless().and_then(|lossless| lossless.senders[place]);
                sender
                    .into_iter()
                    .for_each(|sender| self.add_due(knows + RESPONSE, sender, Due::Pause(is_paused)));
            }
            self.plan_touch(now, index);
        }
    }

    fn plan_touch(&mut self, now: Picoseconds, index: PortIndex) {
        let place = usize::from(index.0);
        let next = self.ports[place].next_touch(now);
        let Some(lossless) = self.lossless() else { return };
        if let Some(next) = next.filter(|next| lossless.touched[place] != *next) {
            lossless.touched[place] = next;
            self.add_due(next, index, Due::Touch);
        }
    }

    fn add_due(&mut self, time: Picoseconds, port: PortIndex, due: Due) {
        let source = (self.ports.len() + self.nics.len() + 1) as u32;
        if let Some(lossless) = self.lossless() {
            lossless.add(time, port, due);
            self.schedule(Some(time), source);
        }
    }
}
