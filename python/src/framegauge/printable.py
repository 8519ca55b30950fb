"""Text from outside, made fit to be shown: on a terminal, and on a page."""

from __future__ import annotations

import html
import re
import textwrap

__all__ = ["complaint", "escaped", "one_line", "printable", "prose", "sentence", "wrapped"]

KEEPING = "\N{NO-BREAK SPACE}"
# The space between a number and its unit, after which a word or a path may not go on; and between MTU and its number.
_OF_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|[kMGT]?b/s|[kKMGT]?i?B(?:/s)?|[nmuµ]?s(?:/GB)?|min|h|ppm)(?![\w/]))|(?<=\bMTU) (?=\d)"
)

_RUST_NUMBER = re.compile(r" \(os error \d+\)")


def printable(text: str) -> str:
    """The text with control characters and everything else that cannot be printed replaced, and without the numbers
    that Rust gives errors beside their names."""
    if "(os error " in text:
        text = _RUST_NUMBER.sub("", text)
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def one_line(text: object, most: int = 1000) -> str:
    """What somebody else wrote, as one printable line of so many characters at most: nothing in it looks like a line of
    ours, or hides one."""
    line = printable(" ".join(str(text)[: 4 * most].split()))
    return line if len(line) <= most else line[:most] + "…"


def complaint(said: str, prefix: str, most: int) -> str:
    """What a program of ours says before it ends, without its name."""
    return one_line(said.removeprefix(prefix), most)


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with a name: hosts and interfaces keep their spelling."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.rstrip(",").isalpha() else text


def escaped(value: object) -> str:
    """For HTML, in text and in attributes alike."""
    return html.escape(printable(str(value)), quote=True)


def prose(value: object) -> str:
    """For HTML, where lines may be broken anywhere but between a number and its unit. Not for what is copied."""
    return _OF_UNIT.sub(KEEPING, escaped(value))


def wrapped(text: str, width: int, first: str = "", following: str = "", hyphens: bool = True) -> list[str]:
    """The lines of a text on a terminal: no number without its unit. `first` and `following` are the indents; `hyphens`
    says whether a line may end at one."""
    lines = textwrap.wrap(
        _OF_UNIT.sub(KEEPING, text), max(1, width), initial_indent=first, subsequent_indent=following,
        break_on_hyphens=hyphens,
    )  # fmt: skip
    return [line.replace(KEEPING, " ") for line in lines]
