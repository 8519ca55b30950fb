"""The correction for many comparisons in one study, so that all of them together rarely make a false claim.

Holm's step-down procedure (Holm 1979, Scandinavian Journal of Statistics 6:65). Each comparison claims at most one of
better, worse and no practical difference, from a two-sided interval, so its claim is false with probability alpha at
most. That a direction may be claimed as well is proved for independent comparisons only (Shaffer 1980, Annals of
Statistics 8:1342; Finner 1999, Annals of Statistics 27:274). Those of a study share a baseline: in the worst dependence
that an audit found, two comparisons together were wrong in 5.2 % instead of 5 %. With several looks it is the group
sequential Holm procedure (Ye, Li, Liu & Yao 2013, Statistics in Medicine 32:1112).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["levels"]


def levels(settled: Sequence[Callable[[float], bool]], alpha: float) -> list[float]:
    """The level at which to judge each comparison, so that any of them is wrong with probability `alpha` at most.

    `settled` holds one function per comparison: whether it makes a claim at a level. A comparison that is settled at
    one level must be settled at every larger one. Unsettled comparisons get the level at which the procedure ended.
    """
    nominal = [alpha] * len(settled)
    left = list(range(len(settled)))
    while left:
        level = alpha / len(left)
        for index in left:
            nominal[index] = level
        rest = [index for index in left if not settled[index](level)]
        if len(rest) == len(left):
            break
        left = rest
    return nominal
