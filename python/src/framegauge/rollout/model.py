"""What the parts of a roll-out tell each other: what is asked for, what was found, and the steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Asked", "Finding", "Json", "Scope", "Severity", "Step", "stated"]

Json = dict[str, Any]
Scope = Literal["subnets", "all"]
Severity = Literal["refused", "warning", "note"]


@dataclass(frozen=True)
class Asked:
    """A change of the MTU of an interface on each of several hosts.

    `waves`: names of hosts, in the order in which they begin to send at the new MTU. `interfaces`: by host. `old_mtu`:
    bytes, if the user says which; otherwise what each host has. `scope`: `subnets` if only the connected subnets of the
    interface get the new MTU and routes through a gateway keep the smaller one, `all` if every route gets it.
    `families`: IP versions that are proved. `forced`: kinds of findings that are not to refuse the change.
    `link_loss_seconds`: how long links are down when their MTU changes, if the user says so.
    """

    waves: tuple[tuple[str, ...], ...]
    interfaces: Mapping[str, str]
    target_mtu: int
    old_mtu: int | None = None
    scope: Scope = "subnets"
    families: tuple[int, ...] = (4, 6)
    lease_seconds: float = 60.0
    forced: frozenset[str] = frozenset()
    link_loss_seconds: float | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts, in the order of the waves."""
        return tuple(name for wave in self.waves for name in wave)


@dataclass(frozen=True)
class Finding:
    """Something that stands against a change, or should be known before it.

    `where`: HOST/INTERFACE, or HOST. `what`: the kind, one word, which `Asked.forced` may name. `found`: what is there
    instead of what is `expected`, or a whole sentence if that is empty. A `refused` one ends a roll-out before anything
    is changed.
    """

    where: str
    what: str
    severity: Severity
    found: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {stated(self.found, self.expected)}: {self.remedy}"


def stated(actual: str, expected: str) -> str:
    """What a finding says."""
    return f"found {actual}, expected {expected}" if expected else actual


@dataclass(frozen=True)
class Step:
    """One thing that is done on a host. `kind`: `hold`, `link` or `release`.

    `request`: the agent's method and its params, empty for what only a command does. `command`: what an administrator
    would type for it, and `undo` for the way back; `back`: the settings of the way back.
    """

    host: str
    kind: str
    command: tuple[str, ...]
    undo: tuple[str, ...]
    request: Json = field(default_factory=dict)
    back: Json = field(default_factory=dict)
