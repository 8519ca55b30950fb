//! What to do where sizes are lost that arrive at other times: forget what was silent, and ask again, ever more slowly.
//!
//! A limit of the rate, a short buffer or RED lose what comes too fast. At a slower pace the same packets arrive, and
//! that is proof. So the flows of the path that do not carry the target yet are asked for it again in *sweeps*, one packet
//! after the other, at a rate of [`RATES`]:
//!
//! - If half of what a sweep asked for arrived, the next one goes on at that rate, with what is left.
//! - Otherwise the next one is slower. At the slowest a packet of 9000 bytes leaves nearly every second, which a limit of
//!   100 kb/s still lets pass.
//! - Two sweeps of the slowest rate without anything end it. What is left is searched for as ever, at the rate that
//!   served best, and claimed only if its edge stands; otherwise it is *unknown*.

use super::Search;
use crate::random::Random;
use crate::steps::Planned;
use crate::verdict::{Slowly, Verdict};
use std::time::Duration;

/// Bytes per second, one packet after the other.
const RATES: [u32; 5] = [1_000_000, 250_000, 62_500, 20_000, 10_000];
/// The place of the rate at which a flow is searched for if none of them brought anything.
const ORDINARY: usize = 1;
/// A sweep takes about so long at the most.
const SWEEP_SECONDS: u32 = 3;
/// Whatever the rate, a sweep asks so many flows.
const FEWEST: usize = 3;
/// Sweeps at the slowest rate without anything that arrived.
const VAIN_SWEEPS: u32 = 2;

/// Where a path is with that.
#[derive(Debug, Clone)]
pub(super) struct Slow {
    stage: Stage,
    rate: usize,
    /// The place in [`RATES`] of the fastest at which half of a sweep arrived.
    best: Option<usize>,
    /// Flows that wait for a sweep, and those of the present one.
    waiting: Vec<u16>,
    asked: Vec<u16>,
    vain: u32,
    arrived: u16,
    random: Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing had to be asked slowly.
    Before,
    Sweeping,
    After,
}

impl Slow {
    pub(super) fn new(seed: u64) -> Slow {
        Slow {
            stage: Stage::Before,
            rate: 0,
            best: None,
            waiting: Vec::new(),
            asked: Vec::new(),
            vain: 0,
            arrived: 0,
            random: Random(seed),
        }
    }

    /// What draws the order and times of slow packets.
    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Whether nothing had to be asked slowly yet.
    pub(super) fn is_before(&self) -> bool {
        self.stage == Stage::Before
    }

    /// Whether all was asked slowly that had to be.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::After
    }

    /// What it showed.
    pub(super) fn report(&self) -> Option<Slowly> {
        let bytes_per_second = self.best.map(|rate| RATES[rate]);
        (self.stage != Stage::Before).then_some(Slowly { arrived: self.arrived, bytes_per_second })
    }

    /// The flows of the next sweep; none if there is no other.
    fn next(&mut self, target: u32) -> Option<Vec<u16>> {
        if self.waiting.is_empty() || self.vain >= VAIN_SWEEPS {
            return None;
        }
        let most = FEWEST.max((RATES[self.rate] * SWEEP_SECONDS / target.max(1)) as usize);
        let mut flows = Vec::new();
        while flows.len() < most && !self.waiting.is_empty() {
            let place = self.random.below(self.waiting.len() as u64) as usize;
            flows.push(self.waiting.swap_remove(place));
        }
        Some(flows)
    }

    /// So many of what a sweep asked for arrived.
    fn on_swept(&mut self, flows: usize, arrived: usize) {
        self.arrived += arrived as u16;
        let is_slowest = self.rate + 1 == RATES.len();
        if 2 * arrived >= flows {
            self.best.get_or_insert(self.rate);
        } else if !is_slowest {
            self.rate += 1;
        }
        self.vain = if is_slowest && arrived == 0 { self.vain + 1 } else { 0 };
    }
}

impl Search {
    /// A flow doubts its edge: from now on all that are not settled are asked slowly.
    pub(super) fn doubt(&mut self, flow: u16) {
        self.slow.stage = Stage::Sweeping;
        self.slow.waiting.push(flow);
        self.slow.waiting.append(&mut self.awaiting);
        let answered = self.patience.is_learnt();
        for index in 0..self.config.flows {
            let of = &mut self.flows[usize::from(index)];
            // Where others are answered, that nothing arrived may have the same reason.
            if of.verdict() == Some(Verdict::Unreachable) && answered {
                self.slow.waiting.push(index);
                of.forget_silence();
            } else if of.verdict().is_none() {
                of.forget_silence();
            }
        }
    }

    /// Whether a flow has nothing to do but wait for a sweep.
    pub(super) fn waits_for_sweep(&mut self, flow: u16) -> bool {
        let waits = self.slow.stage == Stage::Sweeping && !self.flows[usize::from(flow)].is_settled();
        if waits {
            self.slow.waiting.push(flow);
        }
        waits
    }

    /// When nothing is under way any more: what the last sweep has brought, and the next one. Whether flows are idle after
    /// the last.
    pub(super) fn sweep(&mut self, now: Duration) -> bool {
        if self.slow.stage != Stage::Sweeping || !self.planned.is_empty() || !self.outstanding.is_empty() {
            return false;
        }
        let batch = std::mem::take(&mut self.slow.asked);
        if !batch.is_empty() {
            let carries = |flow: &&u16| self.flows[usize::from(**flow)].delivered() >= self.config.target;
            let arrived = batch.iter().filter(carries).count();
            self.slow.on_swept(batch.len(), arrived);
        }
        let Some(flows) = self.slow.next(self.config.target) else {
            self.end_sweeps();
            return true;
        };
        self.pace.slow_down(RATES[self.slow.rate]);
        for &flow in &flows {
            self.flows[usize::from(flow)].forget_silence();
            let packet = |bytes| Planned { after: Duration::ZERO, bytes, round: None };
            let mut packets = [packet(self.config.target), packet(self.control)];
            if self.slow.random.below(2) == 0 {
                packets.reverse();
            }
            self.plan(now, flow, &packets);
        }
        self.slow.asked = flows;
        false
    }

    /// What is left is searched for as ever.
    fn end_sweeps(&mut self) {
        self.slow.stage = Stage::After;
        // One slower than what lets half pass: more of it does.
        let rate = self.slow.best.map_or(ORDINARY, |best| best + 1).min(RATES.len() - 1);
        self.pace.slow_down(RATES[rate]);
        self.scouts.clear();
        for flow in std::mem::take(&mut self.slow.waiting) {
            self.flows[usize::from(flow)].forget_silence();
            self.idle.push_back(flow);
        }
    }
}
