"""The networks that a rack can be: numbers of nodes and links by formula, and what overrides say of a link."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from framegauge.networks import topologies


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
        ({"kind": "rack", "nics": 2}, 3, False),
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


def test_nodes_with_several_links_have_numbered_ends():
    # In the order of links; of switches and of nodes with one link the end is the node.
    links = [["h1", "a"], ["a", "r1"], ["r1", "b"], ["h2", "b"], ["h1", "b"], ["a", "b"]]
    topology = {"kind": "custom", "routers": [{"name": "r1"}], "links": links}
    drawn = topologies.drawn_links(topology, names(2))
    assert drawn == [("h1.1", "a"), ("a", "r1.1"), ("r1.2", "b"), ("h2", "b"), ("h1.2", "b"), ("a", "b")]
    assert topologies.directed(topology, names(2))[2:4] == [("a", "r1.1"), ("r1.1", "a")]
    assert topologies.switches(drawn, ["h1", "h2", "r1"]) == ["a", "b"]
    assert [topologies.ends_of(drawn, node) for node in ("h1", "h2", "r1", "a", "r2")] == [
        ["h1.1", "h1.2"], ["h2"], ["r1.1", "r1.2"], ["a"], [],
    ]  # fmt: skip
    assert [topologies.node_of(end) for end in ("h1.2", "h2", "r1.1", "edge1-1")] == ["h1", "h2", "r1", "edge1-1"]
    assert topologies.drawn_links({"kind": "rack", "nics": 2}, names(2)) == [
        ("h1.1", "switch"), ("h1.2", "switch"), ("h2.1", "switch"), ("h2.2", "switch"),
    ]  # fmt: skip


def test_leaves_make_no_choice_of_paths():
    # a and b are joined by r1 and by r2, and by h1's two NICs: to switches each of them is an end, and the links are a tree.
    links = [["h1", "a"], ["h1", "b"], ["h2", "a"], *([side, router] for side in "ab" for router in ("r1", "r2"))]
    topology = {"kind": "custom", "routers": [{"name": "r1"}, {"name": "r2"}], "links": links}
    drawn = topologies.drawn_links(topology, names(2))
    assert not topologies.has_choice(drawn)
    assert topologies.segments(drawn) == [{"h1.1", "a", "h2", "r1.1", "r2.1"}, {"h1.2", "b", "r1.2", "r2.2"}]
    # Two links between switches of one segment are a choice there.
    both = {**topology, "links": [*links, ["a", "c"], ["a", "c"]]}
    assert topologies.has_choice(topologies.drawn_links(both, names(2)))


def test_packets_take_the_fewest_routers_and_of_as_few_the_first():
    # A ring: a r1 b r2 c r3 d r4 a. From a to c there are two ways of two routers.
    links = [["h1", "a"], ["h2", "b"], ["h3", "c"], ["h4", "d"], ["a", "r1"], ["r1", "b"], ["b", "r2"], ["r2", "c"]]
    links += [["c", "r3"], ["r3", "d"], ["d", "r4"], ["r4", "a"]]
    drawn = topologies.numbered([(one, other) for one, other in links], {f"r{number}" for number in range(1, 5)})
    ways = topologies.Ways(drawn, ["r1", "r2", "r3", "r4"])
    assert [ways.routers("h1", other) for other in ("h1", "h2", "h3", "h4")] == [[], ["r1"], ["r1", "r2"], ["r4"]]
    assert (ways.routers("h3", "h1"), ways.routers("a", "h3")) == (["r2", "r1"], ["r1", "r2"])
    assert topologies.Ways(drawn, ["r4", "r3", "r2", "r1"]).routers("h1", "h3") == ["r4", "r3"]
    # A router that leads nowhere near is none.
    assert topologies.Ways(drawn, ["r1"]).routers("h1", "h3") is None


def test_second_nics_on_the_same_wires_are_in_a_subnet_of_their_own():
    # h1 has both on a; h2 has one on a and one on b, h3 both on b; r1 joins a and b.
    links = [["h1", "a"], ["h1", "a"], ["h2", "a"], ["h2", "b"], ["h3", "b"], ["h3", "b"], ["a", "r1"], ["r1", "b"]]
    drawn = topologies.numbered([(one, other) for one, other in links], {"h1", "h2", "h3", "r1"})
    ways = topologies.Ways(drawn, ["r1"])
    assert ways.routers("h1.1", "h2.1") == []
    assert ways.routers("h1.1", "h3.1") == ["r1"]
    assert ways.routers("h2.2", "h3.1") == []
    # No router is in those subnets, and each is alone in its own.
    assert [ways.routers("h1.2", other) for other in ("h1.1", "h2.1", "h2.2", "h3.2")] == [None] * 4
    rack = topologies.Ways(topologies.drawn_links({"kind": "rack", "nics": 2}, names(3)), [])
    assert (rack.routers("h1.2", "h3.2"), rack.routers("h1.1", "h3.2")) == ([], None)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("h1", ["h1.1", "h1.2"]), ("h1.2", ["h1.2"]), ("h*", ["h1.1", "h1.2", "h2"]), ("*.1", ["h1.1"]), ("h1.*", ["h1.1", "h1.2"]),
     ("h1*2", ["h1.2"]), ("1", [])],
)  # fmt: skip
def test_the_name_of_a_node_stands_for_all_of_its_ends(pattern, found):
    assert [end for end in ("h1.1", "h1.2", "h2") if topologies.fits(pattern, end)] == found
    meant = [
        end for end in ("h1.1", "h1.2", "h2") if topologies.setting([{"from": "s", "to": pattern, "loss": 1}], "s", end)
    ]
    assert meant == found


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
