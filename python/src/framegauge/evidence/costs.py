"""The CPU cost of a run for each host, and whether the account closes. Record in, figures out.

The cost of a host is the use of its programs and its receive path, less the same host's idle use (per second, in an
idle interval just before the run), as in published studies that measure with and without the application. Work in
interrupts, including the shaper's timers, belongs to no thread and stays unattributed: hosts + fabric + framegauge
itself + unattributed = the whole system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.evidence import scheduling
from framegauge.testbeds.base import Json

__all__ = ["COUNTED", "accounts", "disagreements", "metrics", "not_measured", "readings", "used"]

GIGABYTE = 1e9
TICK_SECONDS = 0.01  # the resolution of CPU states in /proc/stat (USER_HZ, proc_stat(5))
CLOSING_SHARE = 0.02  # of the whole system, by which the parts may exceed it because readings take some time
_FIELDS = {"cpu_cost": "cpu_seconds", "instructions": "instructions", "cycles": "cycles"}
_SIDES = {"receiver": "receivers", "sender": "senders"}
BUSY = ("cpu_seconds", "cycles")  # change with what others do on the same CPUs; instructions do not
# By metric: its side, and what it counts there.
COUNTED = {f"{side}_{name}": (side, field) for side in _SIDES for name, field in _FIELDS.items()}


def _parts(reading: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | None]:
    yield reading["programs"]
    yield reading["receive_path"]


def used(record: Json, host: str, field: str) -> float | None:
    """One host's use during the run less its idle use; None if it could not be measured."""
    run, idle = record["cpu"][host], record["cpu_idle"][host]
    total = 0.0
    for during, before in zip(_parts(run), _parts(idle), strict=True):
        if during is None or before is None or during[field] is None or before[field] is None:
            return None
        rate = before[field] / idle["elapsed_seconds"] if idle["elapsed_seconds"] > 0 else 0.0
        total += during[field] - rate * run["elapsed_seconds"]
    return total


def metrics(record: Json) -> dict[str, float]:
    """The metrics of COUNTED: core-seconds, instructions or cycles per gigabyte (10^9 bytes) delivered.

    Empty if nothing was delivered or the CPU was not metered; metrics that could not be measured are missing. Beside
    other programs, caches, sibling threads and clock rates are shared with these, so times and cycles are missing.
    """
    gigabytes = record["workload"]["bytes"] / GIGABYTE
    shared = scheduling.of_run(record)
    left_out = BUSY if shared is not None and shared.is_shared else ()
    if "cpu" not in record or gigabytes <= 0:
        return {}
    costs = {}
    for metric, (side, field) in COUNTED.items():
        if field in left_out:
            continue
        values = [used(record, host, field) for host in record["workload"][_SIDES[side]]]
        if values and None not in values:
            # A cost at or below zero is noise of the idle use, and has no ratio.
            total = sum(value for value in values if value is not None)
            if total > 0:
                costs[metric] = total / gigabytes
    return costs


def not_measured(record: Json) -> dict[str, str]:
    """The reasons for the metrics of COUNTED that this run lacks."""
    if "cpu" not in record:
        return dict.fromkeys(COUNTED, "the study has the CPU meter off")
    reasons = {}
    present = metrics(record)
    shared = scheduling.of_run(record)
    for metric, (side, field) in COUNTED.items():
        if metric in present:
            continue
        if shared is not None and shared.is_shared and field in BUSY:
            reasons[metric] = f"the machine was busy: other programs used {shared.others:.0%} of the hosts' CPUs"
            continue
        hosts = record["workload"][_SIDES[side]]
        lines = [line for host in hosts for line in record["cpu"][host]["not_measured"]]
        why = [line for line in lines if field in line or (line.startswith("receive path"))]
        reasons[metric] = why[0] if why else "the use was too small to be distinguished from an idle host's"
    return reasons


def _cpu_seconds(reading: Mapping[str, Any]) -> float:
    return sum(float(part["cpu_seconds"]) for part in _parts(reading) if part is not None)


