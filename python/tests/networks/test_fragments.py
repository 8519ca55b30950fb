"""How many packets a datagram takes: known answers, and the law."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from framegauge.networks.fragments import fragments


@pytest.mark.parametrize(
    ("payload", "mtu", "family", "count"),
    [
        # The published datagram of 8 KiB, and its neighbours: a fragment has a multiple of 8 bytes (RFC 791).
        (8320, 1500, 4, 6), (8320, 4352, 4, 2), (8320, 9000, 4, 1), (8872, 1500, 4, 6), (8873, 1500, 4, 7),
        (1472, 1500, 4, 1), (1473, 1500, 4, 2), (0, 1500, 4, 1), (8972, 9000, 4, 1), (8973, 9000, 4, 2),
        # 4352 - 20 is no multiple of 8: 4328 bytes a fragment.
        (8648, 4352, 4, 2), (8649, 4352, 4, 3),
        # With a fragment header of 8 bytes beside IPv6's 40: 1448 a fragment.
        (1452, 1500, 6, 1), (1453, 1500, 6, 2), (2888, 1500, 6, 2), (2889, 1500, 6, 3),
    ],
)  # fmt: skip
def test_fragments_are_those_of_rfc_791_and_rfc_8200(payload: int, mtu: int, family: int, count: int) -> None:
    assert fragments(payload, mtu, family) == count


@given(strategies.integers(0, 65_507), strategies.integers(576, 9216))
def test_fragments_hold_the_datagram_and_one_fewer_would_not(payload: int, mtu: int) -> None:
    count, room = fragments(payload, mtu), mtu - 20
    assert count * room >= payload + 8
    assert count == 1 or (count - 1) * (room // 8 * 8) < payload + 8
