"""Proof of what a study changes while a run is under way: all of it, and accepted. Pure: record → failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framegauge.networks.settings import described, place_of
from framegauge.testbeds.base import Conditions, Json

__all__ = ["change_failures", "opened_after", "paths"]

LATE_SECONDS = 0.05  # as fidelity.py allows it


def change_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each change that was not made as asked."""
    made = record.get("changes", [])
    for number, asked in enumerate(conditions.changes):
        at = asked["at_seconds"]
        name = f"change of {place_of(asked['set'])} ({', '.join(described(asked['set']))})"
        if number >= len(made):
            yield f"{name}: asked at {at:g} s, found that the run was over before"
        elif made[number]["error"] is not None:
            yield f"{name}: asked at {at:g} s, found that it was refused: {made[number]['error']}"
        elif not made[number]["changed"]:
            yield f"{name}: asked at {at:g} s, found that it changed nothing"


def opened_after(conditions: Conditions, record: Json, hosts: Sequence[str]) -> bool:
    """Whether a connection was opened when the MTUs of these hosts had all been changed: it must show."""
    last = record["workload"].get("last_start_seconds")
    moments = [each["at_seconds"] for each in conditions.changes if each["set"].get("host") in hosts]
    return bool(moments) and last is not None and last - record["begun_seconds"] > max(moments) + LATE_SECONDS


def paths(conditions: Conditions, sender: str, receiver: str) -> list[int]:
    """The MTU of the path between two hosts in turn, as a sender has it: of its own at any moment, and of what the
    other announced then or, on a connection that was there, before."""
    states = [dict(conditions.mtu)]
    for each in conditions.changes:
        if "host" in each["set"]:
            states.append({**states[-1], each["set"]["host"]: each["set"]["mtu"]})
    return [min(now[sender], then[receiver]) for place, now in enumerate(states) for then in states[: place + 1]]
