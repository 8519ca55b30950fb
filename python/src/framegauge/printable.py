"""Names that come from outside, made fit to be shown."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """What would move a cursor, or is no character at all, is replaced."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
