"""Queue disciplines with their parameters, as levels of a factor: a word, or a mapping as in the pipe.

Their text is short but complete, so that different levels always have different texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framegauge import quantities

__all__ = ["as_json", "marks", "text"]

# The text of each parameter around its value, in the order in which parameters are printed.
_FORMS = {
    "minimum_bytes": "from {}", "maximum_bytes": "to {}", "minimum_frames": "from {} frames",
    "maximum_frames": "to {} frames", "threshold_bytes": "above {}", "target_seconds": "target {}",
    "interval_seconds": "interval {}", "weight": "weight {}", "probability": "probability {}",
    "buckets": "{} buckets", "bands": "{} bands", "quantum_bytes": "quantum {}",
    "perturbation_seconds": "perturbed every {}", "mean_off_seconds": "off {}", "frames": "runs of {}",
    "input_port": "of {}", "limit_frames": "room for {} frames",
}  # fmt: skip


def as_json(level: str | Mapping[str, Any]) -> dict[str, Any]:
    """The discipline as the pipe expects it: `{"kind": …}` with its parameters."""
    return {"kind": level} if isinstance(level, str) else dict(level)


def marks(level: str | Mapping[str, Any]) -> bool:
    """Whether it marks packets of ECN flows instead of dropping them."""
    discipline = as_json(level)
    return discipline["kind"] == "step" or bool(discipline.get("ecn"))


def text(level: str | Mapping[str, Any]) -> str:
    """The discipline in words: "red (30 to 90 KiB, ECN)"."""
    if isinstance(level, str):
        return level
    parts = list(_parts({name: value for name, value in level.items() if name != "kind"}))
    return f"{level['kind']} ({', '.join(parts)})" if parts else str(level["kind"])


def _parts(settings: Mapping[str, Any]) -> Iterator[str]:
    between = _between(settings)
    if between is not None:
        yield between
    for name, form in _FORMS.items():
        if name in settings and not (between is not None and name.startswith(("minimum_", "maximum_"))):
            yield form.format(_value(name, settings[name]))
    if "gentle" in settings:
        yield "gentle" if settings["gentle"] else "not gentle"
    if "ecn" in settings:
        yield "ECN" if settings["ecn"] else "no ECN"


def _between(settings: Mapping[str, Any]) -> str | None:
    """The two thresholds of RED as one range; None unless both are given."""
    for unit in ("bytes", "frames"):
        ends = [settings.get(f"{name}_{unit}") for name in ("minimum", "maximum")]
        if None not in ends:
            low, high = (_value(f"_{unit}", end) + (" frames" if unit == "frames" else "") for end in ends)
            number, _, scale = low.partition(" ")
            return f"{number} to {high}" if high.endswith(f" {scale}") else f"{low} to {high}"
    return None


def _value(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return quantities.exact_bytes(value)
    if name.endswith("_seconds"):
        short = quantities.print_seconds(value)
        return short if quantities.parse_seconds(short) == value else quantities.exact_seconds(value)
    return str(value)
