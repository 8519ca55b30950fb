"""Series of hosts around a switch whose effect is known, for the verdicts of `framegauge watch`.

    python -m bench.truth.switches --count 2000 --write docs/measured/switches.md

Each kind of series is a way in which figures of production differ from textbook ones: values depend on their
neighbours, days have peaks, a few values are far larger than the others, most counts are 0, events come in bursts, all
hosts share a cycle, what is compared remembers for minutes and is looked at again and again, and hosts change by
themselves.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy import signal

from framegauge.statistics import switched
from framegauge.statistics.observed import Observed, Rule, judge
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.switched import Host
from framegauge.statistics.verdict import Verdict
from framegauge.watch.run import LOOKS, level_at

__all__ = [
    "COUNTS", "DRIFTS", "LEVELS", "MARGIN", "SLOW", "STEPS", "TOO_SLOW", "draw", "ever_worse", "found", "found_more",
    "spread", "worse",
]  # fmt: skip

STEPS = 240  # on each side: an hour of a step of 15 s
STEP_SECONDS = 15.0
MARGIN = 0.01  # so small that it hides no wrong interval
MORE = (1.6, 3.0)  # times as many events, which ought to be found
MINUTE = 60 / STEP_SECONDS
# Of so many hosts: hosts x steps. What is there is multiplied by the factors, and events become so many times as many.
Make = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _dependent(generator: np.random.Generator, hosts: int, memory: float) -> np.ndarray:
    """Normal values with variance 1, each `memory` times the one before and noise."""
    noise = generator.normal(size=(hosts, 2 * STEPS + 400))
    series: np.ndarray = signal.lfilter([math.sqrt(1 - memory**2)], [1, -memory], noise, axis=1)
    return series[:, 400:]


def _slow(generator: np.random.Generator, hosts: int, minutes: float) -> np.ndarray:
    """The same, that remember for so many minutes."""
    return _dependent(generator, hosts, math.exp(-1 / (minutes * MINUTE)))


def _jobs(generator: np.random.Generator, hosts: int, minutes: float) -> np.ndarray:
    """1 while a job runs on a host and else 0; jobs and pauses last so long in the mean."""
    changes = generator.random((hosts, 2 * STEPS)) < 1 / (minutes * MINUTE)
    begun = generator.integers(0, 2, (hosts, 1))
    found: np.ndarray = (begun + changes.cumsum(axis=1)) % 2
    return found


def _day(hosts: int) -> np.ndarray:
    """A peak that all hosts share, three times the trough."""
    return np.exp(0.55 * np.sin(np.linspace(0.5, 4.5, 2 * STEPS)))[None, :].repeat(hosts, 0)


def _cycle(generator: np.random.Generator, minutes: float) -> np.ndarray:
    """Half as much more and half as much less, in all hosts at once."""
    place = np.arange(2 * STEPS) / (minutes * MINUTE) + generator.random()
    return 1 + 0.5 * np.sin(2 * np.pi * place)[None, :]


def _zeros(generator: np.random.Generator, factors: np.ndarray, share: float, spread: float) -> np.ndarray:
    there = generator.random(factors.shape) < (1 - share) * factors
    return there * generator.lognormal(1.0, spread, factors.shape)


def _poisson(generator: np.random.Generator, rates: np.ndarray) -> np.ndarray:
    return generator.poisson(rates).astype(float)


LEVELS: Mapping[str, Make] = {
    "dependent": lambda generator, factors: factors * np.exp(0.2 * _dependent(generator, len(factors), 0.9)),
    "a day's peak": lambda generator, factors: (
        factors * _day(len(factors)) * np.exp(0.2 * _dependent(generator, len(factors), 0.7))
    ),
    "heavy tails": lambda generator, factors: factors * (generator.pareto(2.2, factors.shape) + 0.1),
    "most are 0": lambda generator, factors: factors * _zeros(generator, np.ones_like(factors), 0.9, 1.0),
    "unlike hosts": lambda generator, factors: (
        factors * generator.lognormal(0, 1, (len(factors), 1)) * np.exp(0.2 * _dependent(generator, len(factors), 0.5))
    ),
}
COUNTS: Mapping[str, Make] = {
    "seldom": lambda generator, factors: _poisson(generator, 0.02 * factors),
    "almost never": lambda generator, factors: _poisson(generator, 0.002 * factors),
    "bursts": lambda generator, factors: np.round(_zeros(generator, factors, 0.98, 1.2)),
    "often, with a day's peak": lambda generator, factors: _poisson(generator, 2 * factors * _day(len(factors))),
    "a cycle of 40 min": lambda generator, factors: _poisson(generator, 30 * factors * _cycle(generator, 40)),
    "a cycle of 40 min, less often": lambda generator, factors: _poisson(
        generator, 0.5 * factors * _cycle(generator, 40)
    ),
    "a cycle of 11 min": lambda generator, factors: _poisson(generator, 30 * factors * _cycle(generator, 11)),
    "a cycle, and bursts": lambda generator, factors: (
        _poisson(generator, 0.5 * factors * _cycle(generator, 40)) + np.round(_zeros(generator, factors, 0.98, 1.2))
    ),
    "a cycle of some hosts": lambda generator, factors: _poisson(
        generator, 5 * factors * (1 + (_cycle(generator, 40) - 1) * (np.arange(len(factors)) % 2)[:, None])
    ),
    "unlike hosts": lambda generator, factors: _poisson(
        generator, generator.gamma(1.0, 1.0, (len(factors), 1)) * factors
    ),
}
TOO_SLOW = ("remembers for 10", "remembers for 20", "jobs of 10")  # for a twelfth of an hour to hold it
# What remembers for minutes, beside looks that begin with few of them.
SLOW: Mapping[str, tuple[str, Make]] = {
    **{
        f"remembers for {minutes:g} min": (
            "rate", partial(lambda generator, factors, minutes: factors * np.exp(
                0.2 * _slow(generator, len(factors), minutes)), minutes=minutes)
        )
        for minutes in (2.4, 5, 10, 20)
    },
    "half of it remembers for 5 min": (
        "rate", lambda generator, factors: factors * np.exp(
            0.2 * _slow(generator, len(factors), 5) + 0.2 * generator.normal(size=factors.shape))
    ),
    "jobs of 3 min": ("rate", lambda generator, factors: factors * (1 + _jobs(generator, len(factors), 3))),
    "jobs of 10 min": ("rate", lambda generator, factors: factors * (1 + _jobs(generator, len(factors), 10))),
    "remembers for 2.4 min, counted": (
        "count", lambda generator, factors: _poisson(
            generator, 3 * factors * np.exp(0.3 * _slow(generator, len(factors), 2.4)))
    ),
    "remembers for 5 min, counted seldom": (
        "count", lambda generator, factors: _poisson(
            generator, 0.2 * factors * np.exp(0.8 * _slow(generator, len(factors), 5)))
    ),
}  # fmt: skip


# Each host changes at the time of the switch by some 15 % of its own, none in the mean: only hosts can tell.
DRIFTS: Mapping[str, tuple[str, Make]] = {
    "hosts change by themselves": (
        "rate",
        lambda generator, factors: (
            factors * _drifts(generator, len(factors)) * np.exp(0.2 * _dependent(generator, len(factors), 0.5))
        ),
    ),
    "hosts change by themselves, counted": (
        "count", lambda generator, factors: _poisson(generator, factors * _drifts(generator, len(factors)))
    ),
}  # fmt: skip


def _drifts(generator: np.random.Generator, hosts: int) -> np.ndarray:
    after = np.arange(2 * STEPS)[None, :] >= STEPS
    found: np.ndarray = np.exp(0.15 * generator.normal(size=(hosts, 1)) * after)
    return found


def draw(make: Make, generator: np.random.Generator, hosts: int, effect: float = 1.0) -> list[Host]:
    """`hosts` that were switched and as many that were not; `effect` multiplies what the switched ones have after."""
    factors = np.ones((2 * hosts, 2 * STEPS))
    factors[:hosts, STEPS:] = effect
    values = make(generator, factors)
    return [Host(f"h{number}", number < hosts, row[:STEPS], row[STEPS:]) for number, row in enumerate(values)]


def _rule(kind: str) -> Rule:
    return Rule("metric", kind, higher_is_better=False, margin=MARGIN, not_worse=False)


def _verdict(hosts: Sequence[Host], kind: str, alike: bool = False, alpha: float = ALPHA) -> Verdict:
    return judge([Observed(_rule(kind), hosts, STEP_SECONDS, alike=alike)], alpha)[0].verdict


def worse(make: Make, kind: str, hosts: int, count: int, seed: int, alike: bool = False) -> int:
    """How many of `count` switches without an effect are called worse."""
    generator = np.random.default_rng(seed)
    return sum(_verdict(draw(make, generator, hosts), kind, alike) is Verdict.WORSE for _ in range(count))


def ever_worse(make: Make, kind: str, hosts: int, count: int, seed: int) -> tuple[int, int]:
    """How many of `count` switches without an effect are called worse at any look, and at the last one."""
    generator = np.random.default_rng(seed)
    ever = last = 0
    for _ in range(count):
        drawn = draw(make, generator, hosts)
        found = [
            _verdict([replace(each, after=each.after[: STEPS * look // LOOKS]) for each in drawn], kind, alpha=level)
            is Verdict.WORSE
            for look in range(1, LOOKS + 1)
            for level in [level_at(look / LOOKS)]
        ]
        ever, last = ever + any(found), last + found[-1]
    return ever, last


def found_more(make: Make, hosts: int, count: int, seed: int, times: float) -> int:
    """How many of `count` switches are called worse after which events are so many times as many."""
    generator = np.random.default_rng(seed)
    return sum(_verdict(draw(make, generator, hosts, times), "count") is Verdict.WORSE for _ in range(count))


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

`framegauge watch` judged {count} switches of each kind: 240 steps of 15 s before and after, as many hosts switched as
not, and a margin of 1 %, so small that it hides no interval that is too narrow. *Called worse* is the share of switches
without an effect that were; the promise is at most 5 %, and one half of it lies on this side. The standard error of a
share of 2.5 % is {error:.1%}.

## Rates

*Found* is the share of switches that were called worse where the effect was three standard errors beyond the margin; no
rule that is wrong in 2.5 % on one side can find more than 85 %. What three hosts on a side find less than one is the
price of not assuming that hosts are alike: see the last rows, where each host changes by some 15 % of its own.

The last two columns are with `alike: true`, by which a user says that hosts are alike. In the last rows that is not so,
and it is not believed where it shows.

{rates}

## Counts

*Found × 1.6* and *× 3* are the shares of switches called worse after which events were so many times as many.
*Events* are those of a side in an hour, without an effect. A cycle of all hosts (half as many events more and less)
takes nothing from it: what both sides do at the same times is no dispersion of what is compared.

{counts}

## Looks before the end

*At any look*: called worse at one of twenty looks, the first after three minutes, without an effect: 3.2 % for exact
intervals. *At the last*: when the hour was over. The error of the time after the switch is never taken for smaller than
the hour before says, and what is compared has its memory estimated. Where it remembers for more than a twelfth of the
time on a side, here five minutes, and only time tells, as with fewer than three hosts on a side, nothing is promised
but what these rows show; a line of the answer says so where it is seen.

{looks}
"""
_HEADS = {
    "rates": "| series | kind | hosts on each side | called worse | found | alike: called worse | alike: found |",
    "counts": "| counts | hosts on each side | events | called worse | found × 1.6 | found × 3 |",
    "looks": "| series | hosts on each side | at any look | at the last |",
}


