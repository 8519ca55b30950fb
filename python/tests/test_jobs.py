"""What runs side by side in `scripts/checks.py`, that nothing is waited for without end, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.support import PATIENCE_SECONDS, ROOT, script

checks = script("checks")
jobs = sys.modules["jobs"]

# Of which each leaves something in a session of its own: a check that obeys, one that obeys nothing, and a run of
# pytest with workers, of which a test has started a program.
STUBBORN = "trap '' INT TERM HUP; setsid sleep 1000 & sleep 1001 & wait; wait; wait"
TEST = """
import subprocess, time
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_that_waits(number):
    subprocess.Popen(["sleep", "1002"], start_new_session=True)
    open(f"there-{number}", "w").close()
    time.sleep(1003)
"""
RUNNER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "scripts")!r})
import checks, jobs
jobs.PATIENCE = tuple((number, min(seconds, 3.0)) for number, seconds in jobs.PATIENCE)
jobs.end.__defaults__ = (jobs.PATIENCE,)
checks.ROOT = Path.cwd()
checks.GROUPS["small"] = [
    checks.Check("obeys", ["sh", "-c", "setsid sleep 1000 & sleep 1001"], 0),
    checks.Check("stubborn", ["sh", "-c", {STUBBORN!r}], 0),
    checks.pytest("tests", "-n", "2", "-p", "no:cacheprovider", "test_waiting.py", cpus=0),
]
sys.exit(checks.main(["small"]))
"""


# One that fails the first time, as if work beside it had held it up, and one that is asked to fail always.
AGAIN = """
from pathlib import Path

def test_that_is_held_up():
    count = len(list(Path().glob("held-up-*")))
    Path(f"held-up-{count}").touch()
    assert count > 0

def test_with_a_fault():
    assert not Path("fault").exists()

def test_that_passes():
    pass
"""
ONCE_MORE = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "scripts")!r})
import checks
checks.ROOT = Path.cwd()
checks.GROUPS["test"] = [
    checks.Check("lint", [*sys.argv[1:]]),
    checks.pytest("racks", "-p", "no:cacheprovider", "python/tests/rack"),
]
sys.exit(checks.main(["test"]))
"""


def started_by(runner: int) -> dict[int, bytes]:
    """All that carries the mark of a runner's checks, whoever is its parent."""
    running = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{jobs.MARK}={runner}.".encode() in (entry / "environ").read_bytes():
                running[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:
            continue
    return running


@pytest.mark.thorough
@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_to_the_runner_alone_ends_all_that_it_started(tmp_path: Path, numbers: list[int]) -> None:
    (tmp_path / "test_waiting.py").write_text(TEST)
    (tmp_path / "pytest.ini").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as runner:  # fmt: skip
        while not all((tmp_path / f"there-{number}").exists() for number in (1, 2)):
            assert runner.poll() is None
            time.sleep(0.05)
        words = started_by(runner.pid).values()
        assert sum(b"sleep\x00100" in command for command in words) >= 6
        for number in numbers:
            os.kill(runner.pid, number)
            time.sleep(0.5)
        said, _ = runner.communicate(timeout=60)
    assert started_by(runner.pid) == {}
    assert runner.returncode == 130
    assert f"ended by {signal.Signals(numbers[0]).name}, and with it all that was started" in said


def ran_with(folder: Path, *lint: str) -> tuple[int, str]:
    """How a runner ends, and what it prints, with these tests on racks and a check of this command."""
    (folder / "python/tests/rack").mkdir(parents=True)
    (folder / "python/tests/rack/test_again.py").write_text(AGAIN)
    (folder / "pytest.ini").touch()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    words = [sys.executable, "-c", ONCE_MORE, *lint]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    return done.returncode, done.stdout


@pytest.mark.thorough
def test_a_test_on_racks_that_passes_alone_is_listed_and_not_red(tmp_path: Path) -> None:
    code, said = ran_with(tmp_path, "true")
    assert code == 0
    assert "failed beside other checks, passed alone:\n  python.tests.rack.test_again::test_that_is_held_up\n" in said
    assert "failed tests" not in said
    assert "passed (2 of 2 checks; 3 tests passed; " in said


@pytest.mark.thorough
def test_a_test_on_racks_with_a_fault_stays_red(tmp_path: Path) -> None:
    (tmp_path / "fault").touch()
    code, said = ran_with(tmp_path, "true")
    assert code == 1
    assert "failed beside other checks, passed alone:\n  python.tests.rack.test_again::test_that_is_held_up\n" in said
    assert (
        "failed tests:\n  python.tests.rack.test_again::test_with_a_fault\n    AssertionError: assert not True\n"
        in said
    )
    assert "FAILED: racks (1 of 2 checks; 2 tests passed, 1 failed; " in said


@pytest.mark.thorough
def test_beside_any_other_failure_nothing_is_run_again(tmp_path: Path) -> None:
    code, said = ran_with(tmp_path, "false")
    assert code == 1
    assert "passed alone" not in said
    assert "FAILED: lint, racks (0 of 2 checks; 2 tests passed, 1 failed; " in said


def ran(*given: Any, cpus: int = 2) -> dict[str, Any]:
    """How jobs ended, by name, in their order."""
    ended: dict[str, Any] = {}
    assert jobs.Jobs(given, cpus, ROOT, lambda job, how: ended.update({job.name: how})).run()
    return ended


def test_a_check_that_takes_too_long_is_red_and_its_whole_tree_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.end, "__defaults__", (tuple((number, 1.0) for number, _ in jobs.PATIENCE),))
    ended = ran(
        jobs.Job("hangs", ["sh", "-c", f"echo said before; {STUBBORN}"], 2, limit_seconds=1.0),
        jobs.Job("next", ["true"], 2),
    )
    assert [(name, job.passed) for name, job in ended.items()] == [("hangs", False), ("next", True)]
    assert ended["hangs"].lines[0] == "said before\n"
    assert ended["hangs"].why.startswith("ended after 1 s, which is all it may take; these were running:\n")
    assert {"sleep 1000", "sleep 1001"} <= {line.split(maxsplit=1)[1] for line in ended["hangs"].why.splitlines()[1:]}
    assert started_by(os.getpid()) == {}


