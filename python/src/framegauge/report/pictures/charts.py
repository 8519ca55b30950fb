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
    return [picture for kind in kinds for picture in kind]


def _better_is(metric: str) -> str:
    return "higher is better" if METRICS[metric].higher_is_better else "lower is better"


def leading(summary: Mapping[str, Any]) -> Picture | None:
    """The effects on the metric that leads, without controls; None without any."""
    treated = [entry for entry in summary["verdicts"] if not words.is_control(entry) and entry["ratio"] is not None]
    entries = [entry for entry in treated if entry["metric"] == treated[0]["metric"]][:MOST_LEADING]
    return next(_effects({**summary, "verdicts": entries}, words.Cells(summary["verdicts"])), None) if entries else None


def _effects(summary: Mapping[str, Any], cells: words.Cells) -> Iterator[Picture]:
    """One chart per metric, because each has its own margin."""
    for metric in dict.fromkeys(entry["metric"] for entry in summary["verdicts"]):
        verdicts = [entry for entry in summary["verdicts"] if entry["metric"] == metric]
        effects = [_effect(entry, cells) for entry in verdicts]
        baseline = printable(words.levels(verdicts[0]["baseline"]))
        title = f"{words.metric(metric)} against {baseline}"
        lines = [f"{entry.row.heading}, {entry.row.label}: {entry.row.note}" for entry in effects]
        margin = verdicts[0].get("margin")
        band = f"Band of no practical difference: {words.margin(margin)}. " if margin else ""
        drawn = draw.svg(effect.effect(effects, margin, f"change of {title} ({_better_is(metric)})"))
        yield Picture(f"effect-{metric}", "effects", f"Change of {title}", f"{band}{'; '.join(lines)}.", drawn)


def _effect(verdict: Mapping[str, Any], cells: words.Cells) -> effect.Effect:
    control = words.is_control(verdict)
    label = printable(words.levels(verdict["treatment"])) + (" (A/A)" if control else "")
    change = "" if verdict["ratio"] is None else words.change(verdict["ratio"], shown(verdict)) + " "
    outcome = words.verdict(verdict)
    row = rows.Row(printable(cells.of(verdict)), label, change + outcome, ROLES.get(outcome, "soft"))
    return effect.Effect(row, verdict["ratio"], shown(verdict), is_control=control)


def _interactions(summary: Mapping[str, Any]) -> Iterator[Picture]:
    """One chart per metric: the effect at each level of each other factor, averaged over the remaining ones."""
    entries = [item for item in summary.get("interactions", ()) if len(item["factors"]) == 1]
    several = len({item["workload"] for item in entries}) > 1
    for metric in dict.fromkeys(item["metric"] for item in entries):
        effects = []
        for entry in (item for item in entries if item["metric"] == metric):
            name = entry["factors"][0]
            heading = f"{words.levels(entry['treatment'])} by {words.factor(name)}"
            heading += f", {entry['workload']}" if several else ""
            for estimate in entry["at"]:
                label = printable(words.condition(name, estimate["levels"][name]))
                row = rows.Row(printable(heading), label, words.change(estimate["ratio"], estimate["ci95"]), "first")
                effects.append(effect.Effect(row, estimate["ratio"], estimate["ci95"]))
        text = "; ".join(f"{item.row.heading}, {item.row.label}: {item.row.note}" for item in effects)
        title = f"Change of {words.metric(metric)} by what else was varied"
        margin = next((item.get("margin") for item in summary["verdicts"] if item["metric"] == metric), None)
        drawn = draw.svg(effect.effect(effects, margin, f"change of {words.metric(metric)} ({_better_is(metric)})"))
        yield Picture(f"interaction-{metric}", "interactions", title, f"{text}.", drawn)


