"""Names from outside, made safe to print."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """The text with control characters and everything else that cannot be printed replaced."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
