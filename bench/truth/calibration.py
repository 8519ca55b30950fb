"""Are the statistics as good as they say? Synthetic studies with a known truth, judged as real ones are.

    .venv/bin/python -m bench.truth.calibration [--studies N] [--write docs/measured/calibration.md]

`--studies 100` takes a minute or two, 2000 half an hour. The noises are in bench/truth/noises.py, the studies in
bench/truth/studies.py, the page in bench/truth/calibration_page.py. `--figures FILE` writes the page from figures that
were saved before; `--only NOISE` measures that noise anew (the studies of a noise do not depend on the others).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.common import save, say
from bench.truth.calibration_page import AGAIN, LEAST_COVERAGE, broken, page
from bench.truth.noises import SPREAD, Noise, metrics, noises
from bench.truth.studies import Case, run

__all__ = ["CELLS", "FEWER", "LARGE", "TINY", "Asked", "asked", "measure"]

CELLS = 8
PLANNED = 12
FEWER = 4  # times fewer studies of eight cells than of one
LARGE = 3.0  # a large effect, in margins
JUST_BELOW = 0.92  # a coverage that chance might have moved below its promise
TINY = 15.0  # times smaller than the margin of the noise: so that equality is out of reach, and a claim always near
POWER_PLANS = (6, 8, 12, 20, 30)
POWER_EFFECTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Asked:
    """One case of a table. `effect` names the true effect, in margins: a number, "A/A" (none, and a margin so small
    that it hardly counts) or "mixed" (every other cell has a large one, the others one as large as the margin).
    """

    table: str
    effect: str
    case: Case
    earlier: bool = False

    def keys(self) -> dict[str, Any]:
        """What the page finds it by."""
        case = self.case
        return {
            "table": self.table, "noise": case.noise.name, "effect": self.effect, "cells": len(case.effects),
            "planned": case.planned, "stops": case.stops, "control": case.control, "earlier": self.earlier,
        }  # fmt: skip


def _asked(
    table: str,
    noise: Noise,
    effect: str,
    cells: int = 1,
    planned: int = PLANNED,
    stops: bool = True,
    control: bool = True,
) -> Asked:
    if effect == "A/A":
        return Asked(
            table, effect, Case(replace(noise, edge=noise.edge / TINY), (0.0,) * cells, planned, stops, control)
        )
    large = -LARGE if noise.only_worse else LARGE
    # The effect of the one-sided noises that is easily missed is on the low side, as their stalls are.
    effects = (large, -1.0) * (cells // 2) if effect == "mixed" else (float(effect),) * cells
    return Asked(table, effect, Case(noise, effects, planned, stops, control))


def _has_room(noise: Noise, effect: str) -> bool:
    return not noise.only_worse or effect in ("A/A", "mixed") or float(effect) <= 0


def asked() -> Iterator[Asked]:
    """Every case, table by table."""
    known = [*noises().values(), *metrics().values()]
    for noise in known:
        large = f"{-LARGE if noise.only_worse else LARGE:g}"
        edges = [each for each in ("1", "-1") if _has_room(noise, each)]
        for effect in ("A/A", "0", *edges, large):
            yield _asked("one", noise, effect)
        for effect in ("A/A", "0", *edges, large, "mixed"):
            yield _asked("eight", noise, effect, CELLS)
        for planned in (8, 20):
            for effect in edges:
                yield _asked("plans", noise, effect, planned=planned)
        for cells in (1, CELLS):
            for effect in ("A/A", *edges):
                yield _asked("blocks", noise, effect, cells, stops=False)
                yield _asked("no control", noise, effect, cells, planned=8, control=False)
    margin = math.sqrt(2) * SPREAD  # the spread of the log ratio of two runs
    even = replace(noises()["normal"], edge=margin)
    for cells in (1, CELLS):
        for planned in POWER_PLANS:
            for times in POWER_EFFECTS:
                for earlier in (True, False):
                    case = Case(even, (times,) * cells, planned)
                    yield Asked("power", f"{times:g}", case, earlier)


def measure(studies: int, only: Collection[str] = ()) -> list[dict[str, Any]]:
    """The figures of every case: so many studies of one cell, and a quarter as many of eight.

    Where a figure of a noise with a guarantee is beyond its promise, or a coverage is just below it, fresh studies tell
    whether it was chance: they are rows of their own, marked `again`. `only`: the noises to measure; all if empty.
    """
    found: list[dict[str, Any]] = []
    everything, last = [each for each in asked() if not only or each.case.noise.name in only], ""
    for number, each in enumerate(everything, 1):
        case = each.case
        if (title := "power" if each.table == "power" else case.noise.name) != last:
            say(f"{number} of {len(everything)} cases: {title}")
            last = title
        count = studies if len(case.effects) == 1 else max(1, studies // FEWER)
        row = {**each.keys(), "again": False, **asdict(run(case, count, each.earlier))}
        found.append(row)
        if (case.noise.guaranteed and any(broken([row]))) or JUST_BELOW <= row["covers"] < LEAST_COVERAGE:
            found.append({**each.keys(), "again": True, **asdict(run(case, AGAIN * count, each.earlier, seed=1))})
    return found


def described() -> Mapping[str, dict[str, Any]]:
    """What the page says of each noise."""
    every = {**noises(), **metrics()}
    return {
        name: {"what": each.what, "margin": each.margin, "metric": each.metric, "guaranteed": each.guaranteed}
        for name, each in every.items()
    }


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="of one cell in each case (default 2000)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page as Markdown")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="take the figures that an earlier run saved")
    parser.add_argument("--only", action="append", default=[], metavar="NOISE", help="of --figures, measure it anew")
    options = parser.parse_args()
    if options.only and not options.figures:
        parser.error("--only needs --figures, which has the other noises")
    rows: list[dict[str, Any]] = []
    studies = options.studies
    if options.figures:
        before = json.loads(options.figures.read_text())["figures"]["cases"]
        studies = max(row["studies"] for row in before if not row["again"])
        rows = [row for row in before if row["noise"] not in options.only or row["table"] == "power"]
    if options.only or not options.figures:
        rows += measure(studies, options.only)
        say(f"figures: {save('bench-calibration', {'cases': rows})}")
    text = page(rows, described(), studies)
    print(text)  # noqa: T201 (its output is its purpose)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
