"""Queue disciplines as levels: one form for one level, texts that are short and never alike, and back to a file."""

import json

import jsonschema
import pytest
from helpers.support import PIPE_SCHEMA as SCHEMA, STUDY
from hypothesis import given, strategies as st

from framegauge.errors import StudyError
from framegauge.networks import disciplines
from framegauge.study import file as study_file
from framegauge.study.model import level_text
from framegauge.summary import words

PIPE = jsonschema.Draft202012Validator({"$ref": "#/$defs/queue", "$defs": SCHEMA["$defs"]})


def level(written):
    """What a study makes of a level as a file has it."""
    text = STUDY.replace("factors:", f"factors:\n  queue: {json.dumps(written)}")
    study = study_file.parse(text, "study.yaml")
    assert study_file.parse(study_file.dump(study), "resolved") == study
    return study.factors.queue.levels[0]


@pytest.mark.parametrize(
    ("written", "found", "text"),
    [
        ("sfq", "sfq", "sfq"),
        ({"sfq": None}, "sfq", "sfq"),
        ({"red": {"minimum": "30 KiB", "maximum": "90 KiB", "weight": 0.002, "probability": 0.1, "gentle": True, "ecn": True}},
         {"kind": "red", "minimum_bytes": 30720, "maximum_bytes": 92160, "ecn": True}, "red (30 to 90 KiB, ECN)"),
        ({"red": {"minimum": "30 kB", "maximum": "90 KiB"}},
         {"kind": "red", "minimum_bytes": 30000, "maximum_bytes": 92160}, "red (30 kB to 90 KiB)"),
        ({"red": {"minimum": "30 KiB", "weight": 0.01, "gentle": False}},
         {"kind": "red", "minimum_bytes": 30720, "weight": 0.01, "gentle": False}, "red (from 30 KiB, weight 0.01, not gentle)"),
        ({"red": {"frames": 100, "minimum_frames": 8, "maximum_frames": 25}},
         {"kind": "red", "minimum_frames": 8, "maximum_frames": 25, "limit_frames": 100},
         "red (8 to 25 frames, room for 100 frames)"),
        ({"taildrop": {"frames": 100}}, {"kind": "taildrop", "limit_frames": 100}, "taildrop (room for 100 frames)"),
        ({"random_drop": {"frames": 100}}, {"kind": "random_drop", "limit_frames": 100},
         "random_drop (room for 100 frames)"),
        ({"step": {"threshold": "65 kB"}}, {"kind": "step", "threshold_bytes": 65000}, "step (above 65 kB)"),
        # All as it would be anyway: no other level.
        ({"codel": {"target": "5 ms", "interval": "100 ms", "ecn": False}}, "codel", "codel"),
        ({"codel": {"target": "1 ms", "ecn": True}}, {"kind": "codel", "target_seconds": 0.001, "ecn": True},
         "codel (target 1 ms, ECN)"),
        ({"fq_codel": {"buckets": 64, "quantum": 9018}}, {"kind": "fq_codel", "buckets": 64, "quantum_bytes": 9018},
         "fq_codel (64 buckets, quantum 9018 B)"),
        ({"sfq": {"perturbation": "0 s"}}, {"kind": "sfq", "perturbation_seconds": 0.0}, "sfq (perturbed every 0 ns)"),
        ({"priority": {"bands": 3}}, {"kind": "priority", "bands": 3}, "priority (3 bands)"),
        ({"blackout": {"mean_off": "2 ms", "run_length": 7, "input_port": "h1>switch", "frames": 50}},
         {"kind": "blackout", "mean_off_seconds": 0.002, "frames": 7, "input_port": "h1>switch", "limit_frames": 50},
         "blackout (off 2 ms, runs of 7, of h1>switch, room for 50 frames)"),
    ],
)  # fmt: skip
def test_a_level_has_one_form_and_a_short_text(written, found, text):
    assert level(written) == found
    assert disciplines.text(found) == words.level(found) == level_text(found) == text
    PIPE.validate(disciplines.as_json(found))


@pytest.mark.parametrize(
    ("level", "found"),
    [("step", True), ("red", False), ({"kind": "red", "ecn": True}, True), ({"kind": "codel", "ecn": False}, False)],
)
def test_what_marks(level, found):
    assert disciplines.marks(level) is found


