//! The search on all flows of a path: which packet goes next, when a silent one is given up, what flows learn.
//!
//! An example: the target is 9000, the path carries 1450 and drops what is larger without a word, nothing else is
//! lost. There are three flows, their path MTU is to be found exactly, and `c` is a control, the smallest probe. A
//! line is a step:
//!
//! ```text
//!    time   flows 1 and 2, the scouts               flow 3
//!    0 ms   9000 1500 c                             9000 1500 c
//!   20 ms   9000 c                                  9000 c
//!   40 ms   1500 c                                  1500 c
//!   60 ms   1280 1400 1420 1450 1454 1460 1492 c    waits for a scout
//!   80 ms   1454 c                                    |
//!  100 ms   1451 1452 1453 c                          |
//!  120 ms   1451 c                                    |
//!  140 ms   1450 1451, 1451 1450, 1451 1450 ...       |
//!  190 ms   black hole, path MTU 1450               1450 1451 c, then as the scouts at 120 ms
//! ```
//!
//! - **Steps.** A flow says what it wants next when each of its probes has been answered or given up
//!   ([`Flow::step`]). The common sizes come first, then the rest is split. A size that was silent once is asked
//!   again, since it may have been lost. At the edge, where 1450 passes and 1451 does not, both are sent in random order
//!   until only size explains what is lost ([`Rounds`](crate::rounds::Rounds)).
//! - **Doubt.** If it does not, because 1451 arrives or as much is lost of 1450, the losses have another reason. Then all
//!   that is silent is forgotten and asked again, ever more slowly ([`slowly`]).
//! - **Silence.** A probe is given up after three times the slowest answer, at least 20 ms ([`Patience`]). If a later
//!   probe of its flow is answered, it is given up half that answer's time later, again at least 20 ms: a flow's
//!   packets keep their order. An answer that comes later than that still counts.
//! - **Scouts.** The first two flows on which a size fails go on searching. The others wait, and then try what those
//!   found.
//! - **Refusals.** Had a router said 1450, the next step would have been 1450 and 1451. What was refused may yet arrive.
//! - **Pace.** Only so many bytes may be under way, and fewer where controls are lost ([`Pace`]). A silent probe
//!   counts only for as long as packets take to cross the network, though its answer is still waited for.

use crate::SMALLEST_PROBE_BYTES;
use crate::config::Config;
use crate::flow::Flow;
use crate::pace::Pace;
use crate::round_trip::Patience;
use crate::steps::{self, Planned, Siblings, Step};
use slowly::Slow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

mod known;
mod refusals;
mod slowly;

/// Flows that search for themselves where the target fails; the others first try what these have found.
const SCOUTS: usize = 2;
const REMEMBERED: usize = 4096; // probes for which a late answer is still believed

/// What the search wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send a packet of so many bytes on a flow, now; the number comes back in what is told of it.
    #[allow(missing_docs, reason = "they say it")]
    Send { flow: u16, number: u32, bytes: u32 },
    /// Nothing until then, unless something arrives.
    Wait(Duration),
    /// Every flow has its verdict.
    Done,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    flow: u16,
    bytes: u32,
    at: Duration,
    /// The round at an edge that it is of; and whether it has left the network, arrived or not.
    round: Option<u32>,
    gone: bool,
}

/// A packet that a flow wants: by time, then in the order of planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Plan {
    due: Duration,
    order: u64,
    flow: u16,
    bytes: u32,
    round: Option<u32>,
}

/// The search for the path MTU of all flows from here to one other host.
#[derive(Debug, Clone)]
pub struct Search {
    config: Config,
    control: u32,
    flows: Vec<Flow>,
    /// Flows that want to be asked for their next step.
    idle: VecDeque<u16>,
    /// Flows that wait for a scout.
    awaiting: Vec<u16>,
    scouts: Vec<u16>,
    /// The flow that asks, or has asked, alone because nothing was answered.
    alone: Option<u16>,
    planned: BinaryHeap<Reverse<Plan>>,
    plans: u64,
    outstanding: HashMap<u32, Sent>,
    /// Numbers of probes in the order of sending, for giving up.
    order: VecDeque<u32>,
    /// Numbers of probes that later ones of their flow have overtaken, and when to give up on them.
    overtaken: BinaryHeap<Reverse<(Duration, u32)>>,
    /// Those that may still be in the network.
    crossing: VecDeque<u32>,
    given_up: HashMap<u32, Sent>,
    given_up_order: VecDeque<u32>,
    pace: Pace,
    slow: Slow,
    /// Until then what was refused may still arrive.
    disproof_until: Duration,
    next_number: u32,
    patience: Patience,
    sent_packets: u64,
    sent_bytes: u64,
    begun: Option<Duration>,
}

