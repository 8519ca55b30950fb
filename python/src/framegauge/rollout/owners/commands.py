"""Commands of a shell that set an MTU, as hooks and scripts have them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

__all__ = ["SPEAKS", "Setting", "settings", "with_mtu"]

# A word of its own, or of camel case (vethMTU, MTUBytes); not what a kernel or a router does with path MTUs, what a
# rule of nft takes an MSS from (`rt mtu`), or what OpenVPN gives its own tunnel.
SPEAKS = re.compile(
    r"(?<!accept_ra_)(?<!\brt )(?<!\btun-)(?<!\blink-)(?:(?<![A-Za-z])(?:mtu|MTU|Mtu)|(?<=[a-z])(?:MTU|Mtu))"
    r"(?![a-z]|[_-](?:probing|expires|ignore|disc|test)\b)"
)
# The words of each end with the command: one behind `;` or `&&` is another.
IP = re.compile(r"\bip\s+(?:-\S+\s+)*l(?:i|in|ink)?\s+set\s+(?P<words>[^;&|\n]*)")
IFCONFIG = re.compile(r"\bifconfig\s+(?P<words>[^;&|\n]*)")
SYSFS = re.compile(
    r"\b(?P<first>echo|printf)\s+(?:-\S+\s+)*[\"']?(?P<mtu>\d{1,9})(?:\\n)?[\"']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s+(?:-\S+\s+)*)\s*"
    r"[\"']?/sys/class/net/(?P<name>[^/\s]+)/mtu\b"
)
WORD = re.compile(r"\S+")
MTU = re.compile(r"\d{1,9}\b")
# What may stand before the interface, other than its name.
BEFORE = ("dev", "mtu", "up", "down")


@dataclass(frozen=True)
class Setting:
    """A command that sets an MTU. `first`: its first word; `name`: the interface as it is written, without quotes;
    `start` and `end`: where the line has the number."""

    first: str
    name: str
    mtu: int
    start: int
    end: int


def settings(line: str) -> list[Setting]:
    """The commands of a line that set an MTU to a number."""
    assignments = [*_with_words("ip", IP, line), *_with_words("ifconfig", IFCONFIG, line)]
    assignments += [
        Setting(match["first"], _bare(match["name"]), int(match["mtu"]), match.start("mtu"), match.end("mtu"))
        for match in SYSFS.finditer(line)
    ]
    return sorted(assignments, key=lambda match: match.start)


def with_mtu(line: str, names: Collection[str], mtu: int) -> str:
    """The line in which each command for one of the interfaces sets that MTU."""
    for setting in reversed(settings(line)):
        if setting.name in names:
            line = f"{line[: setting.start]}{mtu}{line[setting.end :]}"
    return line


def _with_words(first: str, pattern: re.Pattern[str], line: str) -> Iterator[Setting]:
    for command in pattern.finditer(line):
        words = list(WORD.finditer(line, command.start("words"), command.end("words")))
        texts = [_bare(word[0]) for word in words]
        next_words = dict(zip(texts, [*words[1:], None], strict=True)) if texts else {}
        device = next_words.get("dev") if first == "ip" else None
        name = _bare(device[0]) if device is not None else texts[0] if texts and texts[0] not in BEFORE else ""
        value = next_words.get("mtu")
        number = None if value is None else MTU.match(line, value.start() + (value[0][0] in "\"'"))
        if name and number is not None:
            yield Setting(first, name, int(number[0]), number.start(), number.end())


def _bare(word: str) -> str:
    return word.strip("\"'")
