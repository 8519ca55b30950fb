"""Standard output and standard error that are full, closed or not read to their end change no exit code; the first
prints one line at most."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# A clear answer, two that are no, and bad input.
COMMANDS = {
    "help": (["help", "check"], 0),
    "wire": (["wire", "--mtu", "9000"], 0),
    "schema": (["schema"], 0),
    "bad input": (["wire", "--mtu", "none"], 2),
}


def run(words: list[str], stdout: int | None, unbuffered: str, before: str = "") -> tuple[int, str]:
    """The exit code and what standard error has."""
    shell = ["sh", "-c", f'{before}exec "$@"', "sh", sys.executable, "-m", "framegauge", *words]
    done = subprocess.run(
        shell, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_the_code_of_the_answer(name: str, unbuffered: str) -> None:
    words, code = COMMANDS[name]
    with Path("/dev/full").open("wb") as full:
        found, said = run(words, full.fileno(), unbuffered)
    assert found == code
    if code == 0:
        assert said == "framegauge: standard output: No space left on device: not all of it was written\n"
    assert "Traceback" not in said


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_has_left_and_a_closed_output_say_nothing(name: str, unbuffered: str) -> None:
    words, code = COMMANDS[name]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        left = run(words, writing, unbuffered)
    finally:
        os.close(writing)
    closed = run(words, None, unbuffered, before="exec >&-; ")
    for found, said in (left, closed):
        assert found == code
        assert code != 0 or said == ""
        assert "Traceback" not in said


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("name", COMMANDS)
def test_standard_error_that_takes_nothing_changes_neither_the_answer_nor_its_code(name: str, unbuffered: str) -> None:
    words, code = COMMANDS[name]
    reading, left = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "framegauge", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    usual = subprocess.run(command, capture_output=True, check=False, env=environment).stdout
    try:
        with Path("/dev/full").open("wb") as full:
            for place in (full.fileno(), left):
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=place, check=False, env=environment)
                assert (done.returncode, done.stdout) == (code, usual)
    finally:
        os.close(left)
    closed = subprocess.run(
        ["sh", "-c", 'exec 2>&-; exec "$@"', "sh", *command], stdout=subprocess.PIPE, check=False, env=environment
    )
    assert (closed.returncode, closed.stdout) == (code, usual)
