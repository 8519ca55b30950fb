"""The study: testbed, factors with levels, workloads, margins. Pure data, validated.

A study file is YAML; `study_file.load` reads it and names file and line of every problem. What is kept
here is the shape (`Study`), what follows from it (`arms`, `cells`), and nothing that runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from framegauge.study_types import Bytes, Factor, FrameLimit, Model, Mtu, Problem, Rate, Seconds, Share
from framegauge.study_workloads import Workload

__all__ = [
    "Arm",
    "Cell",
    "Factor",
    "Problem",
    "Study",
    "Workload",
    "arms",
    "cells",
    "host_mtus",
    "level_text",
    "nic_of",
]

RACK_HOSTS = 12
MOST_HOSTS = {"rack": 250, "fake": 250, "veth": 64}
MODERATION = "50 us"
# The parts of a NIC that `offloads` switches together, and that a factor of their own can single out.
OFFLOADS = ("tso", "lro", "gro", "checksum")


class Link(Model):
    """The link from each host to the switch. `rate: unshaped` (veth only): the CPU is the limit."""

    rate: Rate = 10**9
    buffer: Bytes = 512 * 1024
    port_mtu: FrameLimit = 9216


class Nic(Model):
    """The modelled NIC: `aggregate` is the largest that a shaped host builds. What it offloads is a factor."""

    aggregate: Bytes = 36 * 1024

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, value: object) -> object:
        if isinstance(value, Mapping) and "moderation" in value:
            raise Problem(("moderation",), value["moderation"], "it in factors.moderation: it is a factor")
        return value


class Shaper(Model):
    """What bounds the sender's queue: tbf at `factor` x line rate; one mechanism for every arm."""

    factor: Annotated[float, Field(gt=0, le=1)] = 0.999
    burst: Bytes = 70_000


class Fake(Model):
    """An invented network, for trying things out and for tests: its figures are no evidence."""

    noise: Share = 0.003
    goodput_loss: Share = 0.0
    faults: list[StrictStr] = []


class Testbed(Model):
    """Where the study runs: `rack` is our fabric, `veth` the kernel alone, `fake` an invented network.

    `topology: rack` has `hosts` hosts on one switch, h1 to hN; `pair` has two.
    """

    kind: Literal["rack", "veth", "fake"]
    topology: Literal["pair", "rack"] = "pair"
    hosts: Annotated[StrictInt, Field(ge=2)] | None = None
    link: Link = Field(default_factory=Link)
    nic: Nic = Field(default_factory=Nic)
    shaper: Shaper = Field(default_factory=Shaper)
    family: Literal[4, 6] = 4
    fake: Fake | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Testbed:
        if self.link.rate is None and self.kind != "veth":
            raise Problem(("link", "rate"), "unshaped", "a rate such as 1 Gb/s (unshaped needs kind: veth)")
        if self.fake is not None and self.kind != "fake":
            raise Problem(("fake",), "fake", "no such key unless kind: fake")
        if self.topology == "pair" and self.hosts is not None:
            raise Problem(("hosts",), self.hosts, "no such key unless topology: rack")
        if self.topology == "rack" and self.hosts is None:
            self.hosts = RACK_HOSTS
        if self.hosts is not None and self.hosts > MOST_HOSTS[self.kind]:
            raise Problem(("hosts",), self.hosts, f"2 to {MOST_HOSTS[self.kind]} with kind: {self.kind}")
        return self

    @property
    def host_names(self) -> list[str]:
        """h1 to hN."""
        return [f"h{number}" for number in range(1, (self.hosts or 2) + 1)]


class Factors(Model):
    """What is varied, or held. `tso`, `lro`, `gro` and `checksum` follow `offloads` where they are not given."""

    mtu: Factor[Mtu]
    rtt: Factor[Seconds] | None = None
    offloads: Factor[StrictBool] = Field(default_factory=lambda: Factor[StrictBool](levels=[False]))
    tso: Factor[StrictBool] | None = None
    lro: Factor[StrictBool] | None = None
    gro: Factor[StrictBool] | None = None
    checksum: Factor[StrictBool] | None = None
    moderation: Factor[Seconds] | None = None
    congestion_control: Factor[StrictStr] = Field(default_factory=lambda: Factor[StrictStr](levels=["cubic"]))
    nagle: Factor[StrictBool] | None = None

    def levels(self, name: str) -> list[Any]:
        """Of one factor; [None] where it is not given."""
        factor = getattr(self, name)
        return [None] if factor is None else list(factor.levels)


