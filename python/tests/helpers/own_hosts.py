"""The user's own hosts as a study over ssh meets them, in this process: honest, or with one that spoils its answers.

Traffic and readings are those of the invented rack. What a host answers passes the checks of agents/answers.py as a line
from a pipe does, and an agent that sends what is no message is lost, as agents/pipe.py has it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from framegauge.agents import answers
from framegauge.agents.pipe import ANSWER_SECONDS, Requests
from framegauge.errors import AgentLost, AgentTimeout, BadAnswer, from_agent, named
from framegauge.testbeds.base import Json, Pending, Progress
from framegauge.testbeds.fake import facts, frames
from framegauge.testbeds.fake.agent import WATCHED
from framegauge.testbeds.fake.files import FakeFolder
from framegauge.testbeds.fake.testbed import Answered, FakeError, FakeModel, FakeRack

__all__ = ["Network", "Spoil"]

# What becomes of the answer to a method in a run: None, and it is as it was. A line, or "silent" or "gone".
Spoil = Callable[[str, int, Json], bytes | str | None]
PRINTED = b"rate: 940.5\n"  # by every program
KEPT = {"log.txt": b"kept\n"}


class Network:
    """Hosts of these names; `spoil` is what the one called `evil` does."""

    def __init__(self, names: tuple[str, ...], evil: str, spoil: Spoil) -> None:
        self.names, self.evil, self.spoil = names, evil, spoil
        self.rack = FakeRack(FakeModel(noise=0.0))
        self.run = 0
        self.mtu = dict.fromkeys(names, 1500)
        self.leases: dict[str, int] = {}  # by host, the MTU before
        self.ended: list[tuple[int, str, str]] = []  # run, host, and how its lease ended
        self.asked: set[str] = set()
        self.unbounded: set[str] = set()  # methods that were asked without a limit of time
        self.requests = 0

    def open(self, name: str) -> Requests:
        """A new login."""
        return _Agent(self, name)

    def begin(self) -> None:
        """Fresh counters, as every run finds them."""
        if self.run:
            self.rack.answer("rack.down", {})
        self.run += 1
        hosts = [{"name": name, "mtu": self.mtu[name]} for name in self.names]
        nic = {"tso": True, "lro": True, "gro": True, "checksum": True, "moderation_seconds": 0.0}
        self.rack.answer(
            "rack.up",
            {
                "testbed": "kernel", "hosts": hosts, "nic": nic, "shaper": None, "congestion_control": "cubic",
                "link": {"rtt_seconds": 1e-4, "bits_per_second": 10**9, "port_mtu": 9216, "buffer_bytes": 10**6},
                "family": 4, "sysctls": {"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_no_metrics_save": "1"},
            },
        )  # fmt: skip

    def set(self, name: str, mtu: int) -> None:
        """Changes a host's MTU."""
        self.mtu[name] = mtu
        next(host for host in self.rack._up_now().up["hosts"] if host["name"] == name)["mtu"] = mtu

    def put_back(self, name: str, how: str) -> None:
        """Ends a lease."""
        if name in self.leases:
            self.set(name, self.leases.pop(name))
            self.ended.append((self.run, name, how))


