//! Requests that are due at a stated rate: the decisions of the generator on real hosts ([`framegauge_traffic::Rr`]).

use framegauge_frames::Picoseconds;
use framegauge_traffic::{Arrivals, Load, Rr, RrSpec, RrSummary};

use crate::connection::Stage;
use crate::simulation::Event;
use crate::work::{Flow, Repeat};
use crate::{Simulation, SimulationError};

/// When the requests of one client are due, over all its connections together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requests {
    /// On average.
    pub rate_per_second: f64,
    /// Their spacing.
    pub arrivals: Arrivals,
    /// They become due for so long, from when all connections are open.
    pub duration: Picoseconds,
}

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// When all connections were open; none: they never were.
    pub started: Option<Picoseconds>,
    /// Requests that no connection was idle for when they became due.
    pub late: u64,
    /// Requests that became due and were not answered.
    pub unfinished: u64,
}

/// One client's requests under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asking {
    /// Its flows, in their order, and the connection of each once that is open.
    flows: Vec<(u32, Option<u32>)>,
    /// Once all connections are open.
    rr: Option<Box<Rr>>,
    /// When it is woken next, if it is.
    woken: Option<Picoseconds>,
    counts: RequestCounts,
}

impl Asking {
    /// Of every client.
    pub(crate) fn of(flows: &[Flow], clients: usize) -> Vec<Asking> {
        let mut all = vec![Asking::default(); clients];
        for (number, flow) in flows.iter().enumerate() {
            if let Repeat::Requests(client) = flow.repeat {
                all[client as usize].flows.push((number as u32, None));
            }
        }
        all
    }

    fn place(&self, flow: u32) -> Option<usize> {
        self.flows.binary_search_by_key(&flow, |(number, _)| *number).ok()
    }

    /// What became of the requests; those under way are not answered.
    pub(crate) fn counts(&self) -> RequestCounts {
        match &self.rr {
            None => self.counts,
            Some(rr) => {
                let RrSummary { late, unfinished, .. } = Rr::clone(rr).finish();
                RequestCounts { late, unfinished, ..self.counts }
            }
        }
    }
}

impl Requests {
    pub(crate) fn check(&self, number: usize) -> Result<(), SimulationError> {
        match self.rate_per_second.is_finite() && self.rate_per_second > 0.0 {
            true => Ok(()),
            false => Err(SimulationError::Rate { number }),
        }
    }
}

fn time_of(nanoseconds: u64) -> Picoseconds {
    Picoseconds::from_nanoseconds(nanoseconds)
}

impl Simulation {
    /// A connection for requests is open. Once all of its client are, requests become due.
    pub(crate) fn begin_requests(&mut self, now: Picoseconds, client: u32, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.stage = Stage::Waiting;
        let asking = &mut self.asking[client as usize];
        if let Some(place) = asking.place(connection.flow) {
            asking.flows[place].1 = Some(number);
        }
        if asking.flows.iter().all(|(_, connection)| connection.is_some()) {
            let Requests { rate_per_second, arrivals, duration } = self.scenario.requests[client as usize];
            let spec = RrSpec {
                connections: asking.flows.len() as u32,
                load: Load::Open { rate_per_second, arrivals },
                duration_nanoseconds: duration.as_nanoseconds(),
            };
            asking.counts.started = Some(now);
            asking.rr = Some(Box::new(Rr::new(spec, now.as_nanoseconds())));
            self.ask(now, client);
        }
    }

    /// The response on a connection has come.
    pub(crate) fn end_request(&mut self, now: Picoseconds, client: u32, number: u32) {
        let Some(connection) = &mut self.connections[number as usize] else { return };
        connection.begin_round();
        let asking = &mut self.asking[client as usize];
        if let (Some(place), Some(rr)) = (asking.place(connection.flow), &mut asking.rr) {
            rr.answered(place as u32, now.as_nanoseconds());
        }
        self.ask(now, client);
    }

    pub(crate) fn wake_requests(&mut self, now: Picoseconds, client: u32) {
        let asking = &mut self.asking[client as usize];
        if asking.woken.is_some_and(|time| time <= now) {
            asking.woken = None;
            self.ask(now, client);
        }
    }

    /// Sends the requests that are due, as far as connections are idle.
    fn ask(&mut self, now: Picoseconds, client: u32) {
        while let Some((number, due)) = self.next_request(now, client) {
            if let Some(connection) = &mut self.connections[number as usize] {
                connection.due(due);
                self.begin_step(now, number);
            }
        }
        let asking = &mut self.asking[client as usize];
        let Some(rr) = &asking.rr else { return };
        if rr.ended(now.as_nanoseconds()) {
            return self.end_requests(now, client);
        }
        let deadline = time_of(rr.deadline()).max(now);
        if asking.woken.is_none_or(|time| deadline < time) {
            asking.woken = Some(deadline);
            self.schedule(deadline, Event::Requests { client });
        }
    }

    fn next_request(&mut self, now: Picoseconds, client: u32) -> Option<(u32, Picoseconds)> {
        let asking = &mut self.asking[client as usize];
        let rr = asking.rr.as_mut()?;
        let place = rr.next_request(now.as_nanoseconds())?;
        let due = time_of(rr.started() + rr.due(place)?);
        Some((asking.flows[place as usize].1?, due))
    }

    /// Nothing becomes due any more, and what was is answered or was waited for long enough.
    fn end_requests(&mut self, now: Picoseconds, client: u32) {
        let asking = &mut self.asking[client as usize];
        asking.counts = asking.counts();
        asking.rr = None;
        for (flow, number) in std::mem::take(&mut asking.flows) {
            number.into_iter().for_each(|number| self.close(now, number));
            self.finish(now, flow);
        }
    }
}