def _strips(saved: Saved, cells: words.Cells) -> Iterator[Picture]:
    """One chart per metric and cell: every run that has a value."""
    looks = arms.looks(saved.plan, saved.runs)
    blocks = 1 + max((run.block for run in saved.runs), default=0)
    for cell, cell_runs in by_cell(saved.runs).items():
        for metric in saved.plan["margins"]:
            if metric not in METRICS or not any(metric in run.metrics for run in cell_runs):
                continue
            most = max(run.metrics[metric] for run in cell_runs if metric in run.metrics)
            factor, unit = unit_scale(METRICS[metric].unit, most)
            title = f"{words.metric(metric)} of every run, {arms.cell_title(cell_runs, cells)}"
            strip_arms = [
                _arm(look, [run for run in cell_runs if run.arm == name], metric, factor, unit)
                for name, look in looks.items()
            ]
            strip_arms = [arm for arm in strip_arms if arm.runs or arm.excluded]
            text = "; ".join(f"{arm.row.label}: {arm.row.note}" for arm in strip_arms)
            axis = f"{words.metric(metric)} ({unit})" if unit else words.metric(metric)
            drawn = draw.svg(strip.strip(strip_arms, blocks, f"{axis}, {_better_is(metric)}"))
            yield Picture(f"runs-{cell + 1}-{metric}", "runs", title[0].upper() + title[1:], f"{text}.", drawn)


def _arm(look: arms.Look, runs: Sequence[Run], metric: str, factor: float, unit: str) -> strip.Arm:
    values = {
        is_excluded: [
            (run.block, run.metrics[metric] / factor)
            for run in runs
            if bool(run.excluded) is is_excluded and metric in run.metrics
        ]
        for is_excluded in (False, True)
    }
    middle = statistics.median(value for _, value in values[False]) if values[False] else None
    note = "no run" if middle is None else f"median {middle:.4g} {unit}".rstrip() + f" of {len(values[False])}"
    note += f", {len(values[True])} excluded" if values[True] else ""
    return strip.Arm(rows.Row("", look.label, note, look.role), look.shape, values[False], values[True], middle)


def _ceilings(saved: Saved, cells: words.Cells) -> Iterator[Picture]:
    """One chart: the goodput of the median run of every arm and cell, and its ceiling."""
    looks = arms.looks(saved.plan, saved.runs)
    ceilings = []
    for cell_runs in by_cell(saved.runs).values():
        for name, look in looks.items():
            arm_runs = [
                run for run in cell_runs
                if run.arm == name and not run.excluded and "goodput" in run.metrics
                and run.readings.get("ceiling_bits_per_second")
            ]  # fmt: skip
            if arm_runs:
                value = statistics.median(run.metrics["goodput"] for run in arm_runs)
                ceiling = statistics.median(run.readings["ceiling_bits_per_second"] for run in arm_runs)
                ceilings.append((arms.cell_title(cell_runs, cells), look, value, ceiling))
    if not ceilings:
        return
    factor, unit = unit_scale("bits_per_second", max(ceiling for *_, ceiling in ceilings))
    drawn = [
        bars.Bar(
            rows.Row(
                title, look.label, f"{value / factor:.4g} of {ceiling / factor:.4g}: {100 * value / ceiling:.1f} %"
            ),
            value / factor,
            ceiling / factor,
            look.role,
        )
        for title, look, value, ceiling in ceilings
    ]
    text = "; ".join(f"{bar.row.heading}, {bar.row.label}: {bar.row.note}" for bar in drawn)
    chart = bars.ceilings(drawn, f"goodput ({unit}), median run; the stroke is the ceiling")
    title = f"Goodput against its ceiling ({unit})"
    yield Picture("ceiling", "ceiling", title, f"{text}.", draw.svg(chart))


def _cpu(saved: Saved, readings: Sequence[Reading], cells: words.Cells) -> Iterator[Picture]:
    """One chart: core-seconds per gigabyte delivered, by user."""
    looks = arms.looks(saved.plan, saved.runs)
    stacks, medians = [], records.medians(readings)
    for cell, cell_runs in by_cell(saved.runs).items():
        for name, look in looks.items():
            figures = medians.get((cell, name), {})
            parts = {part: figures[key] for key, part in records.USERS.items() if key in figures}
            if len(parts) == len(records.USERS):
                note = f"hosts {parts['hosts']:.2f}, fabric {parts['fabric']:.2f} s/GB"
                stacks.append(bars.Stack(rows.Row(arms.cell_title(cell_runs, cells), look.label, note), parts))
    if stacks:
        text = "; ".join(
            f"{stack.row.heading}, {stack.row.label}: "
            + ", ".join(f"{part} {value:.2f}" for part, value in stack.parts.items())
            for stack in stacks
        )
        drawn = draw.svg(
            bars.stacks(
                stacks, ["core-seconds per gigabyte delivered, median run;", f"from the left: {', '.join(bars.PARTS)}"]
            )
        )
        yield Picture("cpu", "cpu", "Where CPU time went, core-seconds per gigabyte delivered", f"{text}.", drawn)
