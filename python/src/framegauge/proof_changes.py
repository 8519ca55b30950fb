"""Proof of what a study changes while a run is under way: all of it, at its moment, and accepted. Pure: record → failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.rack_settings import described
from framegauge.testbeds.base import Conditions, Json

__all__ = ["change_failures", "opened_after", "paths", "place_of"]

LATE_SECONDS = 0.05  # from the moment that was asked for to when it was made


def place_of(asked: Mapping[str, Any]) -> str:
    """Where a change is made: a host, or links by their pattern."""
    return str(asked["host"]) if "host" in asked else f"{asked['from']}>{asked['to']}"


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
        elif abs(made[number]["made_seconds"] - at) > LATE_SECONDS:
            found = made[number]["made_seconds"]
            yield f"{name}: asked at {at:g} s within {LATE_SECONDS * 1e3:.0f} ms, found {found:.3f} s"


def opened_after(conditions: Conditions, record: Json, hosts: Sequence[str]) -> bool:
    """Whether a connection was opened when the MTUs of these hosts had all been changed: it must show."""
    last = record["workload"].get("last_start_seconds")
    moments = [each["at_seconds"] for each in conditions.changes if each["set"].get("host") in hosts]
    return bool(moments) and last is not None and last - record["begun_seconds"] > max(moments) + LATE_SECONDS


def paths(conditions: Conditions, sender: str, receiver: str) -> list[int]:
    """The MTU of the path between two hosts in turn, as a sender has it: of its own at any moment, and of what the other
    announced then or, on a connection that was there, before."""
    states = [dict(conditions.mtu)]
    for each in conditions.changes:
        if "host" in each["set"]:
            states.append({**states[-1], each["set"]["host"]: each["set"]["mtu"]})
    return [min(now[sender], then[receiver]) for place, now in enumerate(states) for then in states[: place + 1]]
