"""Whatever breaks at whichever moment of a roll-out, all hosts are back in time, or it is finished (bench/hosts)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers.support import bench, by_length

chaos = bench("hosts.chaos_rollout")
LEASE_SECONDS = 6.0
BUSY_SECONDS = 20.0  # that a machine may take which does much else


@pytest.mark.needs("dnsmasq", "busybox")
@pytest.mark.soak(47)
@pytest.mark.parametrize("kind", by_length(("host rebooted", "host cut off"), chaos.KINDS))
def test_whatever_breaks_all_are_back_or_it_is_finished(tmp_path: Path, kind: str) -> None:
    for number in range(by_length(1, 50)):
        folder = tmp_path / str(number)
        folder.mkdir()
        draw = random.Random(f"{kind} {number}")
        seen = chaos.once(folder, kind, draw, LEASE_SECONDS, by_length(3, 8), by_length(1.5, 6.0))
        assert seen.end in ("old", "finished", "held"), (number, seen)
        assert seen.back_seconds < LEASE_SECONDS + BUSY_SECONDS, (number, seen)
        assert seen.lost_seconds < LEASE_SECONDS + BUSY_SECONDS, (number, seen)
