"""One chart per metric and cell of a treatment with at least three levels: the effect at each level, with the change of
the goodput ceilings, which arithmetic alone gives, beside it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.plots import dose, draw, rows
from framegauge.printable import printable
from framegauge.report.pictures.charts import Picture
from framegauge.results.journal import Run, Saved
from framegauge.statistics.pairs import by_cell
from framegauge.summary import words
from framegauge.summary.document import factor_key
from framegauge.summary.intervals import shown

__all__ = ["pictures"]

LEAST_LEVELS = 3


def pictures(saved: Saved, summary: Mapping[str, Any]) -> Iterator[Picture]:
    """The charts, metric by metric; none unless the summary names smallest sufficient levels."""
    key = factor_key(saved.plan["treatment"])
    cells = words.Cells(summary["verdicts"])
    margins = {entry["metric"]: entry["margin"] for entry in summary.get("smallest_levels", ())}
    for metric, margin in margins.items():
        for cell_runs in by_cell(saved.runs).values():
            if not any(metric in run.metrics for run in cell_runs):
                continue
            verdicts = [
                entry for entry in summary["verdicts"]
                if entry["metric"] == metric and entry["workload"] == cell_runs[0].workload
                and entry["conditions"] == dict(cell_runs[0].conditions)
                and entry["ratio"] is not None and not words.is_control(entry)
            ]  # fmt: skip
            if len(verdicts) >= LEAST_LEVELS - 1:
                yield _picture(verdicts, cell_runs, key, margin, cells)


def _picture(
    verdicts: Sequence[Mapping[str, Any]], cell_runs: Sequence[Run], key: str, margin: float, cells: words.Cells
) -> Picture:
    metric = verdicts[0]["metric"]
    points = [_point(key, verdicts[0]["baseline"][key], 1.0, None)]
    points += [_point(key, item["treatment"][key], item["ratio"], shown(item)) for item in verdicts]
    top = max(points, key=lambda item: item.level)
    band = (top.ratio / (1 + margin), top.ratio * (1 + margin))
    subject = f"{words.metric(metric)} against {words.levels(verdicts[0]['baseline'])}"
    better = "higher" if METRICS[metric].higher_is_better else "lower"
    measured = rows.Row("", f"measured ({better} is better)", f"{words.change(top.ratio)} at {top.label}", "first")
    ceilings = _ceilings(cell_runs, key) if metric == "goodput" else []
    arithmetic = None
    if len(ceilings) == len(points):
        most = max(ceilings, key=lambda item: item.level)
        arithmetic = (rows.Row("", "by arithmetic: headers alone", words.change(most.ratio), "second"), ceilings)
    drawn = draw.svg(dose.dose((measured, points), arithmetic, band, printable(words.factor(key))))
    changes = [f"{item.label}: {words.change(item.ratio, item.interval)}" for item in points[1:]]
    changes += [f"by arithmetic {item.label}: {words.change(item.ratio)}" for item in ceilings if item.ratio != 1]
    cell = cells.of(verdicts[0])
    head = printable(f"Change of {subject} by level" + (f", {cell}" if cell else ""))
    return Picture(f"levels-{cell_runs[0].cell + 1}-{metric}", "levels", head, f"{'; '.join(changes)}.", drawn)


def _point(key: str, level: Any, ratio: float, interval: Sequence[float] | None) -> dose.Point:
    label = words.levels({key: level}).removeprefix(words.word(key)).strip()
    return dose.Point(float(level), label, ratio, interval)


def _ceilings(cell_runs: Sequence[Run], key: str) -> list[dose.Point]:
    """The goodput ceiling at each level, as a ratio to that at the baseline."""
    by_level: dict[Any, list[float]] = {}
    for run in cell_runs:
        if ceiling := run.readings.get("ceiling_bits_per_second"):
            by_level.setdefault(run.level, []).append(ceiling)
    baseline = next((run.level for run in cell_runs if run.role == "baseline"), None)
    if baseline not in by_level:
        return []
    first = statistics.median(by_level[baseline])
    return [_point(key, level, statistics.median(values) / first, None) for level, values in sorted(by_level.items())]