def accounts(record: Json) -> Json:
    """CPU seconds during the run, with nothing subtracted: `hosts` (by name), `fabric`, `framegauge` (the work of its
    agents and the controller), `system` (all CPU time neither idle nor stolen), and `unattributed`, the rest. `slack`
    is how much more the system may have used than its counters show."""
    measure = record["measure"]
    hosts = {name: _cpu_seconds(reading) for name, reading in record["cpu"].items()}
    fabric = measure["fabric"]["thread"]["cpu_seconds"] if measure["fabric"] is not None else 0.0
    own_seconds = measure["agent"]["cpu_seconds"] + record["controller_seconds"]
    elapsed = measure["elapsed_seconds"]
    away = [[cpu[f"{state}_seconds"] for state in ("idle", "iowait", "steal")] for cpu in measure["cpus"]]
    system = sum(elapsed - sum(states) for states in away)
    return {
        "hosts": hosts,
        "fabric": fabric,
        "framegauge": own_seconds,
        "system": system,
        "unattributed": system - sum(hosts.values()) - fabric - own_seconds,
        "slack": CLOSING_SHARE * max(system, 0.0) + _overstated(away),
    }


def _overstated(away: Sequence[Sequence[float]]) -> float:
    """The time by which the counters of idle, waiting and stolen seconds (by CPU) may exceed the truth.

    A counter that moved may be up to a tick too high; one that did not move can only be too low. Time stolen from an
    idle CPU may be in both counters, because Linux measures idle time by the clock.
    """
    moved = sum(seconds > 0 for states in away for seconds in states)
    return TICK_SECONDS * moved + sum(stolen for _, _, stolen in away)


def readings(record: Json) -> Json:
    """The readings for the line of a run: shares of the system's CPU time, and the time of the meter itself."""
    if "cpu" not in record or not record["measure"]["cpus"]:
        return {}
    times = accounts(record)
    system = times["system"]
    parts = {"hosts": sum(times["hosts"].values())} | {k: times[k] for k in ("fabric", "framegauge", "unattributed")}
    shares = {f"cpu_share_{name}": value / system if system > 0 else None for name, value in parts.items()}
    meter = sum(reading["meter_seconds"] for reading in record["cpu"].values())
    return {
        **shares,
        "frames_per_gigabyte": _frames_per_gigabyte(record),
        "cpu_system_seconds": system,
        "meter_seconds": meter,
        "frames_per_poll": {host: frames for host, frames in _frames_per_poll(record) if frames is not None},
    }


def _frames_per_poll(record: Json) -> Iterable[tuple[str, float | None]]:
    """The number of frames that the interface took in per poll, by host."""
    for host, reading in record["cpu"].items():
        frames = _received_frames(record, host)
        yield host, frames / reading["polls"] if reading["polls"] else None


def _frames_per_gigabyte(record: Json) -> float | None:
    """The frames, including acknowledgements, at the hosts that receive data, per gigabyte of data."""
    amounts = record["workload"].get("received_bytes", {})
    frames = sum(_received_frames(record, host) for host in amounts)
    return 1e9 * frames / sum(amounts.values()) if any(amounts.values()) else None


def _received_frames(record: Json, host: str) -> int:
    fabric = record["measure"]["fabric"]
    for fabric_host in fabric["hosts"] if fabric is not None else []:
        if fabric_host["host"] == host:
            return int(fabric_host["written_frames"])
    before, after = (record[f"counters_{moment}"][host]["interface"] for moment in ("before", "after"))
    return int(after["rx_packets"] - before["rx_packets"])


def disagreements(record: Json) -> Sequence[str]:
    """A line if the parts exceed the whole system by more than the slack of the readings."""
    if "cpu" not in record or not record["measure"]["cpus"]:
        return []  # the user's own hosts are not one system
    account = accounts(record)
    if account["unattributed"] >= -account["slack"]:
        return []
    parts = account["system"] - account["unattributed"]
    system_seconds = account["system"]
    return [f"CPU time of hosts, fabric and framegauge: {parts:.3f} s is more than the system's {system_seconds:.3f} s"]
