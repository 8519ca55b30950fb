"""The forecast of a study before it runs: order, duration, and the effects that its blocks can find."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from framegauge.experiment import trial
from framegauge.experiment.planning import expected_seconds, stated_conditions
from framegauge.experiment.progress import left
from framegauge.statistics.doubts import counted
from framegauge.statistics.power import POWER, REFERENCE_OF_TWO, Spread, reach, upper_limit
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.verdict import LEAST_FOR_EQUALITY
from framegauge.study.blocks import Slot, order
from framegauge.study.model import Study, arms, cells, level_text
from framegauge.study.narrow import narrow
from framegauge.summary import words

__all__ = ["MEASURED", "forecast", "lines"]

# Standard deviations of the log ratios of blocks, from studies on the emulated 1 Gb/s pair: the first series of each
# metric in bench/truth/noise.json.
MEASURED: Mapping[str, float] = {
    "goodput": 0.007, "completion_time": 0.007, "latency_p50": 0.022, "latency_p99": 0.75, "receiver_cpu_cost": 0.05,
}  # fmt: skip
MEASURED_OF = {"stream", "rr"}  # the workloads of those studies
# The same of datagrams beside bulk transfers, from the two equal arms of both studies in docs/measured/voice.md.
MEASURED_OF_DATAGRAMS: Mapping[str, float] = {
    "delay_p50": 0.24, "delay_p99": 0.038, "jitter": 0.22, "delivered": 0.0023,
}  # fmt: skip
# Of the others no such series was made.
GUESSED: Mapping[str, float] = {
    "fairness": 0.02, "smallest_goodput": 0.1, "latency_p999": 1.0, "transactions": 0.01, "sender_cpu_cost": 0.05,
    "share_of_few": 0.1, "slowdown_p50": 0.05, "slowdown_p99": 0.75,
    "receiver_instructions": 0.01, "sender_instructions": 0.01, "receiver_cycles": 0.05, "sender_cycles": 0.05,
}  # fmt: skip
UNKNOWN = 0.05  # for metrics of which nothing is known, such as those that a study declares itself
MOST_BLOCKS = 500
EFFICIENCY = 3 / math.pi  # of the median of differences where the mean is best (Hodges & Lehmann 1963)


def forecast(
    study: Study, pilot: Mapping[str, Sequence[Spread]], given: Mapping[str, float], may_adapt: bool = False
) -> dict[str, Any]:
    """The forecast as `framegauge plan --json` prints it. `pilot`: measured spreads by metric; `given`: stated ones.
    `may_adapt`: the study runs at the highest rate that this machine carries.

    Spreads are those of a run's log ratio to another. A pilot's is its upper limit (80 %). Primary metrics and the
    others are families of their own, as `statistics.judge` has them.
    """
    slots = order(study)
    margins = study.margin()
    each_metric = len(cells(study)) * sum(arm.role == "treatment" for arm in arms(study))
    first = [name for name in margins if _is_primary(study, name)]
    shared = {name: each_metric * (len(first) if name in first else len(margins) - len(first)) for name in margins}
    rule = StoppingRule(study.blocks if study.stop == "settled" else None)
    return {
        "schema": 1,
        "question": study.question,
        "testbed": study.testbed.kind,
        "treatment": study.treatment,
        "arms": [{"role": arm.role, "level": arm.level} for arm in arms(study)],
        "cells": len(cells(study)),
        "blocks": study.blocks,
        "stop": study.stop,
        "seed": study.seed,
        "runs": len(slots),
        "seconds": round(sum(expected_seconds(study, slot) for slot in slots), 1),
        "budget_seconds": study.budget,
        "comparisons": each_metric * len(margins),
        "trial": {"bits_per_second": list(dict.fromkeys(trial.rates_of(study))), "adapts": may_adapt}
        if trial.applies(study)
        else None,
        "warnings": [warning.as_json() for warning in narrow(study)],
        "order": [_slot(study, number, slot) for number, slot in enumerate(slots, 1)],
        "reach": [
            _reach(metric, margin, shared[metric], study, rule, pilot, given) for metric, margin in margins.items()
        ],
    }


def _is_primary(study: Study, metric: str) -> bool:
    return not study.primary or metric in study.primary


def _slot(study: Study, number: int, slot: Slot) -> dict[str, Any]:
    return {
        "run": number,
        "block": slot.block,
        "workload": slot.cell.workload,
        "role": slot.arm.role,
        study.treatment: slot.arm.level,
        "conditions": stated_conditions(study, slot),
        "expected_seconds": round(expected_seconds(study, slot), 2),
    }


def _reach(
    metric: str,
    margin: float,
    comparisons: int,
    study: Study,
    rule: StoppingRule,
    pilot: Mapping[str, Sequence[Spread]],
    stated: Mapping[str, float],
) -> dict[str, Any]:
    """The effects that the study's blocks find in a metric, among so many comparisons of its family."""
    spread, source = _spread(metric, study, pilot, stated)
    scaled_spread = spread * (REFERENCE_OF_TWO if study.control else 1.0)
    if metric in study.estimators():
        scaled_spread /= math.sqrt(EFFICIENCY)
    prospect = reach(scaled_spread, study.blocks, margin, comparisons, rule)
    return {
        "metric": metric,
        "primary": _is_primary(study, metric),
        "margin": margin,
        "spread": spread,
        "spread_is": source,
        "confidence": 1 - prospect.alpha,
        "half_width": prospect.half_width - 1,
        "finds_better_from": prospect.better - 1,
        "finds_equality_with_probability": prospect.equal_power if study.blocks >= LEAST_FOR_EQUALITY else 0.0,
        "blocks_for_equality": _blocks_for(scaled_spread, margin, comparisons, rule.planned is not None),
        "ending_early_costs_at_most": round(prospect.looks_cost, 4),
    }


