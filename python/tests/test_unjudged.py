"""Tests that are not judged because the machine was busy: what may be so, and when there are too many."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers.support import ROOT, script

checks = script("checks")
HELD = "fidelity: h1 waited 40 ms for a CPU, expected at most 5 ms"
TESTS = f'''\
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from helpers.real import each_level, judged

HELD = "{HELD}"
made = []


@dataclass
class Run:
    level: int
    excluded: list[str] = field(default_factory=list)


def making(folder, *attempts):
    """Each attempt makes one run at each of two levels, of which the second is excluded for these reasons."""
    waiting = list(attempts)

    def make():
        assert list(folder.iterdir()) == []
        (folder / "runs").touch()
        made.append(waiting)
        return [Run(1500), Run(9000, waiting.pop(0))]

    return judged(make, folder, each_level)


def test_faithful(tmp_path):
    assert making(tmp_path, []) == [Run(1500), Run(9000)]


def test_faithful_the_second_time(tmp_path):
    assert making(tmp_path, [HELD], []) == [Run(1500), Run(9000)]
    assert (tmp_path.with_name(tmp_path.name + "-unfaithful") / "runs").exists()


def test_unfaithful_twice(tmp_path):
    making(tmp_path, [HELD], [HELD], [])


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return making(tmp_path_factory.mktemp("shared"), [HELD], [HELD])


def test_of_shared_runs(shared):
    raise AssertionError


def test_again_of_shared_runs(shared):
    raise AssertionError


@pytest.mark.parametrize("fault", ["proof: MSS", "conservation: 1 frame", "error: lost", "load: 3 %", "does not work"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_fault(tmp_path, fault, attempts):
    making(tmp_path, *[[HELD]] * (attempts - 1), [HELD, fault], [])


def test_not_enough_though_all_runs_count(tmp_path):
    judged(lambda: [Run(1500)], tmp_path, lambda runs: len(runs) > 1)


def test_no_run_at_all(tmp_path):
    judged(list, tmp_path, each_level)


def test_wrong_with_faithful_runs(tmp_path):
    assert making(tmp_path, [HELD], []) == []


def test_left_out():
    pytest.skip("not judged, some would say")
'''
UNJUDGED = ["test_unfaithful_twice", "test_of_shared_runs", "test_again_of_shared_runs"]


@pytest.fixture(scope="module", params=["", "-n2"])
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What pytest said of them, and the folder with its report; in CI, where a test that cannot run fails."""
    folder = tmp_path_factory.mktemp("checks")
    place = folder / "python/tests/rack/test_these.py"
    place.parent.mkdir(parents=True)
    place.write_text(TESTS)
    (folder / "pytest.ini").touch()
    words = [sys.executable, "-m", "pytest", "-p", "helpers.unjudged", "--junitxml=report.xml", *request.param.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python/tests"), "CI": "true"}
    environment.pop("PYTEST_ADDOPTS", None)
    result = subprocess.run(
        [*words, "python"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout.splitlines(), folder


def test_only_what_the_machine_held_up_twice_is_not_judged(done: tuple[list[str], Path]) -> None:
    lines, _ = done
    assert re.search(r"\b13 failed, 2 passed, 1 skipped, 3 not judged in ", lines[-1])
    at = lines.index("3 tests not judged, because the machine was busy:")
    expected = sorted(f"  python/tests/rack/test_these.py::{name}: {HELD}" for name in UNJUDGED)
    assert sorted(lines[at + 1 : at + 4]) == expected


def test_every_other_fault_fails_with_its_reason(done: tuple[list[str], Path]) -> None:
    cases = list(ElementTree.parse(done[1] / "report.xml").iter("testcase"))
    said = {case.get("name"): failure.get("message") for case in cases for failure in case.iter("failure")}
    assert len(said) == 13
    for attempts in (1, 2):
        for fault in ("proof: MSS", "conservation: 1 frame", "error: lost", "load: 3 %", "does not work"):
            assert str(said[f"test_fault[{attempts}-{fault}]"]).endswith(f"machine was busy:\n  {fault}")
    for name in ("test_not_enough_though_all_runs_count", "test_no_run_at_all"):
        assert "no run was excluded" in str(said[name])


def report(folder: Path, judged: int, unjudged: int, name: str = "part", room: str = "rack") -> None:
    """pytest's report of so many tests."""
    suite = ElementTree.Element("testsuite")
    for number in range(judged + unjudged):
        case = ElementTree.SubElement(suite, "testcase", classname=f"python.tests.{room}.{name}", name=str(number))
        if number >= judged:
            ElementTree.SubElement(case, "skipped", message=f"not judged: {HELD}")
    ElementTree.SubElement(
        ElementTree.SubElement(suite, "testcase", classname=f"python.tests.{room}.{name}", name="out"), "skipped",
        message="needs root",
    )  # fmt: skip
    ElementTree.ElementTree(suite).write(folder / f"{name}.xml")


@pytest.mark.parametrize(("judged", "unjudged", "code"), [(100, 0, 0), (98, 2, 0), (97, 3, 1), (0, 0, 0), (0, 1, 1)])
def test_above_two_percent_of_the_tests_on_racks_the_runner_is_red(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judged: int, unjudged: int, code: int
) -> None:
    """Over all parts. Tests without a rack do not count, though they were judged."""
    report(tmp_path, judged // 2, unjudged)
    report(tmp_path, judged - judged // 2, 0, "other")
    report(tmp_path, 5000, 0, "pure", "study")
    assert checks.summed_up(3, checks.Results(tmp_path), 5.0) == code
    printed = capsys.readouterr().out
    assert printed.count(HELD) == unjudged
    assert (f"{unjudged} not judged: the machine was busy (listed above)" in printed) == (unjudged > 0)
    assert printed.splitlines()[-1].startswith("FAILED: " if code else "passed (")


def test_what_pytest_writes_is_what_the_runner_reads(
    done: tuple[list[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = checks.Results(tmp_path)
    (tmp_path / "racks.xml").write_bytes((done[1] / "report.xml").read_bytes())
    results.tally.read(done[0][-1])
    assert sorted(results.unjudged()) == sorted((f"python.tests.rack.test_these::{name}", HELD) for name in UNJUDGED)
    assert results.judgeable() == 18
    assert len(results.failures()) == 13
    assert checks.summed_up(1, results, 5.0) == 1
    assert "(1 of 1 checks; 2 tests passed, 13 failed, 1 not run here (listed above); 3 not judged: " in (
        capsys.readouterr().out
    )
