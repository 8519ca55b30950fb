"""What competes with a larger MTU: the effect of larger aggregates alone, of the MTU alone, and of both together.

Where a study crosses the MTU with the size of aggregates, the four corners of each other condition are compared block
by block with the one that has neither. The share of the MTU's gain that the aggregates give alone follows where that
gain is no chance. Like interactions, these figures are descriptive, and no part of the verdicts' family; so that none
of them is claimed by chance, all entries of a study share one level (Bonferroni), over all looks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.metrics import METRICS
from framegauge.statistics.pairs import Row
from framegauge.statistics.ratio import ALPHA, Ratio, estimate
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.shares import Share, share
from framegauge.summary import words

__all__ = ["entries", "lines"]

SIZES = ("gso_size_bytes", "gro_size_bytes")
BIG_BYTES = 65_536
LEAST_BLOCKS = 3
EFFECTS = ("mtu", "aggregates", "both")

Logs = Mapping[int, float]  # by block


@dataclass(frozen=True)
class _Corners:
    """One metric in one place: its mean log values by block, at (larger MTU, larger aggregates)."""

    metric: str
    workload: str
    conditions: Mapping[str, Any]
    size: str
    levels: Mapping[str, tuple[int, int]]  # of `mtu` and of the size: the smallest and the largest
    logs: Mapping[tuple[bool, bool], Logs]

    def effects(self) -> dict[str, list[float]]:
        """The log ratios to the corner that has neither, by block."""
        blocks = sorted(set.intersection(*(set(each) for each in self.logs.values())))
        places = dict(zip(EFFECTS, ((True, False), (False, True), (True, True)), strict=True))
        return {
            name: [self.logs[place][block] - self.logs[False, False][block] for block in blocks]
            for name, place in places.items()
        }


def entries(
    rows: Sequence[Row], metrics: Sequence[str], key: str, rule: StoppingRule | None = None
) -> list[dict[str, Any]]:
    """One entry per metric, workload and other condition of a study in which MTU and size were crossed; `key` names
    the treatment."""
    found = [each for metric in metrics if metric in METRICS for each in _corners(rows, metric, key)]
    found = [each for each in found if len(next(iter(each.effects().values()))) >= LEAST_BLOCKS]
    level = ALPHA / (len(EFFECTS) * len(found)) if found else ALPHA
    return [_entry(each, rule or StoppingRule(), level) for each in found]


def _corners(rows: Sequence[Row], metric: str, key: str) -> Iterator[_Corners]:
    places: dict[str, list[tuple[dict[str, Any], Row]]] = {}
    for row in rows:
        if not row.excluded and row.metrics.get(metric, 0.0) > 0:
            levels = {**row.conditions, key: row.level}
            size = next((name for name in SIZES if _varies(rows, key, name)), None)
            if size is None or not all(isinstance(levels.get(name), int) for name in ("mtu", size)):
                return
            other = {name: value for name, value in levels.items() if name not in ("mtu", size)}
            places.setdefault(json.dumps([row.workload, other], sort_keys=True), []).append((levels, row))
    for mine in places.values():
        size = next(name for name in SIZES if _varies(rows, key, name))
        ends = {name: (min(seen), max(seen)) for name in ("mtu", size) if (seen := {each[name] for each, _ in mine})}
        logs: dict[tuple[bool, bool], dict[int, list[float]]] = {}
        for levels, row in mine:
            if all(levels[name] in ends[name] for name in ends):
                corner = (levels["mtu"] == ends["mtu"][1], levels[size] == ends[size][1])
                logs.setdefault(corner, {}).setdefault(row.block, []).append(math.log(row.metrics[metric]))
        if len(logs) == 4 and all(low < high for low, high in ends.values()):
            means = {corner: _means(each) for corner, each in logs.items()}
            row = mine[0][1]
            other = {name: value for name, value in mine[0][0].items() if name not in ("mtu", size)}
            yield _Corners(metric, row.workload, other, size, ends, means)


def _varies(rows: Sequence[Row], key: str, name: str) -> bool:
    """Whether a study has several levels of this size, and of the MTU."""
    seen = [{**row.conditions, key: row.level} for row in rows]
    return all(len({json.dumps(each.get(one)) for each in seen}) > 1 for one in (name, "mtu"))


def _means(values: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """The mean of a corner's runs in each block: the baseline's and its control's count as one."""
    return {block: math.fsum(each) / len(each) for block, each in values.items()}


