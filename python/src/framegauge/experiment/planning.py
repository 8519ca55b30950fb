"""The conditions, the workload and the expected duration of a slot of a study."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from framegauge.apps import store
from framegauge.errors import AgentFailure
from framegauge.experiment import traffic
from framegauge.experiment.block_storage import iscsi_of
from framegauge.experiment.cluster import mapreduce_of
from framegauge.experiment.file_service import nfs_of
from framegauge.experiment.programs import command_of, programs_of, remedy
from framegauge.experiment.storage import ceph_of
from framegauge.experiment.web import web_of
from framegauge.networks import disciplines, multipath, topologies
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.networks.settings import together
from framegauge.quantities import print_seconds
from framegauge.study.aggregates import PROBING
from framegauge.study.blocks import Slot, block_order, order
from framegauge.study.changes import changes_as_json
from framegauge.study.model import NETWORK, OFFLOADS, Study, arms, cells, host_mtus, nic_of, route_mtu, storage_mtu
from framegauge.study.network import link_settings
from framegauge.study.sizes import at_mtu
from framegauge.study.tunings import AS_IS, Tuning, tuned_sysctls
from framegauge.testbeds.base import PLACES, Conditions
from framegauge.workloads.base import Runnable, Workload
from framegauge.workloads.datagrams import Datagrams
from framegauge.workloads.ftp import Ftp
from framegauge.workloads.incast import Incast
from framegauge.workloads.iperf3 import Iperf3
from framegauge.workloads.mixed import Mixed
from framegauge.workloads.quic import Quic
from framegauge.workloads.rr import RequestResponse
from framegauge.workloads.stream import Stream

__all__ = [
    "HOST_OVERHEAD_SECONDS",
    "baseline",
    "baseline_slot",
    "conditions_of",
    "expected_seconds",
    "missing_programs",
    "runnable_of",
    "searched",
    "seed_of",
    "stated_conditions",
    "total_seconds",
    "workload_of",
]

RUN_OVERHEAD_SECONDS = 0.35  # for building, reading and taking down a pair, and waiting for quiet
HOST_OVERHEAD_SECONDS = 0.05  # for each further host
# The names in conditions and verdicts of factors whose value has a unit.
_KEYS = {
    "rtt": "rtt_seconds", "moderation": "moderation_seconds", "buffer": "buffer_bytes", "skew": "skew_ppm",
    "gso_size": "gso_size_bytes", "gro_size": "gro_size_bytes",
}  # fmt: skip
# Times of a workload that tell conditions apart, or say what was asked for.
_TIMES = (
    "duration_seconds", "mean_think_seconds", "spurt_seconds", "pause_seconds", "page_cpu_seconds", "page_wait_seconds",
)  # fmt: skip
_ECN = "net.ipv4.tcp_ecn"  # for both IP families; 1: requests ECN, and grants it
_TESTBEDS: Mapping[str, Literal["fabric", "kernel", "hosts", "simulation"]] = {
    "veth": "kernel", "ssh": "hosts", "simulator": "simulation",
}  # fmt: skip


def _factors(study: Study, slot: Slot) -> dict[str, Any]:
    return {**slot.cell.factors, study.treatment: slot.arm.level}


def baseline_slot(study: Study) -> Slot:
    """A slot of a study's first workload with every factor at its baseline, else its first level."""
    cell = cells(study)[0]
    levels = {name: getattr(study.factors, name, None) for name in cell.factors}
    chosen = {name: level.baseline for name, level in levels.items() if level is not None}
    return Slot(0, replace(cell, factors={**cell.factors, **chosen}), arms(study)[0])


def baseline(study: Study) -> Conditions:
    """The conditions of that slot."""
    return conditions_of(study, baseline_slot(study))


