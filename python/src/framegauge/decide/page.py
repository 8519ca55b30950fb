"""The decision as a page and as a document: the answer, its reasons, and how to go on. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from framegauge.check.judgement.rdma import ports_of
from framegauge.decide import judge
from framegauge.decide.folder import SCHEMA, STEPS
from framegauge.decide.judge import Conclusion, State
from framegauge.decide.places import LAB_STAYS
from framegauge.decide.steps import BUSY, NIC_LIMIT, Found
from framegauge.quantities import print_bits_per_second
from framegauge.report.check import risks
from framegauge.report.decision import content
from framegauge.report.decision.model import Choice, Decision, Line, Part, sections
from framegauge.summary import words
from framegauge.summary.schema import decision_schema
from framegauge.summary.sentence import Answer

__all__ = ["Situation", "decision", "document", "schema"]

Json = Mapping[str, Any]
MOST_REFUSED = 3
NO_STUDY = "No study is part of this page"


@dataclass(frozen=True)
class Situation:
    """What was asked: the question, where, the target, the folder as commands name it, and whether changes were
    allowed. `rollout`: the file of a roll-out, if one was written."""

    question: str
    scope: str
    target_mtu: int
    place: Path
    allowed: bool
    rollout: Path | None = None


def decision(asked: Situation, found: Found, conclusion: Conclusion) -> Decision:
    """The page. Its parts are those of a study's decision, or say why there is no study."""
    target = None if found.target is None else risks.of_check(found.target)
    if found.summary is not None:
        whole = content.decide(found.summary, asked.place / "study", target)
        parts = {section.name: section for section in whole.parts}
    else:
        whole, parts = None, {section.name: section for section in _without_study(found)}
    open_ends = _open_ends(asked, whole) if whole is not None and conclusion.choice is Choice.CANNOT_TELL else ()
    study = "" if found.summary is None else ", and the study with its report.html"
    verdicts = parts["verdicts"]
    own = {
        "verdicts": replace(verdicts, lines=[*verdicts.lines, *judge.load_lines(found.estimate)]),
        "risks": _risks(asked, found),
        "not_measured": _not_measured(parts["not_measured"], found),
        "next": Part("next", "What to do next", [*_next(asked, found, conclusion), *open_ends]),
    }
    return Decision(
        asked.question,
        asked.scope,
        found.summary is None or (whole is not None and whole.faithful),
        Answer(conclusion.choice, conclusion.text),
        list(_beside(asked, found, conclusion)),
        [own.get(name, part) for name, part in parts.items()],
        whole="the document",
        footer=f"All results are beside this page: the document (decision.json), the checks{study}.",
    )


def _beside(situation: Situation, results: Found, conclusion: Conclusion) -> Iterator[str]:
    enough, most = judge.sufficient(results.summary), situation.target_mtu
    if conclusion.choice in (Choice.DO_IT, Choice.SUBNET_ONLY) and enough is not None and enough < most:
        yield f"MTU {enough} is enough: it already gives what MTU {most} does"
    if results.present is not None and results.present["verdict"] == "could_not_tell":
        yield f"Not known: whether every path carries packets of {results.present['target_mtu']} bytes now"
    if lost := _lost_now(results):
        yield f"Lost even now: large packets to {words.joined(lost)}, from hosts that have a larger MTU"
    refused = [
        finding for finding in (results.preflight or {"findings": []})["findings"] if finding["severity"] == "refused"
    ]
    if refused:
        reasons = list(dict.fromkeys(map(_kind, refused)))
        more = [f"{len(reasons) - MOST_REFUSED} more"] if len(reasons) > MOST_REFUSED else []
        yield f"A roll-out is refused because of {words.joined([*reasons[:MOST_REFUSED], *more])}"
    for host in results.facts["hosts"]:
        if host["error"] is not None:
            yield f"Not known: {host['name']}, which could not be asked"


def _kind(finding: Json) -> str:
    return f"{str(finding['what']).replace('_', ' ')} ({finding['where']})"


def _without_study(results: Found) -> Iterator[Part]:
    why = results.left_out.get("study", "it was not asked for")
    yield Part("verdicts", "What the hosts are", [f"{NO_STUDY}, because {why}"], *_hosts(results.facts))
    yield Part("smallest", "The smallest sufficient MTU", [f"Not known: {NO_STUDY.lower()}"])
    yield Part("competitors", "What competes: other settings", [f"Not known: {NO_STUDY.lower()}"])
    yield Part("risks", content.RISKS, [])
    yield Part("not_measured", "What was not measured", ["What larger frames bring to applications here"])
    yield Part("next", "", [])


