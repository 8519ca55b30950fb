"""The answer for every combination of what is known of the paths and of the effect; and what is known from documents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from helpers.check_lab import Lab
from summary.test_sentence import BETTER, INSIDE, UNDECIDED, WORSE, one, summary

from framegauge.decide import judge
from framegauge.decide.judge import Benefit, Brings, Paths, State
from framegauge.report.decision.model import Choice

TARGET = 9000
HELPS, NOTHING, IS_WORSE, MIXED, OPEN, NONE = Brings
CLEAR, FAULT, UNKNOWN = State
# All of them; with a fault, whether a subnet is clear in brackets.
TABLE = {
    (CLEAR, HELPS): Choice.DO_IT,
    (CLEAR, NOTHING): Choice.DO_NOT,
    (CLEAR, IS_WORSE): Choice.DO_NOT,
    (CLEAR, MIXED): Choice.CANNOT_TELL,
    (CLEAR, OPEN): Choice.CANNOT_TELL,
    (CLEAR, NONE): Choice.CANNOT_TELL,
    (UNKNOWN, HELPS): Choice.CANNOT_TELL,
    (UNKNOWN, NOTHING): Choice.DO_NOT,
    (UNKNOWN, IS_WORSE): Choice.DO_NOT,
    (UNKNOWN, MIXED): Choice.CANNOT_TELL,
    (UNKNOWN, OPEN): Choice.CANNOT_TELL,
    (UNKNOWN, NONE): Choice.CANNOT_TELL,
    **{(FAULT, brings): Choice.DO_NOT for brings in Brings},
}
SUBNET = {"10.1.0.0/24": ("a", "b")}


@pytest.mark.parametrize(("state", "brings"), list(itertools.product(State, Brings)))
@pytest.mark.parametrize("subnets", [{}, SUBNET], ids=["no subnet", "a subnet"])
def test_every_case_has_the_answer_of_the_table(state: State, brings: Brings, subnets: dict[str, Any]) -> None:
    found = judge.conclude(Paths(state, "PATHS", subnets), Benefit(brings, "BENEFIT"))
    only = state is FAULT and brings is HELPS and bool(subnets)
    assert found.choice is (Choice.SUBNET_ONLY if only else TABLE[state, brings])
    assert found.subnets == (tuple(SUBNET) if only else ())
    assert found.text.startswith(f"{found.choice}: ")
    assert "PATHS" in found.text
    # A fault with nothing measured beside it has nothing to say of the effect.
    assert ("BENEFIT" in found.text) == (not (state is FAULT and brings is NONE))


def test_exit_codes() -> None:
    assert judge.EXIT_CODES == {
        Choice.DO_IT: 0, Choice.SUBNET_ONLY: 0, Choice.DO_NOT: 1, Choice.CANNOT_TELL: 2,
    }  # fmt: skip


def facts(*maxima: int | None, mtu: int = 1500) -> dict[str, Any]:
    hosts = [
        {"name": chr(97 + number), "error": None,
         "interfaces": [{"name": "eth0", "mtu": mtu, "maximum_mtu": most, "driver": "ixgbe"}]}
        for number, most in enumerate(maxima)
    ]  # fmt: skip
    return {"schema": 1, "present_mtu": mtu, "hosts": hosts}


def paths(target: Lab | None, present: Lab | None = None, *maxima: int | None) -> Paths:
    documents = [None if each is None else each.document() for each in (present, target)]
    return judge.paths_of(facts(*(maxima or (9710, 9710))), *documents, TARGET)


def test_all_that_carry_the_target_are_clear() -> None:
    found = paths(Lab((3,)))
    assert (found.state, found.text) == (State.CLEAR, "all 6 pairs carry packets of 9000 bytes")


def test_a_fault_forbids_and_is_named() -> None:
    lab = Lab((2,)).fault([("a", "b", 4)], hops=[("", "silent")])
    found = paths(lab)
    assert found.state is State.FAULT
    assert found.text.startswith("1 of 2 pairs does not carry packets of 9000 bytes (large packets are lost in one")
    assert not found.subnets


def test_hosts_that_are_not_raised_say_nothing_of_the_paths() -> None:
    lab = Lab((2,))
    for name in ("a", "b"):
        lab.device(name)["mtu"] = 1500
    lab.fault([("a", "b", 4), ("b", "a", 4)], kind="too_small", told=[(None, 1500)])
    assert {each["kind"] for each in lab.faults()} == {"host_interface_too_small"}
    found = paths(lab)
    assert found.state is State.UNKNOWN
    assert "1500 bytes is not known until it is raised" in found.text


def test_a_fault_at_the_present_mtu_comes_first() -> None:
    found = paths(Lab((2,)), Lab((2,)).fault([("a", "b", 4)], hops=[("", "silent")]))
    assert found.state is State.FAULT
    assert "before any change" in found.text


def test_a_nic_s_maximum_forbids() -> None:
    found = paths(None, Lab((2,)), 9710, 4082)
    assert (found.state, found.text) == (State.FAULT, "eth0 of b takes at most 4082 bytes")
    assert paths(None, Lab((2,)), 9710, None).state is State.UNKNOWN  # a driver that states none


def test_could_not_tell_stays_unknown() -> None:
    lab = Lab((2,))
    lab.pairs["a", "b", 4] |= {"verdict": "unknown", "path_mtu_bytes": None}
    assert paths(lab).state is State.UNKNOWN
    assert paths(None).state is State.UNKNOWN


def test_a_subnet_is_clear_only_if_each_of_its_pairs_is() -> None:
    """Two subnets of two hosts, a and b, c and d; between them nothing large passes."""
    between = Lab((2, 2))
    between.fault(between.some(lambda one, other: (one in "ab") != (other in "ab")), hops=[("10.1.0.254", "silent")])
    assert paths(between).subnets == {"10.1.0.0/24": ("a", "b"), "10.2.0.0/24": ("c", "d")}
    within = Lab((2, 2))
    within.fault(within.some(lambda one, other: "d" in (one, other)), hops=[("", "silent")])
    assert paths(within).subnets == {"10.1.0.0/24": ("a", "b")}


def test_what_was_measured_in_one_subnet_is_not_said_of_another() -> None:
    """A study is made in the largest that is clear, which may have a subnet of each family."""
    hosts = {"10.1.0.0/24": ("a", "b"), "10.2.0.0/24": ("c", "d", "e"), "fd00:2::/64": ("c", "d", "e")}
    found = judge.conclude(Paths(FAULT, "PATHS", hosts), Benefit(HELPS, "BENEFIT"))
    assert Paths(FAULT, "PATHS", hosts).studied == ("c", "d", "e")
    assert found.subnets == ("10.2.0.0/24", "fd00:2::/64")
    assert "within 10.2.0.0/24 and fd00:2::/64 every pair carries them, and there BENEFIT" in found.text
    assert "10.1.0.0/24 could carry them, too, where nothing was measured" in found.text


def test_a_subnet_whose_other_family_fails_is_not_clear() -> None:
    lab = Lab((2, 2), families=(4, 6))
    lab.fault(lab.some(lambda one, other: (one in "ab") != (other in "ab")), hops=[("10.1.0.254", "silent")])
    lab.fault([("c", "d", 6)], hops=[("", "silent")])
    assert set(paths(lab).subnets) == {"10.1.0.0/24", "fd00:1::/64"}


@pytest.mark.parametrize(
    ("kinds", "brings"),
    [
        ([BETTER], Brings.HELPS),
        ([BETTER, INSIDE], Brings.HELPS),
        ([BETTER, UNDECIDED, UNDECIDED], Brings.HELPS),
        ([BETTER, WORSE], Brings.MIXED),
        ([WORSE, INSIDE], Brings.WORSE),
        ([INSIDE, INSIDE, UNDECIDED], Brings.NOTHING),
        ([INSIDE, UNDECIDED], Brings.OPEN),
        ([UNDECIDED], Brings.OPEN),
        (["suspect", BETTER], Brings.OPEN),
    ],
)
def test_the_effect_is_that_of_the_verdicts(kinds: Sequence[str], brings: Brings) -> None:
    found = judge.benefit_of(summary(*(one(kind, rtt=0.001 * number) for number, kind in enumerate(kinds, 1))))
    assert found.brings is brings
    assert not found.text.endswith(".")


def test_the_largest_mtu_decides_and_controls_do_not() -> None:
    found = summary(one(INSIDE, level=1500), one(WORSE, level=4200), one(BETTER, level=9000))
    assert judge.benefit_of(found).brings is Brings.HELPS


def test_without_a_study_it_says_why() -> None:
    found = judge.benefit_of(None, "changes are not allowed")
    assert (found.brings, found.text) == (
        Brings.NOT_MEASURED,
        "what they bring was not measured, because changes are not allowed",
    )


def entry(metric: str, level: int, all_cells: bool = True) -> dict[str, Any]:
    return {"metric": metric, "all_cells": all_cells, "smallest": {"mtu": level}}


def test_what_is_enough_is_enough_for_every_metric() -> None:
    levels = [entry("goodput", 4200), entry("latency_p50", 1500), entry("goodput", 9000, all_cells=False)]
    assert judge.sufficient(summary(one(BETTER), smallest_levels=levels)) == 4200
    assert judge.sufficient(summary(one(BETTER), smallest_levels=[])) is None
    assert judge.sufficient(summary(one("suspect"), smallest_levels=levels)) is None
    assert judge.sufficient(None) is None
