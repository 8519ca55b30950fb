"""Every example has a name, says in a line what it is about, and is copied with what it needs."""

from __future__ import annotations

import pytest
from helpers.support import ROOT

from framegauge.shipped import examples, places


def test_the_examples_of_a_clone_are_those_at_its_root() -> None:
    assert places.examples() == ROOT / "examples"
    assert places.docs() == ROOT / "docs"
    assert set(examples.names()) == {
        path.relative_to(ROOT / "examples").with_suffix("").as_posix() for path in (ROOT / "examples").rglob("*.yaml")
    }


@pytest.mark.parametrize("name", examples.names())
def test_an_example_says_in_one_sentence_what_it_is_about(name: str) -> None:
    example = examples.named(name)
    assert example is not None
    assert example.name == name
    assert example.about.endswith((".", "?"))
    assert len(example.about) <= 120, example.about


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pair", "pair"), ("pair.yaml", "pair"), ("examples/pair.yaml", "pair"), ("./examples/pair.yaml", "pair"),
        ("/somewhere/examples/faults/clean.yaml", "faults/clean"), ("clean", "faults/clean"), ("hosts", "inventory/hosts"),
        ("inventory/hosts", "inventory/hosts"), ("none", None), ("faults", None), ("", None), ("../pair", None),
    ],
)  # fmt: skip
def test_an_example_is_found_by_what_people_write(text: str, name: str | None) -> None:
    example = examples.named(text)
    assert (None if example is None else example.name) == name


@pytest.mark.parametrize(
    ("name", "beside"),
    [("pair", []), ("simulate-replay", ["simulate-replay.csv"]), ("ssh-rack", ["inventory/hosts.yaml"])],
)
def test_an_example_has_the_files_that_it_names(name: str, beside: list[str]) -> None:
    example = examples.named(name)
    assert example is not None
    assert list(map(str, example.files)) == [f"{name}.yaml", *beside]


def test_no_file_is_left_over() -> None:
    copied = {path for example in examples.examples() for path in example.files}
    folder = places.examples()
    assert copied == {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def test_simulations_are_those_that_nothing_else_runs() -> None:
    assert examples.simulations() == sorted(path.stem for path in (ROOT / "examples").glob("simulate*.yaml"))
