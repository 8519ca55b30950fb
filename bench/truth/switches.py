"""Series of hosts around a switch whose effect is known, for the verdicts of `framegauge watch`.

    python -m bench.truth.switches --count 2000 --write docs/measured/switches.md

Each kind of series is a way in which figures of production differ from textbook ones: values depend on their
neighbours, days have peaks, a few values are far larger than the others, most counts are 0, events come in bursts, and
hosts change by themselves.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import signal

from framegauge.statistics import switched
from framegauge.statistics.observed import Observed, Rule, judge
from framegauge.statistics.switched import Host
from framegauge.statistics.verdict import Verdict

__all__ = ["COUNTS", "DRIFTS", "LEVELS", "MARGIN", "STEPS", "draw", "found", "spread", "worse"]

STEPS = 240  # on each side: an hour of a step of 15 s
STEP_SECONDS = 15.0
MARGIN = 0.01  # so small that it hides no wrong interval
Make = Callable[[np.random.Generator, int], np.ndarray]  # of so many hosts: hosts x steps


def _dependent(generator: np.random.Generator, hosts: int, memory: float) -> np.ndarray:
    """Normal values with variance 1, each `memory` times the one before and noise."""
    noise = generator.normal(size=(hosts, 2 * STEPS + 400))
    series: np.ndarray = signal.lfilter([math.sqrt(1 - memory**2)], [1, -memory], noise, axis=1)
    return series[:, 400:]


def _day(hosts: int) -> np.ndarray:
    """A peak that all hosts share, three times the trough."""
    return np.exp(0.55 * np.sin(np.linspace(0.5, 4.5, 2 * STEPS)))[None, :].repeat(hosts, 0)


def _zeros(generator: np.random.Generator, hosts: int, share: float, spread: float) -> np.ndarray:
    there = generator.random((hosts, 2 * STEPS)) >= share
    return there * generator.lognormal(1.0, spread, (hosts, 2 * STEPS))


LEVELS: Mapping[str, Make] = {
    "dependent": lambda generator, hosts: np.exp(0.2 * _dependent(generator, hosts, 0.9)),
    "a day's peak": lambda generator, hosts: _day(hosts) * np.exp(0.2 * _dependent(generator, hosts, 0.7)),
    "heavy tails": lambda generator, hosts: generator.pareto(2.2, (hosts, 2 * STEPS)) + 0.1,
    "most are 0": lambda generator, hosts: _zeros(generator, hosts, 0.9, 1.0),
    "unlike hosts": lambda generator, hosts: (
        generator.lognormal(0, 1, (hosts, 1)) * np.exp(0.2 * _dependent(generator, hosts, 0.5))
    ),
}
COUNTS: Mapping[str, Make] = {
    "seldom": lambda generator, hosts: generator.poisson(0.02, (hosts, 2 * STEPS)).astype(float),
    "almost never": lambda generator, hosts: generator.poisson(0.002, (hosts, 2 * STEPS)).astype(float),
    "bursts": lambda generator, hosts: np.round(_zeros(generator, hosts, 0.98, 1.2)),
    "often, with a day's peak": lambda generator, hosts: generator.poisson(2 * _day(hosts)).astype(float),
    "unlike hosts": lambda generator, hosts: generator.poisson(
        generator.gamma(1.0, 1.0, (hosts, 1)) * np.ones((1, 2 * STEPS))
    ).astype(float),
}


# Each host changes at the time of the switch by some 15 % of its own, none in the mean: only hosts can tell.
DRIFTS: Mapping[str, tuple[str, Make]] = {
    "hosts change by themselves": (
        "rate",
        lambda generator, hosts: _drifts(generator, hosts) * np.exp(0.2 * _dependent(generator, hosts, 0.5)),
    ),
    "hosts change by themselves, counted": (
        "count", lambda generator, hosts: generator.poisson(_drifts(generator, hosts)).astype(float)
    ),
}  # fmt: skip


def _drifts(generator: np.random.Generator, hosts: int) -> np.ndarray:
    after = np.arange(2 * STEPS)[None, :] >= STEPS
    found: np.ndarray = np.exp(0.15 * generator.normal(size=(hosts, 1)) * after)
    return found


def draw(make: Make, generator: np.random.Generator, hosts: int, effect: float = 1.0) -> list[Host]:
    """`hosts` that were switched and as many that were not; `effect` multiplies what the switched ones have after."""
    values = make(generator, 2 * hosts)
    return [
        Host(f"h{number}", number < hosts, row[:STEPS], row[STEPS:] * (effect if number < hosts else 1.0))
        for number, row in enumerate(values)
    ]


def _rule(kind: str) -> Rule:
    return Rule("metric", kind, higher_is_better=False, margin=MARGIN, not_worse=False)


def _verdict(hosts: Sequence[Host], kind: str, alike: bool) -> Verdict:
    return judge([Observed(_rule(kind), hosts, STEP_SECONDS, alike=alike)])[0].verdict


def worse(make: Make, kind: str, hosts: int, count: int, seed: int, alike: bool = False) -> int:
    """How many of `count` switches without an effect are called worse."""
    generator = np.random.default_rng(seed)
    return sum(_verdict(draw(make, generator, hosts), kind, alike) is Verdict.WORSE for _ in range(count))


def spread(make: Make, hosts: int, seed: int, count: int = 200) -> float:
    """The standard error of the logarithm of the effect, from so many draws."""
    generator = np.random.default_rng(seed)
    return float(np.std([math.log(switched.estimate(draw(make, generator, hosts)).value) for _ in range(count)]))


def found(make: Make, hosts: int, count: int, seed: int, alike: bool = False) -> int:
    """How many of `count` switches are called worse whose effect is three standard errors beyond the margin."""
    effect = (1 + MARGIN) * math.exp(3 * spread(make, hosts, seed))
    generator = np.random.default_rng(seed + 1)
    return sum(_verdict(draw(make, generator, hosts, effect), "rate", alike) is Verdict.WORSE for _ in range(count))


_PAGE = """\
# Verdicts on switches whose effect is known

