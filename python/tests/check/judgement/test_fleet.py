"""A thousand invented hosts: faults are found where they are, and nowhere else. bench/fleet.py does more of it."""

import random

import pytest
from helpers.schemas import conforms
from helpers.support import bench, by_length

from framegauge.check.judgement import blame, planner, schema

fleet = bench("fleet_model")
Fleet = fleet.Fleet

FLEET = Fleet(1000, 40, 8)
PLAN = planner.plan(FLEET.members(), seed=1)
SMALL = Fleet(120, 20, 4)
SMALL_PLAN = planner.plan(SMALL.members(), seed=1)


def test_a_healthy_fleet_has_no_finding():
    document = fleet.measure(FLEET, PLAN)
    assert document["verdict"] == "carries_target"
    assert blame.blame(document) == []


@pytest.mark.thorough
@pytest.mark.parametrize("kind", fleet.FAULTS)
def test_one_fault_in_a_thousand_hosts_is_the_only_finding(kind):
    fault = fleet.draw_fault(FLEET, kind, random.Random(kind))
    document = fleet.measure(FLEET, PLAN, [fault], seed=3)
    document["findings"] = blame.blame(document)
    assert fleet.is_named(fault, document["findings"])
    assert len(document["findings"]) == 1


@pytest.mark.soak(0.1)
@pytest.mark.parametrize("seed", range(by_length(1, 20)))
@pytest.mark.parametrize("kind", fleet.FAULTS)
def test_a_fault_in_a_small_fleet_is_named_and_nobody_is_accused(kind, seed):
    fault = fleet.draw_fault(SMALL, kind, random.Random(seed))
    document = fleet.measure(SMALL, SMALL_PLAN, [fault], seed=seed)
    document["findings"] = blame.blame(document)
    conforms(document, schema.json_schema())
    assert fleet.is_named(fault, document["findings"])
    assert fleet.is_accused([fault], document["findings"]) == []


def test_two_bad_links_of_a_spine_are_not_the_spine():
    spine = fleet.spine_address(2)
    faults = [
        fleet.Fault("uplink_up", frozenset({(fleet.leaf_address(leaf), spine)}), (fleet.leaf_address(leaf), spine))
        for leaf in (1, 4)
    ]
    found = blame.blame(fleet.measure(SMALL, SMALL_PLAN, faults))
    assert all(fleet.is_named(fault, found) for fault in faults)
    assert len(found) == 2


@pytest.mark.parametrize("seed", range(8))
def test_routers_that_answer_seldom_or_never_accuse_nobody(seed):
    chooser = random.Random(seed)
    faults = [fleet.draw_fault(SMALL, kind, chooser) for kind in ("nic", "uplink")]
    found = blame.blame(fleet.measure(SMALL, SMALL_PLAN, faults, seed=seed, silent=0.2, limited=0.05))
    assert fleet.is_named(faults[0], found)
    assert fleet.is_accused(faults, found) == []


def test_a_pair_meets_a_bad_member_as_often_as_stated():
    met = crossed = 0
    for seed in range(4):
        fault = fleet.draw_fault(SMALL, "uplink_up", random.Random(seed))
        document = fleet.measure(SMALL, SMALL_PLAN, [fault], flows=4, seed=seed)
        leaf = int(fault.culprits[0].rpartition(".")[2])
        for pair in document["pairs"]:
            if pair["source"].startswith(f"r{leaf}h") and not pair["destination"].startswith(f"r{leaf}h"):
                crossed += 1
                met += pair["verdict"] == "black_hole"
    stated = planner.member_coverage(4, [SMALL.spines])["4"]
    assert crossed > 200
    assert abs(met / crossed - stated) < 4 * (stated * (1 - stated) / crossed) ** 0.5
