"""The emulated machine of the benches: it stands still until all flows are asked for, and gets the time that it needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.support import bench

common = bench("common")


class Recorder:
    """An agent of a process that does nothing; answers tell how long they were waited for."""

    about: Mapping[str, Any] = {}

    def __init__(self, process_id: int) -> None:
        self.process_id = process_id

    def begin(self, *_: Any) -> Any:
        return SimpleNamespace(result=lambda seconds: {"waited_seconds": seconds})


@pytest.fixture
def process_id() -> Iterator[int]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def test_flows_asked_for_together_reach_the_machine_together(process_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "TOGETHER_SECONDS", 0.1)
    agent = common.SlowAgent(Recorder(process_id))
    for host in ("h1", "h2"):
        agent.begin("relay", {"host": host, "method": "stream.run", "params": {}})
    assert os.waitid(os.P_PID, process_id, os.WSTOPPED) is not None
    assert os.waitid(os.P_PID, process_id, os.WCONTINUED) is not None


def test_other_requests_do_not_stop_the_machine(process_id: int) -> None:
    common.SlowAgent(Recorder(process_id)).begin("relay", {"host": "h1", "method": "stream.serve", "params": {}})
    assert os.waitid(os.P_PID, process_id, os.WSTOPPED | os.WNOHANG) is None


def test_limits_are_those_of_a_slower_clock(process_id: int) -> None:
    agent = common.SlowAgent(Recorder(process_id))
    assert agent.request("hello", timeout_seconds=2.0) == {"waited_seconds": 2.0 * common.SLOWER}
    assert agent.request("hello", timeout_seconds=None) == {"waited_seconds": None}
