"""The user's own hosts, as listed in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from framegauge.files.types import Model, Problem

__all__ = ["Inventory", "Machine", "full", "named"]


def _range(text: str) -> str:
    """Checks a range of ports; Problem unless it is LOW-HIGH, or one port."""
    low, _, high = text.partition("-")
    ports = [int(word) if word.isascii() and word.isdigit() else 0 for word in (low, high or low)]
    if not 1 <= ports[0] <= ports[1] <= MOST_PORT:
        raise Problem((), text, "ports such as 40000-40099")
    return text


MOST_PORT = 65535
Ports = Annotated[StrictStr, AfterValidator(_range)]


class Machine(Model):
    """One host. `ssh` is its destination for ssh (default: its name), `options` precede it on ssh's command line.

    `interface` carries the data (default: the one with the route to the other hosts). `read_only` hosts are measured
    and never changed. `agent` is an agent's binary for another type of machine. `ports` are those that it opens for
    data and probes, LOW-HIGH (default: its ephemeral ports).
    """

    name: Annotated[StrictStr, Field(min_length=1)]
    ssh: StrictStr | None = None
    options: list[StrictStr] = Field(default_factory=list)
    interface: StrictStr | None = None
    read_only: StrictBool = False
    agent: StrictStr | None = None
    ports: Ports | None = None

    @property
    def destination(self) -> str:
        """The destination on ssh's command line."""
        return self.ssh or self.name


class Inventory(Model):
    """The hosts in order; `options` for ssh that apply to all of them, and the default `ports`."""

    hosts: Annotated[list[Machine | StrictStr], Field(min_length=1)]
    options: list[StrictStr] = Field(default_factory=list)
    ports: Ports | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Inventory:
        named(self.machines(), "hosts")
        return self

    def machines(self) -> list[Machine]:
        """All hosts with short forms resolved; the common options come before their own."""
        return [
            host.model_copy(update={"options": [*self.options, *host.options], "ports": host.ports or self.ports})
            for host in full(self.hosts)
        ]


def full(hosts: Sequence[Machine | str]) -> list[Machine]:
    """The hosts with short forms resolved."""
    return [Machine(name=host) if isinstance(host, str) else host for host in hosts]


def named(machines: Sequence[Machine], key: str) -> None:
    """Checks names; Problem unless each is valid and unique."""
    names = [machine.name for machine in machines]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Problem((key, index), name, "each host once")
        if name.startswith("-") or any(not character.isprintable() or character.isspace() for character in name):
            raise Problem((key, index), name, "the name of a host, without spaces, control characters or a leading -")
