"""Hops between hosts, against what is known of regular networks."""

from __future__ import annotations

from framegauge.networks.paths import Distances


def test_a_switch_and_a_cable() -> None:
    found = Distances([("h1", "s"), ("s", "h1"), ("h2", "s"), ("h3", "h4")])
    assert (found.between("h1", "h2"), found.between("h3", "h4"), found.between("h1", "h1")) == (2, 1, 0)
    assert found.between("h1", "h3") is None
    assert found.between("h1", "nobody") is None


def test_a_fat_tree_has_two_four_and_six() -> None:
    half = 2  # k = 4
    links = []
    for pod in range(2 * half):
        for edge in range(half):
            links += [(f"h{pod}-{edge}-{host}", f"e{pod}-{edge}") for host in range(half)]
            links += [(f"e{pod}-{edge}", f"a{pod}-{up}") for up in range(half)]
        links += [(f"a{pod}-{up}", f"c{up}-{core}") for up in range(half) for core in range(half)]
    found = Distances(links)
    hosts = sorted(one for one, _ in links if one.startswith("h"))
    counts = {hops: sum(found.between(one, other) == hops for one in hosts for other in hosts) for hops in (0, 2, 4, 6)}
    # Of 16 hosts, each has itself, one at its switch, two in its pod and twelve beyond the core.
    assert counts == {0: 16, 2: 16, 4: 32, 6: 192}


def test_of_two_ways_the_shorter_counts() -> None:
    ring = Distances([("a", "1"), ("1", "2"), ("2", "3"), ("3", "4"), ("4", "1"), ("4", "b"), ("b", "3")])
    assert ring.between("a", "b") == 3  # a-1, 1-4, 4-b
