"""What facts, checks and a study together say about a larger MTU: do it, or not. Pure.

    paths at the target              what it brings            answer
    a fault                          helps, one subnet clear   do it for this subnet only
                                     anything else             don't
    a NIC's maximum                  anything                  don't
    all carry it                     helps                     do it
                                     nothing, or worse         don't
                                     open, mixed, no study     can't tell
    not known                        nothing, or worse         don't
                                     anything else             can't tell

A path that does not carry the packets forbids a change whatever it would bring, so a fault beats all else. That a
change brings nothing is enough against it, even if no path is known. Nothing but packets that arrived and a study that
is evidence speak for it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.check.judgement.findings import title
from framegauge.check.judgement.groups import subnet
from framegauge.estimate import opaque
from framegauge.estimate.document import MAYBE, NO, UNKNOWN
from framegauge.report.check import findings, matrix
from framegauge.report.decision.model import Choice
from framegauge.summary import judging, words
from framegauge.summary.sentence import answer

__all__ = [
    "EXIT_CODES", "Benefit", "Bound", "Brings", "Conclusion", "Paths", "State", "benefit_of", "bound_of", "conclude",
    "limits", "load_lines", "paths_of", "sufficient",
]  # fmt: skip

Json = Mapping[str, Any]

EXIT_CODES = {Choice.DO_IT: 0, Choice.SUBNET_ONLY: 0, Choice.DO_NOT: 1, Choice.CANNOT_TELL: 2}
NOT_RAISED = "host_interface_too_small"  # what every host is before the change
LEAST_LOAD = 1000  # packets per second of all hosts together: fewer are those of logins and of who watches them
LOADED = (NO, MAYBE, UNKNOWN)  # answers of an estimate for hosts that carried something
MOST_FAULTS = 2  # in the answer


class State(enum.Enum):
    """What is known of the paths at the target."""

    CLEAR = "clear"
    FAULT = "fault"
    UNKNOWN = "unknown"


class Brings(enum.Enum):
    """What is known of the effect."""

    HELPS = "helps"
    NOTHING = "nothing"
    WORSE = "worse"
    MIXED = "mixed"
    OPEN = "open"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Paths:
    """`text` is a clause. `subnets`: where all paths carry the target, though others do not; with their hosts."""

    state: State
    text: str
    subnets: Mapping[str, tuple[str, ...]]

    @property
    def studied(self) -> tuple[str, ...]:
        """The hosts of the largest of the subnets, which are those of a study; the first of several."""
        return max(self.subnets.values(), key=len, default=())


@dataclass(frozen=True)
class Benefit:
    """`text` is a clause."""

    brings: Brings
    text: str


@dataclass(frozen=True)
class Bound:
    """What the load as it is can gain at most, as a clause, and whether that is too little to act on."""

    is_little: bool
    text: str


@dataclass(frozen=True)
class Conclusion:
    """The choice, and the sentence that gives it with its reasons."""

    choice: Choice
    text: str
    subnets: tuple[str, ...] = ()


def conclude(paths: Paths, benefit: Benefit) -> Conclusion:
    """The table at the head of this module."""
    if paths.state is State.FAULT:
        if benefit.brings is Brings.HELPS and paths.subnets:
            named = tuple(name for name, hosts in paths.subnets.items() if set(hosts) <= set(paths.studied))
            where = f"within {words.joined(named)} every pair carries them, and there {benefit.text}"
            others = [name for name in paths.subnets if name not in named]
            besides = [f"{words.joined(others)} could carry them, too, where nothing was measured"] if others else []
            return _of(Choice.SUBNET_ONLY, [where, *besides, paths.text], named)
        return _of(Choice.DO_NOT, [paths.text, *_besides(benefit)])
    if benefit.brings in (Brings.NOTHING, Brings.WORSE):
        return _of(Choice.DO_NOT, [benefit.text, paths.text])
    if benefit.brings is Brings.HELPS and paths.state is State.CLEAR:
        return _of(Choice.DO_IT, [benefit.text, paths.text])
    return _of(Choice.CANNOT_TELL, [benefit.text, paths.text])


def _of(choice: Choice, clauses: Sequence[str], subnets: tuple[str, ...] = ()) -> Conclusion:
    return Conclusion(choice, f"{choice}: {'; '.join(clauses)}.", subnets)


def _besides(benefit: Benefit) -> Iterator[str]:
    if benefit.brings is not Brings.NOT_MEASURED:
        yield f"where they pass, {benefit.text}" if benefit.brings is Brings.HELPS else benefit.text


def paths_of(facts: Json, present: Json | None, target: Json | None, target_mtu: int) -> Paths:
    """What the checks at the present MTU and at the target say, and the limits that NICs state. The document at the
    target is that of raised hosts, if they were raised."""
    if present is not None and present["verdict"] == "fault":
        return Paths(State.FAULT, f"{_headline(present)} as they are, before any change{_named(present)}", {})
    if stated := list(limits(facts, target_mtu)):
        return Paths(State.FAULT, "; ".join(stated), {})
    if target is None:
        return Paths(State.UNKNOWN, f"no path was checked with packets of {target_mtu} bytes", {})
    if target["verdict"] == "carries_target":
        return Paths(State.CLEAR, _headline(target), {})
    if target["verdict"] == "could_not_tell":
        return Paths(State.UNKNOWN, _headline(target), {})
    faults = [finding for finding in target["findings"] if findings.is_fault(finding)]
    if faults and all(finding["kind"] == NOT_RAISED for finding in faults):
        now = facts["present_mtu"]
        reason = f"what the paths carry above the hosts' own MTU of {now} bytes is not known until it is raised"
        return Paths(State.UNKNOWN, reason, {})
    return Paths(State.FAULT, f"{_headline(target)}{_named(target)}", _clear_subnets(target))


def _headline(document: Json) -> str:
    text = matrix.headline(document).removesuffix(".")
    return text[0].lower() + text[1:]


def _named(document: Json) -> str:
    """The first faults, in brackets."""
    faults = [fault for fault in document["findings"] if findings.is_fault(fault)]
    shown = [f"{title(fault['kind'])[0].lower()}{title(fault['kind'])[1:]}: {fault['where']}" for fault in faults]
    more = [f"and {len(shown) - MOST_FAULTS} more"] if len(shown) > MOST_FAULTS else []
    return f" ({'; '.join([*shown[:MOST_FAULTS], *more])})" if shown else ""


def limits(facts: Json, target_mtu: int) -> Iterator[str]:
    """NICs whose drivers state a smaller maximum."""
    for host in facts["hosts"]:
        for interface in host["interfaces"]:
            most = interface["maximum_mtu"]
            if most is not None and 0 < most < target_mtu:
                yield f"{interface['name']} of {host['name']} takes at most {most} bytes"


def _clear_subnets(document: Json) -> dict[str, tuple[str, ...]]:
    """The subnets of two hosts or more, none of whose pairs, in any family, fails; with their hosts."""
    prefixes = {
        entry["address"]: entry["prefix_length"]
        for host in document["hosts"] for interface in (host["facts"] or {}).get("interfaces", ())
        for entry in interface["addresses"]
    }  # fmt: skip
    members: dict[str, dict[str, None]] = {}
    for pair in document["pairs"]:
        for end in ("source", "destination"):
            address = pair[f"{end}_address"]
            if address is not None:
                members.setdefault(subnet(address, prefixes.get(address)), {})[pair[end]] = None
    subnets = {}
    for name, hosts in members.items():
        inside = [pair for pair in document["pairs"] if pair["source"] in hosts and pair["destination"] in hosts]
        if inside and all(pair["verdict"] == "carries_target" for pair in inside):
            subnets[name] = tuple(hosts)
    return subnets


def benefit_of(summary: Json | None, why_not: str = "no study was made", bound: Bound | None = None) -> Benefit:
    """What the summary of a study says of its largest MTU; `why_not` if there is none. Where a study says nothing, a
    `bound` that is too little to act on is enough."""
    if summary is None:
        benefit = Benefit(Brings.NOT_MEASURED, f"what they bring was not measured, because {why_not}")
    else:
        result = answer(summary)
        text = result.text.partition(": ")[2].removesuffix(".")
        if judging.is_evidence(summary):
            benefit = Benefit(_brings(_largest(summary)), text)
        else:
            benefit = Benefit(Brings.OPEN, f"{str(result.kind).lower()}: {text}")
    if bound is None or benefit.brings not in (Brings.NOT_MEASURED, Brings.OPEN):
        return benefit
    return (
        Benefit(Brings.NOTHING, bound.text)
        if bound.is_little
        else Benefit(benefit.brings, f"{benefit.text}; {bound.text}")
    )


def bound_of(estimate: Json | None, target_mtu: int) -> Bound | None:
    """What an estimate says of a target; None without a load from which it could say something."""
    total = next((row for row in (estimate or {"total": []})["total"] if row["mtu"] == target_mtu), None)
    if total is None or not _is_load(total):
        return None
    return Bound(total["answer"] == NO, f"they bring the load as it is {_at_most(total)}")


def load_lines(estimate: Json | None) -> Iterator[str]:
    """What an estimate says of each MTU, and of programs whose messages would begin to wait."""
    for row in (estimate or {"total": []})["total"]:
        if row["answer"] in LOADED and not _is_load(row):
            yield f"MTU {row['mtu']}: too little load to judge, fewer than {LEAST_LOAD} packets per second"
        elif _is_load(row):
            yield f"MTU {row['mtu']} brings the load as it is {_at_most(row)}"
        else:
            yield f"MTU {row['mtu']}, the load as it is: {row['answer']}"
    for host in (estimate or {"hosts": []})["hosts"]:
        for kind in host["opaque"]:
            yield f"{host['host']}, {kind['interface']}: unknown what they bring to {opaque.text(kind)}"


def _is_load(total: Json) -> bool:
    """Whether hosts carried enough for an answer: an idle host has nothing to gain whatever it is used for."""
    return total["answer"] in LOADED and total["packets"]["before_per_second"] >= LEAST_LOAD


def _at_most(total: Json) -> str:
    goodput, cpu = total["goodput"]["at_most"], total["cpu"]["at_most"]
    if goodput is None and cpu is None:
        return "an unknown share of goodput and of CPU time"
    share = "an unknown share of goodput" if goodput is None else f"{_rounded_up(goodput)} of goodput"
    return f"at most {share} and {'an unknown share' if cpu is None else _rounded_up(cpu)} of CPU time, a bound"


def _rounded_up(share: float) -> str:
    """A share that must not look smaller than it is."""
    return f"{math.ceil(1000 * share) / 10:g} %"


def _largest(summary: Json) -> list[str]:
    """The verdicts on the largest MTU."""
    treated = [verdict for verdict in summary["verdicts"] if not words.is_control(verdict)]
    most = max((verdict["treatment"]["mtu"] for verdict in treated), default=0)
    return [verdict["verdict"] for verdict in treated if verdict["treatment"]["mtu"] == most]


def _brings(verdicts: Sequence[str]) -> Brings:
    kinds = set(verdicts)
    if {"better", "worse"} <= kinds:
        return Brings.MIXED
    if "better" in kinds:
        return Brings.HELPS
    if "worse" in kinds:
        return Brings.WORSE
    settled = sum(verdict in ("no practical difference", "not worse") for verdict in verdicts)
    return Brings.NOTHING if 2 * settled > len(verdicts) else Brings.OPEN


def sufficient(summary: Json | None) -> int | None:
    """The smallest MTU that is shown to be enough for every metric of a study; None if it tried too few."""
    if summary is None or not judging.is_evidence(summary):
        return None
    whole = [level for level in summary.get("smallest_levels", ()) if level["all_cells"]]
    return max((int(level["smallest"]["mtu"]) for level in whole), default=None)
