"""Connections of captures as flows to replay: each once, with what it carried and when."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest
from helpers.support import ROOT

from framegauge.diagnose import run as diagnosis
from framegauge.diagnose.flows import recorded
from framegauge.files.recordings import Recorded, parse_csv, to_csv

KEPT = sorted((ROOT / "python/tests/recorded/diagnosis").glob("*.pcapng*"))


def connection(number: int, capture: int, client: str, server: str, sent: int, back: int) -> dict[str, object]:
    return {
        "connection": number, "capture": capture, "client": client, "server": server, "bytes": [sent, back],
        "begin_seconds": 0.5, "end_seconds": 2.0,
    }  # fmt: skip


def test_what_two_captures_saw_is_one_flow_and_what_carried_nothing_is_none() -> None:
    document = {
        "captures": [{"capture": 1, "begin_seconds": 1_790_000_000.25}, {"capture": 2, "begin_seconds": 1_790_000_001.25}],
        "connections": [
            connection(1, 1, "10.0.0.1:40000", "10.0.0.2:80", 100, 7),
            connection(2, 2, "10.0.0.1:40000", "10.0.0.2:80", 100, 7),
            connection(3, 2, "[2001:db8::1]:40000", "[2001:db8::2]:80", 1, 0),
            connection(4, 1, "10.0.0.3:40000", "10.0.0.2:80", 0, 0),
        ],
        "joined": {"connections": [{"seen": [{"connection": 1}, {"connection": 2}, {"connection": None}]}]},
    }  # fmt: skip
    assert list(recorded(document)) == [
        Recorded("10.0.0.1", "10.0.0.2", 0.5, 100, 7, 2.0),
        Recorded("2001:db8::1", "2001:db8::2", 1.5, 1, 0, 3.0),
    ]


@pytest.mark.agent
@pytest.mark.needs("tshark")
@pytest.mark.parametrize("path", KEPT[:6], ids=lambda path: path.name.split(".")[0])
def test_a_capture_gives_the_conversations_that_tshark_counts(path) -> None:  # type: ignore[no-untyped-def]
    flows = parse_csv(to_csv(recorded(diagnosis.diagnose([path]))).encode(), "flows").flows
    words = ["tshark", "-n", "-r", str(path), "-q", "-z", "conv,tcp"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = [line.split() for line in told.splitlines() if "<->" in line]
    theirs = Counter(frozenset(end.rpartition(":")[0] for end in (words[0], words[2])) for words in lines)
    assert theirs == Counter(frozenset((flow.client, flow.server)) for flow in flows)
    assert all(flow.bytes + flow.reverse_bytes > 0 for flow in flows)
