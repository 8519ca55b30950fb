"""iperf3: the common traffic generator, as packaged by Debian; one server process per client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from framegauge.errors import ProgramFailure
from framegauge.record import Record
from framegauge.testbeds.base import Host, Json, Progress
from framegauge.workloads.base import Executed, Go, Phases, Program, jain, pairs, side_by_side
from framegauge.workloads.programs import Running, running, stamped, taken_stamp
from framegauge.workloads.transfers import TRANSFERS

__all__ = ["Iperf3", "parse"]

FIRST_PORT = 5201
CONNECT_MILLISECONDS = 5000
GRACE_SECONDS = 30.0


class Iperf3Record(Record):
    """`clients`: what each client printed."""

    clients: list[Json]


@dataclass(frozen=True)
class Iperf3(Phases):
    """`iperf3 -c` from each client to its own server. `nagle` False is `-N`; True and None are iperf3's default."""

    duration_seconds: float
    flows: int = 1
    reverse: bool = False
    pattern: str = "one-to-one"
    congestion_control: str = "cubic"
    nagle: bool | None = None
    name: str = "iperf3"
    needs: ClassVar[Sequence[Program]] = (Program("iperf3", "iperf3"),)

    def expected_seconds(self, bits_per_second: int | None) -> float:
        """The requested duration, and the time to connect."""
        return self.duration_seconds + 0.2

    @contextmanager
    def prepared(self, hosts: Sequence[Host], token: str) -> Iterator[Go]:
        """Starts all servers, and waits until they listen. Then runs all clients at the same time."""
        planned = [
            (client, server, FIRST_PORT + index) for index, (client, server) in enumerate(pairs(self.pattern, hosts))
        ]
        with ExitStack() as stack:
            servers: list[Running] = []
            for _, server, port in planned:
                argv = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
                servers.append(stack.enter_context(running(server, "iperf3 -s", argv)))
            for process in servers:
                process.await_words("listening")

            def go(_: Progress | None) -> Executed:
                results = side_by_side(
                    [(client, partial(self._client, server, port)) for client, server, port in planned]
                )
                stack.close()
                return Executed(self._record(planned, results), [])

            yield go

    def _client(self, server: Host, port: int, host: Host) -> Json:
        argv = ["iperf3", "-J", "-c", server.address, "-p", str(port), "-t", str(int(self.duration_seconds))]
        argv += ["-P", str(self.flows), "-C", self.congestion_control]
        argv += ["--connect-timeout", str(CONNECT_MILLISECONDS)]
        argv += ["-R"] if self.reverse else []
        argv += ["-N"] if self.nagle is False else []
        with running(host, "iperf3", stamped(argv)) as client:
            if client.wait(self.duration_seconds + GRACE_SECONDS) is None:
                raise ProgramFailure(f"iperf3 on {host.name} did not end within {GRACE_SECONDS:g} s after its duration")
            started, text = taken_stamp("iperf3", client.output())
            if not text.strip():
                raise ProgramFailure(f"iperf3 on {host.name}: {client.last_words()}")
            return {"started_seconds": started, **parse(text)}

    def _record(self, planned: Sequence[tuple[Host, Host, int]], results: Sequence[Json]) -> Iperf3Record:
        received: dict[str, int] = {}
        control: dict[str, set[str]] = {}
        senders: dict[str, None] = {}
        for (client, server, _), result in zip(planned, results, strict=True):
            sender, receiver = (server, client) if self.reverse else (client, server)
            senders[sender.name] = None
            received[receiver.name] = received.get(receiver.name, 0) + result["bytes"]
            control.setdefault(sender.name, set()).add(result["sender_congestion_control"])
            control.setdefault(receiver.name, set()).add(result["receiver_congestion_control"])
        starts = [result["started_seconds"] for result in results]
        ends = [start + result["seconds"] for start, result in zip(starts, results, strict=True)]
        record: Iperf3Record = {
            "senders": list(senders),
            "receivers": list(received),
            "received_bytes": received,
            "bytes": sum(received.values()),
            "transfer_bytes": None,
            "congestion_control": {host: sorted(names) for host, names in control.items()},
            "srtt_median_seconds": None,
            "mean_segment_payload_bytes": None,
            "retransmits": sum(result["retransmits"] for result in results),
            "active_seconds": max(ends) - min(starts),
            "refused": 0,
            "clients": [
                {"client": client.name, "server": server.name, "port": port, **result}
                for (client, server, port), result in zip(planned, results, strict=True)
            ],
        }
        if self.nagle is not None:
            option = "-N" if not self.nagle else "no -N"
            record["not_proved"] = [f"Nagle: iperf3 was started with {option}; its sockets cannot be read from outside"]
        return record

    def evidence(self, record: Json, tables: Mapping[str, pa.Table]) -> Json:
        """It leaves no spools. `answers`: how many flows of each client delivered anything."""
        return {"answers": dict(map(self._answer, record["clients"]))}

    def _answer(self, client: Json) -> tuple[str, Json]:
        sender, receiver = (client["client"], client["server"])[:: -1 if self.reverse else 1]
        rates = client["flow_bits_per_second"]
        counts = {"asked": len(rates), "answered": sum(rate > 0 for rate in rates)}
        return f"{sender} to {receiver}", {**counts, "host": sender, "what": TRANSFERS, "may_starve": True}

    def metrics(self, record: Json, tables: Mapping[str, pa.Table]) -> dict[str, float]:
        """goodput: bytes received over the time from the first start to the last end. fairness: over flows."""
        values: dict[str, float] = {}
        if record["bytes"] > 0 and record["active_seconds"] > 0:
            values["goodput"] = 8.0 * record["bytes"] / record["active_seconds"]
        flows = [rate for client in record["clients"] for rate in client["flow_bits_per_second"]]
        if len(flows) > 1 and any(flows):
            values["fairness"] = jain(flows)
        return values


