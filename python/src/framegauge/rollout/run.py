"""What the verbs of `framegauge rollout` do, without arguments or printing: a file in, a document out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from framegauge.check.addresses import candidates
from framegauge.check.judgement import planner
from framegauge.check.plan import Member, ask_all, read_facts
from framegauge.errors import AgentFailure, InputError
from framegauge.rollout import interfaces, preflight, text, transition
from framegauge.rollout.answers import probed
from framegauge.rollout.engine import Engine, Outcome, Settings
from framegauge.rollout.file import Rollout
from framegauge.rollout.fleet import Fleet
from framegauge.rollout.gate import gate
from framegauge.rollout.journal import Journal, Past, folder_of, read
from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.preflight import containers, link_loss, survey
from framegauge.rollout.proof import HEADERS, TIMESTAMPS_BYTES, Prover, new_connections
from framegauge.rollout.routes import sent_to
from framegauge.rollout.switches import hook
from framegauge.rollout.transition import HostChange, Link
from framegauge.testbeds.listed import ListedHosts, placed

__all__ = [
    "Opened", "apply", "described", "engine", "lines_of", "opened", "plan", "refused", "states", "surveyed",
]  # fmt: skip

SHORTEST_PATIENCE_SECONDS, PATIENCE_SHARE = 2.0, 0.25
MOST_LISTED = 20  # connections per host
PLANNED = (
    "question",
    "findings",
    "steps",
    "changes",
    "addresses",
    "afterwards",
)  # of a plan, what its journal keeps beside

Say = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """The hosts of a roll-out with their facts, interfaces and addresses. `missing`: hosts that could not be reached,
    and why; all else is without them."""

    rollout: Rollout
    asked: Asked
    members: tuple[Member, ...]
    facts: Mapping[str, Json]
    links: Mapping[str, tuple[Link, ...]]
    addresses: Mapping[str, tuple[str, ...]]
    past: Past
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> int:
        """With how many others full-size packets must pass."""
        most = planner.PEERS if len(self.members) > planner.FULL_MESH_HOSTS else len(self.members) - 1
        return min(self.rollout.file.probes, most)

    @property
    def patience_seconds(self) -> float:
        """How long a host may take to answer."""
        return max(SHORTEST_PATIENCE_SECONDS, PATIENCE_SHARE * self.asked.lease_seconds)

    def prover(self, changes: Sequence[HostChange] = ()) -> Prover:
        """Probes between these hosts, of packets as large as they send after these changes."""
        return Prover(self.members, self.asked.families, self.patience_seconds, partial(_largest, self, changes))

    def fleet(self, changes: Sequence[HostChange]) -> Fleet:
        """Their leases."""
        sudo = [
            member.name for member in self.members if getattr(member.host.agent, "about", {}).get("user_id", 0) != 0
        ]
        return Fleet(self.members, changes, self.asked.lease_seconds, self.patience_seconds, sudo)


@contextmanager
def opened(
    rollout: Rollout, folder: Path | None, say: Say, undoing: bool = False, partly: bool = False
) -> Iterator[Opened]:
    """Reaches every host and reads what it is; InputError or AgentFailure if one cannot be reached, or has no such
    interface. Nothing is changed. `partly`: such a host is `missing` instead, unless all are. `undoing`: that, and the
    interfaces are those that the journal says were changed."""
    past = read(folder or folder_of(rollout.path))
    request = rollout.asked if rollout.asked.old_mtu is not None else replace(rollout.asked, old_mtu=past.hold)
    hosts = ListedHosts([placed(member) for member in rollout.machines], say, gone=undoing or partly)
    try:
        members = tuple(Member(host, request.interfaces[host.name]) for host in hosts.hosts())
        errors: dict[str, str] = {}
        facts = read_facts(
            [Member(member.host) for member in members], errors
        )  # whether each has its interface: `interfaces.read`
        links = interfaces.read(members, request, facts, past.origin if undoing else {}, errors, undoing or partly)
        if errors and not undoing and (not partly or not links):
            raise AgentFailure("\n".join(lines_of(errors)))
        members = tuple(member for member in members if member.name not in errors)
        addresses = {
            member.name: tuple(
                entry.address for family in (4, 6) for entry in candidates(facts[member.name], family, member.interface)
            )
            for member in members
        }
        yield Opened(rollout, request, members, facts, links, addresses, past, errors)
    finally:
        hosts.close()


def lines_of(errors: Mapping[str, str]) -> list[str]:
    """A line for each host that failed."""
    return [why if why.startswith(name) else f"{name}: {why}" for name, why in errors.items()]


def plan(hosts: Opened) -> Json:
    """What would be done, with every step and its undo, and what stands against it. Nothing is changed."""
    changes = transition.changes(hosts.asked, hosts.links)
    facts = probed(hosts.members, surveyed(hosts), hosts.asked)
    return {
        "schema": 1,
        "question": hosts.rollout.file.question,
        "asked": described(hosts),
        "hosts": {change.host: change.as_json() for change in changes},
        "findings": [vars(entry) for entry in preflight.findings(facts, hosts.asked)],
        "steps": [
            {
                "host": step.host, "kind": step.kind, "command": list(step.command), "undo": list(step.undo),
                "request": step.request, "back": step.back,
            }
            for step in transition.steps(changes if transition.has_room(changes) else (), hosts.asked.lease_seconds)
        ],
        "changes": [
            {"host": host, **edit.as_document()}
            for host, edits in preflight.edits(facts, hosts.asked, min(entry.hold for entry in changes)).items()
            for edit in edits
        ],
        "addresses": {name: list(host_addresses) for name, host_addresses in hosts.addresses.items()},
        "afterwards": containers.afterwards(facts, hosts.asked),
        "link_loss_seconds": link_loss.predicted(facts, hosts.asked),
    }  # fmt: skip


def surveyed(hosts: Opened, untold: dict[str, str] | None = None) -> Mapping[str, Json]:
    """What a preflight reads of the hosts, by name. Those that do not tell are in `untold`, with the reason; without
    it, AgentFailure."""
    errors: dict[str, str] = {}
    facts = survey.read([member.host for member in hosts.members], errors, hosts.facts)
    if untold is None and errors:
        raise AgentFailure("\n".join(errors.values()))
    (untold if untold is not None else {}).update(errors)
    return facts


def described(hosts: Opened) -> Json:
    """What is asked of them, for the journal and for programs."""
    request = hosts.asked
    return {
        "waves": [list(wave) for wave in request.waves], "interfaces": dict(request.interfaces),
        "target_mtu": request.target_mtu, "scope": request.scope, "families": list(request.families),
        "lease_seconds": request.lease_seconds, "probes": hosts.rollout.file.probes,
        "wait_seconds": hosts.rollout.file.wait, "forced": sorted(request.forced),
        "destinations": {machine.name: machine.destination for machine in hosts.rollout.machines},
    }  # fmt: skip


def refused(document: Json) -> list[str]:
    """A line for each finding of a plan that stands against it, unless the user forces it."""
    forced = set(document["asked"]["forced"])
    findings = [Finding(**finding) for finding in document["findings"]]
    return [str(finding) for finding in findings if finding.severity == "refused" and finding.what not in forced]


def apply(hosts: Opened, folder: Path | None, say: Say, gate_command: str | None = None) -> Outcome:
    """Does it, or puts everything back. InputError if something stands against it, or nothing would change. What the
    plan warns of is said before anything is changed."""
    document = plan(hosts)
    if lines := refused(document):
        raise InputError("\n".join(lines))
    changes = transition.changes(hosts.asked, hosts.links)
    transition.demand_room(changes)
    for line in text.warned_lines(document):
        say(line)
    with Journal(folder or folder_of(hosts.rollout.path)) as journal:
        before = {change.host: dict(change.before) for change in changes}
        origin = before | dict(hosts.past.origin) if hosts.past.hold is not None else before
        down_seconds = max(document["link_loss_seconds"].values(), default=0.0)
        work = engine("apply", hosts, changes, journal, origin, say, gate_command, link_loss_seconds=down_seconds)
        journal.write("plan", plan={key: document[key] for key in PLANNED})
        switches = hosts.rollout.file.switches
        if switches is not None and any(host_change.mtu > host_change.hold for host_change in changes):
            return _with_switches(switches, hosts, changes, journal, say, work)
        return work.run()


def engine(
    kind: str,
    hosts: Opened,
    changes: Sequence[HostChange],
    journal: Journal,
    origin: Mapping[str, Mapping[str, str]],
    say: Say,
    gate_command: str | None = None,
    done: str = "finished",
    link_loss_seconds: float = 0.0,
) -> Engine:
    """What carries out these changes; the journal says that it has begun. `done`: its last word there."""
    file = hosts.rollout.file
    journal.begin(kind, described(hosts), {change.host: change.as_json() for change in changes}, origin)
    return Engine(
        changes, hosts.fleet(changes), hosts.prover(changes), journal,
        Settings(
            hosts.asked.lease_seconds, hosts.needed, file.wait, hosts.asked.families, file.reopen,
            gate=None if gate_command is None else lambda pause, released: gate(gate_command, pause, released),
            link_loss_seconds=link_loss_seconds,
        ),
        hosts.addresses, say, done=done,
    )  # fmt: skip


def _with_switches(
    command: str, hosts: Opened, changes: Sequence[HostChange], journal: Journal, say: Say, work: Engine
) -> Outcome:
    """A change between the two halves of a user's program that changes switches: it confirms only what was proved."""
    size, hold = max(change.mtu for change in changes), min(change.hold for change in changes)

    def ask(action: hook.Action) -> None:
        say(f"switches: {action}")
        journal.write("switches", action=action)
        hook.run(command, action, size, hold, hosts.asked.interfaces)

    try:
        ask("prepare")
    except BaseException:
        journal.write("put_back", not_confirmed={}, kept={})  # no host was changed
        raise
    done = False
    try:
        outcome = work.run()
        done = outcome.kind == "finished"
    finally:
        ask("confirm" if done else "undo")
    return outcome


