"""The documents that come with framegauge, and what is refused of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from framegauge.errors import InputError, StudyError
from framegauge.experiment.planning import stated_conditions
from framegauge.metrics import SHARE_OF_FEW
from framegauge.reproduce import documents
from framegauge.reproduce.documents import Figure, Loaded
from framegauge.reproduce.readings import is_at, is_level
from framegauge.study import file as study_file
from framegauge.study.blocks import order
from framegauge.study.model import Study
from framegauge.study.sweep import Source, simulated

SHIPPED = documents.shipped()
FIGURE: Mapping[str, Any] = {
    "id": "mine-1", "place": "p", "case": "c", "quantity": "q", "published": "+5 %", "ratio": [1.04, 1.06],
    "read": {"study": "own", "level": 9000},
}  # fmt: skip
DOCUMENT: Mapping[str, Any] = {
    "document": "mine", "title": "t", "source": "s", "set_up": "u", "studies": {"own": {}}, "figures": [FIGURE],
}  # fmt: skip
# Figures without a metric of a comparison: parts of a web site, and drops.
OTHER_METRICS = {"cpu", "flow_bytes", "drops_in_a_row"}


def written(folder: Path, document: Mapping[str, Any]) -> Path:
    """A document with a study."""
    (folder / "own.yaml").write_text("question: ?\n")
    path = folder / documents.FILE
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False))
    return path


def figure(**changes: Any) -> dict[str, Any]:
    """A document whose figure has these changes; None takes a key away."""
    changed = {key: value for key, value in {**FIGURE, **changes}.items() if value is not None}
    return {**DOCUMENT, "figures": [changed]}


def test_five_documents_have_more_than_a_hundred_figures() -> None:
    assert {each.name for each in SHIPPED} == {"jumbo-2013", "outcast-2014", "vxlan-2017", "server-2000", "ceph-2022"}
    ids = [each.id for loaded in SHIPPED for each in loaded.document.figures]
    assert len(ids) == len(set(ids)) > 130
    answered = [each for loaded in SHIPPED for each in loaded.document.figures if each.not_carried is None]
    assert len(answered) >= 100


def _readings() -> Iterator[tuple[Loaded, Figure, str, str, Any, Mapping[str, Any]]]:
    """Every reading of every figure, and of every arm: its study, metric, level and conditions."""
    for loaded in SHIPPED:
        for each in loaded.document.figures:
            if each.read is None:
                continue
            yield loaded, each, each.read.study, each.read.metric, each.read.level, each.read.where
            if each.read.than is not None:
                yield loaded, each, each.read.study, each.read.metric, each.read.level, each.read.than
            for arm in (arm for name in each.arms for arm in loaded.document.arms[name]):
                metric = arm.metric or each.read.metric
                level = each.read.level if arm.level is None else arm.level
                yield loaded, each, arm.study, metric, level, arm.where


def _study(loaded: Loaded, name: str) -> Study:
    """The study of a document, as the testbed that it can run on reads it."""
    path = loaded.file(name)
    if "rack" in loaded.document.studies[name].testbeds:
        return study_file.load(path)
    return simulated(Source(path.read_text(), str(path), 2))[0]


def test_every_figure_and_arm_reads_what_its_study_measures() -> None:
    studies: dict[tuple[str, str], tuple[Study, list[tuple[Any, Mapping[str, Any]]]]] = {}
    for loaded, each, name, metric, level, where in _readings():
        if (loaded.name, name) not in studies:
            study = _study(loaded, name)
            studies[loaded.name, name] = (
                study,
                [(slot.arm.level, stated_conditions(study, slot)) for slot in order(study)],
            )
        study, slots = studies[loaded.name, name]
        place = f"{each.id}: {name}"
        # An arm may lack a level of the figure; then it is none for that.
        mine = [stated for there, stated in slots if is_level(there, level)]
        assert mine or name != (each.read and each.read.study), place
        assert not mine or any(is_at(stated, where) for stated in mine), (place, where, mine[0])
        assert metric in {*study.margins.shares(), *OTHER_METRICS}, (place, metric)


def test_every_study_of_a_document_answers_a_figure() -> None:
    for loaded in SHIPPED:
        assert set(loaded.studies_of(loaded.document.figures)) == set(loaded.document.studies), loaded.name


def test_the_share_of_the_few_is_read_where_it_is_published() -> None:
    for loaded in SHIPPED:
        for each in loaded.document.figures:
            if each.share is not None:
                assert each.read is not None
                assert each.read.metric == SHARE_OF_FEW, each.id


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (figure(read=None), 'found "none of them", expected one of read, wire and not_carried'),
        (figure(not_carried="why"), 'found "read and not_carried", expected one of read, wire and not_carried'),
        (figure(value=[1, 2]), 'read: found "ratio and value", expected at most one of ratio, share and value'),
        (figure(ratio=[2, 1]), "ratio: found [2, 1], expected the least and the most"),
        (figure(ratio=[1]), "found [1], expected at least 2 of them"),
        (figure(ratio=[float("nan"), 1]), "expected the least and the most"),
        (figure(read={"study": "owm", "level": 9000}), 'found "owm", expected "own"'),
        (figure(arms=["none"]), "arms: found"),
        (figure(colour="red"), "colour: found an unknown key"),
        (figure(id="No good"), "id: found"),
        ({**DOCUMENT, "figures": [FIGURE, FIGURE]}, 'found "mine-1", expected an id that no other figure has'),
        ({**DOCUMENT, "figures": []}, "expected at least 1 of them"),
        ({**DOCUMENT, "studies": {"own": {}, "gone": {}}}, "studies.gone: found no"),
        ({**DOCUMENT, "studies": {"own": {}, "../../own": {"file": "own.yaml"}}}, "../../own"),
        ({**DOCUMENT, "arms": {"a": [{"name": "n", "study": "gone"}]}}, 'study: found "gone"'),
    ],
)
def test_what_is_wrong_with_a_document_is_one_line_each(tmp_path: Path, document: Mapping[str, Any], said: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(StudyError) as caught:
        documents.load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_document_is_found_by_its_name_its_file_and_its_folder(tmp_path: Path) -> None:
    path = written(tmp_path, DOCUMENT)
    assert documents.named(str(path)).name == documents.named(str(tmp_path)).name == "mine"
    assert documents.named("vxlan-2017").name == "vxlan-2017"
    with pytest.raises(InputError, match="found 'vxlan', expected \"vxlan-2017\""):
        documents.named("vxlan")
    path.write_text("question: Does it?\nfactors: {}\nworkloads: []\n")
    with pytest.raises(StudyError, match="run framegauge study"):
        documents.load(path)
