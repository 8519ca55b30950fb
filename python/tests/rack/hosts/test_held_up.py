"""A host of the user's that something else holds up. It holds a CPU of this machine, so no rack may run beside it
(scripts/checks.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.over_ssh import framegauge, study_of
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS, holding

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")

# Ahead of everything, and longer than the kernel's own work for packets ever takes.
HOLD = holding(held_seconds=0.05, free_seconds=0.15, cpu=min(os.sched_getaffinity(0)))


def test_a_host_that_is_held_up_excludes_the_run(there: Site, tmp_path: Path) -> None:
    path = study_of(there, tmp_path, seconds=0.5)
    path.write_text(path.read_text() + "retries: 0\n")
    with subprocess.Popen([sys.executable, "-S", "-c", HOLD], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            process = framegauge("study", path, "--out", tmp_path / "out")
            said = process.communicate(timeout=PATIENCE_SECONDS)[0]
        finally:
            holder.kill()
    assert process.returncode == 3, said
    runs = read(tmp_path / "out").runs
    assert len(runs) == 4
    for run in runs:
        assert any("held by something else: at most 20 ms, found" in line for line in run.excluded), run.excluded
        assert run.readings["held_longest_seconds"] > 0.02
