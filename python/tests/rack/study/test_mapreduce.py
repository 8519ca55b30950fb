"""Hadoop on a rack: what it counts itself, what its sockets carried, and what passed the fabric say the same.

Each run starts a cluster of a master and four workers, which takes a minute and more of two CPUs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.real import await_end, children, hosts_of, leaves_nothing, run
from helpers.support import ROOT, SOAK, NotRun

from framegauge.agents.pipe import Agent
from framegauge.apps import store
from framegauge.errors import FramegaugeError
from framegauge.study import file as study_file
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import SAMPLE_SECONDS, RackTestbed

pytestmark = [pytest.mark.thorough, pytest.mark.needs("java")]
ROWS_CHECKSUM = "7a27e2d0d55de"  # of a million rows of teragen, on any machine
SHUFFLE_PORT = 13562
START_SECONDS = 300.0
EXAMPLE = ROOT / "examples/terasort-short.yaml"


@pytest.fixture(scope="module")
def hadoop() -> Path:
    """Its folder. CI fetches it; others have it or not."""
    app = store.named("hadoop")
    if not store.installed(app) and os.environ.get("CI") != "true":
        NotRun().stop(f"{app.full_name} is not there: framegauge apps fetch {app.name}")
    try:
        return store.fetch(app, lambda _: None)
    except FramegaugeError as error:
        NotRun().stop(str(error))


class Captured(RackTestbed):
    """A rack that captures what goes to the workers while the job runs."""

    captures: list[bytes]

    def begin(self, watch: Sequence[str] = ()) -> float:
        ports = [f"switch>{host.name}" for host in self.hosts()[1:]]
        begun = super().begin(watch)
        self._agent.request("measure.end")
        self._agent.request("measure.begin", {"sample_seconds": SAMPLE_SECONDS, "watch": ports, "capture": True})
        return begun

    def end(self) -> Json:
        found = super().end()
        assert found["fabric"]["capture_left_out"] == 0
        self.captures.append(self.fetch(found["fabric"]["capture"]))
        return found


def shuffle_packets(capture: Path) -> list[int]:
    """The IP length of every packet that left a port of the fabric with data of the shuffle."""
    program = shutil.which("tshark")
    assert program is not None
    fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "ip.len"]
    wanted = ["-Y", f"tcp.srcport == {SHUFFLE_PORT} && tcp.len > 0"]
    read = subprocess.run([program, "-r", str(capture), *wanted, *fields], capture_output=True, text=True, check=True)
    rows = (line.split("\t") for line in read.stdout.splitlines())
    return [int(length) for port, length in rows if port.endswith(" out")]


@pytest.mark.needs("tshark")
def test_hadoop_sockets_and_fabric_agree_and_every_sort_is_right(
    rack_agent: Agent, hadoop: Path, tmp_path: Path
) -> None:
    """With Nagle off by the preloaded library, which also proves that tasks, started by YARN, have it."""
    asked = study_file.load(EXAMPLE)
    nagle = type(asked.factors).model_validate({"mtu": asked.factors.mtu, "nagle": False}).nagle
    factors = asked.factors.model_copy(update={"nagle": nagle})
    asked = asked.model_copy(update={"blocks": 1, "factors": factors, "retries": 0 if not SOAK else 1})
    bed = Captured(rack_agent)
    bed.captures = []
    runs = run(rack_agent, asked, tmp_path / "out", bed)
    assert sorted(each.level for each in runs) == [1500, 9000]
    for each, capture in zip(runs, bed.captures, strict=True):
        # Whether this machine is quiet enough for 1 Gb/s is not the question here.
        assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
        record = saved(tmp_path / "out", each.number)["workload"]
        assert record["checked"] == {"checksum": ROWS_CHECKSUM, "rows": 1_000_000}
        (job,) = record["jobs"]
        carried = record["traffic_by_purpose"]
        shuffled = sum(carried[where]["shuffle_bytes"] for where in ("between_hosts", "within_hosts"))
        assert shuffled == pytest.approx(job["shuffle_bytes"], rel=0.01)
        assert job["shuffle_bytes"] == pytest.approx(104_000_000, rel=0.01)
        assert job["task_cpu_seconds"] > 0
        assert 0 < each.metrics["shuffle_time"] < each.metrics["job_time"]
        assert record["nodelay"]
        assert {value for values in record["nodelay"].values() for value in values} == {True}
        (tmp_path / "workers.pcapng").write_bytes(capture)
        packets = shuffle_packets(tmp_path / "workers.pcapng")
        # All of what went to other hosts, headers included, passed the fabric.
        assert sum(packets) == pytest.approx(carried["between_hosts"]["shuffle_bytes"], rel=0.05)
        mean = statistics.fmean(packets)
        assert mean > 8000 if each.level == 9000 else mean < 1500


def saved(folder: Path, number: int) -> Json:
    """The whole record of a run."""
    found: Json = json.loads((folder / f"runs/{number}/record.json").read_text())
    return found


@pytest.fixture
def study_path(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(EXAMPLE.read_text())
    return path


def test_killed_in_the_middle_of_a_run_nothing_stays(hadoop: Path, study_path: Path, tmp_path: Path) -> None:
    """SIGKILL of the controller while the daemons run."""
    family: list[int] = []
    with leaves_nothing(lambda: await_end(family)):
        before = set(os.listdir("/tmp"))
        command = [sys.executable, "-m", "framegauge", "study", str(study_path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            daemons = until_daemons(controller)
            root = children(controller.pid)[0]
            family += [root, *hosts_of(root), *daemons]
            os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=60)
        await_end(family)
        mine = set(os.listdir("/tmp")) - before
        assert [name for name in mine if name.startswith(("hadoop", "hsperf", "jetty", "yarn", "Jetty"))] == []


def until_daemons(controller: subprocess.Popen[bytes]) -> list[int]:
    """The processes of three daemons, once so many run."""
    until = time.monotonic() + START_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        found = java_below(controller.pid)
        if len(found) >= 3:
            return found
        time.sleep(0.2)
    raise AssertionError(controller.communicate()[1].decode())


def java_below(process: int) -> list[int]:
    """The Java programs that a process, or one of its descendants, has started."""
    found, left = [], [process]
    while left:
        one = left.pop()
        try:
            if Path(f"/proc/{one}/comm").read_text().strip() == "java":
                found.append(one)
        except OSError:
            continue
        left += children(one)
    return found
