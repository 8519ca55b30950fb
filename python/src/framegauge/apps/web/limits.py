"""When a site is saturated: limits of response times, which a share of the operations of each kind must keep.

The limits are those of Olio, the benchmark that the published study ran: 90 % of each operation within 1 to 4 s
(`max90th` in its driver, org.apache.olio.workload.driver.UIDriver).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LIMITS", "SHARE", "Rule", "quantile"]

# In seconds, by operation.
LIMITS: Mapping[str, float] = {
    "home": 1.0, "login": 1.0, "event": 2.0, "person": 2.0, "search": 2.0, "add_event": 4.0, "add_person": 3.0,
}  # fmt: skip
SHARE = 0.9


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed; 0 without values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True)
class Rule:
    """The limit of each operation in seconds, and the share of its operations that must keep it."""

    limits: Mapping[str, float] = field(default_factory=lambda: LIMITS)
    share: float = SHARE

    @property
    def least(self) -> int:
        """How many operations of a kind can be judged: of fewer, the quantile would be the slowest one."""
        return math.ceil(round(1 / (1 - self.share), 9))

    def judged(
        self, times: Mapping[str, Sequence[float]], ages: Mapping[str, Sequence[float]] | None = None
    ) -> dict[str, Any]:
        """The quantile of each operation beside its limit; those beyond it in words; those that are too few to say.

        `ages` are those of operations under way. One that is older than its limit is beyond it, whenever it ends:
        without them a site that hardly answers would look fast.
        """
        quantiles: dict[str, float] = {}
        for name, limit in self.limits.items():
            durations = [*times.get(name, ()), *(age for age in (ages or {}).get(name, ()) if age > limit)]
            if len(durations) >= self.least:
                quantiles[name] = quantile(sorted(durations), self.share)
        return {
            "judged": {
                name: {"found_seconds": time, "limit_seconds": self.limits[name]} for name, time in quantiles.items()
            },
            "beyond": [
                f"{name}: found {time:.3g} s at {100 * self.share:g} %, expected at most {self.limits[name]:g} s"
                for name, time in quantiles.items()
                if time > self.limits[name]
            ],
            "few": [name for name in self.limits if name not in quantiles],
        }
