"""Captures of headers on every host while a run is measured, for its diagnosis (`meters: {diagnose: on}`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from framegauge import temporary
from framegauge.agents.spools import pieces
from framegauge.errors import BadAnswer, FramegaugeError, InputError
from framegauge.testbeds.base import Host, Json

__all__ = ["Diagnose", "captured", "flows"]

SNAP_BYTES = 192  # headers, also those inside an overlay
MOST_BYTES = 64_000_000  # per host and run; the oldest packets give way
MOST_SPOOL_BYTES = MOST_BYTES + MOST_BYTES // 8  # with what the file has beside the packets
MOST_LEFT_OUT = 32
# Of a host's answer, what is told of its capture.
TOLD = ("packets", "kept_packets", "given_up_packets", "dropped_packets", "cpu_seconds")

# From a capture of each host, and the addresses of each: where the time of connections went.
Diagnose = Callable[[Mapping[str, Path], Mapping[str, Sequence[str]]], Json]


@contextlib.contextmanager
def captured(
    hosts: Sequence[Host], diagnose: Diagnose | None, on_progress: Callable[[float, str], None]
) -> Iterator[Json]:
    """Captures meanwhile, unless there is nobody to diagnose; afterwards what it yields is filled.

    The agent's errors are passed on; nothing keeps running after an error of any kind.
    """
    diagnosis: Json = {}
    if diagnose is None:
        yield diagnosis
        return
    try:
        _begin(hosts)
        yield diagnosis
        on_progress(1.0, "diagnosing the captures")
        answers = {host.name: _end(host) for host in hosts}
    except BaseException:
        for host in hosts:
            with contextlib.suppress(FramegaugeError):
                host.agent.request("spool.drop", {"spool": _end(host)["spool"]})
        raise
    with temporary.folder() as folder:
        files = {host.name: _fetched(host, answers[host.name], folder) for host in hosts}
        try:
            diagnosis |= diagnose(files, {host.name: host.addresses for host in hosts})
        except InputError as error:
            raise BadAnswer(f"the captures of the hosts cannot be read: {error}") from None
    diagnosis["captures"] = {name: {key: answer[key] for key in TOLD} for name, answer in answers.items()}


def flows(diagnosis: Json) -> dict[str, bytes]:
    """Takes the connections out of what a diagnosis told: the table that a run keeps of them, by its name."""
    if (columns := diagnosis.pop("flows", None)) is None:
        return {}
    types = {"client": pa.string(), "server": pa.string(), "bytes": pa.uint64(), "reverse_bytes": pa.uint64()}
    table = pa.table({name: pa.array(values, types.get(name, pa.float64())) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return {"connections": sink.getvalue().to_pybytes()}


def _begin(hosts: Sequence[Host]) -> None:
    """Begins on every host. The connections that control the agents over ssh are left out."""
    about = [host.agent.request("capture.about") for host in hosts]
    ssh = [[answer["ssh"]["client"], answer["ssh"]["server"]] for answer in about if answer["ssh"]]
    for host in hosts:
        params: dict[str, Any] = {
            "host": host.name, "interfaces": [], "ports": [], "left_out": ssh[:MOST_LEFT_OUT],
            "snap_bytes": SNAP_BYTES, "most_bytes": MOST_BYTES, "signs": {}, "sudo": True,
        }  # fmt: skip
        host.agent.request("capture.begin", params)


def _end(host: Host) -> Json:
    return host.agent.request("capture.end", {"last_seconds": None})


def _fetched(host: Host, answer: Json, folder: Path) -> Path:
    place = folder / f"{host.name}.pcapng"
    with place.open("wb") as file:
        for data, size in pieces(host.agent, answer["spool"]):
            if size > MOST_SPOOL_BYTES:
                raise BadAnswer(
                    f"{host.name}: found a capture of {size} bytes, expected at most {MOST_SPOOL_BYTES}, as asked for"
                )
            file.write(data)
    return place
