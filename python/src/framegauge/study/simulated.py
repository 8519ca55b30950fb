"""What a simulation can and cannot do: rules for studies on testbed `simulator`, checked before anything is run.

What would change a figure on real hosts and has no counterpart in the model is refused. What is only one setting, the
same in every arm, and costs CPU time alone is left out, and said (`left_out`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.files.types import Problem, nearest
from framegauge.metrics import METRICS
from framegauge.study.factors import Factors, Meters
from framegauge.study.testbed import Testbed
from framegauge.study.tunings import Tuning
from framegauge.study.workloads import WORKLOADS, Incast, Mixed, Parameters, RequestResponse, Stream

__all__ = [
    "ALGORITHMS",
    "IGNORED_SYSCTLS",
    "LONGEST_SECONDS",
    "SYSCTLS",
    "left_out",
    "no_rack",
    "simulation_problems",
    "unmeasured_problems",
]

# The congestion controls of the simulator: what `framegauge-agent simulate --algorithms` prints; a test compares them.
TABLE = Path(__file__).with_name("algorithms.json")
ALGORITHMS: tuple[str, ...] = tuple(row["name"] for row in json.loads(TABLE.read_text("utf-8")))
# The sysctls that the model obeys; experiment/simulated/scenario.py translates them.
SYSCTLS = (
    "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_ecn", "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_rto_min_us", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_tso_rtt_log", "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_pacing_ss_ratio", "net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_mtu_probing",
    "net.ipv4.route.mtu_expires", "net.ipv6.route.mtu_expires",
)  # fmt: skip
# Limits that the model does not have: its send buffers hold two windows, as Linux tunes them.
IGNORED_SYSCTLS = ("net.ipv4.tcp_wmem", "net.core.rmem_max", "net.core.wmem_max")
# Factors that cost or save CPU time and leave the packets as they are: TCP builds aggregates without TSO, too.
_ONLY_CPU = ("tso", "checksum")
_RACK = "testbed rack has it"
LEAST_PATH_MTU = 552  # that Linux believes with IPv4, as there
LONGEST_SECONDS = 9_000_000  # that a run may last, as in crates/simulator/src/spec.rs
OF_CPUS = "_per_gigabyte"  # the unit of metrics that CPUs have
OF_MODELS = ("receiver_cpu_cost", "sender_cpu_cost")  # of these, what a model of CPUs has


def no_rack(bed: Testbed, parameters: Parameters, index: int) -> Problem:
    """A workload whose hosts need a rack. Of a simulation the file may well say rack: the verb made it one."""
    key = parameters.key
    if bed.capabilities.is_virtual:
        expected = f"a workload that can be simulated: {key} starts programs, and is for framegauge study"
        return Problem(("workloads", index, key), key, expected)
    return Problem(("testbed", "kind"), bed.kind, f"rack for {key}: its hosts need names and folders of their own")


def simulation_problems(
    bed: Testbed,
    factors: Factors,
    workloads: Sequence[Parameters],
    sysctls: Mapping[str, str],
    tunings: Mapping[str, Tuning],
) -> Iterator[Problem]:
    """Problems of a study that is to be simulated; none on other testbeds."""
    if not bed.capabilities.is_virtual:
        return
    for index, parameters in enumerate(workloads):
        yield from _workload(("workloads", index, parameters.key), parameters)
    yield from _factors(factors, bed.cpu is not None)
    for name in sysctls:
        yield from _sysctl(("sysctls", name), name)
    for name, tuning in tunings.items():
        for sysctl in tuning.sysctls or {}:
            yield from _sysctl(("tunings", name, "sysctls", sysctl), sysctl)
    yield from _routers(bed)


def _routers(bed: Testbed) -> Iterator[Problem]:
    routers = (bed.topology.custom.routers if bed.topology.custom is not None else None) or []
    path = ("testbed", "topology", "custom", "routers")
    for index, router in enumerate(routers):
        if bed.family == 4 and router.mtu is not None and router.mtu < LEAST_PATH_MTU:
            expected = f"{LEAST_PATH_MTU} or more in a simulation: below it hosts send fragments"
            yield Problem((*path, index, "mtu"), router.mtu, expected)
    if routers and bed.shared_buffer is not None and bed.shared_buffer.lossless:
        yield Problem(("testbed", "shared_buffer", "lossless"), True, "no such key with routers, which pause nobody")


def _workload(path: tuple[str | int, ...], parameters: Parameters) -> Iterator[Problem]:
    durations = getattr(parameters, "duration", None) or ()
    longest = max(durations, default=0.0) if isinstance(durations, Sequence) else durations
    if longest > LONGEST_SECONDS:
        yield Problem((*path, "duration"), f"{longest:g} s", f"at most {LONGEST_SECONDS} s in a simulation")
    if isinstance(parameters, Stream):
        if parameters.sizes != [None]:
            yield Problem((*path, "sizes"), "sizes", f"null: sockets' sizes are not simulated ({_RACK})")
    elif not isinstance(parameters, RequestResponse | Mixed | Incast) and not parameters.only_simulated:
        names = ", ".join(key for key, kind in WORKLOADS.items() if kind.only_simulated)
        expected = (
            f"stream, rr, mixed, incast, or {names} on testbed simulator, which runs no programs (testbed rack does)"
        )
        yield Problem(path, parameters.key, expected)


def _factors(factors: Factors, has_cpus: bool) -> Iterator[Problem]:
    for name in _only_cpu(has_cpus):
        if len(levels := factors.levels(name)) > 1:
            cause = "aggregates are built without it, too" if name == "tso" else "there are no CPUs that it would spare"
            text = ", ".join("on" if level else "off" for level in levels)
            yield Problem(("factors", name), text, f"one level on testbed simulator: {cause} ({_RACK})")
    for name in ("gro_size", "mptcp", "plpmtud"):
        if any(factors.levels(name)):
            text = ", ".join(map(str, factors.levels(name)))
            yield Problem(("factors", name), text, f"no such factor on testbed simulator ({_RACK})")
    for index, algorithm in enumerate(factors.levels("congestion_control")):
        if algorithm not in (None, *ALGORITHMS):
            path = ("factors", "congestion_control", "levels", index)
            yield Problem(path, algorithm, f"{', '.join(ALGORITHMS[:-1])} or {ALGORITHMS[-1]} in a simulation")


def _sysctl(path: tuple[str | int, ...], name: str) -> Iterator[Problem]:
    if name not in (*SYSCTLS, *IGNORED_SYSCTLS):
        yield Problem(path, name, f"a setting that is simulated: {nearest(name, SYSCTLS)}")


def unmeasured_problems(meters: Meters, metrics: Collection[str], has_cpus: bool = False) -> Iterator[Problem]:
    """Problems with what nobody measures in a simulation; with a model of CPUs, their time is known."""
    for name in ("watch", "diagnose"):
        if value := getattr(meters, name):
            yield Problem(("meters", name), value, f"no such key on testbed simulator ({_RACK})")
    for name in metrics:
        if METRICS[name].unit.endswith(OF_CPUS) and not (has_cpus and name in OF_MODELS):
            expected = f"{' or '.join(OF_MODELS)}" if has_cpus else "no metric of CPUs without testbed.cpu"
            yield Problem(("margins", name), name, expected)


def _only_cpu(has_cpus: bool) -> tuple[str, ...]:
    return tuple(name for name in _ONLY_CPU if not (has_cpus and name == "tso"))


def left_out(
    factors: Factors, sysctls: Mapping[str, str], tunings: Mapping[str, Any], has_cpus: bool = False
) -> list[str]:
    """What a simulation leaves out of a study, by its keys: it has no effect there."""
    keys = [f"factors.{name}" for name in _only_cpu(has_cpus) if getattr(factors, name) is not None]
    names = itertools.chain(sysctls, *((tuning.sysctls or {}) for tuning in tunings.values()))
    return keys + [f"sysctls {name}" for name in dict.fromkeys(names) if name in IGNORED_SYSCTLS]
