"""How much a workload does, as people read it."""

from __future__ import annotations

from framegauge.summary import words


def test_traffic_is_said_and_told_apart() -> None:
    assert words.conditions({"unit_bytes": 256_000, "servers": 8, "rounds": 20}) == "unit 256 kB, 8 servers"
    assert words.condition("servers", 1) == "1 server"
    assert [words.condition("users", count) for count in (1, 20)] == ["1 user", "20 users"]
    assert [words.condition("rate_per_second", rate) for rate in (None, 200.0)] == ["closed loop", "200/s"]
    assert words.condition("mean_think_seconds", 0.1) == "think 100 ms"
    assert words.conditions({"flow_sizes": "web-search", "load": 0.5}) == "flows web-search, load 0.5"
    assert words.conditions({"size_bytes": 1_000_000, "at_once": 5}) == "1 MB, 5 at once"
    assert words.conditions({"size_bytes": 1_000_000, "reduces": 1}) == "1 MB, 1 reducer"
    assert words.conditions({"size_bytes": 1_000_000, "reduces": 16}) == "1 MB, 16 reducers"
    cells = [{"workload": "incast", "conditions": {"block_bytes": 10**6, "servers": count}} for count in (2, 4)]
    found = words.Cells(cells)
    assert [found.name(each) for each in cells] == ["2 servers", "4 servers"]
    assert found.common == "incast, block 1 MB"


def test_what_is_counted_is_said_in_plain_english() -> None:
    said = {
        "flows": ("1 flow", "4 flows"), "connections": ("1 connection", "4 connections"),
        "upload_flows": ("1 upload flow", "4 upload flows"), "bulk_flows": ("1 bulk flow", "4 bulk flows"),
        "bulk_hosts": ("1 bulk host", "4 bulk hosts"), "hosts": ("1 host", "4 hosts"), "nics": ("1 NIC", "4 NICs"),
        "browser_connections": ("1 connection per browser", "4 connections per browser"), "copies": ("1 copy", "4 copies"),
    }  # fmt: skip
    for name, texts in said.items():
        assert tuple(words.condition(name, count) for count in (1, 4)) == texts
    assert words.condition("flows", None) == "flows -"
    assert words.levels({"nics": 2, "mtu": 9000, "estimate": 1.0}) == "2 NICs, MTU 9000"
    assert words.subject({"flows": 1}) == "1 flow"


def test_a_replay_is_said() -> None:
    given = {"recording": "flows", "copies": 1, "speed": 2.0, "ends": "spread"}
    assert words.conditions(given) == "recording flows, 1 copy, speed 2, ends spread"
    assert words.condition("copies", 6) == "6 copies"


def test_what_is_done_to_storage_is_said() -> None:
    given = {
        "operation": "write", "access": "random", "block_bytes": 65_536, "depth": 4, "rate_per_second": 40.0,
        "replication": 3, "store": "memstore", "storage_network": True,
    }  # fmt: skip
    assert words.conditions(given) == (
        "block 64 KiB, 40/s, random write, depth 4, replication 3, memstore, storage network"
    )


def test_senders_are_said() -> None:
    assert (
        words.condition("senders", {f"h{number}": 1 for number in range(1, 13)} | {"h13": 2})
        == "from h1 to h12, h13 x2"
    )
    assert words.condition("senders", {"h1": 1, "h9": 12}) == "from h1, h9 x12"
    assert words.condition("senders", {"h1": 3, "h2": 3, "h3": 1, "a": 1}) == "from h1, h2 x3 each, h3, a"
    given = {"duration_seconds": 2.0, "senders": {"h1": 1, "h2": 12}, "receiver": "h4", "few": "h1"}
    assert words.conditions(given) == "2 s, from h1, h2 x12, to h4, few h1"
