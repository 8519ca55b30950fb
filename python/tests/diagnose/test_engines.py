"""Captures spread over a Dask cluster: the same answers as here, whatever its workers find; and clear refusals."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.captures import pcap, stalled

from framegauge.agents import cluster, remote
from framegauge.agents.binary import find_agent
from framegauge.cli.main import main
from framegauge.diagnose import engines, run as diagnosis
from framegauge.errors import AgentFailure, InputError

pytestmark = pytest.mark.agent


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of two processes, which end with it."""
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    found = []
    for number in range(4):
        found.append(tmp_path / f"{number}.pcap")
        found[-1].write_bytes(pcap(stalled(wait=0.3 + number / 10)))
    return found


def without_names(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("connections", "findings")}


@pytest.mark.thorough
def test_the_answers_are_those_of_this_machine(scheduler: str, captures: list[Path]) -> None:
    here, read = diagnosis.separate(captures), []
    with engines.opened(scheduler) as engine:
        there = diagnosis.separate(captures, done=read.append, engine=engine)
    assert there == here
    assert sorted(read) == captures
    assert [each["lost_seconds"] for each in there["findings"] if each["kind"] == "rto_stall"] == pytest.approx(
        [0.6, 0.5, 0.4, 0.3], abs=1e-6
    )


@pytest.mark.thorough
def test_what_workers_do_not_find_is_sent_to_them(
    scheduler: str, captures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers without the files: this process believes that other ones are there."""
    known = remote.signature
    monkeypatch.setattr(engines.remote, "signature", lambda path: (known(path)[0], "another beginning"))  # type: ignore[index]
    with engines.opened(scheduler) as engine:
        assert diagnosis.separate(captures, engine=engine) == diagnosis.separate(captures)
        monkeypatch.setattr(engines, "MOST_SENT_BYTES", 100)
        with pytest.raises(InputError, match="that no worker has at this path"):
            diagnosis.separate(captures, engine=engine)


def kill(client: Any, worker: str) -> None:
    """Kill a worker, and wait until the cluster has noticed."""
    pids = client.run(os.getpid)
    os.kill(pids[worker], signal.SIGKILL)
    while pids == client.run(os.getpid, on_error="ignore"):
        time.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("before", [True, False])
def test_what_is_lost_with_a_worker_is_sent_again(
    scheduler: str, captures: list[Path], monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """A worker dies that has a capture, before it is asked about it, or when it has answered and nobody has fetched it."""
    known, submit, killed = remote.signature, cluster.Work._submit, []

    def with_a_death(work: Any, function: Any, *words: Any) -> Any:
        def die(data: Any) -> None:
            (there,) = work._client.who_has([data]).values()
            killed.append(there[0])
            kill(work._client, there[0])

        lot = not killed and len(words) == 4
        if lot and before:
            die(words[-1])
        future = submit(work, function, *words)
        if lot and not before:
            while not future.done():
                time.sleep(0.01)
            die(future)
        return future

    monkeypatch.setattr(engines.remote, "signature", lambda path: (known(path)[0], "another beginning"))  # type: ignore[index]
    monkeypatch.setattr(cluster.Work, "_submit", with_a_death)
    with engines.opened(scheduler) as engine:
        assert diagnosis.separate(captures, engine=engine) == diagnosis.separate(captures)
    assert killed


@pytest.mark.thorough
def test_the_same_bytes_are_sent_many_times_and_never_taken_for_one_another(scheduler: str) -> None:
    with cluster.connected(scheduler) as client:
        work = cluster.Work(client)
        assert [work.answer("x", length, sent=b"x" * 5000) for _ in range(100)] == [5000] * 100


def length(agent: bytes, machine: str, data: bytes) -> int:
    return len(data)


def is_length(words: tuple[Any, ...]) -> bool:
    """Whether a task calls it."""
    return words[0] == cluster.CALL and words[1]["name"] == length.__name__


class NobodyWorks:
    """A cluster whose scheduler says that a task is with a worker, which does not know of it; after `times` it does."""

    def __init__(self, times: int, processing: dict[str, list[str]], is_idle: bool) -> None:
        self.times, self.submitted, self.cancelled = times, 0, 0
        self._processing, self._is_idle = processing, is_idle

    def submit(self, function: Any, *words: Any, **_: Any) -> Any:
        if not is_length(words):
            return Unheard(None)
        self.submitted += 1
        return Unheard(None if self.submitted <= self.times else len(words[1]["words"][-1]))

    def scatter(self, data: bytes, hash: bool) -> bytes:
        return data

    def processing(self) -> dict[str, list[str]]:
        return self._processing

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return workers_of(dict.fromkeys(self._processing, self._is_idle))

    def cancel(self, futures: list[Any], force: bool) -> None:
        self.cancelled += len(futures)


def workers_of(idle: dict[str, bool]) -> dict[str, Any]:
    """What a scheduler says of its workers, by whether they are idle."""
    return {
        "workers": {
            name: {"metrics": {"task_counts": {"memory": 3} if is_idle else {"executing": 1}}}
            for name, is_idle in idle.items()
        }
    }


class Unheard:
    """A future of which nothing is heard, if it has no answer."""

    key, status = "task-1", "pending"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def result(self, timeout: float) -> Any:
        if self._answer is None:
            raise TimeoutError
        return self._answer

    def done(self) -> bool:
        return self._answer is not None


@pytest.mark.parametrize("processing", [{"w1": ["task-1"]}, {"w1": ["task-1"], "w2": []}, {"w1": []}, {}])
def test_what_nobody_works_on_is_submitted_again_and_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, processing: dict[str, list[str]]
) -> None:
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.0)
    client = NobodyWorks(3, processing, is_idle=True)
    assert cluster.Work(client).answer("x", length, sent=b"abc") == 3
    assert (client.submitted, client.cancelled) == (4, 3)
    client = NobodyWorks(1000, processing, is_idle=True)
    with pytest.raises(AgentFailure, match=rf"no worker works on it, of {len(processing)}\); it was tried 10 times"):
        cluster.Work(client).answer("x", length, sent=b"abc")
    assert client.submitted == client.cancelled == 10


def test_data_that_no_worker_takes_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask raises a KeyError where the worker that it chose has just died."""
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.0)

    class Dying(NobodyWorks):
        def scatter(self, data: bytes, hash: bool) -> bytes:
            self.times -= 1
            if self.times >= 0:
                raise KeyError("tcp://127.0.0.1:45363")
            return data

    assert cluster.Work(Dying(2, {}, is_idle=False)).answer("x", length, sent=b"abc") == 3
    with pytest.raises(AgentFailure, match=r"no worker took the data \(KeyError: .*it was tried 10 times"):
        cluster.Work(Dying(1000, {}, is_idle=False)).answer("x", length, sent=b"abc")


