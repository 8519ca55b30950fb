"""The networks that a rack can be: numbers of nodes and links by formula, and what overrides say of a link."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framegauge import topologies


def names(count):
    return [f"h{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_a_fat_tree_has_the_numbers_of_its_paper(k):
    # Al-Fares and others 2008, section 2.2: k^3/4 hosts; k^2/2 edge, k^2/2 aggregation and k^2/4 core switches, all with k
    # ports. Links: a third each to hosts, within pods and to cores.
    hosts = names(k**3 // 4)
    links = topologies.drawn_links({"kind": "fat-tree", "k": k}, hosts)
    switches = topologies.switches(links, hosts)
    kinds = Counter(name.rstrip("0123456789-") for name in switches)
    assert kinds == {"edge": k * k // 2, "aggregation": k * k // 2, "core": k * k // 4}
    assert len(links) == len(set(links)) == 3 * k**3 // 4
    ports = Counter(node for link in links for node in link)
    assert {ports[name] for name in switches} == {k}
    assert {ports[name] for name in hosts} == {1}
    assert topologies.joined(links, "h1") == {*hosts, *switches}


def test_hosts_of_a_fat_tree_sit_in_order_and_each_core_reaches_every_pod_once():
    links = topologies.drawn_links({"kind": "fat-tree", "k": 4}, names(16))
    assert links[:5] == [("h1", "edge1-1"), ("h2", "edge1-1"), ("h3", "edge1-2"), ("h4", "edge1-2"), ("h5", "edge2-1")]
    for core in range(1, 5):
        # Cores 1 and 2 are those of the first aggregation switches, 3 and 4 of the second.
        number = 1 if core <= 2 else 2
        assert [one for one, other in links if other == f"core{core}"] == [
            f"aggregation{pod}-{number}" for pod in (1, 2, 3, 4)
        ]


def test_a_leaf_spine_joins_every_leaf_with_every_spine():
    links = topologies.drawn_links({"kind": "leaf-spine", "leaves": 3, "spines": 2}, names(6))
    assert links == [
        ("h1", "leaf1"), ("h2", "leaf1"), ("h3", "leaf2"), ("h4", "leaf2"), ("h5", "leaf3"), ("h6", "leaf3"),
        ("leaf1", "spine1"), ("leaf1", "spine2"), ("leaf2", "spine1"), ("leaf2", "spine2"), ("leaf3", "spine1"),
        ("leaf3", "spine2"),
    ]  # fmt: skip


def test_a_dumbbell_has_one_link_in_the_middle():
    assert topologies.drawn_links({"kind": "dumbbell", "left": 1}, names(3)) == [
        ("h1", "left"), ("h2", "right"), ("h3", "right"), ("left", "right"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("topology", "hosts", "choice"),
    [
        ({"kind": "rack"}, 5, False),
        ({"kind": "dumbbell", "left": 2}, 4, False),
        ({"kind": "leaf-spine", "leaves": 2, "spines": 1}, 4, False),
        ({"kind": "leaf-spine", "leaves": 2, "spines": 2}, 4, True),
        # k 2: two pods of one edge and one aggregation switch, one core: a chain.
        ({"kind": "fat-tree", "k": 2}, 2, False),
        ({"kind": "fat-tree", "k": 4}, 16, True),
        ({"kind": "custom", "links": [["h1", "a"], ["h2", "b"], ["a", "b"]]}, 2, False),
        ({"kind": "custom", "links": [["h1", "a"], ["h2", "b"], ["a", "b"], ["a", "b"]]}, 2, True),
    ],
)
def test_there_is_a_choice_of_paths_where_links_close_a_loop(topology, hosts, choice):
    assert topologies.has_choice(topologies.drawn_links(topology, names(hosts))) is choice


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [("h*", "h12", True), ("h*", "edge1-1", False), ("*", "x", True), ("edge*-1", "edge3-1", True),
     ("edge*-1", "edge3-12", False), ("h1", "h12", False), ("h.", "h1", False), ("*1*", "edge1-2", True)],
)  # fmt: skip
def test_a_star_stands_for_any_characters_and_nothing_else_does(pattern, name, found):
    assert topologies.matches(pattern, name) is found


def test_later_overrides_go_before_earlier_ones_key_by_key():
    overrides = [
        {"from": "*", "to": "h1", "skew_ppm": 125, "loss": 0.5},
        {"from": "switch", "to": "h*", "loss": 0.001},
    ]
    assert topologies.setting(overrides, "switch", "h1") == {"skew_ppm": 125, "loss": 0.001}
    assert topologies.setting(overrides, "switch", "h2") == {"loss": 0.001}
    assert topologies.setting(overrides, "h1", "switch") == {}


@pytest.mark.parametrize(
    ("rate", "ppm", "found"),
    # 5 b/s and a tenth are 5.5: halves up.
    [
        (10**9, 125, 1_000_125_000),
        (10**9, -125, 999_875_000),
        (10**8, 0, 10**8),
        (5, 100_000, 6),
        (3, 100_000, 3),
    ],
)
def test_skew_is_in_whole_bits_a_second(rate, ppm, found):
    assert topologies.skewed(rate, ppm) == found


@given(st.integers(2, 30), st.integers(1, 29))
def test_both_ways_of_every_link_are_ports(hosts, left):
    topology = {"kind": "dumbbell", "left": min(left, hosts - 1)}
    links = topologies.drawn_links(topology, names(hosts))
    ways = topologies.directed(topology, names(hosts))
    assert len(ways) == 2 * len(links) == 2 * (hosts + 1)
    assert set(ways) == {*links, *((other, one) for one, other in links)}
