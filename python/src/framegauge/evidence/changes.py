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
    outcomes = record.get("changes", [])
    for number, change in enumerate(conditions.changes):
        moment = change["at_seconds"]
        name = f"change of {place_of(change['set'])} ({', '.join(described(change['set']))})"
        if number >= len(outcomes):
            yield f"{name}: requested at {moment:g} s, found that the run was over before"
        elif outcomes[number]["error"] is not None:
            yield f"{name}: requested at {moment:g} s, found that it was refused: {outcomes[number]['error']}"
        elif not outcomes[number]["changed"]:
            yield f"{name}: requested at {moment:g} s, found that it changed nothing"


def opened_after(conditions: Conditions, record: Json, hosts: Sequence[str]) -> bool:
    """Whether a connection was opened after all changes of these hosts' MTUs, so that it must show them."""
    start = record["workload"].get("last_start_seconds")
    moments = [change["at_seconds"] for change in conditions.changes if node_of(change["set"].get("host", "")) in hosts]
    return bool(moments) and start is not None and start - record["begun_seconds"] > max(moments) + LATE_SECONDS


def paths(conditions: Conditions, sender: str, receiver: str, nic: int = 1) -> list[int]:
    """The path MTUs that a sender may use in turn between NICs of this number: from its own MTU at each moment, and the
    MTU that the other host announced then or, on an older connection, before. Held routes bound both."""
    states = [{name: conditions.mtus(name, nic)[0] for name in conditions.hosts}]
    for entry in conditions.changes:
        host = node_of(entry["set"].get("host", ""))
        if "mtu" in entry["set"] and entry["set"].get("host") in (host, f"{host}.{nic}"):
            states.append({**states[-1], host: entry["set"]["mtu"]})
    bound = conditions.route_mtu or max(max(entry.values()) for entry in states)
    return [min(now[sender], then[receiver], bound) for place, now in enumerate(states) for then in states[: place + 1]]
