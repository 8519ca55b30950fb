"""A decision that is as long as decisions are shown."""

from __future__ import annotations

from framegauge.report.decision.model import Decision, Part
from framegauge.report.decision.sheet import LIMITS
from framegauge.summary.sentence import Answer, Kind

COMMAND = "framegauge check --hosts inventory.ini --mtu 9000 --json > check.json"
WORDS = "the path between two hosts of a storage network carries "


def words(size: int) -> str:
    return (WORDS * (size // len(WORDS) + 1))[:size]


def longest(size: int = 1000, count: int = 100) -> Decision:
    """Every text, table and list has more than its room."""
    tables = {"verdicts": 6, "competitors": 5}
    parts = [
        Part(
            name, name, [(words(size), COMMAND if name in ("risks", "next") else "")] * count,
            [words(20)] * tables.get(name, 0), [[words(size)] * tables[name]] * count if name in tables else [],
        )
        for name in LIMITS[0].lines
    ]  # fmt: skip
    clauses = "; ".join([words(50)] * (size // 50))
    return Decision(
        words(size), "emulated", True, Answer(Kind.DEPENDS, f"It depends: {clauses}."), [words(size)], parts
    )