def conditions_of(study: Study, slot: Slot) -> Conditions:
    """The conditions that a slot requests from the testbed."""
    factors, bed = _factors(study, slot), study.testbed
    tuning = study.tunings.get(factors["tuning"] or AS_IS, Tuning())
    mtus, network = host_mtus(factors["mtu"], bed.host_names), _network(study, slot, factors)
    second = storage_mtu(factors["mtu"], bed.host_names)
    least_port_mtu = min([bed.link.port_mtu, *(link["mtu"] for link in network.get("links", ()) if "mtu" in link)])
    return Conditions(
        testbed=_TESTBEDS.get(bed.kind, "fabric"),
        mtu=mtus,
        storage_mtu=second,
        route_mtu=route_mtu(factors["mtu"], bed.host_names),
        rtt_seconds=factors["rtt"] or 0.0,
        **_nic(study, factors),
        congestion_control=factors["congestion_control"],
        bits_per_second=bed.link.rate,
        buffer_bytes=bed.link.buffer if factors["buffer"] is None else factors["buffer"],
        port_mtu=bed.link.port_mtu,
        moderation_seconds=factors["moderation"] or 0.0,
        aggregate_bytes=bed.nic.aggregate if factors["gso_size"] is None else min(factors["gso_size"], USUAL_BYTES),
        shaper_factor=bed.shaper.factor,
        shaper_burst_bytes=bed.shaper.burst,
        family=bed.family,
        sysctls={**tuned_sysctls(study.sysctls, study.tunings, factors["tuning"]), **_own_sysctls(factors)},
        nagle=factors["nagle"],
        qdisc=factors["qdisc"],
        network=network,
        shaping=factors["shaping"] is not False,
        overlay=None if factors["overlay"] in (None, "none") else factors["overlay"],
        changes=changes_as_json(study.changes, bed.host_names, mtus, least_port_mtu, second, bed.nic.link_loss),
        gso_bytes=factors["gso_size"],
        gro_bytes=factors["gro_size"],
        hw_gro=factors["hw_gro"],
        initial_window_segments=tuning.initial_window,
        initial_receive_window_segments=tuning.initial_receive_window,
        slow_start_threshold_segments=tuning.slow_start_threshold,
        pacing=factors["pacing"],
        mptcp=factors["mptcp"],
        plpmtud=factors["plpmtud"],
    )


def _own_sysctls(factors: Mapping[str, Any]) -> dict[str, str]:
    """The sysctls that are factors."""
    levels = {_ECN: factors["ecn"], PROBING: factors["mtu_probing"]}
    return {name: str(int(level)) for name, level in levels.items() if level is not None}


def _network(study: Study, slot: Slot, factors: Mapping[str, Any]) -> dict[str, Any]:
    """Network settings that differ from the defaults, with a seed of the block, so that its arms draw the same."""
    bed, shared = study.testbed, study.testbed.shared_buffer
    if not bed.capabilities.has_fabric:
        return {}
    skew = [{"from": "*", "to": host, "skew_ppm": factors["skew"]} for host in bed.host_names if factors["skew"]]
    follows = any(isinstance(entry.mtu, str) for entry in bed.links)
    ports = topologies.directed(bed.topology.as_json(), bed.host_names) if follows else []
    second = storage_mtu(factors["mtu"], bed.host_names)
    links = link_settings(bed.links, ports, host_mtus(factors["mtu"], bed.host_names), second)
    settings = {
        "topology": bed.topology.as_json() if bed.topology.text() is not None else None,
        "queue": None if factors["queue"] in (None, "taildrop") else disciplines.as_json(factors["queue"]),
        "shared_buffer": None if shared is None else shared.as_json(),
        "links": [*skew, *links],
        "routing": None if factors["routing"] in (None, "ecmp") else dict(topologies.ROUTINGS[factors["routing"]]),
        "background": [entry.as_json() for entry in bed.background],
    }
    network = {name: value for name, value in settings.items() if value}
    return {**network, "seed": seed_of(study, slot)} if network else {}


def _nic(study: Study, factors: Mapping[str, Any]) -> dict[str, Any]:
    nic = nic_of(factors)
    if not study.testbed.capabilities.builds_hosts and factors["lro"] is None and nic["lro"]:
        nic["lro"] = None  # `offloads: on` does not require LRO, which few NICs support
    return nic


def seed_of(study: Study, slot: Slot) -> int:
    """The seed of a run's arrivals: the same for all arms of a block, different for each block; clients add their
    number."""
    return (study.seed * 10_007 + slot.block) * 1000


