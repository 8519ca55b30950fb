"""Limits of this machine end a command in one line, and with no exit code that is an answer."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from framegauge.cli import limits, main as cli


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("can't start new thread"), "pids.max"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory"),
        (MemoryError(), "memory"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
    ],
)
def test_a_limit_is_one_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "verb", lambda _: SimpleNamespace(run=run))
    # Of `check` 1 is an answer: a fault.
    assert cli.main(["check"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "reproduce jumbo-2013-08 --out {}/out", "simulate --preset simulate --out {}/out", "study --preset quick --out {}/out",
        "decide --rack --out {}/out", "capture local --for 1s --out {}/out", "examples pair --copy {}/out",
        "docs --html {}/page.html", "rollout playbook {} --out {}/out", "report {}", "rollout status {}", "watch {}",
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_used_is_one_line_with_its_name(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What root may not do either: to go on below a file."""
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("not what is looked for")
    assert cli.main(words.format(*["file"] * 2).split()) == 2
    said = capsys.readouterr().err
    assert "file" in said
    assert said.count("\n") == 1


def test_whatever_is_written_where_it_may_not_be_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: list[str]) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "results/a\x1b[31m")

    monkeypatch.setattr(cli, "verb", lambda _: SimpleNamespace(run=run))
    assert cli.main(["check"]) == 2
    said = capsys.readouterr().err
    assert "cannot be used (Permission denied)" in said
    assert "\x1b" not in said


def test_a_working_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = 'cd "$1" && rmdir "$1" && exec "$2" -m framegauge examples pair --copy .'
    done = subprocess.run(
        ["sh", "-c", words, "sh", str(gone), sys.executable], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "working folder" in done.stderr


def test_no_place_for_temporary_files_is_no_lost_working_folder() -> None:
    """As tempfile says it (_get_default_tempdir) where all places that it tries are full."""
    line = limits.reached(FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/']"))
    assert line is not None
    assert line.startswith("No usable temporary directory found in ")
    assert "TMPDIR" in line


def test_no_room_for_a_file_that_is_open_names_both_places() -> None:
    """The error of a write has no name of a file."""
    with pytest.raises(OSError, match="No space left") as error, Path("/dev/full").open("w") as full:
        full.write("x")
    assert error.value.filename is None
    line = limits.reached(error.value)
    assert line is not None
    assert "results" in line
    assert "TMPDIR" in line


@pytest.mark.parametrize("error", [RuntimeError("else"), OSError(errno.EIO, "Input/output error"), OSError("x")])
def test_another_error_is_none_of_a_limit(error: Exception) -> None:
    assert limits.reached(error) is None


def test_that_is_what_is_raised_where_a_thread_cannot_be_started() -> None:
    """By this version of Python: with a stack that no machine has."""
    before = threading.stack_size(1 << 46)
    try:
        with pytest.raises(RuntimeError) as error:
            threading.Thread(target=os.getpid).start()
    finally:
        threading.stack_size(before)
    assert limits.reached(error.value) is not None
