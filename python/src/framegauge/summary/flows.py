"""The flows of runs in which three or more went to one receiver, and so shared the port to it.

A flow is one of a `stream.run` of the record. Figures that older folders or the kernel's own link lack are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.results.spools import dig
from framegauge.summary import drop_runs, input_ports as came_by
from framegauge.summary.drop_runs import DropRuns

__all__ = ["LEAST_FLOWS", "Contention", "Flow", "read"]

LEAST_FLOWS = 3
_COLUMNS = ("flow", "start_seconds", "counted_seconds", "counted_bytes")


@dataclass(frozen=True)
class Flow:
    """One flow of one run. `number` counts the flows of one sender to one receiver from 1.

    `timeouts` are those of its host if it has no other flow; the kernel counts timeouts per host only.
    """

    sender: str
    number: int
    goodput_bits_per_second: float
    retransmits: int | None
    timeouts: int | None
    input_port: str | None  # of the receiver's switch


@dataclass(frozen=True)
class Contention:
    """The flows of one run to one receiver, and the drops of the run; `host_timeouts` by sending host."""

    run: Run
    receiver: str
    ports: Sequence[str]
    flows: Sequence[Flow]
    host_timeouts: Mapping[str, int]
    drops: Sequence[DropRuns]  # at every port, not only at that to the receiver


def read(saved: Saved) -> list[Contention]:
    """The flows of every run that counts, by receiver, in the order of the runs."""
    return [contention for run in saved.runs if not run.excluded for contention in _of_run(saved.folder, run)]


@dataclass(frozen=True)
class _Seen:
    """One flow as recorded in its table."""

    sender: str
    receiver: str
    goodput_bits_per_second: float
    retransmits: int | None


def _of_run(folder: Path, run: Run) -> Iterator[Contention]:
    record = spools.record(folder, run)
    path = folder / "runs" / str(run.number)
    recorded = [flow for stream in dig(record, "workload", "runs") or () for flow in _flows(path, run, stream)]
    receivers = [name for name, count in Counter(flow.receiver for flow in recorded).items() if count >= LEAST_FLOWS]
    if not receivers:
        return
    drops = drop_runs.read(path / "drops.parquet", record, run.files)
    ends = Counter(end for flow in recorded for end in (flow.sender, flow.receiver))
    for receiver in receivers:
        receiver_flows = [flow for flow in recorded if flow.receiver == receiver]
        hosts = list(dict.fromkeys(flow.sender for flow in receiver_flows))
        ports = came_by.ports_to(record, receiver)
        input_ports = came_by.inputs(
            record, receiver, hosts, [drop_run.input_port for drop_run in drops if drop_run.port in ports]
        )
        timeouts = {host: count for host in hosts if (count := _timeouts(record, host)) is not None}
        numbers: Counter[str] = Counter()
        flows = []
        for flow in receiver_flows:
            numbers[flow.sender] += 1
            flow_timeouts = timeouts.get(flow.sender) if ends[flow.sender] == 1 else None
            flows.append(
                Flow(
                    flow.sender, numbers[flow.sender], flow.goodput_bits_per_second, flow.retransmits, flow_timeouts,
                    input_ports[flow.sender],
                )
            )  # fmt: skip
        yield Contention(run, receiver, ports, flows, timeouts, drops)


def _flows(path: Path, run: Run, stream: Mapping[str, Any]) -> Iterator[_Seen]:
    """The flows of one `stream.run`, each over all of its rounds."""
    if any(stream.get(name) is None for name in ("transfers", "client", "server")):
        return
    table = spools.columns(path / f"{stream['transfers']}.arrow", _COLUMNS, ("retransmits",), run.files)
    if table is None:
        return
    ends = (stream["client"], stream["server"])
    sender, receiver = ends[::-1] if stream.get("reverse") else ends
    resent = table.get("retransmits", [None] * len(table["flow"]))
    rows = list(zip(*(table[name] for name in _COLUMNS), resent, strict=True))
    for number in sorted({row[0] for row in rows}):
        flow_rows = [row for row in rows if row[0] == number]
        seconds = sum(end - start for _, start, end, _, _ in flow_rows)
        counts = [count for *_, count in flow_rows if count is not None]
        if seconds > 0:
            bits = 8.0 * sum(amount for *_, amount, _ in flow_rows)
            yield _Seen(sender, receiver, bits / seconds, sum(counts) if counts else None)


def _timeouts(record: Mapping[str, Any], host: str) -> int | None:
    """The number of retransmission timeouts of a host during the run; None if they were not counted."""
    before, after = (
        dig(record, f"counters_{when}", host, "nstat", "TcpExtTCPTimeouts") for when in ("before", "after")
    )
    return None if after is None else int(after - (before or 0))
