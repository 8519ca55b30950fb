"""What does not work, in words: a workload at some level of the treatment, or at the baseline as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framegauge.statistics.verdict import BASELINE_FAILS
from framegauge.summary import claims, words

__all__ = ["fails_before", "text"]

Verdict = Mapping[str, Any]  # an entry of the summary's `verdicts`


def text(summary: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    """What does not work, with the reason of its first run: "nfs, udp does not work at MTU 9000 (h2: 0 of …)"."""
    cells = words.Cells(summary["verdicts"])
    texts: dict[str, None] = {}
    for verdict in verdicts:
        why = f" ({verdict['warnings'][0]})" if verdict["warnings"] else ""
        before = f"at {words.subject(verdict['baseline'])} or " if fails_before(verdict) else ""
        texts[f"{cells.name(verdict)} does not work {before}at {claims.level_of(verdict)}{why}"] = None
    return words.joined(list(texts))


def fails_before(verdict: Verdict) -> bool:
    """Whether the workload does not work at the baseline either, so that the treatment is not to blame."""
    return any(line.startswith(BASELINE_FAILS) for line in verdict["warnings"])
