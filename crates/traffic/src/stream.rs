//! Long one-way transfers: rounds of parallel flows, each a new connection.

use crate::message::next_write_bytes;
use std::num::NonZeroU32;

/// How much a flow carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// That many bytes a flow and round.
    Bytes(u64),
    /// As much as goes in that many nanoseconds, once.
    Nanoseconds(u64),
}

/// What a stream consists of.
#[derive(Debug, Clone, Copy)]
pub struct StreamSpec {
    /// Parallel flows; they start together in every round.
    pub flows: u32,
    /// What each carries.
    pub amount: Amount,
    /// New rounds begin until this has passed since the start (only with `Amount::Bytes`).
    pub repeat_nanoseconds: u64,
    /// The serving end sends.
    pub reverse: bool,
}

/// What the driver is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Connect this flow, in this round.
    Connect {
        /// The flow.
        flow: u32,
        /// The round.
        round: u32,
    },
    /// Close the sending side of this flow: it has nothing more to send.
    Finish {
        /// The flow.
        flow: u32,
    },
}

/// One finished transfer. Times are since the start of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The round it belongs to.
    pub round: u32,
    /// Its flow.
    pub flow: u32,
    /// Just before `connect()`.
    pub start_nanoseconds: u64,
    /// The handshake was over.
    pub connected_nanoseconds: u64,
    /// The client knew that the last byte had arrived.
    pub end_nanoseconds: u64,
    /// Application bytes delivered.
    pub bytes: u64,
    /// The time that was asked for had passed, or (with a size) the end: what came later was only on its way.
    pub counted_nanoseconds: u64,
    /// Application bytes delivered by then.
    pub counted_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Connecting,
    Sending,
    Finishing,
    Confirming,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    state: State,
    start: u64,
    connected: u64,
    moved: u64,
    counted: Option<(u64, u64)>,
}

/// The client's side of a stream, as decisions.
pub struct Stream {
    spec: StreamSpec,
    started: u64,
    round: u32,
    open: u32,
    flows: Vec<Flow>,
    transfers: Vec<Transfer>,
    ended: bool,
}

impl Stream {
    /// A stream that starts at `now`.
    pub fn new(spec: StreamSpec, now: u64) -> Self {
        let idle = Flow { state: State::Idle, start: 0, connected: 0, moved: 0, counted: None };
        Self {
            spec,
            started: now,
            round: 0,
            open: 0,
            flows: vec![idle; spec.flows as usize],
            transfers: Vec::new(),
            ended: spec.flows == 0,
        }
    }

    /// What to do at `now`; call until it answers `None`.
    pub fn next_action(&mut self, now: u64) -> Option<Action> {
        if self.ended {
            return None;
        }
        let round = self.round;
        if let Some(flow) = self.flows.iter().position(|flow| flow.state == State::Finishing) {
            self.flows[flow].state = State::Confirming;
            return Some(Action::Finish { flow: flow as u32 });
        }
        if let Amount::Nanoseconds(_) = self.spec.amount {
            for place in 0..self.flows.len() {
                if self.flows[place].state == State::Sending
                    && !self.spec.reverse
                    && self.time_left(place, now) == 0
                {
                    self.flows[place].state = State::Confirming;
                    return Some(Action::Finish { flow: place as u32 });
                }
            }
        }
        if self.open < self.spec.flows {
            let flow = self.open;
            self.open += 1;
            self.flows[flow as usize] =
                Flow { state: State::Connecting, start: now, connected: 0, moved: 0, counted: None };
            return Some(Action::Connect { flow, round });
        }
        None
    }

    fn time_left(&self, place: usize, now: u64) -> u64 {
        match self.spec.amount {
            Amount::Nanoseconds(duration) => (self.flows[place].connected + duration).saturating_sub(now),
            Amount::Bytes(_) => u64::MAX,
        }
    }

    /// The handshake of `flow` is over.
    pub fn connected(&mut self, flow: u32, now: u64) {
        let state = if self.spec.reverse { State::Confirming } else { State::Sending };
        let place = &mut self.flows[flow as usize];
        place.connected = now;
        place.state = state;
    }

