"""The page of bench/truth/calibration.py: docs/measured/calibration.md from the figures alone."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.statistics.judge import unseen_share

__all__ = ["AGAIN", "LEAST_COVERAGE", "MOST_FALSE", "broken", "page"]

MOST_FALSE, LEAST_COVERAGE = 0.05, 0.94
CHANCE = 3  # standard errors
AGAIN = 4  # times as many studies where a figure is beyond a promise that should hold
SUSPECT = "suspect although nothing was wrong"
WIDTH = 120
FALSE = {"false_direction": "better or worse", "false_none": "no practical difference", "false_any": "any"}
POWER = (  # what is shown of which effect, in margins
    ("none", "0", "none at 0"),
    ("none", "0.5", "none at half a margin"),
    ("directed", "1.5", "better at 1.5 margins"),
    ("directed", "2", "better at 2"),
    ("directed", "3", "better at 3"),
    ("false_any", "1", "any false claim at 1 (studies)"),
    ("blocks", "0", "blocks at 0"),
    ("blocks", "2", "blocks at 2"),
)

Row = Mapping[str, Any]
Described = Mapping[str, Mapping[str, Any]]
Broken = tuple[Row, str, float, bool]


def error(share: float, count: int) -> float:
    """The binomial standard error."""
    return math.sqrt(share * (1 - share) / count)


def broken(rows: Sequence[Row]) -> Iterator[Broken]:
    """Every figure that breaks a promise: the case, which figure, its value, and whether by more than chance (three
    standard errors of a rate that is just kept; comparisons of one study are taken as independent)."""
    for row in rows:
        if row["table"] == "power":
            continue
        for key in FALSE:
            # Where only one kind of claim is false, it is named once.
            if row[key] > MOST_FALSE and not (
                key == "false_any" and row[key] in (row["false_direction"], row["false_none"])
            ):
                beyond = row[key] > MOST_FALSE + CHANCE * error(MOST_FALSE, row["studies"])
                yield row, f"{'any false claim' if key == 'false_any' else f'false *{FALSE[key]}*'}", row[key], beyond
        if row["suspect"] > MOST_FALSE:
            beyond = row["suspect"] > MOST_FALSE + CHANCE * error(MOST_FALSE, row["studies"])
            yield row, SUSPECT, row["suspect"], beyond
        for key, name in (("covers", "coverage"), ("judged_covers", "coverage of the judged interval")):
            if row[key] < LEAST_COVERAGE and (key == "covers" or row[key] != row["covers"]):
                count = row["studies"] * row["cells"]
                yield row, name, row[key], row[key] < LEAST_COVERAGE - CHANCE * error(LEAST_COVERAGE, count)


def _paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False), ""]


def _item(text: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines)] + [""]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _where(row: Row) -> str:
    """A case in words."""
    effects = {"A/A": "no effect, tiny margin", "mixed": "half of the effects large, half as large as the margin"}
    effect = effects.get(row["effect"], f"effect {row['effect']} margins")
    if row["effect"] in ("1", "-1"):
        effect = f"effect {'+' if row['effect'] == '1' else '−'}1 margin"
    cells = "one cell" if row["cells"] == 1 else f"{row['cells']} cells"
    more = "" if row["stops"] else ", all blocks run"
    more += "" if row["control"] else ", no control"
    return f"{row['noise']}; {cells}, {row['planned']} blocks{more}; {effect}"


class _Figures:
    """The rows of one table, found by noise and effect."""

    def __init__(self, rows: Sequence[Row], **asked: Any) -> None:
        self.rows = {
            (row["noise"], row["effect"]): row for row in rows if all(row[key] == value for key, value in asked.items())
        }
        self.names = list(dict.fromkeys(noise for noise, _ in self.rows))

    def show(self, noise: str, key: str, *effects: str, form: Callable[[float], str] = _percent) -> str:
        """The figures of these effects; a dash where a metric has no room for one."""
        found = [self.rows.get((noise, effect)) for effect in effects]
        return ", ".join("–" if row is None else form(row[key]) for row in found)

    def most(self, noise: str, key: str) -> str:
        return _percent(max(row[key] for (name, _), row in self.rows.items() if name == noise))

    def large(self, noise: str) -> str:
        return "3" if (noise, "3") in self.rows else "-3"


def _worst(rows: Sequence[Row], key: str, lowest: bool = False) -> str:
    row = (min if lowest else max)(rows, key=lambda each: each[key])
    return f"{_percent(row[key])} % ({_where(row)})"


def _promises(rows: Sequence[Row], again: Sequence[Row], described: Described) -> Iterator[str]:
    """What is guaranteed, and what came out."""
    kept = [row for row in rows if row["table"] != "power" and described[row["noise"]]["guaranteed"]]
    yield "## What is guaranteed"
    yield ""
    yield from _paragraph(f"""Where the noise of all arms is the same, whatever its shape is, or is symmetric with one
        peak and wider in some of them, the rules promise that a study makes a false claim with a probability of {
        100 * MOST_FALSE:.0f} % at most, that it is suspect by chance no more often, and that intervals of 95 % hold the
        truth in {100 * LEAST_COVERAGE:.0f} % or more when the study ends. Drift, effects of the block and slow first
        runs are among these noises. In {len(kept)} cases, the worst of each were:""")
    yield from _item(f"false *better or worse*: {_worst(kept, 'false_direction')}")
    yield from _item(f"false *no practical difference*: {_worst(kept, 'false_none')}")
    yield from _item(f"any false claim: {_worst(kept, 'false_any')}")
    yield from _item(f"coverage, lowest: {_worst(kept, 'covers', lowest=True)}")
    yield from _item(f"{SUSPECT}: {_worst(kept, 'suspect')}")
    yield ""
    of_these = [row for row in again if described[row["noise"]]["guaranteed"]]
    yield from _confirmed(list(broken(kept)), of_these)


def _confirmed(first: Sequence[Broken], again: Sequence[Row]) -> Iterator[str]:
    """The figures beyond a promise, and which of them fresh studies confirm."""
    if not first:
        yield from _paragraph("No figure of these noises breaks a promise.")
        return
    still = sorted(broken(again), key=lambda each: not each[3])
    beyond = sum(each[3] for each in still)
    cases = len({_where(row) for row, *_ in first})
    yield from _paragraph(f"""Of so many cases, some are beyond a promise by chance if it is just kept. So each of the
        {cases} cases with a figure beyond a promise was repeated with fresh studies, {AGAIN} times as many.
        {len(still) or "None"} of their figures {"is" if len(still) == 1 else "are"} still beyond it, {
        beyond or "none"
    } of them by more than {CHANCE} standard errors{", which is an exception to the promise" if beyond else ""}{
        ":" if still else "."
    }""")
    for row, what, value, is_beyond in still:
        standard = error(value, row["studies"] * (row["cells"] if "coverage" in what else 1))
        more = " (**exception**)" if is_beyond else ""
        yield from _item(f"{_where(row)}: {what} {_percent(value)} ± {_percent(standard)} %{more}")
    yield ""


def _not_guaranteed(rows: Sequence[Row], described: Described) -> Iterator[str]:
    """Where no guarantee is possible, with the worst of each noise."""
    yield "## Where no guarantee is possible"
    yield ""
    yield from _paragraph(f"""If one arm alone stalls now and then, few blocks can miss every stall, and no method can
        know of it: 8 runs without a stall leave stalls in up to {_percent(unseen_share(8))} % of runs possible, 20
        runs in up to {_percent(unseen_share(20))} % (95 % confidence). The runs that were seen then agree with one
        another, about a wrong mean. A study that stops by itself stops in such samples first. What a skewed arm does
        is milder, and of the same kind. Runs that resemble the ones before break the assumption that blocks are
        independent; a warning names them, and a few false claims more than promised are possible. The worst of all
        cases, of studies and intervals:""")
    lines = []
    for name, each in described.items():
        if each["guaranteed"]:
            continue
        mine = [row for row in rows if row["table"] != "power" and row["noise"] == name]
        verdicts = [_percent(max(row[key] for row in mine)) for key in ("false_direction", "false_none")]
        alone = [row for row in mine if row["table"] == "one"]
        low = min(row["covers"] for row in mine)
        breaks = sum(1 for _ in broken(mine))
        at_end = min(row["covers"] for row in alone)
        lines.append([name, each["what"], *verdicts, _percent(low), _percent(at_end), str(breaks)])
    head = ("noise", "what", "false better or worse", "false none", "coverage", "coverage, one cell, 12 blocks",
            "figures beyond a promise")  # fmt: skip
    yield from _table(head, lines)
    yield from _paragraph("""So *no practical difference* says beside it in how many runs an arm may stall although
        none did. Every figure of these noises is in the tables below.""")


def _metrics(rows: Sequence[Row], again: Sequence[Row], described: Described) -> Iterator[str]:
    """The coverage of metrics that are simulated from their definitions, and of goodput's normal noise beside them."""
    yield "## Coverage by metric"
    yield ""
    yield from _paragraph(f"""The lowest coverage of any case, which should be {100 * LEAST_COVERAGE:.0f} % or more
        (the lowest of many is a little lower by chance, so cases just below were repeated with {AGAIN} times as many
        fresh studies, which count instead). Goodput and completion time have Student's interval,
        wider where arms are unlike; latency_p99 and fairness have the hull of Hall's and Student's.""")
    lines = []
    repeated = {_where(row): row for row in again}
    for name, each in described.items():
        if name != "normal" and (each["metric"] == "goodput" or name.startswith("rack")):
            continue
        mine = [repeated.get(_where(row), row) for row in rows if row["table"] != "power" and row["noise"] == name]
        lowest = [
            min((row for row in mine if row["stops"] is stops), key=lambda row: row["covers"])
            for stops in (True, False)
        ]
        kept = all(row["covers"] >= LEAST_COVERAGE for row in lowest)
        shown = [f"{_percent(row['covers'])} ({_where(row).split('; ', 1)[1]})" for row in lowest]
        lines.append([each["metric"], name, *shown, "yes" if kept else "**no**"])
    yield from _table(("metric", "noise", "stopped by itself", "`stop: blocks`", "kept"), lines)


