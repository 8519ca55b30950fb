"""The comparison of two sides of runs: the document of `framegauge compare`, schema 1.

Runs are compared with runs of the same workload, conditions and level on the other side, metric by metric. Sides from
different tools have no conditions in common: their goodput is compared by direction, where each side has one set of
runs for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.compare.failures import failures, may_be_worse
from framegauge.compare.formats.samples import Side, set_key
from framegauge.compare.matching import Alone, RunSet, across, alike, direction, lost, sets_of
from framegauge.errors import InputError
from framegauge.metrics import METRICS, usual_margin
from framegauge.statistics import unpaired
from framegauge.statistics.exclusions import Counts, Unequal, unequal
from framegauge.statistics.ratio import ALPHA
from framegauge.statistics.sides import Judged, Sets, judge
from framegauge.statistics.verdict import DIFFERENT, Verdict
from framegauge.summary.intervals import interval

__all__ = ["ANSWERS", "SCHEMA", "Pair", "Prepared", "compare", "document", "prepare"]

SCHEMA = 1
ANSWERS = (Verdict.BETTER, Verdict.WORSE, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.UNDECIDED)
PROCESS_COSTS = "CPU costs in files of iperf3 are for its own processes, without the kernel's work outside them"


@dataclass(frozen=True)
class Pair:
    """One comparison to be made."""

    base: RunSet
    new: RunSet
    metric: str
    sets: Sets


@dataclass(frozen=True)
class Prepared:
    """Two sides with the comparisons to be made of them, and what is not compared."""

    base: Side
    new: Side
    given: Mapping[str, float]
    pairs: Sequence[Pair]
    alone: Alone


def compare(base: Side, new: Side, given: Mapping[str, float], only: Collection[str] = ()) -> dict[str, Any]:
    """The document of a comparison; arguments and errors are those of `prepare`."""
    prepared = prepare(base, new, given, only)
    return document(prepared, judge([pair.sets for pair in prepared.pairs]))


def prepare(base: Side, new: Side, given: Mapping[str, float], only: Collection[str] = ()) -> Prepared:
    """What is to be compared.

    `given`: margins (shares) by metric, which take precedence over those of BASE and the defaults; `only`: the metrics
    to compare, all if empty. InputError if a run is on both sides, which would make them dependent.
    """
    _refuse_overlap(base, new)
    _refuse_unlike(base, new)
    sets = sets_of(base), sets_of(new)
    matched, alone = (across if base.kind != new.kind else alike)(*sets)
    is_one = all(len(side_sets) == 1 for side_sets in sets)
    counts = _lost(base, new, [] if is_one else [(base_set, new_set) for base_set, new_set, _ in matched])
    reasons = {key: _named(difference) for key, difference in unequal(counts).items()}
    pairs = []
    for base_set, new_set, metric in matched:
        key = None if is_one else _key(base_set)
        if not only or metric in only:
            reason = reasons.get(key) or reasons.get(None)
            pairs.append(_pair(base_set, new_set, metric, (base, new, given), reason, counts[key]))
    return Prepared(base, new, given, pairs, alone)


def document(
    prepared: Prepared, judged: Sequence[Judged], family: int | None = None, results: int = 1
) -> dict[str, Any]:
    """The document of two sides whose comparisons were judged as members of a `family` of so many; None: their own.
    NEW is one of so many `results`."""
    base, new, given = prepared.base, prepared.new, prepared.given
    verdicts = [_verdict(pair, outcome) for pair, outcome in zip(prepared.pairs, judged, strict=True)]
    failed = failures(base, new, results)
    metrics = dict.fromkeys(pair.metric for pair in prepared.pairs)
    own_family = sum(outcome.assumption is not None for outcome in judged)
    # Of runs that moved nothing, anything but a difference tells nothing of the rest; where they may make one, it does.
    shown = [row for row in failed if row["verdict"] in DIFFERENT or may_be_worse(row)]
    return {
        "schema": SCHEMA,
        "question": "Is NEW better or worse than BASE?",
        "base": _side(base),
        "new": _side(new),
        "assumption": unpaired.ASSUMPTION,
        "margins": {metric: _margin(metric, base, given) for metric in metrics},
        "family": {"error": ALPHA, "comparisons": own_family if family is None else family},
        "outcome": _outcome([*verdicts, *shown]),
        "failed": failed,
        "verdicts": verdicts,
        "not_compared": prepared.alone,
        "differences": list(_differences(base, new)),
        "notes": list(_notes(base, new, metrics)),
        "excluded": [*_excluded("base", base), *_excluded("new", new)],
    }


def _refuse_overlap(base: Side, new: Side) -> None:
    if base.place == new.place:
        common = {sample.run for sample in base.samples} & {sample.run for sample in new.samples}
        if common:
            raise InputError(
                f"{new.source}: found {len(common)} runs that are also in {base.source}, expected none: "
                f"the two sides must be measured apart"
            )


def _refuse_unlike(base: Side, new: Side) -> None:
    """Two studies may declare a metric of the same name and mean different things by it."""
    for name in base.own.keys() & new.own.keys():
        base_metric, new_metric = ((side.own[name]["unit"], side.own[name]["higher_is_better"]) for side in (base, new))
        if base_metric != new_metric:
            actual, expected = (
                f"{unit}, {'higher' if higher else 'lower'} is better" for unit, higher in (new_metric, base_metric)
            )
            raise InputError(f"{new.source}: metric {name}: found {actual}, expected {expected} as in {base.source}")


def _key(run_set: RunSet) -> str:
    return set_key(run_set.workload, run_set.conditions, run_set.level)


def _lost(base: Side, new: Side, matched: Sequence[tuple[RunSet, RunSet]]) -> dict[str | None, tuple[Counts, Counts]]:
    """How many slots either side lost, and of how many: of all its runs (None), and of each of its sets."""
    in_all = [lost(sample for sample in side.samples if sample.lost or not sample.excluded) for side in (base, new)]
    return {None: (in_all[0], in_all[1]), **{_key(one): (one.lost(), other.lost()) for one, other in matched}}


def _named(difference: Unequal) -> str:
    return difference.why.replace("one arm", "BASE").replace("the other", "NEW")


def _pair(
    base_set: RunSet,
    new_set: RunSet,
    metric: str,
    sides: tuple[Side, Side, Mapping[str, float]],
    unequal_reason: str | None,
    lost_counts: tuple[Counts, Counts],
) -> Pair:
    base, new, given = sides
    doubts = [
        f"{name}: {side.doubts[key, metric]}"
        for name, side, run_set in (("BASE", base, base_set), ("NEW", new, new_set))
        if (key := set_key(run_set.workload, run_set.conditions), metric) in side.doubts
    ]
    doubts += [] if unequal_reason is None else [unequal_reason]
    share = _margin(metric, base, given)["share"]
    unit = "block" if base.kind == new.kind == "results" else "run"
    values = base_set.values(metric), new_set.values(metric)
    sets = Sets(metric, share, *values, unit, doubts[0] if doubts else None, lost_counts)
    return Pair(base_set, new_set, metric, sets)


def _margin(metric: str, base: Side, given: Mapping[str, float]) -> dict[str, Any]:
    """The margin of a metric: its share, and where it was declared."""
    if metric in given:
        return {"share": given[metric], "declared_by": "argument"}
    if metric in base.margins:
        return {"share": base.margins[metric], "declared_by": "base"}
    return {"share": usual_margin(metric), "declared_by": "default"}


def _verdict(pair: Pair, outcome: Judged) -> dict[str, Any]:
    """A verdict as in summary.json; both levels are the same."""
    runs = [len(run_set.with_metric(pair.metric)) for run_set in (pair.base, pair.new)]
    workload, conditions = pair.base.workload, dict(pair.base.conditions)
    if pair.new.workload != workload:
        workload = f"{workload} against {pair.new.workload}"
        conditions = {"direction": direction(conditions)}
    return {
        "workload": workload,
        "conditions": conditions,
        "metric": pair.metric,
        "unit": METRICS[pair.metric].unit,
        "baseline": {**pair.base.level, "estimate": outcome.base},
        "treatment": {**pair.new.level, "estimate": outcome.new},
        "ratio": None if outcome.ratio is None else outcome.ratio.ratio,
        "ci95": interval(outcome.ratio),
        "margin": pair.sets.margin,
        "judged": None
        if outcome.judged is None
        else {
            "confidence": 1 - outcome.judged.alpha,
            "overall": 1 - ALPHA,
            "interval": interval(outcome.judged),
        },
        "assumption": outcome.assumption,
        "verdict": str(outcome.verdict),
        "runs": sum(runs),
        "runs_by_side": {"base": runs[0], "new": runs[1]},
        "warnings": list(outcome.warnings),
    }


def _outcome(verdicts: Sequence[Mapping[str, Any]]) -> str:
    kinds = {verdict["verdict"] for verdict in verdicts}
    if Verdict.WORSE in kinds:
        return "worse"
    if not kinds & set(ANSWERS):
        return "not_comparable"
    return "nothing_worse" if kinds <= set(ANSWERS) else "not_all_judged"


def _side(side: Side) -> dict[str, Any]:
    runs = {sample.run: bool(sample.excluded) for sample in side.samples}
    times = sorted(sample.began for sample in side.samples if sample.began is not None)
    return {
        "source": side.source,
        "kind": side.kind,
        "runs": len(runs),
        "excluded": sum(runs.values()),
        "first_began": times[0].isoformat() if times else None,
        "last_began": times[-1].isoformat() if times else None,
        "facts": dict(_facts(side)),
    }


def _facts(side: Side) -> Iterator[tuple[str, str]]:
    """The facts of a side and of its runs, with all values that occur."""
    yield from side.facts.items()
    values_by_name: dict[str, dict[str, None]] = {}
    for sample in side.samples:
        for name, value in sample.facts.items():
            values_by_name.setdefault(name, {})[value] = None
    yield from ((name, "; ".join(sorted(values))) for name, values in values_by_name.items())


def _differences(base: Side, new: Side) -> Iterator[dict[str, Any]]:
    """Facts that differ between the sides: the intended cause of a difference, or another one."""
    first, second = dict(_facts(base)), dict(_facts(new))
    for name in {**first, **second}:
        if first.get(name) != second.get(name) and (base.kind == new.kind or (name in first and name in second)):
            yield {"what": name, "base": first.get(name), "new": second.get(name)}


def _notes(base: Side, new: Side, metrics: Iterable[str]) -> Iterator[str]:
    if base.kind != new.kind:
        yield (
            f"BASE is from {base.kind}, NEW from {new.kind}: goodput is compared with goodput, but each tool counts "
            f"and times in its own way, and their conditions cannot be compared"
        )
    if any(metric in ("local_cpu_cost", "remote_cpu_cost") for metric in metrics):
        yield PROCESS_COSTS
    for name, side in (("BASE", base), ("NEW", new)):
        yield from (f"{name}: {line}" for line in side.notes)


def _excluded(name: str, side: Side) -> Iterator[dict[str, Any]]:
    for sample in side.samples:
        if sample.excluded:
            yield {
                "side": name,
                "run": sample.run,
                "workload": sample.workload,
                "conditions": dict(sample.conditions),
                "level": dict(sample.level),
                "reasons": list(sample.excluded),
            }
