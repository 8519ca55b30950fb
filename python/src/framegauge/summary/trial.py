"""The trial before a study in words: at which rate it ran, why, and what that means for its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.quantities import print_bits_per_second, print_seconds

__all__ = ["alike", "beside", "briefly", "line", "why_not"]


def beside(summary: Mapping[str, Any]) -> str:
    """What belongs beside the answer of a study that ran at another rate than it was made for; else nothing."""
    if not (text := briefly(summary)):
        return ""
    trial = summary["trial"]
    is_mtu = any("mtu" in verdict["treatment"] for verdict in summary["verdicts"])
    why = alike(is_mtu, print_bits_per_second(trial["asked_bits_per_second"]))
    return f"{text}, which this machine did not carry at the time ({why_not(trial)}). {why}"


def briefly(summary: Mapping[str, Any]) -> str:
    """The same in few words."""
    trial = summary.get("trial")  # older summaries lack it
    if not trial or trial["bits_per_second"] == trial["asked_bits_per_second"]:
        return ""
    used_rate, asked_rate = (print_bits_per_second(trial[key]) for key in ("bits_per_second", "asked_bits_per_second"))
    return f"Run at {used_rate} instead of {asked_rate}"


def alike(is_mtu: bool, asked: str) -> str:
    """Why ratios at a lower rate are those at the rate that was asked for, and which are not."""
    if not is_mtu:
        return f"Its figures are those of this rate: whatever depends on timers or windows may differ at {asked}."
    return (
        "What headers take of a frame is the same at any rate, so MTUs compare as they would at "
        f"{asked} in long transfers; in short ones windows have less to grow, so larger frames may gain less."
    )


def why_not(trial: Mapping[str, Any]) -> str:
    """The first reason why the rate that was asked for was not carried."""
    return next((reason for attempt in trial["attempts"] for reason in attempt["reasons"]), "")


def line(trial: Mapping[str, Any]) -> str:
    """The trial in one line, for those who ask how a study was made."""
    text = ", ".join(_attempt(attempt) for attempt in trial["attempts"])
    used = print_bits_per_second(trial["bits_per_second"])
    return f"A trial before the first run found what this machine carries: {text}; the study ran at {used}"


def _attempt(attempt: Mapping[str, Any]) -> str:
    rate, reasons = print_bits_per_second(attempt["bits_per_second"]), attempt["reasons"]
    outcome = f"not carried ({_listed(reasons)})" if reasons else "carried"
    return f"{rate} {outcome} in {print_seconds(attempt['seconds'], 2)}"


def _listed(reasons: Sequence[str]) -> str:
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"
