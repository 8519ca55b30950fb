"""What the benchmarks share: a line for people, spreads, and a folder for the figures."""

# ruff: noqa: T201 (their output is their purpose)

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from framegauge import commands


def say(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)


def spread(values: Sequence[float], form: str = ".4f") -> str:
    """Median, and the lowest and highest."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def warn_if_busy() -> None:
    """Others on this machine make every figure worse, and the reader should know."""
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cpus:
        say(f"note: load average {load:.1f} on {cpus} CPUs: these figures want a quiet machine")


def save(name: str, found: Any) -> Path:
    """Keep the figures in a new folder below results/, with the machine they are from."""
    folder = commands.choose_folder(name)
    folder.mkdir(parents=True)
    machine = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    path = folder / "figures.json"
    path.write_text(json.dumps({"machine": machine, "figures": found}, indent=2) + "\n")
    return path
