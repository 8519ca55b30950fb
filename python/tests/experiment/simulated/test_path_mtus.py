"""A router between hosts of 9000 that takes 1500: what it tells, what hosts make of it, and what probes find without it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import yaml

from framegauge.cli.main import main
from framegauge.results import spools
from framegauge.results.journal import Run, read

pytestmark = pytest.mark.agent

ROUTED = {
    "switches": ["near", "far"],
    "routers": [{"name": "r1", "mtu": 1500}],
    "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
}
STREAM = {"stream": {"duration": "0.2 s"}}
FLIGHT = 6  # segments in two super-segments of at most 32 KiB each, which is what a shaped host has in its queue
# 100 Mb/s, of which hosts send 0.999: payload over wire bytes of a full frame of 1500 with timestamps.
FULL = 0.999 * 1e8 * 1448 / 1538


def simulated(folder: Path, *words: str, icmp: str = "on", load: Any = None, **more: Any) -> list[Run]:
    custom = {**ROUTED, "routers": [{"name": "r1", "mtu": 1500, "icmp": icmp}]}
    bed = {"kind": "rack", "topology": {"custom": custom}, "link": {"rate": "100 Mb/s", "buffer": "256 KiB"}}
    study: dict[str, Any] = {"testbed": bed, "factors": {"mtu": [1500, 9000], "rtt": "0.8 ms"}, "blocks": 2}
    study |= {"stop": "blocks", "workloads": [load or STREAM], **more}
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), "--json", *words])
    return list(read(folder / "out").runs)


def test_a_router_that_tells_costs_one_flight(tmp_path: Path) -> None:
    """A file of the rack, as it is: both levels come to the goodput of 1500."""
    runs = simulated(tmp_path)
    assert [run.excluded for run in runs] == [[]] * 4
    assert [run.metrics["goodput"] for run in runs] == pytest.approx([FULL] * 4, rel=2e-3)
    # No ceiling is that of hosts of 9000 through 1500, so that no header overhead is claimed.
    assert {run.level for run in runs if run.readings["ceiling_bits_per_second"] is None} == {9000}
    for run in runs:
        ports = {each["port"]: each for each in spools.record(tmp_path / "out", run)["measure"]["fabric"]["ports"]}
        assert ports["r1.2>far"]["giant_frames"] == (0 if run.level == 1500 else FLIGHT)


@pytest.mark.parametrize("load", [STREAM, {"stream": {"size": "100 kB", "repeat": "0 s"}}])
def test_a_black_hole_does_not_work(tmp_path: Path, capsys: pytest.CaptureFixture[str], load: Any) -> None:
    runs = simulated(tmp_path, icmp="filtered", load=load)
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["verdict"] == "does not work"
    for run in runs:
        said = "".join(run.excluded)
        assert ("r1.2>far (MTU 1500) dropped" in said) == (run.level == 9000), said


def test_probes_come_through_a_black_hole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Factor and sysctl say the same. Where the search ends is less than 8 bytes below what fits."""
    load = {"stream": {"size": "20 MB"}}
    factors = {"mtu": 9000, "rtt": "0.8 ms", "mtu_probing": [0, 1]}
    runs = simulated(tmp_path, icmp="filtered", load=load, factors=factors, treatment="mtu_probing")
    capsys.readouterr()
    for run in runs:
        assert (run.excluded == []) == (run.level == 1), run.excluded
    took = [run.metrics["completion_time"] for run in runs if run.level == 1]
    # What is smaller than 1500 passes and is acknowledged, so that fast retransmit comes first; then timeouts 0.2, 0.4, 0.8
    # and 1.6 s after each other, which is 3 s. The transfer itself takes 1.7 s.
    assert took == pytest.approx([4.8, 4.8], abs=0.1)
    (folder := tmp_path / "sysctl").mkdir()
    more = {"factors": {"mtu": 9000, "rtt": "0.8 ms"}, "sysctls": {"net.ipv4.tcp_mtu_probing": "1"}}
    for run in simulated(folder, icmp="filtered", load=load, **more):
        assert run.metrics["completion_time"] == pytest.approx(took[0], abs=0.01)


def test_many_transfers_after_one_that_lost_a_flight_work(tmp_path: Path) -> None:
    """The last of them is cut off by the end of the run, and some frames were too large: that is no reason."""
    runs = simulated(tmp_path, load={"stream": {"size": "300 kB", "repeat": "0.1 s"}})
    assert [run.excluded for run in runs] == [[]] * 4


@pytest.mark.needs("tshark")
def test_a_capture_has_the_errors_of_the_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for family, told in ((4, "icmp.mtu"), (6, "icmpv6.mtu")):
        (folder := tmp_path / str(family)).mkdir()
        bed = {"kind": "simulator", "topology": {"custom": ROUTED}, "link": {"rate": "100 Mb/s"}, "family": family}
        runs = simulated(folder, "--pcap", "h1", testbed=bed)
        number = next(run.number for run in runs if run.level == 9000 and run.block == 0)
        path = folder / "out" / "runs" / str(number) / "h1.pcapng"
        program = shutil.which("tshark") or "tshark"
        words = [program, "-r", str(path), "-Y", told.partition(".")[0], "-T", "fields", "-e", told, "-e", "frame.len"]
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")
        frame_bytes = 14 + (576 if family == 4 else 1280)
        assert [line.split() for line in lines if line] == [["1500", str(frame_bytes)]] * FLIGHT
        assert main(["diagnose", str(path), "--json"]) in (0, 1)
        capsys.readouterr()


def test_drops_of_a_router_have_a_reason(tmp_path: Path) -> None:
    runs = simulated(tmp_path, icmp="filtered")
    run = next(run for run in runs if run.level == 9000)
    drops = parquet.read_table(tmp_path / "out" / "runs" / str(run.number) / "drops.parquet").to_pylist()
    assert {(each["port"], each["reason"]) for each in drops} == {("r1.2>far", "giant"), ("r1.1>near", "filtered")}
