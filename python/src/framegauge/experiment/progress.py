"""How far a study is: what is left by what its runs took, what was excluded, and a warning where most runs are lost."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from framegauge.evidence.fidelity import RIVALS
from framegauge.experiment import busy
from framegauge.experiment.planning import expected_seconds
from framegauge.printable import one_line
from framegauge.results.conditions import FACTOR_KEYS
from framegauge.results.journal import Run
from framegauge.results.runs import DOES_NOT_WORK
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study
from framegauge.summary import words

__all__ = [
    "FIDELITY", "Attempts", "Estimate", "Event", "Kept", "Losses", "at_most", "exclusions",
    "has_attempts", "left", "line", "progress", "remedy", "said_of", "so_far", "tries",
]  # fmt: skip

Key = tuple[int, int, str]  # of a slot
FIDELITY = "fidelity: "  # begins the reasons why a run is excluded of which a busy machine is the cause
# The beginnings of all reasons, in few words.
_KINDS: Mapping[str, str] = {
    FIDELITY: "CPU busy",
    "proof: ": "not proved",
    "conservation: ": "counts disagree",
    "load: ": "load not carried",
    DOES_NOT_WORK: "does not work",
    "error: ": "error",
}


@dataclass(frozen=True)
class Event:
    """Progress: run `number` of about `total`; `run` is set when it has ended. `excluded`: as of `exclusions`."""

    number: int
    total: int
    seconds_left: float
    text: str
    fraction: float = 0.0
    run: Run | None = None
    excluded: str = ""


def left(seconds: float) -> str:
    """Time for people: 40 s, 3 min, 7 h 25 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 2:
        return f"{minutes + 60 * hours} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def at_most(seconds: float) -> str:
    """A time that is not exceeded, in whole minutes: 1 min, 22 h 16 min."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 2 else left(60.0 * minutes)


def line(event: Event) -> str:
    """One event as one line."""
    about = "" if math.isnan(event.seconds_left) else f", about {left(event.seconds_left)} left"
    lost = f" ({event.excluded})" if event.excluded else ""
    return f"run {event.number} of {event.total}{lost}{about}: {one_line(event.text)}"


def so_far(runs: int, excluded: int, planned: int) -> str:
    """How many of the planned runs there are, of all that were tried: those excluded were tried again, beside the plan.
    "4 of 24 runs (46 excluded)"."""
    return f"{runs - excluded} of {planned} runs" + (f" ({excluded} excluded)" if excluded else "")


class Kept(Protocol):
    """Where runs are kept: the journal of a study, or the memory of a trial."""

    runs: list[Run]

    def add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        """Keeps a finished run."""
        ...

    def amend(self, run: Run) -> None:
        """Keeps a finished run anew, with what became known of it afterwards."""
        ...


def said_of(slot: Slot, treatment: str) -> str:
    """What a slot's run is: "stream, RTT 200 us, offloads off, MTU 9000"."""
    levels = {**slot.cell.factors, treatment: slot.arm.level}
    settings = {FACTOR_KEYS.get(name, name): level for name, level in levels.items() if level is not None}
    return ", ".join([slot.cell.workload, *(words.condition(name, level) for name, level in settings.items())])


def tries(runs: Sequence[Run]) -> dict[Key, list[Run]]:
    """The attempts at every slot that has any."""
    attempts: dict[Key, list[Run]] = {}
    for run in runs:
        attempts.setdefault(run.key, []).append(run)
    return attempts


