"""The only Python end of the pipe: starts an agent and speaks JSON-RPC 2.0 with it (pipe/README.md).

One thread reads; requests may overlap, and answers may come in any order. Errors: AgentMissing if the agent cannot be
started, AgentLost if it ends or closes the pipe, AgentTimeout, and those that `errors.from_agent` makes of an error
answer. An agent that sends what pipe/schema.json does not allow is lost; an answer that the schema does not allow is a
BadAnswer of its request (agents/answers.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol

from framegauge import __version__
from framegauge.agents import answers
from framegauge.agents.last_words import KEPT_BYTES, LastWords, last_lines
from framegauge.agents.once import Once
from framegauge.errors import (
    AgentFailure,
    AgentLost,
    AgentMissing,
    AgentTimeout,
    BadAnswer,
    FramegaugeError,
    ending,
    named,
)
from framegauge.printable import one_line

__all__ = ["Agent", "Call", "Meet", "Pending", "Requests"]

PROTOCOL = 1
ANSWER_SECONDS = 30.0
BROKEN_SECONDS = 0.5  # for the end of an agent that sent what it must not

Json = dict[str, Any]
Progress = Callable[[float, str], None]
Meet = Callable[[IO[bytes], IO[bytes]], None]  # takes the standard input and output of the started process


class Pending(Protocol):
    """A request under way."""

    def cancel(self) -> None:
        """Ask for it to be stopped; `result` then raises AgentError -32005."""
        ...

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        """Wait for the answer."""
        ...


class Requests(Protocol):
    """Anything that answers requests: an agent, a relay to a host's agent, a fake. Requests may overlap."""

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None
    ) -> Pending:
        """Send a request without waiting for its answer."""
        ...

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = ANSWER_SECONDS,
        on_progress: Progress | None = None,
    ) -> Json:
        """The result of one request; raises the error of errors.py that fits the answer."""
        return self.begin(method, params, on_progress).result(timeout_seconds)


class Call:
    """A request to an agent that is under way."""

    def __init__(self, agent: Agent, number: int, method: str, shape: str, on_progress: Progress | None) -> None:
        self.number = number
        self.method = method
        self.shape = shape
        self.on_progress = on_progress
        self._agent = agent
        self._done = Once()
        self._result: Json = {}
        self._error: Exception | None = None

    def finish(self, result: Json, error: Exception | None) -> None:
        """Called once by the reader."""
        self._result, self._error = result, error
        self._done.set()

    def cancel(self) -> None:
        """Ask the agent to stop this request; its `result` then raises AgentError -32005."""
        with contextlib.suppress(AgentFailure):
            self._agent.begin("cancel", {"id": self.number})

    def result(self, timeout_seconds: float | None = ANSWER_SECONDS) -> Json:
        """Wait for the answer; on timeout or Ctrl-C the request is cancelled."""
        try:
            in_time = self._done.wait(timeout_seconds)
        except BaseException:
            self.cancel()
            raise
        if not in_time:
            self.cancel()
            raise AgentTimeout(
                f"{self._agent.host}{self.method}: no answer from the agent within {timeout_seconds:g} s"
            )
        if self._error is not None:
            raise self._error
        return self._result


