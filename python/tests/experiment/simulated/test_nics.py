"""Several NICs of a host in simulations: each carries what one does, and all share the host's cores."""

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


def simulated(folder: Path, workload: dict[str, Any], gro: bool = True, **testbed: Any) -> list[Run]:
    study = {
        "testbed": {
            "kind": "simulator", "topology": {"pair": {"nics": 8}}, "link": {"rate": "100 Mb/s"}, **testbed,
        },
        "factors": {"mtu": [1500, 9000], "offloads": True, "lro": False, "gro": gro},
        "workloads": [{"stream": {"duration": "1 s", **workload}}],
        "blocks": 1,
        "stop": "blocks",
    }  # fmt: skip
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    assert main(["simulate", str(folder / "s.yaml"), "--seeds", "1", "--out", str(folder / "out"), "--json"]) == 0
    return list(read(folder / "out").runs)


def test_so_many_nics_carry_so_much_more(tmp_path: Path) -> None:
    runs = simulated(tmp_path, {"nics": [1, 3, 8]})
    assert {run.conditions["nics"] for run in runs} == {1, 3, 8}
    for run in runs:
        mtu, nics = run.level, run.conditions["nics"]
        assert run.excluded == []
        assert run.metrics["goodput"] == pytest.approx(nics * SHAPED * RATE * (mtu - 52) / (mtu + 38), rel=2e-3)
        record = spools.record(tmp_path / "out", run)
        sent = {each["port"]: each["sent_bytes"] for each in record["measure"]["fabric"]["ports"]}
        used = [port for port, count in sent.items() if port.startswith("h1") and count > 1_000_000]
        assert len(used) == nics
        flows = record["workload"]["runs"]
        assert [each["nic"] for each in flows] == list(range(1, nics + 1))


def test_nics_share_the_cores_of_their_host(tmp_path: Path) -> None:
    cost = {"packet": "100 us", "aggregate": "100 us"}
    nothing = {"packet": "0 s", "aggregate": "0 s"}
    cpu = {"cores": 1, "receive": cost, "send": nothing, "hosts": ["h2"]}
    for run in simulated(tmp_path, {"nics": [1, 8]}, gro=False, cpu=cpu):
        if run.level == 1500:  # a link brings 8,127 packets per second, of which a core takes 5,000
            assert run.metrics["goodput"] == pytest.approx(5000 * 8 * 1448, rel=0.02)
        (core,) = spools.record(tmp_path / "out", run)["cpus"]
        assert core["host"] == "h2"
        assert core["busy_seconds"][0] <= 1.0 + 2e-4 * 64