def _hosts(facts: Json) -> tuple[list[str], list[list[str]]]:
    rows = []
    for host in facts["hosts"]:
        for nic in host["interfaces"]:
            most = nic["maximum_mtu"]
            speed = nic.get("bits_per_second")
            rows.append([
                host["name"], nic["name"], nic["driver"] or "?", print_bits_per_second(speed) if speed else "?",
                f"{nic['mtu']} of {most}" if most else str(nic["mtu"]),
            ])  # fmt: skip
        if host["error"] is not None:
            rows.append([host["name"], "-", "", "", "not asked"])
    return ["host", "interface", "driver", "speed", "MTU"], rows


def _risks(situation: Situation, results: Found) -> Part:
    lines: list[Line] = []
    for document, how in (
        (results.present, "as they are"),
        (results.target, "raised" if results.raised else "as they are"),
    ):
        if document is not None:
            check_risks = risks.of_check(document)
            lines += [f"{check_risks.headline}, the hosts {how}", *check_risks.found, *check_risks.limits]
    lines += [*_stands(results.preflight), *_exposed(results.estimate, situation.target_mtu)]
    lines += judge.limits(results.facts, situation.target_mtu)
    lines += _rdma(results.present, situation.target_mtu)
    return Part("risks", content.RISKS, list(dict.fromkeys(lines)) or ["No path was checked"])


def _rdma(document: Json | None, target_mtu: int) -> Iterator[str]:
    """What becomes of the path MTU of RDMA ports."""
    for host in (document or {"hosts": []})["hosts"]:
        problems = [port.wrong(target_mtu) for port in ports_of(host["facts"])]
        yield from (f"{host['name']}: {text}" for text in problems if text is not None)


def _stands(preflight: Json | None) -> Iterator[str]:
    """What a preflight found, the gravest first; and files that would undo the change."""
    findings = (
        [] if preflight is None else sorted(preflight["findings"], key=lambda entry: entry["severity"] != "refused")
    )
    for entry in findings:
        if entry["severity"] != "note":
            yield f"{entry['where']}: found {entry['found']}, expected {entry['expected']}: {entry['remedy']}"
    if preflight is not None and (changes := preflight["changes"]):
        owners = sorted({str(entry.get("owner")) for entry in changes})
        yield f"The change lasts only with {len(changes)} more in files of {words.joined(owners)} (preflight.json)"


def _exposed(estimate: Json | None, target_mtu: int) -> Iterator[str]:
    """Programs whose messages are one segment after the change, and then wait for an acknowledgement (Nagle)."""
    for host in (estimate or {"hosts": []})["hosts"]:
        sockets = [socket for row in host["nagle"] if row["mtu"] == target_mtu for socket in row["sockets"]]
        programs = sorted({str(socket.get("program") or "an unknown program") for socket in sockets})
        if programs:
            many = f"{len(sockets)} socket{'' if len(sockets) == 1 else 's'}"
            yield f"Nagle's algorithm may stall {many} of {words.joined(programs)} on {host['host']}"


def _not_measured(part: Part, results: Found) -> Part:
    mtus = sorted({interface["mtu"] for host in results.facts["hosts"] for interface in host["interfaces"]})
    lines = [f"{step_name(name)}: left out, because {why}" for name, why in results.left_out.items() if name != "study"]
    if len(mtus) > 1:
        lines.append(f"The hosts have different MTUs ({words.joined(list(map(str, mtus)))}); the smallest is compared")
    return replace(part, lines=[*part.lines, *lines])


def step_name(name: str) -> str:
    """A result that was left out, for people."""
    return {"check-raised": "Check with the hosts raised", "estimate": "Estimate", "preflight": "Preflight"}[name]


def _next(situation: Situation, results: Found, conclusion: Conclusion) -> Iterator[Line]:
    """The first step first."""
    again = ["framegauge", "decide", "--resume", "--out", str(situation.place)]
    paths = results.paths(situation.target_mtu)
    if conclusion.choice in (Choice.DO_IT, Choice.SUBNET_ONLY):
        yield from _go_on(situation)
        return
    if paths.state is State.FAULT and results.target is not None and results.left_out.get("check-raised") != NIC_LIMIT:
        yield (
            "Remove the faults above; then check the paths again, and decide",
            shlex.join([*again, "--again", "check"]),
        )
    elif paths.state is State.FAULT and (most := _most(results.facts)) > (results.facts["present_mtu"] or 0):
        yield f"Ask about the MTU that every NIC takes: framegauge decide with --mtu {most}"
    elif conclusion.choice is Choice.DO_NOT:
        yield "Leave the MTU as it is; decide again when the applications or the hosts change"
    if conclusion.choice is Choice.CANNOT_TELL:
        if (
            situation.scope == "measured"
            and not situation.allowed
            and results.left_out.get("study", "").startswith("changes")
        ):
            changes = [*again, "--allow-changes"]
            yield "See everything that would be changed on the hosts", shlex.join([*changes, "--dry-run"])
            yield "Let the hosts be raised for the check and a short study", shlex.join(changes)
        elif paths.state is State.UNKNOWN:
            yield from _towards_paths(results, again)
        yield from _towards_study(results.left_out.get("study", ""), again)