def test_a_check_that_fails_or_is_no_program_keeps_no_other_from_running(capfd: pytest.CaptureFixture[str]) -> None:
    ended = ran(
        jobs.Job("fails", ["sh", "-c", "echo why; exit 3"]),
        jobs.Job("is none", ["no-such-program"], after=["fails"]),
        jobs.Job("passes", ["true"], after=["is none"]),
    )
    assert {name: job.passed for name, job in ended.items()} == {"fails": False, "is none": False, "passes": True}
    said = capfd.readouterr().out
    assert "why\n-- fails: FAILED, " in said
    assert "no-such-program: No such file or directory\n-- is none: FAILED, " in said


def at_a_time(*given: tuple[str, int, dict[str, Any]], cpus: int = 2) -> list[set[str]]:
    """Which jobs run at a time, if the one that began first always ends first. Nothing is started."""
    seen: list[set[str]] = []

    class Imagined(jobs.Jobs):
        def _begin(self, job: Any) -> None:
            self._running[job] = 0, 0.0

        def follow(self) -> None:
            self._begin_some()
            while self._running:
                seen.append({job.name for job in self._running})
                first = next(iter(self._running))
                del self._running[first]
                self._ended.add(first.name)
                self._begin_some()
            assert not self._waiting

    made = [jobs.Job(name, ["true"], busy, **rest) for name, busy, rest in given]
    Imagined(made, cpus, ROOT, lambda job, how: None).follow()
    return seen


def test_no_more_are_busy_than_there_are_cpus_and_those_that_wait_do_not_count() -> None:
    together = at_a_time(("all", 2, {}), ("a", 1, {}), ("b", 1, {}), ("c", 1, {}), ("waits", 0, {}))
    assert together == [{"all", "waits"}, {"waits", "a", "b"}, {"a", "b"}, {"b", "c"}, {"c"}]


def test_more_cpus_than_there_are_is_all_of_them() -> None:
    assert at_a_time(("many", 8, {}), ("a", 1, {})) == [{"many"}, {"a"}]


def test_the_first_in_line_has_the_first_free_cpus() -> None:
    assert at_a_time(("a", 1, {}), ("all", 2, {}), ("b", 1, {})) == [{"a"}, {"all"}, {"b"}]


def test_those_that_wait_for_others_are_passed() -> None:
    assert at_a_time(("a", 1, {}), ("b", 1, {"after": ["a"]}), ("c", 1, {})) == [{"a", "c"}, {"c", "b"}, {"b"}]


def test_one_measures_at_a_time() -> None:
    measures = {"one_of": "measures"}
    assert at_a_time(("a", 1, measures), ("b", 1, measures), ("c", 1, {})) == [{"a", "c"}, {"c", "b"}, {"b"}]


def test_one_that_looks_at_the_machine_is_apart_from_its_kind() -> None:
    looks, tests = {"kind": "tests", "apart": True}, {"kind": "tests"}
    together = at_a_time(("looks", 0, looks), ("compiles", 1, {}), ("a", 1, tests))
    assert together == [{"looks", "compiles"}, {"compiles", "a"}, {"a"}]
    assert at_a_time(("a", 1, tests), ("looks", 0, looks), ("b", 1, tests))[-1] == {"looks"}


def test_a_change_is_judged_by_the_same_inputs_each_time() -> None:
    seeds = {
        check.name: check.environment.get("PROPTEST_RNG_SEED")
        for group in ("quick", "test") for check in checks.GROUPS[group]
        if check.name.startswith("cargo test")
    }  # fmt: skip
    assert seeds == {"cargo test, pure": "1", "cargo test": "1"}
    assert [check.environment for check in checks.GROUPS["soak"] if check.name == "properties"] == [
        {"PROPTEST_CASES": "20000"}
    ]


@pytest.mark.parametrize("group", ["lint", "quick", "test", "soak"])
def test_every_check_has_a_limit_and_a_rack_never_measures_beside_another(group: str) -> None:
    given = checks.GROUPS[group]
    assert all(0 < check.limit_seconds <= checks.SOAK_SECONDS for check in given)
    assert all(check.limit_seconds <= checks.RACKS_SECONDS for check in given if group != "soak")
    assert all(check.cpus <= checks.CPUS for check in given)
    jobs.Jobs(given, checks.CPUS, ROOT, print)  # each waits for one that there is


def test_what_compiles_is_before_the_tests_and_all_named_tests_are_there() -> None:
    names = [check.name for check in checks.GROUPS["test"]]
    assert names.index("cargo build") < names.index("pytest") < names.index("pytest, racks")
    assert [path for path in checks.BESIDE if not (ROOT / path).exists()] == []
