"""Verdicts on metrics that were observed in production around a switch, each with the one sentence that says why.

The words and the rule are those of a study (`verdict`): better or worse only if the whole interval lies beyond the
margin. All metrics that decide are one family (Holm), so that a switch without any effect is called worse with
probability 2.5 % at most at a look, however many they are. What was not seen is not judged, and never passes.

A ratio says little where there is almost nothing: a metric may name the level below which nobody cares (`negligible`).
Below it, nothing is worse; and where a mean is 0, so that there is no ratio, it is the margin of the difference.
Without it, that is the margin's share of what the switched hosts had before, so that what falls to 0 is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from framegauge.quantities import print_seconds
from framegauge.statistics import autocorrelated, events, family, switched
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.switched import Host
from framegauge.statistics.verdict import SETTLED, Verdict, decide

__all__ = ["ASKS", "KINDS", "Judged", "Observed", "Rule", "changed", "judge"]

KINDS = ("count", "rate", "gauge")
BURSTS = 2.0  # a dispersion that is worth a line
LEAST_SHOWN = 1e-3  # percent
ASKS = ("difference", "not worse")


@dataclass(frozen=True)
class Rule:
    """How a metric is judged. `kind`: seldom events, an amount per second, or a level. `margin` is a share;
    `negligible` is in the metric's unit, per host (events per second for a count), and None where any level counts."""

    name: str
    kind: str
    higher_is_better: bool
    margin: float
    negligible: float | None = None
    not_worse: bool = True
    decides: bool = True


@dataclass(frozen=True)
class Observed:
    """A metric's values: events per step for a count. `lacking` says what was not seen, so that it cannot be judged.
    `alike`: hosts were said to be (`switched`)."""

    rule: Rule
    hosts: Sequence[Host]
    step_seconds: float
    lacking: str = ""
    alike: bool = False


@dataclass(frozen=True)
class Judged:
    """A verdict with its reason; `own` is the estimate with its 95 % interval, `judged` the same at the level that
    decides, after the correction for all metrics. None where it is not judged."""

    rule: Rule
    verdict: Verdict
    own: switched.Estimate | events.Events | None
    judged: switched.Estimate | events.Events | None
    why: str
    doubts: Sequence[str] = ()


def judge(metrics: Sequence[Observed], alpha: float = ALPHA) -> list[Judged]:
    """The verdict on each metric. Those that do not decide are judged by themselves, and cost the others nothing.
    `alpha`: the error of all claims together."""
    lacking = [metric.lacking or _too_short(metric) for metric in metrics]
    deciding = [place for place, metric in enumerate(metrics) if metric.rule.decides and not lacking[place]]
    nominal = family.levels([partial(_claims, metrics[place]) for place in deciding], alpha)
    levels = dict(zip(deciding, nominal, strict=True))
    return [
        Judged(metric.rule, Verdict.NOT_JUDGED, None, None, f"Not judged: {lacking[place]}.") if lacking[place]
        else _judged(metric, levels.get(place, alpha))
        for place, metric in enumerate(metrics)
    ]  # fmt: skip


def _too_short(metric: Observed) -> str:
    for name in ("before", "after"):
        steps = min((len(getattr(host, name)) for host in metric.hosts), default=0)
        if steps < autocorrelated.LEAST_VALUES:
            return f"found {steps} steps {name} the switch, expected at least {autocorrelated.LEAST_VALUES}"
    if {host.switched for host in metric.hosts} != {True, False}:
        return "found hosts of one kind, expected some that were switched and some that were not"
    return ""


def _estimate(metric: Observed, alpha: float) -> switched.Estimate | events.Events:
    if metric.rule.kind == "count":
        return events.estimate(metric.hosts, metric.step_seconds, alpha, metric.alike)
    return switched.estimate(metric.hosts, alpha, metric.alike)


def _claims(metric: Observed, alpha: float) -> bool:
    return _verdict(metric.rule, _estimate(metric, alpha))[0] in SETTLED


def _judged(metric: Observed, alpha: float) -> Judged:
    uncorrected, judged = _estimate(metric, ALPHA), _estimate(metric, alpha)
    verdict, reason = _verdict(metric.rule, judged)
    doubts = _doubts(metric, judged, reason)
    return Judged(metric.rule, verdict, uncorrected, judged, _why(metric.rule, verdict, judged, reason), doubts)


def _verdict(rule: Rule, estimate: switched.Estimate | events.Events) -> tuple[Verdict, str]:
    """The verdict, and what it rests on: the margin, or the negligible level; or that there is no ratio."""
    if isinstance(estimate, switched.Estimate) and not estimate.is_ratio:
        if not (level := _level(rule, estimate)):
            return Verdict.UNDECIDED, "a mean is 0, so there is no ratio, and the metric has no negligible level"
        verdict, reason = _of_difference(rule, estimate, level), "difference"
    else:
        # Only the interval decides; the estimate of counts may be none.
        ratio = Ratio(1.0, estimate.low, estimate.high, 2, None, estimate.alpha)
        verdict, reason = decide(ratio, rule.margin, rule.higher_is_better, rule.not_worse), "margin"
    if rule.negligible is not None and not rule.higher_is_better and estimate.most_after <= rule.negligible:
        if verdict in (Verdict.WORSE, Verdict.NO_PRACTICAL_DIFFERENCE) or estimate.most_before <= rule.negligible:
            return Verdict.NO_PRACTICAL_DIFFERENCE, "level"
        if verdict is Verdict.UNDECIDED and rule.not_worse:
            return Verdict.NOT_WORSE, "level"
    return verdict, reason


