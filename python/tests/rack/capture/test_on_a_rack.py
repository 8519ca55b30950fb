"""Captures in the hosts of a rack that is up for hand use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.support import PATIENCE_SECONDS

from framegauge.rack import state as kept

STUDY = """\
question: What passes its hosts?
testbed: {kind: rack, link: {rate: 200 Mb/s}}
factors: {mtu: {levels: [9000, 1500], baseline: 1500}}
workloads: [{stream: {size: 1 MB, repeat: 0.1 s}}]
control: false
blocks: 2
margins: {goodput: 1 %}
"""
MAIN = [sys.executable, "-m", "framegauge"]
CLIENT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7000), timeout=5)
except ConnectionRefusedError:
    pass
"""


def framegauge(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MAIN, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_SECONDS)


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[None]:
    assert not kept.FOR_ROOT.exists(), "a rack of yours is up: framegauge rack down"
    (tmp_path / "study.yaml").write_text(STUDY)
    up = framegauge("rack", "up", tmp_path / "study.yaml")
    assert up.returncode == 0, up.stderr
    yield
    assert framegauge("rack", "down").returncode == 0


def test_all_hosts_of_the_rack_that_is_up_are_captured(rack: None, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*MAIN, "capture", "rack:all", "--for", "4s", "--out", str(tmp_path / "out")], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    begun: list[str] = []
    while len(begun) < 2:
        line = process.stderr.readline()
        assert line
        begun += [line] if ": capturing on " in line else []
    found = framegauge("rack", "exec", "h1", "--", sys.executable, "-c", CLIENT, "h2")
    assert found.returncode == 0, found.stderr
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    judged = framegauge("diagnose", tmp_path / "out", "--json")
    document = json.loads(judged.stdout)
    kinds = [(each["kind"], each["capture"]) for each in document["findings"] if each["kind"] == "connection_refused"]
    assert sorted(kinds) == [("connection_refused", 1), ("connection_refused", 2)]


def test_a_host_that_the_rack_has_not_is_told(rack: None, tmp_path: Path) -> None:
    found = framegauge("capture", "rack:h9", "--for", "1s", "--out", tmp_path / "out")
    assert found.returncode == 2
    assert 'found no host "h9", expected one of h1, h2' in found.stderr