def _rates(name: str, hosts: int, count: int) -> str:
    kind, make = DRIFTS[name] if name in DRIFTS else ("rate", LEVELS[name])
    cells = []
    for alike in (False, True):
        is_said = hosts >= switched.LEAST_HOSTS or not alike  # of fewer it says nothing new
        finds = is_said and name in LEVELS
        cells.append(f"{worse(make, kind, hosts, count, 11, alike) / count:.1%}" if is_said else "")
        cells.append(f"{found(make, hosts, count, 12, alike) / count:.1%}" if finds else "")
    return f"| {name} | {kind} | {hosts} | {' | '.join(cells)} |"


def _counts(name: str, hosts: int, count: int) -> str:
    make = COUNTS[name]
    factors = np.ones((hosts, 2 * STEPS))
    events = np.mean([make(np.random.default_rng(seed), factors).sum() for seed in range(9)])
    shares = [found_more(make, hosts, count, 12, times) / count for times in MORE]
    found_ones = " | ".join(f"{each:.0%}" for each in shares)
    wrong = worse(make, "count", hosts, count, 11) / count
    return f"| {name} | {hosts} | {float(f'{events / 2:.2g}'):g} | {wrong:.1%} | {found_ones} |"


def _looks(name: str, hosts: int, count: int) -> str:
    kind, make = SLOW[name]
    ever, last = ever_worse(make, kind, hosts, count, 13)
    return f"| {name} | {hosts} | {ever / count:.1%} | {last / count:.1%} |"


