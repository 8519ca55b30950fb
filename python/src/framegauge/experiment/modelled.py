"""What packets take of CPUs, from the results of a study: a model for simulations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from framegauge.errors import InputError
from framegauge.estimate.model import COSTS, Model, Unfit, Work, fit
from framegauge.evidence.work import not_modelled, works
from framegauge.printable import one_line
from framegauge.results import journal, spools

__all__ = ["model", "text"]

SCHEMA = 1
Json = dict[str, Any]
LINE = 118


def model(folder: Path) -> Json:
    """The document: the costs in seconds with the ends of their 95 % intervals, what they were fitted to, and how well.
    InputError if the runs do not tell."""
    saved = journal.read(folder)
    all_works: list[Work] = []
    reasons = Counter[str]()
    valid_runs = [run for run in saved.runs if not run.excluded]
    for run in valid_runs:
        record = dict(spools.record(saved.folder, run))
        why = not_modelled(record) if record else "its record is missing"
        if why is None:
            all_works += works(record, run.block)
        else:
            reasons[why.partition(": ")[0]] += 1
    try:
        fitted = fit(all_works)
    except Unfit as error:
        more = "; ".join(f"{count} of {len(valid_runs)} runs: {why}" for why, count in reasons.most_common())
        raise InputError(f"{folder}: {error}{f' ({more})' if more else ''}") from None
    return {
        "schema": SCHEMA, "source": one_line(str(folder)), "runs": len(valid_runs) - sum(reasons.values()),
        "left_out": dict(reasons), "costs": {name: _cost(fitted, name) for name in COSTS},
        "deviations": dict(fitted.deviations),
    }  # fmt: skip


def _cost(fitted: Model, name: str) -> Json:
    low, high = fitted.intervals[name]
    return {"seconds": fitted.seconds[name], "low_seconds": low, "high_seconds": high}


def text(document: Json) -> str:
    """The model as a file that `testbed.cpu` of a simulated study names (docs/how-to/simulate.md)."""
    costs = document["costs"]
    worst = max(document["deviations"].items(), key=lambda arm: abs(arm[1]))
    lines = [
        "# What packets take of a core, fitted to what runs of a study took (framegauge estimate --model).",
        f"# From {document['source']}, {document['runs']} runs; left out: {sum(document['left_out'].values())}.",
        f"# An arm's median CPU time differs from the model by {abs(worst[1]):.0%} at most ({worst[0]}).",
        "# Of what is sent, packets and aggregates are as many: their cost is that of the aggregate.",
        "# 95 % intervals:",
        *(f"#   {name}: {_time(cost['low_seconds'])} to {_time(cost['high_seconds'])}" for name, cost in costs.items()),
        "cores: 1",
        f"wakeup: {_time(costs['wakeup']['seconds'])}",
        f"receive: {_side(costs, 'receive', ('packet', 'aggregate', 'byte'))}",
        f"send: {{packet: 0 ns, {_side(costs, 'send', ('aggregate', 'byte'))[1:]}",
    ]
    return "\n".join(lines) + "\n"


def _side(costs: Json, side: str, names: tuple[str, ...]) -> str:
    return "{" + ", ".join(f"{name}: {_time(costs[f'{side}.{name}']['seconds'])}" for name in names) + "}"


def _time(seconds: float) -> str:
    """Such as `212 ns`, to three digits, as study files have times."""
    return f"{float(f'{seconds * 1e9:.3g}'):g} ns"
