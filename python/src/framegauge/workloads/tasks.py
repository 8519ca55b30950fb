"""Programs as a study file describes them: words with placeholders, made into commands on hosts."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from framegauge.errors import ProgramFailure
from framegauge.files.placeholders import substitute
from framegauge.testbeds.base import Host, Json, afterwards
from framegauge.workloads.programs import Running

__all__ = ["Lives", "Place", "Readiness", "Task", "await_ready", "finish", "placed", "started"]

Lives = Literal["run", "arm", "study"]  # how long a server stays up, or what was prepared stays there
RUN_MODE = 0o1777  # programs of several users may share a run's folder
FILE_MODE = 0o644
MOST_OUTPUT_BYTES = 16 << 20  # of each stream
GRACE_SECONDS = 5.0  # for an answer, after the time that was given to a program


@dataclass(frozen=True)
class Readiness:
    """The sign that a server is ready; exactly one is given."""

    within_seconds: float = 10.0
    port: str | None = None
    words: str | None = None
    file: str | None = None
    seconds: float | None = 0.5


@dataclass(frozen=True)
class Task:
    """A program on some hosts, all of its words with placeholders; `files` have none. `telling`: a regular expression
    for the lines that tell why it failed; without it those are the last ones. `precedes`: in a rack it goes before the
    rest of the machine, as the network does; only for programs that leave CPU time to others."""

    hosts: tuple[str, ...]
    argv: tuple[str, ...]
    within_seconds: float = 60.0
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    folder: str | None = None
    name: str | None = None
    ready: Readiness | None = None
    lives: Lives = "run"
    telling: str | None = None
    precedes: bool = False

    @property
    def shown(self) -> str:
        """The program's name, for messages."""
        return shlex.join(self.argv[:1]) if self.argv[0] != "/bin/sh" else "the shell script"


@dataclass(frozen=True)
class Place:
    """A host in a run: the values of placeholders there, the run's folder, and what every program there gets."""

    host: Host
    values: Mapping[str, str]
    folder: str  # of this run, below the host's
    environment: Mapping[str, str] = field(default_factory=dict)

    def text(self, words: str) -> str:
        """The words with their placeholders filled in."""
        return substitute(words, self.values)


@contextmanager
def placed(host: Host, token: str, values: Mapping[str, str], folders: Sequence[str]) -> Iterator[Place]:
    """A host in a run, with the run's folder and folders in that; removed when the block is left."""
    name = f"run-{token[:12]}"
    base = host.agent.request("host.folder")["path"]
    files = [{"path": name, "data": None, "mode": RUN_MODE}]
    files += [{"path": f"{name}/{folder}", "data": None, "mode": None} for folder in folders]
    host.agent.request("host.files", {"files": files})
    with afterwards(lambda: host.agent.request("host.clear", {"path": name})):
        yield Place(host, {**values, "address": host.address, "host": host.name, "run": f"{base}/{name}"}, name)


def write(place: Place, files: Mapping[str, str]) -> None:
    """Writes files into the run's folder; a name may have folders in front."""
    entries = [
        {"path": f"{place.folder}/{name}", "data": base64.b64encode(text.encode()).decode(), "mode": FILE_MODE}
        for name, text in files.items()
    ]
    if entries:
        place.host.agent.request("host.files", {"files": entries})


def _files(task: Task, place: Place) -> dict[str, str]:
    return {**task.files, **{name: place.text(text) for name, text in task.templates.items()}}


def _asked(task: Task, place: Place) -> Json:
    """The params of `process.spawn`."""
    return {
        "argv": [place.text(word) for word in task.argv],
        "environment": {name: place.text(text) for name, text in {**place.environment, **task.environment}.items()},
        "directory": place.text(task.folder if task.folder is not None else "{run}"),
        "user": task.user,
        **({"precedence": "real time"} if task.precedes else {}),
    }


def described(task: Task, place: Place) -> str:
    """Everything about a program on a host that a change of its words, files or settings would change."""
    return json.dumps([place.host.name, _asked(task, place), _files(task, place)], sort_keys=True)


@contextmanager
def started(task: Task, place: Place) -> Iterator[Running]:
    """The program, running on that host; ended with everything that it has started when the block is left."""
    write(place, _files(task, place))
    params = _asked(task, place)
    spawned = place.host.agent.request("process.spawn", params)
    number = spawned["process"]
    with afterwards(lambda: place.host.agent.request("process.kill", {"process": number})):
        yield Running(place.host, task.shown, number, spawned["pid"], MOST_OUTPUT_BYTES, task.telling)


def await_ready(task: Task, running: Running, place: Place) -> None:
    """Waits for a server's sign; ProgramFailure with its last words if it ends before, or takes too long."""
    ready = task.ready or Readiness()
    where = f"{running.name} on {running.host.name}"
    if ready.seconds is not None:
        if (status := running.wait(ready.seconds)) is not None:
            raise ProgramFailure(f"{where} ended before it was ready ({_how(status)}): {running.last_words()}")
        return
    params: Json = {
        "process": running.number,
        "port": None if ready.port is None else _port(place.text(ready.port), where),
        "words": ready.words,
        "file": None if ready.file is None else place.text(ready.file),
        "within_seconds": ready.within_seconds,
    }
    if params["file"] is not None and not params["file"].startswith("/"):
        params["file"] = f"{place.folder}/{params['file']}"
    answer = running.host.agent.request("process.ready", params, timeout_seconds=ready.within_seconds + GRACE_SECONDS)
    if answer["ready"]:
        return
    if answer["ending"] is not None:
        raise ProgramFailure(f"{where} ended before it was ready ({_how(answer['ending'])}): {running.last_words()}")
    sign = {
        "port": f"port {params['port']} open",
        "words": f"output matching {ready.words!r}",
        "file": f"file {params['file']}",
    }
    target = next(sign[name] for name in ("port", "words", "file") if params[name] is not None)
    raise ProgramFailure(
        f"{where} was not ready: found no {target} within {ready.within_seconds:g} s: {running.last_words()}"
    )


def finish(task: Task, running: Running, waited: bool = False) -> None:
    """Waits for a program's end, unless that has been `waited` for; ProgramFailure with its last words unless it has
    ended in time, and with exit code 0."""
    where = f"{running.name} on {running.host.name}"
    status = running.wait(0.0 if waited else task.within_seconds)
    if status is None:
        raise ProgramFailure(f"{where} did not end within {task.within_seconds:g} s (`within`): {running.last_words()}")
    if status["exit_code"] != 0:
        raise ProgramFailure(f"{where} failed ({_how(status)}): {running.last_words()}")


def still_running(servers: Sequence[tuple[Task, Running]], always: bool = False) -> None:
    """ProgramFailure if a server has failed while clients were at work. One that serves once and ends with exit code 0
    has not: whether clients got what they wanted, they know; but it cannot serve a further run (`always`)."""
    for _, running in servers:
        if (status := running.wait(0.0)) is not None and (always or status["exit_code"] != 0):
            where = f"{running.name} on {running.host.name}"
            when = "between two runs" if always else "during the run"
            raise ProgramFailure(f"{where} ended {when} ({_how(status)}): {running.last_words()}")


def _how(status: Json) -> str:
    return f"exit code {status['exit_code']}" if status["signal"] is None else f"signal {status['signal']}"


def _port(text: str, where: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ProgramFailure(f"{where}: ready.port: found {text!r}, expected a port from 1 to 65535")
    return int(text)
