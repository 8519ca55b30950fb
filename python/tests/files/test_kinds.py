"""A file of another verb is recognised, and the verb that reads it is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.support import ROOT

from framegauge.cli import main as cli
from framegauge.errors import InputError, StudyError
from framegauge.files import inventory
from framegauge.labs import file as lab_file
from framegauge.rollout import file as rollout_file
from framegauge.study import file as study_file
from framegauge.watch import model as watch_file

WATCH = """\
prometheus: {address: "http://127.0.0.1:9090"}
change: {at: "2026-11-27T10:00:00Z", hosts: [a]}
control: [b]
before: 1 h
after: 1 h
step: 15 s
"""
# The file of each kind, its name and its verb.
FILES = {
    "study": ((ROOT / "examples/rack.yaml").read_text(), "a study file", "framegauge study"),
    "watch": (WATCH, "a watch file", "framegauge watch"),
    "rollout": ((ROOT / "examples/rollout/storage.yaml").read_text(), "a roll-out's file", "framegauge rollout plan"),
    "lab": ((ROOT / "examples/faults/clean.yaml").read_text(), "a lab file", "framegauge check --testbed"),
    "inventory": ((ROOT / "examples/inventory/hosts.yaml").read_text(), "an inventory", "framegauge hosts"),
}
LOADERS: dict[str, Callable[[Path], object]] = {
    "study": study_file.load, "watch": watch_file.load, "rollout": rollout_file.load, "lab": lab_file.load,
    "inventory": inventory.load,
}  # fmt: skip


@pytest.mark.parametrize("asked", LOADERS)
@pytest.mark.parametrize("given", FILES)
def test_a_file_of_another_verb_is_named_with_what_reads_it(given: str, asked: str, tmp_path: Path) -> None:
    text, name, command = FILES[given]
    path = tmp_path / "file.yaml"
    path.write_text(text)
    if given == asked:
        return  # whether it is good is tested elsewhere
    with pytest.raises(InputError) as refused:
        LOADERS[asked](path)
    assert str(refused.value) == f"{path}:1: found {name}, expected {FILES[asked][1]}: run {command} {path}"


@pytest.mark.parametrize("given", [name for name in FILES if name != "inventory"])
def test_without_ansible_too_it_is_named(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, name, command = FILES[given]
    path = tmp_path / "file.yaml"
    path.write_text(text)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError) as refused:
        inventory.load(path)
    assert str(refused.value) == f"{path}:1: found {name}, expected an inventory: run {command} {path}"


@pytest.mark.parametrize("given", FILES)
def test_a_file_is_no_capture(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, name, command = FILES[given]
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert cli.main(["diagnose", str(path)]) == 2
    assert capsys.readouterr().err == f"framegauge: {path}:1: found {name}, expected a capture: run {command} {path}\n"


@pytest.mark.parametrize("kind", LOADERS)
def test_a_file_of_the_right_kind_with_a_mistake_has_the_mistake(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILES[kind][0] + "\nmistake: 1\n")
    with pytest.raises(StudyError, match="mistake: found an unknown key"):
        LOADERS[kind](path)


def test_what_is_added_to_a_file_does_not_make_it_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILES["study"][0])
    with pytest.raises(StudyError, match="found a study file, expected a watch file"):
        watch_file.load(path, at="2026-11-27T10:00:00Z", switched=["a"])


def test_an_empty_file_is_answered_with_keys_as_files_have_them(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("")
    with pytest.raises(StudyError, match=r"mtu, from, scope"):
        rollout_file.load(path)


def test_bytes_that_are_no_text_name_no_hosts(tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(InputError, match="found bytes that are no text, expected an inventory"):
        inventory.load(path)
