"""How much a workload does, as people read it."""

from __future__ import annotations

from framegauge.summary import words


def test_traffic_is_said_and_told_apart() -> None:
    assert words.conditions({"unit_bytes": 256_000, "servers": 8, "rounds": 20}) == "unit 256 kB, 8 servers"
    assert words.condition("servers", 1) == "1 server"
    assert [words.condition("users", count) for count in (1, 20)] == ["1 user", "20 users"]
    assert words.condition("mean_think_seconds", 0.1) == "think 100 ms"
    assert words.conditions({"flow_sizes": "web-search", "load": 0.5}) == "flows web-search, load 0.5"
    assert words.conditions({"size_bytes": 1_000_000, "at_once": 5}) == "1 MB, 5 at once"
    cells = [{"workload": "incast", "conditions": {"block_bytes": 10**6, "servers": count}} for count in (2, 4)]
    found = words.Cells(cells)
    assert [found.name(each) for each in cells] == ["2 servers", "4 servers"]
    assert found.common == "incast, block 1 MB"


def test_a_replay_is_said() -> None:
    given = {"recording": "flows", "copies": 1, "speed": 2.0, "ends": "spread"}
    assert words.conditions(given) == "recording flows, 1 copy, speed 2, ends spread"
    assert words.condition("copies", 6) == "6 copies"
