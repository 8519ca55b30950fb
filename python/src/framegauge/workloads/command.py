"""command: any programs. Servers are ready before anything is measured; clients start together and print metrics."""

from __future__ import annotations

import base64
import fnmatch
import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

import pyarrow as pa

from framegauge.errors import AgentError, BadAnswer, ProgramFailure
from framegauge.metrics import METRICS
from framegauge.printable import one_line
from framegauge.testbeds.base import Host, Json, Progress, afterwards
from framegauge.workloads import live, readings, tasks
from framegauge.workloads.base import Executed, Go, Phases, Program, side_by_side
from framegauge.workloads.command_record import CommandRecord
from framegauge.workloads.programs import Running
from framegauge.workloads.readings import Reading
from framegauge.workloads.tasks import Place, Task

__all__ = ["Command", "CommandRecord", "fetched"]

LIBRARY = "libframegauge_nodelay.so"
PIECE_BYTES = 1 << 20
MOST_KEPT_BYTES = 16 << 20  # per run
KEPT_FILE_BYTES = 16_384  # as which a smaller file counts: each is a request
MOST_LISTED = 10_000  # files, by `host.list`
TAIL = 2000  # characters of a client's output that a record keeps


@dataclass(frozen=True)
class Standing:
    """What stands from earlier runs: the servers of a command that outlast one. `runs` have used them before."""

    servers: Sequence[tuple[Task, Running]]
    runs: int = 0


