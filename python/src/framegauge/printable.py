"""Text from outside, made fit to be shown: on a terminal, and on a page."""

from __future__ import annotations

import html

__all__ = ["escaped", "one_line", "printable", "sentence"]


def printable(text: str) -> str:
    """The text with control characters and everything else that cannot be printed replaced."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def one_line(text: object, most: int = 1000) -> str:
    """What somebody else wrote, as one printable line of so many characters at most: nothing in it looks like a line of
    ours, or hides one."""
    line = printable(" ".join(str(text)[: 4 * most].split()))
    return line if len(line) <= most else line[:most] + "…"


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name: hosts and interfaces keep their spelling."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.rstrip(",").isalpha() else text


def escaped(value: object) -> str:
    """For HTML, in text and in attributes alike."""
    return html.escape(printable(str(value)), quote=True)
