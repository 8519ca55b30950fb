"""The fidelity verdict: whether the testbed itself was on time, and nothing of it had to wait. Record in, reasons out.

That other programs use the CPUs says nothing against a run as long as the fabric and the hosts go before them
(`scheduling`): their time was to spare. What holds up even those who go first is another matter (`_held`): a
hypervisor, or work in a kernel that gives way to nobody.

The thresholds are absolute and the same for all arms: a threshold relative to the frame time would be more lenient to
the arm with larger frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framegauge.evidence import held, scheduling
from framegauge.networks.settings import place_of
from framegauge.testbeds.base import Conditions, Json

__all__ = ["RIVALS", "Fidelity", "assess", "not_measured"]

LATENESS_P50_SECONDS = 100e-6
LATENESS_P99_SECONDS = 1e-3
LATENESS_MAX_SECONDS = 20e-3
READ_AHEAD_BYTES = 131_072  # that the fabric reads ahead of a host; lateness is hidden for as long as they take to send
SWITCHES_PER_SECOND = 100  # involuntary; more mean that something else takes precedence on the fabric's CPU
RIVALS = "programs in real time, before which this rack does not go"  # begins the reason
RIVALS_SHARE = 0.02  # of a CPU, which is counted in ticks of 10 ms
SEQUENCE_SECONDS = 1.0
CHANGE_SECONDS = 0.05  # by which a change may be early or late
FABRIC_CPU_SHARE = 0.9  # above about 0.95 the kernel's real-time limit stalls the fabric for tens of ms
FABRIC_WAITED_SHARE = 0.15  # of the run, ready and not running; runs below were as good as others, those above not
SPARE_SHARE = 0.03  # of the hosts' CPUs, that they must leave: more, and they wait for one another
WAITED_SHARE = 0.005  # of the run, in which a host's programs without precedence may wait on a busy machine


@dataclass(frozen=True)
class Fidelity:
    """The fidelity of a run. `reasons` is empty for a faithful run; `readings` are kept in any case."""

    reasons: list[str]
    readings: dict[str, Any]


def assess(conditions: Conditions, record: Json) -> Fidelity:
    """The fidelity of one run."""
    if not conditions.capabilities.builds_hosts:
        return Fidelity([*_held_up(record)], _readings(record))  # nothing is emulated
    reasons = [*_lateness(conditions, record), *_ring_drops(record), *_fabric_cpu(record)]
    reasons += [*_held(conditions, record), *_rivals(conditions, record)]
    reasons += [*_headroom(conditions, record), *_changes(record)]
    shares = {"held_share": held.share(conditions, record), **dict(scheduling.readings(record))}
    return Fidelity(reasons, {**_readings(record), **shares})


def _readings(record: Json) -> dict[str, Any]:
    fabric = record["measure"]["fabric"]
    readings: dict[str, Any] = {f"idle_share_{role}": share for role, share in _idle(record).items()}
    if cpus := record["measure"].get("held"):
        readings["held_seconds"] = sum(cpu["seconds"] for cpu in cpus)
        readings["held_longest_seconds"] = max(cpu["longest_seconds"] for cpu in cpus)
    if fabric is not None:
        elapsed = record["measure"]["elapsed_seconds"]
        readings |= {f"lateness_{name}": value for name, value in fabric["lateness"].items() if name != "count"}
        readings["involuntary_switches"] = fabric["thread"]["involuntary_switches"]
        readings["scheduling"] = fabric["thread"]["scheduling"]
        readings["fabric_waited_share"] = fabric["thread"]["waited_seconds"] / elapsed if elapsed > 0 else None
        readings["fabric_cpu_share"] = fabric["thread"]["cpu_seconds"] / elapsed if elapsed > 0 else None
    return readings


def _lateness(conditions: Conditions, record: Json) -> Iterator[str]:
    fabric = record["measure"]["fabric"]
    if fabric is None or conditions.bits_per_second is None:
        return
    later_rates = [change["set"].get("bits_per_second", 0) for change in conditions.changes]
    hidden = 8 * READ_AHEAD_BYTES / max([conditions.bits_per_second, *later_rates])
    limits = (("p50", min(LATENESS_P50_SECONDS, hidden)), ("p99", LATENESS_P99_SECONDS), ("max", LATENESS_MAX_SECONDS))
    for name, limit in limits:
        lateness = fabric["lateness"][f"{name}_seconds"]
        if lateness > limit:
            yield f"lateness {name} of the fabric: {_most(limit, lateness, ' us', 1e6)}"


def _changes(record: Json) -> Iterator[str]:
    """Changes that were not made at their moment. Those of a moment with routes held are a sequence, whose order counts
    and not the time that it takes: only its first is to be in time, and its last not far behind."""
    changes = record.get("changes", ())
    held = {change["at_seconds"] for change in changes if "route_mtu" in change["set"]}
    begun_moments: set[float] = set()
    for change in changes:
        due_seconds, made_seconds = change["at_seconds"], change["made_seconds"]
        limit = SEQUENCE_SECONDS if due_seconds in held & begun_moments else CHANGE_SECONDS
        begun_moments.add(due_seconds)
        if change["error"] is None and abs(made_seconds - due_seconds) > limit:
            name = f"change of {place_of(change['set'])} at {due_seconds:g} s"
            yield f"{name}: at most {limit * 1e3:.0f} ms off, found it made at {made_seconds:.3f} s"


def _held(conditions: Conditions, record: Json) -> Iterator[str]:
    """Reasons if something held a CPU of the hosts ahead of all their programs, which no counter of theirs shows."""
    if _unshaped_kernel(conditions):
        return
    elapsed = record["measure"]["elapsed_seconds"]
    for cpu in record["measure"]["held"]:
        name, longest = f"CPU {cpu['cpu']} of the hosts held by something else", cpu["longest_seconds"]
        if cpu["seconds"] > held.MOST_SHARE * elapsed:
            share = cpu["seconds"] / elapsed if elapsed > 0 else float("inf")
            yield f"{name}: {_most(held.MOST_SHARE, share, '%', of=' of the time')}"
        elif longest > held.LONGEST_SECONDS:
            yield f"{name}: {_most(held.LONGEST_SECONDS, longest, ' ms', 1e3)}"


def _rivals(conditions: Conditions, record: Json) -> Iterator[str]:
    """Reasons if programs of others, such as another rack, used the CPUs before which nothing of this one goes."""
    rivals, elapsed = record["measure"].get("rivals"), record["measure"]["elapsed_seconds"]
    if rivals is None or _unshaped_kernel(conditions) or rivals["cpu_seconds"] <= RIVALS_SHARE * elapsed:
        return
    share = rivals["cpu_seconds"] / elapsed if elapsed > 0 else float("inf")
    limits = _most(RIVALS_SHARE, share, "%", of=" of a CPU")
    yield f"{RIVALS}: {limits}: {', '.join(rivals['names'])}"


def _held_up(record: Json) -> Iterator[str]:
    """Reasons if something held up one of the user's hosts. Only long pieces are one: the kernel's own work for
    packets, which looks the same, gives way after a few milliseconds."""
    for cpu in record["measure"]["held"]:
        if cpu["longest_seconds"] > held.LONGEST_SECONDS:
            name = f"CPU {cpu['cpu']} of {cpu['host']} held by something else"
            yield f"{name}: {_most(held.LONGEST_SECONDS, cpu['longest_seconds'], ' ms', 1e3)}"


def not_measured(record: Json) -> list[str]:
    """What the user's hosts did not let their agents measure."""
    reasons = record["measure"].get("held_not_measured", {})
    return [f"{host}: {line}" for host, lines in reasons.items() for line in lines]


