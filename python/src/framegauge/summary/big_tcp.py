"""What competes with a larger MTU: the effect of larger aggregates alone, of the MTU alone, and of both together.

Where a study crosses the MTU with the size of aggregates, the four corners of each other condition are compared block
by block with the one that has neither. The share of the MTU's gain that the aggregates give alone follows where that
gain is no chance. Like interactions, these figures are descriptive, and no part of the verdicts' family; so that none
of them is claimed by chance, all entries of a study share one level (Bonferroni), over all looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.metrics import METRICS
from framegauge.networks.aggregates import USUAL_BYTES
from framegauge.statistics.competitors import alike, logs
from framegauge.statistics.effects import mean_ratio
from framegauge.statistics.pairs import Row, sides_by_cell
from framegauge.statistics.ratio import ALPHA, Ratio
from framegauge.statistics.sequential import StoppingRule
from framegauge.statistics.shares import Share, share
from framegauge.summary import words

__all__ = ["entries", "lines"]

SIZES = ("gso_size_bytes", "gro_size_bytes")
LEAST_BLOCKS = 3
EFFECTS = ("mtu", "aggregates", "both")


@dataclass(frozen=True)
class _Crossed:
    """One metric in one place: the log ratios of EFFECTS to the smallest of both, by block."""

    metric: str
    workload: str
    conditions: Mapping[str, Any]
    size: str
    levels: Mapping[str, tuple[int, int]]  # of `mtu` and of the size: the smallest and the largest
    logs: Mapping[str, Sequence[float]]


def entries(
    rows: Sequence[Row], metrics: Sequence[str], key: str, rule: StoppingRule | None = None
) -> list[dict[str, Any]]:
    """One entry per metric, workload and other condition of a study in which MTU and size were crossed; `key` names
    the treatment."""
    crossings = [crossed for metric in metrics if metric in METRICS for crossed in _crossed(rows, metric, key)]
    crossings = [crossed for crossed in crossings if len(crossed.logs["mtu"]) >= LEAST_BLOCKS]
    level = ALPHA / (len(EFFECTS) * len(crossings)) if crossings else ALPHA
    return [_entry(crossed, rule or StoppingRule(), level) for crossed in crossings]


def _crossed(rows: Sequence[Row], metric: str, key: str) -> Iterator[_Crossed]:
    settings = SIZES if key == "mtu" else ("mtu",) if key in SIZES else ()
    arms = {row.level: row.arm for row in rows if row.role == "treatment" and isinstance(row.level, int)}
    low = next((row.level for row in rows if row.role == "baseline"), None)
    if not settings or not arms or not isinstance(low, int) or low >= max(arms):
        return
    for workload in dict.fromkeys(row.workload for row in rows):
        workload_rows = [row for row in rows if row.workload == workload]
        sides = sides_by_cell(workload_rows, metric, arms[max(arms)])
        conditions = {row.cell: row.conditions for row in workload_rows if row.cell in sides}
        for name in settings:
            setting_levels = {
                level for cell_conditions in conditions.values() if isinstance(level := cell_conditions.get(name), int)
            }
            if len(setting_levels) < 2:
                continue
            ends = {key: (low, max(arms)), name: (min(setting_levels), max(setting_levels))}
            cells = [cell for cell, cell_conditions in conditions.items() if name in cell_conditions]
            for pair in alike(conditions, cells, name, *ends[name]):
                other = {condition: value for condition, value in conditions[pair[0]].items() if condition != name}
                by_setting, by_treatment, both = logs(sides, [pair])
                mtu, size = (by_treatment, by_setting) if key == "mtu" else (by_setting, by_treatment)
                values = dict(zip(EFFECTS, (mtu, size, both), strict=True))
                yield _Crossed(metric, workload, other, name if key == "mtu" else key, ends, values)


def _entry(crossed: _Crossed, rule: StoppingRule, level: float) -> dict[str, Any]:
    mtu_logs = crossed.logs["mtu"]
    alpha = rule.nominal(level, len(mtu_logs))
    ratios = {name: mean_ratio(log_ratios, alpha) for name, log_ratios in crossed.logs.items()}
    parts = {name: share(mtu_logs, crossed.logs[name], alpha) for name in EFFECTS[1:]}
    sure = {name: _is_sure(ratio) for name, ratio in ratios.items()}
    return {
        "metric": crossed.metric,
        "workload": crossed.workload,
        "conditions": dict(crossed.conditions),
        "mtu": list(crossed.levels["mtu"]),
        crossed.size: list(crossed.levels[crossed.size]),
        "blocks": len(mtu_logs),
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


def _is_sure(ratio: Ratio) -> bool:
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _share(part: Share | None) -> list[float] | None:
    return None if part is None else [part.share, part.low, part.high]


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A sentence per entry: "transactions: BIG TCP alone (GSO size 180000) gives 41 % (20 % to 63 %) of what MTU 9000
    alone gives (+24 %, …); both together 131 % (…) of it"."""
    effects = summary.get("big_tcp", ())
    if not summary["faithful"] or summary.get("suspect"):
        return
    cells = words.Cells(effects)
    for entry in effects:
        where = cells.of(entry)
        yield f"{words.metric(entry['metric'])}{f' ({where})' if where else ''}: {_said(entry)}"


def _said(entry: Mapping[str, Any]) -> str:
    size = next(name for name in SIZES if name in entry)
    largest, effects = entry[size][1], entry["effects"]
    level = words.levels({size: largest})
    name = f"BIG TCP alone ({level})" if largest > USUAL_BYTES else f"{level} alone"
    mtu = words.levels({"mtu": entry["mtu"][1]})
    whole, alone, both = (effects[effect] for effect in EFFECTS)
    has_gain = (whole["ratio"] > 1) == METRICS[entry["metric"]].higher_is_better
    if not whole["sure"] or not has_gain:
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
    share_, low, high = (f"{100 * value:.0f} %".replace("-", "\u2212") for value in effect["share"])
    return f"{share_} ({low} to {high})"
