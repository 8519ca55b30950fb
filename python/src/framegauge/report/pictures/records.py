"""The figures that the page takes from each run's record.json: CPU time, packets, and the proof of the treatment.

Records are read one after the other. Figures that a testbed or an older version did not record are left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig

__all__ = ["PACKETS", "STATES", "USERS", "Reading", "medians", "read"]

GIGABYTE = 1e9
# Figures by name, with their headings in a table. CPU in core-seconds per gigabyte delivered.
USERS = {f"cpu_{name}": name for name in ("hosts", "fabric", "framegauge", "unattributed")}
STATES = {f"state_{name}": name for name in ("user", "nice", "system", "irq", "softirq", "steal")}
PACKETS = {
    "packets": "packets received per GB",
    "net_rx": "NET_RX softirqs per GB",
    "net_tx": "NET_TX softirqs per GB",
    "frames_per_interrupt": "frames per interrupt",
    "retransmits": "segments retransmitted per run",
    "dropped_frames": "frames dropped by the fabric per run",
    "peak_queue_bytes": "longest queue of the fabric, bytes",
}


@dataclass(frozen=True)
class Reading:
    """One run that counts: `figures` by name, and the proof of its treatment."""

    run: Run
    figures: Mapping[str, float]
    mtus: Sequence[int]
    mss_bytes: Sequence[int]  # in SYNs, from packets
    segment_payload_bytes: float | None  # mean, from live sockets
    congestion_control: Sequence[str]


def read(saved: Saved) -> list[Reading]:
    """The readings of every run that counts; a run whose record cannot be read has no figures."""
    return [_reading(saved.folder, run) for run in saved.runs if not run.excluded]


def medians(readings: Sequence[Reading]) -> dict[tuple[int, str], dict[str, float]]:
    """The median of each figure over the runs of each arm in each cell."""
    places: dict[tuple[int, str], dict[str, list[float]]] = {}
    for reading in readings:
        figures = places.setdefault((reading.run.cell, reading.run.arm), {})
        for name, value in reading.figures.items():
            figures.setdefault(name, []).append(value)
    return {
        place: {name: statistics.median(values) for name, values in figures.items()}
        for place, figures in places.items()
    }


def _reading(folder: Path, run: Run) -> Reading:
    record = spools.record(folder, run)
    workload = dig(record, "workload") or {}
    gigabytes = (workload.get("bytes") or 0) / GIGABYTE
    figures = {name: value for name, value in _figures(run, record, gigabytes) if value is not None}
    syns = [syn for wire in (dig(record, "wire") or {}).values() for syn in wire.get("syns", ())]
    return Reading(
        run,
        figures,
        sorted({mtu for host in (dig(record, "before") or {}).values() for mtu in _mtus(host)}),
        sorted({syn["mss_bytes"] for syn in syns if syn.get("mss_bytes") is not None}),
        workload.get("mean_segment_payload_bytes"),
        sorted({name for names in (workload.get("congestion_control") or {}).values() for name in names}),
    )


def _mtus(host: Mapping[str, Any]) -> Iterator[int]:
    """The MTUs of a host's NICs, as read."""
    yield from (nic["mtu"] for nic in (host, *host.get("nics", ())) if "mtu" in nic)


def _figures(run: Run, record: Mapping[str, Any], gigabytes: float) -> Iterator[tuple[str, float | None]]:
    system = run.readings.get("cpu_system_seconds")
    for name, part in USERS.items():
        share = run.readings.get(f"cpu_share_{part}")
        yield name, share * system / gigabytes if gigabytes > 0 and share is not None and system is not None else None
    cpus = dig(record, "measure", "cpus") or []
    for name, state in STATES.items():
        yield name, _sum(cpus, f"{state}_seconds", gigabytes)
    softirqs = dig(record, "measure", "softirqs") or []
    for name in ("net_rx", "net_tx"):
        yield name, _sum(softirqs, name, gigabytes)
    before, after = (
        {host: dig(counters, "interface", "rx_packets") for host, counters in (dig(record, when) or {}).items()}
        for when in ("counters_before", "counters_after")
    )
    moved = [
        {"rx_packets": count - before[host]}
        for host, count in after.items()
        if count is not None and before.get(host) is not None
    ]
    yield "packets", _sum(moved, "rx_packets", gigabytes)
    yield "frames_per_interrupt", run.readings.get("frames_per_interrupt")
    yield "retransmits", dig(record, "workload", "retransmits")
    ports = dig(record, "measure", "fabric", "ports") or []
    yield "dropped_frames", _sum(ports, "dropped_frames", 1.0)
    yield (
        "peak_queue_bytes",
        max((port["peak_queue_bytes"] for port in ports if "peak_queue_bytes" in port), default=None),
    )


def _sum(rows: Sequence[Mapping[str, Any]], name: str, divisor: float) -> float | None:
    values = [row[name] for row in rows if row.get(name) is not None]
    return sum(values) / divisor if values and divisor > 0 else None
