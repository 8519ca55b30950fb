"""The readings of a web site's components in a results folder: CPU time, and the sizes of connections."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from framegauge.reproduce.documents import Reading
from framegauge.reproduce.readings import is_at
from framegauge.reproduce.values import Estimate, Value, none
from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig
from framegauge.statistics import ratio
from framegauge.summary import words

__all__ = ["beside", "cpu", "value"]


def value(saved: Saved, reading: Reading) -> Value:
    """Of `cpu` the ratio of treatment and baseline, run beside run of a block at the same conditions; of `flow_bytes`
    the median connection of a run at that level, with the smallest and the largest of all runs."""
    assert reading.component is not None
    runs = [run for run in saved.runs if not run.excluded and is_at(run.conditions, reading.where)]
    if reading.metric == "flow_bytes":
        return _sizes([_site(saved, run) for run in runs if run.level == reading.level], reading.component)
    shares = [(run, cpu(_site(saved, run), reading.component)) for run in runs]
    before, after = beside(shares, reading.level)
    if not before:
        return none(f"no run has the CPU time of {reading.component}")
    effect = ratio.estimate(before, after)
    if effect.low is None or effect.high is None or not ratio.is_usable(effect.low, effect.high):
        return none(f"no usable interval from {len(before)} pairs of runs")
    change = Estimate(effect.ratio, effect.low, effect.high)
    means = " → ".join(f"{100 * statistics.fmean(side):.3g} %" for side in (before, after))
    ends = change.interval
    text = f"{means} of a CPU, {words.change(effect.ratio, ends)} ({words.change_interval(ends)})"
    return Value(change, text, runs=2 * len(before))


def beside(shares: Iterable[tuple[Run, float]], level: Any) -> tuple[list[float], list[float]]:
    """What runs of the baseline used, and those at `level` of the same block and conditions; none of it is 0."""
    pairs: dict[tuple[int, int], dict[str, float]] = {}
    for run, share in shares:
        side = "before" if run.role == "baseline" else "after" if run.level == level else ""
        if side and share:
            pairs.setdefault((run.block, run.cell), {})[side] = share
    complete = [pair for pair in pairs.values() if len(pair) == 2]
    return [pair["before"] for pair in complete], [pair["after"] for pair in complete]


def cpu(site: Mapping[str, Any], component: str) -> float:
    """The mean share of a CPU that a component used in a run; of `web`, all web servers together: of a few users, each
    of them gets by chance more or fewer."""
    shares = (dig(site, "cpu", name, "mean") for name in site.get("cpu", {}) if name.rpartition("-")[0] == component)
    return float(sum(share or 0.0 for share in shares) or dig(site, "cpu", component, "mean") or 0.0)


def _site(saved: Saved, run: Run) -> Mapping[str, Any]:
    return dig(spools.record(saved.folder, run), "workload", "web") or {}


def _sizes(sites: Iterable[Mapping[str, Any]], component: str) -> Value:
    middles = [statistics.median(sizes) for site in sites if (sizes := _connections(site, component))]
    if not middles:
        return none(f"no run has the connections of {component}")
    least, most, middle = min(middles), max(middles), statistics.median(middles)
    text = f"median {middle:,.0f} B ({least:,.0f} to {most:,.0f} B in {len(middles)} runs)"
    return Value(Estimate(middle, least, most), text, runs=len(middles))


def _connections(site: Mapping[str, Any], component: str) -> Sequence[float]:
    return dig(site, "flows", component, "bytes") or ()