    /// How many bytes `flow` may send now.
    pub fn allowance(&self, flow: u32, now: u64) -> u64 {
        let place = &self.flows[flow as usize];
        if place.state != State::Sending {
            return 0;
        }
        match self.spec.amount {
            Amount::Bytes(size) => size - place.moved,
            Amount::Nanoseconds(_) if self.time_left(flow as usize, now) > 0 => u64::MAX,
            Amount::Nanoseconds(_) => 0,
        }
    }

    /// How many bytes `flow` is to send with its next call, in messages of `message_bytes`.
    pub fn next_write(&self, flow: u32, message_bytes: Option<NonZeroU32>, now: u64) -> u64 {
        next_write_bytes(self.flows[flow as usize].moved, self.allowance(flow, now), message_bytes)
    }

    /// `flow` has sent `bytes` more.
    pub fn sent(&mut self, flow: u32, bytes: u64) {
        let place = &mut self.flows[flow as usize];
        place.moved += bytes;
        if let Amount::Bytes(size) = self.spec.amount
            && place.moved >= size
        {
            place.state = State::Finishing;
        }
    }

    /// How many bytes of `flow` had been delivered when its time was over.
    pub fn counted(&mut self, flow: u32, bytes: u64, now: u64) {
        self.flows[flow as usize].counted.get_or_insert((bytes, now));
    }

    /// Whether `flow` runs for a time that is over, and what it delivered has not been counted yet.
    pub fn is_to_be_counted(&self, flow: u32, now: u64) -> bool {
        let place = &self.flows[flow as usize];
        place.counted.is_none()
            && place.connected > 0
            && !matches!(place.state, State::Idle | State::Connecting)
            && self.time_left(flow as usize, now) == 0
    }

    /// `flow` is over: the far end confirmed `bytes`, or (in reverse) sent its last.
    pub fn confirmed(&mut self, flow: u32, bytes: u64, now: u64) {
        let place = &mut self.flows[flow as usize];
        if place.state == State::Idle {
            return;
        }
        place.state = State::Idle;
        let (counted_bytes, counted_at) = place.counted.unwrap_or((bytes, now));
        self.transfers.push(Transfer {
            round: self.round,
            flow,
            start_nanoseconds: place.start - self.started,
            connected_nanoseconds: place.connected.max(place.start) - self.started,
            end_nanoseconds: now - self.started,
            bytes,
            counted_nanoseconds: counted_at.min(now) - self.started,
            counted_bytes: counted_bytes.min(bytes),
        });
        if self.open == self.spec.flows && self.flows.iter().all(|flow| flow.state == State::Idle) {
            let again = matches!(self.spec.amount, Amount::Bytes(_));
            self.ended = !again || now - self.started >= self.spec.repeat_nanoseconds;
            if !self.ended {
                self.round += 1;
                self.open = 0;
            }
        }
    }

    /// When `next_action` has to be asked again though nothing happened.
    pub fn deadline(&self) -> Option<u64> {
        let Amount::Nanoseconds(duration) = self.spec.amount else { return None };
        self.flows
            .iter()
            .filter(|flow| flow.state == State::Sending)
            .map(|flow| flow.connected + duration)
            .min()
    }

