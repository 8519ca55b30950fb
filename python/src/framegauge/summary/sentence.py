"""The answer of a study in one sentence, and the three numbers behind it, for readers who have to decide.

The kind of answer follows from the verdicts on treatments alone (A/A controls can only make a study suspect):

    an A/A control differs, or runs were not
    lost at random in a quarter of the
    comparisons                                suspect
    as many could not be judged                no answer
    nothing is better or worse, and half or
    more are undecided                         undecided
    all others better / worse / inside         yes / no / no practical difference, as far as decided
    better and worse, or one of them and
    inside                                     it depends, and on what, if one thing explains it;
                                               some metrics better and the others inside is yes
    where no more is asked than whether the
    treatment is not worse: never worse        yes
    a workload does not work at some level     no if nothing is better elsewhere, else it depends on the level; no
                                               answer where it works at no level

The sentence says what is better, where and by how much; then what is worse; then where there is no practical
difference; then what is open, with the intervals; and then what does not work.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge import loads
from framegauge.summary import advice, claims, failed, hosts, losses, phrases, unasked, unread, words
from framegauge.summary.claims import Claim, metrics_of
from framegauge.summary.intervals import shown

__all__ = ["Answer", "Kind", "Number", "answer", "numbers"]

MOST_CLAIMS = 3  # of what is better, or worse; of more the metrics are named
MOST_OTHERS = 2  # of what makes no difference, or is open
_BY = " by more than the margin"

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
    """An answer: the sentence, which begins with its kind; that of a study is a Kind."""

    kind: enum.StrEnum
    text: str


@dataclass(frozen=True)
class Number:
    """One figure behind the answer, as printed: its label, the change, the interval, and both values."""

    label: str
    change: str
    interval: str
    values: str


BETTER, WORSE, INSIDE, UNDECIDED = "better", "worse", "no practical difference", "undecided"
NOT_WORSE, BROKEN = "not worse", "does not work"
NOT_JUDGED = ("not judged",)
_SETTLED = (BETTER, WORSE, INSIDE, NOT_WORSE)


def answer(summary: Mapping[str, Any]) -> Answer:
    """The answer to the question of a summary."""
    comparisons = treated = [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]
    if (reason := _why_suspect(summary)) is not None:
        return _answer(Kind.SUSPECT, f"this study is not evidence, because {reason}")
    if (reason := _why_not_judged(summary, treated)) is not None:
        return _answer(Kind.NO_ANSWER, reason)
    broken = [verdict for verdict in treated if verdict["verdict"] == BROKEN]
    treated = [verdict for verdict in treated if verdict["verdict"] != BROKEN]
    if not treated:
        works_before = not all(map(failed.fails_before, broken))
        return _answer(Kind.NO if works_before else Kind.NO_ANSWER, failed.text(summary, broken))
    undecided = [verdict for verdict in treated if verdict["verdict"] == UNDECIDED]
    settled = [verdict for verdict in treated if verdict["verdict"] in _SETTLED]
    lost = len(treated) - len(settled) - len(undecided)
    if lost == len(treated) and not broken:
        return _answer(Kind.NO_ANSWER, "no comparison has a verdict")
    why = "because too many of their runs were lost, or not at random"
    rest = f"; no verdict in {losses.counted(comparisons)}, {why}" if lost else ""
    text = _Told(summary, treated).text() + rest
    kind, on = _kind(settled, undecided, _asks_no_more(summary))
    if any(map(hosts.takes_back, summary.get("hosts", ()))):
        kind, on = Kind.DEPENDS, " on what hosts take for packets"
    if line := unasked.lines(summary.get("unasked", ())):
        text += f"; but {line}"
        kind, on = (Kind.DEPENDS, " on the metric") if kind is Kind.YES else (kind, on)
    if broken:
        text += f"; but {failed.text(summary, broken)}"
        works = any(verdict["verdict"] == BETTER for verdict in settled)
        kind, on = (Kind.DEPENDS, f" on {_treatment_of(broken)}") if works else (Kind.NO, "")
    return _answer(kind, text, on + (", as far as decided" if undecided and kind is not Kind.UNDECIDED else ""))


def _treatment_of(verdicts: Sequence[Verdict]) -> str:
    return f"the {words.factor(next(name for name in verdicts[0]['treatment'] if name != 'estimate'))}"


def _asks_no_more(summary: Mapping[str, Any]) -> bool:
    """Whether a study asks no more than whether the treatment is not worse."""
    return bool(summary.get("ask") == NOT_WORSE)


def _kind(settled: Sequence[Verdict], undecided: Sequence[Verdict], not_worse: bool) -> tuple[Kind, str]:
    """The kind of the answer, and what it depends on; `not_worse`: no more is asked."""
    kinds = [kind for kind in _SETTLED if any(verdict["verdict"] == kind for verdict in settled)]
    if not set(kinds) & {BETTER, WORSE} and len(undecided) >= len(settled):
        return Kind.UNDECIDED, ""
    if not_worse and WORSE not in kinds:
        return Kind.YES, ""
    if kinds == [INSIDE]:
        return Kind.NO_DIFFERENCE, ""
    if len(kinds) == 1 or (INSIDE in kinds and len(kinds) == 2 and _explains(settled, ("metric",))):
        return (Kind.YES if kinds[0] == BETTER else Kind.NO), ""
    dependence = next((f" on {name}" for path, name in _things(settled) if _explains(settled, path)), "")
    return Kind.DEPENDS, dependence


def numbers(summary: Mapping[str, Any]) -> list[Number]:
    """Up to three figures: the largest and the smallest effect on the first metric, or a second metric; and the A/A
    control that differs most, which shows what the experiment measures where nothing was changed. Only that control if
    it makes the study suspect."""
    judged = [verdict for verdict in summary["verdicts"] if verdict["ratio"] is not None]
    judged = [verdict for verdict in judged if verdict["verdict"] in (*_SETTLED, UNDECIDED)] or judged
    treated = [verdict for verdict in judged if not words.is_control(verdict)]
    controls = [verdict for verdict in judged if words.is_control(verdict)]
    differing = [
        verdict for verdict in summary["verdicts"] if verdict["verdict"] == "suspect" and verdict["ratio"] is not None
    ]
    if differing := list(filter(words.is_control, differing)):
        treated, controls = [], differing
    chosen: list[tuple[str, Verdict]] = []
    for metric in metrics_of(treated):
        changes = sorted((verdict for verdict in treated if verdict["metric"] == metric), key=_size)
        several = len(changes) > 1
        chosen.append((f"largest change of {words.metric(metric)}" if several else words.metric(metric), changes[-1]))
        if several:
            chosen.append((f"smallest change of {words.metric(metric)}", changes[0]))
    chosen = chosen[: 2 if controls else 3]
    if controls:
        furthest = max(controls, key=_size)
        chosen.append((f"A/A control (nothing changed), {words.metric(furthest['metric'])}", furthest))
    cells = words.Cells(summary["verdicts"])
    several = len({claims.level_of(verdict) for verdict in treated}) > 1
    return [_number(label, verdict, cells, several) for label, verdict in chosen]


def _answer(kind: Kind, rest: str, more: str = "") -> Answer:
    return Answer(kind, f"{kind}{more}: {rest}.")


def _size(verdict: Verdict) -> float:
    """The distance of a ratio from 1, as a factor above 1 in either direction."""
    ratio = float(verdict["ratio"])
    return max(ratio, 1 / ratio)


def _number(label: str, verdict: Verdict, cells: words.Cells, several: bool) -> Number:
    """One figure; the levels of the treatment are named if it has `several`."""
    values = " → ".join(
        words.quantity(verdict[side]["estimate"], verdict["unit"]) for side in ("baseline", "treatment")
    )
    levels = " → ".join(words.levels(verdict[side]) for side in ("baseline", "treatment"))
    parts = [cells.of(verdict), levels if several and not words.is_control(verdict) else ""]
    where = "; ".join(filter(None, parts))
    interval = shown(verdict)
    return Number(
        label,
        words.change(verdict["ratio"], interval),
        words.change_interval(interval),
        f"{values} ({where})" if where else values,
    )


def _why_suspect(summary: Mapping[str, Any]) -> str | None:
    doubtful = [verdict for verdict in summary["verdicts"] if verdict["verdict"] == "suspect"]
    if not doubtful or (summary["faithful"] and not summary.get("suspect")):
        return None
    # Older summaries lack the key `suspect`; their verdicts' warnings hold the reason.
    lines = [line for verdict in doubtful for line in verdict["warnings"][:1]]
    reasons = [*summary.get("suspect", ()), *lines, "a verdict is suspect"]
    return str(reasons[0])


def _why_not_judged(summary: Mapping[str, Any], treated: Sequence[Verdict]) -> str | None:
    lost = [verdict for verdict in summary["verdicts"] if verdict["verdict"] == "not judged"]
    if treated and (not lost or summary["faithful"]):
        return None
    if not lost:
        lacking = list(unread.lines(summary))
        return "nothing was compared" + (f", because {lacking[0]}" if lacking else "")
    lost_text = f"{losses.counted(summary['verdicts'], NOT_JUDGED)} could not be judged"
    text = "nothing could be judged" if len(lost) == len(summary["verdicts"]) else lost_text
    why = lost[0]["warnings"][:1]
    reasons = [reason for run in summary.get("excluded", ()) for reason in run["reasons"]]
    first = f"; reason of the first excluded run: {reasons[0]}" if reasons else ""
    return text + (f" ({why[0]})" if why else "") + first


class _Told:
    """The verdicts on treatments, told: "jumbo frames (MTU 9000) move …; but they …; not decided: …"."""

    def __init__(self, summary: Mapping[str, Any], treated: Sequence[Verdict]) -> None:
        self._treated, self._not_worse = treated, _asks_no_more(summary)
        where = "on this invented network" if summary["scope"] == "invented" else "here"
        self._against = f" {where}, compared with {words.subject(treated[0]['baseline'])}"
        self._levels = tuple(dict.fromkeys(map(claims.level_of, treated)))
        mtus = [verdict["treatment"].get("mtu") for verdict in treated]
        self._jumbo = all(isinstance(mtu, int) and mtu > 1500 for mtu in mtus)
        self._named: tuple[str, ...] = ()  # the levels that the last clause is about
        self._is_plural = False

    def text(self) -> str:
        """The whole, without the kind."""
        better, worse = (self._claims(kind) for kind in (BETTER, WORSE))
        inside = self._claims(INSIDE, NOT_WORSE) if self._not_worse else self._claims(INSIDE)
        # Where the interval excludes equality, its direction is known.
        undecided = [claim for way in (1, -1, 0) for claim in self._claims(UNDECIDED, way=way)]
        clauses = list(self._does(better, True)) + list(self._does(worse, False, "but " if better else ""))
        if not clauses and inside:
            clauses.append(self._stays_inside(inside))
        elif inside:
            phrase = f"not worse{_BY}" if self._not_worse else INSIDE
            clauses.append(f"{phrase} in {_places(inside)}")
        elif not clauses:
            clauses.append(f"these runs cannot tell whether {self._name(self._levels, 'or')} {self._verb('help')}")
        clauses[0] += self._against
        if (better or worse) and len(self._treated) > 1 and len({verdict["verdict"] for verdict in self._treated}) == 1:
            clauses.append(f"{BETTER if better else WORSE} in all {len(self._treated)} comparisons")
        if undecided:
            clauses += [f"not decided (95 % intervals, corrected): {_open(undecided)}", *_blocks(undecided)]
        return "; ".join(clauses)

    def _claims(self, *kinds: str, way: int | None = None) -> list[Claim]:
        """The claims of these kinds, in one direction (1: up, -1: down, 0: not known) or any."""
        return claims.claims(
            lambda verdict: verdict["verdict"] in kinds and way in (None, _direction(verdict)), self._treated
        )  # fmt: skip

    def _name(self, levels: tuple[str, ...], last: str = "and") -> str:
        """Levels of the treatment as a subject: "jumbo frames (MTU 4000, 9000)", then "they"; "red and sfq"."""
        jumbo = self._jumbo and (not self._named or levels == self._levels)
        if levels == self._named:
            return "they" if self._is_plural else "it"
        self._named, self._is_plural = levels, jumbo or (len(levels) > 1 and last == "and")
        if jumbo:
            return f"jumbo frames ({', '.join([levels[0], *(level.removeprefix('MTU ') for level in levels[1:])])})"
        return words.alternatives(levels, last)

    def _verb(self, verb: str) -> str:
        return verb if self._is_plural else f"{verb}s"

    def _does(self, claim_list: Sequence[Claim], better: bool, before: str = "") -> Iterator[str]:
        """One clause for each set of levels and each place: what these levels do there to all metrics."""
        groups: dict[tuple[tuple[str, ...], str], list[Claim]] = {}
        for claim in claim_list:
            is_named = not claim.workloads or phrases.names_workload(claim.metric)
            groups.setdefault((claim.levels, claim.place if is_named else claim.at), []).append(claim)
        for number, ((levels, place), group) in enumerate(groups.items()):
            if number == MOST_CLAIMS:
                part = [claim for extra_group in list(groups.values())[MOST_CLAIMS:] for claim in extra_group]
                yield f"also {BETTER if better else WORSE}, in part: {_metrics(part)}"
                return
            name = self._name(levels)
            effects = words.joined([self._done(claim, better) for claim in group[:MOST_CLAIMS]])
            yield f"{before if number == 0 else ''}{name} {effects}{place}"
            if rest := group[MOST_CLAIMS:]:
                yield f"also {BETTER if better else WORSE}{place}: {_metrics(rest)}"

    def _done(self, claim: Claim, better: bool) -> str:
        workloads = list(dict.fromkeys(str(verdict["workload"]) for verdict in claim.found))
        ratios = [float(verdict["ratio"]) for verdict in claim.found]
        is_of_last = all(
            verdict["workload"] == "stream" and loads.waits_for_all("stream", verdict["conditions"])
            for verdict in claim.found
        )
        return phrases.does(claim.metric, workloads, ratios, better, self._is_plural, is_of_last)

    def _stays_inside(self, claim_list: Sequence[Claim]) -> str:
        """The clause if nothing is better or worse."""
        inside_kinds = (INSIDE, NOT_WORSE) if self._not_worse else (INSIDE,)
        if any(verdict["verdict"] not in inside_kinds for verdict in self._treated):
            if self._not_worse:
                return f"{self._name(self._levels)} {self._be()} not worse{_BY} in {_places(claim_list)}"
            return f"{self._name(self._levels)} {self._verb('make')} no practical difference in {_places(claim_list)}"
        margins = {verdict["metric"]: verdict.get("margin") for verdict in self._treated}
        texts = [f"{words.margin(margin or 0)} in {words.metric(name)}" for name, margin in margins.items() if margin]
        text = f" ({words.joined(texts)})" if texts else ""
        where = f" in all {len(self._treated)} comparisons" if len(self._treated) > 1 else ""
        name = self._name(self._levels, "or")
        if self._not_worse:
            return f"{name} {self._be()} not worse{_BY}{text}{where}"
        return f"{name} {self._verb('stay')} within the margin{text}{where}"

    def _be(self) -> str:
        return "are" if self._is_plural else "is"


def _metrics(claim_list: Sequence[Claim]) -> str:
    return words.joined([words.metric(name) for name in dict.fromkeys(claim.metric for claim in claim_list)])


def _places(claim_list: Sequence[Claim]) -> str:
    """Metrics and where: "goodput and completion time with RTT 200 us, and in fairness"."""
    groups: dict[str, list[Claim]] = {}
    for claim in claim_list:
        groups.setdefault(claim.where, []).append(claim)
    texts = [f"{_metrics(group)}{where}" for where, group in groups.items()]
    if rest := [claim for group in list(groups.values())[MOST_OTHERS:] for claim in group]:
        texts[MOST_OTHERS:] = [f"parts of {_metrics(rest)}"]
    return ", and in ".join(texts)


def _open(claim_list: Sequence[Claim]) -> str:
    """What is undecided, with its intervals: "goodput with RTT 200 us (−2.0 % to +9.0 %)"."""
    texts = [f"{words.metric(claim.metric)}{claim.where} ({_hull(claim.found)})" for claim in claim_list[:MOST_OTHERS]]
    if rest := claim_list[MOST_OTHERS:]:
        texts.append(f"and parts of {_metrics(rest)}")
    return ", ".join(texts)


def _hull(verdicts: Sequence[Verdict]) -> str:
    """The interval that decides a verdict, or what those of several lie within, and whether some have none."""
    intervals = [interval for verdict in verdicts if (interval := shown(verdict)) is not None]
    if not intervals:
        return words.change_interval(None)
    ends = words.change_range(min(low for low, _ in intervals), max(high for _, high in intervals))
    if without := len(verdicts) - len(intervals):
        others = "the other" if without == 1 else f"the other {without}"
        return f"{ends} in {len(intervals)} of {len(verdicts)}, no usable interval in {others}"
    return ends if len(verdicts) == 1 else f"all within {ends}"


def _direction(verdict: Verdict) -> int:
    """1 if the interval lies above equality, -1 if below, else 0."""
    low, high = shown(verdict) or (1.0, 1.0)
    return 1 if low > 1 else -1 if high < 1 else 0


def _blocks(claim_list: Sequence[Claim]) -> Iterator[str]:
    """How many more blocks may decide all that is open, if their warnings say so."""
    count = advice.more_blocks([verdict for claim in claim_list for verdict in claim.found])
    if count is not None:
        yield f"about {count} more block{'' if count == 1 else 's'} may decide it"


def _things(settled: Sequence[Verdict]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The things that verdicts may depend on: the path of each in a verdict, and its name."""
    treatment = next(name for name in settled[0]["treatment"] if name != "estimate")
    yield ("treatment", treatment), f"the {words.factor(treatment)}"
    yield ("metric",), "the metric"
    yield ("workload",), "the workload"
    for name in dict.fromkeys(name for verdict in settled for name in verdict["conditions"]):
        if all(name in verdict["conditions"] for verdict in settled):
            yield ("conditions", name), f"the {words.factor(name)}"


def _explains(settled: Sequence[Verdict], path: Sequence[str]) -> bool:
    """Whether all verdicts at each level of what is at this path are the same, and it has several levels."""
    kinds_by_level: dict[str, set[str]] = {}
    for verdict in settled:
        level: Any = verdict
        for name in path:
            level = level[name]
        kinds_by_level.setdefault(json.dumps(level, sort_keys=True), set()).add(verdict["verdict"])
    return len(kinds_by_level) > 1 and all(len(kinds) == 1 for kinds in kinds_by_level.values())
