"""Where the time of connections went, by arm, and what changed: for summary.json (`lost_time`).

Diagnoses of captures say it (`meters: {diagnose: on}`). A change is that of the time a connection needs for each byte,
as a share of the baseline's; those of its causes add up to it. The figures describe: no verdict rests on them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.results.journal import Run
from framegauge.statistics.mean import Mean, mean
from framegauge.summary import words

__all__ = ["HEAD", "entries", "lines", "rows"]

LEAST_CHANGE = 0.005
MOST_NAMED = 4
HEAD = ("comparison", "cause", "of the baseline's time", "of the treatment's time", "change of the whole", "95 %")


def entries(runs: Sequence[Run], key: str) -> list[dict[str, Any]]:
    """One entry per cell and level of the treatment (named `key`), of the runs that were diagnosed and count."""
    counted = [run for run in runs if not run.excluded and _life(run) is not None]
    baselines = {(run.cell, run.block): run for run in counted if run.role == "baseline"}
    arms: dict[tuple[int, str], list[tuple[Run, Run]]] = {}
    for run in sorted(counted, key=lambda counted_run: (counted_run.cell, counted_run.block)):
        if run.role == "treatment" and (run.cell, run.block) in baselines:
            arms.setdefault((run.cell, run.arm), []).append((baselines[run.cell, run.block], run))
    return [_entry(pairs, key) for _, pairs in sorted(arms.items(), key=lambda item: item[0])]


def _life(run: Run) -> float | None:
    """The seconds that connections needed for each byte; None where nothing is known of it."""
    diagnosis = run.readings.get("diagnosis")
    if not diagnosis or not diagnosis["payload_bytes"]:
        return None
    seconds: Mapping[str, float] = diagnosis["seconds"]
    return math.fsum(seconds.values()) / diagnosis["payload_bytes"] or None


def _share(run: Run, cause: str, reference: Run) -> float:
    """The seconds of a cause for each byte, as a share of the life of another run."""
    diagnosis, life = run.readings["diagnosis"], _life(reference)
    assert life is not None
    spent: float = diagnosis["seconds"].get(cause, 0.0) / diagnosis["payload_bytes"]
    return spent / life


def _entry(pairs: Sequence[tuple[Run, Run]], key: str) -> dict[str, Any]:
    baseline, treatment = pairs[0]
    causes = {cause for pair in pairs for run in pair for cause in run.readings["diagnosis"]["seconds"]}
    changes = {
        cause: mean(
            [
                _share(treated_run, cause, base_run) - _share(base_run, cause, base_run)
                for base_run, treated_run in pairs
            ]
        )
        for cause in causes
    }
    whole_change = mean(
        [sum(_share(treated_run, cause, base_run) for cause in causes) - 1 for base_run, treated_run in pairs]
    )
    return {
        "workload": baseline.workload,
        "conditions": dict(baseline.conditions),
        "baseline": {key: baseline.level},
        "treatment": {key: treatment.level},
        "blocks": len(pairs),
        "cut_runs": sum(_is_cut(run) for pair in pairs for run in pair),
        "seconds_per_gigabyte": {
            side: statistics.fmean(1e9 * (_life(run) or 0.0) for run in side_runs)
            for side, side_runs in zip(("baseline", "treatment"), zip(*pairs, strict=True), strict=True)
        },
        "change": _change(whole_change),
        "causes": [
            {
                "cause": cause,
                "baseline": statistics.fmean(_share(base_run, cause, base_run) for base_run, _ in pairs),
                "treatment": statistics.fmean(_share(treated_run, cause, treated_run) for _, treated_run in pairs),
                "change": _change(changes[cause]),
            }
            for cause in sorted(causes, key=lambda cause_name: (-abs(changes[cause_name].mean), cause_name))
        ],
    }


def _change(estimate: Mean) -> dict[str, Any]:
    return {"share": estimate.mean, "ci95": None if estimate.interval is None else list(estimate.interval)}


def _is_cut(run: Run) -> bool:
    """Whether a capture of the run lacks packets."""
    taps = run.readings["diagnosis"]["captures"].values()
    return any(tap["given_up_packets"] or tap["dropped_packets"] for tap in taps)


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """One line per comparison: how much longer a byte took, and the causes that changed by more than chance."""
    for name, entry in _named(summary):
        changed = [cause for cause in entry["causes"] if _is_sure(cause["change"])]
        texts = [f"{cause['cause']} {_said(cause['change'])}" for cause in changed[:MOST_NAMED]]
        if len(changed) > MOST_NAMED:
            texts.append(f"{len(changed) - MOST_NAMED} more")
        detail = f": {', '.join(texts)}" if texts else "; no cause changed by more than chance"
        runs = entry["cut_runs"]
        note = f" (captures of {runs} run{'' if runs == 1 else 's'} lack packets)" if runs else ""
        yield f"{name}: time of connections per byte {_said(entry['change'])}{detail}{note}"


def rows(summary: Mapping[str, Any]) -> Iterator[list[str]]:
    """The same with all causes, as rows below HEAD."""
    for name, entry in _named(summary):
        total = ["all", "100 %", "100 %", *_cells(entry["change"])]
        for row in [total, *([cause["cause"], *_shares(cause), *_cells(cause["change"])] for cause in entry["causes"])]:
            yield [name, *row]
            name = ""


def _shares(cause: Mapping[str, Any]) -> list[str]:
    return [f"{100 * cause[side]:.1f} %" for side in ("baseline", "treatment")]


def _cells(change: Mapping[str, Any]) -> list[str]:
    ends = None if change["ci95"] is None else [1 + end for end in change["ci95"]]
    return [words.change(1 + change["share"], ends), words.change_interval(ends)]


def _named(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each entry with what tells it from the others."""
    lost_times = summary.get("lost_time", ())  # older summaries lack it
    cells = words.Cells(summary.get("verdicts") or lost_times)
    for entry in lost_times:
        yield ", ".join(filter(None, (cells.of(entry), words.levels(entry["treatment"])))), entry


def _is_sure(change: Mapping[str, Any]) -> bool:
    """Whether it is large enough to be told, and its interval, if there is one, excludes that nothing changed."""
    interval = change["ci95"]
    return abs(change["share"]) >= LEAST_CHANGE and (interval is None or not interval[0] <= 0 <= interval[1])


def _said(change: Mapping[str, Any]) -> str:
    value, interval = _cells(change)
    return value if change["ci95"] is None else f"{value} ({interval})"
