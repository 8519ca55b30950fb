"""A program of the user's that changes the switches: asked to prepare, then to confirm or to undo."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Literal

from framegauge.errors import InputError, ProgramFailure
from framegauge.printable import one_line
from framegauge.rollout.switches.ending import end

__all__ = ["Action", "run"]

Action = Literal["prepare", "confirm", "undo"]
SECONDS = 600.0
LOOK_SECONDS = 0.5


def run(
    command: str,
    action: Action,
    mtu: int,
    old_mtu: int,
    hosts: Mapping[str, str],
    meanwhile: Callable[[], None] = lambda: None,
    seconds: float = SECONDS,
) -> None:
    """Runs `command ACTION` and waits for it; ProgramFailure unless its exit code is 0.

    It finds in its environment FRAMEGAUGE_ACTION, FRAMEGAUGE_MTU, FRAMEGAUGE_OLD_MTU, and FRAMEGAUGE_HOSTS: HOST/IFACE,
    separated by blanks. `meanwhile` is called again and again while it runs, so that leases are kept. It is ended with
    what it has started after `seconds`, or if this is interrupted.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise InputError(f"hook: found {one_line(command)!r}, expected a command")
    environment = {
        **os.environ, "FRAMEGAUGE_ACTION": action, "FRAMEGAUGE_MTU": str(mtu), "FRAMEGAUGE_OLD_MTU": str(old_mtu),
        "FRAMEGAUGE_HOSTS": " ".join(f"{host}/{interface}" for host, interface in hosts.items()),
    }  # fmt: skip
    try:
        program = subprocess.Popen(
            [*words, action], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"hook: found {one_line(words[0])} ({error.strerror}), expected a program") from None
    try:
        output = _wait(program, meanwhile, seconds)
    except BaseException:
        end(program)
        raise
    if program.returncode != 0:
        raise ProgramFailure(f"hook {action}: exit code {program.returncode}: {_last(output)}")


def _wait(program: subprocess.Popen[bytes], meanwhile: Callable[[], None], seconds: float) -> bytes:
    """What it has printed."""
    looks = int(seconds / LOOK_SECONDS) + 1
    for _ in range(looks):
        try:
            return program.communicate(timeout=min(LOOK_SECONDS, seconds))[0]
        except subprocess.TimeoutExpired:
            meanwhile()
    raise ProgramFailure(f"hook: found no end within {seconds:g} s, expected one")


def _last(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it printed nothing"
