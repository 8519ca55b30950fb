//! A connection with both its ends, and what it is at.

use framegauge_frames::Picoseconds;

use crate::TcpSettings;
use crate::endpoint::{Endpoint, Ids, Phase};
use crate::sender::SenderCounts;
use crate::work::{Flow, Step, Transfer};

/// What follows when a step has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The step goes on.
    Nothing,
    /// Another step, which the given side begins.
    Step,
    /// A round has ended.
    Round,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Opening,
    /// The message is due, and its sender thinks.
    Thinking,
    Working,
    /// For others, at a barrier.
    Waiting,
    Closing,
}

/// Both ends; those of connection n have the numbers 2 n, which opened it, and 2 n + 1.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) flow: u32,
    pub(crate) round: u32,
    pub(crate) step: u32,
    begun: Picoseconds,
    started: Picoseconds,
    /// Where the present message ends, in the sequence space of its sender; it began at `from`.
    from: u64,
    target: Option<u64>,
    pub(crate) stage: Stage,
    /// What each end had sent again when the round began.
    resent: [u64; 2],
    /// A side that does not read, for so long from when it is connected.
    pub(crate) pause: Option<(usize, Picoseconds)>,
    /// The wake-up that each end has in the event set.
    pub(crate) woken: [Picoseconds; 2],
}

impl Connection {
    pub(crate) fn new(
        number: u32,
        (flow, round): (u32, u32),
        now: Picoseconds,
        mss: [u32; 2],
        tcp: &TcpSettings,
    ) -> Self {
        let end = |side: u32| {
            Endpoint::new(
                Ids { own: 2 * number + side, peer: 2 * number + 1 - side },
                mss[side as usize],
                tcp,
            )
        };
        Connection {
            ends: [end(0), end(1)],
            flow,
            round,
            step: 0,
            begun: now,
            started: now,
            from: 1,
            target: None,
            stage: Stage::Opening,
            resent: [0; 2],
            pause: None,
            woken: [Picoseconds::MAX; 2],
        }
    }

    /// The side that sends the present message.
    pub(crate) fn sending_side(&self, step: &Step) -> usize {
        usize::from(!step.from_client)
    }

    /// A message is due over a connection that is there.
    pub(crate) fn due(&mut self, now: Picoseconds) {
        self.begun = now;
    }

    /// Whether this end has just come to be able to send the first message.
    pub(crate) fn is_waiting_for_peer(&self, side: usize, flow: &Flow) -> bool {
        self.stage == Stage::Opening
            && self.sending_side(&flow.steps[0]) == side
            && self.ends[side].phase == Phase::Established
    }

    pub(crate) fn is_working(&self) -> bool {
        self.stage == Stage::Working
    }

    fn resends(&self, side: usize) -> u64 {
        self.ends[side].send.counts.resends
    }

    /// Another round follows over the same connection.
    pub(crate) fn begin_round(&mut self) {
        self.round += 1;
        self.step = 0;
        self.stage = Stage::Waiting;
        self.resent = [0, 1].map(|side| self.resends(side));
    }

    /// Another flow goes on over it, whose counts begin anew.
    pub(crate) fn begin_flow(&mut self, flow: u32) {
        self.ends.iter_mut().for_each(|end| end.send.counts = SenderCounts::default());
        (self.flow, self.round, self.step, self.resent) = (flow, 0, 0, [0; 2]);
    }

    /// Begins the present message; whether more of it is left to be written.
    pub(crate) fn begin_step(&mut self, step: &Step, now: Picoseconds) -> bool {
        let side = self.sending_side(step);
        self.started = now;
        self.from = self.ends[side].send.written;
        self.target = step.bytes.map(|bytes| self.from + bytes);
        if step.reader_waits > Picoseconds::ZERO {
            self.ends[1 - side].receive.is_paused = true;
            self.pause = Some((1 - side, step.reader_waits));
        }
        self.write(step)
    }

    /// Writes another part of the present message; whether more of it is left to be written.
    pub(crate) fn write(&mut self, step: &Step) -> bool {
        let side = self.sending_side(step);
        let send = &mut self.ends[side].send;
        let end = self.target.unwrap_or(u64::MAX >> 1);
        let part = match (step.first_write_bytes, step.write_bytes) {
            (first, _) if first > 0 && send.written == self.from => first,
            (_, 0) => u64::MAX >> 1,
            (_, size) => size,
        };
        send.written = end.min(send.written.saturating_add(part));
        send.is_closing |= step.closes && send.written == end;
        send.written < end
    }

    /// Whether the server has nothing more to write: it closes when the client has.
    pub(crate) fn is_answered(&self, flow: &Flow) -> bool {
        let is_last = self.step as usize + 1 == flow.steps.len();
        let step = &flow.steps[self.step as usize];
        let is_written = self.stage == Stage::Working && self.target == Some(self.ends[1].send.written);
        self.stage == Stage::Closing || is_last && !step.from_client && is_written
    }

    /// What follows, now that the receiver has read.
    pub(crate) fn look(&self, flow: &Flow) -> Next {
        let step = &flow.steps[self.step as usize];
        let side = self.sending_side(step);
        let Some(target) = self.target else { return Next::Nothing };
        if self.ends[1 - side].receive.read < target {
            return Next::Nothing;
        }
        if (self.step as usize) + 1 < flow.steps.len() { Next::Step } else { Next::Round }
    }

    /// The record of the present message.
    pub(crate) fn transfer(&self, flow: &Flow, now: Picoseconds) -> Transfer {
        let step = &flow.steps[self.step as usize];
        let read = self.ends[1 - self.sending_side(step)].receive.read;
        Transfer {
            flow: self.flow,
            round: self.round,
            step: self.step,
            begun: self.begun,
            connected: self.started,
            ended: now,
            bytes: read.saturating_sub(self.from),
            resends: [0, 1].map(|side| self.resends(side) - self.resent[side]),
            is_complete: self.target.is_some_and(|target| read >= target),
        }
    }

    /// How long a side still does not read, if its pause begins now.
    pub(crate) fn take_pause(&mut self) -> Option<(usize, Picoseconds)> {
        let (side, _) = self.pause.filter(|(side, _)| self.ends[*side].phase == Phase::Established)?;
        self.pause.take().map(|(_, wait)| (side, wait))
    }

    /// Whether the message has begun and not ended.
    pub(crate) fn is_open(&self, step: &Step) -> bool {
        let read = self.ends[1 - self.sending_side(step)].receive.read;
        self.target.is_none_or(|target| read < target)
    }

    /// Both sides have sent and received everything.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.send.is_done() && end.receive.has_ended())
    }
}
