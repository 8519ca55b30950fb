"""The reading of drops in a row: how often a port drops so many frames of one input port, and no other in between."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from framegauge.reproduce.documents import Drops, Reading
from framegauge.reproduce.readings import is_at, is_level
from framegauge.reproduce.values import Estimate, Value, none
from framegauge.results import spools
from framegauge.results.journal import Run, Saved
from framegauge.statistics import ratio
from framegauge.summary import drop_runs

__all__ = ["value"]

NOTHING = "too few runs have drops of the few and of the many at one port"


def value(saved: Saved, reading: Reading) -> Value:
    """The share of episodes of such a length at the input port of the few, mean over runs; or how many times that of
    the port's other input ports, as a geometric mean. Episodes of a run are not independent, runs are."""
    assert reading.drops is not None
    runs = [
        run for run in saved.runs
        if not run.excluded and is_level(run.level, reading.level) and is_at(run.conditions, reading.where)
    ]  # fmt: skip
    pairs = list(_pairs(saved, runs, reading.drops))
    if reading.drops.of == "few":
        return _mean([few for few, _ in pairs])
    positive = [(few, many) for few, many in pairs if few > 0 and many > 0]
    if len(positive) < 2:
        return none(NOTHING)
    effect = ratio.estimate([many for _, many in positive], [few for few, _ in positive])
    if effect.low is None or effect.high is None or not ratio.is_usable(effect.low, effect.high):
        return none(f"no usable interval from {len(positive)} runs")
    shares = [f"{100 * statistics.fmean(side):.2g} %" for side in zip(*positive, strict=True)]
    text = f"{shares[0]} beside {shares[1]}: {effect.ratio:.3g} times ({effect.low:.3g} to {effect.high:.3g})"
    return Value(Estimate(effect.ratio, effect.low, effect.high), text, runs=len(positive))


def _mean(shares: Sequence[float]) -> Value:
    if len(shares) < 2:
        return none(NOTHING)
    middle = statistics.fmean(shares)
    half = ratio.quantile(len(shares) - 1) * statistics.stdev(shares) / math.sqrt(len(shares))
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    text = f"{100 * middle:.2g} % ({100 * low:.2g} % to {100 * high:.2g} %)"
    return Value(Estimate(middle, low, high), text, runs=len(shares))


def _pairs(saved: Saved, runs: Sequence[Run], selection: Drops) -> Iterator[tuple[float, float]]:
    """Of each run with drops of both, the shares of episodes that are asked for: of the few, and of the many."""
    for run in runs:
        senders = [str(item) for item in run.readings.get("few", {}).get("senders", ())]
        path = saved.folder / "runs" / str(run.number) / "drops.parquet"
        dropped = drop_runs.read(path, spools.record(saved.folder, run), run.files)
        few_drops = [item for item in dropped if item.input_port.partition(">")[0] in senders]
        ports = {item.port for item in few_drops}
        many_drops = [item for item in dropped if item.port in ports and item not in few_drops]
        few, many = ([length for item in side for length in item.lengths] for side in (few_drops, many_drops))
        if few and many:
            yield _share(few, selection), _share(many, selection)


def _share(lengths: Sequence[int], selection: Drops) -> float:
    most = math.inf if selection.most is None else selection.most
    return sum(selection.least <= length <= most for length in lengths) / len(lengths)
