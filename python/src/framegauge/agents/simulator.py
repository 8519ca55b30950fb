"""`framegauge-agent simulate` as a process: a scenario in, its result and its tables out (crates/agent/src/tools).

Each simulation is a process of its own. It has one thread and no clock, so equal scenarios have equal results, on any
machine and however many run beside it. Nothing that it prints is believed before it fits pipe/schema.json: an agent of
another build may have the version of this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framegauge import temporary
from framegauge.agents import answers, binary
from framegauge.errors import AgentFailure, BadAnswer, InputError, ending
from framegauge.networks.ports import capture_file
from framegauge.printable import complaint, one_line

__all__ = ["COLUMNS", "Processes", "Progress", "Simulated", "checked", "files", "other_build"]

MEMORY = "--memory"  # instead of a folder
TABLES = ("transfers", "samples", "drops", "queues")
# What is read of the tables; an agent may write more columns.
COLUMNS: Mapping[str, frozenset[str]] = {
    "transfers": frozenset({
        "flow", "round", "step", "start_seconds", "connected_seconds", "end_seconds", "bytes", "client_retransmits",
        "server_retransmits", "complete",
    }),
    "samples": frozenset({
        "time_seconds", "flow", "server_bytes", "client_bytes", "cwnd_segments", "in_flight_segments", "srtt_seconds",
    }),
    "drops": frozenset({"time_seconds", "port", "frame_bytes", "reason"}),
}  # fmt: skip
ARROW = ".arrow"
MOST_SHOWN = 300
PREFIX = "framegauge-agent simulate: "
# What an agent says of a scenario with words that it does not know: those of a newer framegauge.
UNKNOWN = ("scenario: unknown field", "scenario: unknown variant")

Json = dict[str, Any]
Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Simulated:
    """A result, the tables as Arrow files, and the captures as pcapng files, by their names."""

    result: Json
    tables: Mapping[str, bytes]
    captures: Mapping[str, bytes] = field(default_factory=dict)


def files(scenario: Mapping[str, Any]) -> list[str]:
    """The names of the files that a simulation leaves: its tables, and a capture of each port that it watches."""
    return [*(f"{name}{ARROW}" for name in TABLES), *map(capture_file, scenario.get("capture", ()))]


class Processes:
    """Simulations that run at the same time, from several threads; `stop` ends them all, and prevents new ones."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, scenario: Mapping[str, Any], on_progress: Progress = lambda _: None) -> Simulated:
        """One simulation, to its end; `on_progress` gets the process's own account of it a few times per second.

        InputError, in the agent's words, for a scenario that it refuses; AgentFailure if it fails, or was stopped.
        """
        with temporary.folder() as folder:
            # Beside the tables, so that the process can read while this one listens.
            scenario_path = folder / "scenario.json"
            scenario_path.write_text(json.dumps(scenario), "utf-8")
            result, code, log = self._listen(scenario_path, folder, on_progress)
            return checked(result, code, log, lambda: {name: (folder / name).read_bytes() for name in files(scenario)})

    def memory(self, scenario: Mapping[str, Any]) -> tuple[int, int | None]:
        """The bytes that a simulation takes, roughly, and those that this machine has available, if it is known; errors
        as for `run`."""
        with temporary.folder() as folder:
            path = folder / "scenario.json"
            path.write_text(json.dumps(scenario), "utf-8")
            memory = checked(*self._listen(path, MEMORY, lambda _: None), dict, "memory").result
            return int(memory["needed_bytes"]), memory["available_bytes"]

    def stop(self) -> None:
        """Ends all processes."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            process.kill()

    def _listen(self, scenario_path: Path, folder: Path | str, on_progress: Progress) -> tuple[Json | None, int, str]:
        result: Json | None = None
        with scenario_path.open("rb") as scenario, tempfile.TemporaryFile() as errors:
            process = self._begun(folder, scenario, errors)
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    message = _told(line)
                    result = message.get("result", result)
                    if "progress" in message:
                        on_progress(_fit(message["progress"], "progress"))
                code = process.wait()
            finally:
                self._ended(process)
            errors.seek(0)
            return result, code, errors.read().decode(errors="replace")

    def _begun(self, folder: Path | str, scenario: Any, errors: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise AgentFailure("the simulation was stopped")
            # Its own group, so that Ctrl-C in the terminal reaches only this program.
            process = subprocess.Popen(
                [self._agent, "simulate", str(folder)], stdin=scenario, stdout=subprocess.PIPE, stderr=errors,
                process_group=0,
            )  # fmt: skip
            self._running.add(process)
            return process

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(OSError):
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        with self._lock:
            self._running.discard(process)


def checked(
    result: Json | None, code: int, said: str, left: Callable[[], Mapping[str, bytes]], part: str = ""
) -> Simulated:
    """What a process came to, by its exit code and what it said on standard error; errors as for `Processes.run`."""
    why = complaint(said, PREFIX, MOST_SHOWN)
    if code == 2 and why.startswith(UNKNOWN):
        raise AgentFailure(f"simulation: {why}; {other_build()}")
    if code == 2:
        raise InputError(f"simulation: {why}")
    if code != 0 or result is None:
        raise AgentFailure(f"the simulation ended with {ending(code)}{why and f': {why}'}")
    result = _fit(result, part)
    try:
        contents = dict(left())
    except OSError as error:
        raise BadAnswer(f"simulate: found no {Path(error.filename or '').name}, expected it; {other_build()}") from None
    tables = {name.removesuffix(ARROW): contents.pop(name) for name in list(contents) if name.endswith(ARROW)}
    return Simulated(result, tables, contents)


def _fit(value: object, part: str = "") -> Json:
    try:
        return answers.simulation_of(value, part)
    except BadAnswer as error:
        raise BadAnswer(f"{error}; {other_build()}") from None


def other_build() -> str:
    """What to do where an agent does not say what this framegauge reads."""
    hint = " or unset FRAMEGAUGE_AGENT" if os.environ.get("FRAMEGAUGE_AGENT") else ""
    return f"the agent is of another build than framegauge: {binary.remedy()}{hint}"


def _told(line: bytes) -> Json:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise AgentFailure(f"found {one_line(repr(line), 80)} from a simulation, expected an object of JSON")
    return message
