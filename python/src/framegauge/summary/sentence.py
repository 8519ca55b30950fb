"""The answer of a study in one sentence, and the three numbers behind it, for readers who have to decide.

The kind of answer follows from the verdicts on treatments alone (A/A controls can only make a study suspect):

    an A/A control differs, or runs were not
    lost at random in a quarter of the
    comparisons                                suspect
    as many could not be judged                no answer
    half or more are undecided                 undecided
    all others better / worse / inside         yes / no / no practical difference, and how many are undecided
    better and worse, or one of them and
    inside                                     it depends, and on what, if one thing explains it;
                                               some metrics better and the others inside is yes
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.summary import words

__all__ = ["Answer", "Kind", "Number", "answer", "numbers"]

Verdict = Mapping[str, Any]  # an entry of the summary's `verdicts`


class Kind(enum.StrEnum):
    """The kind of an answer; its value is how the sentence begins."""

    YES = "Yes"
    NO = "No"
    NO_DIFFERENCE = "No practical difference"
    DEPENDS = "It depends"
    UNDECIDED = "Undecided"
    SUSPECT = "Suspect"
    NO_ANSWER = "No answer"


@dataclass(frozen=True)
class Answer:
    """An answer: the sentence, which begins with its kind."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Number:
    """One figure behind the answer, as printed: its label, the change, the interval, and both values.

    The interval of the largest of several holds for all of them at once (95 %): chosen for its size, it would often lie
    outside of its own.
    """

    label: str
    change: str
    interval: str
    values: str


BETTER, WORSE, INSIDE, UNDECIDED = "better", "worse", "no practical difference", "undecided"
_SETTLED = (BETTER, WORSE, INSIDE)
_WHAT = {
    "stream": "bulk transfers", "iperf3": "iperf3 transfers", "ftp": "FTP transfers", "rr": "requests",
    "mixed": "requests alongside bulk transfers",
}  # fmt: skip
# By metric: a regular verb, what follows it if the verdict is better, and if it is worse.
_PHRASES = {
    "goodput": ("move", "{what} {x} faster", "{what} {x} more slowly"),
    "completion_time": ("let", "{what} finish in {x} less time", "{what} take {x} more time"),
    "fairness": ("share", "the link {x} more evenly", "the link {x} less evenly"),
    "smallest_goodput": ("move", "the slowest flow {x} faster", "the slowest flow {x} more slowly"),
    "transactions": ("give", "{x} more transactions per second", "{x} fewer transactions per second"),
    "latency_p50": ("give", "{what} {x} less latency in the median", "{what} {x} more latency in the median"),
    "latency_p99": ("give", "{what} {x} less latency at 99 %", "{what} {x} more latency at 99 %"),
    "latency_p999": ("give", "{what} {x} less latency at 99.9 %", "{what} {x} more latency at 99.9 %"),
    **{
        f"{side}_{name}": (
            "cost", f"the {side} {{x}} {less} {noun} per gigabyte", f"the {side} {{x}} more {noun} per gigabyte",
        )
        for side in ("receiver", "sender")
        for name, less, noun in (
            ("cpu_cost", "less", "CPU time"), ("instructions", "fewer", "instructions"), ("cycles", "fewer", "cycles"),
        )
    },
    # These come from files of other tools.
    **{
        f"{side}_cpu_cost": (
            "cost", f"{end} {{x}} less CPU time per gigabyte", f"{end} {{x}} more CPU time per gigabyte",
        )
        for side, end in (("local", "the local end"), ("remote", "the far end"))
    },
    "retransmits": ("cause", "{x} fewer retransmits per gigabyte", "{x} more retransmits per gigabyte"),
}  # fmt: skip


