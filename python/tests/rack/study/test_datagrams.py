"""datagrams with real kernels: every one is accounted for where the wire loses some, alone and beside bulk, and each takes
the packets that the MTU says.

What is asserted counts or proves, so that it is true of runs that a busy machine held up, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers.real import proven, record, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.workloads.base import Json

PACKETS = {(1500, 172): 1, (9000, 172): 1, (1500, 8192): 6, (9000, 8192): 1}
LOAD = {"rate": 100, "flows": 4, "duration": "0.5 s"}


def asked(folder: Path, agent: Agent, kind: str = "rack", family: int = 4, **datagrams: Any) -> list[tuple[Run, Json]]:
    """Two hosts send to a third; of the frames of the first one in ten is lost on its way to the switch."""
    bed: dict[str, Any] = {"kind": kind, "topology": "rack", "hosts": 3, "family": family, "link": {"rate": "200 Mb/s"}}
    if kind == "rack":
        bed["links"] = [{"from": "h1", "to": "switch", "loss": "10 %"}]
    given = study(
        kind, testbed=bed, blocks=1, retries=0, margins={"delivered": "1 %"},
        factors={"congestion_control": "cubic"}, workloads=[{"datagrams": {**LOAD, **datagrams}}],
    )  # fmt: skip
    return [(each, record(folder, each)) for each in proven(agent, given, folder)]


@pytest.mark.parametrize(
    ("family", "size", "bulk"), [(4, ["172 B", "8 KiB"], None), (6, "8 KiB", None), (4, "172 B", {"flows": 2})]
)
def test_what_was_sent_arrived_or_was_dropped_by_a_port(
    rack_agent: Agent, tmp_path: Path, family: int, size: Any, bulk: Any
) -> None:
    runs = asked(tmp_path, rack_agent, family=family, size=size, bulk=bulk)
    assert {each.level for each, _ in runs} == {1500, 9000}
    for each, told in runs:
        counts = each.readings["datagrams"]
        # At 100 a second of four flows, for half a second, and beside bulk half a second more.
        assert counts["sent"] == (200 if bulk is None else 400)
        assert counts["sent"] == counts["received"] + counts["lost_in_network"] + counts["dropped_by_receiver"]
        assert counts["packets_per_datagram"] == PACKETS[(each.level, each.conditions["size_bytes"])]
        dropped = sum(port["dropped_frames"] + port["lost_frames"] for port in told["measure"]["fabric"]["ports"])
        assert 0 < counts["lost_in_network"] <= dropped
        assert each.metrics["delivered"] < 1
        # Both ends are on this machine, so that their clock is one, and no delay is below that of the wire.
        assert told["workload"]["asked"]["clock"] == told["workload"]["came"]["clock"]
        assert min(delays(tmp_path, each, told)) >= 0.0001
        assert ("goodput" in each.metrics) == (bulk is not None)


def delays(folder: Path, each: Run, told: Json) -> list[float]:
    """The one-way delays of what arrived, by the tables of both ends."""
    sent, came = (table(folder, each, name) for name in ("sent", "received"))
    at = {(row["flow"], row["sequence"]): row["sent_seconds"] for row in sent}
    begun = told["workload"]["asked"]["started_seconds"]
    return [row["received_seconds"] - begun - at[(row["flow"], row["sequence"])] for row in came]


def table(folder: Path, each: Run, name: str) -> list[Json]:
    with pyarrow.ipc.open_file(folder / f"runs/{each.number}/datagrams-{name}.arrow") as file:
        rows: list[Json] = file.read_all().to_pylist()
        return rows


def test_on_the_kernels_own_links_all_arrive(rack_agent: Agent, tmp_path: Path) -> None:
    for each, _ in asked(tmp_path, rack_agent, "veth", size="8 KiB", spurt="50 ms", pause="50 ms"):
        counts = each.readings["datagrams"]
        # Half of the time is pauses.
        assert 0 < counts["sent"] < 200
        assert counts["received"] + counts["dropped_by_receiver"] == counts["sent"]
        assert counts["packets_per_datagram"] == PACKETS[(each.level, each.conditions["size_bytes"])]
