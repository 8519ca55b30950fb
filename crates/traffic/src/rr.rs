//! Request and response, closed or open loop: which connection sends when, and what each request took.
//!
//! Open loop: a request becomes due by the schedule whether or not an earlier one is answered. It takes the
//! connection that was idle longest, or waits for one, and its latency counts from when it was due. A client
//! that counted from when it could send would leave out just the requests that a stall held up (coordinated
//! omission). Closed loop: each connection sends its next request when it has its response; due is sent.

use crate::arrivals::{Arrivals, Schedule};
use std::collections::VecDeque;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// When the response to the last one is there.
    Closed,
    /// By a schedule, all connections together.
    Open {
        /// Requests a second on average, above 0.
        rate_per_second: f64,
        /// Their spacing.
        arrivals: Arrivals,
    },
}

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct RrSpec {
    /// Connections, all open before the first request.
    pub connections: u32,
    /// Closed or open loop.
    pub load: Load,
    /// Requests become due for that long.
    pub duration_nanoseconds: u64,
}

/// One answered request. Times are nanoseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// The connection that carried it.
    pub connection: u32,
    /// When it became due; in a closed loop when it was sent.
    pub due: u64,
    /// Just before its first byte was written.
    pub sent: u64,
    /// Just after the last byte of its response was read.
    pub end: u64,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RrSummary {
    /// Answered requests, in the order of their ends.
    pub transactions: Vec<Transaction>,
    /// Requests that no connection was idle for when they became due.
    pub late: u64,
    /// Requests that became due and were not answered.
    pub unfinished: u64,
    /// The duration, or until the last response where that came later.
    pub active_nanoseconds: u64,
}

#[derive(Debug, Clone, Copy)]
struct Outstanding {
    due: u64,
    sent: u64,
}

/// The client's side of request and response, as decisions.
#[derive(Debug, Clone)]
pub struct Rr {
    duration: u64,
    started: u64,
    schedule: Option<Schedule>,
    /// Idle connections and since when, the longest idle first.
    idle: VecDeque<(u32, u64)>,
    outstanding: Vec<Option<Outstanding>>,
    in_flight: usize,
    late: u64,
    transactions: Vec<Transaction>,
}

impl Rr {
    /// Requests that one run may make: what it keeps of them in memory stays below a gigabyte.
    pub const MOST_REQUESTS: usize = 20_000_000;
    /// How long responses are waited for when nothing becomes due any more: three retransmission timeouts
    /// of 0.2, 0.4 and 0.8 s fit in.
    pub const GRACE_NANOSECONDS: u64 = 2_000_000_000;

    /// A run that starts at `now`, when all connections are open. Room for the expected number of requests is
    /// reserved here, so that no transaction waits for memory.
    pub fn new(spec: RrSpec, now: u64) -> Self {
        let seconds = spec.duration_nanoseconds as f64 * 1e-9;
        // A closed loop cannot be known; a pair of hosts on one machine does not reach 100 000 a second.
        let rate = if let Load::Open { rate_per_second, .. } = spec.load { rate_per_second } else { 1e5 };
        let room = (rate * seconds * 1.1 + 1000.0).min(4e6) as usize;
        Self {
            duration: spec.duration_nanoseconds,
            started: now,
            schedule: match spec.load {
                Load::Closed => None,
                Load::Open { rate_per_second, arrivals } => Some(Schedule::new(rate_per_second, arrivals)),
            },
            idle: (0..spec.connections).map(|connection| (connection, 0)).collect(),
            outstanding: vec![None; spec.connections as usize],
            in_flight: 0,
            late: 0,
            transactions: Vec::with_capacity(room),
        }
    }

    /// The connection that is to send a request at `now`, if any; `now` is taken as when it is sent.
    pub fn next_request(&mut self, now: u64) -> Option<u32> {
        let sent = now - self.started;
        let (_, idle_since) = *self.idle.front()?;
        let due = match &mut self.schedule {
            None if sent < self.duration => sent,
            None => return None,
            Some(schedule) => {
                let due = schedule.due();
                if due > sent || due >= self.duration {
                    return None;
                }
                schedule.advance();
                due
            }
        };
        self.late += u64::from(self.schedule.is_some() && idle_since > due);
        let (connection, _) = self.idle.pop_front()?;
        self.outstanding[connection as usize] = Some(Outstanding { due, sent });
        self.in_flight += 1;
        Some(connection)
    }

    /// The response on `connection` is complete. Nothing happens if it had no request.
    pub fn answered(&mut self, connection: u32, now: u64) {
        let Some(Outstanding { due, sent }) = self.outstanding[connection as usize].take() else { return };
        let end = now - self.started;
        self.in_flight -= 1;
        self.idle.push_back((connection, end));
        self.transactions.push(Transaction { connection, due, sent, end });
    }

    /// When the request that is under way on `connection` became due, since the start.
    pub fn due(&self, connection: u32) -> Option<u64> {
        self.outstanding[connection as usize].map(|request| request.due)
    }

    /// When `next_request` or `ended` has to be asked again though nothing happened.
    pub fn deadline(&self) -> u64 {
        if let (Some(schedule), Some(_)) = (&self.schedule, self.idle.front())
            && schedule.due() < self.duration
        {
            return self.started + schedule.due();
        }
        if self.in_flight == 0 {
            return self.started + self.duration;
        }
        self.started + self.duration + Self::GRACE_NANOSECONDS
    }

    /// Whether the run is over: its time has passed and every due request is answered, or waited for long enough.
    pub fn ended(&self, now: u64) -> bool {
        let time = now - self.started;
        let waiting = self.schedule.as_ref().is_some_and(|schedule| schedule.due() < self.duration);
        let open = self.in_flight > 0 || waiting;
        time >= self.duration && (!open || time >= self.duration + Self::GRACE_NANOSECONDS)
    }

    /// Requests answered so far.
    pub fn answered_requests(&self) -> usize {
        self.transactions.len()
    }

    /// The run's start, on the driver's clock.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Ends the run.
    pub fn finish(mut self) -> RrSummary {
        let mut unfinished = self.in_flight as u64;
        if let Some(schedule) = &mut self.schedule {
            while schedule.due() < self.duration {
                schedule.advance();
                unfinished += 1;
            }
        }
        let last = self.transactions.last().map_or(0, |transaction| transaction.end);
        RrSummary {
            transactions: self.transactions,
            late: self.late,
            unfinished,
            active_nanoseconds: last.max(self.duration),
        }
    }
}