def _spread(
    metric: str, study: Study, pilot: Mapping[str, Sequence[Spread]], stated: Mapping[str, float]
) -> tuple[float, str]:
    """The spread of a metric, and whether it is given, a pilot's, assumed to be as measured, or guessed."""
    if metric in stated:
        return stated[metric], "given"
    if spreads := pilot.get(metric):
        return upper_limit(spreads), "pilot"
    if metric in MEASURED:
        return MEASURED[metric], "assumed" if _as_measured(study, MEASURED_OF) else "guessed"
    if metric in MEASURED_OF_DATAGRAMS:
        is_as_measured = _as_measured(study, {"datagrams"}) and all(
            workload.datagrams is not None and workload.datagrams.bulk is not None for workload in study.workloads
        )
        return MEASURED_OF_DATAGRAMS[metric], "assumed" if is_as_measured else "guessed"
    return GUESSED.get(metric, UNKNOWN), "guessed"


def _as_measured(study: Study, measured: Collection[str]) -> bool:
    """Whether its hosts and workloads are those of the studies that were measured."""
    capabilities = study.testbed.capabilities
    workloads = {workload.parameters.key for workload in study.workloads}
    return capabilities.has_fabric and not capabilities.is_virtual and workloads <= set(measured)


def _blocks_for(spread: float, margin: float, comparisons: int, may_stop: bool) -> int | None:
    """The least number of blocks that shows equality with power 0.8; None if more than MOST_BLOCKS."""
    low, high = LEAST_FOR_EQUALITY, MOST_BLOCKS

    def enough(blocks: int) -> bool:
        rule = StoppingRule(blocks if may_stop else None)
        return reach(spread, blocks, margin, comparisons, rule).equal_power >= POWER

    if not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The forecast as lines of text."""
    yield found["question"]
    yield f"testbed {found['testbed']}, treatment {found['treatment']}, seed {found['seed']}"
    yield "arms: " + ", ".join(f"{arm['role']} {level_text(arm['level'])}" for arm in found["arms"])
    ends = "at most; the study ends once everything is settled" if found["stop"] == "settled" else "in any case"
    yield (
        f"{found['runs']} runs: {found['blocks']} blocks of {counted(found['cells'], 'cell')} x "
        f"{len(found['arms'])} arms, {ends}; about {left(found['seconds'])} (budget {left(found['budget_seconds'])})"
    )
    if trial_plan := found["trial"]:
        yield trial.planned(trial_plan["bits_per_second"], trial_plan["adapts"])
    yield from (f"warning: {entry['text']}" for entry in found["warnings"])
    cells = list({_cell_key(slot): slot for slot in found["order"]}.values())
    named = words.Cells(cells)
    yield from (f"  {cell['workload']}: {named.whole(cell)}" for cell in cells)
    treatment = found["treatment"]
    first = ", ".join(level_text(slot[treatment]) for slot in found["order"] if slot["block"] == 0)
    yield f"order of the first block, cell by cell: {first} (all with --json)"
    yield f"what it can find, with a 5 % chance of any error in {counted(found['comparisons'], 'comparison')}:"
    for entry in found["reach"]:
        yield (
            f"  {words.metric(entry['metric'])}, margin {words.margin(entry['margin'])}: blocks spread by "
            f"{_percent(entry['spread'], '.2f')} ({entry['spread_is']}), so intervals of about "
            f"±{_percent(entry['half_width'], '.2f')}; better from {_percent(entry['finds_better_from'], '+.2f')} on "
            f"is found with 80 %, equality with {_percent(entry['finds_equality_with_probability'], '.0f')}"
            + _advice(entry, found["blocks"])
        )
    cost = max((entry["ending_early_costs_at_most"] for entry in found["reach"]), default=0.0)
    if cost:
        yield (
            f"that it may end early costs up to {100 * cost:.0f} points of power: what `stop: blocks` finds with 80 % "
            f"in as many blocks, this finds with {_percent(POWER - cost, '.0f')} at least"
        )
    if not all(entry["primary"] for entry in found["reach"]):
        first = ", ".join(words.metric(entry["metric"]) for entry in found["reach"] if entry["primary"])
        yield f"{first} come first: the others have a verdict only once these have theirs"
    if any(entry["spread_is"] == "guessed" for entry in found["reach"]):
        yield (
            "guessed: no study has measured this spread here; --pilot DIR takes that of a study of yours, "
            "--noise METRIC=SHARE what you say"
        )


def _percent(share: float, form: str) -> str:
    """As all percentages are written, with a space before the sign."""
    return f"{100 * share:{form}} %"


def _cell_key(slot: Mapping[str, Any]) -> str:
    """A key for the cell of a slot."""
    return f"{slot['workload']} {sorted((name, str(value)) for name, value in slot['conditions'].items())}"


def _advice(entry: Mapping[str, Any], blocks: int) -> str:
    needed = entry["blocks_for_equality"]
    if entry["finds_equality_with_probability"] >= POWER:
        return ""
    if needed is None:
        return f" (80 % would take more than {MOST_BLOCKS} blocks)"
    return f" (80 % would take {needed} blocks instead of {blocks})"
