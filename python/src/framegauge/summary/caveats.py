"""The caveats of a study: limits of its figures as evidence, and other notes for the reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import METRICS
from framegauge.results.journal import Run, Saved
from framegauge.results.runs import MEASURED_HOSTS
from framegauge.summary.bonds import spread

__all__ = ["caveats", "seals_of"]

NAMED = 3  # connections that a sentence names
MANY = ("connections were", "they keep their segment size until they are")


def caveats(metrics: Collection[str], scope: str, runs: Sequence[Run]) -> list[str]:
    """All caveats, one line each."""
    old = old_connections(run.readings for run in runs)
    return [
        *_of_costs(metrics, scope), *_of_hosts(scope, runs), *_captured(runs), *old, *_refused(runs), *_lasting(runs),
        *_not_restored(runs), *spread(runs),
    ]  # fmt: skip


def seals_of(saved: Saved) -> Iterator[str]:
    """Whether a change of the runs would have been noticed, and which were made on purpose."""
    if saved.runs and not saved.is_sealed:
        yield "not sealed, as results of older versions: a change of them after they were written goes unnoticed"
    for change in saved.plan.get("sealed_again", ()):
        changed = change["changed"]
        rest = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        yield f"sealed again on {change['at']}, as they were then, after a change of {', '.join(changed[:NAMED])}{rest}"


def _of_costs(metrics: Collection[str], scope: str) -> list[str]:
    """The limits of CPU figures as evidence (docs/why/cpu-cost.md)."""
    lines = []
    if scope == "measured":
        if any(metric.endswith("_cpu_cost") for metric in metrics):
            lines.append(
                "CPU figures are for whole hosts: they include whatever else ran there, less its use before each run"
            )
        return lines
    if scope == "simulated":
        if any(metric.endswith("_cpu_cost") for metric in metrics):
            lines.append("CPU figures follow from the costs that testbed.cpu states: not evidence about hosts")
        return lines
    if any(METRICS[metric].unit.endswith("_per_gigabyte") for metric in metrics):
        lines.append("CPU figures are for this machine's kernel and a virtual NIC: not evidence about hardware")
    if any(metric.endswith(("_cpu_cost", "_cycles")) for metric in metrics):
        lines.append("CPU time and cycles vary with caches and other load; instruction counts repeat: judge by those")
    return lines


def _of_hosts(scope: str, runs: Sequence[Run]) -> list[str]:
    """A note if few flows beside many were simulated at several MTUs with hosts that take no time for bytes, and not
    with the costs of a measured machine beside (hosts.py)."""
    modelled = ("busiest_core_share", MEASURED_HOSTS)
    shared = [
        run for run in runs if "share_of_few" in run.metrics and not any(name in run.readings for name in modelled)
    ]
    if scope != "simulated" or len({run.level for run in shared if isinstance(run.level, int)}) <= 1:
        return []
    return [
        "the share of the few at different MTUs depends on what hosts take for packets and bytes, and these take "
        "nothing: give them a model of a CPU (testbed.cpu; framegauge estimate --model makes one of this machine's)"
    ]


def _captured(runs: Sequence[Run]) -> list[str]:
    """A note if packets were captured meanwhile: the more packets there are, the more CPU that costs."""
    diagnosed = [run.readings["diagnosis"]["captures"] for run in runs if run.readings.get("diagnosis")]
    taps = [tap for captures in diagnosed for tap in captures.values()]
    packets = sum(each["packets"] for each in taps)
    if not packets:
        return []
    each = sum(tap["cpu_seconds"] for tap in taps) / packets * 1e9
    return [
        f"packets were captured during the runs, which took {each:.0f} ns of CPU for each on its host, beside what its "
        "kernel did: that favours larger frames a little wherever CPUs are busy, and is in all CPU figures; judge "
        "those by a study without it (meters: {diagnose: off})"
    ]


def _refused(runs: Sequence[Run]) -> list[str]:
    """A note if anything but the study's own hosts connected to its data ports."""
    count = sum(run.readings.get("refused_connections", 0) for run in runs)
    were = "connection without its run's token was" if count == 1 else "connections without their run's token were"
    return [f"{count} {were} refused"] if count else []


def _lasting(runs: Sequence[Run]) -> list[str]:
    """A note if servers or data outlasted runs: how often, and what that means for the proof."""
    used = [run.readings["lasting_runs"] for run in runs if run.readings.get("lasting_runs") is not None]
    if not used:
        return []
    return [
        f"servers or data outlasted runs (lives): {len(used)} runs used what was made {used.count(0)} times. Each "
        "run proves its MSS by live sockets, also those of older connections; what servers have in memory from earlier "
        "runs, of any arm, they keep"
    ]


def _not_restored(runs: Sequence[Run]) -> list[str]:
    """What hosts still have of a run, each line with the first run after which it was so."""
    first: dict[str, int] = {}
    for run in runs:
        for line in run.readings.get("not_restored", []):
            first.setdefault(line, run.number)
    return [f"not everything was put back after run {number}: {line}" for line, number in first.items()]


def old_connections(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line per host about connections from before a raised MTU, from the run in which most of them were open.

    They keep the MSS that they agreed on (RFC 9293, 3.7.1).
    """
    most: dict[str, Mapping[str, Any]] = {}
    for readings in runs:
        for host, reading in (readings.get("old_connections") or {}).items():
            if reading["count"] > most.get(host, {"count": 0})["count"]:
                most[host] = reading
    for host, reading in sorted(most.items()):
        names = [
            f"{connection['local']} to {connection['remote']} ({connection['mss_bytes']} B)"
            for connection in reading["connections"]
        ]
        rest = reading["count"] - len(names[:NAMED])
        were, keep = ("connection was", "it keeps its segment size until it is") if reading["count"] == 1 else MANY
        yield (
            f"{host}: {reading['count']} {were} open when the MTU was raised; {keep} reopened: "
            f"{', '.join(names[:NAMED])}" + (f" and {rest} more" if rest else "")
        )
