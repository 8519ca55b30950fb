"""Overlays in simulations: what they take from the MTU and the wire, as the agent's arithmetic of encapsulations says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from framegauge.cli.main import main
from framegauge.results import spools
from framegauge.results.journal import Run, read

pytestmark = pytest.mark.agent
OUTSIDE = {4: 50, 6: 70}  # Ethernet 14, IP 20 or 40, UDP 8, and a header of 8 without options
HEADERS = {4: 52, 6: 72}  # IP, TCP and timestamps


def simulated(folder: Path, family: int, *words: str, **more: Any) -> list[Run]:
    study: dict[str, Any] = {
        "testbed": {"kind": "simulator", "family": family, "link": {"rate": "100 Mb/s"}},
        "factors": {"mtu": [1500, 9000], "overlay": {"levels": ["none", "vxlan", "geneve"], "baseline": "none"}},
        "treatment": "overlay",
        "workloads": [{"stream": {"duration": "1 s"}}],
        "blocks": 2,
        "stop": "blocks",
        **more,
    }
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    assert main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), "--json", *words]) == 0
    return list(read(folder / "out").runs)


@pytest.mark.parametrize("family", [4, 6])
def test_goodput_is_that_of_the_headers(tmp_path: Path, family: int) -> None:
    runs = simulated(tmp_path, family)
    assert {run.level for run in runs} == {"none", "vxlan", "geneve"}
    for run in runs:
        mtu = spools.record(tmp_path / "out", run)["before"]["h1"]["mtu"]
        outside = 0 if run.level == "none" else OUTSIDE[family]
        ceiling = 1e8 * (mtu - outside - HEADERS[family]) / (mtu + 38)
        assert run.excluded == []
        assert run.readings["ceiling_bits_per_second"] == pytest.approx(ceiling)
        assert run.metrics["goodput"] == pytest.approx(0.999 * ceiling, rel=2e-3)
        (syn,) = spools.record(tmp_path / "out", run)["wire"]["h1"]["syns"]
        assert syn["mss_bytes"] == mtu - outside - HEADERS[family] + 12


@pytest.mark.needs("tshark")
def test_captures_have_the_packets_of_the_overlay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = simulated(tmp_path, 4, "--pcap", "h1", factors={"mtu": 1500, "overlay": ["vxlan", "geneve"]})
    capsys.readouterr()
    for run in (run for run in runs if run.block == 0):
        path = tmp_path / "out" / "runs" / str(run.number) / "h1.pcapng"
        program, kind = shutil.which("tshark") or "tshark", str(run.level)
        words = [program, "-r", str(path), "-Y", f"{kind} && tcp.len == 1398 && ip.src == 10.128.0.1"]
        words += ["-T", "fields", "-e", "frame.len"]
        lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        assert len(lines) > 100
        assert set(lines) == {"1514"}
        assert main(["diagnose", str(path), "--json"]) in (0, 1)
        assert json.loads(capsys.readouterr().out)


def test_what_fits_into_no_overlay_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link whose ports take 1500 carries what is inside of 1500: that of the underlay counts."""
    bed = {"kind": "simulator", "link": {"rate": "100 Mb/s", "port_mtu": 1500}}
    runs = simulated(tmp_path, 4, testbed=bed, factors={"mtu": 1500, "overlay": ["none", "vxlan"]})
    assert [run.excluded for run in runs] == [[]] * 4
    capsys.readouterr()
