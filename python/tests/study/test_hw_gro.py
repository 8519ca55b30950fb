"""GRO in hardware as a factor: what it asks of the user's own hosts, what is refused, and what a run proves of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from framegauge.errors import StudyError
from framegauge.evidence import proof
from framegauge.experiment.planning import conditions_of, stated_conditions
from framegauge.hosts.dry_run import changes_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.summary import words
from framegauge.testbeds import hardware
from framegauge.testbeds.leases import settings

SSH = "{kind: ssh, machines: [a, b]}"
OFF, ON = {"on": False, "changeable": True}, {"on": True, "changeable": True}


def parse(bed=SSH, factors="hw_gro: [off, on]"):
    text = f"""
testbed: {bed}
factors:
  mtu: [1500, 9000]
  {factors}
workloads: [{{stream: {{size: 10 MB}}}}]
margins: {{goodput: 2 %}}
"""
    return study_file.parse(text, "study.yaml")


def features(**changed):
    """A reading of a NIC that has it, with some features otherwise: `rx_lro=ON`."""
    found = {"rx-gro-hw": OFF, "rx-gro": ON, "rx-lro": OFF, "rx-checksum": ON}
    return {"features": found | {name.replace("_", "-"): state for name, state in changed.items()}}


def test_both_levels_reach_the_hosts_and_offloads_do_not_touch_them():
    study = parse()
    slots = block_order(study, 0)
    assert {conditions_of(study, slot).hw_gro for slot in slots} == {False, True}
    stated = stated_conditions(study, slots[0])
    assert words.conditions({**stated, "hw_gro": True}).endswith("hardware GRO on")
    assert study_file.parse(study_file.dump(study), "x") == study
    both = parse(factors="offloads: [on, off]")
    assert {conditions_of(both, slot).hw_gro for slot in block_order(both, 0)} == {None}
    assert "hw_gro" not in stated_conditions(both, block_order(both, 0)[0])


def test_it_can_be_the_treatment():
    study = study_file.parse(study_file.dump(parse()).replace("treatment: mtu", "treatment: hw_gro"), "x")
    assert study.treatment_factor.levels == [False, True]


@pytest.mark.parametrize("kind", ["rack", "veth", "fake"])
def test_hosts_that_are_built_have_no_hardware(kind):
    line = (
        f'study.yaml:5: factors.hw_gro: found "off, on", expected no such factor on testbed {kind}: its interfaces say '
        "rx-gro-hw: off [fixed]"
    )
    with pytest.raises(StudyError) as error:
        parse(f"{{kind: {kind}}}")
    assert list(error.value.problems) == [line]


def test_a_dry_run_names_it_and_only_where_it_is_asked_for():
    assert "'rx-gro-hw:IFACE=on|off'" in "\n".join(changes_of(parse(), lambda _: "AGENT"))
    assert "rx-gro-hw" not in "\n".join(changes_of(parse(factors="offloads: on"), lambda _: "AGENT"))


@pytest.mark.parametrize(
    ("level", "now", "wanted"),
    [(True, OFF, "on"), (False, ON, "off"), (True, ON, None), (False, OFF, None), (None, OFF, None)],
)
def test_a_lease_asks_for_what_differs(level, now, wanted):
    asked = {"mtu": 1500, "qdisc": None, "hw_gro": level} | dict.fromkeys(("tso", "gro", "lro", "checksum"))
    reading = {"mtu": 1500, "offloads": {}, "sysctls": {}, **features(rx_gro_hw=now)}
    assert settings("eth0", asked, {}, reading) == ({} if wanted is None else {"rx-gro-hw:eth0": wanted})


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (OFF, None),
        (ON, None),
        (None, "found no rx-gro-hw, expected one for hw_gro, with Linux 4.16 or later"),
        (
            {"on": True, "changeable": False},
            "found rx-gro-hw: on [fixed], expected one that can be switched for hw_gro",
        ),
        (
            {"on": False, "changeable": False},
            "found rx-gro-hw: off [fixed], expected one that can be switched for hw_gro",
        ),
    ],
)
def test_an_interface_without_it_is_refused_in_its_own_words(state, line):
    assert hardware.lacking(features(rx_gro_hw=state)) == line


def test_an_interface_that_leaves_it_as_it_was_is_refused():
    asked = {"gro:eth0": "off", "rx-gro-hw:eth0": "on"}
    held = [{"setting": name, "before": "off", "now": "off"} for name in asked]
    line = hardware.unswitched(held, asked)
    assert line is not None
    assert line.startswith("found rx-gro-hw: off, expected on: the interface leaves it so")
    assert hardware.unswitched([{**each, "now": asked[each["setting"]]} for each in held], asked) is None


def test_what_an_interface_switches_along_is_named_unless_it_was_asked_for():
    before, after = features(rx_lro=ON), features(rx_gro_hw=ON)
    asked = {"rx-gro-hw:eth0": "on"}
    assert list(hardware.switched_along(before, after, asked)) == ["rx-lro off"]
    assert list(hardware.switched_along(before, after, {**asked, "lro:eth0": "off"})) == []
    assert list(hardware.switched_along(features(), features(rx_gro_hw=ON, rx_checksum=None), asked)) == []


@given(
    st.dictionaries(st.sampled_from(hardware.WATCHED), st.booleans(), min_size=4),
    st.dictionaries(st.sampled_from(hardware.WATCHED), st.booleans(), min_size=4),
)
def test_every_feature_that_differs_is_named_once(old, new):
    before, after = (
        {"features": {name: {"on": on, "changeable": True} for name, on in each.items()}} for each in (old, new)
    )
    named = [line.split()[0] for line in hardware.switched_along(before, after, {"rx-gro-hw:e": "on"})]
    assert named == [name for name in after["features"] if old[name] != new[name] and name != "rx-gro-hw"]


def test_a_run_is_proved_by_both_readings_and_says_what_went_along():
    study = parse(factors="hw_gro: on")
    conditions = replace(conditions_of(study, block_order(study, 0)[0]), hw_gro=True)
    reading = {"offloads": {}, **features(rx_gro_hw=ON)}
    record = {"before": {"a": reading}, "after": {"a": {"offloads": {}, **features()}}}
    assert list(proof._offloads(conditions, record)) == ["rx-gro-hw of a after the run: requested True, found False"]
    assert list(proof._offloads(replace(conditions, hw_gro=None), record)) == []
    run = {"workload": {"receivers": []}, "rack": {"switched_along": {"a": ["rx-lro off", "rx-gro on"]}}}
    line = "rx-gro-hw alone: the interface of a has switched by itself: rx-lro off, rx-gro on"
    assert proof.unproved(conditions, run) == [line]
