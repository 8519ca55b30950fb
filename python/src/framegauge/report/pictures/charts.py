"""The charts of a study from its results folder and summary, each with an equivalent text."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.metrics import METRICS
from framegauge.plots import bars, draw, effect, rows, strip
from framegauge.printable import printable
from framegauge.report.pictures import arms, records
from framegauge.report.pictures.records import Reading
from framegauge.results.journal import Run, Saved
from framegauge.statistics.pairs import by_cell
from framegauge.summary import words
from framegauge.summary.intervals import shown
from framegauge.summary.units import unit_scale

__all__ = ["Picture", "leading", "pictures"]

MOST_LEADING = 8
ROLES = {"better": "better", "worse": "worse", "undecided": "undecided"}  # all other verdicts have the role "soft"


@dataclass(frozen=True)
class Picture:
    """A drawn chart: `name` names its file, `kind` the section that shows it, `text` replaces it for screen readers."""

    name: str
    kind: str
    title: str
    text: str
    drawn: str


def pictures(saved: Saved, summary: Mapping[str, Any], readings: Sequence[Reading]) -> list[Picture]:
    """All charts, in the page's order."""
    cells = words.Cells(summary["verdicts"])
    kinds = (
        _effects(summary, cells), _interactions(summary), _strips(saved, cells), _ceilings(saved, cells),
        _cpu(saved, readings, cells),
    )  # fmt: skip
    return [each for kind in kinds for each in kind]


def _better_is(metric: str) -> str:
    return "higher is better" if METRICS[metric].higher_is_better else "lower is better"


def leading(summary: Mapping[str, Any]) -> Picture | None:
    """The effects on the metric that leads, without controls; None without any."""
    treated = [each for each in summary["verdicts"] if not words.is_control(each) and each["ratio"] is not None]
    mine = [each for each in treated if each["metric"] == treated[0]["metric"]][:MOST_LEADING]
    return next(_effects({**summary, "verdicts": mine}, words.Cells(summary["verdicts"])), None) if mine else None


def _effects(summary: Mapping[str, Any], cells: words.Cells) -> Iterator[Picture]:
    """One chart per metric, because each has its own margin."""
    for metric in dict.fromkeys(each["metric"] for each in summary["verdicts"]):
        mine = [each for each in summary["verdicts"] if each["metric"] == metric]
        found = [_effect(each, cells) for each in mine]
        baseline = printable(words.levels(mine[0]["baseline"]))
        title = f"{words.metric(metric)} against {baseline}"
        lines = [f"{each.row.heading}, {each.row.label}: {each.row.note}" for each in found]
        margin = mine[0].get("margin")
        band = f"Band of no practical difference: {words.margin(margin)}. " if margin else ""
        drawn = draw.svg(effect.effect(found, margin, f"change of {title} ({_better_is(metric)})"))
        yield Picture(f"effect-{metric}", "effects", f"Change of {title}", f"{band}{'; '.join(lines)}.", drawn)


def _effect(verdict: Mapping[str, Any], cells: words.Cells) -> effect.Effect:
    control = words.is_control(verdict)
    label = printable(words.levels(verdict["treatment"])) + (" (A/A)" if control else "")
    said = "" if verdict["ratio"] is None else words.change(verdict["ratio"], shown(verdict)) + " "
    found = words.verdict(verdict)
    row = rows.Row(printable(cells.of(verdict)), label, said + found, ROLES.get(found, "soft"))
    return effect.Effect(row, verdict["ratio"], shown(verdict), is_control=control)


def _interactions(summary: Mapping[str, Any]) -> Iterator[Picture]:
    """One chart per metric: the effect at each level of each other factor, averaged over the remaining ones."""
    entries = [each for each in summary.get("interactions", ()) if len(each["factors"]) == 1]
    several = len({each["workload"] for each in entries}) > 1
    for metric in dict.fromkeys(each["metric"] for each in entries):
        found = []
        for entry in (each for each in entries if each["metric"] == metric):
            name = entry["factors"][0]
            heading = f"{words.levels(entry['treatment'])} by {words.factor(name)}"
            heading += f", {entry['workload']}" if several else ""
            for at in entry["at"]:
                label = printable(words.condition(name, at["levels"][name]))
                row = rows.Row(printable(heading), label, words.change(at["ratio"], at["ci95"]), "first")
                found.append(effect.Effect(row, at["ratio"], at["ci95"]))
        text = "; ".join(f"{each.row.heading}, {each.row.label}: {each.row.note}" for each in found)
        title = f"Change of {words.metric(metric)} by what else was varied"
        margin = next((each.get("margin") for each in summary["verdicts"] if each["metric"] == metric), None)
        drawn = draw.svg(effect.effect(found, margin, f"change of {words.metric(metric)} ({_better_is(metric)})"))
        yield Picture(f"interaction-{metric}", "interactions", title, f"{text}.", drawn)


