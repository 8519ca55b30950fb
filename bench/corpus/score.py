"""Scores answers against truths: the same program for every tool.

A cause that a tap can know, on a connection, is one item. It is *right* if the tool names it for that connection, or
for the capture as a whole; and if the tool says when, at a time that overlaps the true one to within an RTT. Otherwise
it is *missed*. A cause that a tool names and that is neither an item nor among what may be said is *wrong*; named twice
for a connection it is one. Families are scored likewise, with every kind replaced by its family.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.corpus.answers import Answer, Pair
from bench.corpus.families import FAMILIES, family
from bench.diagnosis.scoring import WORTH_NOTHING, Score, macro_f1

SECOND = 1_000_000_000
TAPS = ("sender", "switch", "receiver")
Names = Callable[[str], str | None]


@dataclass(frozen=True)
class Item:
    """A cause that has to be named. Times: seconds since 1970."""

    cause: str
    connection: Pair | None
    begin: float | None
    end: float | None


@dataclass(frozen=True)
class Truth:
    """What is true of a capture. `slack`: seconds by which times may miss."""

    capture: str
    scene: str
    kind: str
    split: str
    must: Sequence[Item]
    may: frozenset[str]
    connections: frozenset[Pair]
    slack: float


@dataclass
class Result:
    """How a tool did. `warnings`: wrong answers on captures of clean scenes, `clean`: the connections of these."""

    kinds: dict[str, Score] = field(default_factory=dict)
    families: dict[str, Score] = field(default_factory=dict)
    answers: int = 0
    strangers: int = 0
    unknown: int = 0
    warnings: int = 0
    clean: int = 0

    @property
    def macro(self) -> tuple[float, float]:
        """Macro-F1 over kinds, and over families."""
        return macro_f1(self.kinds), macro_f1(self.families)


def truths(documents: Iterable[Mapping[str, Any]]) -> list[Truth]:
    """Of each capture, from the documents of a corpus."""
    return [_truth(document, tap) for document in documents for tap in TAPS]


def _truth(document: Mapping[str, Any], tap: str) -> Truth:
    pairs = {each["connection"]: frozenset(each["ends"][tap]) for each in document["connections"]}
    capture = document["captures"][tap]
    items = [
        Item(
            each["cause"],
            None if each["connection"] is None else pairs[each["connection"]],
            *(each[name] / SECOND if name in each else None for name in ("begin_nanoseconds", "end_nanoseconds")),
        )
        for each in capture["must"]
    ]
    name = f"runs/{document['run']}/{tap}.pcapng.gz"
    return Truth(
        name, document["scene"], document["kind"], document["split"], items, frozenset(capture["may"]),
        frozenset(pairs.values()), document["conditions"]["rtt"],
    )  # fmt: skip


def score(known: Sequence[Truth], answers: Iterable[Answer]) -> Result:
    """How the answers on these captures are; those on others are counted only."""
    by_capture: dict[str, list[Answer]] = defaultdict(list)
    result = Result()
    captures = {truth.capture: truth for truth in known}
    for answer in answers:
        truth = captures.get(answer.capture)
        if truth is None:
            result.unknown += 1
            continue
        result.answers += 1
        result.strangers += answer.connection is not None and answer.connection not in truth.connections
        by_capture[answer.capture].append(answer)
    for truth in known:
        named = by_capture[truth.capture]
        wrong = _judge(truth, named, lambda cause: None if cause in FAMILIES else cause, result.kinds)
        _judge(truth, named, family, result.families)
        if truth.kind == "clean":
            result.warnings += sum(cause not in WORTH_NOTHING for cause, _ in wrong)
            result.clean += len(truth.connections)
    wanted = {item.cause for truth in known for item in truth.must}
    result.kinds = _shown(result.kinds, wanted)
    result.families = _shown(result.families, {family(cause) or "" for cause in wanted})
    return result


def _shown(scores: Mapping[str, Score], wanted: set[str]) -> dict[str, Score]:
    return {name: scores[name] for name in sorted(scores) if name in wanted or scores[name].wrong}


def _judge(
    truth: Truth, answers: Sequence[Answer], name: Names, scores: dict[str, Score]
) -> set[tuple[str, Pair | None]]:
    """Count what is right, missed and wrong; the wrong ones."""
    items = {(cause, item.connection): item for item in truth.must if (cause := name(item.cause))}
    # What may be said of the capture's other connections, too.
    may = {cause for each in truth.may if (cause := name(each))}
    right: set[tuple[str, Pair | None]] = set()
    wrong: set[tuple[str, Pair | None]] = set()
    for answer in answers:
        cause = name(answer.cause)
        if cause is None:
            continue
        meant = [
            key
            for key, item in items.items()
            if key[0] == cause and (answer.connection is None or key[1] in (None, answer.connection))
        ]
        overlapping = [key for key in meant if _overlap(answer, items[key], truth.slack)]
        right.update(overlapping)
        if not overlapping and cause not in may:
            wrong.add((cause, answer.connection))
    for key in items:
        scores.setdefault(key[0], Score())
        scores[key[0]].right += key in right
        scores[key[0]].missed += key not in right
    for cause, _ in wrong:
        scores.setdefault(cause, Score()).wrong += 1
    return wrong


def _overlap(answer: Answer, item: Item, slack: float) -> bool:
    if answer.begin is None or answer.end is None or item.begin is None or item.end is None:
        return True
    return answer.begin <= item.end + slack and answer.end >= item.begin - slack
