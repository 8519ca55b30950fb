"""Who sets an MTU, and the change of a file that has it set another one. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from framegauge.printable import one_line

__all__ = ["Claim", "Command", "Edit", "Files", "Kept", "Nic", "Trouble", "Via"]

Command = tuple[str, ...]
Files = Mapping[str, str]  # the text of each file of a host, by its path
SECRET = re.compile(r"passw|psk|secret|private|\bkeys?\b|wep-|community", re.IGNORECASE)


@dataclass(frozen=True)
class Nic:
    """The interface in question, as its owners identify it."""

    name: str
    index: int | None = None
    address: str | None = None  # of its hardware, in lower case with colons
    permanent: str | None = None  # the address that its hardware came with, where it has another
    driver: str | None = None
    kind: str | None = None  # as `ip link add type` calls it; None: a NIC
    altnames: tuple[str, ...] = ()  # its other names, by which `ip` finds it, too


@dataclass(frozen=True)
class Claim:
    """A place that sets the MTU of the interface, or (`mtu` None) that manages it and leaves its MTU as it is.

    `key` is the setting in the owner's own words, `line` where it stands (1-based; 0: not certain). `lasting` False:
    what is told, by a DHCP server say, rather than what is written. `but`: what it looks as if it did.
    """

    owner: str
    path: str
    line: int
    key: str
    mtu: int | None
    lasting: bool = True
    but: str = ""

    @property
    def place(self) -> str:
        """Path and line."""
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True, order=True)
class Via:
    """A route through a gateway. `destination`: a network in the form of `ip route`, or `default`."""

    family: int
    destination: str
    gateway: str
    metric: int | None = field(default=None, compare=False)
    onlink: bool = field(default=False, compare=False)

    @property
    def networks(self) -> tuple[str, ...]:
        """All ways in which its destination is written."""
        return ("default", "0.0.0.0/0", "::/0") if self.destination == "default" else (self.destination,)


@dataclass(frozen=True)
class Kept:
    """Routes through the interface that are to keep a smaller MTU than it has, in bytes."""

    mtu: int
    routes: tuple[Via, ...] = ()


@dataclass(frozen=True)
class Edit:
    """A file as it is and as it is to be. `before` None: there is none yet. `reload` has its owner take it.

    `whole` False: the texts are a part of the file, without what is secret in it; `reload` makes the change, `back` the
    way back, and nothing is written.
    """

    owner: str
    path: str
    before: str | None
    after: str | None
    reload: tuple[Command, ...] = ()
    mode: int = 0o644  # of a file that is made; one that is there keeps its own
    whole: bool = True
    back: tuple[Command, ...] | None = None  # None: as `reload`

    @property
    def undo(self) -> Edit:
        """The way back."""
        reload = self.reload if self.back is None else self.back
        back = None if self.back is None else self.reload
        return replace(self, before=self.after, after=self.before, reload=reload, back=back)

    @property
    def diff(self) -> str:
        """As `patch -p0` reads it. Lines around the change that may hold a secret are left out; Trouble if the change
        itself is in such a line."""
        text = self._diff(3)
        if not SECRET.search(text):
            return text
        text = self._diff(0)
        if SECRET.search(text):
            raise Trouble(self.path, "an MTU in one line with a secret", "a line of its own")
        return text

    def _diff(self, around: int) -> str:
        old, new = ([] if text is None else text.splitlines(keepends=True) for text in (self.before, self.after))
        above, below = ("/dev/null" if text is None else self.path for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, above, below, n=around)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def as_document(self) -> dict[str, Any]:
        """As it stands in documents."""
        return {
            "owner": self.owner, "path": self.path, "whole": self.whole, "mode": f"{self.mode:04o}", "diff": self.diff,
            "reload": [list(command) for command in self.reload],
            "undo": {"diff": self.undo.diff, "reload": [list(command) for command in self.undo.reload]},
        }  # fmt: skip


class Trouble(Exception):
    """A file that its owner would not understand, or that cannot be changed with certainty; one line."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(one_line(f"{where}: found {found}, expected {expected}"))
