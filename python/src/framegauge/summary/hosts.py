"""Verdicts on how flows share that depend on what simulated hosts take for packets: which change, and to what.

Whether a port locks flows out depends on when acknowledgements come. Hosts that take no time for packets and bytes
acknowledge a jumbo frame as soon as a small one, and real ones do not (docs/measured/cpu-model.md). So where a
simulated study compares the share of the few at several MTUs, and states no costs, each of its runs is simulated again
with those of a measured machine, and judged as the others are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framegauge.results.journal import Run, Saved
from framegauge.results.runs import MEASURED_HOSTS
from framegauge.statistics.few import Share
from framegauge.statistics.judge import Comparison
from framegauge.statistics.ratio import Ratio
from framegauge.statistics.verdict import WITHOUT_FIGURES, Verdict
from framegauge.summary import few, words
from framegauge.summary.contention import SHARED
from framegauge.summary.intervals import interval
from framegauge.summary.judging import compare, doubted, row, rule_of

__all__ = ["beside", "entries", "is_change", "takes_back"]

MOST_SAID = 3


def entries(saved: Saved, judged: Sequence[Comparison], key: str) -> list[dict[str, Any]]:
    """The verdicts of treatments that are others with the costs of a measured machine, and those on the share of the
    few at a level; empty if none is, or no run was simulated with these costs. `judged` are the comparisons of the
    study as it is, `key` names the treatment."""
    other = replace(saved, runs=[_with_costs(run) for run in saved.runs if MEASURED_HOSTS in run.readings])
    if not other.runs:
        return []
    return [*_changes(judged, other, key), *_levels(saved, other, key)]


def _with_costs(run: Run) -> Run:
    measured = run.readings[MEASURED_HOSTS]
    return replace(run, metrics=measured["metrics"], excluded=[*run.excluded, *measured["excluded"]])


def _changes(judged: Sequence[Comparison], other: Saved, key: str) -> list[dict[str, Any]]:
    with_costs = {_name(comparison): comparison for comparison in doubted(compare(other))}
    pairs = [(comparison, with_costs.get(_name(comparison))) for comparison in judged if comparison.role != "control"]
    return [
        _entry(
            comparison,
            {"metric": comparison.metric, "levels": {key: comparison.treatment_level}},
            _change(comparison),
            _change(costly),
        )
        for comparison, costly in pairs
        if costly is not None and comparison.metric in SHARED and _differs(comparison, costly)
    ]


def _name(comparison: Comparison) -> str:
    return json.dumps([comparison.cell, comparison.metric, comparison.role, comparison.treatment_level], sort_keys=True)


def _differs(comparison: Comparison, other: Comparison) -> bool:
    unknown = (Verdict.SUSPECT, *WITHOUT_FIGURES)
    return (
        comparison.verdict is not other.verdict and comparison.verdict not in unknown and other.verdict not in unknown
    )


def _change(comparison: Comparison) -> dict[str, Any]:
    return _judged(str(comparison.verdict), comparison.ratio, comparison.judged)


def _levels(saved: Saved, other: Saved, key: str) -> list[dict[str, Any]]:
    with_costs = {_place(share): share for share in _shares(other)}
    pairs = [(share, with_costs.get(_place(share))) for share in _shares(saved)]
    return [
        _entry(share, {"metric": None, "levels": {key: share.level}}, _share(share), _share(costly))
        for share, costly in pairs
        if costly is not None and share.standing is not costly.standing
    ]


def _shares(saved: Saved) -> list[Share]:
    return few.judged(saved.plan, [row(run) for run in saved.runs], rule_of(saved.plan), False)


def _place(share: Share) -> str:
    return json.dumps([share.cell, share.level], sort_keys=True)


def _share(share: Share) -> dict[str, Any]:
    return _judged(str(share.standing), share.share, share.judged)


def _judged(verdict: str, ratio: Ratio | None, judged: Ratio | None) -> dict[str, Any]:
    return {"verdict": verdict, "ratio": None if ratio is None else ratio.ratio, "interval": interval(judged)}


def _entry(
    source: Comparison | Share, subject: Mapping[str, Any], stated: Mapping[str, Any], measured: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "workload": source.workload,
        "conditions": dict(source.conditions),
        **subject,
        "stated": stated,
        "measured": measured,
    }


def is_change(entry: Mapping[str, Any]) -> bool:
    """Whether it is about a change between levels, and not about the share at one."""
    return entry["metric"] is not None


def takes_back(entry: Mapping[str, Any]) -> bool:
    """Whether a claim on a change is none with these costs, or another."""
    return is_change(entry) and entry["stated"]["verdict"] != Verdict.UNDECIDED


def beside(summary: Mapping[str, Any]) -> str:
    """What is another with these costs, in a sentence; empty if nothing is."""
    changes: Sequence[Mapping[str, Any]] = summary.get("hosts", ())
    if not changes:
        return ""
    cells = words.Cells(summary["verdicts"] or changes)
    texts = [_said(entry, cells.of(entry)) for entry in changes[:MOST_SAID]]
    more = [f"{len(changes) - MOST_SAID} more"] if len(changes) > MOST_SAID else []
    return (
        "Hosts take no time for packets and bytes here. With the costs of a measured machine it is otherwise: "
        f"{'; '.join([*texts, *more])}. State those of your hosts (testbed.cpu; framegauge estimate --model)."
    )


def _said(entry: Mapping[str, Any], where: str) -> str:
    """Such as "MTU 9000: share of few −47 % (−72 % to −4 %), undecided in place of better"."""
    stated, measured = entry["stated"], entry["measured"]
    place = ", ".join(filter(None, (where, words.levels(entry["levels"]))))
    name = words.metric(entry["metric"]) if is_change(entry) else "the few get"
    return f"{place}: {name} {_figure(entry, measured)}, {measured['verdict']} in place of {stated['verdict']}"


def _figure(entry: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    ratio, ends = measured["ratio"], measured["interval"]
    if ends is None:
        return words.change_interval(None)
    if is_change(entry):
        return f"{words.change(ratio, ends)} ({words.change_interval(ends)})"
    return f"{few.share(ratio)} ({few.span(ends)})"
