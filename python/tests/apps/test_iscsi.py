"""The disk of the workload `iscsi`: its store, and where its clients read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from framegauge.apps.course import Course, counted, packets
from framegauge.apps.iscsi import PAGE_BYTES, SECTOR_BYTES
from framegauge.apps.iscsi.client import Asked, sectors
from framegauge.apps.iscsi.store import PIECE_PAGES, available_bytes, make, number_at

BLOCK = 8192
STEP = BLOCK // SECTOR_BYTES


def asked(access: str, place: int = 0, clients: int = 1, blocks: int = 8, seed: int = 1) -> Asked:
    return Asked("h2:3260", "read", access, BLOCK, blocks * BLOCK, 4, None, 1.0, seed, place, clients)


def test_each_page_of_the_store_begins_with_its_number(tmp_path: Path) -> None:
    pages = PIECE_PAGES + 3
    make(tmp_path / "disk", pages * PAGE_BYTES)
    data = (tmp_path / "disk").read_bytes()
    assert len(data) == pages * PAGE_BYTES
    assert [number_at(data[at : at + 8]) for at in range(0, len(data), PAGE_BYTES)] == list(range(pages))
    assert (tmp_path / "disk").stat().st_blocks * 512 >= len(data)


def test_a_store_for_which_there_is_no_room_is_refused_before_it_is_written(tmp_path: Path) -> None:
    room = available_bytes(tmp_path)
    asked_for = (room // PAGE_BYTES + 2**28) * PAGE_BYTES
    with pytest.raises(OSError, match=rf"^size: found room for \d+ bytes in memory, expected {asked_for} bytes$"):
        make(tmp_path / "disk", asked_for)
    assert not (tmp_path / "disk").exists()


def test_clients_read_block_after_block_from_their_own_parts_on() -> None:
    first = list(islice(sectors(asked("sequential", 0, 2)), 10))
    second = list(islice(sectors(asked("sequential", 1, 2)), 10))
    assert first == [each * STEP for each in (0, 1, 2, 3, 4, 5, 6, 7, 0, 1)]
    assert second == [each * STEP for each in (4, 5, 6, 7, 0, 1, 2, 3, 4, 5)]


def test_random_blocks_are_whole_everywhere_and_the_same_for_a_seed() -> None:
    found = list(islice(sectors(asked("random")), 400))
    assert found == list(islice(sectors(asked("random")), 400))
    assert found != list(islice(sectors(asked("random", seed=2)), 400))
    assert set(found) == {each * STEP for each in range(8)}


DEVICES = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    5000      50    0    0    0     0          0         0     5000      50    0    0    0     0       0          0
  eth0: 1234567     700    0    0    0     0          0         0    89012      45    0    0    0     0       0          0
  eth1:     100       3    0    0    0     0          0         0      200       4    0    0    0     0       0          0
"""


def test_packets_are_those_of_all_interfaces_but_the_loopback() -> None:
    assert counted(DEVICES.splitlines()) == 700 + 45 + 3 + 4
    assert packets() >= 0


def test_answers_are_counted_in_windows_and_the_longest_gaps_are_kept() -> None:
    course = Course(count=iter(range(0, 1000, 10)).__next__)
    course.begin(100.0)
    for at in (100.01, 100.02, 100.06, 100.2):
        course.look(at)
        course.answered(at, 0.005)
    found = course.as_json()
    assert found["answered"] == [2, 1, 0, 0, 1]
    assert found["latency_seconds"] == pytest.approx([0.01, 0.005, 0, 0, 0.005])
    assert found["gaps"][0] == {"begun_seconds": 100.06, "seconds": pytest.approx(0.14)}
    assert found["packets"] == [[0, 0], [pytest.approx(0.06), 10], [pytest.approx(0.2), 20]]
