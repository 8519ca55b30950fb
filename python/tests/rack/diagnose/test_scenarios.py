"""Captures of a rack whose truth is known: what its ports dropped, and whether Nagle's algorithm was on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers.captures import Captured
from helpers.real import each_level, judged, run, study

from framegauge.agents.pipe import Agent
from framegauge.diagnose import run as diagnosis
from framegauge.results.journal import Run
from framegauge.study.model import Study

ARRIVED, LEFT, DROPPED = (f"switch ports, {side}" for side in ("in", "out", "dropped"))


def captured(agent: Agent, asked: Study, folder: Path) -> list[tuple[Run, dict[str, Any]]]:
    """Every run of a study, with what is found in its capture."""
    folder.mkdir()
    bed = Captured(agent, folder)
    runs = run(agent, asked, folder / "out", bed)
    return [(each, diagnosis.diagnose([path])) for each, path in zip(runs, bed.files, strict=True)]


def at(document: dict[str, Any], tap: str) -> dict[str, Any]:
    """The part of a document that one tap saw."""
    (place,) = (each["capture"] for each in document["captures"] if each["interface"] == tap)
    parts = ("captures", "connections", "findings")
    return {part: [each for each in document[part] if each["capture"] == place] for part in parts}


def resent(document: dict[str, Any]) -> int:
    return sum(sum(each["resent_segments"]) for each in document["connections"])


def kinds(document: dict[str, Any]) -> set[str]:
    return {each["kind"] for each in diagnosis.worth_fixing(document)}


def has_queued(each: Run, seen: dict[str, Any], folder: Path) -> bool:
    """Whether a queue stood before the sender's shaper at any time, by the kernel's own RTTs."""
    place = folder / "out" / "runs" / str(each.number)
    record = json.loads((place / "record.json").read_bytes())
    rtts = [record["workload"]["srtt_median_seconds"]]
    for path in place.glob("samples-*.arrow"):
        with pyarrow.ipc.open_file(path) as samples:
            rtts += samples.read_all()["srtt_seconds"].to_pylist()
    least: float = min(one["rtt_seconds"] for one in seen["connections"])
    return bool(max(rtts) - least > max(1e-3, 4 * least))


@pytest.mark.parametrize("family", [4, 6])
def test_a_clean_transfer_has_nothing_worth_fixing(rack_agent: Agent, tmp_path: Path, family: int) -> None:
    asked = study(family=family, stream={"size": "5 MB", "repeat": "0 s"}, blocks=1)
    (made := tmp_path / "made").mkdir()
    pairs: list[tuple[Run, dict[str, Any]]] = []

    def once() -> list[Run]:
        pairs[:] = captured(rack_agent, asked, made / "clean")
        return [each for each, _ in pairs]

    # A receiver that has no CPU for a while makes the RTT long, and its late answers are resends.
    judged(once, made, each_level)
    for each, document in [pair for pair in pairs if not pair[0].excluded]:
        for tap in (ARRIVED, LEFT):
            seen = at(document, tap)
            allowed = {
                "short_flow_slow_start",
                *(["bufferbloat"] if has_queued(each, seen, made / "clean") else []),
            }
            assert kinds(seen) <= allowed, (each.level, tap, seen["findings"])
            (transfer,) = (one for one in seen["connections"] if max(one["bytes"]) >= 5_000_000)
            # With the greeting of the generator and its answer.
            assert sorted(transfer["bytes"]) == [8, 5_000_048]
            assert resent(seen) == 0


def test_what_a_port_dropped_is_what_was_sent_again(rack_agent: Agent, tmp_path: Path) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 5, "link": {"rate": "200 Mb/s", "buffer": "64 KiB"}}
    asked = study(stream={"size": "5 MB", "repeat": "0 s", "pattern": "many-to-one"}, blocks=1, testbed=bed)
    for each, document in captured(rack_agent, asked, tmp_path / "drops"):
        dropped = sum(sum(one["data_segments"]) for one in at(document, DROPPED)["connections"])
        assert dropped > 20, each.level
        spurious = sum(one["count"] for one in document["findings"] if one["kind"] == "spurious_retransmit")
        # Every dropped segment was sent again, and little else.
        assert dropped <= resent(at(document, ARRIVED)) <= 1.1 * dropped + spurious
        assert "fast_retransmit" in kinds(at(document, ARRIVED))