class Attempts:
    """The attempts at every slot among runs to which only others are added: each run is looked at once, since a study
    that is resumed asks for each of its slots."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs, self._looked_at = runs, 0
        self._of: dict[Key, list[Run]] = {}
        self._blocks, self._last = set[int](), -1

    def of(self, key: Key) -> Sequence[Run]:
        """Those at one slot."""
        self._look()
        return self._of.get(key, ())

    def is_begun(self, block: int) -> bool:
        """Whether a run of this block was tried."""
        self._look()
        return block in self._blocks

    def last_block(self) -> int:
        """The last block of which a run was tried; -1 before the first."""
        self._look()
        return self._last

    def _look(self) -> None:
        for run in self._runs[self._looked_at :]:
            self._of.setdefault(run.key, []).append(run)
            self._blocks.add(run.block)
            self._last = max(self._last, run.block)
        self._looked_at = len(self._runs)


def has_attempts(tried: Sequence[Run], retries: int) -> bool:
    """Whether a slot needs another attempt after these: no run of it counts, none shows that the workload does not
    work, and retries are left."""
    if any(run.failure for run in tried):
        return False
    return all(run.excluded for run in tried) and len(tried) <= retries


class Estimate:
    """The time that runs still to come will take: what those of the same cell took, and those that will be lost."""

    def __init__(self, study: Study) -> None:
        self._retries = study.retries
        self._expected = {_kind(slot): expected_seconds(study, slot) for slot in block_order(study, 0)}
        self._took: dict[int, list[float]] = {}
        self._known = self._guessed = 0.0
        self._runs = self._lost = 0

    def seconds(self, slots: Sequence[Slot], runs: Sequence[Run]) -> float:
        """The time for these slots after these runs, with the retries to be expected. It is asked for several times a
        second while hosts are measured, so each run is looked at once: later calls have the same runs, and more."""
        for run in runs[self._runs :]:
            self._took.setdefault(run.cell, []).append(run.seconds)
            self._known += run.seconds
            self._guessed += self._expected.get((run.cell, run.arm), run.seconds)
            self._lost += bool(run.excluded) and run.failure is None
        self._runs = len(runs)
        return sum(map(self._cost, slots)) * self._attempts()

    def _cost(self, slot: Slot) -> float:
        if took := self._took.get(slot.cell.index):
            return statistics.fmean(took)
        return self._expected[_kind(slot)] * (self._known / self._guessed if self._guessed else 1.0)

    def _attempts(self) -> float:
        """The attempts that a slot will need: each is lost as often as those so far, of which one more than there were
        is counted as good, so that the first loss does not look like the loss of all."""
        lost = self._lost / (self._runs + 1)
        return sum(lost**attempt for attempt in range(self._retries + 1))


def _kind(slot: Slot) -> tuple[int, str]:
    return slot.cell.index, slot.arm.name


def progress(study: Study, estimate: Estimate, slot: Slot, runs: Sequence[Run], planned: int, is_over: bool) -> Event:
    """How far a study is in one of its slots, whose run `is_over` or under way, after these runs of about `planned`."""
    attempts = tries(runs)
    block = block_order(study, slot.block)
    seconds = estimate.seconds(
        [item for item in block if has_attempts(attempts.get(item.key, ()), study.retries)], runs
    )
    # Later blocks are as long as this one, and nothing of them is run before this one is.
    seconds += max(0, study.blocks - slot.block - 1) * estimate.seconds(block, runs)
    number = min(len(attempts) + (not is_over), planned)
    return Event(number, planned, seconds, said_of(slot, study.treatment), excluded=exclusions(runs))


def exclusions(runs: Sequence[Run]) -> str:
    """The number of excluded runs and why: "5 excluded: CPU busy", "6 excluded: 5 CPU busy, 1 error"; empty if none."""
    kinds = Counter(_why(run.excluded[0]) for run in runs if run.excluded)
    if not kinds:
        return ""
    whys = list(kinds) if len(kinds) == 1 else [f"{count} {why}" for why, count in kinds.most_common()]
    return f"{kinds.total()} excluded: {', '.join(whys)}"


def _why(reason: str) -> str:
    return next((words for begin, words in _KINDS.items() if reason.startswith(begin)), "other")


def _is_lost_to_load(run: Run) -> bool:
    """Whether a run was excluded because the machine was too busy, for whatever other reasons, too."""
    return any(line.startswith(FIDELITY) for line in run.excluded)


class Losses:
    """Warns once, after the first block most of whose runs the machine was too busy for, and says what helps."""

    def __init__(self, say: Callable[[str], None], read: Callable[[], busy.Reading], own: int) -> None:
        self._say, self._read, self._own = say, read, own
        self._before, self._is_over = read(), False

    def __call__(self, block: int, runs: Sequence[Run]) -> None:
        """Takes note of a finished block, given all runs so far."""
        if self._is_over:
            return
        reading = self._read()
        attempts = [run for run in runs if run.block == block]
        lost = sum(map(_is_lost_to_load, attempts))
        if 2 * lost > len(attempts):
            self._is_over = True
            self._say(
                f"{lost} of {len(attempts)} runs of block {block + 1} were excluded because the machine was too busy: "
                f"{remedy(busy.largest(self._before, reading, self._own), _reasons(attempts))}"
            )
        self._before = reading


def _reasons(runs: Sequence[Run]) -> list[str]:
    """Why these runs did not count, where the machine was the reason."""
    return [line.removeprefix(FIDELITY) for run in runs for line in run.excluded if line.startswith(FIDELITY)]


def remedy(users: Sequence[busy.User], reasons: Sequence[str]) -> str:
    """What helps against a busy machine, in half a sentence that names these users of its CPUs.

    `reasons`: why runs did not count. Where programs in real time were one, no lower rate helps: they go first.
    """
    if any(reason.startswith(RIVALS) for reason in reasons):
        return "end these programs in real time (another rack or study is one), or wait for them"
    lower = "choose a lower testbed.link.rate"
    if not users:
        return f"{lower}, or wait; no other program that can be seen here uses much CPU, so look at the hypervisor's"
    return f"end other programs, wait, or {lower}; most CPU is used by {busy.said(users)}"