def _stream(parameters: Mapping[str, Any], factors: Mapping[str, Any]) -> Stream:
    """The stream with the sizes for this MTU, since the workload itself does not depend on the MTU."""
    arguments = {name: value for name, value in parameters.items() if name != "sizes"}
    sizes = at_mtu(parameters.get("sizes"), factors["mtu"])
    return Stream(**arguments, **sizes, pacing=factors["pacing"], subflows=multipath.subflows(factors["mptcp"]))


def _quic(study: Study, parameters: Mapping[str, Any], factors: Mapping[str, Any]) -> Quic:
    """QUIC of which the kernel's aggregates follow the offloads: what it sends at once those of TSO, what it takes at
    once those of GRO. A rack's shaper charges aggregates by the table of TCP's (crates/frames/src/aggregate.rs), which
    is up to 4 % wrong for others, so that it is given none."""
    nic = nic_of(factors)
    is_charged = study.testbed.capabilities.has_fabric and factors["shaping"] is not False
    return Quic(
        **parameters, plpmtud=factors["plpmtud"] is not False,
        congestion_control=factors["congestion_control"] or "cubic", gso=False if is_charged else nic["tso"],
        gro=nic["gro"],
    )  # fmt: skip


_MAKERS: Mapping[str, Callable[[Study, Slot, dict[str, Any]], Workload]] = {
    "stream": lambda _study, slot, factors: _stream(slot.cell.parameters, factors),
    "rr": lambda study, slot, factors: RequestResponse(
        **slot.cell.parameters, nagle=factors["nagle"], seed=seed_of(study, slot)
    ),
    "mixed": lambda study, slot, factors: Mixed(
        **slot.cell.parameters, nagle=factors["nagle"], pacing=factors["pacing"], seed=seed_of(study, slot)
    ),
    "datagrams": lambda _study, slot, factors: Datagrams(**slot.cell.parameters, pacing=factors["pacing"]),
    "quic": lambda study, slot, factors: _quic(study, slot.cell.parameters, factors),
    "iperf3": lambda _study, slot, factors: Iperf3(
        **slot.cell.parameters, nagle=factors["nagle"], congestion_control=factors["congestion_control"]
    ),
    "incast": lambda _study, slot, factors: Incast(**slot.cell.parameters, nagle=factors["nagle"]),
    "ftp": lambda _study, slot, _factors: Ftp(**slot.cell.parameters),
    "command": command_of,
    "mapreduce": mapreduce_of,
    "web": lambda study, slot, factors: web_of(study, slot, factors, seed_of(study, slot)),
    "iscsi": lambda study, slot, factors: iscsi_of(study, slot, factors, seed_of(study, slot)),
    "ceph": lambda study, slot, factors: ceph_of(study, slot, factors, seed_of(study, slot)),
    "nfs": lambda study, slot, factors: nfs_of(study, slot, factors, seed_of(study, slot)),
}


def workload_of(study: Study, slot: Slot) -> Workload:
    """The workload of a slot, with the factors that the workload itself applies."""
    key, factors = study.workloads[slot.cell.place].parameters.key, _factors(study, slot)
    if (make := traffic.MAKERS.get(key)) is not None:
        return make(study, slot, factors, seed_of(study, slot))
    return _MAKERS[key](study, slot, factors)


def runnable_of(study: Study, slot: Slot) -> Runnable:
    """The same to be run on hosts; AgentFailure for a workload that is only simulated, which a study refuses there."""
    workload = workload_of(study, slot)
    if not isinstance(workload, Runnable):
        raise AgentFailure(f"{slot.cell.workload}: found a workload that is only simulated, expected testbed simulator")
    return workload


def expected_seconds(study: Study, slot: Slot) -> float:
    """A first estimate of a run's duration, which the first runs correct."""
    overhead = RUN_OVERHEAD_SECONDS + HOST_OVERHEAD_SECONDS * (len(study.testbed.host_names) - 2)
    return overhead + workload_of(study, slot).expected_seconds(study.testbed.link.rate)


