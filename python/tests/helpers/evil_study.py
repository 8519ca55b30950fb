"""Studies of own hosts of which one is in other hands after the first run: a run for each way of spoiling the answers
to one method. The hosts are invented (own_hosts.py), so that nothing waits for anything.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from helpers import evil
from helpers.own_hosts import Network

from framegauge.agents.answers import LINE_BYTES
from framegauge.cli import commands
from framegauge.errors import FramegaugeError
from framegauge.experiment.progress import Event
from framegauge.experiment.runner import Outcome, Runner
from framegauge.results.journal import Run
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

Way = Callable[[evil.Message], "bytes | str"]
STUDY = """\
question: Do jumbo frames help here?
testbed: {{kind: ssh, machines: [h1, h2], lease: 60 s}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}}}
workloads: [{workload}]
margins: {{{margin}}}
control: false
stop: blocks
blocks: {blocks}
retries: 0
"""
COMMAND = """\
command: {name: c, servers: [{host: h2, run: [server], ready: {port: 4001}}],
 clients: [{host: h1, run: [client], within: 5 s}], expect: 1 s, keep: ["*.txt"],
 metrics: {rate: {output: "rate: ([0-9.]+)", unit: 1/s, better: higher}}}"""
WORKLOADS = {
    "stream": ("stream: {duration: 1 s}", "goodput: 2 %"),
    "rr": ("rr: {duration: 100 ms}", "transactions: 2 %"),
    "mixed": ("mixed: {rr: {duration: 500 ms}, bulk: {flows: 1}}", "goodput: 2 %"),
    "incast": ("incast: {unit: 100 kB, servers: 1, rounds: 5}", "goodput: 2 %"),
    "command": (COMMAND, "rate: 2 %"),
}


def _spoilt(change: Callable[[Any], Any]) -> Callable[[evil.Message], bytes]:
    """The answer in its right shape, with what `change` makes of all that is no container."""
    return lambda answer: evil._with(answer, change)


def _lists(value: Any, times: int) -> Any:
    if isinstance(value, dict):
        return {key: _lists(each, times) for key, each in value.items()}
    return [_lists(each, times) for each in value] * times if isinstance(value, list) else value


def _many_lists(times: int) -> Callable[[evil.Message], bytes]:
    return lambda answer: evil._told(answer, result=_lists(answer.get("result"), times))


def _number(new: float) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return type(value)(new)

    return change


def _text(new: str) -> Callable[[Any], Any]:
    return lambda value: new if evil._is_words(value) else value


UNFIT = ("wrong id", "big line", "huge stderr", "ends", *evil.SHAPELY)  # of what only a process can do
LINES: dict[str, Way] = {
    **{name: mode for name, mode in evil.MODES.items() if name not in UNFIT},
    "big line": lambda _: b" " * (LINE_BYTES + 1),
    "silent": lambda _: "silent",
    "gone": lambda _: "gone",
}

ABSURD: dict[str, Way] = {
    "escapes": evil.MODES["escapes"],
    "zero": _spoilt(_number(0)),
    "one": _spoilt(_number(1)),
    "negative": _spoilt(_number(-1)),
    "large": _spoilt(lambda value: _number(2**64 - 1 if isinstance(value, int) else 1e308)(value)),
    "2^60": _spoilt(_number(2**60)),
    "tiny": _spoilt(_number(5e-324)),
    "nothing": _spoilt(lambda _: None),
    "turned": _spoilt(lambda value: not value if isinstance(value, bool) else value),
    "way out": _spoilt(_text("../../../etc/passwd")),
    "markup": _spoilt(_text("<script>alert(1)</script>|`")),
    "long": _spoilt(_text("x" * 1_000_000)),
    "no rows": _many_lists(0),
    "rows": _many_lists(1000),
}
ALL = {**LINES, **ABSURD}
SMALL_BYTES = 1_000_000
MOST_REQUESTS = 3000  # of a run


def _same(line: bytes, answer: evil.Message) -> bool:
    try:
        return len(line) < SMALL_BYTES and bool(json.loads(line) == answer)
    except (ValueError, RecursionError):
        return False


class Endless(BaseException):
    """More requests than a run can need."""


@dataclass
class Done:
    """What a study came to."""

    folder: Path
    network: Network
    outcome: Outcome | None = None
    error: FramegaugeError | None = None
    runs: list[Run] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    spoilt: set[int] = field(default_factory=set)  # runs


def _result(value: Any) -> Way:
    return lambda answer: evil._told(answer, result=value)


def _spool(data: bytes) -> Way:
    return _result({"data": base64.b64encode(data).decode(), "size_bytes": len(data)})


def arrow(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as a spool has it."""
    sink = io.BytesIO()
    with pyarrow.ipc.new_file(sink, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression=compression)) as file:
        file.write_table(table)
    return sink.getvalue()


def unpacking() -> bytes:
    """A table of more than a gigabyte of zeros, which some kilobytes hold."""
    zeros = pa.array(np.zeros(1 << 22))
    return arrow(pa.Table.from_batches(40 * [pa.record_batch({"due_seconds": zeros, "end_seconds": zeros})]), "zstd")


