"""summary.json: the verdicts of a results folder, schema 1."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge import foreign
from framegauge.metrics import METRICS
from framegauge.results import seals
from framegauge.results.conditions import FACTOR_KEYS
from framegauge.results.journal import Run, Saved
from framegauge.results.reading import JUDGED
from framegauge.statistics import positions
from framegauge.statistics.judge import Comparison
from framegauge.statistics.pairs import all_pairs, not_measured
from framegauge.statistics.ratio import ALPHA
from framegauge.summary import big_tcp, contention, few, flows, hosts, levels, lost_time, switch, unasked, unread
from framegauge.summary.caveats import caveats, seals_of
from framegauge.summary.competitors import competitors
from framegauge.summary.interactions import interactions
from framegauge.summary.intervals import interval
from framegauge.summary.judging import (
    compare,
    doubted,
    family_error,
    is_faithful,
    row,
    rule_of,
    smallest_levels,
    suspicions,
)  # fmt: skip
from framegauge.summary.why import why

__all__ = ["factor_key", "kept", "summarise", "text", "verdicts"]

SCHEMA = 1
# The rules of judging (docs/why/statistics.md lists them). 2: treatments are compared with the baseline and
# its control together, a control that excludes equality is heard, no practical difference needs enough blocks. 3: the
# interval allows for noise of one arm alone, and for runs that one arm lost. 4: looks before the end spend less.
RULES = 4


def factor_key(treatment: str) -> str:
    """The treatment's key in the two sides of a verdict, with the unit where it has one."""
    return FACTOR_KEYS.get(treatment, treatment)


def summarise(saved: Saved) -> dict[str, Any]:
    """The summary of a results folder. An A/A control is a verdict whose two levels are the same."""
    comparisons, rows, key = compare(saved), [row(run) for run in saved.runs], factor_key(saved.plan["treatment"])
    readable = [comparison for comparison in comparisons if not comparison.is_unread]
    treatments = sum(comparison.judged is not None and comparison.role != "control" for comparison in readable)
    any_differs = any(comparison.control_differs for comparison in readable)
    judged = doubted(readable)
    return {
        "schema": SCHEMA,
        "question": saved.plan["question"],
        "scope": saved.plan["scope"],
        "ask": saved.plan.get("ask", "difference"),
        "primary": list(saved.plan.get("primary", ())),
        "faithful": is_faithful(comparisons),
        "rules": {"version": RULES, "before": _before(saved)},
        "suspect": suspicions(readable),
        "family": {
            "error": family_error(saved.plan, treatments),
            "treatments": treatments,
            "controls": sum(comparison.judged is not None and comparison.role == "control" for comparison in readable),
        },
        "stopping": _stopping(saved),
        "trial": saved.plan.get("trial"),
        **({"narrow_links": narrow} if (narrow := saved.plan.get("narrow_links")) else {}),
        "smallest_levels": levels.entries(smallest_levels(saved.plan, rows, readable), key),
        "verdicts": _verdicts(saved, unasked.leading_first(judged)),
        "unasked": _verdicts(saved, unasked.worse(rows, saved.plan["margins"], rule_of(saved.plan), judged)),
        "big_tcp": big_tcp.entries(rows, list(saved.plan["margins"]), key, rule_of(saved.plan)),
        "interactions": interactions(rows, list(saved.plan["margins"]), key, rule_of(saved.plan)),
        "competitors": competitors(rows, list(saved.plan["margins"]), key, rule_of(saved.plan)),
        "positions": list(_positions(saved)),
        "why": why(saved.runs, readable, key),
        "lost_time": lost_time.entries(saved.runs, key),
        "flows": contention.entries(flows.read(saved), key),
        "switch": switch.entries(saved.runs, saved.plan["margins"], key),
        "few": few.entries(few.judged(saved.plan, rows, rule_of(saved.plan), any_differs), saved.runs, key),
        "hosts": hosts.entries(saved, judged, key),
        "not_measured": unread.entries(not_measured(rows, saved.plan["margins"]), comparisons, key),
        "cpu": _cpu(saved.runs),
        "caveats": [*caveats(saved.plan["margins"], saved.plan["scope"], saved.runs), *seals_of(saved)],
        "excluded": list(_excluded(saved.runs, key)),
        JUDGED: len(saved.runs),
    }


def _excluded(runs: Sequence[Run], key: str) -> Iterator[dict[str, Any]]:
    """The runs that do not count, with the reasons."""
    for run in runs:
        if run.excluded:
            yield {
                "run": run.number,
                "block": run.block,
                "arm": run.arm,
                "workload": run.workload,
                "conditions": dict(run.conditions),
                key: run.level,
                "reasons": list(run.excluded),
            }


