"""What a summary, and a check if there is one, say for a decision.

The words are those of the terminal and of the page. A study that is no evidence claims nothing here either: no verdict,
no smallest level, no competitor.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from framegauge.metrics import METRICS
from framegauge.printable import sentence
from framegauge.report import evidence
from framegauge.report.decision.model import Decision, Line, Part, Risks
from framegauge.results.conditions import FACTOR_KEYS
from framegauge.summary import claims, competitors, intervals, judging, levels, losses, trial, words
from framegauge.summary.intervals import CORRECTED, shown
from framegauge.summary.sentence import Kind, answer

__all__ = ["RISKS", "decide"]

NO_EVIDENCE = "This study is not evidence, so nothing is claimed"
WORSE, UNDECIDED = "worse", "undecided"
RISKS = "Risks on the paths"

Summary = Mapping[str, Any]
Verdict = Mapping[str, Any]  # an entry of the summary's `verdicts`


def decide(summary: Summary, folder: Path, risks: Risks | None = None) -> Decision:
    """The decision that a summary supports; `folder` is named in commands, `risks` are those of a check."""
    place = Path(folder.name) if folder.is_absolute() else folder  # an absolute path belongs to one machine
    return Decision(
        summary["question"],
        summary["scope"],
        judging.is_evidence(summary),
        answer(summary),
        list(_beside(summary, risks)),
        [
            _verdicts(summary), _smallest(summary), _competitors(summary), _risks(summary, place, risks),
            _not_measured(summary), Part("next", "What it would take next", list(_next(summary, place, risks))),
        ],
    )  # fmt: skip


def _beside(summary: Summary, risks: Risks | None) -> Iterator[str]:
    largest = _largest_mtu(summary)
    if risks is not None and not risks.is_clear:
        yield f"Risk: {risks.headline}"
    elif risks is not None and largest and risks.target_mtu < largest:
        yield f"Risk: the paths were checked with packets of {risks.target_mtu} bytes only, not with MTU {largest}"
    elif risks is None and largest:
        yield f"Not known: whether every path of your network carries packets of {largest} bytes"
    if note := trial.briefly(summary):
        yield f"{note}, which this machine did not carry"


def _treated(summary: Summary) -> list[Verdict]:
    return [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]


def _largest_mtu(summary: Summary) -> int | None:
    """The largest MTU of a study of MTUs above 1500; None if it is about something else."""
    mtus = [entry["treatment"].get("mtu") for entry in _treated(summary)]
    sizes = [size for entry in mtus for size in (entry.values() if isinstance(entry, Mapping) else [entry])]
    known = [size for size in sizes if isinstance(size, int)]
    return max(known) if known and max(known) > 1500 else None


def _verdicts(summary: Summary) -> Part:
    """One row per metric, workload and level of the treatment: the range over its comparisons."""
    if not judging.is_evidence(summary):
        counts = _counted([words.verdict(verdict) for verdict in _treated(summary)])
        return Part("verdicts", "Verdicts", [NO_EVIDENCE + (f"; comparisons: {counts}" if counts else "")])
    treated = _treated(summary)
    groups: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in treated:
        groups.setdefault((verdict["metric"], str(verdict["workload"]), claims.level_of(verdict)), []).append(verdict)
    named = words.of_workload(treated)
    rows = [
        [
            named(group[0]),
            level,
            *_range(group),
            words.margin(group[0].get("margin") or 0),
            _counted([words.verdict(verdict) for verdict in group]),
        ]
        for (_, _, level), group in groups.items()
    ]
    rows.sort(key=lambda row: WORSE not in row[-1].split())  # where a table is cut, these stay
    head = ["metric", "treatment", "change", CORRECTED, "margin", "verdict"]
    lines = [words.of_all(summary["verdicts"]), *evidence.brief(summary)]
    return Part("verdicts", "Verdicts", lines, head, rows)


def _range(entries: Sequence[Verdict]) -> tuple[str, str]:
    """The smallest and the largest change, and the interval that all intervals lie in; of verdicts alone."""
    known = [entry for entry in entries if entry["verdict"] not in losses.NO_VERDICT and entry["ratio"] is not None]
    if not known:
        return "-", "-"
    ratios = [float(entry["ratio"]) for entry in known]
    ends = sorted({min(ratios), max(ratios)})
    change = words.change(ends[0], shown(known[0])) if len(ends) == 1 else words.change_range(*ends)
    intervals = [interval for entry in known if (interval := shown(entry)) is not None]
    if len(intervals) < len(known):
        return change, words.change_interval(None)
    return change, words.change_range(min(low for low, _ in intervals), max(high for _, high in intervals))


def _counted(verdicts: Sequence[str]) -> str:
    """Verdicts in words: "better", "better in all 8", "6 better, 2 undecided"."""
    counts = Counter(verdicts).most_common()
    if len(counts) == 1:
        verdict, count = counts[0]
        return verdict if count == 1 else f"{verdict} in all {count}"
    return ", ".join(f"{count} {verdict}" for verdict, count in counts)


def _smallest(summary: Summary) -> Part:
    treated = _treated(summary)
    name = next((name for name in (treated[0]["treatment"] if treated else {}) if name != "estimate"), "mtu")
    is_ordered = name in {FACTOR_KEYS.get(factor, factor) for factor in judging.ORDERED}
    title = f"The smallest sufficient {words.factor(name) if is_ordered else 'MTU'}"
    if not judging.is_evidence(summary):
        return Part("smallest", title, [NO_EVIDENCE])
    lines = list(map(sentence, levels.lines(summary)))
    return Part("smallest", title, lines or [_not_asked(treated, is_ordered)])


def _not_asked(treated: Sequence[Verdict], is_ordered: bool) -> str:
    """Why no smallest level is named."""
    if is_ordered:
        tried = list(dict.fromkeys(words.levels(item[side]) for item in treated for side in ("baseline", "treatment")))
        few = f"Not asked: the study tried {words.joined(tried)} alone" if tried else "Nothing was compared"
        return few if len(tried) < 3 else "Not known: no level could be set against the largest"
    mtus = {json.dumps(item["conditions"].get("mtu")): item["conditions"].get("mtu") for item in treated}
    known = [words.condition("mtu", item) for item in mtus.values() if item is not None]
    note = f"; its runs had {words.alternatives(known, 'and')}" if known else ""
    return f"Not asked: the study does not compare MTUs{note}"


def _competitors(summary: Summary) -> Part:
    title = "What competes: other settings"
    if not judging.is_evidence(summary):
        return Part("competitors", title, [NO_EVIDENCE])
    entries = _of_largest(summary.get("competitors", ()))
    if entries:
        less = [words.metric(name) for name in claims.metrics_of(entries) if not METRICS[name].higher_is_better]
        note = (
            f"Changes against neither, over all else, with intervals of their own ({intervals.label(summary)}): "
            "they describe, and are no verdicts"
        )
        lines = [note, *([f"Less is better: {', '.join(less)}"] if less else [])]
        return Part("competitors", title, lines, competitors.head(entries), list(competitors.rows(entries)))
    return Part("competitors", title, ["No other setting was varied, so nothing is known of what one gives instead"])


def _of_largest(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries on the largest level of the treatment, where its levels are numbers; else all."""
    keys = {name for entry in entries for name in entry["treatment"]}
    sizes = [entry["treatment"][name] for entry in entries for name in keys]
    if not all(isinstance(size, int | float) and not isinstance(size, bool) for size in sizes):
        return list(entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size == max(sizes)]


