"""Ends a program of the user's with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess

__all__ = ["end"]

GRACE_SECONDS = 5.0


def end(program: subprocess.Popen[bytes]) -> None:
    """Ends a program that leads a session of its own, and whatever is left in that: asked first, and then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(program.pid, number)
        except ProcessLookupError:
            break
        try:
            program.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    program.wait()
