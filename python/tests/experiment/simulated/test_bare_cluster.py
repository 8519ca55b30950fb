"""A Dask cluster in which nobody has framegauge: it works, and what becomes of it when its parts die is one line."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.captures import pcap, stalled
from helpers.support import by_length

from framegauge.agents.remote import PREFIX
from framegauge.cli.main import main

pytestmark = [pytest.mark.agent, pytest.mark.thorough]
FILE = """\
testbed: {kind: simulator, link: {rate: 100 Mb/s, buffer: 64 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 100 ms}}]
blocks: 4
"""
# What has this module cannot import framegauge, installed or not.
BARE = "import sys; sys.modules['framegauge'] = None; from distributed.cli.dask_{0} import main; main()"


def started(part: str, *words: str) -> subprocess.Popen[str]:
    """A scheduler or a worker, in a folder of no project."""
    return subprocess.Popen(
        [sys.executable, "-c", BARE.format(part), *words],
        cwd="/", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip


def heard(process: subprocess.Popen[str], words: str) -> str:
    """The line with these words. What follows is read as well: a full pipe would stop whoever writes."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return line
    raise AssertionError(f"ended without {words}")


class Cluster:
    """One scheduler, two workers."""

    def __init__(self, folder: Path) -> None:
        self.scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = heard(self.scheduler, "Scheduler at:").split()[-1]
        self.folder = folder
        self.workers = [self._worker() for _ in range(2)]
        self.dead: list[subprocess.Popen[str]] = []

    def _worker(self) -> subprocess.Popen[str]:
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        worker = started("worker", self.address, *words)
        heard(worker, "Registered to:")
        return worker

    def replace(self, number: int) -> None:
        """Kills a worker, and starts another."""
        self.workers[number].kill()
        self.dead.append(self.workers[number])
        self.workers[number] = self._worker()

    @property
    def engine(self) -> str:
        return self.address.replace("tcp://", "dask://")

    def end(self) -> None:
        for process in (*self.workers, *self.dead, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "workers")
    yield made
    made.end()


def test_simulations_and_captures_need_nothing_of_framegauge_there(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    (tmp_path / "a.pcap").write_bytes(pcap(stalled(wait=0.3)))
    shutil.copy(tmp_path / "a.pcap", tmp_path / "b.pcap")
    answers = []
    for engine in (cluster.engine, "local"):
        out = tmp_path / engine[:4]
        assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(out), "--engine", engine]) == 0
        capsys.readouterr()
        assert main(["diagnose", *map(str, tmp_path.glob("*.pcap")), "--json", "--engine", engine]) == 1
        answers.append(((out / "runs.jsonl").read_bytes(), capsys.readouterr().out))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("dead", ["all workers", "the scheduler"])
def test_what_nobody_makes_up_for_is_one_line(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, dead: str
) -> None:
    monkeypatch.setattr("framegauge.agents.cluster.LOOK_SECONDS", 0.5)
    (tmp_path / "s.yaml").write_text(FILE)
    victims = {"all workers": cluster.workers, "the scheduler": [cluster.scheduler]}
    from framegauge.agents.cluster import Work

    submit, submitted = Work._submit, []

    def with_a_death(work: Work, *words: object) -> object:
        submitted.append(words)
        if len(submitted) == 3:
            for victim in victims[dead]:
                victim.send_signal(signal.SIGKILL)
        return submit(work, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Work, "_submit", with_a_death)
    code = main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--engine", cluster.engine])
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("framegauge: ")]
    assert code != 0
    assert len(said) == 1, said
    assert "the cluster failed" in said[0]


@pytest.mark.soak(15)
def test_a_worker_may_die_at_any_moment(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another one comes for it; the answers are those of this machine alone, to the byte."""
    (tmp_path / "s.yaml").write_text(FILE)
    (tmp_path / "a.pcap").write_bytes(pcap(stalled(wait=0.3)))
    shutil.copy(tmp_path / "a.pcap", tmp_path / "b.pcap")
    asked: dict[str, list[str]] = {
        "simulate": [str(tmp_path / "s.yaml")], "diagnose": [*map(str, sorted(tmp_path.glob("*.pcap"))), "--json"],
    }  # fmt: skip
    expected: dict[str, bytes] = {}
    usual: dict[str, float] = {}
    chance = random.Random(1)

    def answer(verb: str, engine: str) -> bytes:
        out = tmp_path / f"{verb}-{len(list(tmp_path.iterdir()))}"
        code = main([verb, *asked[verb], *(["--out", str(out)] if verb == "simulate" else []), "--engine", engine])
        printed = capsys.readouterr()
        assert code == (verb == "diagnose"), printed.err
        return (out / "runs.jsonl").read_bytes() if verb == "simulate" else printed.out.encode()

    for verb in asked:
        expected[verb] = answer(verb, "local")
        begun = time.monotonic()
        assert answer(verb, cluster.engine) == expected[verb]
        usual[verb] = time.monotonic() - begun
    before = set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/agent"))
    for number in range(by_length(1, 50)):
        verb = list(asked)[number % 2]
        death = threading.Timer(chance.uniform(0, usual[verb]), cluster.replace, [chance.randrange(2)])
        death.start()
        try:
            assert answer(verb, cluster.engine) == expected[verb], number
        finally:
            death.join()
    left = set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/agent")) - before
    assert not left, "a worker that was killed leaves its files where Dask sweeps them"
