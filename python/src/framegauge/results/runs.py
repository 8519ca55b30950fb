"""One run as the journal has it, and whether the runs of a folder fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.results import shapes
from framegauge.results.conditions import FACTOR_KEYS, is_sound

__all__ = ["DOES_NOT_WORK", "MEASURED_HOSTS", "SCHEMA", "Run", "misfit"]

SCHEMA = 1
DOES_NOT_WORK = "does not work: "  # how a reason begins that is a result, and no fault of the run
# The reading of a simulated run that has the same run's metrics, and reasons, with the costs of a measured machine.
MEASURED_HOSTS = "measured_hosts"


@dataclass(frozen=True)
class Run:
    """One line of runs.jsonl. `excluded` holds the reasons why the run does not count; empty if it does.

    `began` is the start time in UTC, as ISO 8601 text; "" in older journals. `files` has the digest of each file that
    the run left (`seals`), by its name; none in older journals.
    """

    number: int
    block: int
    cell: int
    arm: str
    role: str
    level: Any
    attempt: int
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    excluded: Sequence[str]
    readings: Mapping[str, Any] = field(default_factory=dict)
    degraded: Sequence[str] = ()
    seconds: float = 0.0
    began: str = ""
    schema: int = SCHEMA
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, int, str]:
        """The slot that this run fills: block, cell, arm."""
        return self.block, self.cell, self.arm

    @property
    def failure(self) -> str | None:
        """Why the workload did not work at all, if that is the only reason why the run does not count."""
        if not self.excluded or not all(line.startswith(DOES_NOT_WORK) for line in self.excluded):
            return None
        return "; ".join(line.removeprefix(DOES_NOT_WORK) for line in self.excluded)


def misfit(runs: Sequence[Run], treatment: str) -> str | None:
    """The first run that does not fit the others of its folder; None if all do."""
    key = FACTOR_KEYS.get(treatment, treatment)
    numbers: set[int] = set()
    arms: dict[str, Run] = {}
    cells: dict[int, Run] = {}
    for run in runs:
        arm, cell, at = arms.setdefault(run.arm, run), cells.setdefault(run.cell, run), f"run {run.number}"
        if run.number in numbers:
            return f"{at}: found twice, expected once"
        numbers.add(run.number)
        if not is_sound(key, run.level):
            return f"{at}: level: found {shapes.shown(run.level)}, expected a level of {shapes.shown(treatment)}"
        for name, first in (("role", arm), ("level", arm), ("workload", cell), ("conditions", cell)):
            value, expected = getattr(run, name), getattr(first, name)
            if value != expected:
                text = f"found {shapes.shown(value)}, expected {shapes.shown(expected)}"
                return f"{at}: {name}: {text} as in run {first.number} of the same {'arm' if first is arm else 'cell'}"
    return None
