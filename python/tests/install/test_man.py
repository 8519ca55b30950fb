"""The manual pages, by the programs that read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.support import ROOT

from framegauge.cli import main


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("man")
    words = [sys.executable, "scripts/man.py", str(folder)]
    subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    return sorted(folder.iterdir())


def rendered(path: Path) -> str:
    """As a terminal shows it, without bold and underlined letters."""
    words = ["mandoc", "-T", "ascii", str(path)]
    return subprocess.run(
        f"{' '.join(words)} | col -bx", shell=True, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def test_there_is_one_per_verb(pages: list[Path]) -> None:
    assert {path.stem for path in pages} == {"framegauge", *(f"framegauge-{verb}" for verb in main.VERBS)}


@pytest.mark.needs("mandoc")
def test_nothing_is_wrong_with_them(pages: list[Path]) -> None:
    words = ["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.stdout + found.stderr == ""


@pytest.mark.needs("groff")
def test_groff_renders_them_without_a_warning(pages: list[Path]) -> None:
    for path in pages:
        words = ["groff", "-man", "-Tutf8", "-ww", "-rLL=100n", str(path)]
        found = subprocess.run(words, capture_output=True, text=True, check=True)
        assert found.stderr == "", path.name


@pytest.mark.needs("mandoc", "col")
def test_they_say_what_help_says(pages: list[Path]) -> None:
    study = rendered(next(path for path in pages if path.stem == "framegauge-study"))
    for words in ("framegauge-study - run a controlled", "--preset NAME", "EXAMPLES", "EXIT STATUS", "--dry-run"):
        assert words in study
    assert "framegauge study --preset demo\n" in study
    rack = rendered(next(path for path in pages if path.stem == "framegauge-rack"))
    assert "framegauge rack exec h1 -- iperf3 -s\n" in rack


def test_a_build_can_be_repeated(tmp_path: Path) -> None:
    for name in ("a", "b"):
        words = ["env", "SOURCE_DATE_EPOCH=0", sys.executable, "scripts/man.py", str(tmp_path / name)]
        subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    assert (tmp_path / "a/framegauge.1").read_bytes() == (tmp_path / "b/framegauge.1").read_bytes()
    assert " 1970" in (tmp_path / "a/framegauge.1").read_text().replace('"', " ")
