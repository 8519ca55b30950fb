"""Whether a published figure comes out here, and which arm explains it where it does not."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.reproduce import components, drops, readings
from framegauge.reproduce.documents import Arm, Figure, Loaded, Reading
from framegauge.reproduce.values import Estimate, Value
from framegauge.results.journal import Saved

__all__ = ["ENGINES", "EQUAL", "Judged", "Outcome", "Reproduced", "Result", "Results", "Row", "Status", "rows"]

ENGINES = ("rack", "simulator")
EQUAL = 1.2  # within this factor an interval may reach, if it is to agree that two are equal
Bounds = tuple[float, float]
Arithmetic = Callable[[Figure], float]


class Status(enum.StrEnum):
    """What became of a figure."""

    AGREES = "agrees"
    ANSWERED = "asked, answered here"
    EXPLAINED = "differs, explained"
    PARTLY = "differs, explained in part"
    UNEXPLAINED = "differs, unexplained"
    CANNOT_TELL = "cannot tell"
    NOT_RUN = "not run"
    NOT_CARRIED = "not carried here"


# That of a figure is that of the first testbed which says something.
_SAYS = (Status.AGREES, Status.ANSWERED, Status.EXPLAINED, Status.PARTLY, Status.UNEXPLAINED)


@dataclass(frozen=True)
class Result:
    """A study that was run: its folder as read, and its summary."""

    saved: Saved
    summary: Mapping[str, Any]

    def value(self, reading: Reading) -> Value:
        """The reading of a figure."""
        if reading.component is not None:
            return components.value(self.saved, reading)
        if reading.drops is not None:
            return drops.value(self.saved, reading)
        return readings.value(self.summary, reading)


Results = Mapping[tuple[str, str], Result]  # by engine and study
Lacks = Mapping[tuple[str, str], str]  # the same; why a study was not run


@dataclass(frozen=True)
class Judged:
    """What an arm found: by which factor it moves the figure, and whether that explains it."""

    arm: Arm
    value: Value
    moved: Estimate
    explains: bool
    helps: bool


@dataclass(frozen=True)
class Outcome:
    """A figure on one testbed: its status, what was found, why, and its arms, the nearest first."""

    status: Status
    found: Value | None = None
    why: str = ""
    arms: Sequence[Judged] = ()


@dataclass(frozen=True)
class Row:
    """A figure with its outcome by testbed ("arithmetic" for that of frames), and the one that counts."""

    figure: Figure
    outcomes: Mapping[str, Outcome]

    @property
    def engine(self) -> str:
        """Which testbed's outcome counts: the first that says something, else the first that was run. A difference that
        comes out on both, and that an arm explains on one of them, is explained."""
        by_status: dict[Status, str] = {}
        for engine, outcome in self.outcomes.items():
            by_status.setdefault(outcome.status, engine)
        first = next((engine for engine, outcome in self.outcomes.items() if outcome.status in _SAYS), None)
        if first is None:
            return by_status.get(Status.CANNOT_TELL, next(iter(self.outcomes)))
        if self.outcomes[first].status in (Status.PARTLY, Status.UNEXPLAINED):
            return by_status.get(Status.EXPLAINED, by_status.get(Status.PARTLY, first))
        return first

    @property
    def outcome(self) -> Outcome:
        """The one that counts."""
        return self.outcomes[self.engine]


@dataclass(frozen=True)
class Reproduced:
    """A document with what became of its figures, and what was run for that, a line for each testbed."""

    loaded: Loaded
    rows: Sequence[Row]
    ran: Sequence[str] = ()


def reproduced(
    loaded: Loaded, figures: Sequence[Figure], results: Results, lacks: Lacks, arithmetic: Arithmetic
) -> Reproduced:
    """The same with what was run."""
    ran = []
    for engine in ENGINES:
        runs = [run for (where, _), result in results.items() if where == engine for run in result.saved.runs]
        studies = sum(where == engine for where, _ in results)
        if studies:
            excluded = sum(bool(run.excluded) for run in runs)
            studies_text = f"{studies} stud{'y' if studies == 1 else 'ies'}"
            ran.append(f"{engine}: {len(runs):,} runs of {studies_text}, {excluded:,} of them excluded")
    return Reproduced(loaded, rows(loaded, figures, results, lacks, arithmetic), ran)


def rows(
    loaded: Loaded, figures: Sequence[Figure], results: Results, lacks: Lacks, arithmetic: Arithmetic
) -> list[Row]:
    """What became of each figure, by the results of the studies that were run; `lacks`: why others were not."""
    return [Row(figure, _outcomes(loaded, figure, results, lacks, arithmetic)) for figure in figures]


def _outcomes(
    loaded: Loaded, figure: Figure, results: Results, lacks: Lacks, arithmetic: Arithmetic
) -> dict[str, Outcome]:
    if figure.not_carried is not None:
        return {"rack": Outcome(Status.NOT_CARRIED, why=figure.not_carried)}
    if figure.wire is not None:
        return {"arithmetic": _of_frames(loaded.published(figure), arithmetic(figure))}
    readings = {engine: reading for engine in ENGINES if (reading := figure.reading(engine)) is not None}
    judged = {
        engine: (reading, _on(loaded, figure, engine, reading, results))
        for engine, reading in readings.items()
        if engine in loaded.document.studies[reading.study].testbeds
    }
    return {
        engine: outcome or Outcome(Status.NOT_RUN, why=lacks.get((engine, reading.study), ""))
        for engine, (reading, outcome) in judged.items()
    }


def _of_frames(published: Bounds, number: float) -> Outcome:
    low, high = published
    text = f"{number:.4g}" if number < 1e4 else f"{number:,.0f}"
    value = Value(Estimate(number, number, number), text)
    return Outcome(Status.AGREES if low <= number <= high else Status.UNEXPLAINED, value)


def _on(loaded: Loaded, figure: Figure, engine: str, reading: Reading, results: Results) -> Outcome | None:
    """What became of a figure on a testbed; None if its study was not run there."""
    result = results.get((engine, reading.study))
    if result is None:
        return None
    value = result.value(reading)
    published = loaded.published(figure)
    status, why = _agrees(figure, published, value)
    if status is not Status.UNEXPLAINED:
        return Outcome(status, value, why)
    arms = _arms(loaded, figure, (engine, reading), value, results)
    nearest = arms[0] if arms else None
    if explaining := next((arm for arm in arms if arm.explains), None):
        return Outcome(Status.EXPLAINED, value, _with(explaining), arms)
    if nearest is not None and nearest.helps:
        return Outcome(Status.PARTLY, value, _with(nearest), arms)
    return Outcome(status, value, why, arms)


def _with(arm: Judged) -> str:
    return f"{arm.arm.name}: {arm.value.text}"


def _agrees(figure: Figure, published: Bounds, value: Value) -> tuple[Status, str]:
    """Whether a reading agrees with the published figure: its interval overlaps that with its rounding."""
    if value.estimate is None:
        return Status.CANNOT_TELL, value.lack
    if figure.is_open:
        return Status.ANSWERED, ""
    if isinstance(figure.share, str):
        return _direction(figure.share, value)
    low, high = value.estimate.interval
    least, most = published
    if low > most or least > high:
        return Status.UNEXPLAINED, ""
    if figure.value is not None:
        return Status.AGREES, ""
    # One so wide says nothing about equality.
    if least <= 1 <= most and not 1 / EQUAL <= low <= high <= EQUAL:
        return Status.CANNOT_TELL, f"the interval reaches beyond a factor of {EQUAL:g}"
    # An interval that holds both the published effect and none at all says nothing about it.
    if low <= 1 <= high and not least <= 1 <= most:
        return Status.CANNOT_TELL, "the interval holds no effect at all, too"
    return Status.AGREES, ""


def _direction(published: str, value: Value) -> tuple[Status, str]:
    """A published direction has no size: an interval that has it throughout has told it, even where it does not tell
    whether the difference is larger than the margin of what is fair."""
    assert value.estimate is not None
    low, high = value.estimate.interval
    is_told = {"less": high < 1, "more": low > 1}.get(published, False)
    if value.verdict == published or (value.verdict == "undecided" and is_told):
        return Status.AGREES, ""
    if value.verdict in ("less", "fair", "more"):
        return Status.UNEXPLAINED, f"here the few get {_SHARES[value.verdict]}"
    return Status.CANNOT_TELL, "these runs do not tell the direction"


_SHARES = {"less": "less than the many", "fair": "as much as the many", "more": "more than the many"}


def _arms(
    loaded: Loaded, figure: Figure, engine_reading: tuple[str, Reading], own_value: Value, results: Results
) -> list[Judged]:
    """The arms of a figure that were run on the testbed of its own reading, those first that come closest to what was
    published."""
    engine, own_reading = engine_reading
    published = loaded.published(figure)
    judged: list[tuple[float, Judged]] = []
    for arm in (candidate for name in figure.arms for candidate in loaded.document.arms[name]):
        result = results.get((engine, arm.study))
        if result is None:
            continue
        # What the arm's study does not vary or state is no condition of it.
        condition_names = readings.conditions(result.summary)
        where = {
            **{name: setting for name, setting in own_reading.where.items() if name in condition_names},
            **arm.where,
        }
        reading = own_reading.model_copy(
            update={
                "study": arm.study,
                "where": where,
                "metric": arm.metric or own_reading.metric,
                "level": own_reading.level if arm.level is None else arm.level,
            }
        )
        value = result.value(reading)
        if value.estimate is not None and own_value.estimate is not None:
            distance = _distance(published, value.estimate.number)
            judged.append((distance, _judge(arm, figure, published, own_value.estimate, value)))
    return [arm for _, arm in sorted(judged, key=lambda pair: (not pair[1].explains, pair[0]))]


def _judge(arm: Arm, figure: Figure, published: Bounds, own_estimate: Estimate, value: Value) -> Judged:
    """What an arm found, beside the figure's own estimate."""
    assert value.estimate is not None
    moved = value.estimate.over(own_estimate)
    is_sure = moved.low > 1 or moved.high < 1
    agrees = _agrees(figure, published, value)[0] is Status.AGREES
    is_nearer = _distance(published, value.estimate.number) < _distance(published, own_estimate.number)
    return Judged(arm, value, moved, is_sure and agrees, is_sure and is_nearer)


def _distance(published: Bounds, number: float) -> float:
    """How far a number is from the published range, as the logarithm of a factor."""
    low, high = published
    nearest = min(max(number, low), high)
    return abs(math.log(number / nearest)) if number > 0 and nearest > 0 else math.inf
