"""A kernel's neighbour table that is too small for a check: said before, asked for after, and blamed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from helpers.check_lab import Lab, interface

from framegauge.check import neighbours
from framegauge.check.addresses import Ends
from framegauge.check.judgement import planner
from framegauge.check.judgement.neighbours import enough
from framegauge.check.plan import Member, Path, Prepared


def tables(boot: str | None = "one", most: int = 1024, refused: int | None = 7, permanent: int = 0) -> dict[str, Any]:
    table = {"entries": 5, "most": most, "refused": refused, "permanent": permanent}
    return {"boot_id": boot, "ipv4": table, "ipv6": None}


def prepared(count: int, boots: Any = lambda index: "one", **more: Any) -> Prepared:
    """So many hosts of one subnet, every ordered pair of them."""
    address = {f"h{index}": f"10.0.{index // 250}.{index % 250 + 1}" for index in range(count)}
    facts = {
        name: {"interfaces": [interface("eth0", own)], "neighbour_tables": tables(boots(index), **more)}
        for index, (name, own) in enumerate(address.items())
    }
    for told in facts.values():
        told["interfaces"][0]["addresses"][0]["prefix_length"] = 16
    paths = [
        Path(one, other, 4, Ends(own, far, "eth0"))
        for one, own in address.items() for other, far in address.items() if one != other
    ]  # fmt: skip
    plan = planner.Plan("full_mesh", (), 0)
    members = [Member(type("Named", (), {"name": name})()) for name in address]  # type: ignore[arg-type]
    return Prepared(members, facts, {}, plan, paths, {}, planner.Cost(0, 0, None))


def test_a_check_that_needs_more_neighbours_than_the_kernel_takes_says_so_before() -> None:
    assert list(neighbours.crowded(prepared(10, most=90))) == []
    (sentence,) = neighbours.crowded(prepared(10, most=89))
    assert "takes 89 neighbours (net.ipv4.neigh.default.gc_thresh3), and this check needs 90" in sentence
    assert sentence.endswith("sysctl -w net.ipv4.neigh.default.gc_thresh3=256")


def test_hosts_with_kernels_of_their_own_or_permanent_neighbours_need_no_room_together() -> None:
    assert list(neighbours.crowded(prepared(10, boots=str, most=9))) == []
    assert list(neighbours.crowded(prepared(10, most=89, permanent=9))) == []
    # An older agent does not say, or the kernel does not.
    assert list(neighbours.crowded(prepared(10, boots=lambda _: None, most=1))) == []


def test_behind_a_router_a_host_needs_one_neighbour() -> None:
    apart = prepared(10, most=10)
    for told in apart.facts.values():
        told["interfaces"][0]["addresses"][0]["prefix_length"] = 32
    assert list(neighbours.crowded(apart)) == []


@pytest.mark.parametrize(("most", "needed", "expected"), [(1024, 1800, 4096), (1024, 6, 2048), (4096, 10, 8192)])
def test_the_limit_that_is_named_is_larger_than_what_is_needed_and_than_the_present_one(most, needed, expected) -> None:
    assert enough(most, needed) == expected
    assert enough(most, needed) > max(most, needed)


def test_one_host_of_each_kernel_with_a_pair_that_nothing_reached_is_asked_again() -> None:
    found = prepared(6, boots=lambda index: str(index % 2))
    gone = {"source": "h0", "destination": "h2", "verdict": "unreachable"}
    well = {"source": "h1", "destination": "h3", "verdict": "carries_target"}
    assert neighbours.witnesses(found, [well]) == set()
    assert neighbours.witnesses(found, [well, gone]) == {"h0"}
    lost = dataclasses.replace(found, errors={"h0": "the agent was lost"})
    assert neighbours.witnesses(lost, [gone]) == {"h2"}
    later = {"h2": {"neighbour_tables": tables("0", refused=12)}}
    assert neighbours.refused(found, later) == {key: {"ipv4": 5, "ipv6": None} for key in ("h0", "h2", "h4")}


def lab(refused: int | None, **more: Any) -> Lab:
    """Four hosts of one kernel; nothing reaches b from a, nor a from b."""
    made = Lab((4,)).fault([("a", "b", 4), ("b", "a", 4)], None, "unreachable")
    for host in made.hosts.values():
        host["facts"]["neighbour_tables"] = tables(**more)
        host["neighbours_refused"] = {"ipv4": refused, "ipv6": None}
    return made


@pytest.mark.parametrize("refused", [0, None])
def test_a_table_that_had_room_is_not_blamed(refused) -> None:
    assert [each["kind"] for each in lab(refused).faults()] == ["unreachable"]


def test_other_reasons_that_are_known_come_first() -> None:
    unrouted = lab(31)
    unrouted.pairs["a", "b", 4] |= {"said": "Network is unreachable", "controls": {"sent": 0, "lost": 0}}
    del unrouted.pairs["b", "a", 4]
    assert [each["where"] for each in unrouted.faults()] == ["routes of host a (IPv4)"]
    down = lab(31)
    down.device("b")["up"] = False
    assert [each["kind"] for each in down.faults()] == ["unreachable"]


def test_what_a_full_table_explains_is_no_evidence_against_a_host() -> None:
    full = lab(31)
    full.fault(full.some(lambda a, b: "c" in (a, b)), None, "unreachable")
    for name in "cd":
        full.hosts[name]["facts"].pop("neighbour_tables")
    full.device("c")["up"] = False
    assert [(each["kind"], each["hosts"]) for each in full.faults()] == [
        ("unreachable", ["c"]), ("neighbour_table_full", ["a", "b"]),
    ]  # fmt: skip


def test_targets_without_an_agent_are_neighbours_as_well() -> None:
    full = lab(31)
    for key in (("a", "b", 4), ("b", "a", 4)):
        full.pairs[key] |= {"method": "one_ended", "direction": None, "said": None}
    assert [each["kind"] for each in full.faults()] == ["neighbour_table_full"]