class _Agent(Requests):
    """One login to a host."""

    def __init__(self, network: Network, name: str) -> None:
        self._network, self._name = network, name
        self._folder = FakeFolder()
        self._processes: list[str] = []
        self._lost: str | None = None
        self.about: Json = {"kernel": "0.0 (invented)", "user_id": 0}

    def close(self) -> None:
        """Ends it, with everything that it has begun."""
        self._folder.close()
        self._folder = FakeFolder()
        self._network.put_back(self._name, "input")

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """A request, answered at once."""
        network = self._network
        network.requests += 1
        if self._lost is not None:
            raise AgentLost(f"{method}: {self._lost}")
        try:
            message = {"jsonrpc": "2.0", "id": 1, "result": self._answer(method, dict(params or {}))}
        except FakeError as error:
            told = {"code": error.code, "message": error.message, "data": error.data}
            message = {"jsonrpc": "2.0", "id": 1, "error": told}
        if self._name != network.evil:
            return _Call(network, method, lambda: answers.result_of(method, message), message.get("error"))
        network.asked.add(method)
        line = network.spoil(method, network.run, message)
        if line == "silent":
            return _Call(network, method, None, None, self._name)
        if line == "gone":
            return self._lose(method, "exit code 1")
        assert not isinstance(line, str)
        return self._taken(method, json.dumps(message).encode() if line is None else line)

    def _taken(self, method: str, lines: bytes) -> Pending:
        """The answer in a line, as the reader of a pipe takes it."""
        line = lines.split(b"\n", 1)[0] + b"\n"
        try:
            message = answers.message_of(line)
            if "method" in message:
                answers.progress_of(message)
        except BadAnswer as error:
            return self._lose(method, f"it sent an invalid message: {error}")
        try:
            if "error" in message:
                return Answered({}, named(answers.error_of(method, message), f"{self._name}: "))
            return _Call(self._network, method, lambda: answers.result_of(method, message), None, self._name)
        except BadAnswer as error:
            return Answered({}, BadAnswer(f"{self._name}: {error}"))

    def _lose(self, method: str, why: str) -> Pending:
        self._lost = f"{self._name}: the agent was lost ({why})"
        self.close()
        return Answered({}, AgentLost(f"{method}: {self._lost}"))

    def _answer(self, method: str, params: Json) -> Json:
        own: dict[str, Callable[[Json], Json]] = {
            "host.adopt": self._adopt, "lease.begin": self._lease, "lease.renew": lambda _: {}, "lease.end": self._end,
            "held.begin": lambda _: {}, "held.end": lambda _: {"held": [], "not_measured": []}, "frames.wire": _wire,
            "check.facts": self._facts, "check.routes": self._routes, "check.serve": _serve, "check.run": self._search,
            "check.close": lambda _: {"answered": 0, "refused": 0},
            "host.folder": self._folder.folder, "host.files": self._files, "host.fetch": self._folder.fetch,
            "host.list": self._folder.list, "host.clear": self._folder.clear,
            "process.spawn": self._spawn, "process.wait": self._wait, "process.kill": lambda _: _ended(9),
            "process.ready": lambda _: {"ready": True, "seconds": 0.0, "ending": None}, "process.output": _output,
            "sockets.watch": lambda _: {}, "sockets.watched": self._watched,
        }  # fmt: skip
        if method in own:
            return own[method](params)
        return self._network.rack.answer("relay", {"host": self._name, "method": method, "params": params})

    def _address(self, name: str) -> str:
        return f"10.77.0.{self._network.names.index(name) + 1}"

    def _adopt(self, params: Json) -> Json:
        if self._name == self._network.names[0]:
            self._network.begin()
        return {}

    def _lease(self, params: Json) -> Json:
        network, before = self._network, self._network.mtu[self._name]
        ((setting, mtu),) = params["settings"].items()
        network.leases[self._name] = before
        network.set(self._name, int(mtu))
        return {"held": [{"setting": setting, "before": str(before), "now": mtu}], "seconds": params["seconds"]}

    def _end(self, _: Json) -> Json:
        self._network.put_back(self._name, "end")
        return {"ended": "end", "restored": True, "failed": None}

    def _facts(self, params: Json) -> Json:
        found = facts.facts(params)
        found["interfaces"][0] |= {"mtu": self._network.mtu[self._name]}
        found["interfaces"][0]["addresses"] = [{"address": self._address(self._name), "prefix_length": 24, "family": 4}]
        return found

    def _routes(self, params: Json) -> Json:
        found = facts.routes(params)
        for route in found["routes"]:
            route |= {"source": self._address(self._name), "route_mtu_bytes": self._network.mtu[self._name]}
        return found

    def _search(self, params: Json) -> Json:
        target = params["target_mtu"]
        flow = {
            "source_port": 50000, "verdict": "carries_target", "path_mtu_bytes": target, "delivered_bytes": target,
            "fragmented": False,
        }  # fmt: skip
        path = {
            "flows": [flow], "told_by": [], "seconds": 0.0, "controls": {"sent": 1, "lost": 0}, "packets_sent": 2,
            "bytes_sent": 2 * target, "route_mtu_bytes": None, "interface": None, "tcp": None, "said": None,
            "slowly": None,
        }  # fmt: skip
        return {"paths": [path for _ in params["paths"]]}

    def _files(self, params: Json) -> Json:
        """As asked; and in a run's folder, what its programs will have written there."""
        for each in params["files"]:
            if each["data"] is not None:
                self._folder.files({"files": [each]})
                continue
            data = {f"{each['path']}/{name}": base64.b64encode(data).decode() for name, data in KEPT.items()}
            self._folder.files({"files": [{"path": path, "data": text} for path, text in data.items()]})
        return {}

    def _spawn(self, params: Json) -> Json:
        self._processes.append(params["argv"][0])
        return {"process": len(self._processes), "pid": 1000}

    def _wait(self, params: Json) -> Json:
        serves = self._processes[params["process"] - 1] == "server"
        return {"ended": not serves, "exit_code": None if serves else 0, "signal": None}

    def _watched(self, _: Json) -> Json:
        others = [name for name in self._network.names if name != self._name]
        client = self._name == self._network.names[0]
        one = {
            "process": 1000, "program": "client" if client else "server", "local": f"{self._address(self._name)}:4000",
            "remote": f"{self._address(others[0])}:4001", "role": "client" if client else "server", "port": 4001,
            "loopback": False, "connections": 1, "congestion_control": ["cubic"], "nodelay": [True],
            "mss_bytes": [min(self._network.mtu.values()) - 52], "sent_bytes": 10**6 if client else 0,
            "received_bytes": 0 if client else 10**6, "first_seconds": 0.0, "last_seconds": 0.1,
        }  # fmt: skip
        return {**WATCHED, "looks": 9, "sockets": [one]}


class _Call:
    """A request whose answer is there, or never comes."""

    def __init__(
        self, network: Network, method: str, answer: Callable[[], Json] | None, error: Json | None, name: str = ""
    ) -> None:
        self._network, self._method, self._answer, self._error = network, method, answer, error
        self._name = f"{name}: " if name else ""

    def cancel(self) -> None:
        """Does nothing."""

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        """The answer, or its error."""
        if timeout_seconds is None:
            self._network.unbounded.add(self._method)
        if self._error is not None:
            raise from_agent(**self._error)
        if self._answer is None:
            raise AgentTimeout(f"{self._name}{self._method}: no answer from the agent within {timeout_seconds} s")
        try:
            return self._answer()
        except BadAnswer as error:
            raise BadAnswer(f"{self._name}{error}") from None


def _ended(signal: int) -> Json:
    return {"ended": True, "exit_code": None, "signal": signal}


def _output(params: Json) -> Json:
    data = PRINTED if params["stream"] == "stdout" else b""
    piece = data[params["offset_bytes"] :][: params["length_bytes"]]
    return {"data": base64.b64encode(piece).decode(), "size_bytes": len(data)}


def _serve(params: Json) -> Json:
    ports = [40_000 + number for number in range(params["ports"])]
    return {"endpoints": [{"address": each, "ports": ports, "tcp_port": 39_999} for each in params["addresses"]]}


def _wire(params: Json) -> Json:
    return frames.wire({**params, "encapsulations": []})