class Meters(Model):
    """What is metered besides the workload; each meter costs something (docs/cpu-cost.md).

    `idle` is how long the hosts are measured with nothing running, before each run.
    """

    cpu: StrictBool = True
    wire: StrictBool = True
    idle: Seconds = 0.2

    @model_validator(mode="after")
    def _consistent(self) -> Meters:
        if self.cpu and self.idle == 0:
            raise Problem(("idle",), 0, "more than 0: a host's idle use is subtracted (or cpu: false)")
        return self


class Margins(Model):
    """The smallest relative effect worth acting on, by metric; only these metrics are judged."""

    goodput: Share | None = None
    completion_time: Share | None = None
    fairness: Share | None = None
    latency_p50: Share | None = None
    latency_p99: Share | None = None
    latency_p999: Share | None = None
    transactions: Share | None = None
    receiver_cpu_cost: Share | None = None
    sender_cpu_cost: Share | None = None
    receiver_instructions: Share | None = None
    sender_instructions: Share | None = None
    receiver_cycles: Share | None = None
    sender_cycles: Share | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Margins:
        given = {name: value for name, value in self if value is not None}
        if not given or 0 in given.values():
            known = ", ".join(type(self).model_fields)
            raise Problem((), given, f"a margin above 0 % for at least one metric ({known})")
        return self


TreatmentName = Literal[
    "mtu", "rtt", "offloads", "tso", "lro", "gro", "checksum", "moderation", "congestion_control", "nagle"
]


class Study(Model):
    """One question, and the experiment that answers it."""

    question: StrictStr = "Do jumbo frames help?"
    testbed: Testbed
    factors: Factors
    workloads: Annotated[list[Workload], Field(min_length=1)]
    treatment: TreatmentName = "mtu"
    control: StrictBool = True
    blocks: Annotated[StrictInt, Field(ge=2, le=10_000)] = 6
    budget: Seconds = 600.0
    margins: Margins
    seed: Annotated[StrictInt, Field(ge=0)] = 1
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = 2
    meters: Meters = Field(default_factory=Meters)
    sysctls: dict[StrictStr, StrictStr] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        veth = self.testbed.kind == "veth"
        if self.factors.rtt is None:
            self.factors.rtt = Factor[Seconds].model_validate("0 s" if veth else "0.2 ms")
        if self.factors.moderation is None:
            self.factors.moderation = Factor[Seconds].model_validate("0 s" if veth else MODERATION)
        if getattr(self.factors, self.treatment) is None:
            raise Problem(("treatment",), self.treatment, f"a factor with levels: factors.{self.treatment} has none")
        levels = self.treatment_factor.levels
        if len(levels) < 2 and not self.control:
            where = ("factors", self.treatment)
            raise Problem(where, levels[0], "two or more levels for the treatment, or control: true")
        if veth and self.factors.rtt.levels != [0.0]:
            raise Problem(("factors", "rtt"), self.factors.rtt.levels, "0 on testbed veth: it cannot delay")
        for problem in (*_mtu_problems(self), *_nic_problems(self), *_workload_problems(self)):
            raise problem
        return self

    @property
    def treatment_factor(self) -> Factor[Any]:
        """The factor whose levels are compared with its baseline."""
        factor: Factor[Any] = getattr(self.factors, self.treatment)
        return factor

    def margin(self) -> dict[str, float]:
        """Margins as shares, by metric."""
        return {name: value for name, value in self.margins if value is not None}


def host_mtus(level: int | Mapping[str, int], names: list[str]) -> dict[str, int]:
    """The MTU of every host at a level; KeyError if it names no MTU for one."""
    if not isinstance(level, Mapping):
        return dict.fromkeys(names, level)
    return {name: level[name] if name in level else level["default"] for name in names}


def nic_of(factors: Mapping[str, Any]) -> dict[str, bool]:
    """tso, lro, gro and checksum, which follow `offloads` where they are not given."""
    return {name: factors["offloads"] if factors[name] is None else factors[name] for name in OFFLOADS}


