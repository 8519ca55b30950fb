"""Would one-sided levels at each edge of the margin find more? Yes, and they would not hold where one arm is skewed.

    .venv/bin/python -m bench.truth.one_sided [--studies N] [--write docs/measured/one-sided.md]

*Better* and *no practical difference* at one edge exclude each other, so each edge could spend 5 % on one side instead
of 2.5 % (partitioning: Stefansson, Kim & Hsu 1988; Finner & Strassburger 2002). A claim of a difference would need the
critical value c with P(T > c) + P(T > c + 2 margin/error) = 5 %, since it may err at the other edge, too.
One comparison, against baseline and control together, that looks after every block.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.common import say
from scipy import special

from framegauge.statistics.sequential import StoppingRule, looks
from framegauge.statistics.verdict import LEAST_FOR_EQUALITY

ALPHA = 0.05
MARGIN = math.sqrt(2)  # in spreads of a run: as large as the spread of the ratio of two runs
SKEW = 0.6
BETTER, WORSE, NONE = 1, 2, 3
PLANNED = (8, 12, 20)
_HEAD = (
    "noise",
    "blocks",
    "none at 0",
    "better at 2 margins",
    "false none at 1 margin",
    "false better or worse at 1 margin",
)


def _normal(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return random.normal(0, 1, shape)


def _skewed(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Lognormal, to low values; mean 0, spread 1."""
    values, mean = np.exp(random.normal(0, SKEW, shape)), math.exp(SKEW**2 / 2)
    return (mean - values) / (mean * math.sqrt(math.expm1(SKEW**2)))


def _heavy(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return random.standard_t(3, shape)


Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
# By name: the noise of the baseline and its control, and that of the treatment.
NOISES: Mapping[str, tuple[Noise, Noise]] = {
    "normal": (_normal, _normal),
    "heavy tails (t, 3 degrees of freedom)": (_heavy, _heavy),
    "treated arm skewed to low values (lognormal, 0.6)": (_normal, _skewed),
}


@dataclass(frozen=True)
class Found:
    """Shares of studies: none at no effect, better at two margins, and claims at exactly one margin that are false."""

    none: float
    better: float
    false_none: float
    false_better: float


def verdicts(logs: np.ndarray, planned: int, one_sided: bool) -> np.ndarray:
    """The verdict of every study, studies x blocks, at its first look that has one; 0: undecided."""
    rule, found = StoppingRule(planned), np.zeros(len(logs), int)
    for blocks in looks(planned):
        part = logs[:, :blocks]
        mean, error = part.mean(axis=1), part.std(axis=1, ddof=1) / math.sqrt(blocks)
        tail = rule.nominal(2 * ALPHA, blocks) / 2 if one_sided else rule.nominal(ALPHA, blocks) / 2
        inside = -special.stdtrit(blocks - 1, tail)
        outside = _outside(blocks - 1, tail, error) if one_sided else inside
        now = np.select(
            [
                mean - outside * error > MARGIN,
                mean + outside * error < -MARGIN,
                (np.abs(mean) + inside * error < MARGIN) & (blocks >= LEAST_FOR_EQUALITY),
            ],
            [BETTER, WORSE, NONE],
        )
        found = np.where(found == 0, now, found)
    return found


def _outside(degrees: int, tail: float, error: np.ndarray) -> np.ndarray:
    """The critical value of a difference, by bisection."""
    low = np.full(len(error), -special.stdtrit(degrees, tail))
    high = np.full(len(error), -special.stdtrit(degrees, tail / 2))
    for _ in range(40):
        middle = (low + high) / 2
        over = special.stdtr(degrees, -middle) + special.stdtr(degrees, -(middle + 2 * MARGIN / error)) > tail
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high


def measure(noise: tuple[Noise, Noise], planned: int, one_sided: bool, studies: int) -> Found:
    """The shares for one noise; each rule sees the same studies."""
    random, shape = np.random.default_rng(planned), (studies, planned)
    of_baseline, of_treatment = noise
    logs = of_treatment(random, shape) - (of_baseline(random, shape) + of_baseline(random, shape)) / 2
    at = {effect: verdicts(logs + effect * MARGIN, planned, one_sided) for effect in (-1, 0, 1, 2)}
    return Found(
        none=float(np.mean(at[0] == NONE)),
        better=float(np.mean(at[2] == BETTER)),
        false_none=max(float(np.mean(at[effect] == NONE)) for effect in (-1, 1)),
        false_better=max(float(np.mean(at[1] == BETTER)), float(np.mean(at[-1] == WORSE))),
    )


def page(studies: int) -> str:
    """The committed summary."""
    lines = [
        "# One-sided levels at the margin's edges",
        "",
        f"Written by `python -m bench.truth.one_sided --studies {studies} --write docs/measured/one-sided.md`.",
        "",
        "*Better* and *no practical difference* exclude each other at an edge of the margin, so each edge could",
        "spend the whole 5 % on one side, where a study spends 2.5 %. More would be found in the same blocks. But",
        "the spare 2.5 % are what covers noise that is skewed in one arm only, and with one-sided levels such",
        "studies err in more than 5 %. So verdicts keep two-sided levels. Shares of simulated studies in per cent,",
        "two-sided → one-sided; one comparison that stops by itself; log ratios of two runs spread as much as the",
        "margin.",
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{' --- |' * len(_HEAD)}",
    ]
    for name, noise in NOISES.items():
        for planned in PLANNED:
            say(f"{name}, {planned} blocks")
            both = [measure(noise, planned, one_sided, studies) for one_sided in (False, True)]
            cells = [
                f"{100 * getattr(both[0], kind):.1f} → {100 * getattr(both[1], kind):.1f}"
                for kind in ("none", "better", "false_none", "false_better")
            ]
            lines.append(f"| {name} | {planned} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=20_000, help="of each kind (default 20000)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the summary as Markdown")
    options = parser.parse_args()
    text = page(options.studies)
    print(text)  # noqa: T201 (its output is its purpose)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
