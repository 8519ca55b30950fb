"""Bonded NICs in simulations: what streams get, and what a run says of the members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from framegauge.cli.main import main
from framegauge.results import spools
from framegauge.results.journal import Run, read

pytestmark = pytest.mark.agent
RATE = 1e8
SHAPED = 0.999  # hosts send a little slower than their links


def simulated(folder: Path, bond: str, workload: dict[str, Any], nics: int = 2, kind: str = "simulator") -> list[Run]:
    study = {
        "testbed": {
            "kind": kind, "topology": {"pair": {"nics": nics, "bond": bond}}, "link": {"rate": "100 Mb/s"},
        },
        "factors": {"mtu": [1500], "offloads": True},
        "control": True,
        "workloads": [{"stream": {"duration": "2 s", **workload}}],
        "blocks": 2,
        "stop": "blocks",
    }  # fmt: skip
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    words = ["--seeds", "3", "--out", str(folder / "out"), "--json"]
    assert main(["simulate", str(folder / "s.yaml"), *words]) == 0
    return list(read(folder / "out").runs)


def one_member(mtu: int) -> float:
    return SHAPED * RATE * (mtu - 52) / (mtu + 38)


def test_a_stream_gets_one_member_and_the_ceiling_is_that_of_all(tmp_path: Path) -> None:
    for run in simulated(tmp_path, "layer3+4", {"flows": 1}):
        assert run.excluded == []
        assert run.metrics["goodput"] == pytest.approx(one_member(run.level), rel=2e-3)
        assert run.readings["ceiling_bits_per_second"] == pytest.approx(2 * RATE * 1448 / 1538, rel=1e-3)
        bonds = run.readings["bonds"]
        assert sorted(bonds["h1"]["flows"]) == [0, 1]
        assert sorted(bonds["h1"]["sent_bytes"])[0] == 0
        assert bonds["h2"]["flows"] == [0, 0]


def test_a_run_says_how_flows_lay_on_the_members_and_what_these_carried(tmp_path: Path) -> None:
    seen = set()
    for run in simulated(tmp_path, "layer3+4", {"flows": 4}):
        assert run.excluded == []
        bonds = run.readings["bonds"]
        record = spools.record(tmp_path / "out", run)
        sent = {port["port"]: port["sent_bytes"] for port in record["measure"]["fabric"]["ports"]}
        for host in ("h1", "h2"):
            assert bonds[host]["sent_bytes"] == [sent[f"{host}.{member}>switch"] for member in (1, 2)]
            assert bonds[host]["received_bytes"] == [sent[f"switch>{host}.{member}"] for member in (1, 2)]
        assert sum(bonds["h1"]["flows"]) == 4
        exits = [client for client, _ in record["simulation"]["exits"]]
        assert bonds["h1"]["flows"] == [exits.count("h1.1"), exits.count("h1.2")]
        # A member without a flow carried nothing; one with a flow at most what a link does.
        for count, amount in zip(bonds["h1"]["flows"], bonds["h1"]["sent_bytes"], strict=True):
            assert (amount > 1_000_000) == (count > 0)
        used = min(
            sum(count > 1_000_000 for count in bonds[host][key])
            for host, key in (("h1", "sent_bytes"), ("h2", "received_bytes"))
        )
        assert run.metrics["goodput"] <= used * one_member(run.level) * 1.002
        seen.add(tuple(bonds["h1"]["flows"]))
        flows = spools.table(tmp_path / "out" / "runs" / str(run.number) / "flows.parquet")
        assert flows is not None
        assert flows["hops"].to_pylist() == [2] * 4
    assert len(seen) > 1


# A file for the rack is simulated as it is.
def test_by_addresses_all_flows_of_two_hosts_lie_on_one_member(tmp_path: Path) -> None:
    for run in simulated(tmp_path, "layer2+3", {"flows": 8}, nics=4, kind="rack"):
        assert run.excluded == []
        assert sorted(run.readings["bonds"]["h1"]["flows"]) == [0, 0, 0, 8]
        assert run.metrics["goodput"] == pytest.approx(one_member(run.level), rel=5e-3)
