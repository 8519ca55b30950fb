"""A fake agent on real pipes: `python -m framegauge.testbeds.fake.agent rack|host`.

It implements enough of pipe/README.md to replay the golden transcripts, so that `agents.pipe` is tested without a build
and without root. A host's processes are real, unsupervised children.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO, Any

from framegauge import __version__
from framegauge.agents.pipe import PROTOCOL
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake import facts as fake_facts, frames as fake_frames
from framegauge.testbeds.fake.check import FakeCheck
from framegauge.testbeds.fake.files import FakeFolder, ready
from framegauge.testbeds.fake.testbed import FakeError, FakeRack

__all__ = ["WATCHED", "FakeAgent", "main"]

# The keys of each method; a trailing ? marks optional ones.
_EVERY = {
    "hello": "protocol client",
    "cancel": "id",
    "shutdown": "",
    "spool.read": "spool offset_bytes length_bytes",
    "spool.drop": "spool",
    "frames.wire": "mtu encapsulations bits_per_second",
    "frames.datagram": "bytes nfs_read family links",
    "frames.rdma": "mtu family",
}
_RACK = {
    "requirements": "testbed bits_per_second gso_bytes? gro_bytes?",
    "rack.up": "testbed hosts link nic shaper congestion_control family sysctls topology? queue? shared_buffer? links? "
    "routing? background? seed? initial_window_segments? initial_receive_window_segments?",
    "rack.bare": "hosts",
    "rack.down": "",
    "frames.predict": "size_bytes mtu family bits_per_second rtt_seconds",
    "relay": "host method params",
    "measure.begin": "sample_seconds? watch? capture? around_seconds?",
    "measure.end": "",
}
_HOST = {
    "check.facts": "",
    "check.routes": "destinations",
    "check.serve": "token addresses ports",
    "check.run": "target_mtu flows exact false_claim controls_a_probe bits_per_second in_flight_bytes patience_seconds "
    "paths",
    "check.echo": "token target_mtu false_claim bits_per_second in_flight_bytes gap_seconds patience_seconds paths",
    "check.trace": "hops patient small_bytes traces",
    "check.close": "",
    "capture.about": "",
    "capture.begin": "host interfaces ports left_out snap_bytes most_bytes signs sudo",
    "capture.state": "",
    "capture.end": "last_seconds",
    "estimate.begin": "interfaces target_mtus sudo",
    "estimate.end": "",
    "host.frames": "interfaces",
    "host.totals": "interfaces",
    "held.begin": "",
    "held.end": "",
    "host.names": "entries",
    "host.folder": "limit_bytes?",
    "host.files": "files",
    "host.fetch": "path offset_bytes length_bytes",
    "host.list": "path",
    "host.clear": "path",
    "sockets.listening": "",
    "process.spawn": "argv environment? directory? limits? user? precedence?",
    "sockets.watch": "interval_seconds?",
    "sockets.watched": "",
    "process.wait": "process timeout_seconds",
    "process.ready": "process port? words? file? within_seconds",
    "process.signal": "process signal",
    "process.kill": "process",
    "process.output": "process stream offset_bytes length_bytes",
}

WATCHED: Json = {  # no sockets
    "looks": 1, "started_seconds": 0.0, "seconds": 0.0, "cpu_seconds": 0.0, "sockets": [], "unread": [], "more": 0,
    "lost": 0,
}  # fmt: skip
_HELD: Json = {"held": [], "not_measured": ["held CPUs: an invented host has none"]}


class FakeAgent:
    """Messages in, messages out; the loop around it is in `main`."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.ended = False
        self._greeted = False
        self._begun: set[str] = set()
        self._rack = FakeRack()
        self._check = FakeCheck()
        self._folder = FakeFolder()
        self._keys = _EVERY | (_RACK if role == "rack" else _HOST)
        self._processes: dict[int, tuple[subprocess.Popen[bytes], dict[str, IO[bytes]]]] = {}

    def take(self, line: bytes) -> Json:
        """The answer to one line."""
        number: Any = None
        try:
            try:
                message = json.loads(line)
            except ValueError as error:
                column = getattr(error, "colno", 1)
                raise FakeError(-32700, "parse error: send one JSON object a line", {"column": column}) from None
            number = message.get("id") if isinstance(message, dict) else None
            return {"jsonrpc": "2.0", "id": number, "result": self._answer(message)}
        except FakeError as error:
            answer = {"code": error.code, "message": error.message, "data": error.data}
            return {"jsonrpc": "2.0", "id": number, "error": answer}

    def close(self) -> None:
        """Ends all children, and removes their files."""
        for process, _ in self._processes.values():
            process.kill()
            process.wait()
        self._folder.close()

    def _answer(self, message: Any) -> Json:
        fit = isinstance(message, dict) and message.keys() == {"jsonrpc", "id", "method", "params"}
        if not fit or not isinstance(message["id"], int) or not isinstance(message["params"], dict):
            raise FakeError(-32600, "a request has jsonrpc, id, method and params", {})
        method, params = message["method"], message["params"]
        if not self._greeted and method != "hello":
            raise FakeError(-32600, "hello must be the first request", {})
        if method not in self._keys:
            raise FakeError(-32601, f"there is no method {method}", {"method": method})
        keys = self._keys[method].split()
        unknown = sorted(params.keys() - {key.rstrip("?") for key in keys})
        absent = [key for key in keys if not key.endswith("?") and key not in params]
        if unknown or absent:
            text = f"unknown key {unknown[0]}" if unknown else f"missing key {absent[0]}"
            raise FakeError(-32602, f"{method}: {text}", {"method": method})
        handlers: dict[str, Callable[[Json], Json]] = {
            "hello": self._hello,
            "cancel": lambda _: {"cancelled": False},
            "shutdown": self._shutdown,
            "frames.wire": fake_frames.wire,
            "frames.datagram": fake_frames.datagram,
            "frames.rdma": fake_frames.rdma,
            "check.facts": fake_facts.facts,
            "check.routes": fake_facts.routes,
            "check.serve": self._check.serve,
            "check.run": self._check.run,
            "check.echo": self._check.echo,
            "check.trace": self._check.trace,
            "check.close": self._check.close,
            "capture.about": lambda _: {"interfaces": [], "ssh": None, "folder": "nowhere", "free_bytes": 0},
            "capture.begin": self._not_ours,
            "capture.state": lambda _: self._end("capture.begin", {}),
            "capture.end": lambda _: self._end("capture.begin", {}),
            "estimate.begin": self._not_ours,
            "estimate.end": lambda _: self._end("estimate.begin", {}),
            "host.frames": self._not_ours,
            "host.totals": self._not_ours,
            "held.begin": lambda _: self._begin("held.begin"),
            "held.end": lambda _: self._end("held.begin", _HELD),
            "sockets.watch": lambda _: self._begin("sockets.watch"),
            "sockets.watched": lambda _: self._end("sockets.watch", WATCHED),
            "host.names": self._not_ours,
            "host.folder": self._folder.folder,
            "host.files": self._folder.files,
            "host.fetch": self._folder.fetch,
            "host.list": self._folder.list,
            "host.clear": self._folder.clear,
            "sockets.listening": lambda _: {"ports": []},
            "process.spawn": self._spawn,
            "process.wait": self._wait,
            "process.ready": self._ready,
            "process.signal": self._signal,
            "process.kill": self._kill,
            "process.output": self._output,
        }
        return handlers[method](params) if method in handlers else self._rack.answer(method, params)

    def _hello(self, params: Json) -> Json:
        if params["protocol"] != PROTOCOL:
            data = {"agent_protocol": PROTOCOL, "client_protocol": params["protocol"]}
            raise FakeError(-32001, "the agent speaks another protocol: update the older side", data)
        self._greeted = True
        return {
            "protocol": PROTOCOL, "agent": __version__, "role": self.role, "pid": os.getpid(),
            "user_id": os.getuid(), "kernel": platform.release(), "cpus": os.cpu_count(),
        }  # fmt: skip

    def _shutdown(self, _: Json) -> Json:
        self.ended = True
        return {}

    def _not_ours(self, _: Json) -> Json:
        reason = "this host is not a rack's"
        raise FakeError(-32006, reason, {"what": reason})

    def _begin(self, method: str) -> Json:
        self._begun.add(method)
        return {}

    def _end(self, method: str, result: Json) -> Json:
        """Ends what a method began, with what was found."""
        if method not in self._begun:
            raise FakeError(-32006, f"{method} comes first", {"what": f"{method} comes first"})
        self._begun.remove(method)
        return dict(result)

    def _process(self, params: Json) -> tuple[subprocess.Popen[bytes], dict[str, IO[bytes]]]:
        if params["process"] not in self._processes:
            subject = f"process {params['process']}"
            raise FakeError(-32006, f"there is no {subject}", {"what": subject})
        return self._processes[params["process"]]

    def _spawn(self, params: Json) -> Json:
        files: dict[str, IO[bytes]] = {name: tempfile.TemporaryFile() for name in ("stdout", "stderr")}  # noqa: SIM115
        try:
            process = subprocess.Popen(
                params["argv"],
                stdin=subprocess.DEVNULL,
                stdout=files["stdout"],
                stderr=files["stderr"],
                env={**os.environ, **(params.get("environment") or {})},
                cwd=params.get("directory"),
                start_new_session=True,
            )
        except OSError as error:
            data = {"operation": "spawn", "errno": error.errno, "error": error.strerror}
            raise FakeError(-32004, f"cannot start {params['argv'][0]}: {error.strerror}", data) from None
        number = len(self._processes) + 1
        self._processes[number] = (process, files)
        return {"process": number, "pid": process.pid}

    def _wait(self, params: Json) -> Json:
        process, _ = self._process(params)
        try:
            code = process.wait(params["timeout_seconds"])
        except subprocess.TimeoutExpired:
            return {"ended": False, "exit_code": None, "signal": None}
        return {"ended": True, "exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}

    def _ready(self, params: Json) -> Json:
        process, files = self._process(params)

        def output(stream: str) -> bytes:
            return os.pread(files[stream].fileno(), os.fstat(files[stream].fileno()).st_size, 0)

        def ending() -> Json | None:
            if (code := process.poll()) is None:
                return None
            return {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}

        return ready(params, output, ending)

    def _signal(self, params: Json) -> Json:
        self._process(params)[0].send_signal(params["signal"])
        return {}

    def _kill(self, params: Json) -> Json:
        self._process(params)[0].kill()
        return self._wait({**params, "timeout_seconds": None})

    def _output(self, params: Json) -> Json:
        handle = self._process(params)[1][params["stream"]].fileno()
        data = os.pread(handle, params["length_bytes"], params["offset_bytes"])
        return {"data": base64.b64encode(data).decode(), "size_bytes": os.fstat(handle).st_size}


def main() -> None:
    """Serve standard input until shutdown or its end."""
    agent = FakeAgent(sys.argv[1])
    try:
        for line in sys.stdin.buffer:
            sys.stdout.write(json.dumps(agent.take(line), separators=(",", ":")) + "\n")
            sys.stdout.flush()
            if agent.ended:
                break
    finally:
        agent.close()


if __name__ == "__main__":
    main()
