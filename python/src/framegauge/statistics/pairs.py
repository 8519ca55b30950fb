"""From the runs of a study to the pairs of values that are compared, block by block.

A treatment is compared with all runs of the baseline: where a study has an A/A control, the reference of a block is the
geometric mean of the baseline's run and the control's, which both have the baseline's level. It varies less than
either, and costs no run. The control itself is compared with the baseline's run alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from framegauge.statistics import failed
from framegauge.statistics.exclusions import Counts, Unequal, count, unequal
from framegauge.statistics.shapes import ALIKE, Shape
from framegauge.statistics.verdict import Verdict
from framegauge.statistics.worst_case import Arm

__all__ = ["Pairs", "Row", "all_pairs", "by_cell", "log_ratios_by_cell", "not_measured", "sides_by_cell"]

MOST_LOST = 0.5  # a comparison that lost a larger share of its blocks is not judged: the rest is not what was planned
UNREAD = "it was too small to measure, or not read"


@dataclass(frozen=True)
class Row:
    """One run. `excluded`: it does not count, and its metrics are ignored. `not_measured`: the reason, by metric.
    `number`: its place in the order of all runs. `failure`: why the workload did not work at all, which excludes it.
    `is_shared`: other programs used the hosts' CPUs. `held`: the share of its time in which something else held one.
    """

    block: int
    cell: int
    arm: str
    role: str
    level: Any
    workload: str
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float]
    excluded: bool
    not_measured: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    failure: str | None = None
    is_shared: bool = False
    held: float = 0.0


@dataclass(frozen=True)
class Pairs:
    """One metric of one arm of a cell and its reference, with a value of each per block.

    `doubt` is the reason for which there is no verdict, whatever the values are: its values differ in kind (`is_lost`),
    most of its runs count and lack the metric (`is_unread`, which says nothing of other metrics), or more runs are
    needed to show whether those excluded were lost at random (`wants_runs`).
    """

    example: Row  # a run of the arm
    baseline_level: Any
    metric: str
    margin: float
    blocks: Sequence[int] = ()
    baseline: Sequence[float] = ()
    treatment: Sequence[float] = ()
    references: Sequence[str] = ()  # the arms that the baseline's values are means of
    runs: int = 0  # that these values are from
    doubt: str | None = None
    is_lost: bool = False
    is_unread: bool = False
    wants_runs: bool = False
    arms: tuple[Arm, Arm] | None = None  # of the baseline's level, and of the treatment's, with their excluded runs
    not_worse: bool = False  # it is only asked whether the treatment is not worse
    failure: str | None = None  # why the arm does not work, in none of its runs
    reference_failure: str | None = None  # the same of the baseline
    is_shared: bool = False  # other programs used the hosts' CPUs in a run that counts
    held: tuple[float, float] = (0.0, 0.0)  # the mean share of the time that one was held, of both arms' runs
    shape: Shape = ALIKE  # of the noise in all cells that compare these two arms
    is_median: bool = False  # the ratio is the median of differences, not the mean

    @property
    def is_control(self) -> bool:
        """Whether the baseline is compared with itself."""
        return self.example.role == "control"


_Where = tuple[int | None, str]  # a cell (None: the whole study) and an arm


class _Placed(Protocol):
    @property
    def cell(self) -> int:
        """The place of its conditions in the study's order."""
        ...


Placed = TypeVar("Placed", bound=_Placed)


def by_cell(runs: Iterable[Placed]) -> dict[int, list[Placed]]:
    """The runs, or rows, of each cell, in the cells' order."""
    cells: dict[int, list[Placed]] = {}
    for run in runs:
        cells.setdefault(run.cell, []).append(run)
    return dict(sorted(cells.items()))


def all_pairs(rows: Sequence[Row], margins: Mapping[str, float]) -> Iterator[Pairs]:
    """The pairs of a study, cell by cell in its order, metric by metric, the A/A control before the treatments."""
    partly = _partly_failing(rows)
    lost = _exclusions(rows, partly)
    for inside in by_cell(rows).values():
        others = {row.arm: row for row in inside if row.role != "baseline"}
        ordered = sorted(others.values(), key=lambda row: (row.role != "control", json.dumps(row.level)))
        valid_rows = [row for row in inside if not row.excluded]
        for metric, margin in margins.items():
            if valid_rows and not any(metric in row.metrics or metric in row.not_measured for row in valid_rows):
                continue  # this workload does not have the metric
            for example in ordered:
                yield _pairs(inside, lost, partly, example, (metric, margin))


