"""The testbed of a study, as part of its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, ValidationInfo, model_validator

from framegauge.files.machines import Machine, full, named
from framegauge.files.types import Bytes, FrameLimit, Model, Problem, Rate, Seconds, Share
from framegauge.networks.capabilities import CAPABILITIES, Capabilities
from framegauge.study.cpus import Cpu, of_file, problems as cpu_problems
from framegauge.study.network import Background, LinkSettings, SharedBuffer
from framegauge.study.topology import Topology

__all__ = ["Testbed"]

MOST_HOSTS = {"rack": 250, "fake": 250, "veth": 64, "simulator": 10_000}
LEASE_SECONDS = 60.0
JITTER_SECONDS = 5e-6


class Link(Model):
    """The settings of every link that `links` does not override. `rate: unshaped` (veth only): the CPU is the limit."""

    rate: Rate = 10**9
    buffer: Bytes = 512 * 1024
    port_mtu: FrameLimit = 9216


class Nic(Model):
    """The modelled NIC: `aggregate` is the largest aggregate that a shaped host builds. Its offloads are factors.

    `link_loss`: a change of its MTU restarts it, as many drivers do, and its link is down for so long.
    """

    aggregate: Bytes = 36 * 1024
    link_loss: Annotated[Seconds, Field(le=60)] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _moved(cls, value: object) -> object:
        if isinstance(value, Mapping) and "moderation" in value:
            raise Problem(("moderation",), value["moderation"], "this key in factors: moderation is a factor")
        return value


class Shaper(Model):
    """The shaper that bounds the sender's queue: tbf at `factor` x line rate, the same in every arm."""

    factor: Annotated[float, Field(gt=0, le=1)] = 0.999
    burst: Bytes = 70_000


class Fake(Model):
    """An invented network, for trying things out and for tests; its figures are not evidence."""

    noise: Share = 0.003
    goodput_loss: Share = 0.0
    faults: list[StrictStr] = []


def _cpu(value: object, info: ValidationInfo) -> object:
    """The name of a file stands for what is in it."""
    return of_file(value, (info.context or {}).get("beside")) if isinstance(value, str) else value


