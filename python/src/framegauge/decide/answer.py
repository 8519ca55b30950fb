"""From the question to the page: runs the steps, judges what they found, and writes both beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from framegauge.decide import judge, page, rollout, steps
from framegauge.decide.folder import CHECKS, FILES, PAGE, RESTING, ROLLOUT, Folder
from framegauge.decide.page import Situation
from framegauge.decide.places import Place
from framegauge.decide.question import Question
from framegauge.decide.steps import Hands
from framegauge.decide.trial import LEAST_MTU
from framegauge.report.decision.model import Decision
from framegauge.report.drawings import drawings
from framegauge.report.page import decision as decision_page
from framegauge.study.model import Study

__all__ = ["Answered", "answer", "plan"]


@dataclass(frozen=True)
class Answered:
    """The page, where it is, the document, and the exit code that says the same."""

    page: Decision
    place: Path
    document: dict[str, Any]
    exit_code: int


def answer(question: Question, allowed: bool, folder: Folder, hands: Hands) -> Answered:
    """Runs what is left of the steps, and answers."""
    place = question.place(allowed)
    results = steps.run(place, question.study, question.target_mtu, folder, hands)
    conclusion = judge.conclude(results.paths(question.target_mtu), results.benefit(question.target_mtu))
    # An absolute path belongs to one machine, and the page may be read on another.
    named = Path(folder.path.name) if folder.path.is_absolute() else folder.path
    situation = Situation(question.text, place.scope, question.target_mtu, named, allowed)
    file = rollout.text(question, results, conclusion)
    if file is not None:
        folder.write(ROLLOUT, file.encode())
        situation = replace(situation, rollout=named / ROLLOUT)
    shown = page.decision(situation, results, conclusion)
    document = page.document(situation, results, conclusion, shown)
    folder.write("decision.json", json.dumps(document, indent=1).encode())
    drawn = drawings(results.target or results.present, results.summary)
    written = folder.write(PAGE, decision_page.page(shown, drawn).encode())
    return Answered(shown, written, document, judge.EXIT_CODES[conclusion.choice])


def plan(
    question: Question, allowed: bool, folder: Folder, again: str | None, seconds: float
) -> tuple[list[str], Study | None]:
    """What would be done, in lines; and the study of the last one, if there may be one. Nothing is asked of a host."""
    forgotten = RESTING[again] if again is not None else ()

    def kept(step: str, files: tuple[str, ...]) -> str | None:
        there = [f"{name}.json" for name in files if step not in forgotten and folder.has(name)]
        return f"{step}: kept in {folder.path} ({', '.join(there)})" if there else None

    place = question.place(allowed)
    facts = folder.load("facts") if "facts" not in forgotten and folder.has("facts") else None
    present = (facts or {}).get("present_mtu") or LEAST_MTU
    why = place.unchangeable()
    lines = [question.text, kept("facts", FILES["facts"]) or f"facts: {_facts(question)}"]
    built = None if place.built is None else f"left out, because {place.built}"
    reads = "read what stands against a change, and the files of who sets MTUs; nothing is changed"
    lines.append(kept("preflight", FILES["preflight"]) or f"preflight: {built or reads}")
    lines += [kept("check", CHECKS) or line for line in _checks(question, place, present, facts is not None)]
    lines = list(dict.fromkeys(lines))
    reads = f"what they carry, for {seconds:g} s; nothing is sent"
    lines.append(kept("estimate", FILES["estimate"]) or f"estimate: {built or reads}")
    if why is None and question.study is None:
        why = "there is nothing that could be studied"
    if why is not None:
        return [*lines, f"study: left out, because {why}", _last(folder)], None
    if kept_line := kept("study", FILES["study"]):
        return [*lines, kept_line, _last(folder)], None
    assert question.study is not None
    lines += [_last(folder), "study, where all paths carry the target:"]
    return lines, steps.study_of(question.study, facts, None)


def _last(folder: Folder) -> str:
    return f"page: {folder.path / PAGE}"


def _facts(question: Question) -> str:
    if question.rack:
        return "of hosts that are built for it"
    names = [*question.hosts, *(machine.name for machine in question.machines)]
    over = "over your ssh, with an agent that is copied there if it is missing; nothing is changed"
    return f"read from {', '.join(names)}, {over}"


def _checks(question: Question, place: Place, present: int, known: bool) -> Iterator[str]:
    now = f"of {present} bytes" if known else "of their present MTU"
    yield f"check: every pair, each way, with packets {now}, the hosts as they are"
    target = question.target_mtu
    if place.unchangeable() is None:
        how = "built with that MTU" if question.rack else "raised to that MTU by leases, if the paths have no fault"
        yield f"check: the same with packets of {target} bytes, the hosts {how}"
    else:
        yield f"check: the same with packets of {target} bytes, the hosts as they are, because {place.unchangeable()}"
