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
    found = [
        (run, name, units)
        for run, told in _arms(runs)
        for name, quantity in QUANTITIES.items()
        if (units := [each for one in told if before_after.alone(each := _units(one, name, quantity)) is not None])
    ]
    return [_entry(run, name, units, margins, key, ALPHA / len(found)) for run, name, units in found]


def _arms(runs: Sequence[Run]) -> Iterator[tuple[Run, list[Told]]]:
    """The readings of the runs of each cell and arm that count, with a run of these; the baseline first."""
    arms: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if not run.excluded and run.readings.get("switch"):
            arms.setdefault((run.cell, run.arm), []).append(run)
    for _, mine in sorted(arms.items(), key=lambda each: (each[0][0], each[1][0].role != "baseline", each[0][1])):
        yield mine[0], [run.readings["switch"] for run in mine]


def _units(told: Told, name: str, quantity: Quantity) -> list[Unit]:
    """Clients by themselves; hosts of a kind together. Where hosts were not read often enough, clients' hosts are."""
    if quantity.of_clients:
        return list(_seen(told["clients"], name))
    seen = list(_seen(told.get("hosts", ()), name)) or list(_seen(told["clients"], name))
    return [
        Unit(kind, sum(each.before for each in mine), sum(each.after for each in mine))
        for kind in (True, False)
        if (mine := [each for each in seen if each.changed is kind])
    ]


def _seen(those: Sequence[Told], name: str) -> Iterator[Unit]:
    """Those that have a value above 0 before and after."""
    for each in those:
        before, after = ((each[when] or {}).get(name) for when in ("before", "after"))
        if before and after:
            yield Unit(each["switched"], before, after)


def _entry(
    run: Run, name: str, units: Sequence[Sequence[Unit]], margins: Mapping[str, float], key: str, alpha: float
) -> dict[str, Any]:
    quantity = QUANTITIES[name]
    given = {each: margins[each] for each in quantity.margins if each in margins}
    margin_of = min(given, key=lambda each: given[each], default=None)
    margin = OTHERWISE if margin_of is None else given[margin_of]
    own = [each for one in units if (each := before_after.alone(one)) is not None]
    beside = [each for one in units if (each := before_after.of_run(one)) is not None]
    judged, verdict = before_after.judge(beside or own, margin, quantity.higher_is_better, alpha)
    changed = [each for one in units for each in one if each.changed]
    return {
        "workload": run.workload,
        "conditions": dict(run.conditions),
        "level": {key: run.level},
        "quantity": name,
        "runs": len(own),
        "before": statistics.median(each.before for each in changed),
        "after": statistics.median(each.after for each in changed),
        **_ratio(before_after.effect(own)),
        "beside": _ratio(before_after.effect(beside)) if beside else None,
        "margin": margin,
        "margin_of": margin_of,
        "judged": interval(judged),
        "verdict": str(verdict),
    }


def _ratio(found: Effect | None) -> dict[str, Any]:
    """`ratio` and `ci95`."""
    if found is None:
        return {"ratio": None, "ci95": None}
    return {"ratio": found.ratio, "ci95": usable(found.interval)}


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A line for each quantity of each arm: "MTU 1500: packets per second: 4.35 times fewer …"."""
    found = summary.get("switch", ()) if summary["faithful"] else ()
    cells = words.Cells(summary["verdicts"])
    for each in found:
        where = "; ".join(filter(None, (cells.of(each), words.levels(each["level"]))))
        yield f"{where}: {_said(each)}"


def _said(each: Mapping[str, Any]) -> str:
    quantity = QUANTITIES[each["quantity"]]
    ratio, ends_judged = (each["beside"] or each)["ratio"], each["judged"]
    change = words.change(ratio, ends_judged)
    interval = f", {words.change_interval(ends_judged)}" if ends_judged else ""
    times = ""
    if each["quantity"] == "packets_per_second" and ratio < 1:
        ends = sorted(1 / end for end in ends_judged) if ends_judged else []
        times = f", to 1/{1 / ratio:.2f}" + (f" (1/{ends[0]:.2f} to 1/{ends[1]:.2f})" if ends else "")
    less = " less that of hosts that were not switched" if each["beside"] else ""
    within = f"margin {words.margin(each['margin'])}"
    return f"{quantity.name} {change}{interval}{less}{times}: {each['verdict']} ({within}, {each['runs']} runs)"
