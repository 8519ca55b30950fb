//! The simulation: one clock for the network, the endpoints and the applications.
//!
//! ```text
//!                 ┌──────────── events: wake-ups of endpoints, applications, samples ──────────┐
//!                 ▼                                                                            │
//!   fabric ──▶ next delivery or next event, whichever is first ──▶ endpoint ──▶ application ───┘
//!     ▲                                                               │
//!     └───────────────────────── segments ────────────────────────────┘
//! ```
//!
//! An endpoint has at most one wake-up in the event set that counts. Where its deadline moves later, which an RTO does
//! with every acknowledgement, the old one stays and finds nothing to do. Everything happens in the order of (time, number
//! of the event), so equal input gives equal output.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use framegauge_fabric::{Fabric, HostIndex};
use framegauge_frames::{Picoseconds, SplitMix, mixed};

use crate::applications::Arrived;
use crate::connection::Connection;
use crate::net::{Inbox, Net};
use crate::outcome::{FlowCounts, Outcome, Sample};
use crate::path_mtus::PathMtus;
use crate::requests::Asking;
use crate::segment::Segment;
use crate::series::Series;
use crate::work::Transfer;
use crate::{Point, Scenario, SimulationError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A flow opens a connection for a round.
    Open {
        flow: u32,
        round: u32,
    },
    /// A message is due.
    Step {
        connection: u32,
    },
    /// More of it is written.
    Write {
        connection: u32,
    },
    /// The reader of a message has paused long enough.
    Read {
        connection: u32,
        side: u8,
    },
    /// An endpoint may have something to do.
    Wake {
        endpoint: u32,
    },
    /// A host has got around to a segment.
    Arrival {
        segment: u32,
        /// It was not merged with one that follows.
        settles: bool,
    },
    /// A core of a host begins with what waits, or is done with it.
    Poll {
        host: HostIndex,
        core: u16,
    },
    /// A client's requests are due.
    Requests {
        client: u32,
    },
    /// A host has known the MTU of a path for long enough.
    ForgetPath {
        host: HostIndex,
        peer: HostIndex,
        mtu: u32,
    },
    /// The network, or a host's MTU, becomes another.
    Change {
        number: u32,
    },
    Sample,
    SamplePorts,
}

/// A simulation under way.
#[derive(Debug, Clone)]
pub struct Simulation {
    pub(crate) scenario: Scenario,
    pub(crate) net: Net,
    pub(crate) inbox: Inbox,
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    pub(crate) events: BinaryHeap<Reverse<(Picoseconds, u64, Event)>>,
    pub(crate) numbered: u64,
    pub(crate) draws: SplitMix,
    /// By host: when it has handled what came last.
    pub(crate) handled: Vec<Picoseconds>,
    /// By flow: how many others it still waits for; and who waits for it.
    pub(crate) awaited: Vec<u32>,
    pub(crate) waiting: Vec<Vec<u32>>,
    /// By flow that another one goes on after: the connection, once it has ended.
    pub(crate) kept: BTreeMap<u32, Option<u32>>,
    /// By barrier: its members, and what has come to it.
    pub(crate) members: Vec<u32>,
    pub(crate) arrived: Vec<Vec<Arrived>>,
    /// By client with requests at a rate.
    pub(crate) asking: Vec<Asking>,
    pub(crate) unfinished: usize,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) counts: Vec<FlowCounts>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) series: Series,
    pub(crate) path_mtus: PathMtus,
}

impl Simulation {
    /// Nothing has happened yet.
    pub fn new(scenario: Scenario) -> Result<Simulation, SimulationError> {
        scenario.check()?;
        let mut fabric = Fabric::new(&scenario.network)?;
        scenario.watch.iter().flat_map(Point::ports).for_each(|port| fabric.watch(port, true));
        let flows = scenario.flows.len();
        let mut waiting = vec![Vec::new(); flows];
        for (number, flow) in scenario.flows.iter().enumerate() {
            flow.awaited().for_each(|before| waiting[before as usize].push(number as u32));
        }
        let barriers =
            scenario.flows.iter().filter_map(|flow| flow.barrier).max().map_or(0, |most| most as usize + 1);
        let mut members = vec![0; barriers];
        scenario
            .flows
            .iter()
            .filter_map(|flow| flow.barrier)
            .for_each(|barrier| members[barrier as usize] += 1);
        let mut simulation = Simulation {
            net: Net::new(fabric, &scenario),
            inbox: Inbox::default(),
            connections: Vec::new(),
            events: BinaryHeap::new(),
            numbered: 0,
            draws: SplitMix::new(mixed(scenario.seed)),
            handled: vec![Picoseconds::ZERO; scenario.network.hosts.len()],
            awaited: scenario.flows.iter().map(|flow| flow.awaited().count() as u32).collect(),
            waiting,
            kept: scenario.flows.iter().filter_map(|flow| flow.over).map(|before| (before, None)).collect(),
            members,
            arrived: vec![Vec::new(); barriers],
            asking: Asking::of(&scenario.flows, scenario.requests.len()),
            unfinished: flows,
            transfers: Vec::new(),
            counts: vec![FlowCounts::default(); flows],
            samples: Vec::new(),
            series: Series::new(scenario.port_interval, scenario.sample_interval),
            path_mtus: PathMtus::default(),
            scenario,
        };
        for flow in 0..flows as u32 {
            if simulation.awaited[flow as usize] == 0 {
                let begin = simulation.scenario.flows[flow as usize].begin;
                simulation.schedule(begin, Event::Open { flow, round: 0 });
            }
        }
        simulation.schedule_changes();
        simulation.begin_sampling();
        Ok(simulation)
    }

