"""What was found, as the document of --json; watched.schema.json describes it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from framegauge.statistics import events, switched
from framegauge.statistics.ratio import USABLE
from framegauge.statistics.verdict import EQUAL, Verdict
from framegauge.watch.run import Seen, Watched

__all__ = ["GATES", "SCHEMA", "document", "ends", "json_schema"]

SCHEMA = 1
GATES = ("go_on", "stop", "cannot_say")
_PASSES = (Verdict.BETTER, *EQUAL)


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of the document."""
    text = files("framegauge.watch").joinpath("watched.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def document(found: Watched) -> dict[str, Any]:
    """The document; a time is ISO 8601 in UTC, an end that is infinite is null."""
    watch, times = found.watch, found.times
    after = times.before + times.settle
    return {
        "schema": SCHEMA,
        "question": watch.question,
        "gate": GATES[found.gate],
        "answer": answer(found),
        "prometheus": None if watch.prometheus is None else watch.prometheus.url,
        "samples": None if watch.agents is None else watch.agents.folder,
        "evaluated_at": _time(found.now),
        "changed_at": _time(watch.change.at.timestamp()),
        "switched_hosts": list(watch.change.hosts),
        "control_hosts": watch.control_names,
        "before": [_time(times.grid[0]), _time(times.grid[times.before])],
        "after": [_time(times.grid[after]), _time(times.grid[-1])] if times.after else None,
        "share_of_after": times.share,
        "step_seconds": watch.step,
        "ask": watch.ask,
        "metrics": [_metric(seen, found) for seen in found.metrics],
    }


def answer(found: Watched) -> str:
    """The answer of the gate in one sentence."""
    deciding = [metric.judged for metric in found.metrics if metric.judged.rule.decides]
    words = [str(metric.verdict) for metric in deciding]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))
    names = {
        verdict: ", ".join(metric.rule.name for metric in deciding if metric.verdict is verdict) for verdict in Verdict
    }
    if found.gate == 1:
        return f"Stop: {names[Verdict.WORSE]} {'is' if words.count('worse') == 1 else 'are'} worse ({counts})."
    if found.gate == 0:
        return f"Go on: nothing that decides is worse ({counts})."
    if not deciding:
        return "Cannot say: no metric decides."
    open_ones = ", ".join(metric.rule.name for metric in deciding if metric.verdict not in _PASSES)
    return f"Cannot say: {open_ones} did not pass, and nothing is worse ({counts})."


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _metric(seen: Seen, watched: Watched) -> dict[str, Any]:
    metric, judged = watched.watch.metrics[seen.sampled.name], seen.judged
    coverage = seen.sampled.coverage
    return {
        "metric": seen.sampled.name,
        "query": seen.sampled.query,
        "kind": metric.kind,
        "better": metric.better,
        "unit": metric.unit,
        "margin": metric.margin,
        "negligible": metric.negligible,
        "decides": metric.decides,
        "verdict": str(judged.verdict).replace(" ", "_"),
        "why": judged.why,
        "doubts": list(judged.doubts),
        "effect": None if judged.own is None else _effect(judged.own),
        "judged_interval": None if judged.judged is None else ends(judged.judged),
        "judged_level": None if judged.judged is None else 1 - judged.judged.alpha,
        "switched": None if judged.own is None else _levels(judged.own, True),
        "control": None if judged.own is None else _levels(judged.own, False),
        "changes": [
            {
                "at": _time(change.at), "seconds_after_the_switch": change.seconds_after, "chance": change.chance,
                "with_the_switch": change.with_the_switch,
            }
            for change in seen.moved
        ],
        "coverage": {host: {"before": shares[0], "after": shares[1]} for host, shares in coverage.items()},
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def ends(found: switched.Estimate | events.Events) -> list[float | None]:
    """An interval as it is written. An end of a ratio that is as far from the estimate as no usable interval is wide
    says nothing, so there is none: 0, and null."""
    low, high = _finite(found.low), _finite(found.high)
    value = found.ratio if isinstance(found, events.Events) else found.value if found.is_ratio else None
    if value is None or not math.isfinite(value) or value <= 0:
        return [low, high]
    return [
        0.0 if low is not None and low * USABLE < value else low,
        None if high is not None and high > USABLE * value else high,
    ]


def _effect(effect: switched.Estimate | events.Events) -> dict[str, Any]:
    if isinstance(effect, events.Events):
        value, is_ratio, dispersion = effect.ratio, True, effect.dispersion
    else:
        value, is_ratio, dispersion = effect.value, effect.is_ratio, None
    return {
        "scale": "ratio" if is_ratio else "difference", "estimate": _finite(value), "interval": ends(effect),
        "dispersion": dispersion, "assumption": effect.assumption,
    }  # fmt: skip


def _levels(effect: switched.Estimate | events.Events, side: bool) -> dict[str, float | int | None]:
    """The mean per host before and after, in the metric's unit; of events also their numbers."""
    pair = effect.switched if side else effect.control
    if isinstance(effect, switched.Estimate):
        return {"before": pair[0], "after": pair[1], "events_before": None, "events_after": None}
    seconds = effect.switched_seconds if side else effect.control_seconds
    return {
        "before": pair[0] / seconds[0], "after": pair[1] / seconds[1],
        "events_before": int(pair[0]), "events_after": int(pair[1]),
    }  # fmt: skip
