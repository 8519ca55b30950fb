"""YAML that others wrote: whatever is in it, a file is read at once, or there is a line that says what is wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.mutated import mutated
from helpers.support import ROOT, by_length
from hypothesis import given, settings

from framegauge.errors import InputError, StudyError
from framegauge.files import bounded, inventory, yaml as yaml_file
from framegauge.files.machines import Inventory
from framegauge.labs import file as lab_file
from framegauge.rollout import file as rollout_file
from framegauge.study import file as study_file
from framegauge.watch import model as watch_file

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))
EXAMPLES = [path.read_text() for path in sorted((ROOT / "examples").rglob("*.yaml"))]
PLACE = re.compile(r"F:[1-9][0-9]*: .+")


def _inventory(text: str, name: str) -> Inventory:
    return yaml_file.parse(text, name, Inventory, "inventory")


def _rollout(text: str, name: str) -> rollout_file.File:
    return yaml_file.parse(text, name, rollout_file.File, "rollout")


READERS: list[Callable[[str, str], Any]] = [study_file.parse, _inventory, lab_file.parse, _rollout, watch_file.parse]


def _said(text: str) -> list[str]:
    """What each reader says of a text, whose every line must say where; nothing of one that it accepts."""
    said = []
    for read in READERS:
        try:
            read(text, "F")
        except StudyError as error:
            said += error.problems
    assert all(PLACE.fullmatch(line) and line.isprintable() for line in said), said
    return said


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_file_of_the_corpus_is_refused_with_its_line(path: Path) -> None:
    text = path.read_text()
    began = time.process_time()
    assert len(_said(text)) >= len(READERS)
    assert time.process_time() - began < 5  # the nested aliases would take years


@pytest.mark.thorough
@pytest.mark.soak(10)
@settings(max_examples=by_length(150, 20_000), deadline=None)
@given(mutated([*EXAMPLES, *(path.read_text() for path in CORPUS if path.stat().st_size < 500)]))
def test_an_edited_file_is_read_or_its_lines_say_what_is_wrong(text: str) -> None:
    _said(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question: !!bool maybe", "F:1: found an invalid !!bool, expected YAML"),
        ("a: 1\nquestion: !!timestamp foo", "F:2: found an invalid !!timestamp, expected YAML"),
        ("a: 1\n\nblocks: " + "1" * 5000, "F:3: found a number of many digits, expected YAML"),
        ("a: 1\nb: \0", "F:2: found a control character, expected YAML"),
        ("&a {question: *a}", "F:1: found a value that contains itself, expected no alias of what it is in"),
        ("a:\n  - [" + "[]," * 100_000 + "]", "F:2: found more than 100000 values"),
        ("a: " + "[" * 65 + "]" * 65, "F:1: found more than 64 levels of nesting"),
        ("? " + "k" * 2000 + "\n: 1", "F:1: found a key that is a list, a mapping or long"),
        ("a: '" + "x" * bounded.MOST_BYTES + "'", f"F: found more than {bounded.MOST_BYTES} bytes"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        yaml_file.keys(text, "F")
    assert caught.value.problems[0].startswith(said)
    assert len(caught.value.problems) == 1


def test_an_alias_stands_for_what_it_names() -> None:
    found = _inventory("options: &all [-J, jump]\nhosts: [{name: a, options: *all}]", "F")
    assert found.machines()[0].options == ["-J", "jump", "-J", "jump"]


def test_a_file_with_thousands_of_mistakes_has_the_first_of_them() -> None:
    with pytest.raises(StudyError) as caught:
        _inventory("hosts: [" + "1, " * 2000 + "1]", "F")
    assert len(caught.value.problems) == yaml_file.MOST_PROBLEMS + 1
    assert caught.value.problems[-1] == "F: and 3952 more problems"


def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StudyError, match="expected a study file of fewer"):
        study_file.load(path)


def test_an_inventory_beyond_a_limit_is_not_for_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "hosts.yaml"
    path.write_text((Path(__file__).parent / "corpus" / "aliases-nested.yaml").read_text())
    with pytest.raises(InputError, match=r"hosts\.yaml:5: found more than 100000 values"):
        inventory.load(path)


@pytest.mark.parametrize("step", ["0 s", "1 ns", "0"])
def test_a_watch_without_steps_is_refused(step: str) -> None:
    """Everything in it is counted in steps."""
    change = "change: {at: 2026-11-01T10:00:00+00:00, hosts: [a]}"
    text = f"prometheus: {{url: http://p:9090}}\n{change}\ncontrol: [b]\nbefore: 2 h\nafter: 2 h\n"
    with pytest.raises(StudyError, match=r"step: found .*, expected at least 100 ms"):
        watch_file.parse(f"{text}step: {step}\n", "F")