def _ring_drops(record: Json) -> Iterator[str]:
    for host, before in record["counters_before"].items():
        lost = record["counters_after"][host]["interface"]["tx_dropped"] - before["interface"]["tx_dropped"]
        if lost:
            yield f"ring drops at {host}: expected 0, found {lost}"
    fabric = record["measure"]["fabric"]
    for host in fabric["hosts"] if fabric is not None else []:
        if host["write_errors"]:
            yield f"packets that {host['host']} did not accept: expected 0, found {host['write_errors']}"


def _fabric_cpu(record: Json) -> Iterator[str]:
    fabric, elapsed = record["measure"]["fabric"], record["measure"]["elapsed_seconds"]
    if fabric is not None and fabric["thread"]["cpu_seconds"] > FABRIC_CPU_SHARE * elapsed:
        share = fabric["thread"]["cpu_seconds"] / elapsed if elapsed > 0 else float("inf")
        yield f"CPU of the fabric's thread: {_most(FABRIC_CPU_SHARE, share, '%')}"
    if fabric is not None and fabric["thread"]["waited_seconds"] > FABRIC_WAITED_SHARE * elapsed:
        share = fabric["thread"]["waited_seconds"] / elapsed if elapsed > 0 else float("inf")
        yield f"the fabric's thread waited for a CPU: {_most(FABRIC_WAITED_SHARE, share, '%', of=' of the time')}"
    if fabric is not None and fabric["thread"]["involuntary_switches"] > SWITCHES_PER_SECOND * elapsed:
        rate = fabric["thread"]["involuntary_switches"] / elapsed if elapsed > 0 else float("inf")
        yield f"involuntary switches of the fabric's thread: {_most(SWITCHES_PER_SECOND, rate, '/s', 1)}"