def _risks(summary: Summary, place: Path, risks: Risks | None) -> Part:
    broken = list(dict.fromkeys(
        reason.removeprefix("error: ").removesuffix("; everything is put back")
        for run in summary["excluded"] for reason in run["reasons"] if reason.startswith("error: packets of ")
    ))  # fmt: skip
    seen = [f"During the study: {line}" for line in broken]
    if risks is None:
        return Part("risks", RISKS, [*seen, *_to_check(_largest_mtu(summary), place)])
    largest = _largest_mtu(summary)
    short = []
    if largest and risks.target_mtu < largest:
        short = [f"It was a check with {risks.target_mtu} bytes; the study goes up to MTU {largest}"]
    return Part("risks", RISKS, [*seen, risks.headline, *short, *risks.found, *risks.limits])


def _to_check(largest: int | None, place: Path) -> Iterator[Line]:
    """The commands that would show the risks."""
    if largest is None:
        yield "No check of the paths is part of this page: the study has no jumbo frames that they must carry"
        return
    check = f"framegauge check --hosts inventory.ini --mtu {largest} --json > check.json"
    again = shlex.join(["framegauge", "report", str(place), "--decision", "--check", "check.json"])
    yield "No check of the paths is part of this page. To check every pair of your hosts, each way", check
    yield "Then, to make this page with what was found", again


