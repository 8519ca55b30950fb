"""Executions of real programs on the rack, recorded once (`recorded/make.py`) and replayed without a rack.

A recording is what the rack's agent was asked in each run of a study, with its answers, and the record that the run
left. In a replay everything above the pipe runs as ever: the workload, the checks of a run, the journal. It must ask
what was asked in the recording, or the replay fails.
"""

from __future__ import annotations

import base64
import json
import lzma
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

from helpers.support import ROOT
from pydantic import TypeAdapter, ValidationError

from framegauge.agents.pipe import ANSWER_SECONDS
from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal, Run
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Json, Pending, Progress, Requests
from framegauge.testbeds.fake.testbed import Answered
from framegauge.testbeds.rack import RackTestbed

FOLDER = ROOT / "python/tests/recorded"
MAKE = "python/tests/recorded/make.py"
NAMES = (
    "ftp-ipv6", "ftp-many-to-one", "ftp-one-to-one", "iperf3-many-to-one", "iperf3-nagle-off", "iperf3-one-to-one",
    "iperf3-reverse",
)  # fmt: skip

SILENCE: Json = {"data": "", "size_bytes": 0}  # of the streams of a spoilt program that nobody has read of the real one
RUN = re.compile(r"\brun-[0-9a-f]{12}\b")  # the folder of a run's files: each has another

# Changes an answer: the host (None: the rack itself), the method, the params, and the answer as recorded.
Spoil = Callable[[str | None, str, Json, Json], Json]


@dataclass(frozen=True)
class Exchange:
    """One request with its answer."""

    host: str | None
    method: str
    params: Json
    result: Json

    @property
    def key(self) -> tuple[str | None, str, str]:
        """What was asked of whom; the same may be asked several times."""
        params = self.params
        if self.method == "host.files":
            params = {"files": [_unpacked(each) for each in params["files"]]}
        return self.host, self.method, RUN.sub("run", json.dumps(params, sort_keys=True))


def exchange(method: str, params: Mapping[str, Any], result: Json) -> Exchange:
    """One request to a rack agent, or through it to a host's."""
    if method == "relay":
        return Exchange(params["host"], params["method"], dict(params["params"]), result)
    return Exchange(None, method, dict(params), result)


class Recorder(Requests):
    """A rack agent whose conversation is kept, in the order of the answers."""

    def __init__(self, agent: Any) -> None:
        self._agent, self._lock = agent, threading.Lock()
        self.about: Json = agent.about
        self.heard: list[Exchange] = []

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """As the agent."""
        return _Heard(self, method, dict(params or {}), self._agent.begin(method, params, on_progress))

    def keep(self, one: Exchange) -> None:
        """Adds an answered request. The answer is copied, for a run adds to its own."""
        with self._lock:
            self.heard.append(Exchange(*json.loads(json.dumps([one.host, one.method, one.params, one.result]))))

    def close(self) -> None:
        """Leaves the agent to whom it belongs."""


class _Heard:
    def __init__(self, recorder: Recorder, method: str, params: Json, call: Pending) -> None:
        self._recorder, self._method, self._params, self._call = recorder, method, params, call

    def cancel(self) -> None:
        """As the agent."""
        self._call.cancel()

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        """As the agent."""
        found = self._call.result(timeout_seconds)
        self._recorder.keep(exchange(self._method, self._params, found))
        return found


@dataclass(frozen=True)
class Recorded:
    """One run of a recording: everything that was said in it, and the record that it left."""

    said: Sequence[Exchange]
    record: Json

    def answers(self, method: str, host: str | None = None) -> list[Exchange]:
        """All exchanges of a method, with one host or any."""
        return [each for each in self.said if each.method == method and host in (None, each.host)]

    def printed(self, program: str) -> list[tuple[str, list[str], str, str]]:
        """What each process of a program printed in the end: host, argv, standard output and error."""
        found = []
        for started in self.answers("process.spawn"):
            if program in started.params["argv"]:
                streams = dict.fromkeys(("stdout", "stderr"), "")
                for each in self.answers("process.output", started.host):
                    if each.params["process"] == started.result["process"]:
                        streams[each.params["stream"]] = base64.b64decode(each.result["data"]).decode()
                assert started.host is not None
                found.append((started.host, started.params["argv"], streams["stdout"], streams["stderr"]))
        return found


class Replay(Requests):
    """A rack agent that answers as in a recording; each `rack.up` begins the run that was asked for the same."""

    def __init__(self, runs: Sequence[Recorded], spoil: Spoil | None = None) -> None:
        self._runs, self._spoil = runs, spoil
        self._left: dict[tuple[str | None, str, str], list[Json]] = {}
        self.about: Json = {"kernel": "recorded", "role": "rack"}
        self.now = runs[0]

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """The next answer to that request."""
        asked = exchange(method, dict(params or {}), {})
        if method == "rack.up":
            self._start(asked)
        answers = self._left.get(asked.key)
        where = method if asked.host is None else f"{asked.method} of {asked.host}"
        if not answers and self._spoil is not None and asked.method == "process.output":
            answers = [dict(SILENCE)]
        assert answers, f"{where}: not asked, or not so often, when it was recorded: {MAKE} does so anew: {asked.key}"
        result = json.loads(json.dumps(answers.pop(0)))
        if method == "rack.down" and self._spoil is None:
            unasked = [key for key, answers in self._left.items() if answers]
            assert not unasked, f"asked when it was recorded, and not now: {MAKE} does so anew: {unasked}"
        if self._spoil is not None:
            result = self._spoil(asked.host, asked.method, asked.params, result)
        return Answered(result, None)

    def _start(self, asked: Exchange) -> None:
        for run in self._runs:
            if any(each.key == asked.key for each in run.answers("rack.up")):
                self.now, self._left = run, {}
                for each in run.said:
                    self._left.setdefault(each.key, []).append(each.result)
                return

    def close(self) -> None:
        """Nothing was started."""


