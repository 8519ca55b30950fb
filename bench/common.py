"""What the benchmarks share: a line for people, spreads, and a folder for the figures."""

# ruff: noqa: T201 (their output is their purpose)

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from framegauge.agents.pipe import Agent
from framegauge.cli import commands
from framegauge.study.model import Study
from framegauge.testbeds.base import Testbed
from framegauge.testbeds.rack import RackTestbed

MACHINE = Path(__file__).resolve().parent / "cost/machine"


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


def save(name: str, found: Any, **more: Any) -> Path:
    """Keep the figures in a new folder below results/, with the machine they are from and what `more` says of it."""
    folder = commands.choose_folder(name)
    folder.mkdir(parents=True)
    machine = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0], **more}
    path = folder / "figures.json"
    path.write_text(json.dumps({"machine": machine, "figures": found}, indent=2) + "\n")
    return path


def build_machine() -> Path:
    """Make the emulated machine (machine/build); its folder."""
    built = subprocess.run([MACHINE / "build"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise SystemExit(built.returncode)  # it has said why
    return Path(built.stdout.splitlines()[-1])


@contextmanager
def emulated_rack(machine: Path) -> Iterator[RackTestbed]:
    """A rack in the machine, which runs as long as the rack is wanted."""
    bed = RackTestbed(Agent.open([str(MACHINE / "run"), str(machine), "rack"]))
    try:
        yield bed
    finally:
        bed.close()


def opener_in(machine: Path) -> commands.Opener:
    """What opens a study's rack in the machine."""

    @contextmanager
    def opened(_: Study, say: commands.Say) -> Iterator[Testbed]:
        say("starting the emulated machine")
        with emulated_rack(machine) as bed:
            yield bed

    return opened