impl Search {
    /// A search that has sent nothing.
    pub fn new(config: Config) -> Search {
        let control = SMALLEST_PROBE_BYTES.min(config.target);
        Search {
            config,
            control,
            flows: (0..config.flows).map(|index| Flow::new(&config, control, index)).collect(),
            idle: (0..config.flows).collect(),
            awaiting: Vec::new(),
            scouts: Vec::new(),
            alone: None,
            planned: BinaryHeap::new(),
            plans: 0,
            outstanding: HashMap::new(),
            order: VecDeque::new(),
            overtaken: BinaryHeap::new(),
            crossing: VecDeque::new(),
            given_up: HashMap::new(),
            given_up_order: VecDeque::new(),
            pace: Pace::new(&config),
            slow: Slow::new(config.seed),
            disproof_until: Duration::ZERO,
            next_number: 0,
            patience: Patience::default(),
            sent_packets: 0,
            sent_bytes: 0,
            begun: None,
        }
    }

    /// What to do at `now`. After [`Next::Send`] ask again at once. Where the caller must not send it asks all the same, with
    /// `may_send` false: what has been silent for too long is given up then.
    pub fn poll(&mut self, now: Duration, may_send: bool) -> Next {
        let end = *self.begun.get_or_insert(now) + self.config.patience;
        if now >= end {
            return Next::Done;
        }
        self.give_up(now);
        self.let_go(now);
        self.ask_flows(now);
        if let Some(&Reverse(plan)) = self.planned.peek()
            && plan.due.max(self.pace.not_before()) <= now
            && may_send
            && self.pace.has_room(plan.bytes)
        {
            self.planned.pop();
            return self.send(now, plan);
        }
        let due = self.planned.peek().map(|Reverse(plan)| plan.due).filter(|due| *due > now);
        let after = |numbers: &VecDeque<u32>, time: Duration| {
            numbers.front().and_then(|number| self.outstanding.get(number)).map(|sent| sent.at + time)
        };
        let expires = after(&self.order, self.patience.limit());
        let overtaken = self.overtaken.peek().map(|Reverse((until, _))| *until);
        // Only what is held back waits for room.
        let held_back = self.planned.peek().is_some_and(|Reverse(plan)| plan.due <= now);
        let room = after(&self.crossing, self.patience.crossing()).filter(|_| held_back);
        let gap = Some(self.pace.not_before()).filter(|time| held_back && *time > now);
        match due.into_iter().chain(expires).chain(overtaken).chain(room).chain(gap).min() {
            Some(until) => Next::Wait(until.min(end)),
            None if held_back => Next::Wait(now),
            None if now < self.disproof_until => Next::Wait(self.disproof_until.min(end)),
            None => Next::Done,
        }
    }

    fn send(&mut self, now: Duration, plan: Plan) -> Next {
        let Plan { flow, bytes, round, .. } = plan;
        let number = self.next_number;
        self.next_number += 1;
        self.outstanding.insert(number, Sent { flow, bytes, at: now, round, gone: false });
        self.order.push_back(number);
        self.crossing.push_back(number);
        self.flows[usize::from(flow)].under_way.push_back(number);
        self.pace.on_send(now, number, bytes);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        if bytes == self.control {
            self.flows[usize::from(flow)].controls_sent += 1;
        }
        Next::Send { flow, number, bytes }
    }

    /// Bytes that may still be in the network.
    pub fn in_flight_bytes(&self) -> u64 {
        self.pace.in_flight_bytes()
    }

    /// Flows without anything outstanding say what they want next, and those that wait for a sweep have it when all else is
    /// quiet.
    fn ask_flows(&mut self, now: Duration) {
        self.ask_idle(now);
        if self.sweep(now) {
            self.ask_idle(now);
        }
    }

    fn ask_idle(&mut self, now: Duration) {
        let answered = self.patience.is_learnt();
        let lossy = self.flows.iter().any(|flow| flow.controls_lost > 0);
        while let Some(index) = self.idle.pop_front() {
            if self.waits_for_sweep(index) {
                continue;
            }
            if self.alone == Some(index)
                && self.flows[usize::from(index)].delivered() > 0
                && self.slow.is_before()
            {
                // Whatever was lost of all flows together was lost because it came fast.
                self.doubt(index);
                continue;
            }
            let chances = self.chances();
            let asked_alone = self.alone.is_some_and(|alone| alone == index || self.is_finished(alone));
            let asked_slowly = self.slow.is_over();
            let controls = self.controls();
            let hints = self.hints();
            let searching =
                self.scouts.iter().any(|scout| self.flows[usize::from(*scout)].verdict().is_none());
            let flow = &mut self.flows[usize::from(index)];
            let scout = self.scouts.contains(&index);
            if !scout && flow.fails() && self.scouts.len() < SCOUTS {
                self.scouts.push(index);
            }
            let searching = searching && !self.scouts.contains(&index);
            let siblings =
                Siblings { hints, searching, answered, asked_alone, lossy, controls, asked_slowly, chances };
            match flow.step(&siblings) {
                Step::Send(packets) => self.plan(now, index, &packets),
                Step::Doubt => self.doubt(index),
                Step::Alone if self.alone.is_none() => {
                    self.alone = Some(index);
                    let packets = steps::alone(self.control, self.slow.random());
                    self.plan(now, index, &packets);
                }
                Step::Alone | Step::Await => self.awaiting.push(index),
                // A scout that has found something: those who wait may learn from it.
                Step::Done => self.idle.extend(self.awaiting.drain(..)),
            }
        }
    }

