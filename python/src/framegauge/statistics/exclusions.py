"""Whether the numbers of runs lost by a study's arms differ by more than chance, which makes the rest incomparable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np

__all__ = ["ALPHA", "Counts", "Unequal", "count", "exclusions_differ", "unequal"]

ALPHA = 0.05
FEW_SHARE = 0.25  # more than this share in one arm, and none in the other, is too much to ignore without a test

Counts = tuple[int, int]  # slots that lost a run, of all that were tried
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Unequal:
    """How the exclusions of two arms differ. `is_shown`: by more than chance; otherwise only more runs can decide."""

    why: str
    is_shown: bool


def count(attempts: Iterable[tuple[Hashable, bool]]) -> Counts:
    """How many slots (places in the order) lost a run: of these attempts, each with its slot and whether it was lost.

    A lost run is repeated at once, so what spoilt it may spoil its retries too: attempts of one slot are not
    independent, and Fisher's test takes them to be. A slot lost a run if and only if its first attempt was lost, for
    one that counts ends it; so the share is that of first attempts, whatever the number of retries.
    """
    slots: dict[Hashable, bool] = {}
    for slot, is_lost in attempts:
        slots[slot] = slots.get(slot, False) or is_lost
    return sum(slots.values()), len(slots)


def unequal(pairs: Mapping[Key, tuple[Counts, Counts]]) -> dict[Key, Unequal]:
    """The pairs of arms whose exclusions differ by more than chance, or may.

    Runs that are lost more often in one arm than in the other are not lost at random, and a comparison of the rest
    would be biased. The criterion is Fisher's exact test, with an error of 5 % over all pairs (Holm 1979); pairs
    without lost runs are not tested and do not count. In addition, more than a quarter against none is reported, where
    few runs would give the test no power.
    """
    chances = {key: _chance(*pair) for key, pair in pairs.items() if pair[0][0] + pair[1][0] > 0 and _both_tried(pair)}
    level, remaining = 0.0, len(chances)
    for chance in sorted(chances.values()):
        if chance >= ALPHA / remaining:
            break
        level, remaining = chance, remaining - 1
    results = {key: _told(pairs[key], chance, is_shown=0 < chance <= level) for key, chance in chances.items()}
    return {key: result for key, result in results.items() if result is not None}


def exclusions_differ(first: Counts, second: Counts) -> Unequal | None:
    """How the exclusions of a single pair of arms differ; None if chance is enough to explain them."""
    return unequal({"": (first, second)}).get("")


def _both_tried(pair: tuple[Counts, Counts]) -> bool:
    return all(attempted > 0 for _, attempted in pair)


@lru_cache(maxsize=1024)  # many pairs of a study lose equally many runs, and the test takes half a millisecond
def _chance(first: Counts, second: Counts) -> float:
    """The probability of a difference this large if runs are lost at random."""
    from scipy import stats  # takes half a second, and most studies have no exclusions

    table = np.array([[excluded, attempted - excluded] for excluded, attempted in (first, second)])
    return float(stats.fisher_exact(table).pvalue)


def _told(pair: tuple[Counts, Counts], chance: float, is_shown: bool) -> Unequal | None:
    first, second = pair
    one, other = (f"{lost} of {tried}" for lost, tried in pair)
    counts = f"{one} runs were excluded when first tried in one arm and {other} in the other"
    if is_shown:
        return Unequal(f"{counts} (p = {chance:.2g}): they were not lost at random", is_shown=True)
    least, most = sorted((first[0] / first[1], second[0] / second[1]))
    if least == 0 and most > FEW_SHARE and first[0] + second[0] > 1:  # a single one has to be in some arm
        why = f"{counts} (p = {chance:.2g}): too many to ignore, and too few to tell whether they were lost at random"
        return Unequal(why, is_shown=False)
    return None