Written by `python -m bench.truth.switches --count {count} --write docs/measured/switches.md`.

`framegauge watch` judged {count} switches of each kind: 240 steps before and after, as many hosts switched as not, and
a margin of 1 %, so small that it hides no interval that is too narrow. *Called worse* is the share of switches without
an effect that were; the promise is at most 5 %, and one half of it lies on this side. *Found* is the share of switches
that were called worse where the effect was three standard errors beyond the margin; no rule that is wrong in 2.5 % on
one side can find more than 85 %. What three hosts on a side find less than one is the price of not assuming that hosts
are alike: see the last rows, where each host changes by some 15 % of its own.

The last two columns are with `alike: true`, by which a user says that hosts are alike. In the last rows that is not so,
and it is not believed where it shows.

| series | kind | hosts on each side | called worse | found | alike: called worse | alike: found |
| --- | --- | --- | --- | --- | --- | --- |
"""


def rows(count: int) -> Iterator[str]:
    """The table, line by line."""
    every = [(name, "rate", make) for name, make in LEVELS.items()]
    every += [(name, "count", make) for name, make in COUNTS.items()]
    every += [(name, kind, make) for name, (kind, make) in DRIFTS.items()]
    for name, kind, make in every:
        for hosts in (1, 3, 6) if name not in DRIFTS else (3, 6):
            cells = []
            for alike in (False, True):
                is_said = hosts >= switched.LEAST_HOSTS or not alike  # of fewer it says nothing new
                finds = is_said and kind == "rate" and name in LEVELS
                cells.append(f"{worse(make, kind, hosts, count, 11, alike) / count:.1%}" if is_said else "")
                cells.append(f"{found(make, hosts, count, 12, alike) / count:.1%}" if finds else "")
            yield f"| {name} | {kind} | {hosts} | {' | '.join(cells)} |"


def main() -> None:
    """Prints the table, and writes the page."""
    parser = argparse.ArgumentParser(description="How often verdicts of framegauge watch are wrong, and right.")
    parser.add_argument("--count", type=int, default=2000, help="switches of each kind")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to write")
    options = parser.parse_args()
    lines = []
    for line in rows(options.count):
        print(line, flush=True)
        lines.append(line)
    if options.write is not None:
        options.write.write_text(_PAGE.format(count=options.count) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
