"""What Hadoop writes of a job when it has ended (.jhist): one JSON object a line, after a schema. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from framegauge.errors import ProgramFailure

__all__ = ["Job", "parse", "split"]

BEGIN = "Avro-Json"
MILLISECOND = 1e-3


@dataclass(frozen=True)
class Job:
    """A job that ended: times in seconds of the cluster's clock. `shuffles`: the duration of each reducer's."""

    name: str
    submitted_seconds: float
    finished_seconds: float
    shuffles_seconds: list[float]
    maps: int
    reduces: int
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """From its submission to its end."""
        return self.finished_seconds - self.submitted_seconds

    @property
    def shuffle_seconds(self) -> float | None:
        """The mean over the reducers; None without any."""
        return sum(self.shuffles_seconds) / len(self.shuffles_seconds) if self.shuffles_seconds else None


def split(text: str) -> list[str]:
    """What was before the first of several files one after another, and each file."""
    head, *files = text.split(f"{BEGIN}\n")
    return [head, *files]


def parse(where: str, text: str) -> Job:
    """The job of a file; ProgramFailure if it did not succeed, or cannot be read."""
    try:
        return _job(where, text)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProgramFailure(
            f"{where}: found what is no history of a job ({type(error).__name__}: {error}), expected one of Hadoop's"
        ) from None


def _job(where: str, text: str) -> Job:
    name, submitted = "", None
    starts: dict[str, int] = {}
    shuffles: list[float] = []
    for kind, event in _events(text):
        if kind == "JOB_SUBMITTED":
            name, submitted = str(event["jobName"]), int(event["submitTime"])
        elif kind == "REDUCE_ATTEMPT_STARTED":
            starts[str(event["attemptId"])] = int(event["startTime"])
        elif kind == "REDUCE_ATTEMPT_FINISHED":
            started = starts[str(event["attemptId"])]
            shuffles.append((int(event["shuffleFinishTime"]) - started) * MILLISECOND)
        elif kind in ("JOB_FAILED", "JOB_KILLED", "JOB_ERROR"):
            diagnostics = " ".join(str(event.get("diagnostics") or "no reason given").split())[:300]
            raise ProgramFailure(f"{where}: found job {name} {event.get('jobStatus', 'failed')} ({diagnostics})")
        elif kind == "JOB_FINISHED" and submitted is not None:
            return Job(
                name, submitted * MILLISECOND, int(event["finishTime"]) * MILLISECOND, shuffles,
                int(event.get("succeededMaps", event.get("finishedMaps", 0))),
                int(event.get("succeededReduces", event.get("finishedReduces", 0))),
                _counters(event["totalCounters"]),
            )  # fmt: skip
    raise ProgramFailure(f"{where}: found no end of job {name or 'without a name'}, expected one")


def _events(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Type and content of each event."""
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if isinstance(event, dict) and "event" in event and isinstance(event["event"], dict):
            yield str(event["type"]), next(iter(event["event"].values()))


def _counters(total: dict[str, Any]) -> dict[str, int]:
    """The values by name."""
    return {str(counter["name"]): int(counter["value"]) for group in total["groups"] for counter in group["counts"]}
