"""Proof that all changes of a study were made and accepted during a run: record in, failures out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framegauge.networks.settings import described, place_of
from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Conditions, Json

__all__ = ["change_failures", "opened_after", "paths"]

LATE_SECONDS = 0.05  # the lateness that fidelity.py allows


def change_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each change that was not made as requested."""
    made = record.get("changes", [])
    for number, asked in enumerate(conditions.changes):
        at = asked["at_seconds"]
        name = f"change of {place_of(asked['set'])} ({', '.join(described(asked['set']))})"
        if number >= len(made):
            yield f"{name}: requested at {at:g} s, found that the run was over before"
        elif made[number]["error"] is not None:
            yield f"{name}: requested at {at:g} s, found that it was refused: {made[number]['error']}"
        elif not made[number]["changed"]:
            yield f"{name}: requested at {at:g} s, found that it changed nothing"


def opened_after(conditions: Conditions, record: Json, hosts: Sequence[str]) -> bool:
    """Whether a connection was opened after all changes of these hosts' MTUs, so that it must show them."""
    last = record["workload"].get("last_start_seconds")
    moments = [each["at_seconds"] for each in conditions.changes if node_of(each["set"].get("host", "")) in hosts]
    return bool(moments) and last is not None and last - record["begun_seconds"] > max(moments) + LATE_SECONDS


def paths(conditions: Conditions, sender: str, receiver: str, nic: int = 1) -> list[int]:
    """The path MTUs that a sender may use in turn between NICs of this number: from its own MTU at each moment, and the
    MTU that the other host announced then or, on an older connection, before. Held routes bound both."""
    states = [{name: conditions.mtus(name, nic)[0] for name in conditions.hosts}]
    for each in conditions.changes:
        host = node_of(each["set"].get("host", ""))
        if "mtu" in each["set"] and each["set"].get("host") in (host, f"{host}.{nic}"):
            states.append({**states[-1], host: each["set"]["mtu"]})
    held = conditions.route_mtu or max(max(each.values()) for each in states)
    return [min(now[sender], then[receiver], held) for place, now in enumerate(states) for then in states[: place + 1]]
