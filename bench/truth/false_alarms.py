"""False alarms of framegauge and its peers, on every noise that we know, and what each finds.

    .venv/bin/python -m bench.truth.false_alarms [--studies N] [--write docs/measured/false-alarms.md]

Takes about ten minutes with `--studies 2000`, most of it for Otava (`pip install apache-otava`; without it its columns
are empty), which judges fewer. The noises are those of bench/truth/noises.py and bench/truth/audited.py, the peers
those of bench/truth/tools.py. Every noise has a seed of its own, from its name.
"""

from __future__ import annotations

import argparse
import math
import textwrap
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench.common import save, say
from bench.truth import rule
from bench.truth.audited import audited
from bench.truth.noises import Noise, Order, metrics, noises, spread_of, tool_order
from bench.truth.tools import TOOLS, otava_version

__all__ = ["EFFECT", "RUNS", "described", "measure", "page"]

RUNS = (6, 12, 24)  # on each side
EFFECT = -1.5  # spreads of a run
TINY = 1e-9  # a margin of almost nothing
OTAVA_STUDIES = 60
ORDERS = 200
STUDY, MEDIAN, AT_MARGIN = "study", "study, median", "study, margin"
COLUMNS = (STUDY, MEDIAN, AT_MARGIN, *TOOLS)
MOST_FALSE = 0.05
WIDTH = 120
OLD, NEW = "Those of the calibration", "Those of an audit"


def described() -> Mapping[str, Mapping[str, Noise]]:
    """All noises, in two groups."""
    return {OLD: {**noises(), **metrics()}, NEW: audited()}


def _apart(runs: int) -> Order:
    """BASE, and then NEW: how peers have their runs, and `framegauge compare` has."""
    place = (np.arange(2)[None, None, :] * runs + np.arange(runs)[:, None, None]).astype(int)
    return Order(place, ("baseline", "treatment"), ("baseline", "treatment"))


def _drawn(noise: Noise, orders: Sequence[Order], studies: int, effect: float, seed: Collection[int]) -> np.ndarray:
    random = np.random.default_rng(list(seed))
    effects = np.array([effect])
    return np.stack([noise.values(random, orders[number % len(orders)], effects) for number in range(studies)])


def _in_a_study(noise: Noise, runs: int, logs: np.ndarray, edge: float, median: bool = False) -> np.ndarray:
    """-1, 0 or 1 for each study, with all of its blocks run and no control, as peers have none."""
    found = rule.end(logs, rule.Plan(noise.metric, edge, runs, stops=False, control=False, median=median)).verdicts[
        :, 0
    ]
    return np.where(found == rule.HIGHER, 1, np.where(found == rule.LOWER, -1, 0))


def measure(noise: Noise, runs: int, studies: int) -> dict[str, dict[str, float]]:
    """The share of studies that call a difference by tool: without an effect ("false"), and the right way with one."""
    spread = spread_of(noise.values)  # of the log ratio of two runs
    effect, seed = EFFECT * spread / math.sqrt(2), (zlib.crc32(noise.name.encode()), runs)
    found: dict[str, dict[str, float]] = {name: {} for name in COLUMNS}
    orders = [tool_order(1, runs, False, number) for number in range(ORDERS)]
    for key, logs in _both(noise, orders, studies, effect, seed):
        found[STUDY][key] = _share(_in_a_study(noise, runs, logs, TINY), key)
        found[MEDIAN][key] = _share(_in_a_study(noise, runs, logs, TINY, median=True), key)
        found[AT_MARGIN][key] = _share(_in_a_study(noise, runs, logs, spread), key)
    for key, logs in _both(noise, [_apart(runs)], studies, effect, seed):
        for name, tool in TOOLS.items():
            if name == "Otava" and otava_version() is None:
                continue
            some = logs[:OTAVA_STUDIES, :, 0] if name == "Otava" else logs[:, :, 0]
            found[name][key] = _share(tool(some[..., 0], some[..., 1]), key)
    return found


def _both(
    noise: Noise, orders: Sequence[Order], studies: int, effect: float, seed: Sequence[int]
) -> Iterator[tuple[str, np.ndarray]]:
    """The runs without an effect, and with one: of the same draws, where it is added."""
    logs = _drawn(noise, orders, studies, 0.0, seed)
    yield "false", logs
    if noise.only_worse:
        yield "power", _drawn(noise, orders, studies, effect, (*seed, 1))
    else:
        yield "power", logs + effect * np.array([0.0, 1.0])


def _share(said: np.ndarray, key: str) -> float:
    return float(np.mean(said != 0 if key == "false" else said < 0))


def _error(share: float, count: int) -> float:
    return math.sqrt(share * (1 - share) / count)


def _paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False), ""]