def answer(summary: Mapping[str, Any]) -> Answer:
    """The answer to the question of a summary."""
    treated = [each for each in summary["verdicts"] if not words.is_control(each)]
    if (reason := _why_suspect(summary)) is not None:
        return _answer(Kind.SUSPECT, f"this study is not evidence, because {reason}")
    if (reason := _why_not_judged(summary, treated)) is not None:
        return _answer(Kind.NO_ANSWER, reason)
    subject = _Subject(summary, treated)
    undecided = [each for each in treated if each["verdict"] == UNDECIDED]
    settled = [each for each in treated if each["verdict"] in _SETTLED]
    lost = len(treated) - len(settled) - len(undecided)
    if lost == len(treated):
        return _answer(Kind.NO_ANSWER, "no comparison has a verdict")
    why = "because too many of their runs were lost, or not at random"
    rest = f"; no verdict in {lost} of {len(treated)} comparisons, {why}" if lost else ""
    if 2 * len(undecided) >= len(settled) + len(undecided):
        return _answer(Kind.UNDECIDED, _undecided(subject, settled, undecided) + rest)
    kinds = [kind for kind in _SETTLED if any(each["verdict"] == kind for each in settled)]
    rest = (f"; undecided in {len(undecided)} of {len(treated)} comparisons" if undecided else "") + rest
    so_far = ", as far as decided" if undecided else ""
    if kinds == [INSIDE]:
        return _answer(Kind.NO_DIFFERENCE, subject.stays_inside(settled) + rest, so_far)
    by_metric = _grouped(settled, ("metric",))
    if len(kinds) == 1 or (INSIDE in kinds and len(kinds) == 2 and by_metric is not None):
        won = [each for each in settled if each["verdict"] == kinds[0]]
        inside = [words.metric(metric) for metric in _metrics(settled) if metric not in _metrics(won)]
        tail = f"; no practical difference in {_join(inside)}" if inside else _in_all(won, treated)
        kind = Kind.YES if kinds[0] == BETTER else Kind.NO
        return _answer(kind, subject.does(won) + tail + rest, so_far)
    on, text = _depends(subject, settled, len(treated))
    return _answer(Kind.DEPENDS, text + rest, on)


def numbers(summary: Mapping[str, Any]) -> list[Number]:
    """Up to three figures: the largest and the smallest effect on the first metric, or a second metric; and the A/A
    control that differs most, which shows what the experiment measures where nothing was changed."""
    judged = [each for each in summary["verdicts"] if each["ratio"] is not None]
    judged = [each for each in judged if each["verdict"] in (*_SETTLED, UNDECIDED)] or judged
    treated = [each for each in judged if not words.is_control(each)]
    controls = [each for each in judged if words.is_control(each)]
    chosen: list[tuple[str, Verdict]] = []
    for metric in _metrics(treated):
        mine = sorted((each for each in treated if each["metric"] == metric), key=_size)
        several = len(mine) > 1
        chosen.append((f"largest change of {words.metric(metric)}" if several else words.metric(metric), mine[-1]))
        if several:
            chosen.append((f"smallest change of {words.metric(metric)}", mine[0]))
    chosen = chosen[: 2 if controls else 3]
    if controls:
        furthest = max(controls, key=_size)
        chosen.append((f"A/A control (nothing changed), {words.metric(furthest['metric'])}", furthest))
    return [_number(label, each) for label, each in chosen]


def _answer(kind: Kind, rest: str, more: str = "") -> Answer:
    return Answer(kind, f"{kind}{more}: {rest}.")


def _size(verdict: Verdict) -> float:
    """The distance of a ratio from 1, as a factor above 1 in either direction."""
    ratio = float(verdict["ratio"])
    return max(ratio, 1 / ratio)


def _number(label: str, verdict: Verdict) -> Number:
    values = " → ".join(
        words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment")
    )
    levels = words.levels(verdict["treatment"]) + (" again" if words.is_control(verdict) else "")
    interval = verdict.get("together") or verdict["ci95"]
    return Number(
        label,
        words.change(verdict["ratio"], interval),
        words.change_interval(interval),
        f"{values} ({words.of_cell(verdict)}; {words.levels(verdict['baseline'])} → {levels})",
    )


