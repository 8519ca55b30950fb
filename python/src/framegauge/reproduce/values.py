"""What a study found for a published figure."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Estimate", "Value", "none"]


@dataclass(frozen=True)
class Estimate:
    """A number above 0 with its 95 % interval."""

    number: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    def over(self, other: Estimate) -> Estimate:
        """How many times another one. It takes the two as independent: the half-widths of their logarithms add in
        quadrature, which is wider than what pairs of the same blocks would give."""
        half = math.hypot(*(math.log(estimate.high / estimate.low) / 2 for estimate in (self, other)))
        ratio = self.number / other.number
        return Estimate(ratio, ratio * math.exp(-half), ratio * math.exp(half))


@dataclass(frozen=True)
class Value:
    """An estimate in numbers and words, the study's verdict, and of how many runs; `lack` says why there is none."""

    estimate: Estimate | None
    text: str = ""
    verdict: str = ""
    runs: int = 0
    lack: str = ""


def none(lack: str, verdict: str = "", runs: int = 0) -> Value:
    """No estimate, and why."""
    return Value(None, "", verdict, runs, lack)
