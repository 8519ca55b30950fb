"""Many comparisons in one study: none may be wrong by being one of many.

Holm's step-down (Holm 1979, Scandinavian Journal of Statistics 6:65). Each comparison claims at most one of better,
worse and no practical difference, from a two-sided interval, and so misleads with probability alpha at most; that
the direction may be claimed with the rest is Shaffer's (1980, Annals of Statistics 8:1342). With several looks it is
the group sequential Holm procedure (Ye, Li, Liu & Yao 2013, Statistics in Medicine 32:1112).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["levels"]


def levels(settled: Sequence[Callable[[float], bool]], alpha: float) -> list[float]:
    """The level at which each comparison is to be judged, so that all together err with probability `alpha`.

    `settled` says of each comparison whether it comes to a claim at a level; what is settled at one must be settled
    at every larger one. What stays unsettled is left with the level at which the procedure ended.
    """
    found = [alpha] * len(settled)
    left = list(range(len(settled)))
    while left:
        level = alpha / len(left)
        for index in left:
            found[index] = level
        rest = [index for index in left if not settled[index](level)]
        if len(rest) == len(left):
            break
        left = rest
    return found
