"""What `scripts/fuzz.py` says of a fuzzer's end, and where there is none. The targets are tested by cargo test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.support import ROOT, script

fuzz, checks = script("fuzz"), script("checks")
FOUND = """\
INFO: seed corpus: files: 3 min: 5b max: 60b total: 90b rss: 40Mb
#64 pulse  cov: 10 ft: 11 corp: 4/90b
thread '<unnamed>' panicked at crates/fuzzing/src/wire.rs:14:9:
artifact_prefix='artifacts/hello/'; Test unit written to artifacts/hello/crash-01ab
stat::number_of_executed_units: 65
"""


def test_an_input_that_fails_is_named_with_the_way_to_see_it_again() -> None:
    outcome = fuzz.read("hello", 77, FOUND)
    assert outcome.failed.splitlines()[0] == (
        "FAILED with fuzz/artifacts/hello/crash-01ab; to see it again: "
        "cp fuzz/artifacts/hello/crash-01ab fuzz/seeds/hello/ && cargo test -p framegauge-fuzzing"
    )
    assert outcome.text().splitlines()[1] == "    thread '<unnamed>' panicked at crates/fuzzing/src/wire.rs:14:9:"


@pytest.mark.parametrize(
    ("code", "output", "text"),
    [
        (0, "stat::number_of_executed_units: 1234567\n", "hello: 1234567 inputs, nothing found"),
        (1, "error: no such target\n", "hello: FAILED, exit code 1\n    error: no such target"),
        # Killed, or ended before the first input.
        (
            -9,
            "stat::number_of_executed_units: 12\n",
            "hello: FAILED, exit code -9\n    stat::number_of_executed_units: 12",
        ),
        (0, "", "hello: FAILED, exit code 0\n"),
    ],
)
def test_only_a_fuzzer_that_tried_inputs_and_ended_well_found_nothing(code: int, output: str, text: str) -> None:
    assert fuzz.read("hello", code, output).text() == text


@pytest.mark.parametrize(("in_ci", "code", "tally"), [("", 0, (0, 0, 2)), ("true", 1, (0, 2, 0))])
def test_without_a_fuzzer_it_says_what_is_missing(
    tmp_path: Path, in_ci: str, code: int, tally: tuple[int, ...]
) -> None:
    words = [sys.executable, str(ROOT / "scripts/fuzz.py"), "hello", "frame"]
    environment = {**os.environ, "PATH": str(tmp_path), "CI": in_ci}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    *lines, count = done.stdout.splitlines()
    assert lines == [
        "not run here: missing: a nightly compiler; rustup toolchain install nightly",
        "not run here: missing: cargo-fuzz; cargo install --locked cargo-fuzz",
    ]
    assert done.returncode == code
    read = checks.Tally()
    read.read(count)
    assert (read.passed, read.failed, read.not_run) == tally


def test_a_target_that_is_none_is_refused() -> None:
    words = [sys.executable, str(ROOT / "scripts/fuzz.py"), "hallo"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "found 'hallo', expected one of " in done.stderr


def test_every_target_shares_the_hour_of_a_soak() -> None:
    assert {"pipe_message", "rack_up", "frame"} <= set(fuzz.TARGETS)
    assert [check.command[1:] for check in checks.GROUPS["soak"] if check.name == "fuzz"] == [["scripts/fuzz.py"]]


def test_what_looks_at_the_whole_machine_for_leavings_has_no_rack_beside_it() -> None:
    beside = [ROOT / each for each in (*checks.PROOFS, *checks.CAPTURES, *checks.PROGRAMS, *checks.HOSTS)]
    files = [file for each in beside for file in (each.rglob("test_*.py") if each.is_dir() else [each])]
    assert files
    assert [file.name for file in files if "with leaves_nothing(" in file.read_text()] == []
