"""What simulations come to: by hand, and by the real one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.ipc

from framegauge.experiment.simulated import engines, plan
from framegauge.experiment.simulated.pool import nobody, simulated
from framegauge.results.journal import Run
from framegauge.study.sweep import Source, points
from framegauge.testbeds.base import Host
from framegauge.workloads.work import Outcome

TRANSFERS = (
    "flow", "round", "step", "start_seconds", "connected_seconds", "end_seconds", "bytes", "complete",
    "client_retransmits", "server_retransmits",
)  # fmt: skip
SAMPLES = (
    "time_seconds", "flow", "server_bytes", "client_bytes", "cwnd_segments", "in_flight_segments", "srtt_seconds",
)  # fmt: skip
WHOLE = {"flow", "round", "step", "bytes", "complete", "server_bytes", "client_bytes", "cwnd_segments"}
WHOLE |= {"client_retransmits", "server_retransmits"}
MTU = {"h1": 1500, "h2": 9000, "h3": 1500}


def hosts(count: int) -> list[Host]:
    """h1 to hN, none of which answers anything."""
    return [Host(f"h{number}", f"h{number}", nobody()) for number in range(1, count + 1)]


def table(columns: Sequence[str], rows: Sequence[Sequence[float]]) -> pa.Table:
    """Rows as the agent writes them."""
    return pa.table(
        {
            name: pa.array([row[at] for row in rows], pa.uint64() if name in WHOLE else pa.float64())
            for at, name in enumerate(columns)
        }
    )


def outcome(
    rows: Sequence[Sequence[float]], flows: int, end: float, samples: Sequence[Sequence[float]] = ()
) -> Outcome:
    """What a simulation made of some flows, each with 12 segments, two of them sent again.

    Rows may end with what the client and the server have sent again; none if they do not.
    """
    rows = [(*row, *(0,) * (len(TRANSFERS) - len(row))) for row in rows]
    counts = [{"connections": 1, "segments": 12, "retransmits": 2, "timeouts": 0}] * flows
    return Outcome(table(TRANSFERS, rows), table(SAMPLES, samples), counts, end, "cubic", MTU, 52)


class Done:
    """A run that was simulated: its line, its record, and its tables."""

    def __init__(self, found: tuple[Run, dict, dict[str, bytes]]) -> None:  # type: ignore[type-arg]
        self.run, self.record, files = found
        self.tables = {name: pa.ipc.open_file(data).read_all() for name, data in files.items()}

    def column(self, name: str, column: str) -> list[float]:
        """A column of one of the tables."""
        return self.tables[name].column(column).to_pylist()


def run(text: str) -> list[Done]:
    """The runs of a study's first block, in the order of arms and cells."""
    planned = plan.blocks(points(Source(text, "s.yaml"), []))[0]
    with engines.opened("local") as engine:
        found = [Done(simulated(each, engine.simulate, lambda _: None)) for each in planned]
    return sorted(found, key=lambda done: (done.run.cell, done.run.arm != "baseline"))
