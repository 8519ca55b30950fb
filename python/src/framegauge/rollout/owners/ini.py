"""Text of sections and keys, as systemd, NetworkManager and others write it; changed line by line, comments kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from framegauge.rollout.owners.model import Trouble

__all__ = ["Entry", "blocks", "entries", "last", "with_key"]

COMMENTS = ("#", ";")


@dataclass(frozen=True)
class Entry:
    """A key with its value. `line` is 1-based."""

    section: str
    key: str
    value: str
    line: int


def entries(text: str, path: str) -> list[Entry]:
    """All of them in order; Trouble for a line that is none, with its number.

    A line that ends with a backslash goes on in the next (systemd.syntax(7)).
    """
    result: list[Entry] = []
    section = ""
    for number, line in _whole(text):
        stripped = line.strip()
        if not stripped or stripped.startswith(COMMENTS):
            continue
        if stripped.startswith("["):
            if not stripped.endswith("]"):
                raise Trouble(f"{path}:{number}", repr(stripped[:40]), "a section such as [Link]")
            section = stripped[1:-1]
            continue
        key, equals, value = stripped.partition("=")
        if not equals or not key.strip():
            raise Trouble(f"{path}:{number}", repr(stripped[:40]), "KEY=VALUE")
        result.append(Entry(section, key.strip(), value.strip(), number))
    return result


def _whole(text: str) -> Iterator[tuple[int, str]]:
    """Lines with the number of their first, continued ones joined."""
    begun, parts = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        continues = line.endswith("\\") and not line.lstrip().startswith(COMMENTS)
        begun = begun or number
        if parts and line.lstrip().startswith(COMMENTS):
            continue  # a comment between continued lines is left out
        parts += line[:-1] + " " if continues else line
        if not continues:
            yield begun, parts
            begun, parts = 0, ""
    if begun:
        yield begun, parts


def last(found: list[Entry], section: str, key: str) -> Entry | None:
    """The entry that counts, the last one; without regard to case, as NetworkManager and people write them."""
    hits = [entry for entry in found if entry.section.lower() == section.lower() and entry.key.lower() == key.lower()]
    return hits[-1] if hits else None


def blocks(text: str, path: str, section: str) -> list[tuple[int, list[Entry]]]:
    """The sections of that name, of which there may be several: the line of each one's head, and its entries."""
    lines = text.split("\n")
    heads = [
        number
        for number, line in enumerate(lines, 1)
        if line.strip().lower() == f"[{section.lower()}]" and not _continued(lines, number - 1)
    ]
    rows = [entry for entry in entries(text, path) if entry.section.lower() == section.lower()]
    return [
        (head, [entry for entry in rows if head < entry.line and not any(head < other < entry.line for other in heads)])
        for head in heads
    ]


def with_key(text: str, path: str, section: str, key: str, value: str) -> str:
    """The text with that key in that section; Trouble if it cannot be read. All else stays, to the byte.

    A key that is there gets the value where it counts. A section that is not there comes at the end.
    """
    all_entries = entries(text, path)
    lines = text.split("\n")
    ending = "\r" if lines[0].endswith("\r") else ""
    old_entry = last(all_entries, section, key)
    if old_entry is not None:
        old = lines[old_entry.line - 1]
        if old.rstrip("\r").endswith("\\"):
            raise Trouble(f"{path}:{old_entry.line}", f"a {key} that goes on in the next line", "one line")
        lines[old_entry.line - 1] = f"{old[: len(old) - len(old.lstrip())]}{old_entry.key}={value}{ending}"
        return "\n".join(lines)
    heads = [
        number
        for number, line in enumerate(lines)
        if line.strip().lower() == f"[{section.lower()}]" and not _continued(lines, number)
    ]
    if heads:
        return "\n".join([*lines[: heads[0] + 1], f"{key}={value}{ending}", *lines[heads[0] + 1 :]])
    if text and not text.endswith("\n"):
        text += f"{ending}\n"
    gap = f"{ending}\n" if text.strip() else ""
    return f"{text}{gap}[{section}]{ending}\n{key}={value}{ending}\n"


def _continued(lines: list[str], number: int) -> bool:
    return number > 0 and lines[number - 1].rstrip("\r").endswith("\\")
