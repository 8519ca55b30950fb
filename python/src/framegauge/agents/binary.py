"""The location of the agent's binary and of the library beside it: in the wheel, or built from a clone."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from framegauge.errors import AgentMissing

__all__ = ["find_agent", "find_nodelay", "lacking", "remedy", "version"]

PACKAGED = Path(__file__).resolve().parent / "bin" / "framegauge-agent"  # setup.py puts it there
NODELAY = "libframegauge_nodelay.so"
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
    override = environment.get("FRAMEGAUGE_AGENT")
    if override:
        if not os.access(override, os.X_OK):
            raise AgentMissing(f"FRAMEGAUGE_AGENT: found {override}, expected an executable file")
        return str(Path(override).absolute())
    places = [
        PACKAGED,
        Path(sys.executable).parent / "framegauge-agent",
        *_built("framegauge-agent"),
    ]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    path = shutil.which("framegauge-agent", path=environment.get("PATH"))
    if path is None:
        raise AgentMissing(f"framegauge-agent was not found: {remedy()}, or name it in FRAMEGAUGE_AGENT")
    return path


def find_nodelay(environment: Mapping[str, str] = os.environ) -> str:
    """The path of the library that sets TCP_NODELAY for programs (crates/nodelay), the first that exists of:

    1. $FRAMEGAUGE_NODELAY_LIBRARY, which must be a file
    2. the one next to the agent
    3. the one in this package
    4. of a clone, the one in target/MACHINE-*/release (`make agent`), then target/release
    """
    override = environment.get("FRAMEGAUGE_NODELAY_LIBRARY")
    if override and not os.path.isfile(override):
        raise AgentMissing(f"FRAMEGAUGE_NODELAY_LIBRARY: found {override}, expected a file")
    places = [Path(override).absolute()] if override else [PACKAGED.with_name(NODELAY), *_built(NODELAY)]
    if not override:
        with suppress(AgentMissing):
            places.insert(0, Path(find_agent(environment)).with_name(NODELAY))
    library = next((str(place) for place in places if place.is_file()), None)
    if library is None:
        raise AgentMissing(f"{NODELAY} was not found: {remedy()}, or name it in FRAMEGAUGE_NODELAY_LIBRARY")
    if any(mark in library for mark in " :"):
        raise AgentMissing(f"{NODELAY}: found {library}, expected a path without spaces and colons, for LD_PRELOAD")
    return library


def _built(name: str) -> list[Path]:
    """Where a clone builds a file. The folder may also hold files for other types of machine."""
    return [*sorted(CLONE.glob(f"target/{platform.machine()}-*/release/{name}")), CLONE / "target/release" / name]


def lacking() -> dict[str, str] | None:
    """The agent as a missing requirement, in the form that the agent uses for others; None if it is found."""
    try:
        find_agent()
    except AgentMissing:
        override = os.environ.get("FRAMEGAUGE_AGENT")
        return {
            "name": "framegauge-agent",
            "needed_for": "everything that is measured",
            "found": f"FRAMEGAUGE_AGENT={override}, which is not an executable file" if override else "none",
            "remedy": "correct or unset FRAMEGAUGE_AGENT" if override else remedy(),
        }
    return None


def remedy() -> str:
    """How to get an agent: a clone builds its own, anything else was installed without one."""
    if (CLONE / "Cargo.toml").exists():
        return "build it with `make agent`"
    return f"install the wheel that carries it for this machine, {platform.machine()} (framegauge docs install)"


def version() -> str:
    """A line about the agent: its version and path, or why it was not found."""
    try:
        path = find_agent()
        process = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=VERSION_SECONDS,
            check=True,
        )  # fmt: skip
    except AgentMissing as error:
        return str(error)
    except (OSError, ValueError, subprocess.SubprocessError):
        return f"framegauge-agent of unknown version ({path})"
    return f"{process.stdout.strip()} ({path})"