class _ReplayedRack(RackTestbed):
    def __init__(self, agent: Replay) -> None:
        super().__init__(agent)
        self._replay, self._is_begun = agent, False

    def begin(self, watch: Sequence[str] = ()) -> float:
        """On the clock of the recording."""
        super().begin(watch)
        self._is_begun = False
        return float(self._replay.now.record["begun_seconds"])

    def ports(self) -> Sequence[Json]:
        """None: what ports counted is known at the end of a run, and was not asked for in between."""
        return ()

    def cpu_time(self) -> float:
        """framegauge's own, which a run reads at its begin and its end."""
        begun, self._is_begun = self._is_begun, True
        return float(self._replay.now.record["controller_seconds"]) if begun else 0.0


@dataclass(frozen=True)
class Recording:
    """A recorded study, of one block."""

    name: str
    study: Study
    runs: Sequence[Recorded]

    def replay(self, folder: Path, spoil: Spoil | None = None, blocks: int = 1) -> list[Run]:
        """Runs the study on the recording; every block is the same. Results are in `folder`, as those of any study."""
        study = self.study.model_copy(update={"blocks": blocks, "retries": 0})
        bed = _ReplayedRack(Replay(self.runs, spoil))
        plan = {
            "question": study.question, "scope": "emulated", "treatment": study.treatment, "margins": study.margin(),
            "primary": study.primary, "ask": study.ask,
        }  # fmt: skip
        with Journal.create(folder, study_file.dump(study), plan) as journal:
            Runner(study, bed, journal, pause=lambda _: None, cpu_time=bed.cpu_time).run()
            return list(journal.runs)


def load(name: str) -> Recording:
    """The recording of that name."""
    with lzma.open(path_of(name)) as file:
        found = json.load(file)
    runs = [
        Recorded([Exchange(host, method, params, _packed(result)) for host, method, params, result in each["said"]], each["record"])
        for each in found["runs"]
    ]  # fmt: skip
    return Recording(name, study_file.parse(found["study"], f"{name}.yaml"), runs)


def save(recording: Recording) -> None:
    """Replaces the recording of that name."""
    said = [[[one.host, one.method, one.params, _unpacked(one.result)] for one in run.said] for run in recording.runs]
    found = {
        "study": study_file.dump(recording.study),
        "runs": [{"record": run.record, "said": each} for run, each in zip(recording.runs, said, strict=True)],
    }
    # The record repeats much of the conversation, farther back than gzip looks.
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    path_of(recording.name).write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def _unpacked(result: Json) -> Json:
    """With its bytes as characters: base64 hides from the compressor what is alike."""
    data = result.get("data")
    return {**result, "data": base64.b64decode(data).decode("latin-1")} if data else result


def _packed(result: Json) -> Json:
    data = result.get("data")
    return {**result, "data": base64.b64encode(data.encode("latin-1")).decode()} if data else result


def path_of(name: str) -> Path:
    """Its file."""
    return FOLDER / f"{name}.json.xz"


def shape(value: Any, where: str = "") -> set[tuple[str, str]]:
    """The keys and types of a JSON value, all the way down, as places with what is there.

    Numbers are alike: whether a time comes out whole is chance. The names of the kernel's counters are the kernel's.
    """
    if isinstance(value, Mapping):
        keys = {key: "*" if where.endswith(".nstat") else key for key in value}
        return {(where, "object")}.union(*(shape(inner, f"{where}.{keys[key]}") for key, inner in value.items()))
    if isinstance(value, list):
        return {(where, "list")}.union(*(shape(inner, f"{where}[]") for inner in value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {(where, "number")}
    return {(where, type(value).__name__)}


def differences(found: Any, recorded: Any) -> list[str]:
    """Keys and types that only one of two JSON values has; a list without items says nothing of what items are like."""
    shapes = shape(found), shape(recorded)
    unknown = {
        f"{where}[]"
        for each in shapes
        for where, kind in each
        if kind == "list" and not any(place.startswith(f"{where}[]") for place, _ in each)
    }
    apart = ((one - other, who) for one, other, who in ((*shapes, "fresh"), (*shapes[::-1], "recorded")))
    return sorted(
        f"{where}: {kind} only in what is {who}"
        for places, who in apart
        for where, kind in places
        if not where.startswith(tuple(unknown))
    )


def misfits(record: Json, kind: type) -> list[str]:
    """What in a record is not as its typed dictionary says: keys that are missing or unknown, and values of other types.

    pydantic knows no `typing.TypedDict` before Python 3.12, so that each key is looked at by itself.
    """
    hints, needed = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    found = [f"{key}: unknown" for key in record if key not in hints]
    for key, hint in hints.items():
        if key not in record:
            found += [f"{key}: missing"] if get_origin(needed[key]) is not NotRequired else []
            continue
        try:
            TypeAdapter(hint).validate_python(record[key], strict=True)
        except ValidationError as error:
            found.append(f"{key}: {error.errors()[0]['msg']}")
    return found