def states(hosts: Opened, prove: bool, say: Say) -> Json:
    """How every host that was reached is, against its journal; with `prove`, what full-size packets show of it. `lost`:
    why others are not known, or their connections are not."""
    rows = {name: _state(hosts, name) for name in hosts.asked.hosts if name in hosts.links}
    proof = None
    if prove and len(rows) > 1:
        mtu = min(link.mtu for links in hosts.links.values() for link in links if not link.beside)
        say(f"proving that packets of {mtu} bytes pass between all of them")
        mesh_proof = hosts.prover().mesh(mtu)
        proof = mesh_proof.as_json() | {"new_connections": new_connections(mesh_proof, partial(_largest, hosts, ()))}
    state = {"finished": "new", "put_back": "old", "undone": "old", "none": "unchanged"}.get(hosts.past.outcome)
    proved = proof is None or not (proof["faults"] or proof["unknown"] or proof["new_connections"])
    connections, errors = _old_connections(hosts)
    lost = {**hosts.missing, **errors}
    return {
        "schema": 1, "as_it_should_be": proved and not lost and all(row["state"] == state for row in rows.values()),
        "outcome": hosts.past.outcome, "last": hosts.past.entries[-1] if hosts.past.entries else None,
        "hosts": rows, "proof": proof, "connections": connections, "lost": lost,
    }  # fmt: skip