def _read(studies: int, fewer: int) -> Iterator[str]:
    yield "## How to read the tables"
    yield ""
    yield from _paragraph(f"""Figures are per cent. Each is from {studies} simulated studies of one cell, or {fewer}
        of eight: the standard error of a share of 5 % is {100 * error(0.05, studies):.1f} and {
        100 * error(0.05, fewer):.1f} points.""")
    yield from _item("""Studies have the tool's own order of runs and an A/A control. They are judged after each block
        at which the tool looks, and stop when they are settled.""")
    yield from _item("""**False better or worse**: the share of studies that call any comparison better or worse
        although the true effect is not beyond the margin on that side; with no effect and a margin of a tenth of a
        spread (A/A), and with effects of exactly one margin, up and down.""")
    yield from _item("""**False none**: the share of studies that call an effect of exactly one margin, up or down, no
        practical difference.""")
    yield from _item("""**Coverage**: the share of comparisons whose 95 % interval (`ratio`) holds the truth when the
        study ends: no effect, one margin up, one down, a large effect (three margins). **Judged**: that of the
        interval that decides the verdict; in studies of one cell they are the same.""")
    yield from _item(
        "**Found**: the share of comparisons that are called none at no effect, and better at a large one."
    )
    yield from _item("""**Suspect**: the share of studies with a suspect comparison, at worst. Nothing was wrong in
        any of them.""")
    yield from _item("""**Blocks**: median, with no effect, an effect of one margin (up; for fairness, down), and a
        large one.""")
    yield ""