def _why_suspect(summary: Mapping[str, Any]) -> str | None:
    doubtful = [each for each in summary["verdicts"] if each["verdict"] == "suspect"]
    if not doubtful or (summary["faithful"] and not summary.get("suspect")):
        return None
    # Older summaries lack the key `suspect`; their verdicts' warnings hold the reason.
    lines = [line for each in doubtful for line in each["warnings"][:1]]
    reasons = [*summary.get("suspect", ()), *lines, "a verdict is suspect"]
    return str(reasons[0])


def _why_not_judged(summary: Mapping[str, Any], treated: Sequence[Verdict]) -> str | None:
    lost = [each for each in summary["verdicts"] if each["verdict"] == "not judged"]
    if treated and (not lost or summary["faithful"]):
        return None
    if not lost:
        lacking = [f"{words.metric(each['metric'])}: {each['why']}" for each in summary.get("not_measured", ())]
        return "nothing was compared" + (f", because nothing was measured ({lacking[0]})" if lacking else "")
    count = "nothing" if len(lost) == len(summary["verdicts"]) else f"{len(lost)} of {len(summary['verdicts'])}"
    text = f"{count} could be judged" if count == "nothing" else f"{count} comparisons could not be judged"
    why = lost[0]["warnings"][:1]
    reasons = [reason for run in summary.get("excluded", ()) for reason in run["reasons"]]
    first = f"; reason of the first excluded run: {reasons[0]}" if reasons else ""
    return text + (f" ({why[0]})" if why else "") + first


class _Subject:
    """The two sides of the comparison, and the place: "jumbo frames (MTU 9000)", "MTU 1500", "here"."""

    def __init__(self, summary: Mapping[str, Any], treated: Sequence[Verdict]) -> None:
        self.here = "on this invented network" if summary["scope"] == "invented" else "here"
        self.baseline = words.levels(treated[0]["baseline"])
        names = list(dict.fromkeys(words.levels(each["treatment"]) for each in treated))
        mtus = [each["treatment"].get("mtu") for each in treated]
        self.is_plural = all(isinstance(mtu, int) and mtu > 1500 for mtu in mtus)
        together = names[0] + "".join(f", {name.removeprefix('MTU ')}" for name in names[1:])
        self.name = f"jumbo frames ({together})" if self.is_plural else _join(names, "or")

    def verb(self, verb: str) -> str:
        """The verb that agrees with the name."""
        return verb if self.is_plural else f"{verb}s"

    @property
    def against(self) -> str:
        """The end of a sentence: the place, and the baseline."""
        return f"{self.here}, compared with {self.baseline}"

    def does(self, won: Sequence[Verdict]) -> str:
        """The effect of the treatment on the first metric of verdicts that are all better, or all worse."""
        metric = _metrics(won)[0]
        mine = [each for each in won if each["metric"] == metric]
        better = won[0]["verdict"] == BETTER
        verb, *texts = _PHRASES[metric]
        what = _join(list(dict.fromkeys(_WHAT.get(str(each["workload"]), str(each["workload"])) for each in mine)))
        text = texts[0 if better else 1].format(what=what, x=_range([each["ratio"] for each in mine]))
        return f"{self.name} {self.verb(verb)} {text} {self.against}"

    def stays_inside(self, found: Sequence[Verdict]) -> str:
        """The sentence for verdicts that are all no practical difference."""
        margins = {each["metric"]: each.get("margin") for each in found}
        said = [f"{words.margin(margin or 0)} in {words.metric(name)}" for name, margin in margins.items() if margin]
        text = f" ({_join(said)})" if said else ""
        where = f" in all {len(found)} comparisons" if len(found) > 1 else ""
        return f"{self.name} {self.verb('stay')} within the margin{text}{where} {self.against}"

    def comes_out(self, kind: str) -> str:
        """The verb with a verdict: "are better", "makes no practical difference"."""
        if kind == INSIDE:
            return f"{self.verb('make')} no practical difference"
        return f"{'are' if self.is_plural else 'is'} {kind}"


def _in_all(won: Sequence[Verdict], of: Sequence[Verdict]) -> str:
    if len(of) < 2:
        return ""
    return f"; {won[0]['verdict']} in " + (f"all {len(of)} comparisons" if len(won) == len(of) else f"{len(won)}")


