"""Text from outside, made fit to be shown: on a terminal, and on a page."""

from __future__ import annotations

import html

__all__ = ["escaped", "printable"]


def printable(text: str) -> str:
    """The text with a replacement for what would move a cursor, or is no character at all."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def escaped(value: object) -> str:
    """For HTML, in text and in attributes alike."""
    return html.escape(printable(str(value)), quote=True)
