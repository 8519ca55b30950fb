"""How far excluded runs could move a ratio, if they were lost for what would have been measured.

A test of the numbers of lost runs cannot show that the slowest runs of one arm were lost, and others in the other. The
bound supposes the worst: every excluded run of an arm was as low, or as high, as any run of that arm was seen to be,
excluded ones included (Manski 1990, American Economic Review 80:319, with the observed range as the support; Lee 2009,
Review of Economic Studies 76:1071, for unequal losses). It has no sampling error in it: it stands beside the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from framegauge.statistics.exclusions import Counts

__all__ = ["Arm", "Bound", "bound"]


@dataclass(frozen=True)
class Arm:
    """The values above 0 of the runs that count, those of excluded runs as far as known, the number of these, and how
    many slots lost a run."""

    counted: Sequence[float]
    excluded: Sequence[float]
    lost: int
    slots: Counts

    @property
    def share(self) -> float:
        """The share of the slots that lost a run."""
        return self.slots[0] / self.slots[1] if self.slots[1] else 0.0

    def shifts(self) -> tuple[float, float]:
        """How far the mean log value would move if all lost runs were the lowest, and the highest."""
        logs = [math.log(value) for value in self.counted]
        every = [*logs, *(math.log(value) for value in self.excluded)]
        mean = math.fsum(logs) / len(logs)
        return self.share * (min(every) - mean), self.share * (max(every) - mean)


@dataclass(frozen=True)
class Bound:
    """The ratio at worst in either direction; `lost` runs of the baseline's level, and of the treatment's."""

    low: float
    high: float
    lost: tuple[int, int]


def bound(ratio: float, baseline: Arm, treatment: Arm) -> Bound | None:
    """The bound around a ratio; None if no run was lost, or an arm has none that counts."""
    if not (baseline.lost or treatment.lost) or not baseline.counted or not treatment.counted:
        return None
    before, after = baseline.shifts(), treatment.shifts()
    low, high = (ratio * math.exp(after[end] - before[1 - end]) for end in (0, 1))
    return Bound(low, high, (baseline.lost, treatment.lost))