@dataclass(frozen=True)
class Command(Phases):
    """Programs on hosts. `values` are those of placeholders that all hosts share, `mtu` is by host.

    `preload` finds the file of the library that makes `nagle` hold for programs that have no such option, on the hosts
    `nagle_on`; None: programs do as they like.
    """

    name: str
    clients: Sequence[Task]
    metrics_: Mapping[str, Reading]
    servers: Sequence[Task] = ()
    prepare: Sequence[Task] = ()
    after: Sequence[Task] = ()
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    mtu: Mapping[str, int] = field(default_factory=dict)
    keep: Sequence[str] = ()
    nagle: bool | None = None
    nagle_on: Sequence[str] = ()
    preload: Callable[[], str] | None = None
    expect_seconds: float = 10.0
    standing: Standing | None = None
    needs: ClassVar[Sequence[Program]] = ()

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """What the study says; the runner learns how long runs take."""
        return self.expect_seconds

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Runs `prepare`, and starts the servers. Then all clients at the same time; `after` once all is measured."""
        places = self.places(hosts, token)
        run_places = [places[name] for name in self._used(hosts)]
        with ExitStack() as stack:
            side_by_side([(place.host, self._folder(place)) for place in run_places])
            stack.enter_context(afterwards(lambda: side_by_side([(place.host, _clear(place)) for place in run_places])))
            if self.standing is not None:
                tasks.still_running(self.standing.servers, always=True)
            for task in filter(_of_a_run, self.prepare):
                self._each(task, places)
            watch = live.Watch([place.host for place in run_places])
            watch.begin()
            servers = [] if self.standing is None else list(self.standing.servers)
            for task in filter(_of_a_run, self.servers):
                servers += self._serve(task, places, stack)
            # For clients that read what servers use: {processes} is "NAME=PID …" of servers with a name.
            processes = " ".join(f"{task.name}={running.pid}" for task, running in servers if task.name is not None)
            places = {
                name: replace(host_place, values={**host_place.values, "processes": processes})
                for name, host_place in places.items()
            }
            extra = self.settle(places, servers)

            def go(on_progress: Progress | None) -> Executed:
                watch.restart()
                done = self._clients(places, on_progress)
                tasks.still_running(servers)
                record = {**self._record(hosts, places, done, watch.end()), **extra}
                return Executed(cast(CommandRecord, record), [])

            yield go
            for task in self.after:
                self._each(task, places)

    def own_values(self, host: Host) -> Mapping[str, str]:
        """Further placeholders, with their values on a host, that only some workloads made of commands have."""
        return {}

    def settle(self, places: Mapping[str, Place], servers: Sequence[tuple[Task, Running]]) -> Json:
        """What only some workloads do with servers that are ready, before anything is measured: what they record."""
        return {}

    def _serve(self, task: Task, places: Mapping[str, Place], stack: ExitStack) -> list[tuple[Task, Running]]:
        """A server on all of its hosts, ready; ended with the stack."""
        pairs = [(stack.enter_context(tasks.started(task, place)), place) for place in self._of(task, places)]
        for running, place in pairs:
            tasks.await_ready(task, running, place)
        return [(task, running) for running, _ in pairs]

    @property
    def lasts(self) -> bool:
        """Whether a server, or what was prepared, outlasts a run."""
        return bool(self._lasting())

    def _lasting(self) -> list[Task]:
        return [task for task in (*self.prepare, *self.servers) if not _of_a_run(task)]

    def lasting_key(self, hosts: Sequence[Host]) -> Hashable:
        """All words and settings of what outlasts a run, and the whole arm if it lives for one."""
        places = self._kept_places(hosts)
        descriptions = [tasks.described(task, place) for task in self._lasting() for place in self._of(task, places)]
        by_arm = any(task.lives == "arm" for task in self._lasting())
        return tuple(descriptions), (tuple(self.mtu.items()), tuple(self.values.items())) if by_arm else None

    @contextmanager
    def lasting(self, hosts: Sequence[Host]) -> Iterator[Sequence[tuple[Task, Running]]]:
        """Prepares and starts what outlasts a run, in folders that outlast it, too."""
        places = self._kept_places(hosts)
        run_places = [places[name] for name in self._used(hosts)]
        with ExitStack() as stack:
            side_by_side([(place.host, self._folder(place)) for place in run_places])
            stack.enter_context(afterwards(lambda: side_by_side([(place.host, _clear(place)) for place in run_places])))
            for task in self.prepare:
                if not _of_a_run(task):
                    self._each(task, places)
            servers: list[tuple[Task, Running]] = []
            for task in self.servers:
                if not _of_a_run(task):
                    servers += self._serve(task, places, stack)
            yield servers

    def beside(self, lasting: Sequence[tuple[Task, Running]], runs: int) -> Command:
        """This command with that part, which so many runs have used before."""
        return replace(self, standing=Standing(lasting, runs))

    def _kept_places(self, hosts: Sequence[Host]) -> dict[str, Place]:
        """Every host with the folder that outlasts runs, in which such programs start."""
        places = self.places(hosts, "")
        return {
            name: replace(place, folder=self._kept_folder, values={**place.values, "run": place.values["kept"]})
            for name, place in places.items()
        }

    @property
    def _kept_folder(self) -> str:
        return f"kept-{self.name}"

    def places(self, hosts: Sequence[Host], token: str) -> dict[str, Place]:
        """Every host in this run."""
        return {host.name: self._place(host, hosts, f"run-{token[:12]}") for host in hosts}

    def _used(self, hosts: Sequence[Host]) -> list[str]:
        """The hosts on which programs run, in the order of hosts."""
        names = {
            name for task in (*self.prepare, *self.servers, *self.clients, *self.after) for name in self._names(task)
        }
        return [host.name for host in hosts if host.name in names]

    def _names(self, task: Task) -> list[str]:
        """The hosts of a task, whose roles are filled in."""
        return list(dict.fromkeys(member for name in task.hosts for member in self.roles.get(name, (name,))))

    def _of(self, task: Task, places: Mapping[str, Place]) -> list[Place]:
        return [places[name] for name in self._names(task)]

    def _place(self, host: Host, hosts: Sequence[Host], folder: str) -> Place:
        addresses = {member.name: member.address for member in hosts}
        roles = {name: ",".join(addresses[member] for member in members) for name, members in self.roles.items()}
        base = host.agent.request("host.folder")["path"]
        values = {
            **self.values, **addresses, **roles, "address": host.address, "host": host.name,
            "mtu": str(self.mtu[host.name]), "run": f"{base}/{folder}", "kept": f"{base}/{self._kept_folder}",
            **self.own_values(host),
        }  # fmt: skip
        environment = {}
        if self.nagle is not None and host.name in self.nagle_on:
            environment = {"LD_PRELOAD": f"{base}/{LIBRARY}", "FRAMEGAUGE_NODELAY": "off" if self.nagle else "on"}
        return Place(host, values, folder, environment)

    def _folder(self, place: Place) -> Callable[[Host], Json]:
        """Makes the run's folder, with the library beside it where that is needed."""

        def make_folder(host: Host) -> Json:
            files = [{"path": place.folder, "data": None, "mode": tasks.RUN_MODE}]
            # A server that stands uses the library: it must not be written anew.
            if place.environment and self.preload is not None and self.standing is None:
                data = base64.b64encode(Path(self.preload()).read_bytes()).decode()
                files.append({"path": LIBRARY, "data": data, "mode": 0o755})
            return host.agent.request("host.files", {"files": files})

        return make_folder

    def _each(self, task: Task, places: Mapping[str, Place]) -> None:
        """Runs a task to its end, on all of its hosts at once."""

        def run(place: Place, host: Host) -> None:
            with tasks.started(task, _on(place, host)) as running:
                tasks.finish(task, running)

        side_by_side([(place.host, partial(run, place)) for place in self._of(task, places)])

    def _clients(self, places: Mapping[str, Place], on_progress: Progress | None) -> list[Json]:
        """Starts all clients at once, and waits for all: what each printed, and when it began and ended."""
        work = [(task, place) for task in self.clients for place in self._of(task, places)]

        def run(task: Task, place: Place, progress: Progress | None, host: Host) -> Json:
            start_seconds = time.monotonic()
            with tasks.started(task, _on(place, host)) as running:
                self._wait(task, running, progress)
                tasks.finish(task, running, waited=True)
                end_seconds = time.monotonic()
                files = {name: self._read(place, name) for name in self._files(task)}
                text = running.output()
                return {
                    "host": host.name, "name": task.name, "begun_seconds": start_seconds, "ended_seconds": end_seconds,
                    "texts": {None: text, **files}, "words": text[-TAIL:], "errors": running.output("stderr")[-TAIL:],
                }  # fmt: skip

        return side_by_side(
            [
                (place.host, partial(run, task, place, None if index else on_progress))
                for index, (task, place) in enumerate(work)
            ]
        )

    def _wait(self, task: Task, running: Running, progress: Progress | None) -> None:
        """Waits in steps of a second, each of which is progress. Steps are counted, since a host may answer at once."""
        for seconds in range(math.ceil(task.within_seconds)):
            if running.wait(min(1.0, task.within_seconds - seconds)) is not None:
                return
            if progress is not None:
                progress(
                    min(0.99, (seconds + 1) / max(self.expect_seconds, seconds + 2)), f"{self.name}: clients at work"
                )

    def _files(self, task: Task) -> list[str]:
        """The files of a client that metrics are in."""
        names = (reading.file for reading in self.metrics_.values() if reading.client in (None, task.name))
        return list(dict.fromkeys(name for name in names if name is not None))

    def _read(self, place: Place, name: str) -> str:
        path = f"{place.folder}/{place.text(name)}"
        try:
            return fetched(place.host, path).decode("utf-8", "replace")
        except (AgentError, ProgramFailure) as error:
            raise ProgramFailure(f"metrics: {name} on {place.host.name}: {error}, expected a file") from None

    def _record(
        self, hosts: Sequence[Host], places: Mapping[str, Place], done: list[Json], watched: dict[str, Json]
    ) -> CommandRecord:
        values: dict[str, float] = {}
        for name, reading in self.metrics_.items():
            answers = [answer for answer in done if reading.client in (None, answer["name"])]
            printed = [
                readings.value(
                    name, reading, answer["texts"][reading.file], f"{reading.file or 'output'} on {answer['host']}"
                )
                for answer in answers
            ]
            values[name] = readings.of_clients(reading, printed)
        preloaded = self.nagle_on if self.nagle is not None else ()
        reasons = {
            name: f"a run printed {value:g}, and a ratio needs more than 0"
            for name, value in values.items()
            if value <= 0
        }
        record = {
            **live.evidence([place.host for place in places.values()], watched, preloaded),
            "transfer_bytes": 0,
            "only_bulk": False,
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": None,
            "refused": 0,
            "active_seconds": max(answer["ended_seconds"] for answer in done)
            - min(answer["begun_seconds"] for answer in done),
            "printed": values,
            "not_measured": reasons,
            "clients": [{key: value for key, value in answer.items() if key != "texts"} for answer in done],
            "kept": self._kept(places, watched),
            **({} if self.standing is None else {"lasting_runs": self.standing.runs}),
            **self.told(done, watched),
        }
        return cast(CommandRecord, record)  # what is unpacked may have any keys, for all that a checker can tell

    def told(self, done: Sequence[Json], watched: Mapping[str, Json]) -> Json:
        """What only some workloads made of commands record (CommandRecord); `done`: what each client printed."""
        return {}

    def _kept(self, places: Mapping[str, Place], watched: Mapping[str, Json]) -> Json:
        """The files that the study keeps, as text by host and name."""
        files: Json = {}
        room_bytes = MOST_KEPT_BYTES
        for place in (places[name] for name in watched) if self.keep else ():
            for name, size in _listed(place):
                if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.keep) or size > room_bytes:
                    continue
                data = fetched(place.host, f"{place.folder}/{name}", room_bytes)
                room_bytes -= max(len(data), KEPT_FILE_BYTES)
                files.setdefault(place.host.name, {})[name] = data.decode("utf-8", "replace")
        return files

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """Nothing: there are no spools."""
        return {}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """What the programs printed; and goodput: bytes received from other hosts, over the time from the first
        client's start to the last one's end."""
        values = {name: value for name, value in record["printed"].items() if value > 0 and name in METRICS}
        if record["bytes"] > 0 and record["active_seconds"] > 0:
            values["goodput"] = 8.0 * record["bytes"] / record["active_seconds"]
        return values