def _cell(found: Mapping[str, float]) -> str:
    return f"{100 * found['false']:.1f} / {100 * found['power']:.0f}" if found else "–"


def page(rows: Sequence[Mapping[str, Any]], studies: int, otava: str | None) -> str:
    """The committed page."""
    lines = ["# False alarms, here and elsewhere", ""]
    lines += _paragraph(f"""Written by `python -m bench.truth.false_alarms --studies {studies} --write
        docs/measured/false-alarms.md`: {len({row["noise"] for row in rows})} kinds of noise, {
        ", ".join(map(str, RUNS))
    }
        runs on each side, one comparison. Each noise has a seed of its own, from its name. The first figure is the
        share of {studies} pairs of sides that are called different although nothing is; its standard error is {
        100 * _error(MOST_FALSE, studies):.1f} points at 5 %. The second is the share in which a difference of {-EFFECT}
        spreads of a run is found, as one. Both are per cent.""")
    lines += [*_items(otava), ""]
    yes = [row for row in rows if row["guaranteed"]]
    lines += ["## What is guaranteed", ""]
    lines += _paragraph("""framegauge promises at most 5 % for studies, on noise that is the same in both arms, or
        symmetric with one peak and wider in one, also where it drifts as those below do. The other columns promise it
        for independent runs whose noise they assume, or not at all. The highest false alarms of any such noise, and how
        many of them are beyond 5 % by more than three standard errors:""")
    lines += _worst(yes, studies)
    lines += ["## For which noise nothing is promised", ""]
    lines += _paragraph("""What one arm alone suffers few blocks cannot know of, and runs that depend on each other, or
        on the time of the day, are no independent samples:""")
    named = {row["noise"]: row["what"] for row in rows if not row["guaranteed"]}
    lines += [*(f"- {name}: {what}" for name, what in named.items()), ""]
    for runs in RUNS:
        lines += [f"## {runs} runs on each side", ""]
        for group in dict.fromkeys(row["group"] for row in rows):
            lines += [f"{group}:", "", *_table([r for r in rows if r["runs"] == runs and r["group"] == group])]
    return "\n".join(lines).rstrip() + "\n"


def _items(otava: str | None) -> Iterator[str]:
    texts = (
        """**study**: `framegauge study`, without a control, all blocks run, and a margin of almost nothing. Arms take
        turns; the other tools have no say in that.""",
        "**study, median**: the same with `estimator: median of differences`.",
        """**study, margin**: the same as the first with a margin of one spread of the log ratio of two runs, as one
        would declare it: what is called better or worse is larger than that.""",
        """**compare**: `framegauge compare` with a margin of almost nothing. BASE is measured first, then NEW, as for
        all that follow.""",
        "**benchstat**: the U test at 5 %. **hyperfine**: Welch's t test at 5 %, of its script.",
        f"""**Otava**: {f"version {otava}, its authors' code" if otava else "not installed"}, with its defaults, {
            OTAVA_STUDIES
        } pairs.""",
        "**5 % gate**: the means differ by more than 5 %.",
    )
    for text in texts:
        yield from textwrap.wrap(
            " ".join(text.split()), WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
        )


def _worst(rows: Sequence[Mapping[str, Any]], studies: int) -> list[str]:
    head = ["runs", *COLUMNS]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    for runs in RUNS:
        shown = [str(runs)]
        for column in COLUMNS:
            count = min(studies, OTAVA_STUDIES) if column == "Otava" else studies
            mine = [row["found"][column]["false"] for row in rows if row["runs"] == runs and row["found"][column]]
            beyond = sum(each > MOST_FALSE + 3 * _error(MOST_FALSE, count) for each in mine)
            shown.append(f"{100 * max(mine):.1f}; {beyond} of {len(mine)}" if mine else "–")
        lines.append(f"| {' | '.join(shown)} |")
    return [*lines, ""]


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    head = ["noise", "guaranteed", *COLUMNS]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    for row in rows:
        shown = [row["noise"], "yes" if row["guaranteed"] else "", *(_cell(row["found"][name]) for name in COLUMNS)]
        lines.append(f"| {' | '.join(shown)} |")
    return [*lines, ""]


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="pairs of sides for each figure (default 2000)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page as Markdown")
    options = parser.parse_args()
    rows = []
    for group, found in described().items():
        for name, noise in found.items():
            say(f"{group}: {name}")
            for runs in RUNS:
                kept = {"noise": name, "what": noise.what, "group": group, "guaranteed": noise.guaranteed, "runs": runs}
                rows.append({**kept, "found": measure(noise, runs, options.studies)})
    say(f"figures: {save('bench-false-alarms', {'rows': rows, 'otava': otava_version()})}")
    text = page(rows, options.studies, otava_version())
    print(text)  # noqa: T201 (its output is its purpose)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
