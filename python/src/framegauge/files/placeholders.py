"""Placeholders in words that users write: `{NAME}` stands for a value, `{{NAME}}` for the word itself.

`${NAME}` is none: it is a shell's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from framegauge.errors import QuantityError

__all__ = ["expected", "placeholders", "substitute"]

# A name as hosts have them. Other braces, such as those of JSON or of a shell's ${variable}, are no placeholders.
_WORD = re.compile(r"(?<!\$)(?:\{\{([A-Za-z0-9._-]+)\}\}|\{([A-Za-z0-9._-]+)\})")


def placeholders(text: str) -> list[str]:
    """The names in single braces, in order."""
    return [match[2] for match in _WORD.finditer(text) if match[2] is not None]


def expected(name: str, known: Iterable[str]) -> str:
    """What a text may have in place of an unknown name."""
    return f"one of {', '.join(f'{{{key}}}' for key in known)}, or {{{{{name}}}}} for the word itself"


def substitute(text: str, values: Mapping[str, str]) -> str:
    """The text with the value of each `{NAME}`; `{{NAME}}` becomes `{NAME}`, other braces stay.

    QuantityError names an unknown one and those that are known; whoever reads a file adds its name and line.
    """

    def replaced(match: re.Match[str]) -> str:
        plain, name = match.groups()
        if plain is not None:
            return f"{{{plain}}}"
        if name not in values:
            raise QuantityError(f"{{{name}}}", expected(name, values))
        return values[name]

    return _WORD.sub(replaced, text)
