"""The trial before a study, on real hosts: an idle machine carries what it is asked, a held one is too busy."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from helpers.real import UP, carried
from helpers.support import holding

from framegauge.agents.pipe import Agent
from framegauge.experiment import trial
from framegauge.study import file as study_file
from framegauge.testbeds.rack import RackTestbed

# So slow that a machine beside other work carries it, too; two blocks, so that little is run.
STUDY = """\
testbed: {kind: rack, topology: pair, link: {rate: 50 Mb/s}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: 100 kB, repeat: 0 s}}]
control: false
blocks: 2
stop: blocks
margins: {goodput: 1 %}
"""
ENDS_SECONDS = 300  # ten times what it takes while all CPUs are held


def study(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "study.yaml").write_text(STUDY)
    command = [sys.executable, "-m", "framegauge", "study", str(folder / "study.yaml"), "--out", str(folder / "out")]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=ENDS_SECONDS, check=False)


def test_what_is_carried_is_said_kept_and_no_run(tmp_path: Path) -> None:
    done = carried(lambda: study(tmp_path, "--json"), tmp_path / "out")
    assert "trial: " in done.stderr.splitlines()[0], done.stderr
    found = json.loads(done.stdout)
    tried = found["trial"]
    assert (tried["asked_bits_per_second"], tried["bits_per_second"]) == (50_000_000, 50_000_000)
    assert tried["attempts"][-1]["reasons"] == [], done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/runs.jsonl").read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["workload"] for line in lines} == {"stream"}
    assert {line["conditions"]["size_bytes"] for line in lines} == {100_000}  # a trial has a duration


def test_an_attempt_leaves_no_rack_and_the_next_can_be_at_another_rate(rack_agent: Agent) -> None:
    asked, bed = study_file.parse(STUDY, "x"), RackTestbed(rack_agent)
    attempt = trial.attempt_at(asked, bed)
    for rate in (50_000_000, 20_000_000):
        attempt(rate)
        assert not bed.hosts()
    rack_agent.request("rack.up", UP)
    rack_agent.request("rack.down")


@contextlib.contextmanager
def held() -> Iterator[None]:
    """All CPUs held ahead of every program and of the fabric, for 40 ms of every 50: whatever the rate, deliveries are
    late."""
    with contextlib.ExitStack() as stack:
        for cpu in os.sched_getaffinity(0):
            command = [sys.executable, "-S", "-c", holding(held_seconds=0.04, free_seconds=0.01, cpu=cpu)]
            hog = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(hog.kill)
            assert hog.stdout is not None
            assert hog.stdout.readline() == b"ready\n"
        yield


def test_where_something_holds_all_cpus_it_ends_and_names_it(tmp_path: Path) -> None:
    with held():
        done = study(tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "too busy: 50 Mb/s is not carried at the moment (" in last
    assert re.search(r"programs in real time, .*: python\S* \(\d+\)", last), last
    assert "end these programs in real time (another rack or study is one), or wait for them" in last
    assert not (tmp_path / "out").exists()
