"""Whether the arms of a study lost runs by more than chance: then what is left of them is not comparable."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats

__all__ = ["ALPHA", "Counts", "Unequal", "exclusions_differ", "unequal"]

ALPHA = 0.05
FEW_SHARE = 0.25  # lost in one arm against none in the other: too many to ignore, whatever the test can show

Counts = tuple[int, int]  # excluded, attempted
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Unequal:
    """How the exclusions of two arms differ. `is_shown`: by more than chance; otherwise only more runs can tell."""

    why: str
    is_shown: bool


def unequal(pairs: Mapping[Key, tuple[Counts, Counts]]) -> dict[Key, Unequal]:
    """The pairs of arms whose exclusions differ by more than chance, or may.

    Runs that are lost more often in one arm than in the other are not lost at random, and a comparison of the rest
    would be biased. Fisher's exact test; all pairs together err with 5 % (Holm 1979). A pair that lost no run tests
    nothing, and does not count. Besides, more than a quarter against none, for which few runs give the test no power.
    """
    chances = {key: _chance(*pair) for key, pair in pairs.items() if pair[0][0] + pair[1][0] > 0 and _both_tried(pair)}
    level, left = 0.0, len(chances)
    for chance in sorted(chances.values()):
        if chance >= ALPHA / left:
            break
        level, left = chance, left - 1
    found = {key: _told(pairs[key], chance, is_shown=0 < chance <= level) for key, chance in chances.items()}
    return {key: each for key, each in found.items() if each is not None}


def exclusions_differ(first: Counts, second: Counts) -> Unequal | None:
    """The same for one pair of arms."""
    return unequal({"": (first, second)}).get("")


def _both_tried(pair: tuple[Counts, Counts]) -> bool:
    return all(attempted > 0 for _, attempted in pair)


def _chance(first: Counts, second: Counts) -> float:
    """How likely a difference as large is, where runs are lost at random."""
    table = np.array([[excluded, attempted - excluded] for excluded, attempted in (first, second)])
    return float(stats.fisher_exact(table).pvalue)


def _told(pair: tuple[Counts, Counts], chance: float, is_shown: bool) -> Unequal | None:
    first, second = pair
    counts = f"excluded {first[0]} of {first[1]} runs in one arm and {second[0]} of {second[1]} in the other"
    if is_shown:
        return Unequal(f"{counts} (p = {chance:.2g}): not lost at random", is_shown=True)
    least, most = sorted((first[0] / first[1], second[0] / second[1]))
    if least == 0 and most > FEW_SHARE:
        why = f"{counts} (p = {chance:.2g}): too few to tell whether at random, and too many to ignore"
        return Unequal(why, is_shown=False)
    return None
