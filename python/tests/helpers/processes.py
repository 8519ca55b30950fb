"""Whether a process has ended."""

from __future__ import annotations

import time
from pathlib import Path

from helpers.support import PATIENCE_SECONDS


def is_gone(pid: int) -> bool:
    """Whether it ends soon; one that nobody has waited for yet has ended."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False
