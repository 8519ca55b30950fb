"""Text from outside, made fit to be shown: on a terminal, and on a page."""

from __future__ import annotations

import html

__all__ = ["escaped", "printable"]


def printable(text: str) -> str:
    """The text with control characters and everything else that cannot be printed replaced."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def escaped(value: object) -> str:
    """For HTML, in text and in attributes alike."""
    return html.escape(printable(str(value)), quote=True)
