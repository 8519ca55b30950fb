"""What the live page shows, read from a results folder as it is: nothing here asks the process that runs the study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framegauge.experiment import extension
from framegauge.experiment.progress import Estimate, Event, exclusions, has_attempts, line, progress, tries
from framegauge.results.journal import Run, Saved, read
from framegauge.results.lock import is_held
from framegauge.study import file as study_file
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study
from framegauge.summary import document

__all__ = ["Reader", "State"]


@dataclass(frozen=True)
class State:
    """A study that has not ended. `verdicts` are those after `blocks` whole blocks, `before` those after one less."""

    folder: Path
    question: str
    scope: str
    treatment: str  # the key of its levels
    progress: str  # in the words of the terminal
    share: float  # of the planned runs
    is_running: bool
    blocks: int
    verdicts: Sequence[Mapping[str, Any]]
    before: Sequence[Mapping[str, Any]]
    runs: Sequence[Run]


class Reader:
    """Reads a folder again and again; what does not change with a run is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._verdicts: dict[int, list[dict[str, Any]]] = {}  # after so many blocks

    def read(self) -> State:
        """The state now; InputError if the folder cannot be read."""
        saved = read(self._folder)
        study = extension.as_extended(study_file.load(self._folder / "study.yaml"), saved.plan)
        blocks = _whole(study, saved)
        self._verdicts = {count: self._after(saved, count) for count in (blocks - 1, blocks) if count > 0}
        event = _progress(study, saved)
        return State(
            self._folder, saved.plan["question"], saved.plan["scope"],
            document.factor_key(saved.plan["treatment"]), line(event), min(1.0, (event.number - 1) / event.total),
            is_held(self._folder), blocks,
            self._verdicts.get(blocks, ()), self._verdicts.get(blocks - 1, ()), saved.runs,
        )  # fmt: skip

    def _after(self, saved: Saved, blocks: int) -> list[dict[str, Any]]:
        if blocks in self._verdicts:
            return self._verdicts[blocks]
        return document.verdicts(replace(saved, runs=[run for run in saved.runs if run.block < blocks]))


def _whole(study: Study, saved: Saved) -> int:
    """The number of blocks in which nothing is left to run."""
    attempts, blocks = tries(saved.runs), 0
    if study.testbed.capabilities.is_virtual:  # a sweep has more cells than its file, and nothing is tried again
        runs_per_block = _planned(study, saved) / (saved.plan.get("planned_blocks") or 1)
        while sum(block == blocks for block, *_ in attempts) >= max(1.0, runs_per_block):
            blocks += 1
        return blocks
    last = _last(saved.runs)
    # No block is begun before those before it are over.
    return last + (not _open(study, last, saved.runs)) if saved.runs else 0


def _open(study: Study, block: int, runs: Sequence[Run]) -> list[Slot]:
    attempts = tries(runs)
    return [slot for slot in block_order(study, block) if has_attempts(attempts.get(slot.key, ()), study.retries)]


def _last(runs: Sequence[Run]) -> int:
    return max((run.block for run in runs), default=-1)


def _planned(study: Study, saved: Saved) -> int:
    """The runs of the plan, or of more blocks than that which have begun."""
    if study.testbed.capabilities.is_virtual:
        return max(1, saved.plan.get("planned_runs") or 1)
    return max(study.blocks, _last(saved.runs) + 1) * len(block_order(study, 0))


def _progress(study: Study, saved: Saved) -> Event:
    """The run that is next by the study's order, which is under way while the study runs."""
    runs, planned = saved.runs, _planned(study, saved)
    if not study.testbed.capabilities.is_virtual:
        for block in range(max(study.blocks, _last(runs) + 1)):
            if slots := _open(study, block, runs):
                return progress(study, Estimate(study), slots[0], runs, planned, is_over=False)
    # Those of virtual time take as long as the machine makes of them, which no run tells.
    number = min(len(tries(runs)) + 1, planned)
    return Event(number, planned, math.nan, "simulated" if study.testbed.capabilities.is_virtual else "the last one",
                 excluded=exclusions(runs))  # fmt: skip
