"""Sets of host settings as a factor: what they ask of a testbed, and what is refused in one line."""

from __future__ import annotations

import pytest

from framegauge.errors import StudyError
from framegauge.experiment.planning import conditions_of, stated_conditions
from framegauge.hosts.dry_run import changes_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.summary import competitors, words
from framegauge.testbeds.fake.testbed import FakeTestbed

RMEM = "net.ipv4.tcp_rmem"
SETS = """
  windows-of-2010: {initial_window: 3, initial_receive_window: 4}
  buffers-of-2011:
    sysctls: {net.ipv4.tcp_rmem: 4096 87380 4194304, net.ipv4.tcp_wmem: 4096 16384 4194304}
"""
LEVELS = "[as-is, windows-of-2010, buffers-of-2011]"


def parse(tuning=f"tuning: {LEVELS}", tunings=SETS, bed="{kind: rack}", rest=""):
    text = f"""
testbed: {bed}
factors:
  mtu: [1500, 9000]
  {tuning}
workloads: [{{stream: {{size: 10 MB}}}}]
margins: {{goodput: 2 %}}
tunings: {tunings}
{rest}"""
    return study_file.parse(text, "study.yaml")


def by_level(study):
    slots = block_order(study, 0)
    return {slot.cell.factors["tuning"]: conditions_of(study, slot) for slot in slots}


@pytest.mark.parametrize("bed", ["{kind: rack}", "{kind: rack, family: 6}", "{kind: veth}", "{kind: fake}"])
def test_every_set_reaches_the_testbed(bed):
    study = parse(bed=bed, rest=f"sysctls: {{{RMEM}: 4096 1 2, net.ipv4.tcp_sack: '0'}}")
    found = by_level(study)
    windows = {
        level: (each.initial_window_segments, each.initial_receive_window_segments) for level, each in found.items()
    }  # fmt: skip
    assert windows == {"as-is": (None, None), "windows-of-2010": (3, 4), "buffers-of-2011": (None, None)}
    assert found["as-is"].sysctls == {RMEM: "4096 1 2", "net.ipv4.tcp_sack": "0"}
    assert found["windows-of-2010"].sysctls == found["as-is"].sysctls
    assert found["buffers-of-2011"].sysctls == {
        RMEM: "4096 87380 4194304", "net.ipv4.tcp_sack": "0", "net.ipv4.tcp_wmem": "4096 16384 4194304",
    }  # fmt: skip
    assert study_file.parse(study_file.dump(study), "x") == study


def test_the_model_of_slow_start_knows_the_kernels_windows_alone():
    bed, found = FakeTestbed(), by_level(parse(bed="{kind: fake}"))
    assert bed.predict(found["windows-of-2010"], 1_000_000) is None
    assert bed.predict(found["as-is"], 1_000_000) == bed.predict(found["buffers-of-2011"], 1_000_000) > 0


def test_a_level_is_named_in_conditions_and_words():
    study = parse()
    (stated,) = [
        found
        for slot in block_order(study, 0)
        if (found := stated_conditions(study, slot))["tuning"] == "windows-of-2010" and slot.arm.role == "baseline"
    ]
    assert words.conditions(stated).endswith(", tuning windows-of-2010")
    assert words.condition("tuning", "as-is") == "tuning as-is"
    assert competitors.is_setting("tuning")


def test_a_set_can_be_the_treatment():
    study = parse(rest="treatment: tuning")
    slots = block_order(study, 0)
    assert {slot.arm.name for slot in slots} == {"baseline", "control", "windows-of-2010", "buffers-of-2011"}
    found = {slot.arm.name: conditions_of(study, slot).initial_window_segments for slot in slots}
    assert found["windows-of-2010"] == 3
    assert found["baseline"] is None


def test_without_levels_nothing_is_asked_for_or_said():
    study = parse(tuning="offloads: off", tunings="{}")
    slot = block_order(study, 0)[0]
    conditions = conditions_of(study, slot)
    assert (conditions.initial_window_segments, conditions.initial_receive_window_segments) == (None, None)
    assert not {"initial_window_segments", "initial_receive_window_segments"} & conditions.as_json().keys()
    assert "tuning" not in stated_conditions(study, slot)