def misled() -> bytes:
    """A table with a text that lies far outside of its buffer."""
    data = arrow(pa.table({name: ["x" * 77_777] for name in ("due_seconds", "end_seconds")}))
    return data.replace(struct.pack("<ii", 0, 77_777), struct.pack("<ii", 0, 1 << 30))


def _files(count: int, path: str, size: int = 0) -> Way:
    """Files in the folder of the run whose first one is in the answer."""

    def line(answer: evil.Message) -> bytes:
        folder = answer["result"]["files"][0]["path"].partition("/")[0]
        files = [{"path": path.format(folder=folder, number=number), "size_bytes": size} for number in range(count)]
        return evil._told(answer, result={"files": files, "more": False})

    return line


PIECE = base64.b64encode(b"x" * (1 << 20)).decode()
# By method, what is without end or leads elsewhere.
ENDLESS: dict[str, dict[str, Way]] = {
    "process.output": {
        "pieces": _result({"data": PIECE, "size_bytes": 1 << 60}),
        "bytes": _result({"data": "eA==", "size_bytes": 1 << 60}),
        "nothing": _result({"data": "", "size_bytes": 1 << 60}),
        "numbers": _result({"data": base64.b64encode(b"rate: 1\n" * 131_072).decode(), "size_bytes": 1 << 20}),
        "escapes": _result({"data": base64.b64encode(evil.ESCAPES.encode()).decode(), "size_bytes": 60}),
        "a large number": _result({"data": base64.b64encode(b"rate: " + b"9" * 100_000).decode(), "size_bytes": 1}),
    },
    "host.fetch": {
        "pieces": _result({"data": PIECE, "size_bytes": 1 << 60}),
        "bytes": _result({"data": "eA==", "size_bytes": 1 << 60}),
        "nothing": _result({"data": "", "size_bytes": 1 << 60}),
    },
    "host.list": {
        "many": _files(200_000, "{folder}/{number}.txt"),
        "listed": _files(10_000, "{folder}/{number}.txt"),
        "size": _files(1, "{folder}/{number}.txt", 1 << 60),
        "elsewhere": _files(1, "../../etc/passwd.txt"),
        "upwards": _files(1, "{folder}/../../passwd.txt"),
        "absolute": _files(1, "/etc/passwd.txt"),
        "escapes": _files(1, "\x1b[2J.txt"),
        "the same": _files(9_000, "{folder}/log.txt", 5),
    },
    "spool.read": {
        "size": _result({"data": PIECE, "size_bytes": 1 << 60}),
        "no size": _result({"data": PIECE, "size_bytes": 0}),
        "no table": _spool(b"x" * 100),
        "torn": _spool(arrow(pa.table({"due_seconds": [1.0]}))[:-20]),
        "without columns": _spool(arrow(pa.table({"x": [1.0]}))),
        "texts": _spool(arrow(pa.table({name: ["x"] for name in ("due_seconds", "end_seconds")}))),
        "no values": _spool(arrow(pa.table({name: [None] for name in ("due_seconds", "end_seconds")}))),
        "infinite": _spool(arrow(pa.table({name: 10 * [float("inf")] for name in ("due_seconds", "end_seconds")}))),
        "unpacking": lambda answer: _spool(unpacking())(answer),
        "misled": _spool(misled()),
    },
}  # fmt: skip


def perform(folder: Path, workload: str, host: str, method: str, ways: Sequence[Way]) -> Done:
    """Runs a study of as many runs, the first of them good; then `ways`, in turn, spoil the answers to a method."""
    before = [0]

    def spoil(asked: str, number: int, answer: evil.Message) -> bytes | str | None:
        if asked == "host.adopt":
            before[0] = network.requests
        if network.requests - before[0] > MOST_REQUESTS:
            raise Endless(f"{method} in run {number}")
        if asked != method or not 2 <= number < len(ways) + 2:
            return None
        line = ways[number - 2](answer)
        if isinstance(line, str) or not _same(line, answer):
            done.spoilt.add(number)
        return line

    network = Network(("h1", "h2"), host, spoil)
    done = Done(folder, network)
    words, margin = WORKLOADS[workload]
    text = STUDY.format(workload=words, margin=margin, blocks=max(2, (len(ways) + 2) // 2))
    # The order of the arms is drawn by lot. The second run is to raise the MTU, so that all is asked again.
    drawn = (study_file.parse(f"{text}seed: {seed}\n", "study.yaml") for seed in range(100))
    study = next(each for each in drawn if block_order(each, 0)[0].arm.level == 1500)

    def on_event(event: Event) -> None:
        done.runs += [] if event.run is None else [event.run]

    def opened(remote: Any, *_: Any, **__: Any) -> Any:
        return network.open(remote.name)

    quick = partial(Runner, pause=lambda _: None, cpu_time=lambda: 0.0)
    with (
        patch("framegauge.testbeds.logins.open_agent", opened),
        patch("framegauge.testbeds.ssh.open_agent", opened),
        patch.object(commands, "Runner", quick),
    ):
        try:
            done.outcome = commands.run_study(study, done.folder, False, on_event, done.said.append).outcome
        except FramegaugeError as error:
            done.error = error
    return done