def _level(rule: Rule, estimate: switched.Estimate) -> float:
    """The margin of a difference: what is negligible, or the share of what there was before; 0 if both are unknown."""
    return rule.negligible if rule.negligible is not None else rule.margin * max(0.0, estimate.switched[0])


def _of_difference(rule: Rule, estimate: switched.Estimate, margin: float) -> Verdict:
    if estimate.low > margin or estimate.high < -margin:
        return Verdict.BETTER if (estimate.low > margin) is rule.higher_is_better else Verdict.WORSE
    if -margin <= estimate.low and estimate.high <= margin:
        return Verdict.NO_PRACTICAL_DIFFERENCE
    if rule.not_worse and (estimate.low >= -margin if rule.higher_is_better else estimate.high <= margin):
        return Verdict.NOT_WORSE
    return Verdict.UNDECIDED


def changed(ratio: float) -> str:
    """A ratio for people: "+16.8 %", or from three on "× 3.18"."""
    if ratio == math.inf:
        return "without end"
    percent = 100 * (ratio - 1)
    if abs(percent) < LEAST_SHOWN:
        return "0 %"
    return f"{percent:+.3g} %".replace("-", "−") if ratio < 3 else f"× {ratio:.3g}"


def _why(rule: Rule, verdict: Verdict, estimate: switched.Estimate | events.Events, reason: str) -> str:
    """One sentence: the estimate, its interval, and where that lies."""
    if reason not in ("margin", "difference", "level"):
        return f"{_word(verdict)}: {reason}."
    if reason == "level":
        return (
            f"{_word(verdict)}: at most {estimate.most_after:.3g} per host after the switch, "
            f"and up to {rule.negligible:.3g} counts as nothing."
        )
    is_ratio = isinstance(estimate, events.Events) or estimate.is_ratio
    centre = estimate.ratio if isinstance(estimate, events.Events) else estimate.value

    def show(value: float) -> str:
        return changed(value) if is_ratio else _signed(value)

    middle = "" if centre is None else f"{show(centre)}, "
    edge = f"{100 * rule.margin:.3g} %"
    if isinstance(estimate, switched.Estimate) and not estimate.is_ratio:
        edge = f"{_level(rule, estimate):.3g}"
    places = {
        Verdict.BETTER: f"all of it beyond the margin of {edge}",
        Verdict.WORSE: f"all of it beyond the margin of {edge}",
        Verdict.NO_PRACTICAL_DIFFERENCE: f"all of it within the margin of {edge}",
        Verdict.NOT_WORSE: f"none of it worse by more than the margin of {edge}",
        Verdict.UNDECIDED: f"partly within the margin of {edge} and partly beyond",
    }
    ends = f"between {show(estimate.low)} and {show(estimate.high)}"
    if estimate.high == math.inf:
        ends = f"at least {show(estimate.low)}" if estimate.low > 0 else "anything"
    counts = _counted(estimate) if isinstance(estimate, events.Events) else ""
    if ends == "anything":
        return (
            f"{_word(verdict)}: too few events to say by how much {rule.name} changed against the hosts not switched"
            f"{counts}."
        )
    better = "higher" if rule.higher_is_better else "lower"
    return (
        f"{_word(verdict)}: against the hosts not switched, {rule.name} changed by {middle}{ends}{counts}: "
        f"{places[verdict]}; {better} is better."
    )


def _word(verdict: Verdict) -> str:
    return str(verdict)[0].upper() + str(verdict)[1:]


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _counted(estimate: events.Events) -> str:
    first, second = estimate.switched, estimate.control
    return f" ({first[0]} before and {first[1]} after the switch; the others {second[0]} and {second[1]})"


def _doubts(metric: Observed, estimate: switched.Estimate | events.Events, reason: str) -> list[str]:
    """What weakens the verdict, one line each."""
    lines = []
    for side, name in ((True, "was switched"), (False, "was not switched")):
        if sum(host.switched is side for host in metric.hosts) == 1:
            lines.append(f"only one host {name}: what happened to it alone looks like an effect of the switch")
    if estimate.are_unlike:
        lines.append("hosts that were said to be alike differ by more than time shows, so they are judged as unlike")
    if estimate.too_slow_steps and reason != "level":
        lines.append(
            f"the difference between the sides remembers for about "
            f"{print_seconds(estimate.too_slow_steps * metric.step_seconds, 2)}: a side has fewer than "
            f"{autocorrelated.LEAST_MEMORIES} times of that, so the interval may be too narrow"
        )
    if isinstance(estimate, events.Events) and reason != "level":
        if estimate.by_totals and estimate.dispersion > BURSTS:
            lines.append(f"events came in bursts: about {estimate.dispersion:.3g} of them count as one")
        if estimate.assumption == events.TOO_FEW:
            lines.append(estimate.assumption)
    return lines
