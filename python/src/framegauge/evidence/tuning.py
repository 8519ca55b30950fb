"""Proof of the initial windows of a tuning: record in, failures out. Its sysctls are proved as all sysctls are."""

from __future__ import annotations

from collections.abc import Iterator

from framegauge.evidence.nic import nic_readings
from framegauge.testbeds.base import Conditions, Json

__all__ = ["window_failures"]


def window_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each route of a host that asks for other initial windows than the conditions; without a tuning, for
    any windows at all. An agent from before tunings does not tell them, and has set none."""
    settings = {
        "initial_window_segments": conditions.initial_window_segments,
        "initial_receive_window_segments": conditions.initial_receive_window_segments,
    }
    names = [name for name, segments in settings.items() if segments is not None]
    for place, _, nic in nic_readings(record):
        routes = nic.get("route_windows") or []
        for name in names if not routes else ():
            yield f"{_words(name)} of {place}: requested {settings[name]}, found no route that says it"
        for route in routes:
            for name, segments in settings.items():
                if route[name] != segments:
                    text = f"requested {_shown(segments)}, found {_shown(route[name])}"
                    yield f"{_words(name)} of {place}, to {route['destination']}: {text}"


def _words(name: str) -> str:
    return name.removesuffix("_segments").replace("_", " ")


def _shown(segments: int | None) -> str:
    return "the kernel's own" if segments is None else f"{segments} segments"
