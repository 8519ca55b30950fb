"""Who the few are at a receiver's last switch, in the networks of published experiments."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from framegauge.networks import topologies
from framegauge.networks.entrances import FEW, MANY, MID, Entrance, entrances, groups


def found(topology: Mapping[str, object], count: int, receiver: str) -> dict[str, Entrance]:
    hosts = [f"h{number}" for number in range(1, count + 1)]
    links = [(one, other, f"{one}>{other}") for one, other in topologies.directed(topology, hosts)]
    return entrances(links, hosts, receiver)


def named(flows: Mapping[str, int], ways: Mapping[str, Entrance]) -> dict[str, tuple[list[str], int]]:
    return {each.name: (list(each.senders), each.flows) for each in groups(flows, ways)}


FAT_TREE = {"kind": "fat-tree", "k": 4}
TWO = {
    "kind": "custom", "switches": ["far", "near"],
    "links": [*([f"h{number}", "far"] for number in range(1, 13)), ["far", "near"], ["h13", "near"], ["h14", "near"]],
}  # fmt: skip


def test_in_a_fat_tree_they_are_at_the_receivers_own_switch() -> None:
    ways = found(FAT_TREE, 16, "h16")
    assert ways["h15"] == Entrance(frozenset({"h15>edge4-2"}), 2)
    both = frozenset({"aggregation4-1>edge4-2", "aggregation4-2>edge4-2"})
    assert ways["h13"] == Entrance(both, 4)
    assert ways["h1"] == Entrance(both, 6)
    assert named({f"h{number}": 1 for number in range(1, 16)}, ways) == {
        FEW: (["h15"], 1),
        MID: (["h13", "h14"], 2),
        MANY: ([f"h{number}" for number in range(1, 13)], 12),
    }


def test_with_equally_long_paths_they_are_those_of_the_host_with_fewer() -> None:
    ways = found(FAT_TREE, 16, "h16")
    assert named({"h13": 12, "h14": 1}, ways) == {FEW: (["h14"], 1), MANY: (["h13"], 12)}


def test_behind_one_port_all_belong_together() -> None:
    ways = found(TWO, 14, "h14")
    everybody = {f"h{number}": 1 for number in range(1, 14)}
    assert named(everybody, ways) == {FEW: (["h13"], 1), MANY: ([f"h{number}" for number in range(1, 13)], 12)}
    assert named(everybody | {"h13": 24}, ways)[FEW] == ([f"h{number}" for number in range(1, 13)], 12)
    assert named({"h1": 12, "h2": 1}, ways) == {}  # flow counts differ, and no port tells them apart


def test_three_inputs_have_few_mid_and_many() -> None:
    ways = found({"kind": "rack"}, 5, "h5")
    assert named({"h1": 1, "h2": 6, "h3": 12}, ways) == {FEW: (["h1"], 1), MID: (["h2"], 6), MANY: (["h3"], 12)}
    assert named({"h1": 1, "h2": 1, "h3": 12}, ways) == {FEW: (["h1", "h2"], 2), MANY: (["h3"], 12)}


def test_equal_numbers_have_no_few_and_unknown_hosts_no_answer() -> None:
    ways = found({"kind": "rack"}, 4, "h4")
    assert named({"h1": 2, "h2": 2, "h3": 2}, ways) == {}
    assert named({"h1": 1, "h9": 2}, ways) == {}
    assert found({"kind": "rack"}, 4, "h9") == {}


def test_second_nics_and_hosts_forward_nothing() -> None:
    """h2 has a NIC at either switch; between the switches frames go by the trunk alone."""
    links = [
        ("h1", "far"), ("h2.1", "far"), ("h2.2", "near"), ("far", "near"), ("h3", "near"), ("h4", "near"),
    ]  # fmt: skip
    both = [(one, other, f"{one}>{other}") for way in links for one, other in (way, way[::-1])]
    ways = entrances(both, ["h1", "h2", "h3", "h4"], "h4")
    assert {host: sorted(each.ports) for host, each in ways.items()} == {
        "h1": ["far>near"], "h2": ["far>near"], "h3": ["h3>near"],
    }  # fmt: skip
    assert named({"h1": 1, "h2": 1, "h3": 1}, ways) == {FEW: (["h3"], 1), MANY: (["h1", "h2"], 2)}


@pytest.mark.parametrize("k", [4, 6])
def test_paths_of_a_fat_tree_enter_by_every_aggregation_switch(k: int) -> None:
    count = k**3 // 4
    ways = found({"kind": "fat-tree", "k": k}, count, f"h{count}")
    assert {len(each.ports) for each in ways.values() if each.hops > 2} == {k // 2}
    assert sum(each.hops == 2 for each in ways.values()) == k // 2 - 1
