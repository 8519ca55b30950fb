"""Has the owners of the MTUs keep what a roll-out did, by its journal; and takes that back, days later.

Each change of a file is in the journal before it is made, with the lines that undo it, and after it, that it was made.
Where this process ends in between, the file itself tells which of the two it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framegauge.errors import AgentFailure, DiskFull, InputError
from framegauge.rollout import persist, preflight
from framegauge.rollout.journal import Journal, folder_of
from framegauge.rollout.model import Json
from framegauge.rollout.owners import Edit, Trouble, dhcp, lawful
from framegauge.rollout.owners.patch import fits, patched
from framegauge.rollout.preflight.ownership import shared_text
from framegauge.rollout.run import Opened, surveyed

__all__ = ["Kept", "files", "keep", "kept", "loose", "take_back"]

Say = Callable[[str], None]


def keep(hosts: Opened, folder: Path | None, say: Say) -> list[str]:
    """Changes the files of all owners; a line for each that could not be. InputError unless a roll-out has ended well.

    One that fails is as it was, and the others are changed.
    """
    if hosts.past.outcome != "finished":
        raise InputError(
            f"found a roll-out that is {hosts.past.outcome.replace('_', ' ')}, expected one that has finished: "
            "framegauge rollout apply"
        )
    edits = preflight.edits(surveyed(hosts), hosts.asked, _hold(hosts))
    cut_off = [row for row in files(hosts) if row["state"] == "kept" and not row["confirmed"]]
    complaints: list[str] = []
    with Journal(folder or folder_of(hosts.rollout.path)) as journal:
        for row in cut_off:
            say(f"{row['host']}: {row['path']} keeps it already: only its owner may not have taken it")
            journal.write("persisted", host=row["host"], path=row["path"])
        for host, host_edits in edits.items():
            for edit in host_edits:
                say(f"{host}: having {edit.owner} keep it: {edit.path}")
                journal.write("persisting", host=host, **edit.as_document())
                complaints += _made(hosts, host, edit, journal, "persisted")
    return complaints


def loose(hosts: Opened) -> list[str]:
    """A line for each route that keeps the smaller MTU only until its host starts, as no file of an owner's gives it;
    for each DHCP client that takes what a server tells; and for each file that is not changed for what else it means.
    """
    hold = _hold(hosts)
    owners = preflight.owners(surveyed(hosts), hosts.asked, hold)
    lines = [
        f"{host}: {claim.owner} takes {claim.key}: {dhcp.server_lines(hosts.asked.target_mtu)}"
        for host, ownership in owners.items()
        for claim in ownership.claims
        if not claim.lasting and claim.mtu != hosts.asked.target_mtu
    ]
    lines += [
        f"{host}: {shared_text(path, names)}" for host, ownership in owners.items() for path, names in ownership.shared
    ]
    return lines + [
        f"{host}: the route to {route.destination} by {route.gateway} keeps {hold} only until a start: nothing that is "
        "known here makes it; give it an MTU where it is made"
        for host, ownership in owners.items()
        for route in ownership.loose
    ]


def _hold(hosts: Opened) -> int:
    """The MTU that routes through a gateway have kept."""
    return min(int(change["hold"]) for change in hosts.past.begun["hosts"].values())


@dataclass(frozen=True)
class Kept:
    """A change of a file that a journal says was begun (its entry `persisting`) and not taken back. `confirmed`: the
    journal has that it was made; else it was cut off, and only the file tells."""

    entry: Json
    confirmed: bool

    @property
    def host(self) -> str:
        """Whose file it is."""
        return str(self.entry["host"])

    @property
    def path(self) -> str:
        """Which file."""
        return str(self.entry["path"])

    def state(self, text: str | None) -> tuple[str, str]:
        """What the file is now: `kept` if the change is there, `gone` if it could be made anew, else `other`; and why
        that is so of the last."""
        try:
            patched(text, self.entry["undo"]["diff"], self.path)
        except Trouble as trouble:
            return ("gone", "") if fits(text, self.entry["diff"], self.path) else ("other", str(trouble))
        return "kept", ""


def kept(entries: Sequence[Json]) -> list[Kept]:
    """The changes of files that a journal says were made, or begun, and not taken back, the newest first."""
    edits: list[Kept] = []
    for entry in entries:
        if entry["event"] == "persisting":
            edits.insert(0, Kept(entry, False))
        elif entry["event"] in ("persisted", "persist_failed", "persist_undone"):
            matches = [edit for edit in edits if (edit.host, edit.path) == (entry["host"], entry["path"])]
            if entry["event"] == "persist_undone":
                edits = [edit for edit in edits if edit not in matches]
            elif matches and not matches[0].confirmed:
                slot = edits.index(matches[0])
                edits[slot : slot + 1] = [replace(matches[0], confirmed=True)] if entry["event"] == "persisted" else []
    return edits


def files(hosts: Opened) -> list[Json]:
    """What the files are now that the journal says were to keep the new MTU, by host and path."""
    changes = kept(hosts.past.entries)
    errors: dict[str, str] = {}
    facts = surveyed(hosts, errors) if changes else {}
    errors |= hosts.missing
    rows = []
    for change in changes:
        state, why = "not_known", errors.get(change.host, "found in the journal and not in the file")
        if change.host in facts and change.host not in errors:
            state, why = change.state(facts[change.host]["files"].get(change.path))
        rows.append(
            {"host": change.host, "owner": change.entry["owner"], "path": change.path, "state": state, "why": why,
             "confirmed": change.confirmed}
        )  # fmt: skip
    return rows


def take_back(hosts: Opened, folder: Path | None, say: Say) -> list[str]:
    """Undoes all of that, whatever else is in the files by now; a line for each that could not be undone. Hosts that
    cannot be reached are left for another time, which goes on from there."""
    changes = kept(hosts.past.entries)
    errors: dict[str, str] = {}
    facts = surveyed(hosts, errors) if changes else {}
    complaints: list[str] = []
    with Journal(folder or folder_of(hosts.rollout.path)) as journal:
        for change in changes:
            host, path = change.host, change.path
            if host in hosts.missing:
                complaints.append(f"{host}: cannot be reached, so {path} still keeps it: take it back once it can be")
                continue
            if host in errors:
                complaints.append(f"{host}: {path} still keeps it: {errors[host]}")
                continue
            if host not in facts:
                complaints.append(f"{host}: found in the journal and not in the file, expected the same hosts")
                continue
            text = facts[host]["files"].get(path)
            if not change.confirmed and change.state(text)[0] == "gone":
                say(f"{host}: {path} is as it was before: its change was cut off before it was made")
                journal.write("persist_undone", host=host, path=path)
                continue
            say(f"{host}: taking back what keeps it: {path}")
            try:
                edit = _undoing(change, hosts.asked.interfaces[host], text)
            except Trouble as trouble:
                complaints.append(f"{host}: {trouble}")
                continue
            complaints += _made(hosts, host, edit, journal, "persist_undone")
    return complaints


def _undoing(change: Kept, interface: str, text: str | None) -> Edit:
    """The way back of a change, for the text that the file has now; Trouble for one that is no way back. A file that is
    as it was before has only its owner take it: whoever took it back may have been cut off before that."""
    entry = change.entry
    reload, whole = lawful.reload_of(entry, interface), bool(entry["whole"])
    if not whole:
        after = None
    elif change.state(text)[0] == "gone":
        after = text
    else:
        after = patched(text, entry["undo"]["diff"], entry["path"])
    return Edit(entry["owner"], entry["path"], text, after, reload, int(entry["mode"], 8), whole)


def _made(hosts: Opened, host: str, edit: Edit, journal: Journal, event: str) -> Iterator[str]:
    """Makes one change; nothing, or why it could not be made."""
    [member] = [candidate for candidate in hosts.members if candidate.name == host]
    sudo = getattr(member.host.agent, "about", {}).get("user_id", 0) != 0
    try:
        persist.apply(member.host, edit, sudo)
    except AgentFailure as error:
        journal.write("persist_failed", host=host, path=edit.path, why=str(error))
        yield str(error)
        return
    try:
        journal.write(event, host=host, path=edit.path)
    except DiskFull:
        # What the journal does not know of, nobody would take back.
        persist.apply(member.host, edit.undo, sudo)
        raise
