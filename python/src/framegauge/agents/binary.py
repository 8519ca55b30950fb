"""The location of the agent's binary: in the wheel, or built from a clone."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from framegauge.errors import AgentMissing

__all__ = ["find_agent", "lacking", "version"]

PACKAGED = Path(__file__).resolve().parent / "bin" / "framegauge-agent"  # setup.py puts it there
CLONE = Path(__file__).resolve().parents[4]  # the root of the clone, if this file is in one
VERSION_SECONDS = 2.0


def find_agent(environment: Mapping[str, str] = os.environ) -> str:
    """The path of framegauge-agent, the first that exists of:

    1. $FRAMEGAUGE_AGENT, which must be an executable file
    2. the one in this package, which a wheel contains: it has the version of this package
    3. the one next to this Python
    4. of a clone, target/MACHINE-*/release (`make agent`), then target/release
    5. PATH
    """
    named = environment.get("FRAMEGAUGE_AGENT")
    if named:
        if not os.access(named, os.X_OK):
            raise AgentMissing(f"FRAMEGAUGE_AGENT: found {named}, expected an executable file")
        return str(Path(named).absolute())
    places = [
        PACKAGED,
        Path(sys.executable).parent / "framegauge-agent",
        # The folder may also hold agents for other types of machine.
        *sorted(CLONE.glob(f"target/{platform.machine()}-*/release/framegauge-agent")),
        CLONE / "target/release/framegauge-agent",
    ]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("framegauge-agent", path=environment.get("PATH"))
    if found is None:
        raise AgentMissing(f"framegauge-agent was not found: {_remedy()}, or name it in FRAMEGAUGE_AGENT")
    return found


def lacking() -> dict[str, str] | None:
    """The agent as a missing requirement, in the form that the agent uses for others; None if it is found."""
    try:
        find_agent()
    except AgentMissing:
        named = os.environ.get("FRAMEGAUGE_AGENT")
        return {
            "name": "framegauge-agent",
            "needed_for": "everything that is measured",
            "found": f"FRAMEGAUGE_AGENT={named}, which is not an executable file" if named else "none",
            "remedy": "correct or unset FRAMEGAUGE_AGENT" if named else _remedy(),
        }
    return None


def _remedy() -> str:
    """How to get an agent: a clone builds its own, anything else was installed without one."""
    if (CLONE / "Cargo.toml").exists():
        return "build it with `make agent`"
    return f"install the wheel that carries it for this machine, {platform.machine()} (docs/how-to/install.md)"


def version() -> str:
    """A line about the agent: its version and path, or why it was not found."""
    try:
        path = find_agent()
        found = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=VERSION_SECONDS,
            check=True,
        )  # fmt: skip
    except AgentMissing as error:
        return str(error)
    except (OSError, ValueError, subprocess.SubprocessError):
        return f"framegauge-agent of unknown version ({path})"
    return f"{found.stdout.strip()} ({path})"
