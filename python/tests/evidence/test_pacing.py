"""Proof of pacing: what the live sockets said, and what flows delivered."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from framegauge.evidence.pacing import pacing_failures
from framegauge.experiment.planning import conditions_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.testbeds.base import Conditions
from framegauge.workloads.sockets import ahead_of

STUDY = """
testbed: {kind: fake}
factors: {mtu: [1500, 9000], pacing: LEVEL}
workloads: [{stream: {size: 10 MB}}]
margins: {goodput: 2 %}
"""


def conditions(level: str) -> Conditions:
    study = study_file.parse(STUDY.replace("LEVEL", level), "study.yaml")
    return conditions_of(study, block_order(study, 0)[0])


def failures(level: str, **workload: Any) -> list[str]:
    return list(pacing_failures(conditions(level), {"workload": workload}))


@pytest.mark.parametrize(
    ("level", "read"), [("off", None), ("on", 10_000_000_000_000), ("75 Mb/s", 75_000_000), ("8009 b/s", 8008)]
)
def test_sockets_as_requested_are_no_failure(level: str, read: int | None) -> None:
    assert failures(level, pacing={"h1": [read], "h2": [read]}, ahead_bytes=None) == []


@pytest.mark.parametrize(
    ("level", "read", "said"),
    [
        ("off", [75_000_000], "requested none, found 75 Mb/s"),
        ("on", [None], "requested 10 Tb/s, found none"),
        ("75 Mb/s", [75_000_000, None], "requested 75 Mb/s, found 75 Mb/s, none"),
        ("75 Mb/s", [], "requested 75 Mb/s, found none read"),
    ],
)
def test_sockets_that_were_paced_otherwise_are_named(level: str, read: list[int | None], said: str) -> None:
    assert failures(level, pacing={"h1": read}) == [f"pacing of live sockets on h1: {said}"]


def test_readings_are_expected() -> None:
    (line,) = failures("off", pacing={})
    assert line == "pacing of live sockets: not read, expected readings of all sending ends"


def test_a_flow_beyond_its_rate_is_named() -> None:
    """10 segments at the start, and an aggregate ahead."""
    most = 10 * max(conditions("75 Mb/s").mtu.values()) + 65_536
    assert failures("75 Mb/s", pacing={"h1": [75_000_000]}, ahead_bytes=most) == []
    (line,) = failures("75 Mb/s", pacing={"h1": [75_000_000]}, ahead_bytes=most + 1)
    assert line == f"bytes that a flow delivered before its rate allows them: expected at most {most}, found {most + 1}"


def test_what_is_ahead_counts_from_the_handshake() -> None:
    columns = {"connected_seconds": [0.5, 0.5], "counted_seconds": [1.5, 2.5], "counted_bytes": [2_000_000, 1_000_000]}
    assert ahead_of(8_000_000, pa.table(columns)) == [1_000_000, -1_000_000]
    assert ahead_of(None, pa.table(columns)) == []
