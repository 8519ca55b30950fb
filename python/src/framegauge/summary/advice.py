"""How many more blocks may decide what is open."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["more_blocks"]

MOST_BLOCKS = 1000  # a larger number of blocks is no advice
_MORE_BLOCKS = re.compile(r"about (\d+) more block")  # in the warnings of statistics.doubts


def more_blocks(undecided: Sequence[Mapping[str, Any]]) -> int | None:
    """The largest number in the warnings of these verdicts; None if one has no number, or it is no advice."""
    lines = [[_MORE_BLOCKS.search(line) for line in verdict["warnings"]] for verdict in undecided]
    blocks = [max((int(match[1]) for match in matches if match), default=None) for matches in lines]
    known = [count for count in blocks if count is not None]
    return max(known) if known and len(known) == len(blocks) and max(known) <= MOST_BLOCKS else None
