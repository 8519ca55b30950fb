"""Lossless switches in simulated runs: records of pauses, and a buffer that is too small."""

from __future__ import annotations

from pathlib import Path

import pytest

from framegauge.cli.main import main
from framegauge.results import journal, spools

# Two hosts send to a third at once, more than the buffer holds.
FILE = """\
testbed: {kind: simulator, topology: rack, hosts: 3, shared_buffer: {bytes: BYTES, lossless: on}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 2 MB, pattern: many-to-one, repeat: 0 s}}]
blocks: 2
"""


@pytest.mark.agent
def test_nothing_is_dropped_and_pauses_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILE.replace("BYTES", "300 kB"))
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")]) == 0
    runs = journal.read(tmp_path / "out").runs
    assert len(runs) == 4
    for run in runs:
        assert not run.excluded
        ports = {port["port"]: port for port in spools.record(tmp_path / "out", run)["measure"]["fabric"]["ports"]}
        assert sum(port["dropped_frames"] for port in ports.values()) == 0
        assert ports["switch>h1"]["pauses_sent"] > 0
        assert ports["h1>switch"]["pauses_sent"] == ports["switch>h3"]["pauses_sent"] == 0
        assert ports["h1>switch"]["paused_seconds"] > 0 == ports["switch>h3"]["paused_seconds"]


@pytest.mark.agent
def test_a_buffer_without_room_for_headroom_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(FILE.replace("BYTES", "20 kB"))
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")]) != 0
    said = capsys.readouterr().err
    assert "shared buffer: found 20000 bytes, expected " in said
    assert "or more: headroom and a full frame of the 3 links to switch" in said
