"""What the benchmarks share: a line for people, spreads, and a folder for the figures."""

# ruff: noqa: T201 (their output is their purpose)

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framegauge.agents.pipe import ANSWER_SECONDS, Agent, Json, Pending, Progress, Requests
from framegauge.cli import commands
from framegauge.study.model import Study
from framegauge.testbeds.base import Testbed
from framegauge.testbeds.rack import RackTestbed

MACHINE = Path(__file__).resolve().parent / "cost/machine"
SLOWER = 10.0  # how much longer the emulated machine may take for what it would do in its own time

TOGETHER_SECONDS = 3.0  # between two requests of those that are made together, on a busy machine
CLOSING_SECONDS = 30.0


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
    folder.mkdir(parents=True, exist_ok=True)  # it is made where it was chosen
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


@dataclass(frozen=True)
class SlowCall:
    """A request whose time limit is in seconds of the emulated machine."""

    call: Pending

    def cancel(self) -> None:
        self.call.cancel()

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        return self.call.result(None if timeout_seconds is None else SLOWER * timeout_seconds)


class SlowAgent(Requests):
    """The agent in the emulated machine.

    The machine's clock goes on while requests are made, and jumps where nothing runs yet: flows that start together
    would start up to a second apart. So the machine is stopped, which its clock does not see, until all are asked for.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._wait: threading.Timer | None = None
        self.about = agent.about

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        if (params or {}).get("method") == "stream.run":
            self._stop()
        return SlowCall(self._agent.begin(method, params, on_progress))

    def _stop(self) -> None:
        with self._lock:
            if self._wait is not None:
                self._wait.cancel()
            self._signal(signal.SIGSTOP)
            self._wait = threading.Timer(TOGETHER_SECONDS, self._go_on)
            self._wait.start()

    def _go_on(self) -> None:
        with self._lock:
            if threading.current_thread() is self._wait:  # otherwise one more was asked for
                self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._agent.process_id, number)

    def close(self) -> None:
        """Ends the agent, and with it the machine."""
        self._agent.close(CLOSING_SECONDS)


@contextlib.contextmanager
def emulated_rack(machine: Path) -> Iterator[RackTestbed]:
    """A rack in the machine, which runs as long as the rack is wanted."""
    bed = RackTestbed(SlowAgent(Agent.open([str(MACHINE / "run"), str(machine), "rack"])))
    try:
        yield bed
    finally:
        bed.close()


def opener_in(machine: Path) -> commands.Opener:
    """What opens a study's rack in the machine."""

    @contextlib.contextmanager
    def opened(_: Study, say: commands.Say) -> Iterator[Testbed]:
        say("starting the emulated machine")
        with emulated_rack(machine) as bed:
            yield bed

    return opened
