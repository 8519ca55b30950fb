"""What makes an answer trustworthy, and what it does not cover: lines of text from a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.summary import words

__all__ = ["how_sure", "limits"]

_SETTLED = {"better", "worse", "no practical difference"}
_SCOPES = {
    "measured": "Measured: on your own hosts as they were at the time; other traffic on them is part of the figures",
    "emulated": "Emulated: real Linux TCP on a network emulated on this machine, without a real NIC or switch",
    "invented": "Invented: figures of the fake testbed, made up for trying things out; not evidence about any network",
}


def how_sure(summary: Mapping[str, Any]) -> list[str]:
    """The error of all verdicts together, how the study ended, and the outcome of its controls and runs."""
    return [line for part in (_family, _stopping, _controls, _runs) for line in part(summary)]


def limits(summary: Mapping[str, Any]) -> list[str]:
    """The scope of the figures, what was not measured, and what weakens the verdicts."""
    lines = [_SCOPES.get(summary["scope"], f"Scope: {summary['scope']}")]
    lines += [
        f"{words.metric(each['metric'])} was not measured: {each['why']}" for each in summary.get("not_measured", ())
    ]
    lines += list(summary.get("caveats", ()))
    lines += dict.fromkeys(
        line for each in summary["verdicts"] for line in each["warnings"] if line.startswith("degraded: ")
    )
    return [line[0].upper() + line[1:] for line in lines]


def _family(summary: Mapping[str, Any]) -> Iterator[str]:
    family = summary.get("family")
    if not family or not family["treatments"]:
        return
    count, error = family["treatments"], words.margin(family["error"])
    if count == 1:
        yield f"At most {error} of such studies have a wrong verdict"
    else:
        yield f"At most {error} of such studies have a wrong one among their {count} verdicts (Holm)"


def _stopping(summary: Mapping[str, Any]) -> Iterator[str]:
    stopping = summary.get("stopping")
    if not stopping:
        return
    blocks, planned = stopping["blocks"], stopping["planned_blocks"]
    of = f"{min(blocks, planned)} of {planned} planned blocks" if planned else f"{blocks} blocks"
    if planned and blocks > planned:
        more = blocks - planned
        yield (
            f"{more} more block{'s were' if more > 1 else ' was'} run than planned, to tell whether the excluded runs "
            "were lost at random; the measured values had no part in that decision"
        )
    early = bool(planned) and blocks < planned
    if stopping["stop"] != "settled":
        yield f"Ended after {of}, which were fixed beforehand" if early else f"{of} were run, as fixed beforehand"
        return
    looked = "the intervals account for the repeated looks at the results"
    treated = [each["verdict"] for each in summary["verdicts"] if not words.is_control(each)]
    if early and all(verdict in _SETTLED for verdict in treated):
        yield f"Stopped after {of}, when everything was settled; {looked}"
    elif early:
        yield f"Ended after {of}, before everything was settled; {looked}"
    else:
        yield f"{of} were run; {looked}"


def _controls(summary: Mapping[str, Any]) -> Iterator[str]:
    controls = [each for each in summary["verdicts"] if words.is_control(each)]
    if not controls:
        yield "No A/A control: there is no check that two identical arms come out alike"
        return
    strayed = [each for each in controls if each["verdict"] in ("better", "worse", "suspect")]
    if strayed:
        yield f"{len(strayed)} of {len(controls)} A/A controls came out different, or lost runs not at random"
    else:
        counts = Counter(each["verdict"] for each in controls)
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        yield f"No A/A control (the baseline against itself) came out different: {said}"


def _runs(summary: Mapping[str, Any]) -> Iterator[str]:
    excluded = len(summary.get("excluded", ()))
    runs = "run was" if excluded == 1 else "runs were"
    yield (f"{excluded} {runs} excluded, with reasons below" if excluded else "No run was excluded") + (
        "" if summary["faithful"] else "; the study as a whole is not faithful"
    )
    lost = [each for each in summary["verdicts"] if each["verdict"] in ("suspect", "not judged")]
    if lost and summary["faithful"]:
        of = len(summary["verdicts"])
        yield f"{len(lost)} of {of} comparisons have no verdict: too many of their runs were lost, or not at random"