def _stopping(saved: Saved) -> dict[str, Any]:
    """How the study is to end, or ended, and the confidence of its intervals."""
    return {
        "stop": saved.plan.get("stop", "blocks"),
        "planned_blocks": saved.plan.get("planned_blocks"),
        "blocks": 1 + max((run.block for run in saved.runs), default=-1),
        "extended_from": list(saved.plan.get("extended_from", ())),
        "confidence": 1 - rule_of(saved.plan).error(ALPHA),
    }


def verdicts(saved: Saved) -> list[dict[str, Any]]:
    """The verdicts of a summary alone."""
    return _verdicts(saved, unasked.leading_first(doubted(compare(saved))))


def _verdicts(saved: Saved, judged: Iterable[Comparison]) -> list[dict[str, Any]]:
    degraded = sorted({line for run in saved.runs for line in run.degraded})
    return [_verdict(comparison, saved.plan, degraded) for comparison in judged]


def _positions(saved: Saved) -> Iterator[dict[str, Any]]:
    """The effect of the position on each metric, and the most of it that a comparison has in its ratio."""
    rows = [row(run) for run in saved.runs]
    places = positions.places(rows)
    pairs = list(all_pairs(rows, saved.plan["margins"]))
    for metric in saved.plan["margins"]:
        position_effect = positions.estimate(rows, metric, places)
        if position_effect is not None:
            tilts = [positions.tilt(item, position_effect, places) for item in pairs if item.metric == metric]
            yield {
                "metric": metric,
                "ratios": [math.exp(item) for item in position_effect.effects],
                "chance": position_effect.chance,
                "tilt": max((math.expm1(item) for item in tilts), key=abs, default=0.0),
            }


def _before(saved: Saved) -> int | None:
    """The version of the rules by which a folder was judged before, if it was an older one."""
    try:
        document = foreign.load_json(foreign.read(saved.folder / "summary.json"))
    except (OSError, ValueError):
        return None
    rules = document.get("rules") or {"version": 1} if isinstance(document, dict) else None
    version = rules.get("before") or rules.get("version") if isinstance(rules, dict) else None
    return version if type(version) is int and 0 < version < RULES else None


def _cpu(runs: Sequence[Run]) -> dict[str, float] | None:
    """The shares of the whole system's CPU time in the median run, and the time that the meter itself took."""
    names = ("hosts", "fabric", "framegauge", "unattributed")
    keys = {**{name: f"cpu_share_{name}" for name in names}, "meter_seconds": "meter_seconds"}
    rows = [run.readings for run in runs if not run.excluded]
    values = {name: [row[key] for row in rows if row.get(key) is not None] for name, key in keys.items()}
    return {name: statistics.median(samples) for name, samples in values.items()} if all(values.values()) else None


def _verdict(comparison: Comparison, plan: Mapping[str, Any], degraded: Sequence[str]) -> dict[str, Any]:
    key, ratio = factor_key(plan["treatment"]), comparison.ratio
    return {
        "workload": comparison.workload,
        "conditions": dict(comparison.conditions),
        "metric": comparison.metric,
        "unit": METRICS[comparison.metric].unit,
        "baseline": {key: comparison.baseline_level, "estimate": comparison.baseline},
        "treatment": {key: comparison.treatment_level, "estimate": comparison.treatment},
        "ratio": None if ratio is None else ratio.ratio,
        "ci95": interval(ratio),
        "difference": None
        if comparison.difference is None
        else {"mean": comparison.difference.mean, "ci95": interval(comparison.difference)},
        "margin": comparison.margin,
        "judged": None
        if comparison.judged is None
        else {
            "confidence": 1 - comparison.judged.alpha,
            "overall": 1 - rule_of(plan).error(ALPHA),
            "interval": interval(comparison.judged),
        },
        "together": interval(comparison.together),
        "worst_case": None
        if comparison.worst_case is None
        else {"interval": interval(comparison.worst_case), "lost": list(comparison.worst_case.lost)},
        "unseen_stalls": comparison.unseen_stalls,
        "assumption": None if comparison.judged is None else comparison.judged.assumption,
        "verdict": str(comparison.verdict),
        "runs": comparison.runs,
        "warnings": [*comparison.warnings, *(f"degraded: {line}" for line in degraded)],
    }


def kept(summary: Mapping[str, Any]) -> bytes:
    """What summary.json has in a results folder."""
    return text(seals.sealed(summary)).encode()


def text(summary: Mapping[str, Any]) -> str:
    """The text that --json prints."""
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