SIZES = st.integers(1, 10**7)
SECONDS = st.floats(1e-6, 100, allow_nan=False).map(lambda value: float(f"{value:.12g}"))
LEVELS = st.one_of(
    st.sampled_from(["taildrop", "random_drop", "red", "sfq", "codel", "fq_codel", "step", "priority", "blackout"]),
    st.fixed_dictionaries(
        {"kind": st.just("red")},
        optional={
            "minimum_bytes": SIZES, "maximum_bytes": SIZES, "weight": st.floats(1e-9, 1), "ecn": st.booleans(),
            "probability": st.floats(1e-9, 1), "gentle": st.booleans(),
        },
    ),
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["codel", "fq_codel"])},
        optional={"target_seconds": SECONDS, "interval_seconds": SECONDS, "ecn": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("sfq")}, optional={"buckets": SIZES, "quantum_bytes": SIZES, "perturbation_seconds": SECONDS}
    ),
)  # fmt: skip


@given(LEVELS, LEVELS)
def test_no_two_levels_look_alike(one, other):
    """An arm is named by its level's text: were two alike, their runs would be one arm's."""
    same = disciplines.as_json(one) == disciplines.as_json(other)
    assert (disciplines.text(one) == disciplines.text(other)) is same


BAD = {
    "{rde: {}}": 'study.yaml:4: factors.queue.rde: found an unknown key, expected "red"',
    "rde": 'study.yaml:4: factors.queue: found "rde", expected "red"',
    "[taildrop, fqcodel]": 'study.yaml:4: factors.queue.1: found "fqcodel", expected "fq_codel"',
    "7": "study.yaml:4: factors.queue: found 7, expected a queue discipline: one of taildrop, random_drop, step, red,",
    "{red: {minimun: 30 KiB}}": 'study.yaml:4: factors.queue.red.minimun: found an unknown key, expected "minimum"',
    "{red: {minimum: 90 KiB, maximum: 30 KiB}}": "study.yaml:4: factors.queue.red.minimum: found 92160, expected less than maximum 30720",
    "{red: {minimum: 0}}": "study.yaml:4: factors.queue.red.minimum: found 0, expected a maximum, too: its default is three times the minimum",
    "{red: {frames: 100, minimum: 30 KiB}}": "study.yaml:4: factors.queue.red.minimum: found 30720, expected minimum_frames: the buffer is in frames",
    "{red: {maximum_frames: 30}}": "study.yaml:4: factors.queue.red.maximum_frames: found 30, expected maximum, or frames: the buffer is in bytes",
    "{red: {weight: 0}}": "study.yaml:4: factors.queue.red.weight: found 0, expected more than 0",
    "{step: {threshold: 1 MB}}": 'study.yaml:4: factors.queue.step.threshold: found "1 MB", expected at most the buffer of 512 KiB',
    "{taildrop: {frames: 0}}": "study.yaml:4: factors.queue.taildrop.frames: found 0, expected at least 1",
    "{taildrop: {}, red: {}}": 'study.yaml:4: factors.queue: found "red, taildrop", expected exactly one of taildrop,',
    "{blackout: {input_port: h1>swich}}": 'study.yaml:4: factors.queue.blackout.input_port: found "h1>swich", expected a port: "h1>switch"',
    "{levle: [red, sfq]}": 'study.yaml:4: factors.queue.levle: found an unknown key, expected "levels"',
    "{red: [1]}": "study.yaml:4: factors.queue.red: found [1], expected a mapping",
    "[{sfq: {buckets: 128}}, sfq]": 'study.yaml:4: factors.queue: found "sfq", expected each level once',
}  # fmt: skip


@pytest.mark.parametrize("written", BAD)
def test_what_cannot_be_is_one_line(written):
    text = STUDY.replace("factors:", f"factors:\n  queue: {written}")
    with pytest.raises(StudyError) as error:
        study_file.parse(text, "study.yaml")
    assert error.value.problems[0].startswith(BAD[written]), error.value.problems[0]
    assert all("\n" not in line for line in error.value.problems)
