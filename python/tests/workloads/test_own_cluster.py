"""The examples for one's own cluster: what their very commands do to what they read, with the real fio."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.support import PATIENCE_SECONDS, ROOT

from framegauge.experiment.planning import conditions_of, workload_of
from framegauge.files.placeholders import substitute
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.workloads.command import Command
from framegauge.workloads.readings import value

EXAMPLES = sorted((ROOT / "examples").glob("own-cluster-*.yaml"))
BLOCK = 65_536
pytestmark = pytest.mark.needs("fio")


def command_of(path: Path) -> Command:
    asked = study_file.load(path)
    found = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(found, Command)
    return found


def fio(command: Command, folder: Path, *more: str, **values: str) -> subprocess.CompletedProcess[str]:
    """What the file has a client run, with some values changed, and with more words behind: of options that are given
    twice fio takes the last."""
    (task,) = command.clients
    argv = [substitute(word, {**command.values, **values}) for word in task.argv]
    return subprocess.run(
        [*argv, *more], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def state(file: Path) -> tuple[str, int, int]:
    return hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns, file.stat().st_ctime_ns


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "file"
    found.write_bytes(bytes(range(256)) * 16_384)  # 4 MiB
    return found


def test_reads_come_at_the_rate_and_with_every_metric_and_leave_the_file_as_it_is(file: Path) -> None:
    command = command_of(ROOT / "examples/own-cluster-nfs.yaml")
    before = state(file)
    # The folder may be in memory, which has no direct I/O; an NFS mount has.
    done = fio(command, file.parent, "--direct=0", "--runtime=1s", file=str(file), rate="50")
    assert done.returncode == 0, done.stderr
    found = {name: value(name, each, done.stdout, "fio") for name, each in command.metrics_.items()}
    # Never above what was asked for, but for the read that ends the second; a busy machine may be slower.
    assert 10 < found["reads"] <= 51
    assert 0 < found["read_p50"] <= found["read_p95"]
    assert state(file) == before
    assert sorted(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("writes", ["write", "randwrite", "randrw", "randtrim"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_whatever_is_added_behind_nothing_is_written(path: Path, writes: str, file: Path) -> None:
    """A later `--rw` wins, and is refused before anything is opened, whichever engine."""
    before = state(file)
    done = fio(command_of(path), file.parent, "--runtime=1s", f"--rw={writes}", file=str(file))
    assert done.returncode != 0
    assert "but fio is in read-only mode" in done.stderr
    assert state(file) == before


def test_a_file_that_is_not_there_is_not_made_and_a_short_one_not_extended(file: Path) -> None:
    command = command_of(ROOT / "examples/own-cluster-nfs.yaml")
    missing = file.with_name("missing")
    done = fio(command, file.parent, "--direct=0", "--runtime=1s", file=str(missing))
    assert done.returncode != 0
    assert not missing.exists()
    before = state(file)
    fio(command, file.parent, "--direct=0", "--runtime=100ms", "--size=1G", file=str(file))
    assert state(file) == before


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_only_the_client_is_ever_changed_and_its_load_is_bounded(path: Path) -> None:
    asked = study_file.load(path)
    words: Any = command_of(path).clients[0].argv
    assert {"--readonly", "--rw=randread", "--rate_iops={rate}"} <= set(words)
    client, other = asked.testbed.machines
    assert (client.read_only, other.read_only) == (False, True)
    levels = [dict(conditions_of(asked, slot).mtu) for slot in block_order(asked, 0)]
    assert {each["client"] for each in levels} == {1500, 9000}
    assert {each[other.name] for each in levels} == {9000}
    (step,) = asked.workloads[0].command.clients
    assert step.host == ["client"]
