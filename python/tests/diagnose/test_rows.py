"""Rows of a diagnosis: the same document, whether few or very many wait in the agent's output."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers.captures import ACK, PSH, RST, SYN, Packet, pcap, segment, stalled

from framegauge.cli.main import main
from framegauge.diagnose import rows, run as diagnosis, terminal

pytestmark = pytest.mark.agent


def refused(count: int, host: str = "10.0.0.3") -> list[Packet]:
    """So many connections that are refused, at the same time."""
    syns = [(1.0 + n / 1e4, segment(f"{host}:{1000 + n}", "10.0.0.4:2", SYN, 1, mss=1460)) for n in range(count)]
    resets = [(2.0 + n / 1e4, segment("10.0.0.4:2", f"{host}:{1000 + n}", RST | ACK, 0, 2)) for n in range(count)]
    return syns + resets


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    files = [tmp_path / name for name in ("a.pcap", "b.pcap", "c.pcap")]
    files[0].write_bytes(pcap(refused(30)))
    files[1].write_bytes(pcap(stalled(wait=0.4)))
    files[2].write_bytes(pcap([(1.0, segment("10.0.0.8:1", "10.0.0.9:2", PSH | ACK, 1, 1, 10))]))
    return files


def test_rows_that_stay_where_they_are_say_the_same(captures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for files, only in ((captures, ()), (captures[:1], ()), (captures[::-1], ("connection_refused",))):
        few = diagnosis.diagnose(files, only)
        with monkeypatch.context() as patch:
            patch.setattr(rows, "FEW", 0)
            many = diagnosis.diagnose(files, only)
        assert isinstance(many["connections"], rows.Rows)
        assert {**many, **{key: list(many[key]) for key in ("connections", "findings")}} == few
        for key in ("connections", "findings"):
            assert [many[key][place] for place in range(-len(few[key]), len(few[key]))] == few[key] * 2
            assert many[key][1:3] == few[key][1:3]
            with pytest.raises(IndexError):
                many[key][len(few[key])]
        assert list(terminal.lines(many)) == list(terminal.lines(few))
        assert diagnosis.worth_fixing(many) == diagnosis.worth_fixing(few)


def test_findings_of_several_captures_are_in_one_order_and_numbered_through(captures: list[Path]) -> None:
    found = diagnosis.diagnose(captures)
    lost = [each["lost_seconds"] for each in found["findings"]]
    assert lost == sorted(lost, reverse=True)
    assert [each["connection"] for each in found["connections"]] == list(range(1, 33))
    (stall,) = (each for each in found["findings"] if each["kind"] == "rto_stall")
    assert (stall["capture"], stall["connection"]) == (2, 31)


def test_json_is_printed_row_by_row_as_it_would_be_as_a_whole(
    captures: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.dumps(diagnosis.diagnose(captures), indent=2) + "\n"
    monkeypatch.setattr(rows, "FEW", 0)
    assert main(["diagnose", *map(str, captures), "--json"]) == 1
    assert capsys.readouterr().out == whole


def test_what_the_agent_says_is_read_line_by_line() -> None:
    said: list[dict[str, Any]] = [
        {"capture": {"file": "x"}},
        {"tap": {"interface": "one"}},
        {"connection": {"connection": 1}},
        {"tap": {"interface": "two"}},
        {"connection": {"connection": 1}},
        {"finding": {"kind": "reset", "connection": None}},
    ]
    with tempfile.TemporaryFile() as file:
        file.write("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in said).encode())
        file.flush()
        capture, taps = rows.read(file)
        assert capture == {"file": "x"}
        assert [tap.words["interface"] for tap in taps] == ["one", "two"]
        assert list(rows.Rows(rows.CONNECTION, taps)) == [
            {"capture": 1, "connection": 1},
            {"capture": 2, "connection": 2},
        ]
        assert list(rows.Rows(rows.FINDING, taps)) == [{"capture": 2, "kind": "reset", "connection": None}]
