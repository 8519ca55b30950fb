"""The gate between two waves: a command of the user's that says whether to go on."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from datetime import UTC, datetime

from framegauge.rollout.engine import Pause, Released
from framegauge.rollout.switches.ending import end

__all__ = ["gate"]

STANDARD_ERROR = 2
QUICK_SECONDS = 1.0  # of a gate that need not be waited for
GATE_WORDS = {1: "stop", 2: "cannot say"}


def gate(command: str, pause: Pause, released: Released) -> str | None:
    """Runs a user's command, and `pause` again and again meanwhile; None if its exit code is 0, else a line.

    It is told of the wave that it judges in its environment, and prints to the user's terminal (standard error). It is
    ended with what it has started, if this is interrupted or leases are lost.
    """
    variables = {
        "FRAMEGAUGE_SWITCHED": ",".join(released.hosts),
        "FRAMEGAUGE_SWITCHED_AT": datetime.fromtimestamp(released.at, UTC).isoformat(timespec="milliseconds"),
        "FRAMEGAUGE_HELD": ",".join(released.held),
    }
    with subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=STANDARD_ERROR,
        env=os.environ | variables,
        start_new_session=True,
    ) as process:
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(QUICK_SECONDS)
            while process.poll() is None:
                pause()
        except BaseException:
            end(process)
            raise
        code = process.returncode
    if code == 0:
        return None
    return f"the gate ended with exit code {code} ({GATE_WORDS.get(code, 'no answer')}), expected 0: go on"
