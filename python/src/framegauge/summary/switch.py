"""What a change of MTUs did to runs in its middle: after it against before it, of each arm, with a verdict.

Operations and latency are those of each client, packets and CPU those of all hosts of a kind together: hosts that carry
much count for much. Where some hosts are not switched, it is judged what the others did less what these did.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.metrics import OTHERWISE
from framegauge.results.journal import Run
from framegauge.statistics import before_after
from framegauge.statistics.before_after import Effect, Unit
from framegauge.statistics.ratio import ALPHA
from framegauge.summary import words
from framegauge.summary.intervals import interval, usable

__all__ = ["QUANTITIES", "entries", "lines"]

Told = Mapping[str, Any]  # the readings `switch` of a run, or a part of them


@dataclass(frozen=True)
class Quantity:
    """What is compared: its name in words, whether of clients or of all hosts together, and the metrics of a study
    whose margins it has: the smallest of those that are given."""

    name: str
    of_clients: bool
    margins: tuple[str, ...]
    higher_is_better: bool = False


QUANTITIES: Mapping[str, Quantity] = {
    "packets_per_second": Quantity("packets per second", False, ()),
    "cpu_seconds_per_second": Quantity("CPU (cores)", False, ("sender_cpu_cost", "receiver_cpu_cost")),
    "mean_latency_seconds": Quantity("mean latency", True, ("latency_p50",)),
    "operations_per_second": Quantity("operations per second", True, ("operations", "iops"), True),
}


def entries(runs: Sequence[Run], margins: Mapping[str, float], key: str) -> list[dict[str, Any]]:
    """One entry for each cell, arm and quantity that was seen before and after; `key` names the treatment. Together
    their verdicts mislead with 5 % probability at most (Bonferroni)."""
    cases = [
        (run, name, units)
        for run, arm_readings in _arms(runs)
        for name, quantity in QUANTITIES.items()
        if (
            units := [
                run_units
                for readings in arm_readings
                if before_after.alone(run_units := _units(readings, name, quantity)) is not None
            ]
        )
    ]
    return [_entry(run, name, units, margins, key, ALPHA / len(cases)) for run, name, units in cases]


def _arms(runs: Sequence[Run]) -> Iterator[tuple[Run, list[Told]]]:
    """The readings of the runs of each cell and arm that count, with a run of these; the baseline first."""
    arms: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if not run.excluded and run.readings.get("switch"):
            arms.setdefault((run.cell, run.arm), []).append(run)
    for _, arm_runs in sorted(arms.items(), key=lambda item: (item[0][0], item[1][0].role != "baseline", item[0][1])):
        yield arm_runs[0], [run.readings["switch"] for run in arm_runs]


def _units(readings: Told, name: str, quantity: Quantity) -> list[Unit]:
    """Clients by themselves; hosts of a kind together. Where hosts were not read often enough, clients' hosts are."""
    if quantity.of_clients:
        return list(_seen(readings["clients"], name))
    units = list(_seen(readings.get("hosts", ()), name)) or list(_seen(readings["clients"], name))
    return [
        Unit(kind, sum(unit.before for unit in group), sum(unit.after for unit in group))
        for kind in (True, False)
        if (group := [unit for unit in units if unit.changed is kind])
    ]


def _seen(endpoints: Sequence[Told], name: str) -> Iterator[Unit]:
    """Those that have a value above 0 before and after."""
    for endpoint in endpoints:
        before, after = ((endpoint[when] or {}).get(name) for when in ("before", "after"))
        if before and after:
            yield Unit(endpoint["switched"], before, after)


def _entry(
    run: Run, name: str, units: Sequence[Sequence[Unit]], margins: Mapping[str, float], key: str, alpha: float
) -> dict[str, Any]:
    quantity = QUANTITIES[name]
    metric_margins = {item: margins[item] for item in quantity.margins if item in margins}
    margin_of = min(metric_margins, key=lambda item: metric_margins[item], default=None)
    margin = OTHERWISE if margin_of is None else metric_margins[margin_of]
    own = [item for run_units in units if (item := before_after.alone(run_units)) is not None]
    beside = [item for run_units in units if (item := before_after.of_run(run_units)) is not None]
    judged, verdict = before_after.judge(beside or own, margin, quantity.higher_is_better, alpha)
    changed = [item for run_units in units for item in run_units if item.changed]
    return {
        "workload": run.workload,
        "conditions": dict(run.conditions),
        "level": {key: run.level},
        "quantity": name,
        "runs": len(own),
        "before": statistics.median(item.before for item in changed),
        "after": statistics.median(item.after for item in changed),
        **_ratio(before_after.effect(own)),
        "beside": _ratio(before_after.effect(beside)) if beside else None,
        "margin": margin,
        "margin_of": margin_of,
        "judged": interval(judged),
        "verdict": str(verdict),
    }


def _ratio(effect: Effect | None) -> dict[str, Any]:
    """`ratio` and `ci95`."""
    if effect is None:
        return {"ratio": None, "ci95": None}
    return {"ratio": effect.ratio, "ci95": usable(effect.interval)}


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A line for each quantity of each arm: "MTU 1500: packets per second: 4.35 times fewer …"."""
    changes = summary.get("switch", ()) if summary["faithful"] else ()
    cells = words.Cells(summary["verdicts"])
    for entry in changes:
        where = "; ".join(filter(None, (cells.of(entry), words.levels(entry["level"]))))
        yield f"{where}: {_said(entry)}"


def _said(entry: Mapping[str, Any]) -> str:
    quantity = QUANTITIES[entry["quantity"]]
    ratio, ends_judged = (entry["beside"] or entry)["ratio"], entry["judged"]
    change = words.change(ratio, ends_judged)
    interval = f", {words.change_interval(ends_judged)}" if ends_judged else ""
    times = ""
    if entry["quantity"] == "packets_per_second" and ratio < 1:
        ends = sorted(1 / end for end in ends_judged) if ends_judged else []
        times = f", to 1/{1 / ratio:.2f}" + (f" (1/{ends[0]:.2f} to 1/{ends[1]:.2f})" if ends else "")
    less = " less that of hosts that were not switched" if entry["beside"] else ""
    within = f"margin {words.margin(entry['margin'])}"
    return f"{quantity.name} {change}{interval}{less}{times}: {entry['verdict']} ({within}, {entry['runs']} runs)"
