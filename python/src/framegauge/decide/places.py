"""Where a decision is made: the user's own hosts, a rack that is built for it, or a lab of MTU faults.

Each opens its hosts as they are; those that can be changed are checked with the target MTU in force as well. The user's
own hosts are raised by leases alone, and only where that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any, Protocol

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.check import open as check_open, plan as check_plan, run as check
from framegauge.check.plan import Asked, Member
from framegauge.errors import InputError, MissingRequirement, Refused
from framegauge.experiment.planning import baseline
from framegauge.files.machines import Machine
from framegauge.hosts import reach
from framegauge.rollout.preflight import run as preflight
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Host, Place as Way
from framegauge.testbeds.listed import is_here
from framegauge.testbeds.rack import RackTestbed
from framegauge.testbeds.ssh import SshTestbed
from framegauge.testbeds.veth import VethTestbed

__all__ = ["LAB_STAYS", "Lab", "Own", "Place", "Progress", "Rack", "checked", "lease_seconds"]

LAB_STAYS = "the hosts of a lab are as its file has them"
LEASE_SECONDS = 60.0
LONGEST_LEASE_SECONDS = 600.0  # for a check of raised hosts, during which nothing renews it
LEASE_TIMES = 2.0  # as long as the same check took before, and the rest
LEASE_REST_SECONDS = 5.0  # of a lease, which must be left when a check ends: else it may have ended during the check
Json = dict[str, Any]
Say = Callable[[str], None]
Progress = Callable[[float, str], None]


class Place(Protocol):
    """Where a decision is made."""

    scope: str
    bits_per_second: float | None  # what each host may send for a check; None: a share of its link
    built: str | None  # why these hosts have neither a load nor an owner, as a clause; None for hosts that are there

    def hosts(self, say: Say) -> AbstractContextManager[list[Member]]:
        """The hosts as they are."""
        ...

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:
        """The document of a preflight of these interfaces, by host."""
        ...

    def unchangeable(self) -> str | None:
        """Why no host can be given another MTU, as a clause; None if they can."""
        ...

    def raised(self, present: Json, target_mtu: int, say: Say, progress: Progress) -> Json:
        """The document of a check of all pairs, with the target MTU in force; everything is put back. `present`: that
        of the same check at the present MTU."""
        ...


def checked(members: Sequence[Member], asked: Asked, progress: Progress) -> Json:
    """The document of a check of every pair."""
    return check.run(check_plan.prepare(members, asked), asked, progress).document


def lease_seconds(check_seconds: float) -> float:
    """The lease of hosts that are raised for a check: longer than usual where the same check took long before."""
    return min(max(LEASE_SECONDS, LEASE_TIMES * check_seconds + LEASE_REST_SECONDS), LONGEST_LEASE_SECONDS)


class Own:
    """The user's own hosts: `words` as the verb check has them, and machines of an inventory."""

    scope = "measured"
    bits_per_second: float | None = None
    built: str | None = None

    def __init__(self, words: Sequence[str], machines: Sequence[Machine], allowed: bool) -> None:
        self._words, self._listed, self._allowed = list(words), list(machines), allowed

    @property
    def machines(self) -> list[Machine]:
        """All hosts, as a study over ssh has them."""
        named = [word.partition("%") for word in self._words]
        return [*(Machine(name=name, interface=interface or None) for name, _, interface in named), *self._listed]

    def hosts(self, say: Say) -> AbstractContextManager[list[Member]]:
        """As Place has it."""
        return self._opened(say)

    @contextmanager
    def _opened(self, say: Say) -> Iterator[list[Member]]:
        with check_open.opened(self._words, None, say, machines=self._listed) as (members, _):
            yield members

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:
        """As Place has it."""
        facts, errors = preflight.read(list(interfaces), self._listed, say)
        request = preflight.chosen(interfaces, facts, target_mtu, "subnets", LEASE_SECONDS, frozenset())
        return preflight.document(request, facts, errors)

    def unchangeable(self) -> str | None:
        """As Place has it."""
        here = [word for word in self._words if word == "local" or ":" in word]
        here += [machine.name for machine in self._listed if is_here(machine)]
        if here:
            return f"{here[0]} is not reached over ssh, and only hosts that are can be raised and put back"
        if fixed := [machine.name for machine in self.machines if machine.read_only]:
            return f"{fixed[0]} is read_only in its inventory"
        return None if self._allowed else "changes are not allowed without --allow-changes"

    def raised(self, present: Json, target_mtu: int, say: Say, progress: Progress) -> Json:
        """As Place has it, by leases."""
        machines, present_mtu, seconds = self.machines, present["target_mtu"], lease_seconds(present["seconds"])
        hook = _Kept(progress)
        bed = SshTestbed(machines, say, hook, lease_seconds=seconds)
        try:
            if missing := bed.requirements(None)["missing"]:
                raise MissingRequirement(missing)
            study = _plain([machine.model_dump(mode="json") for machine in machines], present_mtu, target_mtu)
            conditions = replace(baseline(study), mtu=dict.fromkeys(study.testbed.host_names, target_mtu))
            with suppress(_Carried):
                bed.up(conditions)
        finally:
            bed.close()
        if hook.document is None:
            raise Refused(f"check: found every host at MTU {target_mtu} already, expected {present_mtu}: --again facts")
        if hook.document["seconds"] > seconds - LEASE_REST_SECONDS:
            raise Refused(
                f"check: found that it took {hook.document['seconds']:.0f} s with the hosts raised, expected less than "
                f"their lease of {seconds:g} s: ask about fewer hosts"
            )
        return hook.document