def test_whatever_a_cluster_in_disarray_raises_is_tried_again_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.0)

    class Tripping(NobodyWorks):
        def submit(self, function: Any, *words: Any, **more: Any) -> Any:
            future = super().submit(function, *words, **more)
            if is_length(words) and self.submitted <= self.times:
                raise IndexError("tuple index out of range")
            return future

    assert cluster.Work(Tripping(cluster.MOST_STRANGE, {}, is_idle=False)).answer("x", length, sent=b"abc") == 3
    client = Tripping(1000, {}, is_idle=False)
    with pytest.raises(AgentFailure, match=r"the cluster failed \(IndexError: tuple index out of range\)"):
        cluster.Work(client).answer("x", length, sent=b"abc")
    assert client.submitted == cluster.MOST_STRANGE + 1


def test_what_a_worker_works_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.0)
    looks = []

    class Working(NobodyWorks):
        def processing(self) -> dict[str, list[str]]:
            looks.append(1)
            return {"w1": ["task-1"], "w2": []} if len(looks) < 30 else {}

        def scheduler_info(self, n_workers: int) -> dict[str, Any]:
            return workers_of({"w1": False, "w2": True})

    client = Working(1, {}, is_idle=True)
    assert cluster.Work(client).answer("x", length, sent=b"abc") == 3
    assert (client.submitted, len(looks)) == (2, 29 + cluster.IDLE_LOOKS)


@pytest.mark.thorough
def test_a_bad_file_is_refused_in_the_same_words(
    scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all")
    said = []
    for engine in ("local", scheduler):
        assert main(["diagnose", str(bad), "--engine", engine]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize("text", ["spark://x:1", "dask://", "LOCAL", ""])
def test_another_engine_is_refused(text: str, captures: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(captures[0]), "--engine", text]) == 2
    assert f'--engine: found "{text}", expected local or dask://HOST:PORT' in capsys.readouterr().err


@pytest.mark.thorough
def test_nobody_who_answers_is_one_line(
    captures: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"dask://127.0.0.1:{taken.getsockname()[1]}"
        assert main(["diagnose", str(captures[0]), "--engine", address]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1, said
    assert "found no scheduler that answers" in said[0]


def test_without_dask_it_is_said_how_to_get_it(
    captures: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["diagnose", str(captures[0]), "--engine", "dask://127.0.0.1:1"]) == 2
    assert "pip install 'framegauge[dask]'" in capsys.readouterr().err


def test_what_a_worker_runs_needs_nothing_of_framegauge(captures: list[Path]) -> None:
    source = Path(remote.__file__).read_text(encoding="utf-8")
    assert "import framegauge" not in source
    assert "from framegauge" not in source
    agent = Path(find_agent()).read_bytes()
    words = ["--thresholds", "{}"]
    machine = os.uname().machine
    known = remote.signature(str(captures[0]))
    assert known is not None
    found = remote.answer(agent, machine, words, str(captures[0]), known, None)
    sent = remote.answer(agent, machine, words, str(captures[0]), known, captures[0].read_bytes())
    assert found == sent
    assert found is not None
    assert json.loads(found[1])["file"] == str(captures[0])
    assert remote.answer(agent, machine, words, str(captures[0]), (1, ""), None) is None
    other = remote.answer(agent, "another", words, str(captures[0]), known, None)
    assert other is not None
    assert (other[0], "expected another" in other[2]) == (1, True)
