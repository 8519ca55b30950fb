"""The account of what data frames carry tells options from bytes that nobody counted."""

from __future__ import annotations

import pytest
from helpers.wire import counted_exactly

from framegauge.testbeds.base import Json

FRAMES, COUNTED = 6802, 9_411_264


def record(**again: int) -> Json:
    hosts = {name: {"nstat": {"TcpRetransSegs": 7}} for name in ("h1", "h3")}
    after = {name: {"nstat": {"TcpRetransSegs": 7 + again.get(name, 0)}} for name in hosts}
    return {"counters_before": hosts, "counters_after": after}


@pytest.mark.parametrize(
    ("again", "surplus", "more", "expected"),
    [
        ({}, 0, 0, True), ({}, 1, 0, False), ({}, -1, 0, False), ({}, 944, 944, True), ({}, 945, 944, False),
        # A peer sent a segment twice, and three frames say so, in 12 bytes each.
        ({"h1": 1}, 36, 0, True), ({"h1": 1}, -1, 0, False), ({"h1": 1}, 28 * FRAMES + 1, 0, False),
        ({"h3": 1}, 1448, 0, True),
    ],
)  # fmt: skip
def test_only_options_and_what_was_sent_again_are_more_than_counted(
    again: dict[str, int], surplus: int, more: int, expected: bool
) -> None:
    host = {"host": "h3", "data_frames": FRAMES, "data_frame_bytes": 70 * FRAMES + COUNTED + surplus}
    assert counted_exactly(record(**again), host, COUNTED, more) is expected