def _unshaped_kernel(conditions: Conditions) -> bool:
    """Whether the CPU is meant to be the limit: on the kernel's own link without a shaper."""
    return not conditions.capabilities.has_fabric and conditions.bits_per_second is None


def _idle(record: Json) -> dict[str, float]:
    """The idle share of the CPUs of each role (hosts, fabric, shared), but of those that neither may use."""
    states: dict[str, list[float]] = {}
    for cpu in record["measure"]["cpus"]:
        if cpu["role"] == "unused":
            continue
        idle = cpu["idle_seconds"] + cpu["iowait_seconds"]
        total = sum(value for name, value in cpu.items() if name.endswith("_seconds"))
        sums = states.setdefault(cpu["role"], [0.0, 0.0])
        sums[0] += idle
        sums[1] += total
    return {role: idle / total for role, (idle, total) in states.items() if total > 0}


def _headroom(conditions: Conditions, record: Json) -> Iterator[str]:
    """Reasons if the hosts, or the fabric, had less CPU time than they could use."""
    if _unshaped_kernel(conditions):
        return
    shares, fabric = scheduling.of_run(record), record["measure"]["fabric"]
    for role, idle in _idle(record).items():
        if role == "fabric" and fabric is not None and fabric["thread"]["scheduling"] == "fifo":
            continue  # it goes before all others, and its own limit is FABRIC_CPU_SHARE
        if idle >= SPARE_SHARE:
            continue
        if role == "fabric" or shares is None:
            yield f"idle CPU ({role}): {_least(SPARE_SHARE, idle, '%')}"
        elif shares.precedes:
            if shares.spare < SPARE_SHARE:
                yield f"CPU time to spare ({role}): {_least(SPARE_SHARE, shares.spare, '%')}"
        elif shares.waited is None:
            yield f"idle CPU ({role}), as waits are not measured: {_least(SPARE_SHARE, idle, '%')}"
        elif shares.waited > WAITED_SHARE:
            limits = _most(WAITED_SHARE, shares.waited, "%", of=" of the time")
            yield f"programs of a host waited for a CPU: {limits}"


def _most(limit: float, value: float, unit: str, scale: float = 100.0, of: str = "") -> str:
    return f"at most {_apart(limit, value, unit, scale, of)}"


def _least(limit: float, value: float, unit: str, scale: float = 100.0, of: str = "") -> str:
    return f"at least {_apart(limit, value, unit, scale, of)}"


def _apart(limit: float, value: float, unit: str, scale: float, of: str) -> str:
    """A limit and what was found, in as many digits as it takes to see on which side it is: "at most 2%, found 2%"
    would be no reason."""
    bound = f"{round(scale * limit, 1):g}"
    least_digits = max(len(bound.partition(".")[2]), unit == "%")
    texts = [f"{scale * value:.{digits}f}" for digits in range(least_digits, least_digits + 6)]
    return f"{bound}{unit}{of}, found {next((text for text in texts if float(text) != float(bound)), texts[-1])}{unit}"
