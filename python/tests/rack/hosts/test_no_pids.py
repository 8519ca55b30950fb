"""A controller that gets no process or thread more (pids.max of its cgroup) says so, and leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cgroups import framegauge, limited, within
from helpers.pages import hostile
from helpers.rollouts import entries, file_of
from helpers.switched import Lab, lab

from framegauge.agents.binary import find_agent

FEW = 3


@pytest.fixture
def few() -> Iterator[Path]:
    """A cgroup for few processes."""
    with limited("pids", FEW) as group:
        yield group


@pytest.fixture(scope="module")
def hosts() -> Iterator[Lab]:
    with lab(["a", "b"]) as found:
        yield found


def _is_told(said: str) -> bool:
    """By this program, or by an agent; as an error, and not as a program that breaks."""
    told = "pids.max" in said or "Resource temporarily unavailable" in said
    return told and "Traceback" not in said and "panicked" not in said


def test_a_check_says_so_and_finds_no_fault(few: Path, hosts: Lab) -> None:
    code, said = framegauge(few, "check", *(f"netns:{name}" for name in hosts.hosts.values()))
    assert (code, _is_told(said)) == (2, True), said


def test_a_roll_out_says_so_and_changes_nothing(few: Path, hosts: Lab, tmp_path: Path) -> None:
    path = file_of(hosts, tmp_path)
    code, said = framegauge(few, "rollout", "apply", path)
    assert (code in (1, 2), _is_told(said)) == (True, True), said
    assert hosts.is_old()
    assert entries(path) == []


@pytest.mark.parametrize("limit", [FEW, 2 * FEW])
def test_a_report_says_so_whatever_of_it_lacks_a_thread(limit: int, tmp_path: Path) -> None:
    # Six are enough for the judgement; the renderer of charts wants more, and panics where it gets none.
    saved = hostile(tmp_path)
    page = tmp_path / "page.html"
    with limited("pids", limit) as group:
        code, said = framegauge(group, "report", saved.folder, "--html", page)
    assert (code, _is_told(said), page.exists()) == (2, True, False), said


@pytest.mark.parametrize("words", [("simulate", "."), ("diagnose", "-")])
def test_an_agent_says_so_without_a_panic(words: tuple[str, ...]) -> None:
    with limited("pids", 1) as group:
        code, said = within(group, find_agent(), *words)
    assert (code != 0, _is_told(said), said.count("\n")) == (True, True, 1), said
