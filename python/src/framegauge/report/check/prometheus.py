"""A path MTU check as Prometheus text (exposition format 0.0.4). No clock: the time is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from framegauge.check.judgement.findings import CATALOGUE
from framegauge.check.judgement.verdict import EXIT_CODES
from framegauge.report.check.matrix import counts

__all__ = ["CONTENT_TYPE", "text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Pair = tuple[str, str, str]  # source, destination, family
_Sample = tuple[Mapping[str, str], float]


def text(document: Mapping[str, Any], timestamp_seconds: float) -> str:
    """All metrics. A pair whose path MTU is not known has no sample: absence is not zero."""
    path: dict[_Pair, float] = {}
    route: dict[_Pair, float] = {}
    carried: dict[_Pair, float] = {}
    for pair in document["pairs"]:
        key = (pair["source"], pair["destination"], str(pair["family"]))
        for record, name in ((path, "path_mtu_bytes"), (route, "route_mtu_bytes")):
            if pair[name] is not None:
                record[key] = min(pair[name], record.get(key, pair[name]))
        if pair["verdict"] != "unknown":
            carried[key] = min(int(pair["verdict"] == "carries_target"), carried.get(key, 1))
    one_ended = {
        (pair["source"], pair["destination"], str(pair["family"])): 1.0
        for pair in document["pairs"] if pair.get("method") == "one_ended"
    }  # fmt: skip
    kinds = Counter(record["kind"] for record in document["findings"])
    kinds.update(dict.fromkeys(CATALOGUE, 0))
    lines = [
        *_metric("path_mtu_bytes", "Measured path MTU over all flows; at most the target.", _pairs(path)),
        *_metric("route_mtu_bytes", "What the sender's kernel believes.", _pairs(route)),
        *_metric("path_carries_target", "1 if it carries the target, 0 if not.", _pairs(carried)),
        *_metric("path_one_ended", "1 if no agent ran at the destination: both ways at once.", _pairs(one_ended)),
        *_metric("check_pairs", "Pairs by verdict.", [({"verdict": k}, n) for k, n in counts(document).items()]),
        *_metric("check_findings", "Findings by kind.", [({"kind": k}, n) for k, n in sorted(kinds.items())]),
        *_metric("check_verdict", "1 for the verdict of the check.",
                 [({"verdict": name}, int(document["verdict"] == name)) for name in EXIT_CODES]),
        *_metric("check_target_mtu_bytes", "The most that was asked of a path.", [({}, document["target_mtu"])]),
        *_metric("check_duration_seconds", "How long the check took.", [({}, document["seconds"])]),
        *_metric("check_timestamp_seconds", "When it ended, in Unix time.", [({}, timestamp_seconds)]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _pairs(by_pair: Mapping[_Pair, float]) -> list[_Sample]:
    return [
        ({"source": source, "destination": destination, "family": family}, value)
        for (source, destination, family), value in by_pair.items()
    ]


def _metric(name: str, words: str, samples: Iterable[_Sample]) -> list[str]:
    full = f"framegauge_{name}"
    lines = [f"# HELP {full} {words}", f"# TYPE {full} gauge"]
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        lines.append(f"{full}{{{inside}}} {value!r}" if labels else f"{full} {value!r}")
    return lines


def _escaped(label: str) -> str:
    """Backslash, quote and newline, as the format has it."""
    label = label.encode("utf-8", "replace").decode()  # half a surrogate pair is no UTF-8
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