class Testbed(Model):
    """Where the study runs: `rack` is the emulated fabric, `veth` the kernel's own link, `fake` an invented network,
    `simulator` the same switches and modelled hosts in virtual time, `ssh` the user's own hosts.

    `topology: rack` has `hosts` hosts on one switch, h1 to hN; `pair` has two; `framegauge docs networks` lists the
    others. `links` override `link` for single links; later entries take precedence.

    With `simulator` a host takes up to `jitter` to handle a packet, drawn evenly for each. Without any, flows keep the
    phase in which they began, and taildrop may lock one of them out for good. `cpu` is what packets take of the hosts'
    cores, or a file that says so: without it hosts have CPUs without end.

    With `ssh` the hosts are `machines`, or those of an `inventory` (its `group`). Changes to them last for `lease`
    unless renewed; `when_lost` determines whether a host that fails during the study ends it.
    """

    kind: Literal["rack", "veth", "fake", "simulator", "ssh"]
    topology: Topology = Field(default_factory=lambda: Topology.model_validate("pair"))
    hosts: Annotated[StrictInt, Field(ge=2)] | None = None
    link: Link = Field(default_factory=Link)
    links: list[LinkSettings] = Field(default_factory=list)
    shared_buffer: SharedBuffer | None = None
    background: list[Background] = Field(default_factory=list)
    nic: Nic = Field(default_factory=Nic)
    shaper: Shaper = Field(default_factory=Shaper)
    family: Literal[4, 6] = 4
    fake: Fake | None = None
    jitter: Annotated[Seconds, Field(le=1)] | None = None
    cpu: Annotated[Cpu | None, BeforeValidator(_cpu, json_schema_input_type=Cpu | StrictStr | None)] = None
    machines: list[Machine | StrictStr] = Field(default_factory=list)
    inventory: StrictStr | None = None
    group: StrictStr = "all"
    lease: Annotated[Seconds, Field(ge=5, le=3600)] = LEASE_SECONDS
    when_lost: Literal["continue", "end"] = "continue"

    @model_validator(mode="after")
    def _listed(self, info: ValidationInfo) -> Testbed:
        """Resolves the machines and reads the inventory, so that the study saved with results needs no other file."""
        if self.kind != "ssh":
            for key in ("machines", "inventory"):
                if getattr(self, key):
                    raise Problem((key,), key, "no such key unless kind: ssh")
            return self
        if self.inventory is not None:
            if self.machines or not info.context or "hosts" not in info.context:
                raise Problem(("inventory",), self.inventory, "either machines, or the name of an inventory file")
            self.machines, self.inventory = info.context["hosts"](self.inventory, self.group), None
        machines = full(self.machines)
        if len(machines) < 2:
            raise Problem(("machines",), len(machines), "two hosts or more, or an inventory")
        named(machines, "machines")
        self.machines = list(machines)
        if "rate" not in self.link.model_fields_set:
            self.link = self.link.model_copy(update={"rate": None})
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Testbed:
        if self.link.rate is None and self.capabilities.has_fabric:
            raise Problem(("link", "rate"), "unshaped", "a rate such as 1 Gb/s (unshaped needs kind: veth)")
        if self.fake is not None and self.kind != "fake":
            raise Problem(("fake",), "fake", "no such key unless kind: fake")
        if self.jitter is not None and not self.capabilities.is_virtual:
            raise Problem(("jitter",), self.jitter, "no such key unless kind: simulator")
        if self.cpu is not None and not self.capabilities.is_virtual:
            raise Problem(("cpu",), "cpu", "no such key unless kind: simulator: other hosts have CPUs of their own")
        if self.nic.link_loss and (not self.capabilities.has_fabric or self.capabilities.is_virtual):
            raise Problem(
                ("nic", "link_loss"), self.nic.link_loss, "no such key unless kind: rack: no MTU changes there"
            )
        if self.jitter is None and self.capabilities.is_virtual:
            self.jitter = JITTER_SECONDS
        if self.kind == "ssh" and self.hosts is not None:
            raise Problem(("hosts",), self.hosts, "no such key with kind: ssh, whose hosts are its machines")
        if not self.capabilities.has_fabric:
            if self.topology.text() is not None:
                kind = self.topology.kind
                text = self.topology.text() if kind in ("pair", "rack") else kind
                raise Problem(("topology",), text, f"pair or rack with kind: {self.kind}, which has no other topology")
            for key in ("links", "shared_buffer", "background"):
                if getattr(self, key):
                    raise Problem((key,), key, "no such key unless kind: rack")
        if self.capabilities.builds_hosts:
            self._count()
        for problem in cpu_problems(self.cpu, self.host_names) if self.cpu is not None else ():
            raise problem
        return self

    def _count(self) -> None:
        """Checks and sets the number of hosts; a pair needs none."""
        count = self.topology.shape.hosts(self.hosts)
        if count > MOST_HOSTS[self.kind]:
            key = "topology" if self.hosts is None else "hosts"
            raise Problem((key,), count, f"2 to {MOST_HOSTS[self.kind]} with kind: {self.kind}")
        self.hosts = None if self.topology.kind == "pair" else count

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        return CAPABILITIES[self.kind]

    @property
    def host_names(self) -> list[str]:
        """h1 to hN, or the machines."""
        if not self.capabilities.builds_hosts:
            return [machine.name for machine in full(self.machines)]
        return [f"h{number}" for number in range(1, (self.hosts or 2) + 1)]

    @property
    def nics_of_hosts(self) -> int:
        """The number of NICs that every host has at least; on the user's own hosts one is used."""
        return self.topology.shape.nics_of_hosts() if self.capabilities.builds_hosts else 1
