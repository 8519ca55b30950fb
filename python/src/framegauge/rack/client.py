"""A client for the agent of a kept rack, through its keeper's socket (keeper.py lists the allowed requests).

The errors are those of an own agent: AgentMissing without a keeper, AgentLost if it ends, AgentTimeout, and those that
`errors.from_agent` makes of an error answer.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framegauge.agents.pipe import ANSWER_SECONDS
from framegauge.errors import AgentLost, AgentMissing, AgentTimeout, from_agent
from framegauge.rack.keeper import socket_path
from framegauge.rack.state import within_reach

__all__ = ["KeptAgent"]

PIECE_BYTES = 1 << 16

Json = dict[str, Any]


class KeptAgent:
    """A connection to the keeper of the rack whose state is in a file; one request at a time."""

    def __init__(self, state: Path) -> None:
        self._number = 0
        self._heard = bytearray()
        self._lost = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            with within_reach(state) as address:
                self._socket.connect(address)
        except OSError as error:
            self._socket.close()
            raise AgentMissing(
                f"{socket_path(str(state))}: the rack's keeper does not answer ({error.strerror}): run `framegauge "
                "rack down`, then `framegauge rack up`"
            ) from None

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = ANSWER_SECONDS,
    ) -> Json:
        """Sends a request and waits for its answer; after a timeout the connection cannot be used any more."""
        if self._lost:
            raise AgentLost(f"{method}: the rack's keeper is no longer connected")
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params or {})}
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._lost = True  # unless everything succeeds; closing the connection, as on Ctrl-C, cancels the request
        try:
            self._wait(deadline)
            self._socket.sendall(json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n")
            answer = self._answer(deadline)
        except TimeoutError:
            self.close()
            raise AgentTimeout(f"{method}: no answer from the agent within {timeout_seconds:g} s") from None
        except (OSError, ValueError, TypeError) as error:
            self.close()
            raise AgentLost(f"{method}: the rack's keeper closed the connection ({error})") from None
        self._lost = False
        if "error" in answer:
            raise from_agent(answer["error"]["code"], answer["error"]["message"], answer["error"]["data"])
        result: Json = answer["result"]
        return result

    def _answer(self, deadline: float | None) -> Json:
        """The answer to the request under way; ConnectionError if the connection is closed before that."""
        while True:
            line, end, rest = self._heard.partition(b"\n")
            if not end:
                self._wait(deadline)
                chunk = self._socket.recv(PIECE_BYTES)
                if not chunk:
                    raise ConnectionResetError("the rack was taken down, or belongs to another user")
                self._heard += chunk
                continue
            self._heard = rest
            message: Json = json.loads(line)
            if "method" not in message:  # an answer, not a notification of progress
                return message

    def _wait(self, deadline: float | None) -> None:
        """Sets the timeout of the next step to the deadline; TimeoutError if that has passed."""
        timeout = None if deadline is None else deadline - time.monotonic()
        if timeout is not None and timeout <= 0:
            raise TimeoutError
        self._socket.settimeout(timeout)

    def close(self) -> None:
        """Closes the connection."""
        self._lost = True
        self._socket.close()

    def __enter__(self) -> KeptAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
