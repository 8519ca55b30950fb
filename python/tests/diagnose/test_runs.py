"""The diagnosis of a run: each connection counts once, as its sender's host saw it, and its time is divided."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.captures import pcap, stalled

from framegauge.diagnose import runs

pytestmark = pytest.mark.agent
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def both(tmp_path: Path) -> dict[str, Path]:
    """The same connection in the captures of two hosts; the client sends."""
    found = {"web": tmp_path / "web.pcapng", "db": tmp_path / "db.pcapng"}
    for file in found.values():
        file.write_bytes(pcap(stalled(wait=0.4)))
    return found


def test_a_connection_that_two_hosts_saw_counts_once(both: dict[str, Path]) -> None:
    found = runs.of_run(both, {"web": [CLIENT], "db": [SERVER]})
    assert (found["connections"], found["payload_bytes"]) == (1, 14_000)
    assert found["seconds"]["rto_stall"] == pytest.approx(0.4, abs=1e-6)
    assert found["kinds"]["rto_stall"] == {"count": 1, "lost_seconds": pytest.approx(0.4, abs=1e-6)}
    flows = found["flows"]
    assert (flows["client"], flows["server"]) == (["web"], ["db"])
    assert (flows["bytes"], flows["reverse_bytes"]) == ([14_000], [0])
    assert flows["end_seconds"][0] - flows["begin_seconds"][0] > 0.4
    assert found["findings"][0]["host"] == "web"
    assert found["findings"][0]["connection"] == f"{CLIENT}:40000 to {SERVER}:80"


def test_of_a_sender_that_is_no_host_of_the_study_the_receiver_counts(both: dict[str, Path]) -> None:
    found = runs.of_run(both, {"web": ["10.9.9.9"], "db": [SERVER]})
    assert found["connections"] == 1
    assert found["findings"][0]["host"] == "db"


def test_a_connection_of_strangers_does_not_count(both: dict[str, Path]) -> None:
    found = runs.of_run(both, {"web": ["10.9.9.9"], "db": ["10.9.9.8"]})
    assert (found["connections"], found["payload_bytes"], found["seconds"], found["kinds"]) == (0, 0, {}, {})
