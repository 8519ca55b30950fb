"""A NIC that a change of its MTU restarts, with real kernels: nothing passes while its link is down, and all goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow.ipc
from helpers.real import proven, record, study

from framegauge.agents.pipe import Agent

AT, LOSS, UNDER_WAY = 0.5, 1.0, 0.3  # seconds; the last, until what was sent before has been acknowledged


def test_nothing_passes_while_a_link_is_down_and_then_it_goes_on(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(
        testbed={"kind": "rack", "link": {"rate": "100 Mb/s"}, "nic": {"link_loss": f"{LOSS} s"}},
        changes=[{"at": f"{AT} s", "hosts": ["h1"], "mtu": 9000}], stream={"duration": "3 s"}, blocks=1, retries=0,
    )  # fmt: skip
    for run in proven(rack_agent, asked, tmp_path):
        told = record(tmp_path, run)
        links = [each for each in told["changes"] if "up" in each["set"]]
        # The arm that begins at 9000 has nothing to change, and its link stays up.
        assert [each["set"]["up"] for each in links] == ([] if run.level == 9000 else [False, False, True, True])
        if run.level == 9000:
            continue
        dropped = {port["port"]: port["dropped_frames"] for port in told["measure"]["fabric"]["ports"]}
        assert dropped["h1>switch"] > 0
        begun = told["begun_seconds"] - told["workload"]["runs"][0]["result"]["started_seconds"]
        down, up = (begun + links[place]["made_seconds"] for place in (1, 2))
        with pyarrow.ipc.open_file(tmp_path / f"runs/{run.number}/samples.arrow") as file:
            rows = file.read_all().to_pylist()
        quiet = {row["bytes_acked"] for row in rows if down + UNDER_WAY < row["time_seconds"] < up}
        assert len(quiet) == 1
        assert max(row["bytes_acked"] for row in rows) > quiet.pop()