    fn begin_sampling(&mut self) {
        let intervals = [self.scenario.sample_interval, self.series.interval];
        for (interval, event) in intervals.into_iter().zip([Event::Sample, Event::SamplePorts]) {
            if interval > Picoseconds::ZERO {
                self.schedule(Picoseconds::ZERO, event);
            }
        }
    }

    pub(crate) fn schedule(&mut self, time: Picoseconds, event: Event) {
        self.events.push(Reverse((time, self.numbered, event)));
        self.numbered += 1;
    }

    /// Lets everything happen up to a time, or until all work is done. Whether there is more to do.
    pub fn advance(&mut self, until: Picoseconds) -> bool {
        let until = until.min(self.scenario.end);
        loop {
            if self.is_over() {
                return false;
            }
            let next = self.events.peek().map_or(until, |Reverse((time, ..))| until.min(*time));
            let (fabric, mut sink) = self.net.parts(&mut self.inbox);
            let now = fabric.advance_to_delivery(next, &mut sink);
            if !self.inbox.arrived.is_empty() {
                self.receive(now);
                continue;
            }
            match self.events.peek() {
                Some(Reverse((time, ..))) if *time <= until => {
                    if let Some(Reverse((time, _, event))) = self.events.pop() {
                        self.handle(time.max(now), time, event);
                    }
                }
                _ => return until < self.scenario.end,
            }
        }
    }

