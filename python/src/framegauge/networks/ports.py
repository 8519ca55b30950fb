"""Names of ports: FROM>TO, or FROM:TO where a shell would redirect."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["capture_file", "named", "unknown"]

MOST_NAMES = 6


def named(text: str) -> str:
    """The name of the port that people write as FROM>TO or FROM:TO."""
    return text.replace(":", ">", 1)


def capture_file(port: str) -> str:
    """The usual name of a capture of a port: switch-h1.pcapng of switch>h1, as in crates/drivers/src/simulations."""
    return port.replace(">", "-").replace("#", "-") + ".pcapng"


def unknown(kind: str, name: str, names: Sequence[str]) -> str:
    """What was found and expected, for a port or host that is not there, with the most similar names."""
    similar = difflib.get_close_matches(name, names, MOST_NAMES) or list(names[:MOST_NAMES])
    suffix = f" ({len(names)} {kind}s in all)" if len(names) > len(similar) else ""
    return f'found no {kind} "{name}", expected one such as {", ".join(similar)}{suffix}'
