"""Results folders that a test edits by hand: sealed again, as if they had been written so."""

from __future__ import annotations

from pathlib import Path

from framegauge.results import reading
from framegauge.results.journal import Journal


def seal(folder: Path) -> Path:
    """Gives an edited folder the seals that fit; without a trace, and without the summary of what it was before."""
    (folder / reading.SUMMARY).unlink(missing_ok=True)
    Journal.reseal(folder, "")[0].close()
    plan = reading.read(folder).plan
    with Journal.resume(folder) as journal:
        journal._kept["sealed_again"] = []
        journal.extend(plan)
    return folder