def _mtu_problems(study: Study) -> Iterator[Problem]:
    names = study.testbed.host_names
    for index, level in enumerate(study.factors.mtu.levels):
        where = ("factors", "mtu", "levels", index)
        if isinstance(level, Mapping):
            strange = [name for name in level if name not in (*names, "default")]
            absent = [name for name in names if name not in level and "default" not in level]
            if strange or absent:
                expected = "an MTU for each of h1 to " + names[-1] + ("" if len(names) == 2 else ", or a default")
                yield Problem(where, dict(level), expected)
                continue
        smallest = min(host_mtus(level, names).values())
        if study.testbed.family == 6 and smallest < 1280:
            yield Problem(("factors", "mtu"), smallest, "at least 1280 with family: 6 (RFC 8200)")
        if study.testbed.kind != "veth" and smallest > study.testbed.link.port_mtu:
            expected = f"at most link.port_mtu {study.testbed.link.port_mtu}: larger frames die at the switch"
            yield Problem(("factors", "mtu"), smallest, expected)


def _nic_problems(study: Study) -> Iterator[Problem]:
    """Combinations that no NIC, or not the kernel's own link, can have."""
    names = ("offloads", *OFFLOADS)
    for levels in itertools.product(*(study.factors.levels(name) for name in names)):
        nic = nic_of(dict(zip(names, levels, strict=True)))
        for name in ("tso", "lro"):
            if nic[name] and not nic["checksum"]:
                where = "checksum" if study.factors.checksum is not None else name
                expected = f"checksum on wherever {name} is on: aggregates need it"
                yield Problem(("factors", where), f"{name} on, checksum off", expected)
        if (
            study.testbed.kind == "veth"
            and max(study.factors.levels("moderation")) > 0
            and (nic["tso"] or not nic["gro"])
        ):
            expected = "0 s on testbed veth, or gro on and tso off: only then does the kernel's link poll"
            yield Problem(("factors", "moderation"), study.factors.levels("moderation"), expected)
        if study.testbed.kind == "veth" and nic["tso"] != nic["lro"]:
            where = "lro" if study.factors.lro is not None else "tso"
            expected = "lro as tso on testbed veth: the kernel's link passes aggregates on whole"
            yield Problem(("factors", where), f"tso {_on(nic['tso'])}, lro {_on(nic['lro'])}", expected)


def _on(value: bool) -> str:
    return "on" if value else "off"


def _workload_problems(study: Study) -> Iterator[Problem]:
    hosts = len(study.testbed.host_names)
    for index, workload in enumerate(study.workloads):
        parameters = workload.parameters
        least, key = parameters.needed_hosts()
        if hosts < least:
            where: tuple[str | int, ...] = ("workloads", index, parameters.key, *([key] if key else []))
            yield Problem(where, f"{hosts} hosts", f"topology: rack with at least {least} hosts")
        if study.factors.nagle is not None and not parameters.obeys_nagle:
            expected = f"no such factor with workload {parameters.key}: it cannot obey"
            yield Problem(("factors", "nagle"), ", ".join(_on(each) for each in study.factors.nagle.levels), expected)


@dataclass(frozen=True)
class Arm:
    """One level of the treatment within a block; the control is the baseline's level once more."""

    role: Literal["baseline", "control", "treatment"]
    level: Any

    @property
    def name(self) -> str:
        """Unique within a study."""
        return self.role if self.role != "treatment" else level_text(self.level)


@dataclass(frozen=True)
class Cell:
    """One combination of everything that is not the treatment: verdicts are given within a cell."""

    index: int
    workload: str
    parameters: Mapping[str, Any]
    factors: Mapping[str, Any]


def level_text(level: object) -> str:
    """A level as a word: 9000, h1=9000,h2=1500, 0.0002, true."""
    if isinstance(level, Mapping):
        return ",".join(f"{host}={mtu}" for host, mtu in level.items())
    return str(level).lower() if isinstance(level, bool | None) else str(level)


def arms(study: Study) -> list[Arm]:
    """Baseline first, then the A/A control, then the other levels in the file's order."""
    factor = study.treatment_factor
    found = [Arm("baseline", factor.baseline)]
    if study.control:
        found.append(Arm("control", factor.baseline))
    return found + [Arm("treatment", level) for level in factor.levels if level != factor.baseline]


def cells(study: Study) -> list[Cell]:
    """Every combination of the other factors' levels and the workloads' parameters."""
    names = [name for name in Factors.model_fields if name != study.treatment]
    grid = itertools.product(*(study.factors.levels(name) for name in names))
    factors = [dict(zip(names, levels, strict=True)) for levels in grid]
    each = [(work.parameters.key, one) for work in study.workloads for one in work.parameters.conditions()]
    pairs = itertools.product(each, factors)
    return [Cell(index, key, parameters, chosen) for index, ((key, parameters), chosen) in enumerate(pairs)]
