"""Plans: what they cover, and what they cost."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from framegauge.check.judgement import groups, planner
from framegauge.check.judgement.planner import Member


def fleet(racks, each, named=False):
    return [
        Member(f"h{rack}-{number}", () if named else (f"10.{rack}.0.{number}/24",), f"rack {rack}" if named else None)
        for rack in range(racks)
        for number in range(1, each + 1)
    ]


@pytest.mark.parametrize(("members", "flows"), [(4, 17), (8, 35), (16, 72), (64, 293)])
def test_flows_that_meet_one_bad_member(members, flows):
    assert planner.flows_needed(members) == flows
    assert planner.member_coverage(flows, [members])[str(members)] >= 0.99
    assert planner.member_coverage(flows - 1, [members])[str(members)] < 0.99


def test_the_coverage_of_the_usual_flows_is_as_stated():
    found = planner.member_coverage(32)
    assert {key: round(value, 4) for key, value in found.items()} == {
        "4": 0.9999,
        "8": 0.9861,
        "16": 0.8732,
        "64": 0.3959,
    }


def test_one_member_needs_one_flow():
    assert planner.flows_needed(1) == 1
    assert planner.member_coverage(1, [1]) == {"1": 1}


def test_up_to_64_hosts_are_probed_in_full():
    plan = planner.plan(fleet(2, 32))
    assert (plan.kind, len(plan.pairs), plan.of) == ("full_mesh", 64 * 63, 64 * 63)
    assert planner.plan(fleet(5, 13)).kind == "sampled"


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32), st.booleans(), st.integers(0, 30))
def test_every_plan_keeps_what_it_promises(racks, each, seed, named, most):
    hosts = fleet(racks, each, named)
    plan = planner.plan(hosts, seed, most)
    assert plan == planner.plan(hosts, seed, most)
    assert len(set(plan.pairs)) == len(plan.pairs) <= plan.of
    assert all(source != destination for source, destination in plan.pairs)
    if len(hosts) == 1:
        assert plan.pairs == ()
        return
    assert plan.hosts_both_ways() == 1
    probed, of = plan.group_pairs()
    assert probed == of == racks * (racks - 1)
    # Both directions of what a host's peers testify, and at least three of them where there are three.
    senders = Counter(source for source, _ in plan.pairs)
    receivers = Counter(destination for _, destination in plan.pairs)
    for host in hosts:
        assert min(senders[host.name], receivers[host.name]) >= min(3, len(hosts) - 1)
    if each > 1:
        inside = {source for source, destination in plan.pairs if plan.groups[source] == plan.groups[destination]}
        assert inside == {host.name for host in hosts}


def test_peers_are_in_other_racks_but_for_one():
    plan = planner.plan(fleet(5, 30))
    for name in plan.groups:
        others = {destination for source, destination in plan.pairs if source == name}
        outside = {other for other in others if plan.groups[other] != plan.groups[name]}
        assert len(outside) >= 2
        assert len(others - outside) == 2  # the next of its rack, and the one before


def test_a_thousand_hosts_in_as_many_subnets_stay_affordable():
    plan = planner.plan([Member(f"h{number}", (f"10.{number >> 8}.{number & 255}.1/32",)) for number in range(1000)])
    probed, of = plan.group_pairs()
    assert of == 999_000
    assert 32_000 <= probed <= 40_000
    assert plan.as_document()["group_pairs"] == {"probed": probed, "of": of}


def test_flows_between_groups_add_up():
    plan = planner.plan(fleet(4, 20), 1)
    assert sum(plan.group_flows(32).values()) == 32 * len(plan.pairs)


def test_hosts_of_which_nothing_is_known_are_groups_of_their_own():
    assert Member("a").place() != Member("b").place()


def test_two_hosts_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two hosts are named 'a'"):
        planner.plan([Member("a"), Member("a")])
    with pytest.raises(ValueError, match="between 0 and 1"):
        planner.flows_needed(4, 1.0)


def test_what_a_pair_costs():
    cost = planner.expected_cost([("a", "b")], 32, 9000, 10_000_000)
    # 32 flows of 9000 + 1500 + 128 one way, three acknowledgements of 100 each the other.
    assert cost.bytes_total == 32 * (9000 + 1500 + 128) + 32 * 3 * 100
    assert cost.bytes_busiest_host == 340_096
    assert cost.seconds == pytest.approx(340_096 * 8 / 1e7)
    assert planner.expected_cost([], 32, 9000, 1.0).bytes_total == 0
    assert planner.expected_cost([("a", "b")], 1, 1500, None).seconds is None


@pytest.mark.parametrize(
    ("address", "length", "expected"),
    [
        ("10.1.2.3", None, "10.1.2.0/24"), ("10.1.2.3", 16, "10.1.0.0/16"), ("10.1.2.3/8", 16, "10.0.0.0/8"),
        ("fd00::1", None, "fd00::/64"), ("fe80::1%eth0", 64, "fe80::/64"), ("pod", None, "pod"), ("1.2.3.4", 99, "1.2.3.4"),
    ],
)  # fmt: skip
def test_subnets(address, length, expected):
    assert groups.subnet(address, length) == expected


def test_families():
    assert [groups.family_of(each) for each in ("10.0.0.1/24", "fe80::1%e", "x")] == [4, 6, None]
