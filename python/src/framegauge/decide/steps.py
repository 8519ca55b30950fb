"""The steps of a decision, each of which is left out if its result is there already. It never prints.

    facts ──> preflight ──> check: the present MTU ──> estimate ──> check: the target ──> study ──> the answer
                                                                    as they are, or raised

Nothing is changed on hosts for the last two unless they may be changed and the paths as they are have no fault. A
study is run only where the target passes: between all hosts, or between those of a subnet.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from framegauge.capture import readings
from framegauge.capture.open import Member as Reader
from framegauge.check import plan as check_plan
from framegauge.check.plan import Asked, Member, Prepared
from framegauge.decide import judge, trial
from framegauge.decide.folder import SCHEMA, Folder
from framegauge.decide.judge import Benefit, Paths, State
from framegauge.decide.places import Place, Progress, Say, checked
from framegauge.errors import InputError, TooBusy
from framegauge.estimate import document as estimates
from framegauge.files.machines import full
from framegauge.results.journal import read
from framegauge.study.model import Study
from framegauge.summary import document as summary

__all__ = ["BUSY", "NIC_LIMIT", "Found", "Hands", "facts_of", "run", "study_of"]

Json = dict[str, Any]
IPV4 = 4
BUSY = "this machine is too busy"  # and what of it, after a colon
FAULT_NOW, NIC_LIMIT = "the paths have a fault as they are", "a NIC does not take it"


@dataclass(frozen=True)
class Hands:
    """What a step does beyond this room: `say` tells the user something, `progress` how far a check is, and `study`
    runs the study in a folder, or what is left of it, to its end. `seconds`: for how long the load is read."""

    say: Say
    progress: Progress
    study: Callable[[Study], None]
    seconds: float


@dataclass(frozen=True)
class Found:
    """The results of all steps: documents, the summary of the study, and why steps were left out, as clauses."""

    facts: Json
    preflight: Json | None
    present: Json | None
    target: Json | None
    raised: bool
    estimate: Json | None
    summary: Json | None
    left_out: Mapping[str, str]

    def paths(self, target_mtu: int) -> Paths:
        """What is known of the paths."""
        return judge.paths_of(self.facts, self.present, self.target, target_mtu)

    def benefit(self, target_mtu: int) -> Benefit:
        """What is known of the effect."""
        bound = judge.bound_of(self.estimate, target_mtu)
        why = self.left_out.get("study", "no study was made")
        return judge.benefit_of(self.summary, BUSY if why.startswith(BUSY) else why, bound)


def run(place: Place, template: Study | None, target_mtu: int, folder: Folder, hands: Hands) -> Found:
    """All steps whose results are not in the folder; `template` None: nothing can be studied there."""
    with _Opened(place, hands.say) as opened:
        facts = folder.load("facts")
        if facts is None:
            hands.say("facts: what the hosts are, and how they reach each other")
            facts = facts_of(check_plan.prepare(opened.members(), Asked(target_mtu)), opened.members())
            folder.keep("facts", facts)
        here = _Paths(place, opened, folder, hands, facts["present_mtu"], target_mtu)
        reading = _Reading(opened, facts, target_mtu, folder, hands)
        stands, why_not = reading.preflight()
        present = here.present()
        estimate, why_no_load = reading.estimate()
        fixed = here.fixed(facts, present)
        reasons = {"preflight": why_not, "estimate": why_no_load, "check-raised": fixed}
        left_out = {name: why for name, why in reasons.items() if why is not None}
        target = here.as_it_is() if fixed is not None else None
    if fixed is None and present is not None:  # as it always is then
        target = here.raised(present)
    results = Found(facts, stands, present, target, fixed is None, estimate, None, left_out)
    return _studied(results, place, template, target_mtu, folder, hands)


def _studied(
    results: Found, place: Place, template: Study | None, target_mtu: int, folder: Folder, hands: Hands
) -> Found:
    """With the study, or why there is none."""
    paths, why = results.paths(target_mtu), place.unchangeable()
    if why is None and template is None:
        why = "there is nothing that could be studied"
    if why is None and paths.state is not State.CLEAR and not paths.subnets:
        why = "the paths do not carry the packets" if paths.state is State.FAULT else "the paths are not known"
    if why is None and place.built is None and results.facts.get("families") == []:
        why = "no version of IP leads from every host to every other"
    if why is not None or template is None:
        return replace(results, left_out={**results.left_out, "study": str(why)})
    study = study_of(template, results.facts, paths)
    if study is None:
        why = "only subnets of a rack carry the packets, and a rack is studied as a whole"
        return replace(results, left_out={**results.left_out, "study": why})
    if not folder.has("study"):
        hands.say(f"study: {study.testbed.kind}, MTU {', '.join(map(str, study.factors.mtu.levels))}")
        try:
            hands.study(study)
        except TooBusy as busy:  # `--resume` asks again, as for all that a folder lacks
            return replace(results, left_out={**results.left_out, "study": f"this machine is {busy}"})
        folder.keep("study", {"schema": SCHEMA, "hosts": study.testbed.host_names})
    return replace(results, summary=summary.summarise(read(folder.study)))


def study_of(template: Study, facts: Json | None, paths: Paths | None) -> Study | None:
    """The study of these hosts, or of those of the largest subnet that is clear; None if that cannot be built.
    `facts` None: not known yet."""
    known = facts or {"present_mtu": None}
    [family, *_] = known.get("families") or [IPV4]
    study = trial.at(template, known["present_mtu"] or trial.LEAST_MTU, family)
    if paths is None or paths.state is State.CLEAR:
        return study
    if study.testbed.capabilities.builds_hosts:
        return None
    machines = [machine for machine in full(study.testbed.machines) if machine.name in paths.studied]
    return study.model_copy(update={"testbed": study.testbed.model_copy(update={"machines": machines})})


def facts_of(prepared: Prepared, members: Sequence[Member]) -> Json:
    """What is known of the hosts, and their MTU: the smallest of the interfaces by which they reach each other.
    `families`: the versions of IP in which each of them has a route to every other."""
    hosts: list[Json] = []
    for member in members:
        used = {
            path.ends.interface: None for path in prepared.paths
            if path.source == member.name and path.ends is not None and path.ends.interface is not None
        }  # fmt: skip
        facts = prepared.facts.get(member.name)
        hosts.append({
            "name": member.name, "error": prepared.errors.get(member.name),
            "interfaces": [
                {
                    "name": interface["name"], "mtu": interface["mtu"], "maximum_mtu": interface["maximum_mtu"],
                    "driver": interface["driver"] or interface["kind"], "bits_per_second": interface["bits_per_second"],
                }
                for interface in (facts or {"interfaces": []})["interfaces"] if interface["name"] in used
            ],
        })  # fmt: skip
    mtus = [interface["mtu"] for host in hosts for interface in host["interfaces"]]
    routes = Counter(path.family for path in prepared.paths if path.ends is not None and path.ends.error is None)
    families = [family for family in (4, 6) if routes[family] == len(members) * (len(members) - 1)]
    return {"schema": SCHEMA, "present_mtu": min(mtus, default=None), "families": families, "hosts": hosts}


@dataclass(frozen=True)
class _Reading:
    """The steps that read hosts which somebody runs: a document, or why there is none, as a clause."""

    opened: _Opened
    facts: Json
    target_mtu: int
    folder: Folder
    hands: Hands

    def preflight(self) -> tuple[Json | None, str | None]:
        """What stands against the change, and what would undo it."""

        def read() -> Json:
            self.hands.say("preflight: what stands against a change, and who would undo it")
            interfaces = {name: used[0] for name, used in self._used().items()}
            return self.opened.place.preflight(interfaces, self.target_mtu, self.hands.say)

        return self._of("preflight", read)

    def estimate(self) -> tuple[Json | None, str | None]:
        """What the load as it is can gain at most."""

        def read() -> Json:
            used = self._used()
            members = [
                Reader(member.host, used[member.name]) for member in self.opened.members() if member.name in used
            ]
            self.hands.say(f"estimate: what {len(members)} hosts carry, for {self.hands.seconds:g} s")
            targets = sorted({min(trial.BETWEEN, self.target_mtu), self.target_mtu})
            taken = readings.take(members, self.hands.seconds, targets, (), self.hands.say)
            if taken.interrupted:
                raise KeyboardInterrupt
            if taken.lost:  # what some hosts can gain is no bound of what all can
                raise InputError("\n".join(taken.lost.values()))
            return estimates.estimate(taken.hosts, targets, lost=taken.lost)

        return self._of("estimate", read)

    def _used(self) -> dict[str, tuple[str, ...]]:
        """By host, the interfaces by which it reaches others; without those that have none."""
        by_host = {
            host["name"]: tuple(interface["name"] for interface in host["interfaces"]) for host in self.facts["hosts"]
        }
        return {name: interfaces for name, interfaces in by_host.items() if interfaces}

    def _of(self, name: str, read: Callable[[], Json]) -> tuple[Json | None, str | None]:
        if self.opened.place.built is not None:
            return None, self.opened.place.built
        if (stored := self.folder.load(name)) is not None:
            return stored, None
        try:
            document = read()
        except InputError as error:
            return None, str(error).partition("\n")[0]
        self.folder.keep(name, document)
        return document, None


class _Opened:
    """The hosts as they are, opened when they are asked for first."""

    def __init__(self, place: Place, say: Say) -> None:
        self.place, self._say = place, say
        self._stack = contextlib.ExitStack()
        self._members: list[Member] | None = None

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def members(self) -> list[Member]:
        """Them."""
        if self._members is None:
            self._members = self._stack.enter_context(self.place.hosts(self._say))
        return self._members


@dataclass(frozen=True)
class _Paths:
    """The step check: up to two documents."""

    place: Place
    opened: _Opened
    folder: Folder
    hands: Hands
    present_mtu: int | None
    target_mtu: int

    @property
    def is_there(self) -> bool:
        """Whether the hosts have the target already."""
        return self.present_mtu is not None and self.present_mtu >= self.target_mtu

    def present(self) -> Json | None:
        """The paths at the present MTU; None if that is the target, or not known."""
        if self.present_mtu is None or self.is_there:
            return None
        return self._of("check-present", self.present_mtu)

    def as_it_is(self) -> Json | None:
        """The paths at the target, whatever the hosts have."""
        return self._of("check-target", self.target_mtu)

    def fixed(self, facts: Json, present: Json | None) -> str | None:
        """Why the hosts are not raised for the check, as a clause; None if they are."""
        if self.is_there:
            return "the hosts have that MTU"
        if present is None or present["verdict"] != "carries_target":
            return FAULT_NOW if present is not None and present["verdict"] == "fault" else "the paths are not known"
        if judge.paths_of(facts, present, None, self.target_mtu).state is State.FAULT:
            return NIC_LIMIT
        return self.place.unchangeable()

    def raised(self, present: Json) -> Json:
        """The paths with all hosts at the target; `present`: those at the present MTU."""
        document = self.folder.load("check-raised")
        if document is None:
            self.hands.say(f"check: every pair with packets of {self.target_mtu} bytes, the hosts raised to that MTU")
            document = self.place.raised(present, self.target_mtu, self.hands.say, self.hands.progress)
            self.folder.keep("check-raised", document)
        return document

    def _of(self, name: str, mtu: int) -> Json:
        document = self.folder.load(name)
        if document is None:
            self.hands.say(f"check: every pair with packets of {mtu} bytes, the hosts as they are")
            spec = Asked(mtu, bits_per_second=self.place.bits_per_second)
            document = checked(self.opened.members(), spec, self.hands.progress)
            self.folder.keep(name, document)
        return document