class _Carried(Refused):
    """Ends a lease that a check needed and nothing else."""


class _Kept:
    """The way in which hosts reach each other, as `hosts.reach` has it, which keeps what a check found."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.document: Json | None = None

    def ways(self, hosts: Sequence[tuple[Host, str | None]], family: int) -> dict[str, Way]:  # noqa: ARG002
        """As `hosts.reach`, in any family: the check is of all."""
        return reach.ways(hosts, None)

    def narrow(
        self,
        hosts: Sequence[tuple[Host, str | None]],
        family: int,  # noqa: ARG002
        mtu: Mapping[str, int],
    ) -> Iterable[str]:
        """Checks all pairs in every family, keeps the document, and ends the lease, whatever was found."""
        spec = Asked(max(mtu.values()))
        self.document = checked([Member(host, interface) for host, interface in hosts], spec, self._progress)
        raise _Carried("the check has ended")


def _plain(machines: Sequence[Mapping[str, Any]], present_mtu: int, target_mtu: int) -> Study:
    """A study that changes nothing but the MTU."""
    import yaml

    values = {
        "testbed": {"kind": "ssh", "machines": list(machines)},
        "factors": {"mtu": {"levels": [present_mtu, target_mtu], "baseline": present_mtu}},
        "workloads": [{"stream": {"duration": "1 s"}}],
    }
    return study_file.parse(yaml.safe_dump(values), "the hosts of the check")


class Rack:
    """A rack that is built for it: that of a study."""

    scope = "emulated"
    bits_per_second: float | None = float("inf")  # nobody else is on it
    built: str | None = "the rack is built for this decision"

    def __init__(self, study: Study) -> None:
        self._study = study

    def hosts(self, say: Say) -> AbstractContextManager[list[Member]]:
        """As Place has it, with the study's baseline in force."""
        return self._built(say, None)

    @contextmanager
    def _built(self, say: Say, mtu: int | None) -> Iterator[list[Member]]:
        study, conditions = self._study, baseline(self._study)
        if mtu is not None:
            conditions = replace(conditions, mtu=dict.fromkeys(study.testbed.host_names, mtu))
        with Agent.open(privileged([find_agent(), "rack"], say)) as agent:
            bed = VethTestbed(agent) if study.testbed.kind == "veth" else RackTestbed(agent)
            if missing := bed.requirements(study.testbed.link.rate)["missing"]:
                raise MissingRequirement(missing)
            bed.up(conditions)
            yield [Member(host) for host in bed.hosts()]

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:  # noqa: ARG002
        """Always InputError: see `built`."""
        raise InputError(f"preflight: found a rack, expected hosts that are there: {self.built}")

    def unchangeable(self) -> str | None:
        """As Place has it: nothing is in the way."""
        return None

    def raised(self, present: Json, target_mtu: int, say: Say, progress: Progress) -> Json:  # noqa: ARG002
        """As Place has it, on hosts that are built with it."""
        with self._built(say, target_mtu) as members:
            return checked(members, Asked(target_mtu, bits_per_second=self.bits_per_second), progress)


class Lab:
    """A lab of MTU faults, as its file has it."""

    scope = "emulated"
    bits_per_second: float | None = float("inf")
    built: str | None = "the lab is built for this decision"

    def __init__(self, path: str) -> None:
        self._path = path

    def hosts(self, say: Say) -> AbstractContextManager[list[Member]]:
        """As Place has it."""
        return self._opened(say)

    @contextmanager
    def _opened(self, say: Say) -> Iterator[list[Member]]:
        with check_open.opened([], self._path, say) as (members, _):
            yield members

    def preflight(self, interfaces: Mapping[str, str], target_mtu: int, say: Say) -> Json:  # noqa: ARG002
        """Always InputError: see `built`."""
        raise InputError(f"preflight: found a lab, expected hosts that are there: {self.built}")

    def unchangeable(self) -> str | None:
        """As Place has it."""
        return LAB_STAYS

    def raised(self, present: Json, target_mtu: int, say: Say, progress: Progress) -> Json:  # noqa: ARG002
        """Always InputError: see `unchangeable`."""
        raise InputError(f"{self._path}: found a lab, expected hosts that can be changed")
