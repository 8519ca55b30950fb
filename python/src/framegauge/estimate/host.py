"""A host of an estimate: its readings, and what follows from them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.estimate import gains
from framegauge.estimate.load import Load, after

__all__ = ["BOUND", "MEASUREMENT", "READING", "Ends", "Host", "cpu"]

READING, MEASUREMENT, BOUND = "reading", "measurement", "bound"  # what a figure is

Readings = Mapping[str, Any]


@dataclass(frozen=True)
class Host:
    """A host's readings, and what was made of them. `speeds`: of its interfaces, in bits per second; None: not
    known."""

    name: str
    readings: Readings
    loads: Sequence[Load]
    speeds: Mapping[str, float | None]
    sampled: Mapping[tuple[str, str], Readings]

    @property
    def cpu_is_full(self) -> bool:
        """Whether a CPU had no time left."""
        return bool(cpu(self.readings)["busiest_share"] >= gains.FULL_CPU)

    @property
    def delayed(self) -> int:
        """Acknowledgements that a timer of this host sent, over all connections."""
        return max(0, int(self.readings["counters"].get("TcpExtDelayedACKs", 0)))

    def elsewhere(self, place: int) -> float:
        """The share of sampled segments of connections that have no socket here, as those of containers, virtual
        machines and what the host forwards, and of which a larger MTU leaves fewer; `place` is that of the MTU."""
        sockets = {(entry["local"], entry["remote"]) for entry in self.readings["connections"]}
        whole = strange = 0
        for ends, connection in self.sampled.items():
            ways = connection["sent"], connection["received"]
            segments = sum(way["segments"] for way in ways)
            whole += segments
            strange += segments if ends not in sockets and sum(way["after"][place] for way in ways) < segments else 0
        return strange / whole if whole else 0.0

    def cpu_may_be_freed(self, target: int) -> bool:
        """Whether a CPU had no time left, and there are packets to save."""
        left = [after(entry, target) for entry in self.loads] if self.cpu_is_full else []
        return any(entry.least < entry.before for entry in left)


Ends = Mapping[tuple[str, str], tuple[Host, Readings]]  # both ends of connections, and the host of the first


def cpu(readings: Readings) -> dict[str, Any]:
    """Shares of the time of all CPUs, and of the busiest one. What a hypervisor took is no time of this machine."""
    used = whole = softirq = busiest = 0.0
    for processor in readings["cpu"]["cpus"]:
        states = {name: value for name, value in processor.items() if name != "cpu"}
        own = sum(states.values()) - states["steal"]
        busy = own - states["idle"] - states["iowait"]
        used, whole, softirq = used + busy, whole + own, softirq + states["softirq"]
        busiest = max(busiest, busy / own if own else 0.0)
    return {
        "kind": READING,
        "cpus": len(readings["cpu"]["cpus"]),
        "used_share": used / whole if whole else 0.0,
        "busiest_share": min(1.0, busiest),
        "softirq_share_of_used": softirq / used if used > 0 else 0.0,
        "receive_softirqs": readings["cpu"]["receive_softirqs"],
        "transmit_softirqs": readings["cpu"]["transmit_softirqs"],
    }
