"""How many comparisons have no verdict, counted alike wherever it is said: treatments first, A/A controls apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from framegauge.summary import words

__all__ = ["NO_VERDICT", "counted"]

NO_VERDICT = ("suspect", "not judged")


def counted(verdicts: Sequence[Mapping[str, Any]], kinds: Collection[str] = NO_VERDICT) -> str:
    """The comparisons with such a verdict: "2 of 8 comparisons and 1 of 4 A/A controls"; empty if there is none."""
    controls = [verdict for verdict in verdicts if words.is_control(verdict)]
    treated = [verdict for verdict in verdicts if not words.is_control(verdict)]
    parts = []
    for group, name in ((treated, "comparison"), (controls, "A/A control")):
        lost = sum(verdict["verdict"] in kinds for verdict in group)
        if lost:
            parts.append(f"{lost} of {len(group)} {name}{'' if len(group) == 1 else 's'}")
    return " and ".join(parts)