def not_measured(rows: Sequence[Row], margins: Mapping[str, float]) -> dict[str, str]:
    """The metrics that have a margin but no value in any run, each with the reason that the runs give, if any."""
    if all(row.excluded for row in rows):
        return {}  # then every metric is listed as not judged
    # A run that counts and has no figure at all is one in which nothing came.
    came = any(row.metrics for row in rows if not row.excluded)
    unknown = "no workload of this study measures it" if came else "nothing arrived in any run"
    reasons = {}
    for metric in margins:
        if not any(metric in row.metrics for row in rows if not row.excluded):
            run_reasons = [row.not_measured[metric] for row in rows if metric in row.not_measured]
            reasons[metric] = run_reasons[0] if run_reasons else unknown
    return reasons


def log_ratios_by_cell(rows: Sequence[Row], metric: str, arm: str) -> dict[int, dict[int, float]]:
    """The log ratios of one arm against its reference, by cell and block, from which interactions are computed."""
    return {
        cell: {block: math.log(after / before) for block, (before, after) in sides.items()}
        for cell, sides in sides_by_cell(rows, metric, arm).items()
    }


def sides_by_cell(rows: Sequence[Row], metric: str, arm: str) -> dict[int, dict[int, tuple[float, float]]]:
    """The values of the reference and of one arm, by cell, in every block that has both."""
    sides: dict[int, dict[int, tuple[float, float]]] = {}
    for cell, inside in by_cell(rows).items():
        before = _reference([_above_zero(_values(inside, name, metric)) for name in _references(inside, arm)])
        after = _above_zero(_values(inside, arm, metric))
        if blocks := sorted(before.keys() & after.keys()):
            sides[cell] = {block: (before[block], after[block]) for block in blocks}
    return sides


def _references(inside: Sequence[Row], arm: str, lost: Collection[_Where] = ()) -> list[str]:
    """The arms that an arm is compared with: those of the baseline's level, but itself and a control that lost its runs
    otherwise than the baseline did."""
    roles = {row.arm: row.role for row in inside}
    cell = inside[0].cell
    doubted = {arm, *(name for place, name in lost if place in (cell, None))}
    return [name for name, role in roles.items() if role == "baseline" or (role == "control" and name not in doubted)]


