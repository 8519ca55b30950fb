"""Hosts of the user's own, as a file names them. Pure data, validated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StrictBool, StrictStr, model_validator

from framegauge.study_types import Model, Problem

__all__ = ["Inventory", "Machine", "full", "named"]


class Machine(Model):
    """One host. `ssh` is what ssh calls it (default: its name), `options` come before that on ssh's command line.

    `interface` carries the data (default: the way to the others); `read_only` hosts are measured and never changed;
    `agent` is a file of another machine's agent.
    """

    name: Annotated[StrictStr, Field(min_length=1)]
    ssh: StrictStr | None = None
    options: list[StrictStr] = Field(default_factory=list)
    interface: StrictStr | None = None
    read_only: StrictBool = False
    agent: StrictStr | None = None

    @property
    def destination(self) -> str:
        """As ssh knows it."""
        return self.ssh or self.name


class Inventory(Model):
    """The hosts, in order, and what ssh is given for all of them."""

    hosts: Annotated[list[Machine | StrictStr], Field(min_length=1)]
    options: list[StrictStr] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Inventory:
        named(self.machines(), "hosts")
        return self

    def machines(self) -> list[Machine]:
        """All of them, short forms resolved, with the options for all before their own."""
        return [each.model_copy(update={"options": [*self.options, *each.options]}) for each in full(self.hosts)]


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
