"""Changes of a rack during a measurement: each made at its time, with its outcome on record."""

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
    """Requests each change once `wait` has waited for its time on CLOCK_MONOTONIC, until that returns that the run is
    over.

    Changes of the same moment follow one another at once. `made` receives the outcome of each; a refusal does not
    prevent the next.
    """
    for change in changes:
        if not wait(begun_seconds + change["at_seconds"]):
            return
        try:
            answer = agent.request("rack.set", change["set"])
        except AgentFailure as error:
            made.append({**change, "made_seconds": None, "changed": [], "error": str(error)})
        else:
            seconds = round(answer["time_seconds"] - begun_seconds, 6)
            made.append({**change, "made_seconds": seconds, "changed": answer["changed"], "error": None})


@contextmanager
def beside(
    agent: Requests, changes: Sequence[Mapping[str, Any]], begun_seconds: float, now: Callable[[], float]
) -> Iterator[list[Json]]:
    """Makes the changes from a separate thread until the block is left; the list is complete after that."""
    outcomes: list[Json] = []
    stop = threading.Event()

    def wait(moment: float) -> bool:
        return not stop.wait(max(0.0, moment - now()))

    thread = threading.Thread(
        target=make, args=(agent, changes, begun_seconds, wait, outcomes), name="changes", daemon=True
    )
    thread.start()
    try:
        yield outcomes
    finally:
        stop.set()
        thread.join()
