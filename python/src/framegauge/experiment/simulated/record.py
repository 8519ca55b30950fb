"""What a simulation made of a run: its record, in the form of those of a rack, and the run with metrics and checks.

Nothing here is proved by readings: MTUs, segment sizes and settings are those of the scenario, which has no other. The
checks are those of the model itself: every frame at every port is accounted for, no goodput is above its ceiling, and
an offered load was carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from framegauge.agents import simulator
from framegauge.agents.simulator import Simulated
from framegauge.errors import BadAnswer, ProgramFailure
from framegauge.evidence import changes, conservation, few, network, steady, waits
from framegauge.evidence.bonds import members
from framegauge.experiment.runner import load_failures
from framegauge.experiment.simulated import cpus
from framegauge.experiment.simulated.bonds import bond_readings, bulk_side, exits
from framegauge.experiment.simulated.flows import completions, flows
from framegauge.experiment.simulated.scenario import HEADERS_BYTES, TIMESTAMPS_BYTES, has_timestamps
from framegauge.experiment.simulated.stuck import stuck
from framegauge.files.tables import Unfit, table, written
from framegauge.networks.settings import place_of
from framegauge.networks.topologies import node_of
from framegauge.printable import one_line
from framegauge.results.journal import Run
from framegauge.results.runs import DOES_NOT_WORK
from framegauge.testbeds.base import Conditions, Host, Json
from framegauge.workloads.few_over_time import over_time
from framegauge.workloads.work import Known, Outcome, Work

__all__ = ["Judged", "judged"]

MOST_BYTES = 1 << 30  # of a table
# Of large networks, a record keeps the ports that tell something, and no table for each pair of hosts.
MOST_PORTS = 1000
MOST_HOSTS = 1000
MOST_TABLES = 64
LONGEST_QUEUES = 100

Judged = tuple[Run, Json, dict[str, bytes]]


def judged(
    run: Run, conditions: Conditions, workload: Known, hosts: list[Host], work: Work, found: Simulated
) -> Judged:
    """The run with its metrics and the reasons to exclude it, its record, and its tables as files."""
    outcome = _outcome(conditions, found)
    record = _record(conditions, work, found.result)
    rounds = completions(outcome)
    files = {"completions": rounds, "flows": flows(work, outcome, rounds, found.result["network"])}
    bulk = {"drops": found.tables["drops"], **found.captures, **{name: written(rows) for name, rows in files.items()}}
    if len(record["measure"]["fabric"]["ports"]) <= MOST_PORTS and work.sample_seconds:
        bulk["queues"] = found.tables["queues"]
    broken = [f"{DOES_NOT_WORK}{line}" for line in stuck(work, outcome, record, _table(found, "drops"))]
    try:
        workload_record, tables = workload.simulated(hosts, outcome)
    except ProgramFailure as error:
        return replace(run, excluded=broken or [f"error: {one_line(error)}"]), _small(record), bulk
    record["workload"] = workload_record
    record["counters_after"] = _timeouts(work, found.result)
    run = _checked(run, conditions, (workload, work), record, tables)
    if broken:
        run = replace(run, excluded=[*run.excluded, *broken])
    if (course := over_time(record["workload"], tables)) is not None:
        bulk["few"] = written(course)
    if len(tables) > MOST_TABLES:
        record["workload"] = {**workload_record, "runs": []}
    else:
        bulk |= {name: written(rows) for name, rows in tables.items()}
    return run, _small(record), bulk


def _outcome(conditions: Conditions, answer: Simulated) -> Outcome:
    transfers, samples = _table(answer, "transfers"), _table(answer, "samples")
    headers = HEADERS_BYTES[conditions.family] + (TIMESTAMPS_BYTES if has_timestamps(conditions) else 0)
    return Outcome(
        transfers, samples, answer.result["flows"], answer.result["end_seconds"],
        str(conditions.congestion_control), _inner(conditions, answer.result), headers, answer.result["requests"],
    )  # fmt: skip


def _table(answer: Simulated, name: str) -> pa.Table:
    try:
        there = table(answer.tables[name], MOST_BYTES)
    except Unfit as error:
        raise BadAnswer(f"the simulation's table: {error}") from None
    if lacking := simulator.COLUMNS[name] - set(there.column_names):
        expected = f"found no column {', '.join(sorted(lacking))}, expected it"
        raise BadAnswer(f"the simulation's table {name}: {expected}; {simulator.other_build()}")
    return there


def _inner(conditions: Conditions, result: Mapping[str, Any]) -> dict[str, int]:
    """The MTU of each host, inside of the overlay if there is one."""
    inner = {ceiling["mtu"]: ceiling["inner_mtu"] for ceiling in result["ceilings"]}
    return {name: inner[mtu] for name, mtu in conditions.mtu.items()}


def _record(conditions: Conditions, work: Work, result: Mapping[str, Any]) -> Json:
    ceilings = {ceiling["mtu"]: ceiling for ceiling in result["ceilings"]}
    mss = {name: mtu - HEADERS_BYTES[conditions.family] for name, mtu in _inner(conditions, result).items()}
    more = ("captured_left_out",) if result.get("captured_left_out") else ()
    hosts = dict.fromkeys(node_of(end) for flow in work.flows for end in (flow.client, flow.server))
    return {
        "conditions": conditions.as_json(),
        "rack": {
            "ceilings": {name: ceilings[mtu] for name, mtu in conditions.mtu.items()},
            "network": result["network"],
        },
        "before": {name: {"mtu": mtu} for name, mtu in conditions.mtu.items()},
        "wire": {name: {"syns": [{"mss_bytes": mss[name]}]} for name in hosts},
        "measure": {
            "elapsed_seconds": result["end_seconds"],
            # Waiting times are not recorded.
            "fabric": {"ports": result["ports"], "waits": [], "drops_left_out": result["drops_left_out"]},
        },
        **({"cpus": modelled} if (modelled := result.get("cpus", ())) and len(modelled) <= MOST_HOSTS else {}),
        "changes": _made(conditions, result["end_seconds"]),
        "simulation": {name: result[name] for name in ("segments", "under_way", "end_seconds", *more)} | exits(result),
    }


def _made(conditions: Conditions, end_seconds: float) -> list[Json]:
    """The changes that were made: all whose time came before the run was over."""
    return [
        {**change, "made_seconds": change["at_seconds"], "changed": [place_of(change["set"])], "error": None}
        for change in conditions.changes
        if change["at_seconds"] < end_seconds
    ]


def _timeouts(work: Work, result: Mapping[str, Any]) -> Json:
    """The retransmission timeouts by host, as the kernel's counter has them: those of a flow are its bulk sender's."""
    timeouts: dict[str, int] = {}
    for flow, counts in zip(work.flows, result["flows"], strict=True):
        sender = node_of(getattr(flow, bulk_side(flow)))
        timeouts[sender] = timeouts.get(sender, 0) + counts["timeouts"]
    return {name: {"nstat": {"TcpExtTCPTimeouts": count}} for name, count in timeouts.items()}


def _checked(
    run: Run, conditions: Conditions, does: tuple[Known, Work], record: Json, tables: Mapping[str, pa.Table]
) -> Run:
    workload, work = does
    workload_record = record["workload"]
    workload_record |= few.sharing(conditions, record)
    workload_record |= workload.evidence(workload_record, tables)
    metrics = workload.metrics(workload_record, tables)
    # A run with changes has no steady part.
    part = None if conditions.changes else steady.of_streams(workload_record, tables)
    metrics, short = steady.bulk(metrics, part, conditions.rtt_seconds)
    metrics |= cpus.metrics(record)
    excluded = [f"proof: {line}" for line in changes.change_failures(conditions, record)]
    excluded += [f"conservation: {line}" for line in conservation.disagreements(conditions, record)]
    excluded += [
        f"load: {line}"
        for line in load_failures(workload_record.get("offered_bits_per_second"), metrics.get("goodput"))
    ]
    lowest = min(ceiling["goodput_bits_per_second"] for ceiling in record["rack"]["ceilings"].values())
    pairs = {(node_of(flow.client), node_of(flow.server)) for flow in work.flows}
    has_ceiling = not conditions.changes and not network.narrowed(conditions, pairs)
    lines = workload_record.get("links", 1) * members(conditions)
    readings: Json = {
        **bond_readings(conditions, work, record),
        **waits.readings(record),
        **few.readings(record),
        **cpus.readings(record),
        "ceiling_bits_per_second": lowest * lines if has_ceiling else None,
        "steady": None if part is None else part.as_json(),
        "simulated_segments": record["simulation"]["segments"],
    }
    if lacking := workload_record.get("not_measured", {}) | short:
        readings["not_measured"] = lacking
    return replace(run, metrics=metrics, excluded=excluded, readings=readings)


def _small(record: Json) -> Json:
    """The record without what a large network would make of it: all ports and hosts, the same in every run."""
    ports = record["measure"]["fabric"]["ports"]
    if len(ports) > MOST_PORTS:
        longest = sorted(ports, key=lambda port: -port["peak_queue_bytes"])[:LONGEST_QUEUES]
        longest_names = {port["port"] for port in longest}
        counts = ("dropped_frames", "marked_frames", "pauses_sent")
        busy_ports = [port for port in ports if port["port"] in longest_names or any(port[name] for name in counts)]
        record["measure"]["fabric"]["ports"] = busy_ports[:MOST_PORTS]
        record["rack"]["network"] = None
    if len(record["before"]) > MOST_HOSTS:
        for key in ("before", "wire", "counters_after"):
            record.pop(key, None)
        record["rack"]["ceilings"] = {str(ceiling["mtu"]): ceiling for ceiling in record["rack"]["ceilings"].values()}
    return record