class Agent(Requests):
    """A running agent. `close` (or leaving the `with` block) leaves no process behind."""

    def __init__(self, command: Sequence[str], meet: Meet | None = None, name: str = "") -> None:
        self.command = list(command)
        self.host = f"{name}: " if name else ""
        self.about: Json = {}
        # An agent on another host may write without end. One on this machine is ours: its file outlives this process,
        # so that it can still be written to, and read by the keeper of a rack.
        self._words = LastWords() if meet is not None else None
        self._errors = tempfile.TemporaryFile() if meet is None else None  # noqa: SIM115 (closed in close)
        self._closed = False
        self._calls: dict[int, Call] = {}
        self._last = 0  # number of a request
        self._lock = threading.Lock()
        self._lost: str | None = None
        self._leaving = False
        self._broken = False
        try:
            # Its own process group, so that Ctrl-C in the terminal reaches only the controller, which then ends the
            # study in order; the agent notices that its pipe is closed.
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors if self._words is None else self._words.input,
                process_group=0,
            )
        except OSError as error:
            self._close_errors()
            raise AgentMissing(f"cannot start {self.command[0]}: {error.strerror}") from None
        finally:
            if self._words is not None:
                os.close(self._words.input)
        answers.load()  # while the agent starts, and a login is under way
        self._reader = threading.Thread(target=self._read, name="agent reader", daemon=True)
        if meet is not None:
            self._meet(meet)
        self._reader.start()

    def _meet(self, meet: Meet) -> None:
        """Runs the exchange that starts the agent; if it fails, ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            meet(self._process.stdin, self._process.stdout)
        except BaseException as error:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            tail = self._last_words()
            self._close_errors()
            if isinstance(error, AgentFailure):
                raise type(error)(f"{self.host}{error}" + (f": {tail}" if tail else "")) from None
            if isinstance(error, OSError):
                raise AgentLost(f"{self.host}{tail or error.strerror}") from None
            raise

    @classmethod
    def open(cls, command: Sequence[str], meet: Meet | None = None, name: str = "") -> Agent:
        """Start an agent and greet it; AgentError -32001 if it speaks another protocol.

        `meet` runs the exchange that precedes the agent's start; `name` is the host's name in errors.
        """
        agent = cls(command, meet, name)
        try:
            agent.hello()
        except BaseException:
            agent.close()
            raise
        return agent

    @property
    def process_id(self) -> int:
        """The id of the started process: the agent, or sudo."""
        return self._process.pid

    def descriptors(self) -> tuple[int, int, int]:
        """The descriptors of the standard input, output and error of an agent on this machine; it runs while the first
        two are open."""
        assert self._errors is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin.fileno(), self._process.stdout.fileno(), self._errors.fileno()

    def hello(self, protocol: int = PROTOCOL) -> Json:
        """Greet the agent; must be the first request."""
        self.about = self.request("hello", {"protocol": protocol, "client": f"framegauge {__version__}"})
        return self.about

    def begin(self, method: str, params: Mapping[str, Any] | None = None, on_progress: Progress | None = None) -> Call:
        """Send a request without waiting. `on_progress` runs in the reader's thread and must return at once."""
        with self._lock:
            if self._lost is not None:
                raise AgentLost(f"{method}: {self._lost}")
            arguments = dict(params or {})
            self._last += 1
            call = Call(self, self._last, method, answers.shape(method, arguments), on_progress)
            self._calls[call.number] = call
            message = {"jsonrpc": "2.0", "id": call.number, "method": method, "params": arguments}
            line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (OSError, ValueError):
                del self._calls[call.number]
                broken = True
            else:
                broken = False
        if broken:
            self._reader.join(timeout=5)  # the reader finds out how the agent ended
            raise AgentLost(f"{method}: {self._lost or 'the agent closed the pipe'}")
        return call

    def nudge(self) -> None:
        """Sends an empty line if that does not block, because an agent may end if it receives nothing for long."""
        if self._lock.acquire(blocking=False):  # otherwise something is being sent right now
            try:
                assert self._process.stdin is not None
                with contextlib.suppress(OSError, ValueError):
                    ready = select.poll()  # select(2) is limited to descriptors below 1,024
                    ready.register(self._process.stdin, select.POLLOUT)
                    if ready.poll(0):
                        self._process.stdin.write(b"\n")
                        self._process.stdin.flush()
            finally:
                self._lock.release()

    def hand_over(self) -> None:
        """Leaves the pipe to another process, which has the descriptors; it cannot be used here any more."""
        self._leaving = True
        self.request("cancel", {"id": 0})  # the reader blocks in a read, which only an answer ends
        self._reader.join()
        self._lost = f"{self.host}the agent's pipe was handed over to another process"

    def close(self, patience_seconds: float = 10.0) -> None:
        """Asks the agent to put everything back and end, and kills it if it does not; may be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._lost is None:
            with contextlib.suppress(AgentFailure):
                self.request("shutdown", timeout_seconds=patience_seconds)
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(BROKEN_SECONDS if self._broken and number is None else patience_seconds)
                break
        self._reader.join(timeout=patience_seconds)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._close_errors()

    def _close_errors(self) -> None:
        if self._errors is not None:
            self._errors.close()
        if self._words is not None:
            self._words.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            self._process.send_signal(number)
        except PermissionError:
            # The child is sudo and runs as root.
            kill = ["sudo", "-n", "kill", f"-{number.value}", str(self._process.pid)]
            subprocess.run(kill, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        """The reader's thread: reads until the end of file, after which every open call fails with AgentLost."""
        assert self._process.stdout is not None
        why = ""
        try:
            while line := self._process.stdout.readline(answers.LINE_BYTES + 1):
                if not line.endswith(b"\n") and len(line) <= answers.LINE_BYTES:
                    break  # it ended in the middle of a line
                self._take(answers.message_of(line))
                if self._leaving:
                    return
        # Whatever goes wrong with what a host sent, its calls must end.
        except Exception as error:
            self._broken = True
            detail = str(error) if isinstance(error, BadAnswer) else type(error).__name__
            why = f"it sent an invalid message: {detail}"
        if not self._broken:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
        self._lose(why)

    def _take(self, message: Json) -> None:
        if "method" in message:
            params = answers.progress_of(message)
            call = self._calls.get(params["id"])
            if call is not None and call.on_progress is not None:
                with contextlib.suppress(Exception):  # a failure to show progress must not end a measurement
                    call.on_progress(params["fraction"], params["text"])
            return
        call = self._call_of(message)
        if call is None:
            return  # a second answer
        result: Json = {}
        error: FramegaugeError | None = None
        try:
            if "error" in message:
                error = answers.error_of(call.shape, message)
            else:
                result = answers.result_of(call.shape, message)
        except BadAnswer as bad:
            error = bad
        call.finish(result, error and named(error, self.host))
        with self._lock:  # only now: whatever fails before leaves the call for `_lose`
            self._calls.pop(call.number, None)

    def _call_of(self, message: Json) -> Call | None:
        """The request that a message answers, None if it was answered before; BadAnswer for one that was never made:
        whoever made the one that it was meant for would wait for its time limit."""
        number = message.get("id")
        if type(number) is not int or not 0 < number <= self._last:
            reason = f" ({one_line(error.get('message'))})" if isinstance(error := message.get("error"), dict) else ""
            raise BadAnswer(f"found an answer to request {one_line(number, 40)}{reason}, expected one that was made")
        return self._calls.get(number)

    def _last_words(self) -> str:
        """The last lines of standard error, joined into one."""
        if self._words is not None:
            return last_lines(self._words.end())
        assert self._errors is not None
        with contextlib.suppress(OSError, ValueError):
            end = os.fstat(self._errors.fileno()).st_size
            return last_lines(os.pread(self._errors.fileno(), KEPT_BYTES, max(0, end - KEPT_BYTES)))
        return ""

    def _lose(self, why: str) -> None:
        code = self._process.poll()
        how = "still running" if code is None else ending(code)
        tail = self._last_words()
        with self._lock:
            self._lost = f"{self.host}the agent was lost ({why or how})" + (f": {tail}" if tail else "")
            calls, self._calls = self._calls, {}
        for call in calls.values():
            call.finish({}, AgentLost(f"{call.method}: {self._lost}"))
