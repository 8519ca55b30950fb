"""Sizes of aggregates and MTU probing in a study file: what they ask of a testbed, and what is refused in one line."""

from __future__ import annotations

import pytest

from framegauge.cli import commands
from framegauge.errors import MissingRequirement, StudyError
from framegauge.experiment.planning import conditions_of, stated_conditions
from framegauge.hosts.dry_run import changes_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.summary import words
from framegauge.testbeds.leases import settings, too_large

VETH = "{kind: veth, link: {rate: unshaped}}"
SSH = "{kind: ssh, machines: [a, b]}"


def parse(bed=VETH, factors="offloads: on", rest=""):
    text = f"""
testbed: {bed}
factors:
  mtu: [1500, 9000]
  {factors}
workloads: [{{stream: {{size: 10 MB}}}}]
margins: {{goodput: 2 %}}
{rest}"""
    return study_file.parse(text, "study.yaml")


def test_every_size_reaches_the_testbed():
    study = parse(factors="offloads: on\n  gso_size: [65536, 180000]\n  gro_size: 131072\n  mtu_probing: 1")
    slots = block_order(study, 0)
    found = {(each.gso_bytes, each.gro_bytes) for each in (conditions_of(study, slot) for slot in slots)}
    assert found == {(65536, 131072), (180000, 131072)}
    conditions = conditions_of(study, slots[0])
    assert conditions.sysctls["net.ipv4.tcp_mtu_probing"] == "1"
    stated = stated_conditions(study, slots[0])
    assert (stated["gro_size_bytes"], stated["mtu_probing"]) == (131072, 1)
    assert words.conditions(stated).endswith(", GRO size 131072, MTU probing 1")
    assert study_file.parse(study_file.dump(study), "x") == study


def test_a_size_up_to_the_usual_one_is_what_a_shaped_host_builds():
    study = parse("{kind: rack}", "gso_size: 20000")
    conditions = conditions_of(study, block_order(study, 0)[0])
    assert (conditions.gso_bytes, conditions.aggregate_bytes) == (20000, 20000)


def test_without_levels_nothing_is_asked_for_or_said():
    study = parse()
    slot = block_order(study, 0)[0]
    conditions = conditions_of(study, slot)
    assert (conditions.gso_bytes, conditions.gro_bytes) == (None, None)
    assert "net.ipv4.tcp_mtu_probing" not in conditions.sysctls
    assert not {"gso_size_bytes", "gro_size_bytes", "mtu_probing"} & stated_conditions(study, slot).keys()


SIZE = "expected the largest aggregate in bytes between 10000 and 524280, such as 65536 or 180000"
REFUSED = {
    "gso_size: 9999": f"study.yaml:5: factors.gso_size: found 9999, {SIZE}",
    "gso_size: 524281": f"study.yaml:5: factors.gso_size: found 524281, {SIZE}",
    "gro_size: big": f'study.yaml:5: factors.gro_size: found "big", {SIZE}',
    "mtu_probing: 3": "study.yaml:5: factors.mtu_probing: found 3, expected 0, 1 or 2",
    "gso_size: 180000": "study.yaml:5: factors.gso_size: found 180000, expected 65536 or less with offloads or tso off",
    "gso_size: 180000\n  offloads: [on, off]": "study.yaml:5: factors.gso_size: found 180000, expected 65536 or less with",
    "offloads: off\n  gso_size: [65536, 180000]": "study.yaml:6: factors.gso_size: found 180000, expected 65536 or less with",
}  # fmt: skip


@pytest.mark.parametrize("factors", REFUSED)
def test_what_cannot_be_is_one_line(factors):
    with pytest.raises(StudyError) as error:
        parse(factors=factors)
    assert error.value.problems[0].startswith(REFUSED[factors]), error.value.problems[0]
    assert "\n" not in error.value.problems[0]


def test_a_shaper_cuts_what_is_larger_than_the_usual_size():
    line = "study.yaml:6: factors.gso_size: found 180000, expected 65536 or less, or link: {rate: unshaped}: the shaper"
    with pytest.raises(StudyError) as error:
        parse("{kind: veth}", "offloads: on\n  gso_size: 180000")
    assert error.value.problems[0].startswith(line), error.value.problems[0]
    assert parse("{kind: veth}", "gso_size: 65536").factors.gso_size.levels == [65536]


def test_probing_and_its_sysctl_are_not_both_given():
    with pytest.raises(StudyError, match=r'sysctls.net.ipv4.tcp_mtu_probing: found "1", expected no such key with'):
        parse(factors="mtu_probing: 2", rest='sysctls: {net.ipv4.tcp_mtu_probing: "1"}\n')


def test_a_rack_refuses_big_tcp_before_any_run(tmp_path):
    study = parse("{kind: fake}", "offloads: on\n  gso_size: [65536, 180000]")
    line = "missing aggregates (needed for BIG TCP): found gso_size 180000 above 65536 (invented); levels up to that"
    with pytest.raises(MissingRequirement) as error:
        commands.run_study(study, tmp_path / "out", False, lambda _: None, lambda _: None)
    assert str(error.value) == line


def test_a_dry_run_names_the_sizes_of_a_lease():
    study = parse(SSH, "gso_size: [65536, 180000]\n  mtu_probing: [0, 2]")
    text = "\n".join(changes_of(study, lambda _: "AGENT"))
    assert "'gso_size:IFACE=65536 65536|180000 180000'" in text
    assert "'sysctl:net.ipv4.tcp_mtu_probing=0|2'" in text
    assert "gro_size" not in text


NOW = {
    "mtu": 1500, "offloads": {}, "qdisc": {"kind": "fq", "default": True}, "sysctls": {},
    "aggregates": {
        "gso_bytes": 65536, "gso_ipv4_bytes": 65536, "gro_bytes": 65536, "gro_ipv4_bytes": 65536,
        "tso_maximum_bytes": 180224,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("reading", "wanted"),
    [
        ({}, "180000 180000"),
        # Setting IPv6's resets IPv4's, which alone may be what differs.
        ({"gso_bytes": 180000}, "180000 180000"),
        ({"gso_bytes": 180000, "gso_ipv4_bytes": 180000}, None),
        ({"gso_ipv4_bytes": None}, "180000"),
    ],
)
def test_a_lease_asks_for_both_families_if_either_differs(reading, wanted):
    asked = {"mtu": 1500, "qdisc": None, "gso_bytes": 180000, "gro_bytes": None}
    asked |= dict.fromkeys(("tso", "gro", "lro", "checksum"))
    now = {**NOW, "aggregates": {**NOW["aggregates"], **reading}}
    found = settings("eth0", asked, {}, now)
    assert found == ({} if wanted is None else {"gso_size:eth0": wanted})


@pytest.mark.parametrize(
    ("largest", "reading", "line"),
    [
        ({"gso_size": 180000}, {}, None),
        ({"gso_size": 196608}, {}, "found tso_max_size 180224, expected 196608 or more for gso_size"),
        ({"gso_size": 180000}, {"tso_maximum_bytes": None}, "found tso_max_size 65536, expected 180000 or more"),
        ({"gro_size": 524280}, {}, None),
        ({"gro_size": 180000}, {"gso_ipv4_bytes": None}, "found a kernel without sizes for IPv4, expected Linux 6.3"),
    ],
)
def test_a_host_that_cannot_is_refused_with_its_limit(largest, reading, line):
    found = too_large(largest, {**NOW["aggregates"], **reading})
    assert found is None if line is None else found.startswith(line), found
