"""Entries of a summary's verdicts, and the summary around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framegauge.metrics import METRICS

BETTER, WORSE, INSIDE, UNDECIDED = "better", "worse", "no practical difference", "undecided"
NOT_WORSE, BROKEN = "not worse", "does not work"
RATIOS = {BETTER: 1.053, WORSE: 0.9, INSIDE: 1.001, UNDECIDED: 1.01}
NEAR, FAR = 0.0002, 0.0012


def one(
    kind: str, metric: str = "goodput", rtt: float = NEAR, level: Any = 9000, baseline: Any = 1500, *,
    workload: str = "stream", factor: str = "mtu", ratio: float | None = None, warnings: tuple[str, ...] = (),
    conditions: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    found = RATIOS.get(kind, 1.0)
    found = ratio or (found if METRICS[metric].higher_is_better else 1 / found)
    judged = kind not in ("not judged", BROKEN)
    return {
        "workload": workload,
        "conditions": {
            "size_bytes": 10_000_000,
            "rtt_seconds": rtt,
            "congestion_control": "cubic",
            **(conditions or {}),
        },
        "metric": metric,
        "unit": METRICS[metric].unit,
        "baseline": {factor: baseline, "estimate": 1e8 if judged else None},
        "treatment": {factor: level, "estimate": 1e8 * found if judged else None},
        "ratio": found if judged else None,
        "ci95": [found * 0.998, found * 1.002] if judged else None,
        "margin": 0.01,
        "judged": {"confidence": 0.975, "interval": [found * 0.997, found * 1.003]} if judged else None,
        "assumption": "paired t",
        "verdict": kind,
        "runs": 16 if judged else 0,
        "warnings": list(warnings),
    }


def summary(*verdicts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    doubtful = ("suspect", "not judged")
    return {
        "schema": 1, "question": "?", "scope": "emulated", "verdicts": list(verdicts), "not_measured": [], "caveats": [],
        "faithful": bool(verdicts) and all(each["verdict"] not in doubtful for each in verdicts), "suspect": [],
        "family": {"error": 0.05, "treatments": len(verdicts), "controls": 0}, "excluded": [], "interactions": [],
        "stopping": {"stop": "blocks", "planned_blocks": 8, "blocks": 8}, "cpu": None, **more,
    }  # fmt: skip