def _not_measured(summary: Summary) -> Part:
    scope, *rest = evidence.limits(summary)
    lines = [scope]
    if factors := competitors.fixed(summary["verdicts"]):
        lines.append(f"Not varied: {', '.join(factors)}")
    lost = [verdict for verdict in summary["verdicts"] if verdict["verdict"] in losses.NO_VERDICT]
    if lost and judging.is_evidence(summary):
        cells = words.Cells(summary["verdicts"])
        names = list(dict.fromkeys(f"{words.metric(verdict['metric'])} ({cells.name(verdict)})" for verdict in lost))
        lines.append(f"No verdict in {losses.counted(summary['verdicts'])}: {', '.join(names)}")
    if excluded := summary["excluded"]:
        runs = "run was" if len(excluded) == 1 else "runs were"
        first = next((reason for run in excluded for reason in run["reasons"]), "no reason given")
        lines.append(f"{len(excluded)} {runs} excluded; the first because of {first}")
    return Part("not_measured", "What was not measured", [*lines, *rest])


def _next(summary: Summary, place: Path, risks: Risks | None) -> Iterator[Line]:
    """The steps that would make the answer more sure, the first first."""
    is_evidence, largest = judging.is_evidence(summary), _largest_mtu(summary)
    if risks is not None:
        yield from risks.then
    if (count := evidence.more_blocks(summary)) is not None and evidence.is_simulated(summary):
        seeds = str(summary["stopping"]["planned_blocks"] + count)
        yield evidence.would_decide(count), f"framegauge simulate FILE --seeds {seeds}"
    elif count is not None:
        again = ["framegauge", "study", "--resume", "--blocks", str(count), "--out", str(place)]
        yield evidence.would_decide(count), shlex.join(again)
    elif is_evidence:
        yield from _go_on(summary, place)
    if evidence.lacks_cpu(summary):
        yield evidence.NO_TIME
    if (change := evidence.to_change(summary)) is not None:
        yield change
    if not is_evidence:
        yield "Then run it again", shlex.join(["framegauge", "study", str(place / "study.yaml")])
    if largest and risks is None:
        yield f"Check that every path carries packets of {largest} bytes, with the commands under {RISKS}"
    elif risks is not None and largest and risks.target_mtu < largest:
        yield f"Check the paths again, with --mtu {largest}"
    if is_evidence:
        yield from _wider(summary)


def _go_on(summary: Summary, place: Path) -> Iterator[Line]:
    """What to do where something is open, and it is not known how many blocks would decide it."""
    stopping = summary.get("stopping") or {}
    blocks, planned = stopping.get("blocks", 0), stopping.get("planned_blocks") or 0
    if blocks < planned and any(verdict["verdict"] == UNDECIDED for verdict in _treated(summary)):
        verb = "simulate" if evidence.is_simulated(summary) else "study"
        resume = shlex.join(["framegauge", verb, "--resume", "--out", str(place)])
        yield f"Run the rest of the study: {blocks} of {planned} planned blocks were run", resume


def _wider(summary: Summary) -> Iterator[Line]:
    """What another study would have to vary."""
    if not any(words.is_control(verdict) for verdict in summary["verdicts"]) and not evidence.is_simulated(summary):
        yield "Add control: true to the study, which shows what the experiment makes of no difference"
    is_open = answer(summary).kind is Kind.UNDECIDED  # then more levels would be more that is open
    if _largest_mtu(summary) and not summary.get("smallest_levels") and not is_open:
        yield (
            "Give mtu more levels, and the study names the smallest sufficient one",
            "framegauge study --preset levels",
        )
    if not summary.get("competitors"):
        yield "Vary what may do as well in the same study, such as offloads: [off, on]"
    if evidence.is_simulated(summary):
        yield "Run it with real kernels: the same file with testbed: {kind: rack}, and fewer hosts if it has many"
    if summary["scope"] != "measured":
        yield "Measure on hosts of your own network", "framegauge examples ssh-pair --copy ."
