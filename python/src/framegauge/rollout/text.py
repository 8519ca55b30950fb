"""A roll-out in words for a terminal: lines, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from framegauge.rollout.engine import Outcome
from framegauge.rollout.model import Json, stated
from framegauge.rollout.routes import Held, parse
from framegauge.rollout.transition import typed

__all__ = ["file_lines", "left_lines", "outcome_lines", "plan_lines", "state_lines", "warned_lines"]

STAGE_WORDS = {
    "hold": "hold every route at the smaller MTU, on every host",
    "link": "change the interfaces, on every host; then prove full-size packets between all of them",
    "release": "release the routes, wave by wave; prove after each",
}
STATE_WORDS = {
    "unchanged": "not changed by this roll-out",
    "old": "as it was",
    "new": "as asked",
    "held": "its routes are held at the smaller MTU",
    "other": "changed by something else",
}
FILE_WORDS = {
    "kept": "keeps the new MTU",
    "gone": "is as it was before, and keeps no new MTU",
    "other": "was changed by something else: whether it keeps the new MTU is not known",
    "not_known": "could not be read",
}
DONE = {
    "finished": "done: every interface has {mtu} bytes, proved both ways",
    "undone": "undone",
    "undone_in_part": "undone on every host that could be reached",
    "held": "every route of the hosts that could be reached is held at the smaller MTU; interfaces are as they were",
}


def plan_lines(document: Json) -> Iterator[str]:
    """What would be done: the waves, the findings, every step and its undo."""
    change = document["asked"]
    yield document["question"]
    for number, wave in enumerate(change["waves"], 1):
        rows = (f"{name} {change['interfaces'][name]} {_mtus(document['hosts'][name])}" for name in wave)
        yield f"wave {number}: {'; '.join(rows)}"
    scope = "the subnets of the interface only" if change["scope"] == "subnets" else "every route through it"
    yield f"scope: {scope}; every change is a lease of {change['lease_seconds']:g} s, kept only while full-size packets"
    yield f"pass both ways to {change['probes']} other hosts, or to all if there are fewer"
    yield from _link_loss(document["link_loss_seconds"])
    yield from _already_lost(document["hosts"])
    yield from _findings(document["findings"])
    for entry in document["changes"]:
        yield f"to keep it, {entry['owner']} on {entry['host']}: {entry['path']} (framegauge rollout persist)"
    kind = ""
    for number, step in enumerate(document["steps"], 1):
        if step["kind"] != kind:
            kind = step["kind"]
            yield f"{STAGE_WORDS[kind]}:"
        yield f"  {number}. {step['host']}: {_typed(step['request']['settings'])}"
        yield f"     undo: {_typed(step['back'])}"
    if not document["steps"]:
        yield f"nothing is to be done: every host has an MTU of {change['target_mtu']} bytes already"
    if document["afterwards"]:
        yield "afterwards, containers, which keep what they have until they are made anew:"
    for entry in document["afterwards"]:
        yield f"  {entry['host']}: {entry['what']}: {entry['now'] or 'not told'} → {entry['mtu']}"
        yield f"     {entry['how']}"


def warned_lines(document: Json) -> Iterator[str]:
    """What a plan warns of, for who changes the MTU without having read one. What is forced is a warning."""
    yield from _link_loss(document["link_loss_seconds"])
    yield from _already_lost(document["hosts"])
    yield from _findings([finding for finding in document["findings"] if finding["severity"] == "warning"])


def _link_loss(seconds: Mapping[str, float]) -> Iterator[str]:
    if seconds:
        longest = max(seconds.values())
        yield f"links may be down for up to {longest:g} s when their MTU changes, on {', '.join(seconds)}:"
        yield f"interfaces change wave by wave, {longest:g} s apart or more"


def _already_lost(hosts: Mapping[str, Json]) -> Iterator[str]:
    """Hosts of different MTUs, between which packets are lost now: nothing can prove that state again."""
    mtus = {int(host["before"][f"mtu:{host['interface']}"]) for host in hosts.values()}
    if len(mtus) > 1:
        sizes = ", ".join(map(str, sorted(mtus)))
        yield f"these hosts have different MTUs ({sizes}): what the larger ones send to the others may be lost now,"
        yield "and then an undo of all is refused, because full-size packets would not pass"


def _findings(findings: Sequence[Json]) -> Iterator[str]:
    """Each of them once, with all places that it is of: hosts are often alike."""
    places: dict[tuple[str, ...], list[str]] = {}
    for finding in findings:
        alike = tuple(str(finding[key]) for key in ("severity", "what", "found", "expected", "remedy"))
        places.setdefault(alike, []).append(finding["where"])
    for (severity, what, actual, expected, remedy), where in places.items():
        yield f"{severity}: {', '.join(where)}: {what}: {stated(actual, expected)}"
        yield f"  {remedy}"


def _typed(settings: Mapping[str, str]) -> str:
    """Settings in the words of `ip`: a command for an interface, and what becomes of its routes, by IP version."""
    lines, versions = [], dict[tuple[str, str], list[str]]()
    for name, text in settings.items():
        kind, _, interface = name.partition(":")
        if kind in ("mtu", "mtu6"):
            lines += typed({name: text})
        else:
            versions.setdefault((interface, text), []).append(f"IPv{kind.removeprefix('routes')}")
    for (interface, text), families in versions.items():
        value = parse(text)
        parts = [f"{name} {_mtu(held)}" for name, held in sorted(value.named.items())]
        parts.append(f"{'every other' if parts else 'every'} route {_mtu(value.others)}")
        lines.append(f"routes of {interface} ({', '.join(families)}): {', '.join(parts)}")
    return "; ".join(lines)


def _mtu(held: Held) -> str:
    return f"with mtu {'lock ' if held.locked else ''}{held.mtu}" if held.mtu else "without an mtu of its own"


def _mtus(host: Json) -> str:
    name = f"mtu:{host['interface']}"
    return f"{host['before'][name]} → {host['after'][name]}"


def outcome_lines(outcome: Outcome, seconds: float, mtu: int, undoing: bool = False) -> Iterator[str]:
    """How a change, or its undo, ended, why, and what is left to do."""
    if outcome.kind in DONE:
        yield DONE[outcome.kind].format(mtu=mtu)
        yield from (f"but {line}" for line in outcome.why)
        if outcome.closed:
            yield f"connections ended for new ones: {sum(outcome.closed.values())}"
        if outcome.kind == "finished":
            yield "this lasts until a reboot, or until the owner of the MTU sets it again: `framegauge rollout persist"
            yield "FILE` has owners keep it, and `framegauge rollout status FILE --prove` looks again days later"
        return
    yield from outcome.why
    if outcome.kind == "parked":
        yield "some hosts keep what others put back: nothing is lost, every route is held at the smaller MTU;"
        yield "finish it with `framegauge rollout apply FILE`, or take it back with `framegauge rollout undo FILE`"
    else:
        yield "nothing is undone: every host is as it was before this undo" if undoing else "everything is put back"
    for name, why in outcome.not_confirmed.items():
        yield f"{name}: not confirmed ({why}); its lease ends within {seconds:g} s"


def left_lines(left: Mapping[str, str], heard: Mapping[str, str], lines: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The hosts that an undo did not reach, and what to type there."""
    for name, why in left.items():
        yield f"{why if why.startswith(name) else f'{name}: {why}'}"
        if name in heard:
            yield f"{name}: it may still send large packets ({heard[name]}): no interface was lowered"
        yield from (f"{name}: run there: {line}" for line in lines[name])
    if left:
        yield "`framegauge rollout undo FILE` goes on once they can be reached; --without HOST if one never will be"