def parse(text: str) -> Json:
    """The figures of `iperf3 -J` that a run needs; ProgramFailure if the output is not as expected.

    `bytes` and `seconds` are the receiver's. iperf3 may exit with code 0 after errors, which are then in its JSON.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ProgramFailure(f"iperf3 -J: found {text.strip()[:60]!r}, expected JSON") from None
    if isinstance(document, dict) and "error" in document:
        raise ProgramFailure(f"iperf3: {str(document['error'])[:300]}")
    end = _at(document, "end", dict, "")
    received, sent = _at(end, "sum_received", dict, "end."), _at(end, "sum_sent", dict, "end.")
    streams = _at(end, "streams", list, "end.")
    seconds = _number(received, "seconds", "end.sum_received.")
    if seconds <= 0 or not streams:
        raise ProgramFailure(f"iperf3 -J: found {len(streams)} streams in {seconds} s, expected some in more than 0 s")
    flows = []
    for index, stream in enumerate(streams):
        where = f"end.streams.{index}."
        flows.append(_number(_at(stream, "receiver", dict, where), "bits_per_second", where + "receiver."))
    return {
        "bytes": int(_number(received, "bytes", "end.sum_received.")),
        "seconds": seconds,
        # Missing on platforms that cannot count them.
        "retransmits": int(_number(sent, "retransmits", "end.sum_sent.")) if "retransmits" in sent else 0,
        "flow_bits_per_second": flows,
        "sender_congestion_control": _at(end, "sender_tcp_congestion", str, "end."),
        "receiver_congestion_control": _at(end, "receiver_tcp_congestion", str, "end."),
    }


def _at(parent: Any, key: str, kind: type, where: str) -> Any:
    value = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(value, kind):
        raise ProgramFailure(f"iperf3 -J: {where}{key}: found {json.dumps(value)[:60]}, expected {_WORDS[kind]}")
    return value


_WORDS: Mapping[type, str] = {dict: "an object", list: "a list", str: "text"}


def _number(parent: Json, key: str, where: str) -> float:
    value = parent.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ProgramFailure(f"iperf3 -J: {where}{key}: found {json.dumps(value)[:60]}, expected a number from 0")
    return float(value)
