"""Hosts of the user's own, as a file names them. Pure data, validated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from framegauge.files.types import Model, Problem

__all__ = ["Inventory", "Machine", "full", "named"]


def _range(text: str) -> str:
    """Problem unless it is LOW-HIGH, or one port."""
    low, _, high = text.partition("-")
    found = [int(word) if word.isascii() and word.isdigit() else 0 for word in (low, high or low)]
    if not 1 <= found[0] <= found[1] <= MOST_PORT:
        raise Problem((), text, "ports such as 40000-40099")
    return text


MOST_PORT = 65535
Ports = Annotated[StrictStr, AfterValidator(_range)]


class Machine(Model):
    """One host. `ssh` is what ssh calls it (default: its name), `options` come before that on ssh's command line.

    `interface` carries the data (default: the way to the others); `read_only` hosts are measured and never changed;
    `agent` is a file of another machine's agent. `ports` are those it opens for data and probes, LOW-HIGH (default: its
    ephemeral ones).
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
        """As ssh knows it."""
        return self.ssh or self.name


class Inventory(Model):
    """The hosts, in order; what ssh is given for all of them, and the ports of those that have none of their own."""

    hosts: Annotated[list[Machine | StrictStr], Field(min_length=1)]
    options: list[StrictStr] = Field(default_factory=list)
    ports: Ports | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Inventory:
        named(self.machines(), "hosts")
        return self

    def machines(self) -> list[Machine]:
        """All of them, short forms resolved, with the options for all before their own."""
        return [
            each.model_copy(update={"options": [*self.options, *each.options], "ports": each.ports or self.ports})
            for each in full(self.hosts)
        ]


def full(hosts: Sequence[Machine | str]) -> list[Machine]:
    """Short forms resolved."""
    return [Machine(name=each) if isinstance(each, str) else each for each in hosts]


def named(machines: Sequence[Machine], key: str) -> None:
    """Problem unless each has a name of its own that can be one."""
    names = [machine.name for machine in machines]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise Problem((key, index), name, "each host once")
        if name.startswith("-") or any(character.isspace() for character in name):
            raise Problem((key, index), name, "the name of a host, as ssh knows it")
