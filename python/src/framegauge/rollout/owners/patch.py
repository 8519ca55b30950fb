"""Applies a unified diff to the text of a file, or not at all: days later, when the file may have changed elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from framegauge.rollout.owners.model import Trouble

__all__ = ["fits", "patched"]

NOTHING = "/dev/null"
NO_END = "\\ No newline at end of file"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True)
class _Hunk:
    start: int  # 0-based, in the old text
    old: list[str]  # lines with their ends
    new: list[str]


def patched(text: str | None, diff: str, path: str) -> str | None:
    """The text after the change; None for a file that is not there, before or after. Trouble if the lines that the diff
    replaces are not there, or at several places.

    Lines above may have come or gone, unless the diff has no lines around its changes to find them by.
    """
    lines = diff.split("\n")
    if len(lines) < 2 or not lines[0].startswith("--- ") or not lines[1].startswith("+++ "):
        raise Trouble(path, "no unified diff", "one that begins with --- and +++")
    is_new, is_removed = lines[0] == f"--- {NOTHING}", lines[1] == f"+++ {NOTHING}"
    if is_new != (text is None):
        raise Trouble(path, "a file that is there" if is_new else "no file", "none" if is_new else "the file")
    old = _lines(text or "")
    result: list[str] = []
    index = moved = 0
    for hunk in _hunks(lines[2:], path):
        place = _place(old, hunk, index, moved, path)
        moved = place - hunk.start
        result += old[index:place] + hunk.new
        index = place + len(hunk.old)
    result += old[index:]
    if is_removed and result:
        raise Trouble(path, "lines that the change did not make", "only those that are to go")
    return None if is_removed else "".join(result)


def fits(text: str | None, diff: str, path: str) -> bool:
    """Whether the change could be made."""
    try:
        patched(text, diff, path)
    except Trouble:
        return False
    return True


def _lines(text: str) -> list[str]:
    """With their ends; of other separators than a line feed, none counts."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _hunks(lines: list[str], path: str) -> Iterator[_Hunk]:
    number = 0
    while number < len(lines) and lines[number]:
        head = _HUNK.match(lines[number])
        if head is None:
            raise Trouble(path, f"{lines[number][:40]!r} in a diff", "the head of a hunk")
        # Without old lines the number is that of the line before.
        start = int(head[1]) - (0 if head[2] == "0" else 1)
        old: list[str] = []
        new: list[str] = []
        last: list[list[str]] = []
        number += 1
        while number < len(lines) and lines[number][:1] in (" ", "-", "+", "\\"):
            sign, line = lines[number][:1], lines[number][1:] + "\n"
            if sign == "\\":
                for side in last:
                    side[-1] = side[-1].removesuffix("\n")
            else:
                last = [side for side, signs in ((old, " -"), (new, " +")) if sign in signs]
                for side in last:
                    side.append(line)
            number += 1
        yield _Hunk(start, old, new)


def _place(old: list[str], hunk: _Hunk, least: int, moved: int, path: str) -> int:
    """Where the lines of a hunk are: where they were, or at the only other place."""
    size = len(hunk.old)
    expected = hunk.start + moved
    if expected >= least and old[expected : expected + size] == hunk.old:
        return expected
    has_more = len(hunk.old) > len([line for line in hunk.old if line not in hunk.new])
    places = [at for at in range(least, len(old) - size + 1) if old[at : at + size] == hunk.old] if has_more else []
    if len(places) != 1:
        raise Trouble(path, f"{len(places)} places for the change", "the lines that were there, once")
    return places[0]
