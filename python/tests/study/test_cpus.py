"""The CPUs of simulated hosts: in a study file, in a file of their own, and what comes of them."""

import json

import pytest

from framegauge.cli.main import main
from framegauge.errors import StudyError
from framegauge.study import file as study_file
from framegauge.study.simulated import left_out
from framegauge.summary.caveats import caveats

COSTS = "receive: {packet: 1 us, aggregate: 3 us, byte: 0.5 ns}, send: {packet: 1 us, aggregate: 1 us}"
STUDY = """
testbed: {kind: simulator, link: {rate: 10 Gb/s, buffer: 16 MiB}, cpu: {COSTS}}
factors: {mtu: [1500, 9000], rtt: 50 us, gro: false}
workloads: [{stream: {duration: 30 ms}}]
blocks: 2
stop: blocks
""".replace("COSTS", COSTS)


def parse(text=STUDY, name="x"):
    return study_file.parse(text, name)


def test_costs_are_times_and_costs_of_cpus_are_judged():
    study = parse()
    assert study.testbed.cpu.as_json(cuts=False) == {
        "cores": 1, "wakeup_seconds": 0.0, "batch": 64, "hosts": None, "tso": False,
        "receive": {"packet_seconds": 1e-6, "aggregate_seconds": 3e-6, "byte_seconds": 5e-10},
        "send": {"packet_seconds": 1e-6, "aggregate_seconds": 1e-6, "byte_seconds": 0.0},
    }  # fmt: skip
    inside = parse(STUDY.replace("byte: 0.5 ns", "byte: 0.5 ns, overlay: 2 us")).testbed.cpu
    assert inside.as_json(cuts=False)["receive"]["packet_seconds"] == 1e-6
    assert inside.as_json(cuts=False, has_overlay=True)["receive"]["packet_seconds"] == pytest.approx(3e-6)
    assert inside.as_json(cuts=False, has_overlay=True)["send"]["packet_seconds"] == 1e-6
    assert "receiver_cpu_cost" in study.margin()
    assert parse(study_file.dump(study)) == study
    without = parse(STUDY.replace(f", cpu: {{{COSTS}}}", ""))
    assert "receiver_cpu_cost" not in without.margin()


def test_a_file_beside_the_study_is_read_and_the_saved_study_needs_it_no_more(tmp_path):
    (tmp_path / "mine.yaml").write_text(COSTS.replace("}, ", "}\n"))
    (tmp_path / "s.yaml").write_text(STUDY.replace(f"{{{COSTS}}}", "mine.yaml"))
    study = study_file.load(tmp_path / "s.yaml")
    assert study == parse()
    (tmp_path / "mine.yaml").unlink()
    assert parse(study_file.dump(study)) == study
    with pytest.raises(StudyError, match=r"s\.yaml:2: testbed\.cpu: found .*mine\.yaml"):
        study_file.load(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: simulator", "kind: rack", "testbed.cpu: found .*no such key unless kind: simulator"),
        ("cpu: {", "cpu: {hosts: [h3], ", 'testbed.cpu.hosts.0: found "?h3'),
        ("cpu: {", "cpu: {cores: 0, ", "testbed.cpu.cores: found 0"),
        ("packet: 1 us, aggregate: 3 us", "packet: 1 s, aggregate: 3 us", "testbed.cpu.receive.packet"),
        ("packet: 1 us, aggregate: 3 us", "packet: 1 us", "testbed.cpu.receive.aggregate"),
        ("blocks: 2", "blocks: 2\nmargins: {receiver_cycles: 1 %}", "receiver_cpu_cost or sender_cpu_cost"),
    ],
)
def test_what_cannot_be_is_one_line(old, new, expected):
    assert old in STUDY
    with pytest.raises(StudyError, match=expected):
        parse(STUDY.replace(old, new, 1))


def test_tso_is_a_factor_of_hosts_with_cpus():
    text = STUDY.replace("gro: false", "gro: false, lro: false, offloads: true, tso: [true, false]")
    study = parse(text)
    factors = study.factors
    assert "factors.tso" in left_out(factors, {}, {})
    assert left_out(factors, {}, {}, has_cpus=True) == []
    with pytest.raises(StudyError, match="one level on testbed simulator"):
        parse(text.replace(f", cpu: {{{COSTS}}}", ""))


@pytest.mark.agent
def test_a_receiver_carries_what_its_core_has_time_for(tmp_path, capsys):
    """Packets per second are 1 over what one takes: 4 us, 0.5 ns a byte, and an acknowledgement of 2 us for one or two."""
    (tmp_path / "s.yaml").write_text(STUDY.replace("cpu: {", "cpu: {hosts: [h2], "))
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--json"]) == 0
    verdicts = {each["metric"]: each for each in json.loads(capsys.readouterr().out)["verdicts"]}
    for side, mtu in (("baseline", 1500), ("treatment", 9000)):
        payload = mtu - 52
        least, most = (1e-6 + 3e-6 + payload * 0.5e-9 + 2e-6 / count for count in (2, 1))
        assert 8 * payload / most < verdicts["goodput"][side]["estimate"] < 8 * payload / least
        assert least < verdicts["receiver_cpu_cost"][side]["estimate"] * payload * 1e-9 < most
    run = json.loads((tmp_path / "out/runs.jsonl").read_text().splitlines()[0])
    assert 0.9 < run["readings"]["busiest_core_share"] <= 1.01
    assert run["readings"]["packets_per_aggregate"] == {"h2": 1.0}


def test_figures_of_modelled_cpus_are_no_evidence_about_hosts():
    (line,) = caveats(["goodput", "receiver_cpu_cost"], "simulated", [])
    assert line == "CPU figures follow from the costs that testbed.cpu states: not evidence about hosts"
    assert caveats(["goodput"], "simulated", []) == []
