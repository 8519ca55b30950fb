"""What the ratio of a metric is of its blocks' ratios: their mean, or the median of differences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from framegauge.files.types import Problem

__all__ = ["Estimator", "estimator_problems", "of_metrics"]

Estimator = Literal["mean", "median of differences"]
# Of the error of all comparisons, what is left for the last look where a study may end early: a test compares this with
# the rule of stopping.
LAST_LOOK = {"settled": 0.016, "blocks": 0.05}


def of_metrics(given: Estimator | Mapping[str, Estimator], metrics: Collection[str]) -> dict[str, Estimator]:
    """The estimators of metrics that have another than the mean."""
    estimators = dict.fromkeys(metrics, given) if isinstance(given, str) else given
    return {metric: name for metric, name in estimators.items() if name != "mean"}


def estimator_problems(
    given: Estimator | Mapping[str, Estimator], metrics: Collection[str], comparisons: int, blocks: int, stop: str
) -> Iterator[Problem]:
    """Problems with the estimators of a study of so many comparisons in the family that is judged first."""
    for name in given if isinstance(given, Mapping) else ():
        if name not in metrics:
            yield Problem(("estimator", name), name, f"a metric with a margin ({', '.join(metrics)})")
    if not of_metrics(given, metrics):
        return
    # The interval is of signs, one for each block: their rarest combination must be rarer than the level at which the
    # first comparison is judged.
    least = math.ceil(1 + math.log2(comparisons / LAST_LOOK[stop]))
    if blocks < least:
        which = "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"
        yield Problem(("blocks",), blocks, f"at least {least}, for the median of differences in {which}")