def _entry(corners: _Corners, rule: StoppingRule, level: float) -> dict[str, Any]:
    effects = corners.effects()
    count = len(effects["mtu"])
    alpha = rule.nominal(level, count)
    ratios = {name: estimate([1.0] * count, list(map(math.exp, logs)), alpha) for name, logs in effects.items()}
    parts = {name: share(effects["mtu"], effects[name], alpha) for name in EFFECTS[1:]}
    sure = {name: _is_sure(ratio) for name, ratio in ratios.items()}
    return {
        "metric": corners.metric,
        "workload": corners.workload,
        "conditions": dict(corners.conditions),
        "mtu": list(corners.levels["mtu"]),
        corners.size: list(corners.levels[corners.size]),
        "blocks": count,
        "effects": {
            name: {
                "ratio": ratios[name].ratio,
                "interval": [ratios[name].low, ratios[name].high],
                "sure": sure[name],
                "share": _share(parts.get(name)) if sure["mtu"] else None,
            }
            for name in EFFECTS
        },
    }


def _is_sure(found: Ratio) -> bool:
    return found.low is not None and found.high is not None and not found.low <= 1 <= found.high


def _share(found: Share | None) -> list[float] | None:
    return None if found is None else [found.share, found.low, found.high]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A sentence per entry: "transactions: BIG TCP alone (GSO size 180000) gives 41 % (20 % to 63 %) of what MTU 9000
    alone gives (+24 %, …); both together 131 % (…) of it"."""
    found = summary.get("big_tcp", ())
    if not summary["faithful"] or summary.get("suspect"):
        return
    cells = words.Cells(found)
    for each in found:
        where = cells.of(each)
        yield f"{words.metric(each['metric'])}{f' ({where})' if where else ''}: {_said(each)}"


def _said(entry: Mapping[str, Any]) -> str:
    size = next(name for name in SIZES if name in entry)
    largest, effects = entry[size][1], entry["effects"]
    level = words.levels({size: largest})
    name = f"BIG TCP alone ({level})" if largest > BIG_BYTES else f"{level} alone"
    mtu = words.levels({"mtu": entry["mtu"][1]})
    whole, alone, both = (effects[each] for each in EFFECTS)
    gains = (whole["ratio"] > 1) == METRICS[entry["metric"]].higher_is_better
    if not whole["sure"] or not gains:
        what = "makes it worse" if whole["sure"] else "makes no sure difference"
        text = f"{mtu} alone {what} ({_inside(whole)}), so there is no gain to compare with"
        return f"{text}; {name}: {_change(alone)}; both together: {_change(both)}"
    gain = f"what {mtu} alone gives ({_inside(whole)})"
    if not alone["sure"]:
        text = f"whether {name} gives any of {gain} is open ({_inside(alone)})"
    elif alone["share"] is None or alone["share"][0] < 0:
        text = f"{name} gives nothing of {gain}, but makes it worse ({_inside(alone)})"
    else:
        text = f"{name} gives {_part(alone)} of {gain}"
    if both["sure"] and both["share"] is not None and both["share"][0] > 0:
        return f"{text}; both together {_part(both)} of it"
    return f"{text}; both together: {_change(both)}"


def _change(effect: Mapping[str, Any]) -> str:
    return f"{words.change(effect['ratio'], effect['interval'])} ({words.change_interval(effect['interval'])})"


def _inside(effect: Mapping[str, Any]) -> str:
    """The same within parentheses."""
    return f"{words.change(effect['ratio'], effect['interval'])}, {words.change_interval(effect['interval'])}"


def _part(effect: Mapping[str, Any]) -> str:
    share_, low, high = (f"{100 * each:.0f} %".replace("-", "\u2212") for each in effect["share"])
    return f"{share_} ({low} to {high})"
