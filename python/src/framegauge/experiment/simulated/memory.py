"""How many simulations this machine's memory carries at a time, known before any of it is taken."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace

from framegauge.experiment.planning import conditions_of
from framegauge.experiment.simulated.engines import Engine
from framegauge.experiment.simulated.plan import Planned
from framegauge.experiment.simulated.pool import scenario_of

__all__ = ["within"]

LOOKED_AT = 2  # of the first block: the runs with most hosts
WORTH_SAYING_BYTES = 500_000_000


def within(engine: Engine, blocks: Sequence[Sequence[Planned]], say: Callable[[str], None]) -> Engine:
    """The engine, with as few jobs as fit into the memory that is available; says what a large run takes. Each run is
    checked once more when it begins, and refused in one line if it does not fit at all."""
    if engine.memory is None or not blocks:
        return engine
    largest = heapq.nlargest(LOOKED_AT, blocks[0], key=lambda run: len(conditions_of(run.study, run.slot).hosts))
    needed, available = max((engine.memory(scenario_of(run)) for run in largest), key=lambda need: need[0])
    if needed < WORTH_SAYING_BYTES:
        return engine
    jobs = engine.jobs if available is None else max(1, min(engine.jobs, available // needed))
    there = "" if available is None else f" of the {available * 1e-9:.1f} GB that are available"
    say(f"a run takes about {needed * 1e-9:.1f} GB{there}: {jobs} at a time")
    return replace(engine, jobs=jobs)
