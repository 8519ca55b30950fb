//! What a link does to single frames, by their numbers: the same on the rack and in a simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use framegauge_frames::Picoseconds;

use crate::fabric::Happening;
use crate::port::Peer;
use crate::{ConfigError, Ecn, Fabric, FabricConfig, Frame, PortIndex, Reason, Sink};

/// What becomes of a frame that has come to the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is lost there.
    Lose,
    /// It is marked (CE) if its header allows that, and goes on.
    Mark,
    /// It goes on so much later. Those behind it overtake it.
    Hold(Picoseconds),
}

/// Which frames, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Their numbers, from 1, among those of [`Rule::at_least_bytes`] that come to the end of the link.
    pub frames: Vec<u32>,
    /// Smaller frames are neither counted nor touched; in `frame_bytes`.
    pub at_least_bytes: u32,
    /// What becomes of them.
    pub act: Act,
}

/// The script of the link behind a port. Each rule counts for itself, lost frames too; of several that name a frame the
/// first holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The port.
    pub port: PortIndex,
    /// In this order.
    pub rules: Vec<Rule>,
}

impl Script {
    pub(crate) fn check(&self, config: &FabricConfig) -> Result<(), ConfigError> {
        let port = usize::from(self.port.0);
        let wrong = |problem| Err(ConfigError::Script { port, problem });
        if port >= config.ports.len() {
            return wrong("names a port that does not exist");
        }
        if config.scripts.iter().filter(|script| script.port == self.port).count() > 1 {
            return wrong("found a second one, expected one per port");
        }
        if self.rules.iter().any(|rule| rule.frames.contains(&0)) {
            return wrong("found frame 0, expected numbers from 1");
        }
        Ok(())
    }
}

/// The rules of a port, with what they have counted.
#[derive(Debug, Clone)]
struct Played {
    port: PortIndex,
    rules: Vec<(Rule, u32)>,
}

impl Played {
    fn act(&mut self, frame_bytes: u32) -> Option<Act> {
        let mut act = None;
        for (rule, count) in self.rules.iter_mut().filter(|(rule, _)| frame_bytes >= rule.at_least_bytes) {
            *count = count.saturating_add(1);
            if act.is_none() && rule.frames.contains(count) {
                act = Some(rule.act);
            }
        }
        act
    }
}

/// A frame that is held at the end of a link.
#[derive(Debug, Clone)]
struct Held {
    until: Picoseconds,
    number: u64,
    port: PortIndex,
    peer: Peer,
    frame: Frame,
    input_limit_bytes: u32,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        (self.until, self.number).cmp(&(other.until, other.number))
    }
}

/// All scripts of a fabric, and what they hold.
#[derive(Debug, Clone)]
pub(crate) struct Scripts {
    scripts: Vec<Played>,
    held: BinaryHeap<Reverse<Held>>,
    numbered: u64,
}

impl Scripts {
    /// None without a script: frames are then not looked at.
    pub(crate) fn new(config: &FabricConfig) -> Option<Box<Scripts>> {
        let played = |script: &Script| Played {
            port: script.port,
            rules: script.rules.iter().map(|rule| (rule.clone(), 0)).collect(),
        };
        let scripts: Vec<Played> = config.scripts.iter().map(played).collect();
        (!scripts.is_empty()).then(|| Box::new(Scripts { scripts, held: BinaryHeap::new(), numbered: 0 }))
    }
}

impl Fabric {
    /// Whether the script of the link behind a port keeps a frame that has come to its end from going on now.
    #[cold]
    pub(crate) fn stops(
        &mut self,
        now: Picoseconds,
        (port, peer): (PortIndex, Peer),
        frame: Frame,
        input_limit_bytes: u32,
        sink: &mut impl Sink,
    ) -> bool {
        let Some(scripts) = &mut self.scripts else { return false };
        let Some(played) = scripts.scripts.iter_mut().find(|played| played.port == port) else {
            return false;
        };
        let Some(act) = played.act(frame.frame_bytes) else { return false };
        let link = &mut self.ports[usize::from(port.0)];
        let (until, frame) = match act {
            Act::Lose => {
                let queue_bytes = link.buffered_bytes();
                let fate = link.lose(now, frame, Reason::Script, queue_bytes);
                self.tell(&fate, port, sink);
                return true;
            }
            Act::Mark if frame.ecn != Ecn::CAPABLE => return false,
            Act::Mark => {
                let frame = Frame { ecn: Ecn::MARKED, ..frame };
                let fate = link.mark_at_end(now, frame);
                self.tell(&fate, port, sink);
                (now, frame)
            }
            Act::Hold(span) => (now.saturating_add(span), frame),
        };
        let Some(scripts) = &mut self.scripts else { return false };
        let number = scripts.numbered;
        scripts.numbered += 1;
        let frame = Frame { input_port: port, ..frame };
        scripts.held.push(Reverse(Held { until, number, port, peer, frame, input_limit_bytes }));
        let source = (self.ports.len() + self.nics.len()) as u32;
        self.schedule(Some(until), source);
        true
    }

    /// The frame that is held until now. None if its link went down meanwhile.
    #[cold]
    pub(crate) fn release(&mut self, now: Picoseconds) -> Option<Happening> {
        let held = &mut self.scripts.as_mut()?.held;
        held.peek().filter(|Reverse(first)| first.until <= now)?;
        let Reverse(Held { peer, frame, input_limit_bytes, .. }) = held.pop()?;
        Some(Happening::Released { peer, frame, input_limit_bytes })
    }

    /// What is held is on the link still: it is lost with it.
    pub(crate) fn lose_held(&mut self, port: PortIndex, sink: &mut impl Sink) {
        let Some(scripts) = &mut self.scripts else { return };
        let held = std::mem::take(&mut scripts.held).into_sorted_vec();
        let (lost, others): (Vec<_>, Vec<_>) =
            held.into_iter().rev().partition(|Reverse(entry)| entry.port == port);
        scripts.held = others.into();
        for Reverse(Held { frame, .. }) in lost {
            let link = &mut self.ports[usize::from(port.0)];
            let queue_bytes = link.buffered_bytes();
            let fate = link.lose(self.clock, frame, Reason::LinkDown, queue_bytes);
            self.tell(&fate, port, sink);
        }
    }
}