def total_seconds(study: Study) -> float:
    """A first estimate of a study's duration: all of its runs, or its budget if that is shorter."""
    return min(study.budget, sum(expected_seconds(study, slot) for slot in order(study)))


def stated_conditions(study: Study, slot: Slot) -> dict[str, Any]:
    """The conditions that are the same within a comparison, in base units, as shown in the summary."""
    parameters = slot.cell.parameters
    stated = {name: value for name, value in parameters.items() if not name.endswith("_seconds")}
    stated |= {name: parameters[name] for name in _TIMES if name in parameters}
    # Settings that follow `offloads`, or that the workload decides, are not stated twice.
    followers = (
        *OFFLOADS, "hw_gro", "nagle", "qdisc", *NETWORK, "gso_size", "gro_size", "mtu_probing", "pacing", "mptcp",
        "plpmtud", "tuning",
    )  # fmt: skip
    factors = {
        _KEYS.get(name, name): value
        for name, value in slot.cell.factors.items()
        if value is not None or name not in followers
    }
    conditions = {**stated, **factors, "bits_per_second": study.testbed.link.rate}
    if (topology := study.testbed.topology.text()) is not None:
        conditions["topology"] = topology
    if study.changes:
        conditions["changes"] = _told(study)
    if not study.testbed.capabilities.builds_hosts:
        # Only what was requested: anything else is left unchanged on the user's own hosts.
        return {name: value for name, value in conditions.items() if value is not None}
    return conditions if study.testbed.hosts is None else {**conditions, "hosts": study.testbed.hosts}


def _told(study: Study) -> str:
    """The changes during a run in words: "after 1.5 s h1, h2: MTU 9000"."""
    changes = changes_as_json(study.changes, study.testbed.host_names)
    held = {change.at for change in study.changes if change.hold}
    moments = dict.fromkeys(change["at_seconds"] for change in changes)
    texts = ((at, together([change["set"] for change in changes if change["at_seconds"] == at])) for at in moments)
    lost = study.testbed.nic.link_loss
    return ", ".join(
        [
            *(f"after {print_seconds(at)} {text}{', routes held' if at in held else ''}" for at, text in texts),
            *([f"links whose MTU changes down for {print_seconds(lost)}"] if lost else []),
        ]
    )


def searched() -> str:
    """The folders in which hosts find their programs, as in PATH.

    A host looks in the PATH of its agent, then in the system's folders. Root's agent has root's own PATH; another
    user's agent is started by sudo, which does not pass theirs on.
    """
    path = os.environ.get("PATH", "") if os.geteuid() == 0 else ""
    return f"{path}:{PLACES}" if path else PLACES


def missing_programs(study: Study, places: str | None = None) -> list[dict[str, str]]:
    """The programs that a study's workloads need and this machine lacks, as requirements."""
    places = searched() if places is None else places
    workloads = {slot.cell.workload: workload_of(study, slot) for slot in block_order(study, 0)}
    needed = [
        (f"workload {name}", item.name, item.remedy)
        for name, workload in sorted(workloads.items())
        if isinstance(workload, Runnable)
        for item in workload.needs
        if not item.is_there(places)
    ]
    hosts_by_program: dict[str, list[str]] = {}
    for host, programs in programs_of(study).items():
        for program in programs:
            hosts_by_program.setdefault(program, []).append(host)
    needed += [
        (f"command on {', '.join(hosts)}", program, remedy(study, program))
        for program, hosts in hosts_by_program.items()
        if shutil.which(program, path=places) is None
    ]
    lacking = [
        {"name": program, "needed_for": purpose, "found": "no such program", "remedy": how}
        for purpose, program, how in needed
    ]
    apps = {app for item in study.workloads for app in item.parameters.apps}
    absent = [app for name in sorted(apps) if not store.installed(app := store.named(name))]
    return lacking + [
        {
            "name": app.full_name, "needed_for": app.needed_for, "found": f"no {store.folder(app)}",
            "remedy": f"framegauge apps fetch {app.name}",
        }
        for app in absent
    ]  # fmt: skip
