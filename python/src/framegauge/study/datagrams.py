"""The workload `datagrams` of a study file: UDP at a stated rate, alone or beside bulk streams."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import model_validator

from framegauge.files.types import Durations, Flows, Problem, Seconds, Sizes
from framegauge.quantities import print_bytes
from framegauge.study.bulk import Bulk, paced_by
from framegauge.study.frequencies import Frequencies
from framegauge.study.parameters import Parameters, above_zero, grid

__all__ = ["Datagrams"]

# The limits of agents (crates/agent/src/generators/datagrams.rs).
LEAST_BYTES, MOST_BYTES = 20, 65_507
LEAST_PERIOD_SECONDS = 1e-4
MOST_DATAGRAMS = 20_000_000  # of a run
MOST_FLOWS = 512


class Datagrams(Parameters):
    """The first host sends datagrams of `size` to the last, `flows` times `rate` per second, whatever becomes of them.

    With `spurt` and `pause` each flow sends for so long, and is silent for so long, in turn: a voice. `bulk` streams
    run beside to the same server, as with `mixed`.
    """

    key: ClassVar[str] = "datagrams"

    size: Sizes = [200]
    rate: Frequencies = [50.0]
    flows: Flows = [1]
    spurt: Seconds | None = None
    pause: Seconds | None = None
    duration: Durations = [2.0]
    bulk: Bulk | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Datagrams:
        above_zero(self, "duration")
        if None in self.rate:
            raise Problem(("rate",), "null", "datagrams per second above 0: nothing answers them, so no loop is closed")
        for size in self.size:
            if not LEAST_BYTES <= size <= MOST_BYTES:
                expected = f"{print_bytes(LEAST_BYTES)} to {MOST_BYTES} bytes of UDP payload"
                raise Problem(("size",), print_bytes(size), expected)
        if max(self.flows) > MOST_FLOWS:
            raise Problem(("flows",), max(self.flows), f"at most {MOST_FLOWS}")
        if (self.spurt is None) != (self.pause is None):
            missing, key = ("spurt", "pause") if self.spurt is None else ("pause", "spurt")
            raise Problem((key,), f"no {missing} beside it", "both, or neither: a flow sends and is silent in turn")
        for name, period in (("spurt", self.spurt), ("pause", self.pause)):
            if period is not None and period < LEAST_PERIOD_SECONDS:
                raise Problem((name,), f"{period:g} s", f"at least {LEAST_PERIOD_SECONDS:g} s")
        most = max(rate or 0 for rate in self.rate) * max(self.flows) * max(self.duration)
        if most > MOST_DATAGRAMS:
            raise Problem(("rate",), f"{most:.0f} datagrams in a run", f"at most {MOST_DATAGRAMS}")
        return self

    @property
    def unpaced(self) -> str | None:
        """Nothing, if there is bulk without a `rate` of its own."""
        return super().unpaced if self.bulk is None else paced_by(self.bulk.rate, "bulk.rate")

    def conditions(self) -> list[dict[str, Any]]:
        """Every combination, and those of the bulk streams with the prefix `bulk_`."""
        axes: dict[str, list[Any]] = {
            "size_bytes": self.size, "rate_per_second": self.rate, "flows": self.flows,
            "duration_seconds": self.duration,
        }  # fmt: skip
        periods = {} if self.spurt is None else {"spurt_seconds": self.spurt, "pause_seconds": self.pause}
        beside = [{}] if self.bulk is None else self.bulk.conditions()
        return [{**combination, **bulk} for combination in grid(axes, periods) for bulk in beside]

    def needed_hosts(self) -> tuple[int, str]:
        """Those of the bulk, or two."""
        return (2, "") if self.bulk is None else self.bulk.needed_hosts()
