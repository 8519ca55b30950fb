"""The interval of a comparison of a study, with all that it allows for besides the noise of its blocks.

Whatever claims something of two arms takes it from here, so that none of them is surer than another.
"""

from __future__ import annotations

from collections.abc import Sequence

from framegauge.metrics import METRICS
from framegauge.statistics import held, losses, medians, shared
from framegauge.statistics.pairs import Pairs
from framegauge.statistics.ratio import Ratio, estimate
from framegauge.statistics.sequential import StoppingRule

__all__ = ["at", "of_counted", "of_values"]


def at(pairs: Pairs, alpha: float, rule: StoppingRule) -> Ratio:
    """The ratio with an interval that misses the truth with probability `alpha` over all looks."""
    return losses.allowing(pairs, held.allowing(pairs, of_counted(pairs, alpha, rule)))


def of_counted(pairs: Pairs, alpha: float, rule: StoppingRule) -> Ratio:
    """The same, with nothing allowed for runs that were lost."""
    nominal = rule.nominal(alpha, len(pairs.baseline))
    return shared.allowing(pairs, of_values(pairs, pairs.baseline, pairs.treatment, nominal))


def of_values(pairs: Pairs, baseline: Sequence[float], treatment: Sequence[float], nominal: float) -> Ratio:
    """The ratio of these values, with an interval of this level, as all of the comparison have it."""
    if pairs.is_median:
        return medians.estimate(baseline, treatment, nominal)
    metric = METRICS[pairs.metric]
    return estimate(baseline, treatment, nominal, metric.hull, pairs.shape, metric.most)