def _cells(rows: Sequence[Row], table: str) -> Iterator[str]:
    """The table of studies of one cell, or of eight."""
    figures = _Figures(rows, table=table)
    lines = []
    for name in figures.names:
        large = figures.large(name)
        directions = ["A/A", "1", "-1", *(["mixed"] if table == "eight" else [])]
        nones = ["1", "-1", *(["mixed"] if table == "eight" else [])]
        judged = [figures.show(name, "judged_covers", "0", "1", "-1", large)] if table == "eight" else []
        found = [figures.show(name, "none", "0"), figures.show(name, "directed", large)]
        edge = "1" if (name, "1") in figures.rows else "-1"
        lines.append([
            name,
            figures.show(name, "false_direction", *directions),
            figures.show(name, "false_none", *nones),
            figures.show(name, "covers", "0", "1", "-1", large),
            *judged,
            ", ".join(found),
            figures.most(name, "suspect"),
            figures.show(name, "blocks", "0", edge, large, form=lambda value: f"{value:g}"),
        ])  # fmt: skip
    judged_head = ["judged"] if table == "eight" else []
    head = ["noise", "false better or worse", "false none", "coverage", *judged_head, "found", "suspect", "blocks"]
    yield from _table(head, lines)


def _edges(
    rows: Sequence[Row], asked: Sequence[tuple[str, Mapping[str, Any]]], effects: Sequence[str]
) -> Iterator[str]:
    """A small table: for each of some plans, false claims and coverage."""
    figures = [(title, _Figures(rows, **given)) for title, given in asked]
    keys = (("false_direction", "false better or worse"), ("false_none", "false none"), ("covers", "coverage"))
    head = ["noise", *(f"{name}, {title}" for title, _ in figures for _, name in keys)]
    lines = [
        [name, *(each.show(name, key, *(effects if key == "false_direction" else ("1", "-1")))
                 for _, each in figures for key, _ in keys)]
        for name in figures[0][1].names
    ]  # fmt: skip
    yield from _table(head, lines)


