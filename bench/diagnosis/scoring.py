"""Recall, precision and F1 of each kind, and what was found instead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.diagnosis.judging import Sample

WORTH_NOTHING = frozenset({"application_limited", "network_limited", "aggregates"})


@dataclass
class Score:
    """How a kind was told. `right`: found where it had to be; `missed`, and found where it is `wrong`."""

    right: int = 0
    missed: int = 0
    wrong: int = 0
    instead: Counter[str] = field(default_factory=Counter)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def f1(self) -> float:
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0


def scores(samples: Iterable[Sample]) -> dict[str, Score]:
    """By kind, those that some sample had to show."""
    found: defaultdict[str, Score] = defaultdict(Score)
    wanted: set[str] = set()
    for sample in samples:
        wanted |= sample.must
        for kind in sample.must:
            found[kind].right += kind in sample.found
            found[kind].missed += kind not in sample.found
        for kind in sample.wrong:
            found[kind].wrong += 1
        for kind in sample.missed:
            found[kind].instead.update(sample.wrong or ["nothing"])
    return {kind: found[kind] for kind in sorted(found) if kind in wanted or found[kind].wrong}


def macro_f1(of_kinds: dict[str, Score]) -> float:
    """The mean over the kinds that were provoked."""
    provoked = [score.f1 for score in of_kinds.values() if score.right + score.missed]
    return sum(provoked) / len(provoked) if provoked else 0.0


def confusion(samples: Iterable[Sample]) -> dict[str, Counter[str]]:
    """How often each kind was found at a tap, by the kind that the scene provokes."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        rows[sample.kind].update(sample.found)
        rows[sample.kind]["taps"] += 1
    return dict(rows)


def false_warnings(samples: Iterable[Sample]) -> tuple[int, int]:
    """Warnings in clean scenes, and the clean flows that were looked at."""
    clean = [sample for sample in samples if sample.kind == "clean"]
    return sum(len(sample.wrong - WORTH_NOTHING) for sample in clean), sum(sample.flows for sample in clean)
