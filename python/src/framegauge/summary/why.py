"""The parts of each goodput ratio, as the summary lists them (`why`)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from framegauge.results.journal import Run
from framegauge.statistics.judge import Comparison
from framegauge.statistics.pairs import by_cell
from framegauge.statistics.why import Arm, decompose, frame_share
from framegauge.summary.intervals import interval

__all__ = ["why"]


def why(runs: Sequence[Run], found: Sequence[Comparison], key: str) -> list[dict[str, Any]]:
    """One entry per goodput comparison of a treatment that has parts; `key` names the treatment."""
    entries, cells = [], by_cell(run for run in runs if not run.excluded)
    for comparison in found:
        if comparison.metric != "goodput" or comparison.role != "treatment" or comparison.ratio is None:
            continue
        cell = cells.get(comparison.cell, [])
        baseline = _arm([run for run in cell if run.role == "baseline"])
        treatment = _arm([run for run in cell if run.role == "treatment" and run.level == comparison.treatment_level])
        parts = decompose(comparison.ratio, baseline, treatment)
        if parts:
            entries.append(
                {
                    "workload": comparison.workload,
                    "conditions": dict(comparison.conditions),
                    "baseline": {key: comparison.baseline_level},
                    "treatment": {key: comparison.treatment_level},
                    "measured": {"baseline": _known(baseline), "treatment": _known(treatment)},
                    "ratio": comparison.ratio.ratio,
                    "parts": [
                        {
                            "name": part.name,
                            "ratio": part.ratio,
                            "ci95": interval(part),
                            "evidence": part.evidence,
                        }
                        for part in parts
                    ],
                    "cpu_share_of_frames": frame_share(baseline, treatment),
                }
            )
    return entries


def _arm(runs: Sequence[Run]) -> Arm:
    """Medians over an arm's runs, of the figures that all of them have."""

    def reading(name: str) -> float | None:
        values = [run.readings.get(name) for run in runs]
        return statistics.median(values) if values and None not in values else None  # type: ignore[type-var]

    costs = [max(sides) for run in runs if (sides := _costs(run))]
    arm = Arm(
        ceiling_bits_per_second=reading("ceiling_bits_per_second"),
        predicted_seconds=reading("predicted_seconds"),
        idle_share=reading("idle_share_hosts"),
        cpu_seconds_per_gigabyte=statistics.median(costs) if costs else None,
        frames_per_gigabyte=reading("frames_per_gigabyte"),
    )
    busiest = reading("busiest_core_share")  # of simulated hosts
    if busiest is None:
        return arm
    return replace(arm, idle_share=max(0.0, 1.0 - busiest), cpus="the hosts' busiest core was")


def _costs(run: Run) -> list[float]:
    """The CPU costs of the sides of a run, if both are known; hosts without a model take nothing in a simulation."""
    sides = [run.metrics[name] for name in ("receiver_cpu_cost", "sender_cpu_cost") if name in run.metrics]
    return sides if len(sides) == 2 or "busiest_core_share" in run.readings else []


def _known(arm: Arm) -> dict[str, float | None]:
    return {
        "ceiling_bits_per_second": arm.ceiling_bits_per_second,
        "predicted_seconds": arm.predicted_seconds,
        "idle_share": arm.idle_share,
        "cpu_seconds_per_gigabyte": arm.cpu_seconds_per_gigabyte,
        "frames_per_gigabyte": arm.frames_per_gigabyte,
    }
