"""Studies over ssh while something breaks: gaps, and settings that are put back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers import sshd
from helpers.over_ssh import framegauge, mtus, study_of, undisturbed
from helpers.sshd import Site
from helpers.support import PATIENCE_SECONDS, bench, by_length

from framegauge.results.journal import read

pytestmark = pytest.mark.needs("ssh", "sshd")
chaos = bench("hosts.chaos")


def test_a_controller_that_is_killed_leaves_nothing_changed(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, seconds=10), "--out", tmp_path / "out")
    try:
        until = time.monotonic() + PATIENCE_SECONDS  # two runs may come before, and one again
        while mtus(there) != {9000} and time.monotonic() < until:
            time.sleep(0.1)
        assert mtus(there) == {9000}
    finally:
        process.kill()
        process.wait()
    until = time.monotonic() + 10
    while mtus(there) != {1500} and time.monotonic() < until:
        time.sleep(0.1)
    assert mtus(there) == {1500}  # at once: its end closes the pipes


def test_a_path_that_carries_the_frames_no_more_is_a_gap(there: Site, tmp_path: Path) -> None:
    process = framegauge("study", study_of(there, tmp_path, blocks=6), "--out", tmp_path / "out")
    port = sorted(os.listdir(f"/sys/class/net/{there.bridge}/brif"))[0]
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and not carried(tmp_path / "out"):
            time.sleep(0.02)
        # It carried them once; from now on one port does not.
        subprocess.run(["ip", "link", "set", port, "mtu", "1500"], check=True)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    finally:
        process.kill()
        process.wait()
        subprocess.run(["ip", "link", "set", port, "mtu", "9000"], check=True)
        subprocess.run(["ip", "link", "set", there.bridge, "mtu", "9000"], check=True)
    runs = read(tmp_path / "out").runs
    assert len(runs) > 12, said  # every place in the plan, and repetitions of those that are gaps
    assert any("packets of 9000 bytes from" in line for run in runs for line in run.excluded), said
    assert undisturbed([run for run in runs if run.level == 1500]), said
    assert mtus(there) == {1500}


def carried(folder: Path) -> bool:
    """Whether a run with large frames is on disk."""
    try:
        return any(json.loads(line)["level"] == 9000 for line in (folder / "runs.jsonl").read_text().splitlines())
    except (OSError, ValueError, KeyError):
        return False


# Each kind of what may break once; bench/hosts/chaos.py does it at random, and more often.
@pytest.mark.soak(2)
@pytest.mark.parametrize("kind", by_length(chaos.KINDS, chaos.MORE_KINDS))
def test_whatever_breaks_the_settings_are_back_within_the_lease(kind: str, tmp_path: Path) -> None:
    with sshd.site(tmp_path, ["alpha", "beta"], small_disk=True) as site:
        _, before, after = chaos.once(site, tmp_path, kind, random.Random(kind))
    assert after >= before


def test_an_agent_that_is_killed_is_a_gap_and_the_old_values_are_not_forgotten(there: Site, tmp_path: Path) -> None:
    """The next run logs in anew, perhaps before the lease of the agent that is gone has put things back."""
    process = framegauge("study", study_of(there, tmp_path, lease=6, blocks=6), "--out", tmp_path / "out")
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while mtus(there) != {9000} and time.monotonic() < until:
            time.sleep(0.02)
        for pid in chaos.agents(there.hosts["alpha"]):
            os.kill(pid, signal.SIGKILL)
        said = process.communicate(timeout=PATIENCE_SECONDS)[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (0, 3), said
    runs = read(tmp_path / "out").runs
    assert any("alpha" in line for run in runs for line in run.excluded), said
    assert sum(not run.excluded for run in runs) >= 10, said
    assert mtus(there) == {1500}
