"""What few flows to one receiver get beside many, at each level of the treatment: entries of the summary, and words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.metrics import SHARE_OF_FEW, usual_margin
from framegauge.results.journal import Run
from framegauge.statistics.few import Share, shares
from framegauge.statistics.pairs import Row, by_cell
from framegauge.statistics.sequential import StoppingRule
from framegauge.summary import words
from framegauge.summary.intervals import CORRECTED, interval

__all__ = ["HEAD", "MEANING", "entries", "judged", "lines", "rows", "share", "span", "who"]

MOST_NAMED = 3  # more hosts are counted
HEAD = ("level", "the few", "beside", "share of the few", CORRECTED, "runs", "verdict")
MEANING = {
    "less": "the few get less than the many",
    "more": "the few get more than the many",
    "fair": "all get as much",
    "undecided": "these runs do not tell",
    "suspect": "an A/A control differs, so nothing is claimed",
    "not judged": "too many blocks were lost",
}


def judged(plan: Mapping[str, Any], rows: Sequence[Row], rule: StoppingRule, is_doubted: bool) -> list[Share]:
    """The shares of a study by its plan; the margin is the metric's, or the usual one where the study has none."""
    return shares(rows, plan["margins"].get(SHARE_OF_FEW, usual_margin(SHARE_OF_FEW)), rule, is_doubted)


def entries(found: Sequence[Share], runs: Sequence[Run], key: str) -> list[dict[str, Any]]:
    """One entry per cell and level; `key` names the treatment."""
    share_entries: list[dict[str, Any]] = []
    cells = by_cell(run for run in runs if not run.excluded and run.readings.get("few"))
    for few_share in found:
        readings = [run.readings["few"] for run in cells.get(few_share.cell, ()) if _same(run.level, few_share.level)]
        if not readings:
            continue
        share_entries.append({
            "cell": few_share.cell,
            "workload": few_share.workload,
            "conditions": dict(few_share.conditions),
            "levels": {key: few_share.level},
            "few": {"senders": list(readings[0]["senders"]), "flows": readings[0]["flows"]},
            "many": {"flows": readings[0]["many"]},
            "share": few_share.share.ratio,
            "ci95": interval(few_share.share),
            "judged": {"confidence": 1 - few_share.judged.alpha, "interval": interval(few_share.judged)},
            "margin": few_share.margin,
            "verdict": str(few_share.standing),
            "runs": few_share.runs,
            "lost_blocks": few_share.lost_blocks,
            "floored_runs": sum(bool(reading.get("floored")) for reading in readings),
        })  # fmt: skip
    return share_entries


def _same(level: Any, other_level: Any) -> bool:
    return json.dumps(level, sort_keys=True) == json.dumps(other_level, sort_keys=True)


def who(entry: Mapping[str, Any]) -> str:
    """The few: "h13", "h13 and h14 (2 flows)", "5 hosts (5 flows)"."""
    senders, flows = entry["few"]["senders"], entry["few"]["flows"]
    named = words.joined(senders) if len(senders) <= MOST_NAMED else f"{len(senders)} hosts"
    return named if flows == 1 else f"{named} ({flows} flows)"


def _beside(entry: Mapping[str, Any]) -> str:
    count = entry["many"]["flows"]
    return f"{count} flow{'' if count == 1 else 's'}"


def share(value: float) -> str:
    """A share of the few in words: "7.8 %", "187 %"; intervals go over several powers of ten."""
    percent = 100 * value
    return "under 0.01 %" if percent < 0.01 else f"{percent:.3g} %" if percent < 999.5 else f"{percent:,.0f} %"


def span(found: Sequence[float] | None) -> str:
    """An interval of shares in words."""
    return words.change_interval(None) if found is None else " to ".join(map(share, found))


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A sentence per cell and level: "queue taildrop: h13 gets 8 % of what a flow of the many (12 flows) gets"."""
    few_entries = summary.get("few", ())
    cells = words.Cells(summary["verdicts"] or few_entries)
    for arm in few_entries:
        where = "".join(f"{part}, " for part in (cells.of(arm),) if part)
        is_one = arm["few"]["flows"] == 1
        gets = "get" if len(arm["few"]["senders"]) > 1 else "gets"
        value = f"{share(arm['share'])}{'' if is_one else ' per flow'}"
        yield (
            f"{where}{words.levels(arm['levels'])}: {who(arm)} {gets} {value} ({span(arm['judged']['interval'])}) "
            f"of what each of {_beside(arm)} gets: {_verdict(arm)}"
        )


def _verdict(entry: Mapping[str, Any]) -> str:
    within = f" within a factor of {1 + entry['margin']:g}" if entry["verdict"] == "fair" else ""
    floored = entry["floored_runs"]
    note = f"; in {floored} of {entry['runs']} runs half a segment stands for less" if floored else ""
    return f"{entry['verdict']}{within}{note}"


def rows(summary: Mapping[str, Any]) -> Iterator[list[str]]:
    """The cells of the table with HEAD."""
    few_entries = summary.get("few", ())
    cells = words.Cells(summary["verdicts"] or few_entries)
    for entry in few_entries:
        yield [
            ", ".join(filter(None, (cells.of(entry), words.levels(entry["levels"])))),
            who(entry),
            _beside(entry),
            share(entry["share"]),
            span(entry["judged"]["interval"]),
            str(entry["runs"]),
            _verdict(entry),
        ]
