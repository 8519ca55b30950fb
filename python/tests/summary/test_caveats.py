"""Connections that stood when an MTU was raised: which they are, and what is said of them."""

from __future__ import annotations

from framegauge.results.runs import Run
from framegauge.summary.caveats import caveats as all_caveats, old_connections as caveats
from framegauge.testbeds import ssh


def socket(local: str, remote: str, state: str = "established", mss: int | None = 1448) -> dict[str, object]:
    return {"local": local, "remote": remote, "state": state, "mss_bytes": mss}


def test_only_those_at_the_address_that_stand() -> None:
    sockets = [
        socket("10.0.0.1:22", "10.0.0.9:4000"),
        socket("[::ffff:10.0.0.1]:5432", "[::ffff:10.0.0.2]:4001"),
        socket("10.0.0.1:80", "10.0.0.2:4002", state="time-wait"),
        socket("127.0.0.1:22", "127.0.0.1:4000"),
        socket("[fd00::1]:22", "[fd00::9]:4000", mss=1428),
    ]
    found = ssh.old_connections(sockets, "10.0.0.1")
    assert [each["local"] for each in found["connections"]] == ["10.0.0.1:22", "[::ffff:10.0.0.1]:5432"]
    assert ssh.old_connections(sockets, "fd00::1") == {
        "count": 1, "connections": [{"local": "[fd00::1]:22", "remote": "[fd00::9]:4000", "mss_bytes": 1428}],
    }  # fmt: skip
    assert ssh.old_connections([], "10.0.0.1") == {"count": 0, "connections": []}


def test_many_are_counted_and_a_few_named() -> None:
    many = ssh.old_connections([socket("10.0.0.1:80", f"10.0.0.2:{4000 + each}") for each in range(30)], "10.0.0.1")
    assert (many["count"], len(many["connections"])) == (30, ssh.MOST_LISTED)
    few = ssh.old_connections([socket("10.0.0.1:22", "10.0.0.9:4000")], "10.0.0.1")
    none = ssh.old_connections([], "10.0.0.1")
    runs = [{}, {"old_connections": {"a": few}}, {"old_connections": {"a": many, "b": none}}]
    assert list(caveats(runs)) == [
        "a: 30 connections were open when the MTU was raised; they keep their segment size until they are reopened: "
        "10.0.0.1:80 to 10.0.0.2:4000 (1448 B), 10.0.0.1:80 to 10.0.0.2:4001 (1448 B), "
        "10.0.0.1:80 to 10.0.0.2:4002 (1448 B) and 27 more"
    ]
    assert list(caveats([{"old_connections": {"a": few}}])) == [
        "a: 1 connection was open when the MTU was raised; it keeps its segment size until it is reopened: "
        "10.0.0.1:22 to 10.0.0.9:4000 (1448 B)"
    ]


def test_the_few_at_several_mtus_need_hosts_that_take_time() -> None:
    def runs(levels: list[object], metric: str = "share_of_few", **readings: object) -> list[Run]:
        return [
            Run(place, 0, 0, str(level), "treatment", level, 0, "stream", {}, {metric: 1.0}, [], readings)
            for place, level in enumerate(levels)
        ]

    (line,) = all_caveats([], "simulated", runs([1500, 9000]))
    assert "the share of the few at different MTUs depends on what hosts take" in line
    assert all_caveats([], "simulated", runs([1500, 9000], busiest_core_share=0.2)) == []
    assert all_caveats([], "emulated", runs([1500, 9000])) == []
    assert all_caveats([], "simulated", runs(["taildrop", "sfq"])) == []
    assert all_caveats([], "simulated", runs([1500, 9000], metric="goodput")) == []
