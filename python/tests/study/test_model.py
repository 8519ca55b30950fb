import json

import jsonschema
import pytest
import yaml
from helpers.schemas import conforms
from helpers.support import ROOT, STUDY
from hypothesis import given, strategies as st

from framegauge.errors import StudyError
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order, order
from framegauge.study.model import arms as arms_of, cells, host_mtus, nic_of

EXAMPLES = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "python/src/framegauge/presets").glob("*.yaml")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid_and_survive_being_resolved(path):
    study = study_file.load(path)
    assert study_file.parse(study_file.dump(study), "resolved") == study
    conforms(yaml.safe_load(path.read_text()), study_file.json_schema())
    conforms(yaml.safe_load(study_file.dump(study)), study_file.json_schema())


def test_schema_is_valid_and_refuses_unknown_keys():
    schema = study_file.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    wrong = yaml.safe_load(STUDY) | {"blokcs": 3}
    with pytest.raises(jsonschema.ValidationError):
        conforms(wrong, schema)


def test_demo_is_what_the_issue_asks():
    study = study_file.load_preset("demo")
    assert study.factors.mtu.levels == [1500, 9000]
    assert study.factors.rtt.levels == [0.0002, 0.0012]
    assert study.workloads[0].stream.size == [10**6, 10**8]
    assert study.testbed.link.rate == 10**9
    assert study.control
    assert study.budget <= 180