    /// Whether every round is over.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The round under way.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What has been transferred so far.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// The sum over rounds of (last end − first start), in nanoseconds.
    pub fn active_nanoseconds(&self) -> u64 {
        let rounds = self.transfers.last().map_or(0, |transfer| transfer.round + 1);
        let mut spans = vec![(u64::MAX, 0u64); rounds as usize];
        for transfer in &self.transfers {
            let span = &mut spans[transfer.round as usize];
            span.0 = span.0.min(transfer.start_nanoseconds);
            span.1 = span.1.max(transfer.end_nanoseconds);
        }
        spans.iter().filter(|span| span.0 < u64::MAX).map(|span| span.1 - span.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(flows: u32, amount: Amount, repeat: u64) -> StreamSpec {
        StreamSpec { flows, amount, repeat_nanoseconds: repeat, reverse: false }
    }

    /// Drives a stream over a make-believe network: each flow moves `step` bytes a nanosecond.
    fn drive(spec: StreamSpec, step: u64) -> Stream {
        let mut stream = Stream::new(spec, 1000);
        let mut now = 1000;
        let mut connecting = Vec::new();
        while !stream.ended() {
            assert!(now < 1_000_000, "the stream does not end");
            let mut finishing = Vec::new();
            while let Some(action) = stream.next_action(now) {
                match action {
                    Action::Connect { flow, .. } => connecting.push(flow),
                    Action::Finish { flow } => finishing.push(flow),
                }
            }
            now += 1;
            for flow in finishing {
                let bytes = stream.flows[flow as usize].moved;
                stream.confirmed(flow, bytes, now);
            }
            for flow in connecting.drain(..) {
                stream.connected(flow, now);
            }
            for flow in 0..spec.flows {
                let bytes = stream.allowance(flow, now).min(step);
                if bytes > 0 {
                    stream.sent(flow, bytes);
                }
            }
        }
        stream
    }

    #[test]
    fn one_round_of_one_flow() {
        let stream = drive(spec(1, Amount::Bytes(100), 0), 10);
        assert_eq!(stream.transfers().len(), 1);
        assert_eq!(stream.transfers()[0].bytes, 100);
        assert_eq!(stream.active_nanoseconds(), stream.transfers()[0].end_nanoseconds);
    }

    #[test]
    fn rounds_repeat_until_the_time_has_passed() {
        let stream = drive(spec(2, Amount::Bytes(100), 50), 10);
        let rounds = stream.round() + 1;
        assert!(rounds > 1);
        assert_eq!(stream.transfers().len() as u32, 2 * rounds);
        assert!(stream.transfers().last().expect("there are transfers").end_nanoseconds >= 50);
    }

    #[test]
    fn a_duration_ends_by_the_clock() {
        let stream = drive(spec(1, Amount::Nanoseconds(40), 0), 10);
        let transfer = stream.transfers()[0];
        let sending = transfer.end_nanoseconds - transfer.connected_nanoseconds;
        assert!((40..=42).contains(&sending), "{sending}");
    }

    #[test]
    fn what_arrives_after_the_time_is_not_counted() {
        let mut stream = Stream::new(spec(1, Amount::Nanoseconds(40), 0), 1000);
        assert_eq!(stream.next_action(1000), Some(Action::Connect { flow: 0, round: 0 }));
        stream.connected(0, 1010);
        stream.sent(0, 100);
        assert!(!stream.is_to_be_counted(0, 1049));
        assert_eq!(stream.next_action(1050), Some(Action::Finish { flow: 0 }));
        assert!(stream.is_to_be_counted(0, 1050));
        stream.counted(0, 70, 1050);
        assert!(!stream.is_to_be_counted(0, 1060));
        stream.confirmed(0, 100, 1250);
        let transfer = stream.transfers()[0];
        assert_eq!((transfer.bytes, transfer.end_nanoseconds), (100, 250));
        assert_eq!((transfer.counted_bytes, transfer.counted_nanoseconds), (70, 50));
    }

    proptest! {
        #[test]
        fn every_flow_of_every_round_delivers_its_size(flows in 1u32..9, size in 1u64..2000, step in 1u64..500, repeat in 0u64..500) {
            let stream = drive(spec(flows, Amount::Bytes(size), repeat), step);
            prop_assert!(stream.transfers().iter().all(|transfer| transfer.bytes == size));
            prop_assert!(stream.transfers().iter().all(|t| t.counted_bytes == size && t.counted_nanoseconds == t.end_nanoseconds));
            prop_assert_eq!(stream.transfers().len() as u32, flows * (stream.round() + 1));
            prop_assert!(stream.transfers().iter().all(|t| t.start_nanoseconds <= t.connected_nanoseconds && t.connected_nanoseconds <= t.end_nanoseconds));
        }
    }
}
