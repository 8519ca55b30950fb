//! The search on one flow: which sizes to send next, from what is known of those before.
//!
//! | known so far | next |
//! | --- | --- |
//! | nothing delivered | target, 1500 and a control; then controls, until one is answered or it is *unreachable* |
//! | target delivered | done: *carries the target* |
//! | target silent once | once more, beside a control |
//! | a size fails, others between | who was told or what a sibling found; the common MTUs; then a 16-way split |
//! | `low` delivered, `low + 1` refused by somebody | done: *too small* |
//! | `low` delivered, `low + 1` silent | again beside controls, until loss explains it no more: *black hole* |
//!
//! A size fails when it was refused, or silent twice and never delivered. That is a guess to search by; only the edge is claimed.

use crate::claim::silence_by_loss;
use crate::config::Config;
use crate::sizes;
use crate::verdict::{Told, Verdict};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The size that every path should carry.
const ORDINARY: u32 = 1500;
/// Silent so often, a size is taken to fail while searching.
const SILENT_ATTEMPTS: u32 = 2;
/// Controls without an answer after which nothing is there: at a loss of a third each way, one in 10⁹.
const UNREACHABLE_CONTROLS: u32 = 36;
/// Silent controls of a flow after which it is not asked quickly any more, though others of the path are answered.
const QUICK_CONTROLS: u32 = 8;
/// They are spread over this time at least: a busy far end may answer nothing for a while.
const UNREACHABLE_ROUND: u32 = 12;
const UNREACHABLE_GAP: Duration = Duration::from_millis(60);
/// Probes of the edge lie this far apart, so that one burst of loss does not strike all.
const EDGE_GAP: Duration = Duration::from_millis(2);
/// Probes of the edge in one go.
const EDGE_ROUNDS: u32 = 48;
/// Sizes that may be tried on a flow before one is found to be the edge: each could have been lost by chance.
const SIZES_TRIED: f64 = 64.0;
/// Silent so often, and loss might still explain it: could not tell.
const EDGE_MOST: u32 = 160;

/// A size to send, so long from now.
pub(crate) type Planned = (Duration, u32);

/// What a flow wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send these, and ask again when all are answered or given up.
    Send(Vec<Planned>),
    /// A sibling is searching: what it finds is worth waiting for.
    Await,
    /// Nothing more.
    Done,
}

/// What the flows of a path know of each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Siblings {
    /// Path MTUs that were found.
    pub(crate) hints: Vec<u32>,
    /// One searches for the first path MTU.
    pub(crate) searching: bool,
    /// Something was answered.
    pub(crate) answered: bool,
    /// A control was lost.
    pub(crate) lossy: bool,
}

/// What became of probes of one size.
#[derive(Debug, Clone, Copy, Default)]
struct Tries {
    silent: u32,
    delivered: u32,
    refused: u32,
}

/// One flow.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    target: u32,
    control: u32,
    exact: bool,
    false_claim: f64,
    controls_a_probe: u32,
    /// The largest size delivered; 0 if none was.
    low: u32,
    tries: BTreeMap<u32, Tries>,
    pub(crate) controls_sent: u32,
    pub(crate) controls_lost: u32,
    /// What was said of this flow, the smallest MTU first to be believed.
    pub(crate) told: Option<Told>,
    /// The size of the pieces in which packets arrived that must not be fragmented: they were not carried whole.
    pub(crate) fragment: Option<u32>,
    /// Probes that are neither answered nor given up.
    pub(crate) outstanding: u32,
    /// Numbers of probes that no later one is known to have overtaken.
    pub(crate) under_way: VecDeque<u32>,
    /// Hints that were tried.
    tried_hints: Vec<u32>,
    verdict: Option<Verdict>,
}

