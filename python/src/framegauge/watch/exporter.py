"""The verdicts as metrics of Prometheus, to be served or written for node_exporter's textfile collector.

The text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from framegauge.statistics.verdict import Verdict
from framegauge.watch.document import GATES

__all__ = ["exported", "unanswered"]

VERDICTS = tuple(str(each).replace(" ", "_") for each in Verdict if each is not Verdict.SUSPECT)
_HELP = {
    "gate": "0: go on, 1: stop, 2: cannot say.",
    "verdict": "1 for the verdict that a metric has, 0 for the others.",
    "decides": "Whether the gate asks this metric.",
    "effect": "The effect of the switch: a ratio (1 is none), or a difference (0 is none).",
    "effect_low": "The lower end of its 95 % interval.",
    "effect_high": "The upper end of its 95 % interval.",
    "margin": "The smallest relative effect worth acting on.",
    "changed_timestamp_seconds": "When the hosts were switched.",
    "evaluated_timestamp_seconds": "When this was found.",
    "after_share": "How much of the time after the switch is over.",
}


def exported(document: Mapping[str, Any]) -> str:
    """The document's verdicts in the text format."""
    samples: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in _HELP}
    samples["gate"].append(({}, GATES.index(document["gate"])))
    for name, key in (("changed", "changed_at"), ("evaluated", "evaluated_at")):
        samples[f"{name}_timestamp_seconds"].append(({}, datetime.fromisoformat(document[key]).timestamp()))
    samples["after_share"].append(({}, document["share_of_after"]))
    for each in document["metrics"]:
        metric = {"metric": str(each["metric"])}
        samples["verdict"] += [({**metric, "verdict": word}, float(word == each["verdict"])) for word in VERDICTS]
        samples["decides"].append((metric, float(each["decides"])))
        samples["margin"].append((metric, each["margin"]))
        if (effect := each["effect"]) is not None:
            scale = {**metric, "scale": str(effect["scale"])}
            low, high = effect["interval"]
            samples["effect"].append((scale, math.nan if effect["estimate"] is None else effect["estimate"]))
            samples["effect_low"].append((scale, low))
            samples["effect_high"].append((scale, math.inf if high is None else high))
    return "".join(f"{line}\n" for line in _lines(samples))


def unanswered(now: float) -> str:
    """What is exported where the server gave no answer: that nothing can be said."""
    samples: dict[str, list[tuple[dict[str, str], float]]] = {
        "gate": [({}, float(GATES.index("cannot_say")))],
        "evaluated_timestamp_seconds": [({}, now)],
    }
    return "".join(f"{line}\n" for line in _lines(samples))


def _lines(samples: Mapping[str, list[tuple[dict[str, str], float]]]) -> Iterator[str]:
    for name, points in samples.items():
        yield f"# HELP framegauge_watch_{name} {_HELP[name]}"
        yield f"# TYPE framegauge_watch_{name} gauge"
        for labels, value in points:
            inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            yield (
                f"framegauge_watch_{name}{{{inside}}} {_number(value)}"
                if inside
                else (f"framegauge_watch_{name} {_number(value)}")
            )


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