    fn is_finished(&self, flow: u16) -> bool {
        self.flows[usize::from(flow)].verdict().is_some()
    }

    fn plan(&mut self, now: Duration, flow: u16, packets: &[Planned]) {
        self.flows[usize::from(flow)].outstanding = packets.len() as u32;
        for &Planned { after, bytes, round } in packets {
            self.planned.push(Reverse(Plan { due: now + after, order: self.plans, flow, bytes, round }));
            self.plans += 1;
        }
    }

    /// What was not answered in time counts as silence, and what later probes of its flow have overtaken.
    fn give_up(&mut self, now: Duration) {
        while let Some(&Reverse((until, number))) = self.overtaken.peek()
            && (until <= now || !self.outstanding.contains_key(&number))
        {
            self.overtaken.pop();
            self.silent(number, now);
        }
        let limit = self.patience.limit();
        while let Some(&number) = self.order.front() {
            if self.outstanding.get(&number).is_some_and(|sent| sent.at + limit > now) {
                return;
            }
            self.order.pop_front();
            self.silent(number, now);
        }
    }

    /// Nobody waits for an answer to this probe any more, if anybody still did.
    fn silent(&mut self, number: u32, now: Duration) {
        let Some(sent) = self.resolve(number) else { return };
        let flow = &mut self.flows[usize::from(sent.flow)];
        flow.on_silent(sent.bytes, sent.round);
        if flow.passes(sent.bytes) {
            self.pace.on_loss(now, self.patience.limit());
        }
        self.remember(number, sent);
    }

    /// Packets of a flow take one way, one behind the other: what was sent before this answered probe and comes much later
    /// than its answer is lost, as TCP concludes (RACK, RFC 8985), however long answers have taken at other times.
    fn overtake(&mut self, now: Duration, flow: u16, number: u32, rtt: Duration) {
        let under_way = &mut self.flows[usize::from(flow)].under_way;
        while under_way.front().is_some_and(|earlier| *earlier <= number) {
            let Some(earlier) = under_way.pop_front() else { return };
            if earlier < number && self.outstanding.contains_key(&earlier) {
                self.overtaken.push(Reverse((now + Patience::reordering(rtt), earlier)));
            }
        }
    }

    /// What is silent does not fill the network until it is given up.
    fn let_go(&mut self, now: Duration) {
        let crossing = self.patience.crossing();
        while let Some(number) = self.crossing.front() {
            match self.outstanding.get_mut(number) {
                Some(sent) if sent.at + crossing > now => return,
                Some(sent) => {
                    sent.gone = true;
                    self.pace.on_gone(sent.bytes);
                }
                None => {}
            }
            self.crossing.pop_front();
        }
    }

    fn remember(&mut self, number: u32, sent: Sent) {
        self.given_up.insert(number, sent);
        self.given_up_order.push_back(number);
        if self.given_up_order.len() > REMEMBERED
            && let Some(oldest) = self.given_up_order.pop_front()
        {
            self.given_up.remove(&oldest);
        }
    }

    /// A probe is answered or given up.
    fn resolve(&mut self, number: u32) -> Option<Sent> {
        let sent = self.outstanding.remove(&number)?;
        if !sent.gone {
            self.pace.on_gone(sent.bytes);
        }
        let flow = &mut self.flows[usize::from(sent.flow)];
        flow.outstanding -= 1;
        if flow.outstanding == 0 {
            self.idle.push_back(sent.flow);
        }
        Some(sent)
    }

    /// On some other path from here an answer took this long. Before anything is answered on this one, that is what is
    /// known of how long it may take.
    pub fn on_answer_elsewhere(&mut self, rtt: Duration) {
        self.patience.elsewhere(rtt);
    }

    /// The far end says that a probe arrived, as a packet of `received_bytes`, in fragments of up to `fragment_bytes` if it
    /// did not come whole; how long that took. Answers to nothing, a second time or on another flow are ignored.
    pub fn on_delivered(
        &mut self,
        now: Duration,
        flow: u16,
        number: u32,
        received_bytes: u32,
        fragment_bytes: Option<u32>,
    ) -> Option<Duration> {
        let known = self.outstanding.get(&number).or_else(|| self.given_up.get(&number));
        let sent = *known.filter(|sent| sent.flow == flow && sent.bytes == received_bytes)?;
        let late = self.resolve(number).is_none();
        if late {
            self.given_up.remove(&number);
        } else {
            self.pace.on_answer();
        }
        let rtt = now.saturating_sub(sent.at);
        self.patience.answered(rtt);
        self.overtake(now, flow, number, rtt);
        let flow = &mut self.flows[usize::from(sent.flow)];
        if let Some(fragment) = fragment_bytes {
            flow.on_fragments(sent.bytes, fragment);
        } else if late {
            let finished = flow.verdict().is_some();
            flow.on_late(sent.bytes, sent.round);
            if finished && flow.verdict().is_none() && flow.outstanding == 0 {
                self.idle.push_back(sent.flow);
            }
        } else {
            flow.on_delivered(sent.bytes, sent.round);
        }
        Some(rtt)
    }
}
