"""What makes an answer trustworthy, and what it does not cover: lines of text from a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from framegauge.printable import sentence
from framegauge.summary import advice, losses, units, unread, words

__all__ = [
    "LEAVE_TIME",
    "NO_TIME",
    "brief",
    "how_sure",
    "is_simulated",
    "lacks_cpu",
    "limits",
    "more_blocks",
    "to_change",
    "would_decide",
]

UNLIKELY = 0.01
NO_TIME = "The CPUs had no time left: other programs ran here, or the study asks for more than this machine can do"
LACKING = ("idle CPU (", "CPU time to spare (", "programs of a host waited for a CPU")  # reasons of that kind
LEAVE_TIME = "Let nothing else run, or choose a lower link.rate or fewer clients, so that the network is the limit"
_SETTLED = {"better", "worse", "no practical difference", "not worse"}
_SCOPES = {
    "measured": "Measured: on your own hosts as they were at the time; other traffic on them is part of the figures",
    "emulated": "Emulated: real Linux TCP on a network emulated on this machine, without a real NIC or switch",
    "simulated": "Simulated: every packet, by a rack's switches and a model of Linux TCP in virtual time, where hosts "
    "compute in no time; nothing was measured",
    "invented": "Invented: figures of the fake testbed, made up for trying things out; not evidence about any network",
}


def how_sure(summary: Mapping[str, Any]) -> list[str]:
    """The error of all verdicts together, how the study ended, and the outcome of its controls and runs."""
    parts = (_family, _stopping, _more, _controls, _unseen, _positions, _runs, _rules)
    return [line for part in parts for line in part(summary)]


def brief(summary: Mapping[str, Any]) -> list[str]:
    """The error of all verdicts together, and the outcome of the controls."""
    return [line for part in (_family, _controls) for line in part(summary)]


def more_blocks(summary: Mapping[str, Any]) -> int | None:
    """How many more blocks may decide what a study that ended as planned left open; None if that is not known."""
    stopping = summary.get("stopping") or {}
    if not summary["faithful"] or stopping.get("blocks", 0) < (stopping.get("planned_blocks") or 1):
        return None
    treated = [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]
    return advice.more_blocks([verdict for verdict in treated if verdict["verdict"] == "undecided"])


def is_simulated(summary: Mapping[str, Any]) -> bool:
    """Whether it was simulated, and not run by any kernel."""
    return str(summary["scope"]) == "simulated"


def lacks_cpu(summary: Mapping[str, Any]) -> bool:
    """Whether it is no evidence, and most of its excluded runs left the CPUs no idle time (evidence/fidelity.py)."""
    excluded = summary.get("excluded", ())
    lacking = sum(any(sign in reason for reason in run["reasons"] for sign in LACKING) for run in excluded)
    return not summary["faithful"] and 2 * lacking > len(excluded)


def to_change(summary: Mapping[str, Any]) -> str | None:
    """What to change before a study that is no evidence is run again; None if it is evidence, or gives no reason."""
    if summary["faithful"] and summary["verdicts"]:
        return None
    if lacks_cpu(summary):
        return LEAVE_TIME
    if summary.get("suspect") and not summary.get("excluded"):
        return f"Find what else acted on these hosts meanwhile, and let it rest: {summary['suspect'][0]}"
    if excluded := summary.get("excluded", ()):
        reason = next((reason for run in excluded for reason in run["reasons"]), "no reason given")
        return f"Remove why {len(excluded)} of its runs were excluded, the first because of {reason}"
    lost = [line for item in summary["verdicts"] if item["verdict"] in losses.NO_VERDICT for line in item["warnings"]]
    why = next(iter([*unread.lines(summary), *lost]), None)
    return None if why is None else f"Make its runs long enough to measure what was asked, or ask less: {why}"


def limits(summary: Mapping[str, Any]) -> list[str]:
    """The scope of the figures, what was not measured, and what weakens the verdicts."""
    lines = [_SCOPES.get(summary["scope"], f"Scope: {summary['scope']}")]
    lines += unread.lines(summary)
    lines += list(summary.get("caveats", ()))
    lines += dict.fromkeys(
        line for verdict in summary["verdicts"] for line in verdict["warnings"] if line.startswith("degraded: ")
    )
    return list(map(sentence, lines))


def _family(summary: Mapping[str, Any]) -> Iterator[str]:
    family = summary.get("family")
    if not family or not family["treatments"]:
        return
    count, error = family["treatments"], units.error(family["error"])
    if count == 1:
        yield f"At most {error} of such studies have a wrong verdict"
    else:
        yield f"At most {error} of such studies have a wrong one among their {count} verdicts (Holm)"


def _stopping(summary: Mapping[str, Any]) -> Iterator[str]:
    stopping = summary.get("stopping")
    if not stopping:
        return
    blocks, planned = stopping["blocks"], stopping["planned_blocks"]
    progress = f"{min(blocks, planned)} of {planned} planned blocks" if planned else f"{blocks} blocks"
    if planned and blocks > planned:
        more = blocks - planned
        yield (
            f"{more} more block{'s were' if more > 1 else ' was'} run than planned, to tell whether the excluded runs "
            "were lost at random; the measured values had no part in that decision"
        )
    if before := stopping.get("extended_from"):
        ends = words.joined([str(end) for end in before], "and then")
        yield (
            f"Planned for {ends} blocks, and extended to {planned} after its verdicts were seen, which gives it more "
            f"chances to be wrong: {units.error(summary['family']['error'])} instead of 5 %"
        )
    early = bool(planned) and blocks < planned
    if stopping["stop"] != "settled":
        wording = (f"Ended after {progress}", "which were") if early else (f"{progress} were run", "as")
        yield wording[0] if stopping.get("extended_from") else f"{wording[0]}, {wording[1]} fixed beforehand"
        return
    note = "the intervals account for the repeated looks at the results"
    treated = [entry["verdict"] for entry in summary["verdicts"] if not words.is_control(entry)]
    if early and all(verdict in _SETTLED for verdict in treated):
        yield f"Stopped after {progress}, when everything was settled; {note}"
    elif early:
        yield f"Ended after {progress}, before everything was settled; {note}"
    else:
        yield f"{progress} were run; {note}"


def _more(summary: Mapping[str, Any]) -> Iterator[str]:
    """How to go on, where more blocks may decide what is open."""
    count = more_blocks(summary)
    if count is not None and is_simulated(summary):
        seeds = summary["stopping"]["planned_blocks"] + count
        yield f"{would_decide(count)}: framegauge simulate FILE --seeds {seeds}"
    elif count is not None:
        yield (
            f"{would_decide(count)}: framegauge study --resume --blocks {count} --out FOLDER, which says first what "
            "that adds to the chance of a wrong verdict"
        )


def would_decide(count: int) -> str:
    """What so many more blocks may do."""
    blocks = f"{count} more block{'' if count == 1 else 's'}"
    return f"About {blocks} would decide each open comparison with 80 % assurance"


def _controls(summary: Mapping[str, Any]) -> Iterator[str]:
    controls = [verdict for verdict in summary["verdicts"] if words.is_control(verdict)]
    if not controls and is_simulated(summary):
        yield "No A/A control, as equal scenarios have equal results"
        return
    if not controls:
        yield "No A/A control: there is no check that two identical arms come out alike"
        return
    cells = words.Cells(summary["verdicts"])
    strayed = [verdict for verdict in controls if verdict["verdict"] in ("better", "worse", "suspect")]
    unequal = [verdict for verdict in controls if verdict not in strayed and _excludes_equality(verdict)]
    if strayed:
        all_differ = all(verdict["verdict"] != "suspect" or _excludes_equality(verdict) for verdict in strayed)
        lost = "" if all_differ else ", or lost runs not at random"
        yield f"{_share(strayed, controls)} came out different{lost}{_furthest(strayed, cells)}"
    if unequal:
        verb = "has" if len(unequal) == 1 else "have"
        furthest = _furthest(unequal, cells)
        yield f"{_share(unequal, controls)} {verb} an interval without equality{furthest}: {_why_heard(unequal)}"
    if not strayed and not unequal:
        yield f"A/A (the baseline against itself): none differs{_alike(controls)}"


def _alike(controls: Sequence[Mapping[str, Any]]) -> str:
    """What controls show of which none differs. That some are undecided is a matter of few blocks, and no fault."""
    counts = Counter(words.verdict(control) for control in controls)
    equal, seen = counts.pop("no practical difference", 0), counts.pop("no difference seen", 0)
    others = [f"{count} {verdict}" for verdict, count in counts.most_common()]
    rest = f", {seen} in too few blocks to prove it" if seen else ""
    return "; " + ", ".join([f"{equal} of {len(controls)} proved equal{rest}", *others])


def _share(affected: Sequence[Mapping[str, Any]], controls: Sequence[Mapping[str, Any]]) -> str:
    subject = "The A/A control" if len(controls) == 1 else f"{len(affected)} of {len(controls)} A/A controls"
    return f"{subject} (the baseline against itself)"


def _excludes_equality(verdict: Mapping[str, Any]) -> bool:
    interval = verdict["ci95"]
    return interval is not None and not interval[0] <= 1 <= interval[1]


def _furthest(controls: Sequence[Mapping[str, Any]], cells: words.Cells) -> str:
    """The control that differs most, in words."""
    known = [control for control in controls if control["ratio"] is not None]
    if not known:
        return ""
    most = max(known, key=lambda control: max(control["ratio"], 1 / control["ratio"]))
    own_interval = f"{words.change_interval(most['ci95'])} by itself"
    change = f"{words.change(most['ratio'], most['ci95'])}, {own_interval}"
    subject = ", ".join(filter(None, (words.metric(most["metric"]), cells.of(most))))
    return f" ({subject}: {change})"


def _why_heard(controls: Sequence[Mapping[str, Any]]) -> str:
    if all(control["verdict"] == "no practical difference" for control in controls):
        return "within the margin, where a difference does not matter"
    return "no more than chance explains among so many"


def _unseen(summary: Mapping[str, Any]) -> Iterator[str]:
    """What "no practical difference" cannot exclude. Older summaries lack the key."""
    shares = [verdict["unseen_stalls"] for verdict in summary["verdicts"] if verdict.get("unseen_stalls") is not None]
    treated = [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]
    if shares and any(verdict["verdict"] == "no practical difference" for verdict in treated):
        yield (
            f"No practical difference is about what these runs show: stalls in up to {100 * max(shares):.0f} % of the "
            "runs of an arm cannot be excluded"
        )


def _positions(summary: Mapping[str, Any]) -> Iterator[str]:
    """The positions that matter: their effect is no chance, and as large as half the margin."""
    margins = {slot["metric"]: slot.get("margin") or 0.0 for slot in summary["verdicts"]}
    for slot in summary.get("positions", ()):
        size = max(slot["ratios"]) / min(slot["ratios"]) - 1
        if slot["chance"] < UNLIKELY and size > margins.get(slot["metric"], 0.0) / 2:
            text = ", ".join(f"{_ordinal(number)} {words.change(ratio)}" for number, ratio in enumerate(slot["ratios"]))
            yield (
                f"The position of a run among those of its block changes its {words.metric(slot['metric'])}: {text}; "
                f"of no ratio is more than {words.margin(round(abs(slot['tilt']), 4))} due to that"
            )


def _ordinal(number: int) -> str:
    return ("first", "second", "third")[number] if number < 3 else f"{number + 1}th"


def _rules(summary: Mapping[str, Any]) -> Iterator[str]:
    rules = summary.get("rules")
    if rules and rules["before"]:
        now, before = rules["version"], rules["before"]
        yield f"Judged by rules of version {now}; this folder was judged before by version {before}"


def _runs(summary: Mapping[str, Any]) -> Iterator[str]:
    excluded = len(summary.get("excluded", ()))
    runs = "run was" if excluded == 1 else "runs were"
    yield (f"{excluded} {runs} excluded, with reasons below" if excluded else "No run was excluded") + (
        "" if summary["faithful"] else "; the study as a whole is not faithful"
    )
    if lacks_cpu(summary):
        yield f"{NO_TIME}. {LEAVE_TIME}"
    if (lost := losses.counted(summary["verdicts"])) and summary["faithful"]:
        yield f"No verdict in {lost}: too many of their runs were lost, or not at random"
