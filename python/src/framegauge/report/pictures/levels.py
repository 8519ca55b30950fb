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
    named = words.Cells(summary["verdicts"])
    asked = {each["metric"]: each["margin"] for each in summary.get("smallest_levels", ())}
    for metric, margin in asked.items():
        for inside in by_cell(saved.runs).values():
            if not any(metric in run.metrics for run in inside):
                continue
            mine = [
                each for each in summary["verdicts"]
                if each["metric"] == metric and each["workload"] == inside[0].workload
                and each["conditions"] == dict(inside[0].conditions)
                and each["ratio"] is not None and not words.is_control(each)
            ]  # fmt: skip
            if len(mine) >= LEAST_LEVELS - 1:
                yield _picture(mine, inside, key, margin, named)


def _picture(
    verdicts: Sequence[Mapping[str, Any]], inside: Sequence[Run], key: str, margin: float, cells: words.Cells
) -> Picture:
    metric = verdicts[0]["metric"]
    points = [_point(key, verdicts[0]["baseline"][key], 1.0, None)]
    points += [_point(key, each["treatment"][key], each["ratio"], shown(each)) for each in verdicts]
    top = max(points, key=lambda each: each.level)
    band = (top.ratio / (1 + margin), top.ratio * (1 + margin))
    of = f"{words.metric(metric)} against {words.levels(verdicts[0]['baseline'])}"
    better = "higher" if METRICS[metric].higher_is_better else "lower"
    measured = rows.Row("", f"measured ({better} is better)", f"{words.change(top.ratio)} at {top.label}", "first")
    ceilings = _ceilings(inside, key) if metric == "goodput" else []
    arithmetic = None
    if len(ceilings) == len(points):
        most = max(ceilings, key=lambda each: each.level)
        arithmetic = (rows.Row("", "by arithmetic: headers alone", words.change(most.ratio), "second"), ceilings)
    drawn = draw.svg(dose.dose((measured, points), arithmetic, band, printable(words.factor(key))))
    said = [f"{each.label}: {words.change(each.ratio, each.interval)}" for each in points[1:]]
    said += [f"by arithmetic {each.label}: {words.change(each.ratio)}" for each in ceilings if each.ratio != 1]
    where = cells.of(verdicts[0])
    head = printable(f"Change of {of} by level" + (f", {where}" if where else ""))
    return Picture(f"levels-{inside[0].cell + 1}-{metric}", "levels", head, f"{'; '.join(said)}.", drawn)


def _point(key: str, level: Any, ratio: float, interval: Sequence[float] | None) -> dose.Point:
    label = words.levels({key: level}).removeprefix(words.word(key)).strip()
    return dose.Point(float(level), label, ratio, interval)


def _ceilings(inside: Sequence[Run], key: str) -> list[dose.Point]:
    """The goodput ceiling at each level, as a ratio to that at the baseline."""
    found: dict[Any, list[float]] = {}
    for run in inside:
        if ceiling := run.readings.get("ceiling_bits_per_second"):
            found.setdefault(run.level, []).append(ceiling)
    baseline = next((run.level for run in inside if run.role == "baseline"), None)
    if baseline not in found:
        return []
    first = statistics.median(found[baseline])
    return [_point(key, level, statistics.median(each) / first, None) for level, each in sorted(found.items())]
