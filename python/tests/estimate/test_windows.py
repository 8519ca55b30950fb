"""What senders leave unknown: windows that are too small for larger segments, data both ways, what was sent again."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.estimate.packets import Way, predict
from framegauge.estimate.windows import Narrow, again_share, both_ways, narrow, senders

OLD, NEW = 1448, 8948
HERE, THERE = "192.0.2.1:5000", "192.0.2.2:40000"


def connection(local: str = HERE, remote: str = THERE, **more: Any) -> dict[str, Any]:
    """One that sent 1,000 segments in a second over a round trip of 10 ms: 14 kB under way."""
    return {
        "local": local, "remote": remote, "mss_bytes": OLD, "srtt_seconds": 0.01, "busy_seconds": 1.0,
        "receiver_limited_seconds": 0.9, "sent_bytes": 1000 * OLD, "received_bytes": 0, "retransmitted_bytes": 0,
        "data_segments_sent": 1000, "data_segments_received": 0, **more,
    }  # fmt: skip


def readings(*connections: dict[str, Any]) -> dict[str, Any]:
    return {"connections": list(connections)}


def test_a_window_of_few_larger_segments_makes_them_a_quarter_of_it_at_least() -> None:
    known = senders([readings(connection())])
    assert narrow(readings(connection()), known, "sent", OLD, NEW) == Narrow(1.0, pytest.approx(14_480 / 4))
    assert narrow(readings(connection()), known, "received", OLD, NEW) is None
    # At the other end it is what is received, and at an MTU that the window has room for it counts for nothing.
    other = connection(THERE, HERE, data_segments_sent=0, data_segments_received=1000)
    assert narrow(readings(other), known, "received", OLD, NEW) == Narrow(1.0, pytest.approx(14_480 / 4))
    assert narrow(readings(connection()), known, "sent", OLD, 3000) is None


def test_a_sender_with_another_limit_says_nothing_of_windows() -> None:
    known = senders([readings(connection(receiver_limited_seconds=0.05))])
    assert narrow(readings(connection()), known, "sent", OLD, NEW) is None
    known = senders([readings(connection(srtt_seconds=0.04))])
    assert narrow(readings(connection()), known, "sent", OLD, NEW) is None


def test_segments_in_small_windows_may_be_as_many_as_their_bytes_say() -> None:
    data, left = {OLD: 1000, 100: 1}, {NEW: (0.16, 0.16, 0.16)}
    there, back = Way(data, narrow={NEW: Narrow(0.5, 2 * OLD)}), Way({0: 500}, left=left)
    found, wide = predict(there, back, OLD, NEW), predict(Way(data), back, OLD, NEW)
    assert found.least == wide.least
    # Half of them as 500 segments, and of all 331 half as many acknowledgements more as there are segments to be.
    assert wide.most == pytest.approx(162 + 80, abs=1)
    assert found.most == pytest.approx((162 + 501) / 2 + 80 + (331 - 80) / 2, abs=2)


def test_acknowledgements_of_data_both_ways_may_all_go_with_it_or_none() -> None:
    left = {NEW: (0.15, 0.15, 0.15)}
    both = Way({OLD: 6180, 100: 1, 0: 3000}, left=left, mutual=1.0)
    found = predict(both, both, OLD, NEW)
    assert found.least == pytest.approx(2 * 1001, rel=0.01)
    assert found.most == pytest.approx(4 * 1001, rel=0.01)


def test_the_share_of_data_both_ways_is_that_of_what_passes_as_much_the_other_way() -> None:
    def side(segments: int, messages: int) -> dict[str, int]:
        return {"segments": segments, "messages": messages}

    def sampled(sent: dict[str, int], received: dict[str, int]) -> list[dict[str, Any]]:
        return [{"full_bytes": OLD, "sent": sent, "received": received}]

    assert both_ways(sampled(side(1001, 1), side(1001, 1)), OLD) == pytest.approx(1.0, rel=0.01)
    assert both_ways(sampled(side(1001, 1), side(10, 5)), OLD) < 0.01
    assert both_ways(sampled(side(1000, 100), side(100, 100)), OLD) == 0.0
    assert both_ways([], OLD) == 0.0
    # A connection whose full segments were of this size before, and are smaller now.
    assert both_ways(sampled(side(1001, 1), side(1001, 1)), OLD + 12) == pytest.approx(1.0, rel=0.01)


def test_what_either_end_sent_again_counts() -> None:
    mine, other = connection(retransmitted_bytes=1448), connection(THERE, HERE, retransmitted_bytes=2896)
    assert again_share(readings(mine), senders([readings(mine), readings(other)])) == pytest.approx(3 / 1000)
    assert again_share(readings(mine), senders([readings(mine)])) == pytest.approx(1 / 1000)
    assert again_share(readings(), {}) == 0.0
