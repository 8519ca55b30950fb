"""Limits of this machine end a command in one line, and with no exit code that is an answer."""

from __future__ import annotations

import errno
import os
import threading
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