def file_lines(files: Sequence[Json]) -> Iterator[str]:
    """What the files of owners are, that the journal says were to keep the new MTU, and what to do about those that
    do."""
    for row in files:
        cut = "" if row["confirmed"] else " (persist was cut off while it changed this file)"
        why = f": {row['why']}" if row["why"] else ""
        yield f"{row['host']}: {row['path']} {FILE_WORDS[row['state']]}{why}{cut}"
    if any(row["state"] != "gone" for row in files):
        yield "`framegauge rollout persist FILE --undo` takes back what files keep"


def state_lines(document: Json) -> Iterator[str]:
    """Each host against the journal, the proof, and connections that keep an old MSS."""
    last = document["last"]
    yield "no roll-out is in the journal" if last is None else f"last: {document['outcome']} at {last['at']}"
    for name, row in document["hosts"].items():
        routes = " and ".join(str(mtu) for mtu in row["route_mtus"])
        yield f"{name}: {row['interface']}: MTU {row['mtu']}, routes {routes}: {STATE_WORDS[row['state']]}"
    for name, why in document["lost"].items():
        yield f"not known: {why if why.startswith(f'{name}: ') else f'{name}: {why}'}"
    yield from file_lines(document["files"])
    if (proof := document["proof"]) is not None:
        bad = [*proof["faults"], *proof["unknown"], *proof["new_connections"]]
        which = "all that were reached" if document["lost"] else "all of them"
        yield from bad or [f"packets of {proof['mtu']} bytes pass between {which}"]
    for name, report in document["connections"].items():
        if report["count"]:
            examples = "; ".join(f"{peer['remote']} (MSS {peer['mss_bytes']})" for peer in report["connections"][:5])
            yield f"{name}: {report['count']} connections keep an old MSS until they are opened anew: {examples}"
