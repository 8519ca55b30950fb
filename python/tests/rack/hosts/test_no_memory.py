"""Where a cgroup has no memory left: one line if something of ours can still say it, and in any case nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from helpers.captures import ACK, PSH, SYN, pcap, segment
from helpers.cgroups import framegauge, limited
from helpers.support import PATIENCE_SECONDS

from framegauge.results.journal import read

CONNECTIONS = 40_000  # about 65 MB for the agent
LITTLE, SOME = 40_000_000, 90_000_000  # bytes: too little for these connections; for a study to begin, and not to end
STUDY = """\
question: Who has the memory?
testbed: {kind: veth}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: 1 MB, repeat: 0 s}}]
blocks: 2
stop: blocks
control: false
retries: 0
margins: {goodput: 1 %}
"""


def many() -> bytes:
    """A capture of so many connections, each with a handshake and 100 bytes."""
    packets = []
    for number in range(CONNECTIONS):
        client, server = f"10.0.{number >> 15}.1:{1024 + number % 32768}", "192.0.2.1:80"
        packets += [
            segment(client, server, SYN, 0, mss=1460),
            segment(server, client, SYN | ACK, 0, 1, mss=1460),
            segment(client, server, PSH | ACK, 1, 1, payload=100),
        ]
    return pcap((place * 1e-5, packet) for place, packet in enumerate(packets))


def test_a_diagnosis_says_so_in_one_line(tmp_path: Path) -> None:
    """The agent offers itself to the kernel first, whichever of the two processes is larger at that moment."""
    path = tmp_path / "many.pcap"
    path.write_bytes(many())
    with limited("memory", LITTLE) as group:
        code, said = framegauge(group, "diagnose", path)
    assert (code, said.count("\n")) == (2, 1), said
    assert "SIGKILL, which the kernel sends, too, when the memory" in said


def test_a_study_leaves_nothing_and_goes_on_later(tmp_path: Path) -> None:
    """The kernel ends the largest process, which is the controller: no line can be expected of it."""
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(STUDY)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    with limited("memory", SOME) as group:  # which has no process at the end, and so no host of a rack
        code, said = framegauge(group, "study", study, "--out", out, environment=environment)
    assert code in (-signal.SIGKILL, 2), said
    assert "Traceback" not in said
    before = read(out).runs if (out / "results.json").exists() else []
    words = ["--resume"] if (out / "results.json").exists() else [str(study)]
    command = [sys.executable, "-m", "framegauge", "study", *words, "--out", str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE_SECONDS
    )
    assert done.returncode in (0, 3), done.stderr  # 3: this machine held runs up
    assert read(out).runs[: len(before)] == before
    runs = read(out).runs
    assert [run.number for run in runs] == list(range(1, len(runs) + 1))
    # Blocks that this machine held up are followed by others.
    assert {(run.block, run.arm) for run in runs} >= {(block, arm) for block in (0, 1) for arm in ("baseline", "9000")}
    assert list((tmp_path / "temporary").iterdir()) == []
