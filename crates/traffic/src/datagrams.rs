//! Datagrams at a stated rate, all the time or in spurts: which flow sends when, whatever becomes of earlier ones.
//!
//! ```text
//!   flow 0   |.|.|.|.|.            |.|.|.|.|.            a spurt, a pause, a spurt …
//!   flow 1         |.|.|.|.|.            |.|.|.|.|.      the same, later by an equal share of a period
//! ```
//!
//! A voice sends small datagrams at a constant rate while somebody speaks, and nothing in between (ITU-T P.59). Flows
//! begin one after another, spread over a gap (constant) or over a spurt and a pause, since independent senders do
//! not send at the same moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DatagramsSpec {
    /// Flows, each with a rate of its own.
    pub flows: u32,
    /// Datagrams a second of each flow while it sends, above 0.
    pub rate_per_second: f64,
    /// The spurts in which a flow sends, and the pauses in between; `None`: it sends all the time.
    pub periods: Option<Periods>,
    /// Datagrams become due for that long.
    pub duration_nanoseconds: u64,
}

/// How long a flow sends, and is silent, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Above 0.
    pub spurt_nanoseconds: u64,
    /// Above 0.
    pub pause_nanoseconds: u64,
}

impl DatagramsSpec {
    /// When the datagram of this number of a flow is due, since the start.
    fn due(&self, flow: u32, number: u64) -> u64 {
        let gap = 1e9 / self.rate_per_second;
        let sending = number as f64 * gap;
        let later = |cycle: f64| f64::from(flow) * cycle / f64::from(self.flows);
        let Some(Periods { spurt_nanoseconds, pause_nanoseconds }) = self.periods else {
            return (sending + later(gap)) as u64;
        };
        let (spurt, pause) = (spurt_nanoseconds as f64, pause_nanoseconds as f64);
        (sending + (sending / spurt).floor() * pause + later(spurt + pause)) as u64
    }
}

/// A datagram that is due. Times are nanoseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueDatagram {
    /// Its flow.
    pub flow: u32,
    /// Its number within the flow, from 0.
    pub sequence: u32,
    /// When it became due.
    pub due: u64,
}

/// The sender's side, as decisions.
#[derive(Debug, Clone)]
pub struct Datagrams {
    spec: DatagramsSpec,
    started: u64,
    /// The next of every flow that still has one: due, flow, number.
    next: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Datagrams {
    /// Datagrams that one run may send: what is kept of them at either end stays below a gigabyte.
    pub const MOST: usize = 20_000_000;

    /// A run that starts at `now`.
    pub fn new(spec: DatagramsSpec, now: u64) -> Self {
        let first = (0..spec.flows).map(|flow| (spec.due(flow, 0), flow, 0));
        let next = first.filter(|(due, ..)| *due < spec.duration_nanoseconds).map(Reverse).collect();
        Self { spec, started: now, next }
    }

    /// The datagram that is to be sent at `now`, if one is due.
    pub fn next_datagram(&mut self, now: u64) -> Option<DueDatagram> {
        let &Reverse((due, flow, sequence)) = self.next.peek()?;
        if self.started + due > now {
            return None;
        }
        self.next.pop();
        let following = sequence + 1;
        let then = self.spec.due(flow, u64::from(following));
        if then < self.spec.duration_nanoseconds {
            self.next.push(Reverse((then, flow, following)));
        }
        Some(DueDatagram { flow, sequence, due })
    }

    /// When something becomes due, or the run is over, though nothing happened.
    pub fn deadline(&self) -> u64 {
        self.started + self.next.peek().map_or(self.spec.duration_nanoseconds, |Reverse((due, ..))| *due)
    }

    /// Whether the run is over: its time has passed and everything that became due has been asked for.
    pub fn ended(&self, now: u64) -> bool {
        self.next.is_empty() && now >= self.started + self.spec.duration_nanoseconds
    }

    /// The run's start, on the driver's clock.
    pub fn started(&self) -> u64 {
        self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLISECOND: u64 = 1_000_000;

    fn spec(
        flows: u32,
        rate_per_second: f64,
        periods: Option<(u64, u64)>,
        milliseconds: u64,
    ) -> DatagramsSpec {
        let periods = periods.map(|(on, off)| Periods {
            spurt_nanoseconds: on * MILLISECOND,
            pause_nanoseconds: off * MILLISECOND,
        });
        DatagramsSpec { flows, rate_per_second, periods, duration_nanoseconds: milliseconds * MILLISECOND }
    }

    /// All datagrams of a run that starts at 5 and is asked whenever it says.
    fn all(spec: DatagramsSpec) -> Vec<DueDatagram> {
        let mut datagrams = Datagrams::new(spec, 5);
        let (mut schedule, mut now) = (Vec::new(), 5);
        while !datagrams.ended(now) {
            now = datagrams.deadline();
            schedule.extend(datagrams.next_datagram(now));
        }
        schedule
    }

    fn dues(spec: DatagramsSpec, flow: u32) -> Vec<u64> {
        all(spec)
            .iter()
            .filter(|datagram| datagram.flow == flow)
            .map(|datagram| datagram.due / 1000)
            .collect()
    }

    #[test]
    fn a_constant_rate_is_even_and_its_flows_share_the_gap() {
        let two = spec(2, 100.0, None, 30);
        assert_eq!(dues(two, 0), [0, 10_000, 20_000]);
        assert_eq!(dues(two, 1), [5_000, 15_000, 25_000]);
        assert!(all(two).windows(2).all(|pair| pair[0].due < pair[1].due));
    }

    #[test]
    fn periods_have_their_datagrams_and_nothing_in_between() {
        // 100 a second for 20 ms, nothing for 30 ms; the second flow is half of a period of 50 ms later.
        let two = spec(2, 100.0, Some((20, 30)), 110);
        assert_eq!(dues(two, 0), [0, 10_000, 50_000, 60_000, 100_000]);
        assert_eq!(dues(two, 1), [25_000, 35_000, 75_000, 85_000]);
    }

    #[test]
    fn nothing_is_due_before_its_time_and_what_is_late_is_not_left_out() {
        let mut late = Datagrams::new(spec(1, 100.0, None, 30), 5);
        assert_eq!(late.next_datagram(4), None);
        let at_once = std::iter::from_fn(|| late.next_datagram(5 + 40 * MILLISECOND));
        assert_eq!(at_once.map(|datagram| datagram.sequence).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(late.ended(5 + 30 * MILLISECOND) && !late.ended(4 + 30 * MILLISECOND));
    }

    proptest! {
        #[test]
        fn every_flow_counts_from_nought_and_keeps_its_rate(
            flows in 1u32..20, rate in 1f64..5000.0, milliseconds in 1u64..300,
        ) {
            let spec = spec(flows, rate, None, milliseconds);
            let sent = all(spec);
            prop_assert!(sent.windows(2).all(|pair| pair[0].due <= pair[1].due));
            for flow in 0..flows {
                let own: Vec<u32> =
                    sent.iter().filter(|datagram| datagram.flow == flow).map(|datagram| datagram.sequence).collect();
                prop_assert!(own.iter().copied().eq(0..own.len() as u32));
                prop_assert!((own.len() as f64 - rate * milliseconds as f64 * 1e-3).abs() <= 1.0);
            }
        }
    }
}
