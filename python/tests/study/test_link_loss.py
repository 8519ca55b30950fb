"""NICs that a change of their MTU restarts: which links are down when, what a study may not ask, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.errors import StudyError
from framegauge.experiment.planning import baseline, baseline_slot, stated_conditions
from framegauge.study import file as study_file
from framegauge.study.model import Study

STUDY = """
testbed: {kind: fake, topology: RACK, hosts: 3, nic: {link_loss: LOSS}}
factors: {mtu: 1500}
workloads: [{stream: {duration: 10 s}}]
changes: CHANGES
blocks: 2
"""


def make(changes: str, loss: str = "3 s", rack: str = "rack") -> Study:
    text = STUDY.replace("CHANGES", changes).replace("LOSS", loss).replace("RACK", rack)
    return study_file.parse(text, "x")


def asked(changes: str, **rest: Any) -> list[tuple[float, Any]]:
    """What is set when, without the MTUs."""
    made = baseline(make(changes, **rest)).changes
    return [(each["at_seconds"], each["set"]) for each in made if "up" in each["set"]]


def both(end: str, at: float, up: bool) -> list[tuple[float, Any]]:
    return [(at, {"from": end, "to": "*", "up": up}), (at, {"from": "*", "to": end, "up": up})]


def test_a_link_is_down_for_so_long_when_the_mtu_of_its_nic_becomes_another() -> None:
    found = asked("[{at: 1 s, hosts: [h1], mtu: 9000}, {at: 5 s, hosts: [h1, h2], mtu: 9000}]")
    # h1 has 9000 already when it is asked again.
    assert found == [*both("h1", 1, False), *both("h1", 4, True), *both("h2", 5, False), *both("h2", 8, True)]
    assert asked("[{at: 1 s, hosts: all, mtu: 1500}]") == []
    assert asked("[{at: 1 s, hosts: all, mtu: 9000}]", loss="0 s") == []


def test_changes_stay_in_the_order_of_their_moments() -> None:
    made = baseline(
        make("[{at: 1 s, hosts: [h1], mtu: 9000}, {at: 2 s, from: switch, to: h3, rate: 100 Mb/s}]")
    ).changes
    assert [each["at_seconds"] for each in made] == [1, 1, 1, 2, 4, 4]


def test_of_two_nics_only_the_link_of_the_changed_one_is_down() -> None:
    found = asked("[{at: 1 s, hosts: [h1], network: storage, mtu: 9000}]", rack="{rack: {nics: 2}}")
    assert found == [*both("h1.2", 1, False), *both("h1.2", 4, True)]


def test_the_conditions_say_for_how_long() -> None:
    study = make("[{at: 1 s, hosts: all, mtu: 9000}]")
    told = stated_conditions(study, baseline_slot(study))["changes"]
    assert told == "after 1 s h1, h2, h3: MTU 9000, links whose MTU changes down for 3 s"


@pytest.mark.parametrize(
    ("changes", "loss", "said"),
    [
        ("[{at: 1 s, hosts: all, mtu: 9000}]", "9 s", "expected links that are up again before 10.0 s"),
        ("[{at: 1 s, hosts: all, mtu: 9000}]", "500 ms", "expected 1 s or more between a link that is up again"),
        (
            "[{at: 1 s, hosts: [h1], mtu: 9000}, {at: 4.5 s, hosts: [h2], mtu: 9000}]", "3 s",
            "expected 1 s or more between a link that is up again and any other change",
        ),
        ("[{at: 1 s, hosts: all, mtu: 9000}]", "61 s", "expected at most 60"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(changes: str, loss: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        make(changes, loss)
    assert said in str(refused.value)


def test_where_no_mtu_changes_there_is_no_such_key() -> None:
    text = "testbed: {kind: veth, nic: {link_loss: 3 s}}\nfactors: {mtu: [1500, 9000]}\nworkloads: [stream: {size: 1 MB}]\n"
    with pytest.raises(StudyError, match="no such key unless kind: rack"):
        study_file.parse(text, "x")
