"""Every summary.json and every comparison fulfils its schema, whatever the verdicts."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from helpers.sealing import seal
from helpers.support import ROOT, STUDY

from framegauge.cli import main as cli
from framegauge.metrics import METRICS, UNITS, is_own
from framegauge.results.journal import read
from framegauge.statistics.verdict import Verdict
from framegauge.study import file as study_file
from framegauge.summary import document as summary
from framegauge.summary.document import summarise
from framegauge.summary.schema import comparison_schema, summary_schema
from framegauge.summary.sentence import answer
from framegauge.testbeds.fake.testbed import FakeModel, Fault

VALID = jsonschema.Draft202012Validator(summary_schema())

JUMBO = {
    "better": FakeModel(),
    "worse": FakeModel(goodput_loss=0.2),
    "no practical difference": FakeModel(goodput_loss=0.049, noise=0.0005),
    "not worse": FakeModel(goodput_loss=0.04, noise=0.006),  # +1 %: on the edge of the margin that is better
    "undecided": FakeModel(goodput_loss=0.04, noise=0.02),
    "suspect": FakeModel(faults=[Fault("late", lambda up, number: up["hosts"][0]["mtu"] == 9000 and number % 3 < 2)]),
    "not judged": FakeModel(faults=[Fault("late")]),
}


@pytest.mark.parametrize("verdict", JUMBO)
def test_every_kind_of_verdict(verdict, study, execute, tmp_path):
    ask = "not worse" if verdict == "not worse" else "difference"
    execute(study.model_copy(update={"blocks": 8, "ask": ask}), JUMBO[verdict])
    found = json.loads(summary.text(summarise(read(tmp_path / "out"))))
    VALID.validate(found)
    assert verdict in [each["verdict"] for each in found["verdicts"] if each["treatment"]["mtu"] == 9000]


def test_what_does_not_work_is_a_verdict(study, execute, tmp_path):
    """No run of the arm works: the reason is the first warning, and the study is evidence all the same."""
    execute(study.model_copy(update={"blocks": 8}), JUMBO["better"])
    lines = [json.loads(line) for line in (tmp_path / "out/runs.jsonl").read_text().splitlines()]
    why = "h2: 0 of 100 operations answered"
    for each in lines:
        if each["level"] == 9000:
            each["excluded"], each["metrics"] = [f"does not work: {why}"], {}
    (tmp_path / "out/runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    seal(tmp_path / "out")
    found = json.loads(summary.text(summarise(read(tmp_path / "out"))))
    VALID.validate(found)
    mine = [each for each in found["verdicts"] if each["treatment"]["mtu"] == 9000]
    assert {(each["verdict"], each["warnings"][0], each["ratio"]) for each in mine} == {("does not work", why, None)}
    assert found["faithful"]
    assert answer(found).text.startswith("No: ")


def test_the_cases_are_all_verdicts_there_are():
    cases = {*JUMBO, "does not work"}
    assert cases == {str(each) for each in Verdict}
    properties = summary_schema()["$defs"]["verdict"]["properties"]
    assert set(properties["verdict"]["enum"]) == cases
    known = {name: metric for name, metric in METRICS.items() if not is_own(name)}
    named, declared = summary_schema()["$defs"]["metric"]["anyOf"]
    assert set(named["enum"]) == set(known)
    assert re.fullmatch(declared["pattern"], "requests_done")
    units = {metric.unit for metric in known.values()} | {unit for unit, _ in UNITS.values()}
    assert set(properties["unit"]["enum"]) == units


WIDE = """
testbed: {kind: fake}
treatment: TREATMENT
factors:
  mtu: MTU
  rtt: {levels: [0.2 ms, 1.2 ms]}
  FACTOR
workloads: [{stream: {size: 10 MB, flows: [1, 2]}}, {rr: {duration: 0.1 s}}]
blocks: 3
stop: blocks
margins: {goodput: 1 %, latency_p50: 5 %, latency_p999: 5 %, transactions: 2 %, receiver_instructions: 5 %}
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("treatment", "mtu", "factor"),
    [
        ("mtu", "{levels: [1500, {h1: 9000, h2: 1500}]}", ""),
        ("mtu", "{levels: [1500, 9000]}", "offloads: {levels: [off, on]}"),
        ("rtt", "1500", "offloads: {levels: [off, on]}"),
        ("moderation", "1500", "moderation: {levels: [50 us, 100 us]}"),
        ("congestion_control", "1500", "congestion_control: {levels: [cubic, reno]}"),
        ("offloads", "1500", "offloads: {levels: [off, on]}"),
        ("queue", "1500", "queue: [taildrop, {red: {minimum: 30 KiB, ecn: true}}, {taildrop: {frames: 100}}]"),
        ("rtt", "1500", "queue: [taildrop, {codel: {target: 1 ms}}]"),
        ("buffer", "1500", "buffer: [64 KiB, 512 KiB]"),
        ("skew", "1500", "skew: [0, -125 ppm]"),
        ("shaping", "1500", "shaping: [on, off]"),
        ("ecn", "1500", "ecn: [off, on]"),
        ("tuning", "1500", "tuning: [as-is, few]\ntunings: {few: {initial_window: 3}}"),
        ("mtu", "[1500, 9000]", "tuning: [as-is, few]\ntunings: {few: {initial_window: 3}}"),
    ],
)
def test_every_kind_of_treatment(treatment, mtu, factor, execute, tmp_path):
    text = WIDE.replace("TREATMENT", treatment).replace("MTU", mtu).replace("FACTOR", factor)
    execute(study_file.parse(text, "x"))
    found = json.loads(summary.text(summarise(read(tmp_path / "out"))))
    VALID.validate(found)
    assert found["verdicts"]
    assert found["interactions"]
    assert found["not_measured"]


def test_a_summary_before_its_first_run(study, execute, tmp_path):
    execute(study)
    (tmp_path / "out/runs.jsonl").write_bytes(b"")
    seal(tmp_path / "out")
    VALID.validate(summarise(read(tmp_path / "out")))


def test_what_the_document_shows_has_the_shape():
    text = (ROOT / "docs/reference/results.md").read_text()
    (block,) = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    shown = json.loads(block)
    VALID.validate(shown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdicts": [{}]}, "required"),
        ({"scope": "real"}, "is not one of"),
        ({"colour": 1}, "Additional properties"),
        ({"schema": 2}, "was expected"),
    ],
)
def test_the_schema_refuses_what_it_does_not_know(change, message, study, execute, tmp_path):
    execute(study)
    with pytest.raises(jsonschema.ValidationError, match=message):
        VALID.validate({**summarise(read(tmp_path / "out")), **change})


def test_a_verdict_of_a_comparison_is_one_of_a_summary(tmp_path, capsys):
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / "study.yaml").write_text(STUDY)
        assert (
            cli.main(["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / name), "--seed", str(seed)]) == 0
        )
    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(comparison_schema()).validate(document)
    shared = {"$schema": summary_schema()["$schema"], "$defs": summary_schema()["$defs"], "$ref": "#/$defs/verdict"}
    for each in document["verdicts"]:
        jsonschema.Draft202012Validator(shared).validate(each)