def _towards_study(why: str, again: list[str]) -> Iterator[Line]:
    """What would make a study possible that was left out because of `why`."""
    if why.startswith(BUSY):
        remedy = why.rpartition("): ")[2] if "): " in why else "wait until it is less so"
        yield f"Too busy for the study now: {remedy}; then go on, with what is there already", shlex.join(again)
    elif "not reached over ssh" in why:
        yield "Name the hosts as ssh knows them: these can be raised for the check and a study, and are put back"
    elif "read_only" in why:
        yield "Decide about hosts that may be raised, without those that their inventory has as read_only"
    elif why == LAB_STAYS:
        yield "Ask the same about a rack that is studied, or about hosts of your own", "framegauge decide --rack"


def _lost_now(results: Found) -> list[str]:
    """Hosts to which others with a larger MTU send what is lost without an error, as they all are."""
    if results.raised or results.target is None:
        return []
    mtus = {host["name"]: [interface["mtu"] for interface in host["interfaces"]] for host in results.facts["hosts"]}
    lost = {
        pair["destination"]: None
        for pair in results.target["pairs"]
        if pair["verdict"] == "black_hole"
        and max(mtus.get(pair["source"], ()), default=0) > min(mtus.get(pair["destination"], ()), default=0)
    }
    return list(lost)


def _towards_paths(results: Found, again: list[str]) -> Iterator[Line]:
    """What would make the paths known."""
    check = shlex.join([*again, "--again", "check"])
    if lost := _lost_now(results):
        yield (
            f"Give {words.joined(lost)} the MTU of the others, or the others theirs; then check the paths again",
            check,
        )
    else:
        yield "Check the paths again", check


def _open_ends(situation: Situation, whole: Decision) -> Iterator[Line]:
    """What the study itself asks for next, and how to decide with it."""
    again = ["framegauge", "decide", "--resume", "--out", str(situation.place)]
    if whole.faithful:
        yield from whole.parts[-1].lines
        yield "Decide with what it has found by then", shlex.join(again)
        return
    yield from (line for line in whole.parts[-1].lines if isinstance(line, str))
    yield "Then study it again", shlex.join([*again, "--again", "study"])


def _most(facts: Json) -> int:
    """The smallest of the maxima that NICs state."""
    known = [
        interface["maximum_mtu"]
        for host in facts["hosts"]
        for interface in host["interfaces"]
        if interface["maximum_mtu"]
    ]
    return min(known, default=0)


def _go_on(situation: Situation) -> Iterator[Line]:
    if situation.scope != "measured":
        yield "Ask the same about hosts of your own", "framegauge decide HOST HOST --allow-changes"
        return
    if situation.rollout is not None:
        yield (
            "Plan the change: each step with its undo, nothing is changed",
            shlex.join(["framegauge", "rollout", "plan", str(situation.rollout)]),
        )
    yield "Raise switches first, then hosts; lower hosts first: no host may send what a neighbour does not take"


def document(asked: Situation, found: Found, conclusion: Conclusion, page: Decision) -> dict[str, Any]:
    """The decision as JSON, with nothing left out."""
    return {
        "schema": SCHEMA,
        "question": asked.question,
        "scope": asked.scope,
        "choice": conclusion.choice.name.lower(),
        "exit_code": judge.EXIT_CODES[conclusion.choice],
        "text": conclusion.text,
        "subnets": list(conclusion.subnets),
        "hosts": [host["name"] for host in found.facts["hosts"]],
        "present_mtu": found.facts["present_mtu"],
        "target_mtu": asked.target_mtu,
        "sufficient_mtu": judge.sufficient(found.summary),
        "paths": found.paths(asked.target_mtu).state.value,
        "brings": found.benefit(asked.target_mtu).brings.value,
        "steps": [{"name": name, "left_out": found.left_out.get(name)} for name in STEPS],
        "beside": list(page.beside),
        "sections": sections(page.parts),
        "rollout": None if asked.rollout is None else str(asked.rollout),
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of `document`; its sections are those of `framegauge report --decision`."""
    text = files("framegauge.decide").joinpath("decide.schema.json").read_text(encoding="utf-8")
    definition: dict[str, Any] = json.loads(text)
    definition["properties"]["sections"] = decision_schema()["properties"]["sections"]
    return definition