def _undecided(subject: _Subject, settled: Sequence[Verdict], undecided: Sequence[Verdict]) -> str:
    matches = [re.search(r"about (\d+) more block", line) for each in undecided for line in each["warnings"]]
    blocks = [int(match[1]) for match in matches if match]
    more = ""
    if len(blocks) == len(undecided):
        more = f"; about {max(blocks)} more block{'' if max(blocks) == 1 else 's'} would settle it"
    if not settled:
        return f"these runs cannot tell whether {subject.name} {subject.verb('help')} {subject.against}{more}"
    total = len(settled) + len(undecided)
    return f"{_counts(subject, settled, total)} {subject.against}, undecided in {len(undecided)}{more}"


def _counts(subject: _Subject, settled: Sequence[Verdict], total: int) -> str:
    counts = [(kind, sum(each["verdict"] == kind for each in settled)) for kind in _SETTLED]
    said = [f"{subject.comes_out(kind)} in {count}" for kind, count in counts if count]
    said[0] += f" of {total} comparisons"
    return f"{subject.name} {_join(said)}"


def _depends(subject: _Subject, settled: Sequence[Verdict], total: int) -> tuple[str, str]:
    """What it depends on, if the levels of one thing explain all verdicts; otherwise the number of each verdict."""
    for path, on, at in _things(settled):
        groups = _grouped(settled, path)
        if groups is not None:
            said = [
                f"{subject.comes_out(kind)} {_join([at(each) for each in levels])}" for kind, levels in groups.items()
            ]
            return f" on {on}", f"{subject.name} {_join(said)} {subject.against}"
    outside = [each for each in settled if each["verdict"] != INSIDE]
    extreme = max((each for each in outside if each["metric"] == _metrics(outside)[0]), key=_size)
    most = (
        f"the largest change of {words.metric(extreme['metric'])} is {words.change(extreme['ratio'], extreme['ci95'])}"
    )
    return "", (
        f"{_counts(subject, settled, total)} {subject.against}; "
        f"{most} ({words.of_cell(extreme)}, {words.levels(extreme['treatment'])})"
    )


def _things(settled: Sequence[Verdict]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """The things that verdicts may depend on: the path of each in a verdict, its name, and its levels in words."""
    treatment = next(name for name in settled[0]["treatment"] if name != "estimate")
    yield ("treatment", treatment), f"the {words.factor(treatment)}", (
        lambda level: "with " + words.levels({treatment: level})
    )  # fmt: skip
    yield ("metric",), "the metric", lambda level: "in " + words.metric(level)
    yield ("workload",), "the workload", lambda level: "for " + level
    for name in dict.fromkeys(name for each in settled for name in each["conditions"]):
        if all(name in each["conditions"] for each in settled):
            yield ("conditions", name), f"the {words.factor(name)}", (
                lambda level, name=name: "with " + words.condition(name, level)
            )  # fmt: skip


def _grouped(settled: Sequence[Verdict], path: Sequence[str]) -> dict[str, list[Any]] | None:
    """The levels at `path` by verdict, if all verdicts at each level are the same; otherwise None."""
    found: dict[str, tuple[Any, set[str]]] = {}
    for each in settled:
        level: Any = each
        for name in path:
            level = level[name]
        found.setdefault(json.dumps(level, sort_keys=True), (level, set()))[1].add(each["verdict"])
    if len(found) < 2 or any(len(kinds) > 1 for _, kinds in found.values()):
        return None
    groups: dict[str, list[Any]] = {}
    for kind in _SETTLED:
        if levels := [level for level, kinds in found.values() if kind in kinds]:
            groups[kind] = levels
    return groups


def _metrics(found: Sequence[Verdict]) -> list[str]:
    return list(dict.fromkeys(each["metric"] for each in found))


def _range(ratios: Sequence[float]) -> str:
    """The range of ratios on the same side of 1: "5.3 %", or "5.3 % to 19 %"."""
    low, high = words.shares([min(sizes := [abs(ratio - 1) for ratio in ratios]), max(sizes)])
    return low if low == high else f"{low} to {high}"


def _join(names: Sequence[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