def _power(rows: Sequence[Row]) -> Iterator[str]:
    yield "## What is found: by the earlier rules, and now"
    yield ""
    yield from _paragraph("""Normal noise, whose log ratio of two runs spreads as much as the margin; shares of
        comparisons, by the earlier rules → by those of now. The earlier rules compared the treatment with the
        baseline's run alone, and gave *no practical difference* from five blocks on. They are emulated: the same
        runs, judged with Student's interval, the same looks and Holm's levels, without the control and without the
        least number of blocks. Blocks are medians.""")
    rows = [row for row in rows if row["table"] == "power"]
    for cells in sorted({row["cells"] for row in rows}):
        lines = []
        for planned in sorted({row["planned"] for row in rows}):
            both = [_Figures(rows, cells=cells, planned=planned, earlier=earlier) for earlier in (True, False)]
            shown = [
                " → ".join(each.show(each.names[0], key, effect, form=_whole) for each in both)
                for key, effect, _ in POWER
            ]
            lines.append([str(planned), *shown])
        yield "One cell:" if cells == 1 else f"{cells} cells, of equal effects:"
        yield ""
        yield from _table(("at most (blocks)", *(title for *_, title in POWER)), lines)


def _whole(value: float) -> str:
    """A share in per cent, or a number of blocks."""
    return f"{value:g}" if value > 1 else f"{100 * value:.0f}"


def page(rows: Sequence[Row], described: Described, studies: int) -> str:
    """The committed summary."""
    again, rows = [row for row in rows if row["again"]], [row for row in rows if not row["again"]]
    fewer = min(row["studies"] for row in rows)
    lines = ["# Calibration", ""]
    lines += _paragraph(f"""Written by `python -m bench.truth.calibration --studies {studies} --write
        docs/measured/calibration.md`. Synthetic studies whose truth is known are judged by the rules of real ones
        ([statistics.md](../why/statistics.md) has them), for many studies at once; a test compares that with the tool's
        own judge: {len(described)} kinds of noise, most of them chosen to
        break the rules, several by an independent audit.""")
    lines += _promises(rows, again, described)
    lines += _not_guaranteed(rows, described)
    lines += _metrics(rows, again, described)
    lines += _read(studies, fewer)
    lines += ["## The noises", ""]
    noise_lines = [
        [name, each["what"], each["metric"], f"{100 * each['margin']:.1f}", "yes" if each["guaranteed"] else ""]
        for name, each in described.items()
    ]
    lines += _table(("noise", "what", "metric", "margin", "guaranteed"), noise_lines)
    lines += _paragraph("""Formulas have runs that repeat to 1 % unless stated otherwise. Stalls and skewed arms are
        centred, so that the effect on the geometric mean is exactly what it is said to be. The values of `rack` are
        resampled from real studies; p99 and fairness are computed from 1,000 waits and four flows a run.""")
    lines += ["## One cell, at most 12 blocks", "", *_cells(rows, "one")]
    lines += ["## Eight cells, at most 12 blocks", ""]
    lines += _paragraph("""The fourth figure of false better or worse, and the third of false none, are of studies in
        which every other cell has a large effect, and the rest an effect of one margin: the hard case for Holm's
        rule.""")
    lines += _cells(rows, "eight")
    lines += ["## One cell, at most 8 and 20 blocks", "", *_paragraph("Effects of one margin, up and down.")]
    asked: list[tuple[str, Mapping[str, Any]]] = [
        (f"{each}", {"table": "plans", "planned": each}) for each in (8, 20)
    ]  # fmt: skip
    lines += _edges(rows, asked, ("1", "-1"))
    for table, title in (
        ("blocks", "All 12 blocks run (`stop: blocks`)"),
        ("no control", "No A/A control, at most 8 blocks"),
    ):
        lines += [f"## {title}", "", *_paragraph("False better or worse: A/A, one margin up, one down.")]
        asked = [("one cell", {"table": table, "cells": 1}), ("eight", {"table": table, "cells": 8})]
        lines += _edges(rows, asked, ("A/A", "1", "-1"))
    lines += _power(rows)
    return "\n".join(lines).rstrip() + "\n"
