"""Thirty more noises, after those of an independent audit, for bench/truth/false_alarms.py.

Each gives the log values of all runs of a study without any effect. Most have one law in all arms; what one arm alone
suffers is centred, so that the ratio of geometric means is 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from bench.truth.noises import SPREAD, Draw, Noise, Order, autoregression, noise_of, normal

__all__ = ["audited"]

Shape = tuple[int, ...]


def _student(random: np.random.Generator, order: Order, degrees: float) -> np.ndarray:
    return SPREAD * random.standard_t(degrees, order.place.shape)


def _gamma(random: np.random.Generator, order: Order, shape: float, sign: float = 1.0) -> np.ndarray:
    return sign * SPREAD * (random.gamma(shape, size=order.place.shape) - shape) / math.sqrt(shape)


def _uniform(random: np.random.Generator, order: Order) -> np.ndarray:
    return SPREAD * math.sqrt(3) * random.uniform(-1, 1, order.place.shape)


def _lognormal(random: np.random.Generator, order: Order, sigma: float) -> np.ndarray:
    return SPREAD * np.exp(sigma * random.normal(size=order.place.shape))


def _ticks(random: np.random.Generator, order: Order, tick: float) -> np.ndarray:
    return np.asarray(np.round(normal(random, order) / tick) * tick)


def _bimodal(random: np.random.Generator, order: Order, share: float) -> np.ndarray:
    """4 ms, or 44 where a delayed acknowledgement waits."""
    return math.log(11) * (random.random(order.place.shape) < share) + normal(random, order)


def _outliers(random: np.random.Generator, order: Order, share: float, times: float) -> np.ndarray:
    return math.log(times) * (random.random(order.place.shape) < share) + normal(random, order)


def _ceiling(random: np.random.Generator, order: Order) -> np.ndarray:
    return np.minimum(3 * normal(random, order), SPREAD / 10) + normal(random, order) / 100


def _highest_of(random: np.random.Generator, order: Order, waits: int) -> np.ndarray:
    return np.asarray(0.5 * random.normal(size=(*order.place.shape, waits)).max(axis=-1))


def _near_zero(random: np.random.Generator, order: Order) -> np.ndarray:
    """A cost less that of an idle host: now and then nearly nothing is left."""
    return np.asarray(np.log(np.maximum(1 + 0.4 * random.normal(size=order.place.shape), 0.02)))


def _counts(random: np.random.Generator, order: Order, mean: float) -> np.ndarray:
    return np.asarray(np.log(random.poisson(mean, order.place.shape) + 1.0))


def _shocks(random: np.random.Generator, order: Order) -> np.ndarray:
    hit = random.random((len(order.place), 1, 1)) < 0.2
    return normal(random, order) + np.where(hit, random.normal(0, 0.2, hit.shape), 0.0)


def _turning(random: np.random.Generator, order: Order) -> np.ndarray:
    half = order.place.size / 2
    return normal(random, order) + 10 * SPREAD * np.abs(order.place - half) / half


def _warming(random: np.random.Generator, order: Order) -> np.ndarray:
    return normal(random, order) - 10 * SPREAD * np.exp(-order.place / 4)


def _growing(random: np.random.Generator, order: Order) -> np.ndarray:
    return normal(random, order) * (0.2 + 2 * order.place / order.place.size)


def _stepping(random: np.random.Generator, order: Order) -> np.ndarray:
    return normal(random, order) + 5 * SPREAD * (order.place > random.integers(order.place.size))


def _day(random: np.random.Generator, order: Order) -> np.ndarray:
    return normal(random, order) + 5 * SPREAD * np.sin(2 * math.pi * (order.place / order.place.size + random.random()))


def _regressive(random: np.random.Generator, order: Order, memory: float) -> np.ndarray:
    return autoregression(random, order.place.size, memory, SPREAD)[order.place]


def _regimes(random: np.random.Generator, order: Order) -> np.ndarray:
    """Two states, each of which lasts for ten runs on average."""
    state = np.cumsum(random.random(order.place.size) < 0.1) % 2
    return normal(random, order) + 5 * SPREAD * state[order.place]


def _every(random: np.random.Generator, order: Order, runs: float) -> np.ndarray:
    """A job at regular times slows the run that it meets."""
    return normal(random, order) - 5 * SPREAD * ((order.place / runs + random.random()) % 1 < 1 / runs)


def _after_treated(random: np.random.Generator, order: Order) -> np.ndarray:
    """What comes after a treated run is slower, as after one that leaves a warm cache to the others."""
    treated = np.zeros(order.place.size, bool)
    treated[order.place[:, :, -1].ravel()] = True
    return normal(random, order) - 3 * SPREAD * np.concatenate([[False], treated[:-1]])[order.place]


def _treated(random: np.random.Generator, order: Order, of_treated: Draw) -> np.ndarray:
    logs = normal(random, order)
    logs[:, :, -1] = of_treated(random, order)[:, :, -1]
    return logs


def _wider(random: np.random.Generator, order: Order) -> np.ndarray:
    return 10 * normal(random, order)


def _without_lowest(random: np.random.Generator, order: Order) -> np.ndarray:
    """The lowest fifth of the treated runs is lost, and others are run in their place."""
    logs = normal(random, order)
    treated = logs[:, :, -1]
    while (low := treated < -0.8416 * SPREAD).any():
        treated[low] = random.normal(0, SPREAD, int(low.sum()))
    return logs


def audited() -> Mapping[str, Noise]:
    """By name; `one_sided` and `dependent` as bench/truth/noises.py has them."""
    alike: dict[str, tuple[str, Draw]] = {
        "t, 1.5": ("Student's t with 1.5 degrees of freedom", partial(_student, degrees=1.5)),
        "t, 2": ("the same with 2", partial(_student, degrees=2.0)),
        "t, 5": ("the same with 5", partial(_student, degrees=5.0)),
        "exponential": ("skewed to high values", partial(_gamma, shape=1.0)),
        "exponential, low": ("skewed to low values", partial(_gamma, shape=1.0, sign=-1.0)),
        "gamma, 4": ("mildly skewed", partial(_gamma, shape=4.0)),
        "uniform": ("flat", _uniform),
        "lognormal, 1": ("very skewed", partial(_lognormal, sigma=1.0)),
        "ticks, 1 sd": ("rounded to one spread", partial(_ticks, tick=SPREAD)),
        "ticks, 3 sd": ("rounded to three", partial(_ticks, tick=3 * SPREAD)),
        "bimodal, 10 %": ("44 instead of 4 ms in a tenth of the runs", partial(_bimodal, share=0.1)),
        "bimodal, 50 %": ("in half of them", partial(_bimodal, share=0.5)),
        "outliers, x50": ("50 times as much in 1 % of the runs", partial(_outliers, share=0.01, times=50.0)),
        "outliers, x2": ("twice as much in 5 %", partial(_outliers, share=0.05, times=2.0)),
        "ceiling": ("cut off at a limit", _ceiling),
        "highest of 20": ("p99 of 20 waits", partial(_highest_of, waits=20)),
        "near zero": ("a difference that is now and then nearly 0", _near_zero),
        "counts, 3": ("one more than Poisson's 3", partial(_counts, mean=3.0)),
        "shocks": ("a fifth of the blocks is off by 20 %", _shocks),
        "turning": ("drifts ten spreads down and up again", _turning),
        "warming": ("the first runs are up to ten spreads low", _warming),
        "growing": ("eleven times as noisy at the end", _growing),
        "day": ("one slow wave over the study, five spreads high", _day),
    }  # fmt: skip
    depending: dict[str, tuple[str, Draw]] = {
        "memory, 0.5": ("autoregression over the order of runs, 0.5", partial(_regressive, memory=0.5)),
        "memory, 0.8": ("the same, 0.8", partial(_regressive, memory=0.8)),
        "regimes": ("two states, five spreads apart, of ten runs on average", _regimes),
        "step": ("a step of five spreads at any run", _stepping),
        "every 4th run": ("a job slows every fourth run by five spreads", partial(_every, runs=4.0)),
        "carry-over": ("a run after a treated one is three spreads low", _after_treated),
    }  # fmt: skip
    skewed = partial(_gamma, shape=1.0)
    one_arm: dict[str, tuple[str, Draw]] = {
        "treated, exponential": ("the treated arm alone is skewed", partial(_treated, of_treated=skewed)),
        "treated, lowest lost": ("the lowest fifth of the treated runs is replaced", _without_lowest),
    }  # fmt: skip
    wider = noise_of("treated, sd x10", "the treated arm is ten times as noisy", partial(_treated, of_treated=_wider))
    found = [
        *(noise_of(name, *each) for name, each in alike.items()), wider,
        *(noise_of(name, *each, dependent=True) for name, each in depending.items()),
        *(noise_of(name, *each, one_sided=True) for name, each in one_arm.items()),
    ]  # fmt: skip
    return {each.name: each for each in found}
