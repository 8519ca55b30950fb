"""What a change of MTUs did to a workload that went on: before, after, and beside hosts that were not switched."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.quantities import print_seconds
from framegauge.report.pictures.material import Material
from framegauge.results.journal import Run
from framegauge.statistics.pairs import by_cell
from framegauge.summary import words
from framegauge.summary.intervals import CORRECTED
from framegauge.summary.switch import QUANTITIES

__all__ = ["AROUND_HEAD", "KEY", "RATIO_HEAD", "around", "ratios"]

AROUND_HEAD = (
    "comparison", "arm", "hosts", "operations per second, before", "after", "mean latency, before", "after",
    "packets per second, before", "after",
    "longest time without an answer, before", "at the switch", "connections that kept their MSS",
)  # fmt: skip
RATIO_HEAD = (
    "comparison", "arm", "of switched hosts", "before", "after", "after / before", "less that of the others",
    CORRECTED, "margin", "runs", "verdict",
)  # fmt: skip
WHEN = ("before", "after")
METRICS: Mapping[str, str] = {
    "operations per second": "operations_per_second", "mean latency": "mean_latency_seconds",
    "packets per second": "packets_per_second",
}  # fmt: skip
KEY = (
    "Of clients, medians over the runs of an arm: before the first change of a moment and after the last; packets are "
    "those of the client's host, both ways. The stall is the longest time without an answer from the first change to a "
    "second after the last. A connection kept its MSS if it went on after the switch. The difference in differences is "
    "what the switched hosts gained, less what the others gained meanwhile: it assumes that all would have gone the "
    "same way, and needs hosts that are not switched. Packets and CPU are those of all hosts of a kind together, where "
    "they were read. A verdict and its interval are on the difference in differences where there is one: no practical "
    "difference needs an interval inside the margin, and 8 runs."
)


def around(material: Material) -> list[Sequence[str]]:
    """Rows of `AROUND_HEAD`; none without a workload that tells of a switch."""
    return [row for group in _by_arm(material) for row in _around(*group)]


def ratios(material: Material) -> list[Sequence[str]]:
    """Rows of `RATIO_HEAD`: what follows from all runs of an arm (`summary.switch`)."""
    cells = words.Cells(material.summary["verdicts"])
    return [
        (
            cells.of(entry), words.levels(entry["level"]), QUANTITIES[entry["quantity"]].name,
            *(_shown([entry[when]], entry["quantity"]) for when in WHEN),
            _ratio(entry), _ratio(entry["beside"]), _ends(entry["judged"]), words.margin(entry["margin"]),
            str(entry["runs"]), entry["verdict"],
        )
        for entry in material.summary.get("switch", ())
    ]  # fmt: skip


def _by_arm(material: Material) -> Iterator[tuple[str, str, list[Mapping[str, Any]]]]:
    """Comparison, arm and the readings of its runs that count."""
    for cell, cell_runs in by_cell(material.saved.runs).items():
        for arm, look in material.looks.items():
            runs = [run for run in cell_runs if run.arm == arm and not run.excluded]
            if readings := [switch for run in runs if (switch := _switch(run)) is not None]:
                yield material.title_of(cell), look.label, readings


def _switch(run: Run) -> Mapping[str, Any] | None:
    reading: Mapping[str, Any] | None = run.readings.get("switch")
    return reading


def _around(comparison: str, arm: str, readings: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for switched, name in ((True, "switched"), (False, "not switched")):
        clients = [entry for reading in readings for entry in reading["clients"] if entry["switched"] is switched]
        if not clients:
            continue
        counts = [sum(1 for entry in reading["kept"]) for reading in readings]
        yield [
            comparison, arm, name,
            *(_shown([_part(entry, when, key) for entry in clients], key) for key in METRICS.values() for when in WHEN),
            *(_shown([entry[key] for entry in clients], "seconds") for key in ("usual_gap_seconds", "stall_seconds")),
            f"{statistics.median(counts):g}",
        ]  # fmt: skip


def _part(client: Mapping[str, Any], when: str, key: str) -> float | None:
    period = client[when]
    return None if period is None else period[key]


def _shown(values: Sequence[float | None], key: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    middle = statistics.median(known)
    return print_seconds(middle) if key.endswith("seconds") else f"{middle:.4g}"


def _ratio(effect: Mapping[str, Any] | None) -> str:
    return "-" if effect is None else f"{effect['ratio']:.3f}"


def _ends(judged: Sequence[float] | None) -> str:
    """The interval that decided."""
    return "-" if judged is None else f"{judged[0]:.3f} to {judged[1]:.3f}"