def _largest(hosts: Opened, changes: Sequence[HostChange], name: str, address: str) -> int:
    """The largest packet that a host sends to an address, by its routes as they are, or as these changes leave them."""
    [link] = [host_link for host_link in hosts.links[name] if not host_link.beside]
    settings = link.settings
    for change in changes:
        if change.host == name:
            settings = change.after
    return sent_to(link.routes, settings, link.interface, address)


def _state(hosts: Opened, name: str) -> Json:
    """One host: `old` or `new` if it is as before or after the last change, `held` if its routes keep the smaller MTU,
    `other` if something else has changed it."""
    [link] = [host_link for host_link in hosts.links[name] if not host_link.beside]
    now = {setting: text for host_link in hosts.links[name] for setting, text in host_link.settings.items()}
    mtus = sorted({route.held.mtu or link.mtu for route in link.routes}) or [link.mtu]
    begun = hosts.past.begun.get("hosts", {}).get(name)
    word = "unchanged"
    if begun is None and name in hosts.past.origin:
        word = "old" if _fits(now, hosts.past.origin[name], link) else "new"  # an undo that did not reach it
    elif begun is None and name in hosts.past.back:
        word = "old" if _fits(now, hosts.past.back[name], link) else "other"
    elif begun is not None:
        same = {"new": begun["after"], "old": hosts.past.origin.get(name, begun["before"])}
        if hosts.past.begun["kind"] == "undo":
            same = {"old": begun["after"], "new": begun["before"]}
        matching = [key for key, settings in same.items() if _fits(now, settings, link)]
        held = mtus == [begun["hold"]] and link.mtu != begun["hold"]
        word = matching[0] if matching else "held" if held else "other"
    return {"interface": link.interface, "mtu": link.mtu, "route_mtus": mtus, "state": word}


def _fits(now: Mapping[str, str], settings: Mapping[str, str], link: Link) -> bool:
    from framegauge.rollout.fleet import differs

    kinds = [f"{kind}:{link.interface}" for kind in ("mtu", "mtu6")]
    answer = {
        "settings": {name: text for name, text in now.items() if name in kinds},
        "routes": [
            {
                "family": route.family, "route": route.name, "connected": route.connected, "mtu": route.held.mtu,
                "locked": route.held.locked,
            }
            for route in link.routes
        ],
    }  # fmt: skip
    return f"mtu:{link.interface}" in settings and not differs("", link.interface, answer, settings)


def _old_connections(hosts: Opened) -> tuple[Json, dict[str, str]]:
    """Established connections between the hosts whose MSS is below what their interface now allows; and why those of
    some are not known."""
    errors: dict[str, str] = {}
    answers = ask_all(hosts.members, "sockets.read", lambda _: {}, errors, hosts.patience_seconds)
    connections: Json = {}
    for name, answer in answers.items():
        others = {entry for other, addresses in hosts.addresses.items() if other != name for entry in addresses}
        [link] = [entry for entry in hosts.links[name] if not entry.beside]
        small = []
        for socket in answer["sockets"]:
            host = socket["remote"].rpartition(":")[0].strip("[]").removeprefix("::ffff:")
            least = link.mtu - HEADERS[6 if ":" in host else 4] - TIMESTAMPS_BYTES
            if socket["state"] == "established" and host in others and socket["mss_bytes"] < least:
                small.append({key: socket[key] for key in ("local", "remote", "mss_bytes")})
        connections[name] = {"count": len(small), "connections": small[:MOST_LISTED]}
    return connections, errors
