"""The noise of synthetic studies whose truth is known, for bench/truth/calibration.py.

Each noise gives the log values of all runs of a study, with the true effect in the treated arm. Some are formulas of
ours; some are those with which an independent audit found the rules wrong; some are resampled from real studies on the
rack (bench/truth/noise.json: log values of three equal arms about their means, in the order of their blocks; four
blocks in a row are taken together, so that what follows one another still does, and the arms are swapped at random).
Two more are simulated from the definitions of skewed metrics: a p99 of 1,000 waits, and Jain's index of four flows.

It is longer than other files because it is one list of noises, with what draws them.

Every noise has mean 0 in logarithms in every arm, so that the true ratio of the geometric means is exactly the effect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from scipy import signal, special

from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study

__all__ = [
    "NOISE", "SPREAD", "Draw", "Noise", "Order", "autoregression", "metrics", "noise_of", "noises", "normal",
    "spread_of", "tool_order",
]  # fmt: skip

NOISE = Path(__file__).resolve().parent / "noise.json"
SPREAD = 0.01  # of one run's log value, where a formula gives the noise
RUN_LENGTH = 4  # blocks in a row that are resampled together
EDGE = 1.5  # the margin, in spreads of the log ratio of two runs
WAITS, RANK = 1000, 990  # p99: the nearest rank, as workloads.rr has it
PERIODS = (0.55, 0.67, 0.75, 1.33, 1.5, 1.75, 2, 2.5, 3, 5)  # blocks
FLOWS, UNEVEN = 4, 0.2  # of fairness: the flows of a run, and the spread of the logarithms of their shares
STUDY = """
testbed: {kind: fake}
factors: {mtu: {levels: [1500, 9000]}, rtt: {levels: [%s]}}
workloads: [{stream: {size: 10 MB}}]
"""


@dataclass(frozen=True)
class Order:
    """When each run of a study runs. `names` and `roles` are those of its arms: baseline, control (if it has one),
    treatment, so that the last arm is the treated one.

    `place` is the place of each run among all, from 0: blocks x cells x arms.
    """

    place: np.ndarray
    names: Sequence[str]
    roles: Sequence[str]

    @property
    def position(self) -> np.ndarray:
        """The place of each run among those of its cell and block, from 0: blocks x cells x arms."""
        return self.place.argsort(axis=2).argsort(axis=2)


@lru_cache(maxsize=32)
def _study(cells: int, blocks: int, control: bool) -> Study:
    text = STUDY % ", ".join(f"{each} ms" for each in range(1, cells + 1))
    return study_file.parse(text, "bench/truth/noises.py").model_copy(update={"blocks": blocks, "control": control})


@lru_cache(maxsize=20_000)
def tool_order(cells: int, blocks: int, control: bool, seed: int) -> Order:
    """The order in which the tool itself would run a study with this seed."""
    study = _study(cells, blocks, control).model_copy(update={"seed": seed})
    slots = [slot for block in range(blocks) for slot in block_order(study, block)]
    roles = {slot.arm.name: str(slot.arm.role) for slot in slots}
    names = sorted(roles, key=lambda name: ("baseline", "control", "treatment").index(roles[name]))
    place = np.zeros((blocks, cells, len(names)), dtype=int)
    for number, slot in enumerate(slots):
        place[slot.block, slot.cell.index, names.index(slot.arm.name)] = number
    return Order(place, names, [roles[name] for name in names])


Draw = Callable[[np.random.Generator, Order], np.ndarray]  # the noise alone: log values, blocks x cells x arms
Values = Callable[[np.random.Generator, Order, np.ndarray], np.ndarray]  # with the effect (log) of each cell


@dataclass(frozen=True)
class Noise:
    """A kind of noise. `what` describes it for the page. `one_sided`: the treated arm's noise has another shape than
    that of the other arms, or is skewed and of another width, so that no guarantee is possible from few blocks.
    `dependent`: runs resemble the ones before, or some of them, which the intervals assume they do not. `edge`: the
    margin as a log ratio.
    """

    name: str
    what: str
    values: Values
    edge: float
    metric: str = "goodput"
    one_sided: bool = False
    only_worse: bool = False  # the metric has no room for an improvement
    dependent: bool = False

    @property
    def guaranteed(self) -> bool:
        """Whether the rules promise anything about it."""
        return not self.one_sided and not self.dependent

    @property
    def margin(self) -> float:
        """As a study would state it."""
        return math.expm1(self.edge)


def _added(draw: Draw) -> Values:
    def values(random: np.random.Generator, order: Order, effects: np.ndarray) -> np.ndarray:
        logs = draw(random, order)
        logs[:, :, -1] += effects
        return logs

    return values


def noise_of(
    name: str,
    what: str,
    draw: Draw,
    edge: float | None = None,
    one_sided: bool = False,
    metric: str = "goodput",
    dependent: bool = False,
) -> Noise:
    """A noise to which the effect is added; without an `edge` the margin is EDGE spreads."""
    values = _added(draw)
    return Noise(name, what, values, edge or EDGE * spread_of(values), metric, one_sided, dependent=dependent)


def spread_of(values: Values) -> float:
    """Robust standard deviation of the log ratio of two runs of a block (from the median absolute deviation)."""
    order = tool_order(1, 200, True, 0)
    random = np.random.default_rng(1)
    logs = np.concatenate([values(random, order, np.zeros(1)) for _ in range(20)])
    ratios = logs[:, 0, -1] - logs[:, 0, 0]
    # Where most values are equal there is no such deviation.
    return float(1.4826 * np.median(np.abs(ratios - np.median(ratios)))) or float(ratios.std())


# --- the same in all arms


def normal(random: np.random.Generator, order: Order) -> np.ndarray:
    return random.normal(0, SPREAD, order.place.shape)


def drifting(random: np.random.Generator, order: Order) -> np.ndarray:
    runs = order.place.size
    way = 20 * SPREAD * np.arange(runs) / runs + np.cumsum(random.normal(0, SPREAD / 2, runs))
    return (way + random.normal(0, SPREAD, runs))[order.place]


def autoregression(random: np.random.Generator, runs: int, memory: float, spread: float) -> np.ndarray:
    """From a stationary start; `spread` is that of a run."""
    shocks = random.normal(0, spread, runs)
    shocks[1:] *= math.sqrt(1 - memory * memory)
    return np.asarray(signal.lfilter([1.0], [1.0, -memory], shocks))


def correlated(random: np.random.Generator, order: Order) -> np.ndarray:
    return autoregression(random, order.place.size, 0.7, 1.4 * SPREAD)[order.place]


def heavy_tails(random: np.random.Generator, order: Order) -> np.ndarray:
    return SPREAD * random.standard_t(3, order.place.shape)


def bursts(random: np.random.Generator, order: Order) -> np.ndarray:
    hit = random.random(order.place.shape) < 0.1
    disturbed = hit * random.exponential(5 * SPREAD, order.place.shape) - 0.5 * SPREAD
    return normal(random, order) + disturbed


def _lognormal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Skewed to low values, as lognormal as a logarithm can be: mean 0, standard deviation SPREAD."""
    sigma = 0.6
    mean = math.exp(sigma * sigma / 2)
    deviation = mean * math.sqrt(math.expm1(sigma * sigma))
    return -SPREAD * (np.exp(sigma * random.normal(size=shape)) - mean) / deviation