_ROWS = {"rates": _rates, "counts": _counts, "looks": _looks}


def _rows() -> list[tuple[str, str, int]]:
    """Table, series and hosts on a side of each row."""
    return [
        *(("rates", name, hosts) for name in LEVELS for hosts in (1, 3, 6)),
        *(("rates", name, hosts) for name in DRIFTS for hosts in (3, 6)),
        *(("counts", name, hosts) for name in COUNTS for hosts in (1, 3, 5)),
        *(("looks", name, hosts) for hosts in (1, 2) for name in SLOW),  # of more, hosts tell as well
    ]


def _row(which: tuple[str, str, int], count: int) -> str:
    table, name, hosts = which
    return _ROWS[table](name, hosts, count)


def tables(count: int, jobs: int) -> Iterator[tuple[str, str]]:
    """The lines of all tables, each with the name of its table; so many rows are made at a time."""
    rows = _rows()
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        lines = pool.imap(partial(_row, count=count), rows, chunksize=1)
        last = ""
        for (table, _, _), line in zip(rows, lines, strict=True):
            if table != last:
                yield table, _HEADS[table]
                yield table, "|" + " --- |" * (_HEADS[table].count("|") - 1)
            last = table
            yield table, line


def main() -> None:
    """Prints the table, and writes the page."""
    parser = argparse.ArgumentParser(description="How often verdicts of framegauge watch are wrong, and right.")
    parser.add_argument("--count", type=int, default=2000, help="switches of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="rows at a time (default: as many as CPUs)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to write")
    options = parser.parse_args()
    lines: dict[str, list[str]] = {}
    for name, line in tables(options.count, options.jobs):
        print(line, flush=True)
        lines.setdefault(name, []).append(line)
    if options.write is not None:
        shown = {name: "\n".join(table) for name, table in lines.items()}
        error = math.sqrt(0.025 * 0.975 / options.count)
        options.write.write_text(_PAGE.format(count=options.count, error=error, **shown))


if __name__ == "__main__":
    main()
