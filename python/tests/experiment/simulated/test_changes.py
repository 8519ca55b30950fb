"""Changes during simulated runs: the words of the rack, what they do, and what of them is in the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from framegauge.cli.main import main
from framegauge.errors import StudyError
from framegauge.results import spools
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file

ROUTED = {
    "switches": ["near", "far"],
    "routers": [{"name": "r1", "mtu": 9000}],
    "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
}


def written(changes: list[dict[str, Any]], **more: Any) -> str:
    study: dict[str, Any] = {
        "testbed": {"kind": "simulator", "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}},
        "factors": {"mtu": [1500, 9000], "rtt": "0.6 ms"},
        "workloads": [{"stream": {"duration": "2 s", "sample": "10 ms"}}],
        "changes": changes,
        "blocks": 2,
        "stop": "blocks",
    }
    return yaml.safe_dump(study | more, sort_keys=False)


def simulated(folder: Path, changes: list[dict[str, Any]], **more: Any) -> list[Run]:
    (folder / "s.yaml").write_text(written(changes, **more))
    main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), "--json"])
    return list(read(folder / "out").runs)


@pytest.mark.agent
def test_goodput_is_that_of_the_rates_in_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second at 100 Mb/s and one at 50; another run is over before its change."""
    slower = {"at": "1 s", "from": "left", "to": "right", "rate": "50 Mb/s"}
    for run in simulated(tmp_path, [slower]):
        mtu = int(run.level)
        full = 1e8 * (mtu - 52) / (mtu + 38)
        assert run.excluded == []
        assert run.metrics["goodput"] == pytest.approx((0.999 + 0.5) / 2 * full, rel=0.01)
        assert run.readings["steady"] is None
        assert run.readings["ceiling_bits_per_second"] is None
        assert run.conditions["changes"] == "after 1 s left>right: rate 50 Mb/s"
        (made,) = spools.record(tmp_path / "out", run)["changes"]
        assert (made["made_seconds"], made["changed"], made["error"]) == (1.0, ["left>right"], None)
    (folder := tmp_path / "short").mkdir()
    for run in simulated(folder, [slower], workloads=[{"stream": {"size": "1 MB"}}]):
        assert run.excluded == [
            "proof: change of left>right (rate 50 Mb/s): requested at 1 s, found that the run was over before"
        ]
    capsys.readouterr()


@pytest.mark.agent
def test_a_switch_fails_and_a_router_takes_less(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    down = [{"at": at, "from": a, "to": b, "up": up} for at, up in (("0.5 s", False), ("0.6 s", True)) for a, b in WAYS]
    for run in simulated(tmp_path, down):
        ports = spools.record(tmp_path / "out", run)["measure"]["fabric"]["ports"]
        assert run.excluded == []
        assert sum(port["lost_frames"] + port["dropped_frames"] for port in ports) > 0
    (folder := tmp_path / "routed").mkdir()
    bed = {"kind": "simulator", "topology": {"custom": ROUTED}, "link": {"rate": "100 Mb/s"}}
    for run in simulated(folder, [{"at": "1 s", "hosts": ["r1"], "mtu": 1500}], testbed=bed):
        mtu = int(run.level)
        rates = [1e8 * (size - 52) / (size + 38) for size in (mtu, 1500)]
        assert run.excluded == []
        assert run.metrics["goodput"] == pytest.approx(0.999 * sum(rates) / 2, rel=0.01)
    capsys.readouterr()


WAYS = (("right", "*"), ("*", "right"))


@pytest.mark.agent
def test_hosts_are_raised_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of the rack: holding routes is needless where nothing is sent between two changes."""
    bed = {"kind": "rack", "link": {"rate": "100 Mb/s", "port_mtu": 1500}}
    raised = [{"at": "1 s", "hosts": "all", "mtu": 9000, "hold": True}]
    load = [{"stream": {"size": "500 kB", "repeat": "2 s"}}]
    for run in simulated(tmp_path, raised, testbed=bed, workloads=load, factors={"mtu": [1500, 1400], "rtt": "0.6 ms"}):
        assert run.excluded == []
        sizes = [
            port["sent_bytes"] / port["sent_frames"] for port in _ports(tmp_path, run) if port["port"] == "h1>switch"
        ]
        assert sizes[0] > 1600
        assert sum(port["giant_frames"] for port in _ports(tmp_path, run)) == 0
    capsys.readouterr()


def _ports(folder: Path, run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spools.record(folder / "out", run)["measure"]["fabric"]["ports"]
    return found


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            {"at": "1 s", "from": "left", "to": "right", "loss": "50 %"},
            "rack",
            "loss: found 0.5, expected no such key unless",
        ),
        (
            {"at": "1 s", "from": "left", "to": "right", "loss": "150 %"},
            "simulator",
            'loss: found "150 %", expected at most 100 %',
        ),
        ({"at": "1 s", "hosts": ["r1"], "mtu": 1500}, "simulator", 'hosts: found "r1", expected a host'),
        (
            {"at": "2 s", "from": "left", "to": "right", "up": False},
            "simulator",
            "expected less than 2.0 s, the duration of",
        ),
    ],
)
def test_what_cannot_be_changed_is_one_line(change: dict[str, Any], kind: str, said: str) -> None:
    bed = {"kind": kind, "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}}
    with pytest.raises(StudyError) as refused:
        study_file.parse(written([change], testbed=bed), "s.yaml")
    assert len(refused.value.problems) == 1
    assert said in str(refused.value)