    /// All work is done; where segments are written down, connections are closed, too.
    fn is_over(&self) -> bool {
        self.unfinished == 0 && (self.net.log.is_none() || self.connections.iter().all(Option::is_none))
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> Picoseconds {
        self.net.fabric.now()
    }

    /// Bytes that all connections together have carried so far, for progress.
    pub fn segments(&self) -> u64 {
        self.net.segments
    }

    fn handle(&mut self, now: Picoseconds, due: Picoseconds, event: Event) {
        match event {
            Event::Open { flow, round } => self.open(now, flow, round),
            Event::Step { connection } => self.begin_step(now, connection),
            Event::Write { connection } => self.write_more(now, connection),
            Event::Read { connection, side } => self.read_again(now, connection, usize::from(side)),
            Event::Wake { endpoint } => self.wake(now, due, endpoint),
            Event::Arrival { segment, settles } => self.take(now, segment, settles),
            Event::Poll { host, core } => self.poll(now, host, core),
            Event::Requests { client } => self.wake_requests(now, client),
            Event::ForgetPath { host, peer, mtu } => self.forget_path(host, peer, mtu),
            Event::Change { number } => self.change(now, number),
            Event::Sample => self.sample(now),
            Event::SamplePorts => {
                let next = self.series.take(now, &mut self.net.fabric);
                if next <= self.scenario.end {
                    self.schedule(next, Event::SamplePorts);
                }
            }
        }
    }

    /// What the NICs have handed over at one time. What belongs together is answered together where NICs merge.
    fn receive(&mut self, now: Picoseconds) {
        let mut arrived = std::mem::take(&mut self.inbox.arrived);
        if self.net.is_routed(self.inbox.end) {
            arrived.drain(..).for_each(|id| self.net.send_on(now, self.inbox.end, id));
            self.inbox.arrived = arrived;
            return;
        }
        if self.net.cores.is_some() && self.net.core_of(self.net.slab.get(arrived[0]).to).is_some() {
            arrived.drain(..).for_each(|id| self.wait_for_core(now, id));
            self.inbox.arrived = arrived;
            return;
        }
        let handled = self.jittered(now, arrived[0]);
        for (place, id) in arrived.iter().enumerate() {
            let to = self.net.slab.get(*id).to;
            let joins = |next: &Segment| next.to == to && next.reported_mtu().is_none();
            let goes_on = self.scenario.tcp.coalesces
                && arrived.get(place + 1).is_some_and(|next| joins(self.net.slab.get(*next)));
            match handled {
                None => self.take(now, *id, !goes_on),
                Some(time) => self.schedule(time, Event::Arrival { segment: *id, settles: !goes_on }),
            }
        }
        arrived.clear();
        self.inbox.arrived = arrived;
    }

    /// When the host of a segment gets around to what came with it, if that is later; nothing overtakes there.
    pub(crate) fn jittered(&mut self, now: Picoseconds, id: u32) -> Option<Picoseconds> {
        let most = self.scenario.jitter.get();
        if most == 0 {
            return None;
        }
        let to = self.net.slab.get(id).to;
        let host = usize::from(self.net.places[to as usize].host.0);
        let draw = Picoseconds::new((self.draws.even() * most as f64) as u64);
        self.handled[host] = self.handled[host].max(now + draw);
        Some(self.handled[host])
    }

    pub(crate) fn take(&mut self, now: Picoseconds, id: u32, settles: bool) {
        let segment = self.net.slab.remove(id);
        self.net.delivered += 1;
        if let Some(mtu) = segment.reported_mtu() {
            return self.take_report(now, &segment, mtu);
        }
        let (number, side) = (segment.to / 2, segment.to as usize % 2);
        let Some(connection) = &mut self.connections[number as usize] else { return };
        let (tcp, net) = (&self.scenario.tcp, &mut self.net);
        let end = &mut connection.ends[side];
        end.take(now, &segment, tcp, net);
        if settles {
            end.settle(now, tcp, net);
            self.progress(now, number, side);
        }
    }

    fn wake(&mut self, now: Picoseconds, due: Picoseconds, endpoint: u32) {
        let (number, side) = (endpoint / 2, endpoint as usize % 2);
        let Some(connection) = &mut self.connections[number as usize] else { return };
        if connection.woken[side] != due {
            return;
        }
        connection.woken[side] = Picoseconds::MAX;
        let end = &mut connection.ends[side];
        if end.deadline().is_some_and(|deadline| deadline <= now) {
            end.wake(now, &self.scenario.tcp, &mut self.net);
        }
        self.progress(now, number, side);
    }

    fn sample(&mut self, now: Picoseconds) {
        for connection in self.connections.iter().flatten().filter(|connection| connection.is_working()) {
            let step = &self.scenario.flows[connection.flow as usize].steps[connection.step as usize];
            let send = &connection.ends[connection.sending_side(step)].send;
            self.samples.push(Sample {
                time: now,
                flow: connection.flow,
                read_bytes: [1, 0].map(|side: usize| connection.ends[side].receive.read - 1),
                cwnd_segments: send.window.cwnd,
                in_flight_segments: send.queue.in_flight(),
                smoothed_rtt: send.rtt.smoothed().unwrap_or(Picoseconds::ZERO),
            });
        }
        let next = now + self.scenario.sample_interval;
        if next <= self.scenario.end {
            self.schedule(next, Event::Sample);
        }
    }

    /// Runs to the end.
    pub fn run(mut self) -> Outcome {
        self.advance(Picoseconds::MAX);
        self.finished()
    }

    /// What came of it, whatever is still under way.
    pub fn finished(mut self) -> Outcome {
        let end = self.now();
        let (fabric, mut sink) = self.net.parts(&mut self.inbox);
        fabric.advance(end, &mut sink);
        if self.series.interval > Picoseconds::ZERO {
            self.series.take(end, &mut self.net.fabric);
        }
        for number in 0..self.connections.len() as u32 {
            let Some(connection) = self.connections[number as usize].take() else { continue };
            let flow = &self.scenario.flows[connection.flow as usize];
            if connection.is_working() && connection.is_open(&flow.steps[connection.step as usize]) {
                self.transfers.push(connection.transfer(flow, end));
            }
            self.count(&connection);
        }
        Outcome {
            transfers: self.transfers,
            flows: self.counts,
            requests: self.asking.iter().map(Asking::counts).collect(),
            samples: self.samples,
            log: self.net.log.take().map_or_else(Vec::new, |log| log.segments),
            counters: {
                let mut counters = self.net.fabric.counters();
                self.series.restore_peaks(&mut counters.ports);
                counters
            },
            port_samples: self.series.samples,
            drops: self.net.fabric.take_drops(),
            passed: {
                let mut passed = std::mem::take(&mut self.net.capture.passed);
                passed.sort_by_key(|passed| passed.segment.time);
                passed
            },
            passed_left_out: self.net.capture.left_out,
            cpus: self.net.cores.as_ref().map_or_else(Vec::new, |cores| cores.counts()),
            events: self.numbered - self.events.len() as u64,
            segments: self.net.segments,
            delivered: self.net.delivered,
            under_way: self.net.slab.len() as u64,
            end,
        }
    }
}
