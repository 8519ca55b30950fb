"""The senders of a stream, and who the few are: in a study file, in its conditions, and in the plan of the workload."""

from __future__ import annotations

import pytest
import yaml
from helpers.outcomes import hosts
from helpers.schemas import conforms

from framegauge.errors import StudyError
from framegauge.experiment import planning
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study, cells
from framegauge.summary import words
from framegauge.workloads.stream import Stream

STUDY = """\
question: Who starves?
testbed: {kind: fake, topology: rack, hosts: 4}
factors: {mtu: [1500, 9000]}
workloads:
  - stream: {duration: 1 s, senders: {h3: 12, h1: 1}}
"""


def study(old: str = "", new: str = "") -> Study:
    assert old in STUDY
    return study_file.parse(STUDY.replace(old, new), "study.yaml")


def test_senders_are_a_condition_and_survive_being_resolved() -> None:
    found = study("{h3: 12, h1: 1}}", "[{h3: 12, h1: 1}, {h2: 1, h3: 2}], receiver: h4, few: h3}")
    assert [list(cell.parameters["senders"].items()) for cell in cells(found)] == [
        [("h1", 1), ("h3", 12)],  # in the order of hosts
        [("h2", 1), ("h3", 2)],
    ]
    assert not {"pattern", "flows"} & cells(found)[0].parameters.keys()
    text = study_file.dump(found)
    assert study_file.parse(text, "resolved") == found
    conforms(yaml.safe_load(text), study_file.json_schema())
    conforms(yaml.safe_load(STUDY), study_file.json_schema())
    (without,) = yaml.safe_load(study_file.dump(study(", senders: {h3: 12, h1: 1}", "")))["workloads"]
    assert not {"senders", "receiver", "few"} & without["stream"].keys()  # as older versions wrote it


def test_each_host_has_its_flows_to_the_receiver() -> None:
    found = study("{h3: 12, h1: 1}", "{h3: 2, h1: 1}, receiver: h2, rate: 10 Mb/s")
    workload = planning.workload_of(found, block_order(found, 0)[0])
    assert isinstance(workload, Stream)
    work = workload.work(hosts(4))
    assert [(flow.client, flow.server) for flow in work.flows] == [("h1", "h2"), ("h3", "h2"), ("h3", "h2")]
    assert [flow.pacing_bits_per_second for flow in work.flows] == [10_000_000, 5_000_000, 5_000_000]
    last = planning.workload_of(study(), block_order(study(), 0)[0])
    assert isinstance(last, Stream)
    assert [(flow.client, flow.server) for flow in last.work(hosts(4)).flows] == [("h1", "h4")] + 12 * [("h3", "h4")]


def test_a_sender_may_have_a_receiver_of_its_own() -> None:
    found = study("{h3: 12, h1: 1}", "{h3: 2, h1: 1}, receivers: {h1: h2}, few: h1")
    text = study_file.dump(found)
    assert study_file.parse(text, "resolved") == found
    conforms(yaml.safe_load(text), study_file.json_schema())
    workload = planning.workload_of(found, block_order(found, 0)[0])
    assert isinstance(workload, Stream)
    flows = workload.work(hosts(4)).flows
    assert [(flow.client, flow.server) for flow in flows] == [("h1", "h2"), ("h3", "h4"), ("h3", "h4")]
    assert words.condition("receivers", cells(found)[0].parameters["receivers"]) == "h1 to h2"


def test_flows_of_a_size_begin_their_rounds_with_those_of_their_host() -> None:
    work = Stream(size_bytes=1000, senders={"h1": 1, "h2": 2}).work(hosts(3))
    assert [flow.barrier for flow in work.flows] == [None, 1, 1]


def test_the_share_is_judged_by_default_where_senders_or_few_are_named() -> None:
    assert study().margin()["share_of_few"] == 0.25
    assert study("senders: {h3: 12, h1: 1}", "pattern: many-to-one, few: h1").margin()["share_of_few"] == 0.25
    assert "share_of_few" not in study("senders: {h3: 12, h1: 1}", "pattern: many-to-one").margin()


BAD = {
    "unknown host": ("h3: 12", "h9: 12", 'senders.h9: found "h9", expected a host: one of h1, h2, h3, h4'),
    "in a list": ("{h3: 12, h1: 1}", "[{h1: 1}, {h9: 12}]", 'senders.1.h9: found "h9", expected a host'),
    "no flow": ("h1: 1", "h1: 0", "senders.h1: found 0, expected"),
    "no sender": ("{h3: 12, h1: 1}", "{}", "senders: found {}, expected"),
    "the receiver sends": (
        "h1: 1",
        "h4: 1",
        'senders.h4: found "h4", expected hosts other than the receiver, the last',
    ),
    "a named receiver sends": (
        "h1: 1}",
        "h1: 1}, receiver: h1",
        'h1: found "h1", expected hosts other than the receiver',
    ),
    "a receiver of one sends": (
        "h1: 1}",
        "h1: 1}, receivers: {h1: h3}",
        'senders.h3: found "h3", expected hosts other than the receiver',
    ),
    "unknown receiver of one": ("h1: 1}", "h1: 1}, receivers: {h1: h9}", 'receivers.h1: found "h9", expected a host'),
    "receiver of none": (
        "h1: 1}",
        "h1: 1}, receivers: {h2: h4}",
        'receivers.h2: found "h2", expected a sender: one of',
    ),
    "receivers alone": ("senders: {h3: 12, h1: 1}", "receivers: {h1: h2}", "expected no such key without senders"),
    "unknown receiver": ("h1: 1}", "h1: 1}, receiver: h7", 'receiver: found "h7", expected a host'),
    "receiver alone": ("senders: {h3: 12, h1: 1}", "receiver: h2", "expected no such key without senders"),
    "with a pattern": (
        "h1: 1}",
        "h1: 1}, pattern: one-to-one",
        "pattern: found ['one-to-one'], expected no such key with",
    ),
    "with flows": ("h1: 1}", "h1: 1}, flows: 2", "flows: found [2], expected no such key with senders"),
    "reverse": ("h1: 1}", "h1: 1}, reverse: true", "reverse: found True, expected false with senders"),
    "both ways": ("h1: 1}", "h1: 1}, bidir: true", "bidir: found True, expected false with senders"),
    "on a pair": (
        "topology: rack, hosts: 4",
        "topology: pair",
        'senders: found "2 hosts", expected topology: rack with',
    ),
    "unknown few": ("h1: 1}", "h1: 1}, few: h2", 'few: found "h2", expected a sender: one of h1, h3'),
    "all are few": ("h1: 1}", "h1: 1}, few: [h1, h3]", 'few: found "h1, h3", expected some of the senders'),
    "few of a pair of hosts": (
        "senders: {h3: 12, h1: 1}",
        "few: h1",
        "few: found ['h1'], expected no such key without",
    ),
    "two NICs": ("h1: 1}", "h1: 1}, nics: 2", "nics: found [2], expected 1 with senders"),
}


@pytest.mark.parametrize(("old", "new", "said"), BAD.values(), ids=BAD)
def test_what_makes_no_sense_is_one_line(old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError) as error:
        study(old, new)
    assert said in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert str(error.value).startswith("study.yaml:")
