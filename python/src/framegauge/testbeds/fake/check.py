"""The part of a fake host in a path MTU check: there are no paths, but the order of requests is checked."""

from __future__ import annotations

import re

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.testbed import FakeError

__all__ = ["FakeCheck"]

FIRST_PORT = 40_000
# Parameters and their bounds, by method.
BOUNDS = {
    "check.serve": {"ports": (1, 4096)},
    "check.run": {"target_mtu": (576, 65_535), "flows": (1, 1024)},
    "check.echo": {"target_mtu": (576, 65_535)},
    "check.trace": {"hops": (1, 64), "small_bytes": (100, 65_535)},
}


class FakeCheck:
    """A check from `check.serve` to `check.close`. It finds nothing, because there is no network."""

    def __init__(self) -> None:
        self._serving = False

    def serve(self, params: Json) -> Json:
        """Invented ports."""
        _token("check.serve", params)
        _within("check.serve", params)
        if self._serving:
            raise _state("this host takes part in a check already; check.close first")
        self._serving = True
        ports = [FIRST_PORT + number for number in range(params["ports"])]
        return {
            "endpoints": [
                {"address": address, "ports": ports, "tcp_port": FIRST_PORT - 1} for address in params["addresses"]
            ]
        }

    def run(self, params: Json) -> Json:
        """Always raises FakeError, because there are no paths."""
        _within("check.run", params)
        _chance("check.run", params)
        self._need()
        raise _state("a fake host has no paths")

    def echo(self, params: Json) -> Json:
        """Always raises FakeError, because there is no host to answer."""
        _within("check.echo", params)
        _token("check.echo", params)
        _chance("check.echo", params)
        if not params["paths"]:
            raise FakeError(-32602, "check.echo: paths: 0 is not within 1 and 4096", {"method": "check.echo"})
        raise _state("a fake host has no paths")

    def trace(self, params: Json) -> Json:
        """An empty trace; FakeError if any flow is requested."""
        _within("check.trace", params)
        self._need()
        if params["traces"]:
            raise FakeError(-32602, "check.trace: no flow of check.run has this port", {"method": "check.trace"})
        return {"traces": []}

    def close(self, _: Json) -> Json:
        """The result of `check.close`: no probes were received."""
        self._need()
        self._serving = False
        return {"answered": 0, "refused": 0}

    def _need(self) -> None:
        if not self._serving:
            raise _state("this host takes part in no check; check.serve comes first")


def _token(method: str, params: Json) -> None:
    if re.fullmatch("[0-9a-fA-F]{32}", params["token"]) is None:
        raise FakeError(-32602, f"{method}: token: expected 32 hex digits", {"method": method})


def _chance(method: str, params: Json) -> None:
    if not 0 < params["false_claim"] < 1:
        raise FakeError(-32602, f"{method}: false_claim is a chance above 0 and below 1", {"method": method})


def _within(method: str, params: Json) -> None:
    for name, (least, most) in BOUNDS[method].items():
        if not least <= params[name] <= most:
            text = f"{method}: {name}: {params[name]} is not within {least} and {most}"
            raise FakeError(-32602, text, {"method": method})


def _state(reason: str) -> FakeError:
    return FakeError(-32006, reason, {"what": reason})
