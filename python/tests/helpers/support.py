"""What several test modules use."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[3]
PIPE_SCHEMA = json.loads((ROOT / "pipe/schema.json").read_text())

STUDY = """\
question: Does it work?
testbed: {kind: fake}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 10 MB}
blocks: 6
margins: {goodput: 1 %, completion_time: 2 %}
"""
# The least that results.json says of such a study.
PLAN = {"question": "?", "scope": "invented", "treatment": "mtu", "margins": {"goodput": 0.01}}

SOAK = os.environ.get("FRAMEGAUGE_SOAK") == "1"

# How long a test waits for what is announced when it is there: ten times the longest that is usual. Only a fault reaches it.
PATIENCE_SECONDS = 300.0


def by_length(short: int, long: int) -> int:
    """How much of a test to do: `short` in `make test`, `long` in `make soak`. What is asserted is the same."""
    return long if SOAK else short


def holding(held_seconds: float, free_seconds: float, cpu: int | None = None) -> str:
    """A program that keeps a CPU from all others but for pauses; it prints "ready" first. Without `cpu` it is one that
    the program may run on."""
    return f"""
import os, time
{"" if cpu is None else f"os.sched_setaffinity(0, [{cpu}])"}
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
while True:
    time.sleep({free_seconds})
    until = time.monotonic() + {held_seconds}
    while time.monotonic() < until:
        pass
"""


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


class NotRun:
    """Tests that cannot run here: outside CI they are listed with their reasons, in CI they fail."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()

    def count(self, reason: str) -> None:
        self._reasons[reason] += 1

    def stop(self, reason: str) -> NoReturn:
        if os.environ.get("CI") == "true":
            pytest.fail(f"cannot run here: {reason}", pytrace=False)
        pytest.skip(reason)

    def tell(self, reporter: pytest.TerminalReporter) -> None:
        for reason, count in self._reasons.items():
            reporter.write_line(f"{count} tests not run here: {reason}")


def bench(name: str) -> ModuleType:
    """A module of bench/, which is not installed: `bench("truth.known")`."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"bench.{name}")


def script(name: str) -> ModuleType:
    """A program of scripts/ as a module, which may import others there."""
    if str(ROOT / "scripts") not in sys.path:
        sys.path.append(str(ROOT / "scripts"))
    specification = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    assert specification is not None
    assert specification.loader is not None
    # Dataclasses look their module up by its name.
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
