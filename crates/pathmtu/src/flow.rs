//! The search on one flow: which sizes to send next, from what is known of those before.
//!
//! | known so far | next |
//! | --- | --- |
//! | nothing delivered | target, 1500 and a control; then controls, until one is answered |
//! | no control answered | controls of one flow alone, slowly; then *unreachable* |
//! | target delivered | done: *carries the target* |
//! | target silent once | once more, beside a control |
//! | a size fails, others between | who was told or what a sibling found; the common MTUs; then a 16-way split |
//! | `low` delivered, `low + 1` refused by somebody | done: *too small* |
//! | `low` delivered, `low + 1` silent | both again, in random order, until size alone explains it: *black hole* |
//!
//! A size fails when it was refused, or silent twice and never delivered. That is a guess to search by; only the edge is
//! claimed, and only by what was sent since it is one ([`Rounds`]).

use crate::claim::silence_by_loss;
use crate::config::Config;
use crate::random::Random;
use crate::rounds::Rounds;
use crate::sizes;
use crate::steps::{Planned, Siblings, Step, send};
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
/// Rounds at the edge lie this far apart, so that one burst of loss does not strike all.
const EDGE_GAP: Duration = Duration::from_millis(2);
/// Rounds at the edge in one go.
const EDGE_ROUNDS: u32 = 48;
/// Sizes that may be taken for the edge of a flow before one is: each could have been lost by chance.
const EDGES_TRIED: f64 = 64.0;
/// Different sizes, or tellers, that are remembered.
const MOST_TOLD: usize = 8;
/// Silent so often, and something else might still explain it: could not tell.
const EDGE_MOST: u32 = 160;

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
    /// The chance that the claim of this flow is wrong, if losses do not depend on each other.
    false_claim: f64,
    /// The chance that the path has no such limit at all, however they do.
    false_limit: f64,
    controls_a_probe: u32,
    /// The largest size delivered; 0 if none was.
    low: u32,
    tries: BTreeMap<u32, Tries>,
    rounds: Rounds,
    random: Random,
    /// An edge turned out to be none.
    doubted: bool,
    pub(crate) controls_sent: u32,
    pub(crate) controls_lost: u32,
    /// What was said of this flow, each once.
    told: Vec<Told>,
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
    pub(crate) fn new(config: &Config, control: u32, index: u16) -> Flow {
        Flow {
            target: config.target,
            control,
            exact: config.exact,
            false_claim: config.false_claim / EDGES_TRIED,
            false_limit: config.false_claim * f64::from(config.flows) / EDGES_TRIED,
            controls_a_probe: config.controls_a_probe.max(1),
            low: 0,
            tries: BTreeMap::new(),
            rounds: Rounds::default(),
            random: Random(config.seed ^ u64::from(index).rotate_right(16)),
            doubted: false,
            controls_sent: 0,
            controls_lost: 0,
            told: Vec::new(),
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

    /// The size at its edge, and the logarithm of the chance that it is lost there by chance; none if it has no edge.
    pub(crate) fn edge_chance(&self) -> Option<(u32, f64)> {
        (self.rounds.size() > 0).then(|| (self.rounds.size(), self.rounds.ln_chance()))
    }

    /// Forgets what was silent: it will be asked again, more slowly.
    pub(crate) fn forget_silence(&mut self) {
        self.tries.values_mut().for_each(|tries| tries.silent = 0);
        self.tries.retain(|_, tries| tries.refused > 0 || tries.delivered > 0);
        self.rounds.forget();
        self.tried_hints.clear();
        self.doubted = false;
        if self.verdict == Some(Verdict::Unreachable) {
            self.verdict = None;
        }
    }

    /// Whether there is nothing more to find out by asking for the target.
    pub(crate) fn is_settled(&self) -> bool {
        self.verdict.is_some() || self.low >= self.target || self.tries_refused(self.target)
    }

    fn tries_refused(&self, size: u32) -> bool {
        self.tries.get(&size).is_some_and(|tries| tries.refused > 0)
    }

    /// Whether packets of this size are known to pass, so that one that is lost was not lost because of its size.
    pub(crate) fn passes(&self, size: u32) -> bool {
        size <= self.low.max(self.control)
    }

    pub(crate) fn on_delivered(&mut self, size: u32, round: Option<u32>) {
        if let Some(round) = round {
            self.rounds.on_answered(round);
        }
        if size == self.rounds.size() {
            self.doubted = true;
        }
        if size >= self.rounds.size() {
            self.rounds.forget();
        }
        self.tries.entry(size).or_default().delivered += 1;
        self.low = self.low.max(size);
        // A late answer takes a claim back.
        if self.verdict.is_some_and(|verdict| verdict != Verdict::CarriesTarget) {
            self.verdict = None;
        }
    }

    /// An answer that came after its probe had been given up.
    pub(crate) fn on_late(&mut self, size: u32, round: Option<u32>) {
        if size == self.control {
            self.controls_lost = self.controls_lost.saturating_sub(1);
        }
        if let Some(round) = round.filter(|_| size < self.rounds.size()) {
            self.rounds.on_late_twin(round);
        }
        if let Some(tries) = self.tries.get_mut(&size) {
            tries.silent = tries.silent.saturating_sub(1);
        }
        self.on_delivered(size, None);
    }

    pub(crate) fn on_refused(&mut self, size: u32, refusal: Told) {
        self.tries.entry(size).or_default().refused += 1;
        if !self.told.contains(&refusal) && self.told.len() < MOST_TOLD {
            self.told.push(refusal);
        }
    }

    /// The smallest MTU that was said and that no larger packet has disproved, and the smallest that one has.
    pub(crate) fn told(&self) -> (Option<Told>, Option<Told>) {
        let size = |refusal: &&Told| refusal.mtu_bytes.unwrap_or(u32::MAX);
        let is_false = |refusal: &&Told| size(refusal) < self.low;
        let credible = self.told.iter().filter(|refusal| !is_false(refusal)).min_by_key(size);
        (credible.copied(), self.told.iter().filter(is_false).min_by_key(size).copied())
    }

    /// It arrived, but in pieces: somebody on the way carries no more than these, and has not said so.
    pub(crate) fn on_fragments(&mut self, size: u32, fragment: u32) {
        self.tries.entry(size).or_default().refused += 1;
        self.fragment = Some(self.fragment.map_or(fragment, |known| known.min(fragment)));
    }

    pub(crate) fn on_silent(&mut self, size: u32, round: Option<u32>) {
        if size == self.control {
            self.controls_lost += 1;
        }
        if let Some(round) = round {
            self.rounds.on_silent(round, size);
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
        if self.doubted && !siblings.asked_slowly {
            return Step::Doubt;
        }
        if self.low == 0 {
            return self.reach(siblings);
        }
        let Some(ceiling) = self.ceiling() else {
            return self.try_sizes([self.target]);
        };
        // Silence proves nothing but beside packets of nearly the same size: then the edge is searched for in any case.
        if ceiling == self.low + 1 || (!self.exact && self.tries_refused(ceiling)) {
            return self.edge(ceiling, siblings);
        }
        self.narrow(ceiling, siblings)
    }

    fn finish(&mut self, verdict: Verdict) -> Step {
        self.verdict = Some(verdict);
        Step::Done
    }

    /// Nothing has been delivered yet.
    fn reach(&mut self, siblings: &Siblings) -> Step {
        if self.tries.is_empty() || (siblings.answered && self.controls_lost < QUICK_CONTROLS) {
            let ordinary = (self.control < ORDINARY && ORDINARY < self.target).then_some(ORDINARY);
            return self.try_sizes([self.target].into_iter().chain(ordinary));
        }
        if self.controls_lost >= UNREACHABLE_CONTROLS {
            if !siblings.answered && !siblings.asked_alone {
                return Step::Alone;
            }
            // What is lost of all that its siblings send may be lost of its own.
            let (sent, lost) = (siblings.controls.sent, siblings.controls.lost);
            let (sent, lost) = (sent - self.controls_sent, lost - self.controls_lost);
            let is_loss =
                siblings.answered && silence_by_loss(self.controls_lost, sent, lost) > self.false_claim;
            return self.finish(if is_loss { Verdict::Unknown } else { Verdict::Unreachable });
        }
        let control = |round| Planned { after: UNREACHABLE_GAP * round, bytes: self.control, round: None };
        Step::Send((0..UNREACHABLE_ROUND).map(control).collect())
    }

    /// Sizes lie between what passes and what fails.
    fn narrow(&mut self, ceiling: u32, siblings: &Siblings) -> Step {
        let between = |size: &u32| self.low < *size && *size < ceiling;
        // Silent once may be loss: ask again before a size is believed to fail.
        if let Some((size, _)) = self.above().find(|(size, tries)| *size < ceiling && tries.silent == 1) {
            return self.try_sizes([size]);
        }
        let advice: Vec<u32> = self.told.iter().filter_map(|advice| advice.mtu_bytes).collect();
        let known: Vec<u32> = advice.iter().chain(&self.fragment).chain(&siblings.hints).copied().collect();
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
        if siblings.lossy && !self.tries_refused(self.target) {
            sizes.push(self.target);
        }
        self.try_sizes(sizes)
    }

    /// The control last: its answer tells that the others had their time.
    fn try_sizes(&self, sizes: impl IntoIterator<Item = u32>) -> Step {
        send(sizes.into_iter().chain([self.control]))
    }

    /// Only whether `size` really fails is left to tell: somebody said so, or size alone must explain that it is lost.
    fn edge(&mut self, size: u32, siblings: &Siblings) -> Step {
        if self.tries_refused(size) {
            return self.finish(Verdict::TooSmall);
        }
        self.rounds.of(size);
        let beside = self.controls_a_probe;
        let (twins, lost) = self.rounds.twins();
        let silent = self.rounds.silent();
        let explained = |more: u32| {
            let likely = f64::from(lost) / f64::from(twins.max(1)) * f64::from(beside * more);
            silence_by_loss(silent + more, twins + beside * more, lost + likely.ceil() as u32)
        };
        // What siblings have seen at the same edge tells of the path as well.
        let of_path = siblings.chances.get(&size).copied().unwrap_or_default().min(self.rounds.ln_chance());
        if explained(0) <= self.false_claim && of_path <= self.false_limit.ln() {
            let mtu = self.told().0.and_then(|refusal| refusal.mtu_bytes);
            let verdict =
                if mtu.is_some_and(|mtu| mtu < size) { Verdict::TooSmall } else { Verdict::BlackHole };
            return self.finish(verdict);
        }
        if silent >= EDGE_MOST {
            return if siblings.asked_slowly { self.finish(Verdict::Unknown) } else { Step::Doubt };
        }
        let of_flow = (0..EDGE_ROUNDS).find(|more| explained(*more) <= self.false_claim);
        let rounds = match of_flow {
            Some(0) => ((of_path - self.false_limit.ln()) / f64::from(beside + 1).ln()).ceil() as u32,
            more => more.unwrap_or(EDGE_ROUNDS),
        };
        Step::Send((0..rounds.clamp(1, EDGE_ROUNDS)).flat_map(|round| self.round(round, size)).collect())
    }

    /// One round at the edge: the packet of `size` at a place among its twins that nothing on the way can foresee.
    fn round(&mut self, index: u32, size: u32) -> Vec<Planned> {
        let gap = EDGE_GAP.as_nanos() as u64;
        let after = EDGE_GAP * index + Duration::from_nanos(self.random.below(gap));
        let round = Some(self.rounds.begin(self.controls_a_probe));
        let mut sizes = vec![self.low; self.controls_a_probe as usize];
        sizes.insert(self.random.below(u64::from(self.controls_a_probe) + 1) as usize, size);
        sizes.into_iter().map(|bytes| Planned { after, bytes, round }).collect()
    }
}