def _of_a_run(task: Task) -> bool:
    return task.lives == "run"


def _on(place: Place, host: Host) -> Place:
    """The place with the agent by which its requests can be cancelled."""
    return Place(host, place.values, place.folder, place.environment)


def _clear(place: Place) -> Callable[[Host], Json]:
    return lambda host: host.agent.request("host.clear", {"path": place.folder})


def _listed(place: Place) -> Iterator[tuple[str, int]]:
    """The files of a run, by their names below its folder, with their sizes; BadAnswer for any other name."""
    files = place.host.agent.request("host.list", {"path": place.folder})["files"]
    if len(files) > MOST_LISTED:
        raise BadAnswer(f"{place.host.name}: host.list: found {len(files)} files, expected at most {MOST_LISTED}")
    for file in files:
        name = file["path"].removeprefix(f"{place.folder}/")
        if name == file["path"] or {"", ".", ".."} & set(name.split("/")):
            path = one_line(file["path"], 80)
            raise BadAnswer(f"{place.host.name}: host.list: found {path}, expected a path below {place.folder}")
        yield name, file["size_bytes"]


def fetched(host: Host, path: str, most: int = MOST_KEPT_BYTES) -> bytes:
    """A file below the host's folder; ProgramFailure if it is too large."""
    data = bytearray()
    while True:
        params = {"path": path, "offset_bytes": len(data), "length_bytes": PIECE_BYTES}
        answer = host.agent.request("host.fetch", params)
        chunk = base64.b64decode(answer["data"])
        data += chunk
        if len(data) > most:
            raise ProgramFailure(f"{path} on {host.name}: found more than {most} bytes, expected fewer")
        if len(chunk) < PIECE_BYTES or len(data) >= answer["size_bytes"]:  # as in programs.py
            return bytes(data)
