"""Changes of a rack while something is measured: each at its moment, what came of it on record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from framegauge.errors import AgentFailure
from framegauge.testbeds.base import Json, Requests

__all__ = ["beside", "make"]


def make(
    agent: Requests,
    changes: Sequence[Mapping[str, Any]],
    begun_seconds: float,
    wait: Callable[[float], bool],
    made: list[Json],
) -> None:
    """Ask for each once `wait` has waited for its moment on CLOCK_MONOTONIC; no more when it says that the run is over.

    Those of one moment follow one another at once. `made` gets what came of each; a refusal is no reason to leave out
    the next.
    """
    for each in changes:
        if not wait(begun_seconds + each["at_seconds"]):
            return
        try:
            answer = agent.request("rack.set", each["set"])
        except AgentFailure as error:
            made.append({**each, "made_seconds": None, "changed": [], "error": str(error)})
        else:
            seconds = round(answer["time_seconds"] - begun_seconds, 6)
            made.append({**each, "made_seconds": seconds, "changed": answer["changed"], "error": None})


@contextmanager
def beside(
    agent: Requests, changes: Sequence[Mapping[str, Any]], begun_seconds: float, now: Callable[[], float]
) -> Iterator[list[Json]]:
    """Make them from a thread of their own until the block is left; the list is whole after that."""
    made: list[Json] = []
    over = threading.Event()

    def wait(moment: float) -> bool:
        return not over.wait(max(0.0, moment - now()))

    thread = threading.Thread(
        target=make, args=(agent, changes, begun_seconds, wait, made), name="changes", daemon=True
    )
    thread.start()
    try:
        yield made
    finally:
        over.set()
        thread.join()