def _strips(saved: Saved, cells: words.Cells) -> Iterator[Picture]:
    """One chart per metric and cell: every run that has a value."""
    looks = arms.looks(saved.plan, saved.runs)
    blocks = 1 + max((run.block for run in saved.runs), default=0)
    for cell, inside in by_cell(saved.runs).items():
        for metric in saved.plan["margins"]:
            if metric not in METRICS or not any(metric in run.metrics for run in inside):
                continue
            most = max(run.metrics[metric] for run in inside if metric in run.metrics)
            factor, unit = unit_scale(METRICS[metric].unit, most)
            title = f"{words.metric(metric)} of every run, {arms.cell_title(inside, cells)}"
            found = [
                _arm(look, [run for run in inside if run.arm == name], metric, factor, unit)
                for name, look in looks.items()
            ]
            found = [each for each in found if each.runs or each.excluded]
            text = "; ".join(f"{each.row.label}: {each.row.note}" for each in found)
            axis = f"{words.metric(metric)} ({unit})" if unit else words.metric(metric)
            drawn = draw.svg(strip.strip(found, blocks, f"{axis}, {_better_is(metric)}"))
            yield Picture(f"runs-{cell + 1}-{metric}", "runs", title[0].upper() + title[1:], f"{text}.", drawn)


def _arm(look: arms.Look, runs: Sequence[Run], metric: str, factor: float, unit: str) -> strip.Arm:
    values = {
        lost: [
            (run.block, run.metrics[metric] / factor)
            for run in runs
            if bool(run.excluded) is lost and metric in run.metrics
        ]
        for lost in (False, True)
    }
    middle = statistics.median(value for _, value in values[False]) if values[False] else None
    note = "no run" if middle is None else f"median {middle:.4g} {unit}".rstrip() + f" of {len(values[False])}"
    note += f", {len(values[True])} excluded" if values[True] else ""
    return strip.Arm(rows.Row("", look.label, note, look.role), look.shape, values[False], values[True], middle)


def _ceilings(saved: Saved, cells: words.Cells) -> Iterator[Picture]:
    """One chart: the goodput of the median run of every arm and cell, and its ceiling."""
    looks = arms.looks(saved.plan, saved.runs)
    found = []
    for inside in by_cell(saved.runs).values():
        for name, look in looks.items():
            mine = [
                run for run in inside
                if run.arm == name and not run.excluded and "goodput" in run.metrics
                and run.readings.get("ceiling_bits_per_second")
            ]  # fmt: skip
            if mine:
                value = statistics.median(run.metrics["goodput"] for run in mine)
                ceiling = statistics.median(run.readings["ceiling_bits_per_second"] for run in mine)
                found.append((arms.cell_title(inside, cells), look, value, ceiling))
    if not found:
        return
    factor, unit = unit_scale("bits_per_second", max(ceiling for *_, ceiling in found))
    drawn = [
        bars.Bar(
            rows.Row(
                title, look.label, f"{value / factor:.4g} of {ceiling / factor:.4g}: {100 * value / ceiling:.1f} %"
            ),
            value / factor,
            ceiling / factor,
            look.role,
        )
        for title, look, value, ceiling in found
    ]
    text = "; ".join(f"{bar.row.heading}, {bar.row.label}: {bar.row.note}" for bar in drawn)
    chart = bars.ceilings(drawn, f"goodput ({unit}), median run; the stroke is the ceiling")
    title = f"Goodput against its ceiling ({unit})"
    yield Picture("ceiling", "ceiling", title, f"{text}.", draw.svg(chart))


def _cpu(saved: Saved, readings: Sequence[Reading], cells: words.Cells) -> Iterator[Picture]:
    """One chart: core-seconds per gigabyte delivered, by user."""
    looks = arms.looks(saved.plan, saved.runs)
    found, medians = [], records.medians(readings)
    for cell, inside in by_cell(saved.runs).items():
        for name, look in looks.items():
            figures = medians.get((cell, name), {})
            parts = {part: figures[key] for key, part in records.USERS.items() if key in figures}
            if len(parts) == len(records.USERS):
                note = f"hosts {parts['hosts']:.2f}, fabric {parts['fabric']:.2f} s/GB"
                found.append(bars.Stack(rows.Row(arms.cell_title(inside, cells), look.label, note), parts))
    if found:
        text = "; ".join(
            f"{each.row.heading}, {each.row.label}: "
            + ", ".join(f"{part} {value:.2f}" for part, value in each.parts.items())
            for each in found
        )
        drawn = draw.svg(
            bars.stacks(
                found, ["core-seconds per gigabyte delivered, median run;", f"from the left: {', '.join(bars.PARTS)}"]
            )
        )
        yield Picture("cpu", "cpu", "Where CPU time went, core-seconds per gigabyte delivered", f"{text}.", drawn)