BAD = {
    "unknown key": ("blocks: 6", "blokcs: 6", 'study.yaml:7: blokcs: found an unknown key, expected "blocks"'),
    "unknown factor key": ("levels: [1", "level: [1", 'study.yaml:4: factors.mtu.level: found an unknown key, expected "levels"'),
    "unknown workload key": ("size:", "sise:", 'study.yaml:6: workloads.0.stream.sise: found an unknown key, expected "size"'),
    "wrong unit": ("10 MB", "10 parsec", 'study.yaml:6: workloads.0.stream.size: found "10 parsec", expected bytes such as'),
    "wrong type": ("blocks: 6", "blocks: many", 'study.yaml:7: blocks: found "many", expected a whole number'),
    "wrong kind": ("kind: fake", "kind: fack", "study.yaml:2: testbed.kind: found \"fack\", expected 'rack', 'veth', 'fake', 'simulator' or 'ssh'"),
    "MTU suffix": ("9000]", "9k]", 'study.yaml:4: factors.mtu.levels.1: found "9k", expected an MTU in bytes'),
    "MTU too large": ("9000]", "70000]", "study.yaml:4: factors.mtu.levels.1: found 70000, expected an MTU in bytes between 68 and 65535"),
    "MTU too small": ("9000]", "67]", "study.yaml:4: factors.mtu.levels.1: found 67, expected an MTU"),
    "MTU above the port's": ("9000]", "10000]", "study.yaml:4: factors.mtu: found 10000, expected at most link.port_mtu 9216"),
    "level twice": ("9000]", "1500]", "study.yaml:4: factors.mtu.levels: found 1500, expected each level once"),
    "no baseline": ("baseline: 1500", "baseline: 4000", "study.yaml:4: factors.mtu.baseline: found 4000, expected one of the levels"),
    "key twice": ("blocks: 6", "blocks: 6\nblocks: 7", "study.yaml:8: blocks: found twice, expected once"),
    "missing": ("question: Does it work?\ntestbed: {kind: fake}", "question: x", "study.yaml:1: testbed: found nothing, expected this key"),
    "no YAML": ("{kind: fake}", "{kind: fake", "study.yaml:"),
    "margin without unit": ("1 %", "0.01", "study.yaml:8: margins.goodput: found 0.01, expected a share such as 1 %"),
    "margin zero": ("{goodput: 1 %, completion_time: 2 %}", "{goodput: 0 %}", "study.yaml:8: margins: found"),
    "size and duration": ("size: 10 MB", "size: 10 MB, duration: 1 s", 'study.yaml:6: workloads.0.stream: found "both", expected exactly one'),
    "unshaped rack": ("{kind: fake}", "{kind: rack, link: {rate: unshaped}}", 'study.yaml:2: testbed.link.rate: found "unshaped"'),
    "bare rate": ("{kind: fake}", "{kind: rack, link: {rate: 1000}}", "study.yaml:2: testbed.link.rate: found 1000, expected a rate"),
    "delay on veth": ("factors:", "factors:\n  rtt: 1 ms", "study.yaml"),
    "one level": ("{levels: [1500, 9000], baseline: 1500}", "9000\ncontrol: false", "study.yaml:4: factors.mtu: found 9000, expected two or more levels"),
    "wrong host": ("9000]", "{h1: 9000, h3: 9000}]", "study.yaml:4: factors.mtu.levels.1: found {'h1': 9000, 'h3': 9000}, expected an MTU"),
    "no host": ("9000]", "{h1: 9000, tor: 9000}]", "study.yaml:4: factors.mtu.levels.1: found {'h1': 9000, 'tor': 9000}, expected an MTU for each of h1"),
    "hosts of a pair": ("{kind: fake}", "{kind: fake, hosts: 4}", "study.yaml:2: testbed.hosts: found 4, expected no such key unless topology: rack"),
    "too many hosts": ("{kind: fake}", "{kind: veth, topology: rack, hosts: 65}", "study.yaml:2: testbed.hosts: found 65, expected 2 to 64 with kind: veth"),
    "moved key": ("{kind: fake}", "{kind: fake, nic: {moderation: 1 us}}", 'study.yaml:2: testbed.nic.moderation: found "1 us", expected this key in factors'),
    "pattern on a pair": ("size: 10 MB", "size: 10 MB, pattern: many-to-one", 'study.yaml:6: workloads.0.stream.pattern: found "2 hosts", expected topology: rack with at least 3'),
    "unknown pattern": ("size: 10 MB", "size: 10 MB, pattern: all-to-all", "study.yaml:6: workloads.0.stream.pattern: found \"all-to-all\", expected 'one-to-one'"),
    "reverse and bidir": ("size: 10 MB", "size: 10 MB, reverse: true, bidir: true", "study.yaml:6: workloads.0.stream.bidir: found True, expected false where"),
    "unknown workload": ("stream:", "strem:", 'study.yaml:6: workloads.0.strem: found an unknown key, expected "stream"'),
    "two workloads in one": ("size: 10 MB}", "size: 10 MB}\n    rr: {}", 'study.yaml:6: workloads.0: found "rr, stream", expected exactly one workload'),
    "Nagle on a stream": ("factors:", "factors:\n  nagle: on", 'study.yaml:4: factors.nagle: found "on", expected no such factor with workload stream'),
    "TSO without checksum": ("factors:", "factors:\n  tso: on", 'study.yaml:4: factors.tso: found "tso on, checksum off", expected checksum on'),
    "treatment without levels": ("blocks: 6", "treatment: nagle", 'study.yaml:7: treatment: found "nagle", expected a factor with levels'),
    "rate of requests": ("stream: {size: 10 MB}", "rr: {rate: fast}", 'study.yaml:6: workloads.0.rr.rate: found "fast", expected requests per second'),
    "too many connections": ("stream: {size: 10 MB}", "rr: {connections: 600}", "study.yaml:6: workloads.0.rr.connections: found 600, expected at most 512"),
    "iperf3 invented": ("stream: {size: 10 MB}", "iperf3: {}", 'study.yaml:2: testbed.kind: found "fake", expected rack or veth for iperf3: an invented network runs no programs'),
    "FTP invented": ("stream: {size: 10 MB}", "ftp: {size: 1 MB}", 'study.yaml:2: testbed.kind: found "fake", expected rack or veth for ftp: an invented network runs no programs'),
    "part of a second": ("stream: {size: 10 MB}", "iperf3: {duration: 1.5 s}", 'study.yaml:6: workloads.0.iperf3.duration: found "1.5 s", expected whole seconds'),
    "LRO alone on veth": ("{kind: fake}\nfactors:", "{kind: veth}\nfactors:\n  offloads: on\n  lro: off", "study.yaml:5: factors.lro: found"),
    "queue discipline of a rack": ("factors:", "factors:\n  qdisc: fq", 'study.yaml:4: factors.qdisc: found "fq", expected no such factor on testbed fake'),
    "moderation on veth": ("{kind: fake}\nfactors:", "{kind: veth}\nfactors:\n  moderation: 50 us", "study.yaml:4: factors.moderation: found [5e-05], expected 0 s on testbed veth"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_where_what_and_what_was_expected(name):
    old, new, message = BAD[name]
    text = STUDY.replace(old, new)
    if name == "delay on veth":
        text, message = text.replace("kind: fake", "kind: veth"), "study.yaml:4: factors.rtt: found [0.001], expected 0"
    with pytest.raises(StudyError) as error:
        study_file.parse(text, "study.yaml")
    assert error.value.exit_code == 2
    assert error.value.problems[0].startswith(message)
    assert all("\n" not in line for line in error.value.problems)


def test_every_problem_is_reported_at_once():
    text = STUDY.replace("blocks: 6", "blocks: many").replace("10 MB", "10 lightyears")
    with pytest.raises(StudyError) as error:
        study_file.parse(text, "study.yaml")
    assert len(error.value.problems) == 2


def test_a_missing_file_and_an_unknown_preset(tmp_path):
    with pytest.raises(StudyError, match="No such file"):
        study_file.load(tmp_path / "nothing.yaml")
    with pytest.raises(StudyError, match="expected one of demo"):
        study_file.load_preset("dmeo")


@given(st.text(max_size=60))
def test_any_text_is_a_study_or_a_study_error(text):
    try:
        study_file.parse(text, "x")
    except StudyError as error:
        assert all(line.startswith("x:") for line in error.problems)  # noqa: PT017


def test_blocks_are_complete_seeded_and_random(study):
    names = sorted(arm.name for arm in arms_of(study))
    assert names == ["9000", "baseline", "control"]
    for block in range(study.blocks):
        slots = block_order(study, block)
        assert sorted(slot.arm.name for slot in slots) == sorted(names * len(cells(study)))
    assert order(study) == order(study)
    other = study.model_copy(update={"seed": 2})
    assert [slot.key for slot in order(study)] != [slot.key for slot in order(other)]
    firsts = {block_order(study.model_copy(update={"seed": seed}), 0)[0].arm.name for seed in range(30)}
    assert firsts == set(names)


def test_order_is_the_same_on_every_machine(study):
    # A resumed study on another Python must draw the same order; `random` is that of studies before there was another.
    for kind, expected in (("random", "9cb9bc"), ("balanced", "c9b9bcbc9bc9cb9c9b")):
        planned = order(study.model_copy(update={"order": kind}))
        assert "".join(slot.arm.name[0] for slot in planned).startswith(expected)


@pytest.mark.parametrize("arms", [1, 2, 3])
def test_each_arm_has_each_position_once_in_as_many_blocks_as_there_are_arms(arms):
    levels = ["1500", "4000", "9000"][: arms + 1]
    many = ", ".join(f"{each} ms" for each in range(1, 6))  # of fewer cells, test_turns tells
    text = (
        STUDY.replace("factors:", f"factors:\n  rtt: {{levels: [{many}]}}")
        .replace("levels: [1500, 9000]", f"levels: [{', '.join(levels)}]")
        .replace("blocks: 6", "blocks: 24")
    )
    for control in (True, False):
        study = study_file.parse(f"{text}control: {str(control).lower()}\n" if arms + control > 1 else text, "x")
        count = len(arms_of(study))
        for group in range(24 // count):
            blocks = [
                [slot for slot in block_order(study, block) if slot.cell.index == 2]
                for block in range(group * count, (group + 1) * count)
            ]
            for position in range(count):
                assert len({block[position].arm.name for block in blocks}) == count
        drawn = {
            tuple(slot.arm.name for slot in block_order(study, block) if slot.cell.index == 2) for block in range(24)
        }
        assert len(drawn) > count or count == 2  # not the same square throughout


def test_offloads_set_what_has_no_factor_of_its_own():
    study = study_file.parse(STUDY.replace("factors:", "factors:\n  offloads: [off, on]\n  gro: off"), "x")
    found = [nic_of({**cell.factors}) for cell in cells(study)]
    assert found == [{"tso": on, "lro": on, "gro": False, "checksum": on} for on in (False, True)]


def test_a_default_mtu_is_for_every_host_that_is_not_named():
    text = STUDY.replace("{kind: fake}", "{kind: fake, topology: rack, hosts: 4}").replace(
        "9000]", "{h3: 1500, default: 9000}]"
    )
    study = study_file.parse(text, "x")
    level = study.factors.mtu.levels[1]
    assert list(level) == ["default", "h3"]
    assert host_mtus(level, study.testbed.host_names) == {"h1": 9000, "h2": 9000, "h3": 1500, "h4": 9000}
    assert study_file.parse(study_file.dump(study), "resolved") == study


def test_every_list_of_a_workload_makes_conditions():
    text = STUDY.replace("stream: {size: 10 MB}", "rr: {rate: [null, 100], arrivals: [uniform, poisson]}\n  - iperf3:")
    text = text.replace("kind: fake", "kind: rack")
    found = [
        (cell.workload, cell.parameters.get("rate_per_second"), cell.parameters.get("arrivals"))
        for cell in cells(study_file.parse(text, "x"))
    ]
    # A closed loop has no arrivals, so it is one condition.
    assert found == [("rr", None, "uniform"), ("rr", 100, "uniform"), ("rr", 100, "poisson"), ("iperf3", None, None)]


def test_host_mtus_are_levels_and_survive_json():
    study = study_file.load(ROOT / "examples" / "mixed-mtu.yaml")
    assert json.loads(json.dumps(study.factors.mtu.levels)) == [9000, {"h1": 9000, "h2": 1500}]


def test_margins_that_nobody_states_are_the_usual_ones_of_the_workloads():
    silent = "\n".join(line for line in STUDY.splitlines() if not line.startswith("margins"))
    study = study_file.parse(silent, "study.yaml")
    assert study.margin() == {"goodput": 0.02, "receiver_cpu_cost": 0.05}
    assert study_file.parse(study_file.dump(study), "resolved") == study
    asks = silent.replace("stream: {size: 10 MB}", "rr: {duration: 1 s}") + "\nmeters: {cpu: false}\n"
    assert study_file.parse(asks, "study.yaml").margin() == {"latency_p50": 0.05, "latency_p99": 0.05}
    one = silent + "\nmargins: {fairness: default, goodput: 3 %}\n"
    assert study_file.parse(one, "study.yaml").margin() == {"fairness": 0.02, "goodput": 0.03}
    slowest = silent + "\nmargins: {smallest_goodput: default}\n"
    assert study_file.parse(slowest, "study.yaml").margin() == {"smallest_goodput": 0.05}
    conforms(yaml.safe_load(one), study_file.json_schema())
