"""A long text on a terminal: the user's pager shows it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress

from framegauge.cli import output

__all__ = ["show"]

USUAL = "less"
# As git has it: colours as they are, and a text of one screen stays on it.
SETTINGS = {"LESS": "FRX"}


def show(text: str) -> None:
    """Shows a text in $PAGER, less by default; prints it where there is none."""
    words = shlex.split(os.environ.get("PAGER", "")) or [USUAL]
    try:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, env={**SETTINGS, **os.environ})
    except OSError:
        output.exact(text)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        with suppress(BrokenPipeError):
            process.communicate(text.encode())
        process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