impl Flow {
    pub(crate) fn new(config: &Config, control: u32) -> Flow {
        // Without the search there is but one size to be wrong about.
        let sizes = if config.exact { SIZES_TRIED } else { 1.0 };
        Flow {
            target: config.target,
            control,
            exact: config.exact,
            false_claim: config.false_claim / sizes,
            controls_a_probe: config.controls_a_probe.max(1),
            low: 0,
            tries: BTreeMap::new(),
            controls_sent: 0,
            controls_lost: 0,
            told: None,
            fragment: None,
            outstanding: 0,
            under_way: VecDeque::new(),
            tried_hints: Vec::new(),
            verdict: None,
        }
    }

    /// The claim, once there is one.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// The path MTU; none if it could not be told. What was delivered is the least that it can be.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        match self.verdict? {
            Verdict::CarriesTarget => Some(self.target),
            Verdict::TooSmall | Verdict::BlackHole if self.ceiling() == Some(self.low + 1) => Some(self.low),
            _ => None,
        }
    }

    /// The largest size that was delivered.
    pub(crate) fn delivered(&self) -> u32 {
        self.low
    }

    /// Whether a size was seen to fail, so that siblings may learn from it.
    pub(crate) fn fails(&self) -> bool {
        self.low < self.target && self.ceiling().is_some()
    }

    pub(crate) fn on_delivered(&mut self, size: u32) {
        self.tries.entry(size).or_default().delivered += 1;
        self.low = self.low.max(size);
        // A late answer takes a claim back.
        if self.verdict.is_some_and(|verdict| verdict != Verdict::CarriesTarget) {
            self.verdict = None;
        }
    }

    /// An answer that came after its probe had been given up.
    pub(crate) fn on_late(&mut self, size: u32) {
        if size == self.control {
            self.controls_lost = self.controls_lost.saturating_sub(1);
        }
        if let Some(tries) = self.tries.get_mut(&size) {
            tries.silent = tries.silent.saturating_sub(1);
        }
        self.on_delivered(size);
    }

    pub(crate) fn on_refused(&mut self, size: u32, told: Told) {
        self.tries.entry(size).or_default().refused += 1;
        let smaller = |known: &Told| told.mtu_bytes.unwrap_or(u32::MAX) < known.mtu_bytes.unwrap_or(u32::MAX);
        if self.told.as_ref().is_none_or(smaller) {
            self.told = Some(told);
        }
    }

    /// It arrived, but in pieces: somebody on the way carries no more than these, and has not said so.
    pub(crate) fn on_fragments(&mut self, size: u32, fragment: u32) {
        self.tries.entry(size).or_default().refused += 1;
        self.fragment = Some(self.fragment.map_or(fragment, |known| known.min(fragment)));
    }

    pub(crate) fn on_silent(&mut self, size: u32) {
        if size == self.control {
            self.controls_lost += 1;
        }
        self.tries.entry(size).or_default().silent += 1;
    }

    /// The smallest size above what was delivered that fails.
    fn ceiling(&self) -> Option<u32> {
        self.above()
            .find(|(_, tries)| tries.refused > 0 || tries.silent >= SILENT_ATTEMPTS)
            .map(|(size, _)| size)
    }

    fn above(&self) -> impl Iterator<Item = (u32, Tries)> + '_ {
        self.tries.range(self.low + 1..).map(|(size, tries)| (*size, *tries))
    }

    /// What to do next; call when nothing is outstanding.
    pub(crate) fn step(&mut self, siblings: &Siblings) -> Step {
        if self.verdict.is_some() {
            return Step::Done;
        }
        if self.low >= self.target {
            return self.finish(Verdict::CarriesTarget);
        }
        if self.low == 0 {
            return self.reach(siblings.answered);
        }
        let Some(ceiling) = self.ceiling() else {
            return self.try_sizes([self.target]);
        };
        if !self.exact {
            return self.edge(ceiling);
        }
        if ceiling == self.low + 1 {
            return self.edge(ceiling);
        }
        self.narrow(ceiling, siblings)
    }

    fn finish(&mut self, verdict: Verdict) -> Step {
        self.verdict = Some(verdict);
        Step::Done
    }

    /// Nothing has been delivered yet.
    fn reach(&mut self, answered: bool) -> Step {
        if self.tries.is_empty() || (answered && self.controls_lost < QUICK_CONTROLS) {
            let ordinary = (self.control < ORDINARY && ORDINARY < self.target).then_some(ORDINARY);
            return self.try_sizes([self.target].into_iter().chain(ordinary));
        }
        if self.controls_lost >= UNREACHABLE_CONTROLS {
            return self.finish(Verdict::Unreachable);
        }
        Step::Send((0..UNREACHABLE_ROUND).map(|round| (UNREACHABLE_GAP * round, self.control)).collect())
    }

    /// Sizes lie between what passes and what fails.
    fn narrow(&mut self, ceiling: u32, siblings: &Siblings) -> Step {
        let between = |size: &u32| self.low < *size && *size < ceiling;
        // Silent once may be loss: ask again before a size is believed to fail.
        if let Some((size, _)) = self.above().find(|(size, tries)| *size < ceiling && tries.silent == 1) {
            return self.try_sizes([size]);
        }
        let told = self.told.as_ref().and_then(|told| told.mtu_bytes);
        let known: Vec<u32> = told.iter().chain(&self.fragment).chain(&siblings.hints).copied().collect();
        let hint = known
            .iter()
            .copied()
            .find(|hint| !self.tried_hints.contains(hint) && (between(hint) || *hint == self.low));
        if let Some(hint) = hint {
            self.tried_hints.push(hint);
            let sizes: Vec<u32> = [hint, hint + 1].into_iter().filter(between).collect();
            if !sizes.is_empty() {
                return self.try_sizes(sizes);
            }
        }
        if siblings.searching {
            return Step::Await;
        }
        let untried = |size: &u32| !self.tries.contains_key(size);
        let mut sizes: Vec<u32> = sizes::common(self.low, ceiling).filter(untried).collect();
        if sizes.is_empty() {
            sizes = sizes::split(self.low, ceiling).collect();
        }
        // Where packets are lost, so may the target have been: to ask again is cheaper than to search for nothing.
        let refused = self.tries.get(&self.target).is_some_and(|tries| tries.refused > 0);
        if siblings.lossy && !refused {
            sizes.push(self.target);
        }
        self.try_sizes(sizes)
    }

    /// The control last: its answer tells that the others had their time.
    fn try_sizes(&self, sizes: impl IntoIterator<Item = u32>) -> Step {
        send(sizes.into_iter().chain([self.control]))
    }

    /// Only whether `size` really fails is left to tell: somebody said so, or loss must be excluded.
    fn edge(&mut self, size: u32) -> Step {
        let tries = self.tries.get(&size).copied().unwrap_or_default();
        if tries.refused > 0 {
            return self.finish(Verdict::TooSmall);
        }
        let explained = |more: u32| {
            let controls = self.controls_sent + self.controls_a_probe * more;
            let lost = f64::from(self.controls_lost) / f64::from(self.controls_sent.max(1));
            let lost = self.controls_lost + (lost * f64::from(self.controls_a_probe * more)).ceil() as u32;
            silence_by_loss(tries.silent + more, controls, lost)
        };
        if explained(0) <= self.false_claim {
            let said = self.told.as_ref().and_then(|told| told.mtu_bytes);
            let verdict =
                if said.is_some_and(|said| said < size) { Verdict::TooSmall } else { Verdict::BlackHole };
            return self.finish(verdict);
        }
        if tries.silent >= EDGE_MOST {
            return self.finish(Verdict::Unknown);
        }
        let rounds =
            (1..EDGE_ROUNDS).find(|more| explained(*more) <= self.false_claim).unwrap_or(EDGE_ROUNDS);
        let (control, controls_a_probe) = (self.control, self.controls_a_probe);
        let round = |round: u32| {
            let at = EDGE_GAP * round;
            let controls = (0..controls_a_probe).map(move |_| (at, control));
            std::iter::once((at, size)).chain(controls)
        };
        Step::Send((0..rounds).flat_map(round).collect())
    }
}

fn send(sizes: impl IntoIterator<Item = u32>) -> Step {
    Step::Send(sizes.into_iter().map(|size| (Duration::ZERO, size)).collect())
}