def _reference(arms: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The geometric mean over arms of each block that any of them has."""
    blocks = sorted({block for values in arms for block in values})
    return {block: _geometric_mean([values[block] for values in arms if block in values]) for block in blocks}


def _geometric_mean(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))


def _values(rows: Iterable[Row], arm: str, metric: str) -> dict[int, float]:
    return {
        row.block: row.metrics[metric] for row in rows if row.arm == arm and not row.excluded and metric in row.metrics
    }


def _above_zero(values: Mapping[int, float]) -> dict[int, float]:
    """The values that have a logarithm."""
    return {block: value for block, value in values.items() if value > 0}


def _pairs(
    inside: Sequence[Row],
    lost: Mapping[_Where, Unequal],
    partly: Mapping[_Where, str],
    example: Row,
    judged: tuple[str, float],
) -> Pairs:
    """One arm and its reference; `inside` are the rows of the cell, `lost` the arms that lost runs unequally, `partly`
    those that do not work in some runs, and `judged` the metric and its margin."""
    metric, margin = judged
    names = _references(inside, example.arm, lost)
    sides = [_values(inside, name, metric) for name in (*names, example.arm)]
    zeros = sum(value == 0 for values in sides for value in values.values())
    value_count = sum(map(len, sides))
    *references, after = map(_above_zero, sides)
    before = _reference(references)
    blocks = sorted(before.keys() & after.keys())
    # The control is at the level of the baseline, which may not have been run yet where it was interrupted.
    level = next((row.level for role in ("baseline", "control") for row in inside if row.role == role), None)
    runs = len(blocks) + sum(block in values for values in references for block in blocks)
    pairs = Pairs(
        example,
        level,
        metric,
        margin,
        blocks,
        [before[block] for block in blocks],
        [after[block] for block in blocks],
        names,
        runs,
        arms=(_arm(inside, names, metric), _arm(inside, [example.arm], metric)),
        is_shared=any(row.is_shared for row in inside if not row.excluded and row.arm in (*names, example.arm)),
        held=(_held(inside, names), _held(inside, [example.arm])),
    )
    reference, failure = (_failure(inside, some) for some in (_baselines(inside), [example.arm]))
    if not blocks and (reference or failure):
        return replace(pairs, failure=failure, reference_failure=reference)
    if why := partly.get((example.cell, example.arm)):
        return replace(pairs, blocks=[], baseline=[], treatment=[], failure=why)
    if doubts := [lost[place] for place in ((example.cell, example.arm), (None, example.arm)) if place in lost]:
        return replace(pairs, doubt=doubts[0].why, wants_runs=not any(doubt.is_shown for doubt in doubts))
    if zeros:  # the remaining values are not a random selection
        return replace(pairs, doubt=f"{zeros} of {value_count} values are 0, so there is no ratio", is_lost=True)
    all_blocks = {row.block for row in inside if row.arm in (*names, example.arm)}
    if len(blocks) < (1 - MOST_LOST) * len(all_blocks):
        counted_blocks = _counted_blocks(inside, names) & _counted_blocks(inside, [example.arm])
        if len(counted_blocks) < (1 - MOST_LOST) * len(all_blocks):
            lines = f"{len(all_blocks) - len(blocks)} of {len(all_blocks)} blocks were lost: too many to judge the rest"
            return replace(pairs, doubt=lines, is_lost=True)
        why = f"{len(counted_blocks) - len(blocks)} of {len(all_blocks)} blocks lack this figure on a side: "
        reasons = [
            row.not_measured[metric] for row in inside if row.block in counted_blocks and metric in row.not_measured
        ]
        return replace(pairs, doubt=why + (reasons[0] if reasons else UNREAD), is_unread=True)
    return pairs


def _counted_blocks(inside: Sequence[Row], arms: Collection[str]) -> set[int]:
    """The blocks of which a run of these arms counts."""
    return {row.block for row in inside if row.arm in arms and not row.excluded}


def _held(inside: Sequence[Row], arms: Collection[str]) -> float:
    """The mean share of the time in which a CPU was held in the runs of these arms that count."""
    shares = [row.held for row in inside if row.arm in arms and not row.excluded]
    return math.fsum(shares) / len(shares) if shares else 0.0


def _baselines(inside: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.arm for row in inside if row.role == "baseline"))


def _failure(rows: Iterable[Row], arms: Collection[str]) -> str | None:
    """Why the workload does not work in these arms, if it did in none of their runs."""
    arm_rows = [row for row in rows if row.arm in arms]
    return arm_rows[0].failure if arm_rows and all(row.failure for row in arm_rows) else None


def _partly_failing(rows: Sequence[Row]) -> dict[_Where, str]:
    """The treatments of a cell that do not work in some runs, each with the reason. All of a study are asked, so each
    is one of so many comparisons."""
    cells = by_cell(rows)
    treated = dict.fromkeys((row.cell, row.arm) for row in rows if row.role == "treatment")
    reasons = {(cell, arm): _partly(cells[cell], arm, len(treated)) for cell, arm in treated}
    return {place: why for place, why in reasons.items() if why is not None}


def _partly(inside: Iterable[Row], arm: str, comparisons: int) -> str | None:
    """Why the workload does not work in some runs of this arm, if that are more than those of the baseline, or of a
    network in order, let expect: such as where one of several paths is too small."""
    rows = [row for row in inside if row.failure or not row.excluded]
    base, arm_rows = (
        [row for row in rows if is_member(row)] for is_member in (_is_baseline, lambda row: row.arm == arm)
    )
    counts = [(sum(bool(row.failure) for row in group), len(group)) for group in (base, arm_rows)]
    if failed.judge(counts[0], counts[1], comparisons) is not Verdict.WORSE:
        return None
    first = next(row.failure for row in arm_rows if row.failure)
    return f"in {counts[1][0]} of {counts[1][1]} runs: {first}"


def _is_baseline(row: Row) -> bool:
    return row.role == "baseline"


def _arm(inside: Sequence[Row], names: Collection[str], metric: str) -> Arm:
    arm_rows = [row for row in inside if row.arm in names]
    counted_values, excluded = (
        [row.metrics[metric] for row in arm_rows if row.excluded is lost and row.metrics.get(metric, 0.0) > 0]
        for lost in (False, True)
    )
    # A run that counts and lacks the metric says nothing of losses.
    tried = [row for row in arm_rows if row.excluded or row.metrics.get(metric, 0.0) > 0]
    slots = count(((row.arm, row.block), row.excluded) for row in tried)
    return Arm(counted_values, excluded, sum(row.excluded for row in arm_rows), slots)


def _exclusions(rows: Sequence[Row], partly: Mapping[_Where, str]) -> dict[_Where, Unequal]:
    """The arms whose lost runs differ from the baseline's, in a cell or in the whole study. An arm that does not work
    has lost none."""
    attempts: dict[_Where, list[tuple[tuple[int, int], bool]]] = {}
    is_one_cell = len({row.cell for row in rows}) == 1
    arms: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        arms.setdefault((row.cell, row.arm), []).append(row)
    failing = {
        place for place, entry in arms.items()
        if all(row.failure for row in entry) or place in partly
    }  # fmt: skip
    for row in rows:
        if (row.cell, row.arm) in failing:
            continue
        for place in ((row.cell, row.arm), *(() if is_one_cell else ((None, row.arm),))):
            attempts.setdefault(place, []).append(((row.cell, row.block), row.excluded))

    def of(place: _Where) -> Counts:
        return count(attempts.get(place, ()))

    others = [place for place in attempts if place[1] != "baseline"]
    return unequal({(cell, arm): (of((cell, "baseline")), of((cell, arm))) for cell, arm in others})
