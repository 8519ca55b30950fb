"""What stopping early costs, by how much of the error looks may spend before the end.

    .venv/bin/python -m bench.truth.stopping [--studies N] [--write docs/measured/stopping.md]

Normal log ratios, and an effect that one look at all planned blocks finds in 80 % of studies, or several times as large
beyond the margin. All boundaries are those of Student's t, by the recursion of `statistics.sequential`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from bench.common import save
from scipy import optimize, special

from framegauge.statistics.power import POWER
from framegauge.statistics.ratio import ALPHA, quantile
from framegauge.statistics.sequential import EXPONENT, _Walk, looks

__all__ = ["PLANS", "SPENDING", "Measured", "levels", "measure", "page"]

PLANS = (8, 12, 20, 30)  # blocks
COMPARISONS = (1, 8)  # of a study: the first has to be found at its share of the error
TIMES = (1.0, 2.0, 3.0, 6.0)  # as large an effect
LEAST = 1e-14  # a probability that a look spends

Spending = Callable[[float, float], float]  # of the error, at a share of the planned blocks
Levels = Sequence[tuple[int, float]]


def _power_family(alpha: float, share: float, exponent: float) -> float:
    return float(alpha * share**exponent)


def _obrien_fleming(alpha: float, share: float) -> float:
    """Lan & DeMets 1983."""
    return 2 * float(special.ndtr(special.ndtri(alpha / 2) / math.sqrt(share)))


SPENDING: Mapping[str, Spending] = {
    "exponent 2": partial(_power_family, exponent=2.0),
    "exponent 3": partial(_power_family, exponent=3.0),
    "exponent 4": partial(_power_family, exponent=4.0),
    "O'Brien & Fleming": _obrien_fleming,
}


@dataclass(frozen=True)
class Measured:
    """Shares of studies that cross a boundary: without an effect, and with it (by TIMES) on its side; and how many
    blocks these take in the mean. `width`: of the interval at the last look, in that of one look."""

    error: float
    found: Sequence[float]
    blocks: Sequence[float]
    width: float


def levels(spending: Spending, alpha: float, planned: int) -> Levels:
    """The nominal two-sided level of each look."""
    walk, spent, made = _Walk(), 0.0, []
    for blocks in looks(planned):
        to_spend = max(LEAST, spending(alpha, blocks / planned) - spent)
        walk.go_to(blocks)
        level = walk.level_for(to_spend)
        walk.pass_by(level)
        made.append((blocks, level))
        spent += to_spend
    return made


def _crossed(values: np.ndarray, of_looks: Levels) -> np.ndarray:
    """The blocks after which each study is beyond a boundary for the first time, with the sign; 0 if it never is."""
    first = np.zeros(len(values), int)
    for blocks, level in of_looks:
        seen = values[:, :blocks]
        mean, half = seen.mean(axis=1), quantile(blocks - 1, level) * seen.std(axis=1, ddof=1) / math.sqrt(blocks)
        first = np.where((first == 0) & (np.abs(mean) > half), np.sign(mean).astype(int) * blocks, first)
    return first


def effect_for(alpha: float, planned: int) -> float:
    """The effect, in spreads of a log ratio, that one look finds with POWER."""
    critical, degrees = quantile(planned - 1, alpha), planned - 1
    more = optimize.brentq(lambda each: special.nctdtr(degrees, each, critical) - (1 - POWER), 0.0, critical + 6)
    return float(more) / math.sqrt(planned)


def measure(name: str, comparisons: int, planned: int, studies: int) -> Measured:
    """Of one way to spend the error."""
    alpha = ALPHA / comparisons
    of_looks = levels(SPENDING[name], alpha, planned)
    noise = np.random.default_rng([planned, comparisons]).normal(size=(studies, planned))
    effect = effect_for(alpha, planned)
    error = float(np.mean(_crossed(noise, of_looks) != 0))
    found, taken = [], []
    for times in TIMES:
        first = _crossed(noise + times * effect, of_looks)
        found.append(float(np.mean(first > 0)))
        taken.append(float(np.mean(np.where(first == 0, planned, np.abs(first)))))
    width = quantile(planned - 1, of_looks[-1][1]) / quantile(planned - 1, alpha)
    return Measured(error, found, taken, width)


_PAGE = """\
# What stopping early costs

Written by `python -m bench.truth.stopping --studies {studies} --write docs/measured/stopping.md`.

A study that may stop before its planned end divides its 5 % among its looks. What it spends early it lacks at the end.
Normal log ratios, and boundaries of Student's t that spend just the error that they may. *Error* is what all looks
together spent of it, without an effect; its standard error is {error:.2f} for one comparison, and {more:.2f} for eight.
*Found* is the share of studies that find an effect which one look at all planned blocks finds in 80 %, *width* that of
the interval at the planned end, in that of one look. *Blocks* are the mean numbers at which studies stop whose effect
is as large, two, three and six times as large.

- **exponent *k***: (*n*/*N*)^*k* of the error after *n* of *N* blocks (Kim & DeMets 1987).
- **O'Brien & Fleming**: what Lan & DeMets (1983) have in their place.

Studies have exponent {chosen:g}. It finds more than exponent 2, and takes hardly more blocks. What exponent 4 and
O'Brien & Fleming gain above that is paid by studies whose effect is large, as most on a rack are: of many planned
blocks and comparisons they stop later.

{tables}
"""


def _table(comparisons: int, studies: int, kept: list[dict[str, object]]) -> Iterator[str]:
    yield f"## {'One comparison' if comparisons == 1 else f'{comparisons} comparisons'}"
    yield ""
    yield "| planned | spending | error | found | width | blocks, effects of 1, 2, 3, 6 |"
    yield "|" + " --- |" * 6
    for planned in PLANS:
        for name in SPENDING:
            one = measure(name, comparisons, planned, studies)
            kept.append({"comparisons": comparisons, "planned": planned, "spending": name, **vars(one)})
            cells = [
                str(planned), name, f"{one.error * comparisons / ALPHA:.2f}", f"{one.found[0]:.1%}", f"{one.width:.2f}",
                ", ".join(f"{each:.1f}" for each in one.blocks),
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"


def page(studies: int, kept: list[dict[str, object]]) -> str:
    """The committed page; the figures are added to `kept`."""
    tables = "\n\n".join("\n".join(_table(each, studies, kept)) for each in COMPARISONS)
    error, more = (math.sqrt(each / ALPHA / studies) for each in COMPARISONS)
    return _PAGE.format(studies=studies, error=error, more=more, chosen=EXPONENT, tables=tables)


def main() -> None:
    """Prints the page, and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100_000, help="of each kind")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to write")
    options = parser.parse_args()
    kept: list[dict[str, object]] = []
    text = page(options.studies, kept)
    save("bench-stopping", {"rows": kept})
    print(text)  # noqa: T201 (its output is its purpose)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
