"""The simulator as a process: results, refusals and endings."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from framegauge.agents.binary import find_agent
from framegauge.agents.simulator import Processes
from framegauge.errors import AgentFailure, InputError

pytestmark = pytest.mark.agent


def scenario(**more: Any) -> dict[str, Any]:
    return {
        "hosts": [{"name": "h1", "mtu": 1500}, {"name": "h2", "mtu": 1500}],
        "link": {"bits_per_second": 10**8, "rtt_seconds": 0.001, "buffer_bytes": 100_000, "port_mtu": 9216},
        "flows": [{"client": "h1", "server": "h2", "steps": [{"from": "client", "bytes": 100_000}]}],
        "end_seconds": 5.0,
        **more,
    }  # fmt: skip


def test_a_result_and_its_tables() -> None:
    found = Processes(find_agent()).run(scenario())
    assert set(found.tables) == {"transfers", "samples", "drops", "queues"}
    assert found.result["end_seconds"] < 0.1
    (ceiling,) = found.result["ceilings"]
    assert (ceiling["mtu"], ceiling["frame_bytes"], ceiling["mss_bytes"]) == (1500, 1518, 1460)
    assert ceiling["goodput_bits_per_second"] == pytest.approx(94_148_244, abs=1)  # 10^8 x 1448 / 1538


def test_a_bad_scenario_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^simulation: ") as refused:
        Processes(find_agent()).run(scenario(tcp={"congestion_control": "vegas"}))
    assert "expected reno, cubic, dctcp or bbr" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_stopped_it_ends_at_once_and_begins_no_more() -> None:
    # More than a minute of work; it is stopped by the first word that it says.
    endless = scenario(end_seconds=10_000.0)
    endless["flows"][0]["steps"][0]["bytes"] = None
    processes, heard = Processes(find_agent()), threading.Event()

    def stop(_: Any) -> None:
        heard.set()
        processes.stop()

    with pytest.raises(
        AgentFailure, match="the simulation ended with SIGKILL, which the kernel sends, too, when the memory"
    ):
        processes.run(endless, stop)
    assert heard.is_set()
    with pytest.raises(AgentFailure, match="was stopped"):
        processes.run(scenario())
