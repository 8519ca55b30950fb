"""Programs in hosts: started, awaited, and ended on every way out."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from framegauge.errors import BadAnswer, ProgramFailure
from framegauge.printable import one_line
from framegauge.testbeds.base import Host, Json, afterwards

__all__ = ["Running", "running", "stamped", "taken_stamp"]

PIECE_BYTES = 1 << 20
MOST_OUTPUT_BYTES = 256 << 20
LOOK_SECONDS = 0.02  # between two looks at a program that is starting
GRACE_SECONDS = 10.0

_STAMP = re.compile(r"(\d{1,12})\.(\d{9})\n")


class Running:
    """A program in a host."""

    def __init__(
        self,
        host: Host,
        name: str,
        number: int,
        pid: int | None = None,
        most_bytes: int = MOST_OUTPUT_BYTES,
        telling: str | None = None,
    ) -> None:
        self.host, self.name, self.number, self.pid, self._most = host, name, number, pid, most_bytes
        self._telling = telling

    def output(self, stream: str = "stdout") -> str:
        """Everything that it has printed so far; BadAnswer if that is more than it may print."""
        return self.octets(stream).decode("utf-8", "replace")

    def octets(self, stream: str = "stdout") -> bytes:
        """As `output`, as it was printed."""
        data = bytearray()
        while True:
            params = {"process": self.number, "stream": stream, "offset_bytes": len(data), "length_bytes": PIECE_BYTES}
            answer = self.host.agent.request("process.output", params)
            chunk = base64.b64decode(answer["data"])
            data += chunk
            if len(data) > self._most:
                raise BadAnswer(f"{self.name} on {self.host.name}: found more output than {self._most} bytes")
            # A piece that is not full is the last one, whatever the size is said to be: else a host that sends byte
            # after byte would be asked for ever.
            if len(chunk) < PIECE_BYTES or len(data) >= answer["size_bytes"]:
                return bytes(data)

    def wait(self, seconds: float) -> Json | None:
        """How it ended, as in `process.wait`; None if it still runs after that time."""
        params = {"process": self.number, "timeout_seconds": seconds}
        answer = self.host.agent.request("process.wait", params, timeout_seconds=seconds + GRACE_SECONDS)
        return answer if answer["ended"] else None

    def await_words(self, words: str, patience_seconds: float = GRACE_SECONDS) -> None:
        """Waits until it has printed `words`; ProgramFailure if it ends before that, or takes too long."""
        for _ in range(int(patience_seconds / LOOK_SECONDS)):
            # Whether it has ended is read first, so that everything a program printed before its end counts.
            answer = self.wait(LOOK_SECONDS)
            if words in self.output():
                return
            if answer is not None:
                status = (
                    f"exit code {answer['exit_code']}" if answer["signal"] is None else f"signal {answer['signal']}"
                )
                program = f"{self.name} on {self.host.name}"
                raise ProgramFailure(f"{program} ended before it was ready ({status}): {self.last_words()}")
        raise ProgramFailure(f"{self.name} on {self.host.name} was not ready within {patience_seconds:g} s")

    def last_words(self) -> str:
        """The end of its standard error, or else of its standard output, in one line: of the lines that are telling, if
        there are any."""
        for stream in ("stderr", "stdout"):
            lines = [line.strip() for line in self.output(stream).splitlines() if line.strip()]
            if lines:
                matches = [line for line in lines if self._telling is not None and re.search(self._telling, line)]
                return one_line("; ".join((matches or lines)[-3:])[-300:])
        return "it printed nothing"

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        self.host.agent.request("process.signal", {"process": self.number, "signal": number})


@contextmanager
def running(host: Host, name: str, argv: Sequence[str], precedes: bool = False) -> Iterator[Running]:
    """Starts a program, and ends it and all its children when the block is left. `precedes`: as of `tasks.Task`."""
    params: Json = {"argv": list(argv), "directory": None, **({"precedence": "real time"} if precedes else {})}
    number = host.agent.request("process.spawn", params)["process"]
    with afterwards(lambda: host.agent.request("process.kill", {"process": number})):
        yield Running(host, name, number)


def stamped(argv: Sequence[str]) -> list[str]:
    """The command of a program that first prints the time at which it was started.

    The time is in seconds of the machine's clock, which relates the clocks of programs on several hosts to one another.
    Its error is the difference in the start-up times of the programs, some milliseconds.
    """
    return ["sh", "-c", 'date +%s.%N; exec "$@"', "sh", *argv]


def taken_stamp(name: str, text: str) -> tuple[float, str]:
    """The start time, and the rest of the output; ProgramFailure without a start time."""
    match = _STAMP.match(text)
    if match is None:
        raise ProgramFailure(f"{name}: found {text[:60]!r}, expected the time of its start")
    return float(f"{match[1]}.{match[2]}"), text[match.end() :]