def _stalls(random: np.random.Generator, shape: tuple[int, ...], share: float, depth: float) -> np.ndarray:
    """A share of runs is low by `depth`; centred, so that the mean of logarithms stays 0."""
    low = math.log1p(-depth)
    return low * (random.random(shape) < share) - share * low


def heavy(random: np.random.Generator, order: Order) -> np.ndarray:
    shape = order.place.shape
    return _lognormal(random, shape) + _stalls(random, shape, 0.05, 0.1)


def block_effect(random: np.random.Generator, order: Order) -> np.ndarray:
    return normal(random, order) + random.normal(0, 5 * SPREAD, (len(order.place), 1, 1))


def resampled(series: Sequence[Sequence[Sequence[float]]]) -> Draw:
    """From real studies: each a list of blocks, each block the log values of three arms."""
    real = [np.asarray(each, dtype=float) for each in series]

    def cell(random: np.random.Generator, blocks: int, arms: int) -> np.ndarray:
        source = real[random.integers(len(real))]
        starts = random.integers(len(source) - RUN_LENGTH + 1, size=-(-blocks // RUN_LENGTH))
        pieces = source[(starts[:, None] + np.arange(RUN_LENGTH)).ravel()[:blocks]]
        return random.permuted(pieces, axis=1)[:, :arms]

    def draw(random: np.random.Generator, order: Order) -> np.ndarray:
        blocks, cells, arms = order.place.shape
        return np.stack([cell(random, blocks, arms) for _ in range(cells)], axis=1)

    return draw


# --- what depends on when a run runs


def arstep(random: np.random.Generator, order: Order) -> np.ndarray:
    runs = order.place.size
    # One run after the middle: within a block, where it does harm.
    step = math.log1p(0.05) * (np.arange(runs) > runs // 2)
    return (autoregression(random, runs, 0.8, SPREAD) + step)[order.place]


def periodic(random: np.random.Generator, order: Order, blocks: float) -> np.ndarray:
    """A wave of so many blocks, five spreads high, at any time of its period."""
    place = order.place / (blocks * order.place[0].size) + random.uniform()
    return normal(random, order) + 5 * SPREAD * np.sin(2 * math.pi * place)


def first_slower(random: np.random.Generator, order: Order, slower: float, spread: float) -> np.ndarray:
    return random.normal(0, spread, order.place.shape) + math.log1p(-slower) * (order.position == 0)


# --- another noise in the treated arm


def unequal(random: np.random.Generator, order: Order, variance: float) -> np.ndarray:
    logs = normal(random, order)
    logs[:, :, -1] *= math.sqrt(variance)
    return logs


def skew1(random: np.random.Generator, order: Order) -> np.ndarray:
    logs = normal(random, order)
    logs[:, :, -1] = _lognormal(random, logs.shape[:2])
    return logs


def skewed_alone(random: np.random.Generator, order: Order, arms: slice) -> np.ndarray:
    """These arms skewed, and the others three times quieter: nothing of the others is in the log ratio's shape."""
    logs = 0.3 * normal(random, order)
    logs[:, :, arms] = _lognormal(random, logs[:, :, arms].shape)
    return logs


def wider_alone(random: np.random.Generator, order: Order, times: float, stalls: bool) -> np.ndarray:
    """Skewed in all arms, and the treated one so many times as wide: what is left of it is in the log ratio."""
    shape = order.place.shape
    logs = (_stalls(random, shape, 0.2, 0.02) if stalls else _lognormal(random, shape)) + 0.2 * normal(random, order)
    logs[:, :, -1] *= times
    return logs


def stalls1(random: np.random.Generator, order: Order, share: float, depth: float, spread: float) -> np.ndarray:
    logs = random.normal(0, spread, order.place.shape)
    logs[:, :, -1] += _stalls(random, logs.shape[:2], share, depth)
    return logs


def noises() -> dict[str, Noise]:
    """By name: the formulas, and one for each metric of the real studies."""
    rack = json.loads(NOISE.read_text())["series"]
    quiet = math.log(1.01)
    stalls = (
        ("heavy1", "5 % of the treated runs are 10 % low", 0.05, 0.1, SPREAD, None),
        ("stall1", "10 % of the treated runs are 20 % low", 0.1, 0.2, SPREAD, None),
        ("quiet5", "5 % of the treated runs are 10 % low, others repeat to 0.3 %", 0.05, 0.1, 0.003, quiet),
        ("quiet10", "10 % of the treated runs are 10 % low, others repeat to 0.3 %", 0.1, 0.1, 0.003, quiet),
    )
    one_sided = [
        noise_of("skew1", "the treated arm alone is skewed to low values (lognormal, 0.6)", skew1, one_sided=True),
        noise_of("skew1, quiet", "the same, and the runs of other arms repeat to 0.3 %",
               partial(skewed_alone, arms=slice(-1, None)), quiet, one_sided=True),
        noise_of("skew0, quiet", "the other way round: baseline and control are skewed, the treated arm is quiet",
               partial(skewed_alone, arms=slice(0, -1)), quiet, one_sided=True),
        noise_of("skewed, wider",
               "all arms are skewed to low values (lognormal, 0.6), the treated one four times as much",
               partial(wider_alone, times=4.0, stalls=False), one_sided=True),
        noise_of("stalls, wider", "a fifth of all runs is low, of the treated arm three times as much",
               partial(wider_alone, times=3.0, stalls=True), one_sided=True),
        *(
            noise_of(name, what, partial(stalls1, share=share, depth=depth, spread=spread), edge, one_sided=True)
            for name, what, share, depth, spread, edge in stalls
        ),
    ]  # fmt: skip
    found = [
        noise_of("normal", "independent", normal),
        noise_of("drifting", "20 spreads slower from beginning to end, and wandering", drifting),
        replace(noise_of("correlated", "each run resembles the one before (autoregression, 0.7)", correlated),
                dependent=True),
        noise_of("heavy tails", "Student's t with 3 degrees of freedom", heavy_tails),
        noise_of("bursts", "one run in ten is disturbed, to the same side in all arms", bursts),
        *(noise_of(f"rack: {metric.replace('_', ' ')}", "resampled from real studies", resampled(series), metric=metric)
          for metric, series in rack.items()),
        noise_of("heavy", "lognormal tail, and 5 % of runs 10 % low, in all arms", heavy),
        replace(noise_of("arstep", "autoregression (0.8) over the order of runs, and a step of 5 % in the middle",
                       arstep), dependent=True),
        noise_of("var4", "the variance of the treated arm is 4-fold", partial(unequal, variance=4.0)),
        noise_of("var16", "the variance of the treated arm is 16-fold", partial(unequal, variance=16.0)),
        noise_of("block", "an effect of the block on all its runs, five spreads large", block_effect),
        noise_of("pos", "the first run of a cell in a block is 1 % slower; runs repeat to 0.4 %",
               partial(first_slower, slower=0.01, spread=0.004), math.log(1.01)),
        noise_of("poslow", "the first run is 3 % slower; runs repeat to 0.1 %",
               partial(first_slower, slower=0.03, spread=0.001), math.log(1.02)),
        *(replace(noise_of(f"period {blocks}", f"a wave of {blocks} blocks, five spreads high",
                         partial(periodic, blocks=blocks)), dependent=True) for blocks in PERIODS),
        *one_sided,
    ]  # fmt: skip
    return {each.name: each for each in found}


# --- metrics by their definitions


def _as_time(noise: Noise) -> Noise:
    """Of transfers that take the longer the less goodput they have."""

    def values(random: np.random.Generator, order: Order, effects: np.ndarray) -> np.ndarray:
        return -noise.values(random, order, -effects)

    return replace(noise, name=f"completion time, {noise.name}", values=values, metric="completion_time")


def _quantiles(log_sd: float, slow: float, levels: np.ndarray) -> np.ndarray:
    """The logarithms of quantiles of waits: lognormal, a share of which (`slow`) is five times as long."""
    if not slow:
        return np.asarray(log_sd * special.ndtri(levels))
    grid = np.linspace(0, math.log(5) + 6 * log_sd, 4000)
    below = (1 - slow) * special.ndtr(grid / log_sd) + slow * special.ndtr((grid - math.log(5)) / log_sd)
    return np.interp(levels, below, grid)


def latency_p99(name: str, what: str, log_sd: float, slow: float = 0.0, one_sided: bool = True) -> Noise:
    """p99 of 1,000 independent waits; `log_sd` and `slow` are those of the treated arm.

    The order statistic is drawn as what it is: the quantile at a level that is Beta(990, 11).
    """
    even = special.betaincinv(RANK, WAITS + 1 - RANK, (np.arange(20_000) + 0.5) / 20_000)
    means = [float(_quantiles(*each, even).mean()) for each in ((0.5, 0.0), (log_sd, slow))]

    def draw(random: np.random.Generator, order: Order) -> np.ndarray:
        levels = random.beta(RANK, WAITS + 1 - RANK, order.place.shape)
        logs = _quantiles(0.5, 0.0, levels) - means[0]
        logs[:, :, -1] = _quantiles(log_sd, slow, levels[:, :, -1]) - means[1]
        return logs

    values = _added(draw)
    return Noise(name, what, values, EDGE * spread_of(values), "latency_p99", one_sided)


def _jain(rates: np.ndarray) -> np.ndarray:
    """The logarithm of Jain's index over the last axis."""
    return np.asarray(np.log(rates.sum(axis=-1) ** 2 / (rates.shape[-1] * np.square(rates).sum(axis=-1))))


@lru_cache(maxsize=4)
def _unevenness(varying: int) -> tuple[np.ndarray, np.ndarray]:
    """Spreads of the logarithms of the shares of so many flows, and the mean log index that each gives."""
    sample, spreads = np.random.default_rng(1).normal(size=(100_000, FLOWS)), np.linspace(0.02, 2.0, 60)
    sample[:, varying:] = 0
    return spreads, np.array([_jain(np.exp(each * sample)).mean() for each in spreads])


def fairness(name: str, what: str, varying: int) -> Noise:
    """Jain's index of four flows, all of which vary; in the treated arm so many. An effect is a larger spread there."""

    def values(random: np.random.Generator, order: Order, effects: np.ndarray) -> np.ndarray:
        usual = np.interp(UNEVEN, *_unevenness(FLOWS))
        spreads, means = _unevenness(varying)
        wanted = np.interp(-(usual + effects), -means, spreads)  # the mean falls as the spread grows
        logs = UNEVEN * random.normal(size=(*order.place.shape, FLOWS))
        logs[:, :, -1, :varying] *= wanted[:, None] / UNEVEN
        logs[:, :, -1, varying:] = 0
        return _jain(np.exp(logs))

    return Noise(name, what, values, EDGE * spread_of(values), "fairness", varying < FLOWS, only_worse=True)


def metrics() -> Mapping[str, Noise]:
    """By name: noise of metrics other than goodput."""
    known = noises()
    time = [_as_time(known[name]) for name in ("normal", "heavy", "skew1")]
    found = [
        *time,
        latency_p99("p99, alike", "p99 of 1,000 lognormal waits (0.5) in every arm", 0.5, one_sided=False),
        latency_p99("p99, wider", "those of the treated arm spread twice as much (1.0)", 1.0),
        latency_p99("p99, cliff", "0.9 % of the treated waits are five times as long, so p99 jumps", 0.5, 0.009),
        fairness("fairness, alike", "Jain's index of four flows whose shares vary", FLOWS),
        fairness("fairness, one flow", "in the treated arm one flow alone varies", 1),
    ]
    return {each.name: each for each in found}