WINDOW = "expected whole segments, 1 to 1000, such as 10"
ONE = "tuning: [as-is, few]"
REFUSED = {
    # a level, and what is defined: the problem
    ("tuning: [as-is, windows-of-2011]", SETS): 'study.yaml:5: factors.tuning.1: found "windows-of-2011", '
    'expected as-is or one of tunings: "windows-of-2010"',
    ("tuning: asis", "{}"): 'study.yaml:5: factors.tuning: found "asis", expected as-is or one of tunings: "as-is"',
    ("tuning: as-is", "{few: {initial_window: 3}}"): 'study.yaml:8: tunings.few: found "few", expected a level of '
    "factors.tuning by this name: nothing uses it",
    ("offloads: off", "{few: {initial_window: 3}}"): 'study.yaml:8: tunings.few: found "few", expected a level of',
    (ONE, "{few: {}}"): 'study.yaml:8: tunings.few: found "nothing", expected sysctls, initial_window, initial_',
    (ONE, "{few: {sysctls: {}}}"): 'study.yaml:8: tunings.few: found "nothing", expected sysctls, initial_window, ',
    (ONE, "{few: {sysctls: {net.ipv4.tcp_rmen: '1'}}}"): "study.yaml:8: tunings.few.sysctls.net.ipv4.tcp_rmen: found "
    '"net.ipv4.tcp_rmen", expected a sysctl of a network namespace, such as net.ipv4.tcp_rmem',
    (ONE, "{few: {sysctls: {net.ipv4.tcp_rmem: large}}}"): "study.yaml:8: tunings.few.sysctls.net.ipv4.tcp_rmem: found "
    '"large", expected three whole numbers: least',
    (ONE, "{few: {initial_window: 0}}"): f"study.yaml:8: tunings.few.initial_window: found 0, {WINDOW}",
    (ONE, "{few: {initial_window: 1001}}"): f"study.yaml:8: tunings.few.initial_window: found 1001, {WINDOW}",
    (ONE, "{few: {initial_receive_window: few}}"): 'study.yaml:8: tunings.few.initial_receive_window: found "few", '
    f"{WINDOW}",
    (ONE, "{few: {initial_window: true}}"): f"study.yaml:8: tunings.few.initial_window: found True, {WINDOW}",
    (ONE, "{few: {window: 3}}"): "study.yaml:8: tunings.few.window: ",
    ("tuning: as-is", "{as-is: {initial_window: 3}}"): 'study.yaml:8: tunings.as-is: found "as-is", expected another name: '
    "as-is is a level without settings but the study's own",
    ("tuning: 'a b'", "{a b: {initial_window: 3}}"): 'study.yaml:8: tunings.a b: found "a b", expected a name of up to 40',
    (ONE + "\n  ecn: on", "{few: {sysctls: {net.ipv4.tcp_ecn: '1'}}}"): "study.yaml:9: tunings.few.sysctls.net.ipv4.tcp_ecn: "
    'found "1", expected no such key with factors.ecn, which sets it',
    (ONE + "\n  mtu_probing: 1", "{few: {sysctls: {net.ipv4.tcp_mtu_probing: '1'}}}"): "study.yaml:9: tunings.few.sysctls."
    'net.ipv4.tcp_mtu_probing: found "1", expected no such key with factors.mtu_probing, which sets it',
    (ONE, "{few: {sysctls: {net.ipv4.tcp_congestion_control: reno}}}"): "study.yaml:8: tunings.few.sysctls."
    'net.ipv4.tcp_congestion_control: found "reno", expected no such key with factors.congestion_control, which sets it',
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_one_line(case):
    with pytest.raises(StudyError) as error:
        parse(*case)
    assert error.value.problems[0].startswith(REFUSED[case]), error.value.problems[0]
    assert "\n" not in error.value.problems[0]


SSH = "{kind: ssh, machines: [a, b]}"


@pytest.mark.parametrize("key", ["initial_window", "initial_receive_window"])
def test_the_routes_of_own_hosts_are_not_touched(key):
    line = (
        f"study.yaml:8: tunings.few.{key}: found 3, expected no such key on testbed ssh: the routes of your own hosts"
    )
    with pytest.raises(StudyError) as error:
        parse(ONE, f"{{few: {{{key}: 3}}}}", SSH)
    assert error.value.problems[0].startswith(line), error.value.problems[0]


@pytest.mark.parametrize("bed", ["{kind: rack}", "{kind: veth}", SSH])
def test_only_simulated_hosts_are_told_where_slow_start_ends(bed):
    with pytest.raises(StudyError) as error:
        parse(ONE, "{few: {slow_start_threshold: 16}}", bed)
    (problem,) = error.value.problems
    assert problem.startswith(
        "study.yaml:8: tunings.few.slow_start_threshold: found 16, expected no such key on testbed"
    )
    study = parse(ONE, "{few: {slow_start_threshold: 16}}", "{kind: simulator}")
    found = {slot.arm.name: conditions_of(study, slot).slow_start_threshold_segments for slot in block_order(study, 0)}
    assert set(found.values()) == {16}


def test_a_dry_run_names_the_sysctls_of_every_set():
    sets = f"{{small: {{sysctls: {{{RMEM}: 4096 87380 4194304}}}}, large: {{sysctls: {{{RMEM}: 1 2 3}}}}}}"
    study = parse("tuning: [as-is, small, large]", sets, SSH, "sysctls: {net.ipv4.tcp_sack: '0'}")
    text = "\n".join(changes_of(study, lambda _: "AGENT"))
    assert f"'sysctl:{RMEM}=4096 87380 4194304|1 2 3'" in text
    assert "sysctl:net.ipv4.tcp_sack=0" in text
