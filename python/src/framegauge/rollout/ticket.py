"""A change ticket: one folder and one page, made from the journal of a roll-out alone, for who approves or audits it.

It has the question, who did it and when, what the preflight found, every command with its undo, the proofs before and
after as matrices, the verdict, and the files that keep the change. Nothing in it depends on when or where it is made:
made again from the journal that lies in it, it is the same to the byte, which is how it is checked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from framegauge.errors import CorruptResults, FolderNotEmpty, InputError
from framegauge.printable import one_line
from framegauge.rollout import ansible, journal, ticket_page
from framegauge.rollout.model import Json
from framegauge.rollout.transition import HostChange, steps, typed

__all__ = ["SCHEMA", "bundle", "differences", "document", "read", "write"]

SCHEMA = 1
SUMS = "SHA256SUMS"
# What a roll-out is, by its last word.
OUTCOMES = {
    "finished": "done, and proved", "undone": "taken back, and proved",
    "undone_in_part": "taken back, and proved, on the hosts that could be reached",
    "put_back": "failed; everything was put back",
    "parked": "stopped half-way; routes are held at the smaller MTU", "open": "under way, or ended without a word",
}  # fmt: skip
ENDS = ("finished", "undone", "undone_in_part", "put_back", "parked")


def document(entries: Sequence[Json]) -> Json:
    """The ticket as data; CorruptResults if no roll-out has begun."""
    runs: list[list[Json]] = []
    for entry in entries:
        if entry["event"] == "begun":
            runs.append([])
        if runs:
            runs[-1].append(entry)
    if not runs:
        raise CorruptResults("found no roll-out in the journal, expected at least one that has begun")
    return {"schema": SCHEMA, "runs": [_run(run) for run in runs]}


def _run(entries: Sequence[Json]) -> Json:
    """One use of `apply` or `undo`."""
    begun = entries[0]
    ends = [entry for entry in entries if entry["event"] in ENDS]
    plan: Json = next((entry["plan"] for entry in entries if entry["event"] == "plan"), {})
    request, hosts = begun["asked"], begun["hosts"]
    changes = [HostChange(host=name, **change) for name, change in hosts.items()]
    outcome = ends[-1]["event"] if ends else "open"
    return {
        "kind": begun["kind"],
        "question": str(plan.get("question", "")),
        "by": begun["by"],
        "framegauge": begun["framegauge"],
        "began": begun["at"],
        "ended": ends[-1]["at"] if ends else None,
        "outcome": outcome,
        "sentence": OUTCOMES[outcome],
        "why": _why(entries, ends),
        "asked": request,
        "hosts": hosts,
        "findings": plan.get("findings", []),
        "steps": [
            {
                "host": step.host,
                "kind": step.kind,
                "command": list(step.command),
                "undo": list(step.undo),
                "ip": typed(step.request["settings"]),
                "ip_undo": typed(step.back),
            }
            for step in steps(changes, float(request["lease_seconds"]))
        ],
        "changes": plan.get("changes", []),
        "addresses": plan.get("addresses", {}),
        "afterwards": plan.get("afterwards", []),
        "proofs": [_proof(entry) for entry in entries if entry["event"] == "proof"],
        "course": [{"at": entry["at"], "what": _told(entry)} for entry in entries],
    }


def _why(entries: Sequence[Json], ends: Sequence[Json]) -> list[str]:
    """What went wrong, and what is not as it was to be."""
    failed = [str(line) for entry in entries if entry["event"] == "failed" for line in entry["why"]]
    if not ends:
        return failed
    last = ends[-1]
    unconfirmed = [f"{name}: not confirmed: {why}" for name, why in last.get("not_confirmed", {}).items()]
    return [*failed, *map(str, last.get("not_as_asked", [])), *unconfirmed]


def _proof(entry: Json) -> Json:
    """A proof as a matrix: by IP version, source and destination, the largest packet that passed, or None."""
    names = sorted({pair[end] for pair in entry["pairs"] for end in ("source", "destination")})
    matrices: dict[str, dict[str, dict[str, Json]]] = {}
    for pair in entry["pairs"]:
        rows = matrices.setdefault(str(pair["family"]), {})
        rows.setdefault(pair["source"], {})[pair["destination"]] = {
            "verdict": pair["verdict"], "path_mtu_bytes": pair["path_mtu_bytes"], "mss_bytes": pair["new_mss_bytes"],
        }  # fmt: skip
    return {
        "at": entry["at"], "when": entry["when"], "mtu": entry["mtu"], "verdict": entry["verdict"], "hosts": names,
        "matrices": matrices, "faults": [*entry["faults"], *entry["unknown"]],
    }  # fmt: skip


def _told(entry: Json) -> str:
    """An entry of the journal in words."""
    match event := str(entry["event"]):
        case "begun":
            return f"{entry['by']['user']} on {entry['by']['machine']} began: {entry['kind']}"
        case "stage":
            return f"{entry['stage']}: {', '.join(entry['hosts'])}"
        case "proof":
            return f"proof at {entry['mtu']} bytes ({entry['when']}): {str(entry['verdict']).replace('_', ' ')}"
        case "gate":
            return f"gate before wave {entry['wave'] + 1}: {entry['refused'] or 'go on'}"
        case "switches":
            return f"switches: {entry['action']}"
        case "keeping":
            return f"kept for good: {entry['stage']}"
        case "persisting" | "persisted" | "persist_undone" | "persist_failed":
            return f"{event.replace('_', ' ')}: {entry['path']} on {entry['host']}"
        case "left":
            return f"could not be reached: {', '.join(entry['hosts'])}"
        case "failed":
            return f"failed: {'; '.join(entry['why'])}"
    return {"plan": "the plan was written", "kept": "every stage is kept", **OUTCOMES}.get(event, event)


# A host or a path of somebody else's journal must not lead out of the ticket.
_NO_NAME = re.compile(r"[^\w.-]", re.ASCII)


def bundle(data: bytes) -> dict[str, bytes]:
    """The files of a ticket by their names, from the bytes of a journal; CorruptResults if it is damaged."""
    try:
        return _bundle(data)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise CorruptResults(f"{journal.NAME}: found {why}, expected entries of `framegauge rollout`") from None


def _bundle(data: bytes) -> dict[str, bytes]:
    ticket = document(journal.entries(Path(journal.NAME), data))
    digest = hashlib.sha256(data).hexdigest()
    files = {
        "journal.jsonl": data,
        "ticket.json": json.dumps(ticket, indent=1, ensure_ascii=False, sort_keys=True).encode() + b"\n",
        "ticket.html": ticket_page.page(ticket, digest).encode(),
    }
    last = next((run for run in reversed(ticket["runs"]) if run["kind"] == "apply"), ticket["runs"][-1])
    if why := ansible.unnamed(last):
        files["ansible/none.txt"] = f"No playbooks: {why}.\n".encode()
    else:
        for name, text in ansible.playbooks(last, str(last["framegauge"])).items():
            files[f"ansible/{name}"] = text.encode()
    for change in last["changes"]:
        place = "changes/" + _NO_NAME.sub("_", f"{change['host']}{change['path']}")
        files[f"{place}.diff"] = change["diff"].encode()
        files[f"{place}.undo.diff"] = change["undo"]["diff"].encode()
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return {**files, SUMS: sums.encode()}


def write(source: Path, out: Path) -> list[str]:
    """Makes the ticket of the journal in a folder, in a new or empty one; the names of its files."""
    files = bundle(read(source))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderNotEmpty(f"{out}: found something there, expected a new folder")
    for name, data in files.items():
        place = out / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        except OSError as error:
            raise InputError(f"{place}: cannot be written ({error.strerror}), expected a writable folder") from None
    return list(files)


def differences(folder: Path) -> list[str]:
    """A line for each file of a ticket that is not as the journal in it says; none, and it is whole."""
    files: Mapping[str, bytes] = bundle(read(folder))
    lines = []
    for name, data in files.items():
        try:
            same = (folder / name).read_bytes() == data
        except OSError as error:
            lines.append(f"{name}: cannot be read ({error.strerror}), expected the ticket's")
            continue
        if not same:
            lines.append(f"{name}: found other content than what the journal gives")
    return lines


def read(folder: Path) -> bytes:
    """The bytes of the journal in a folder."""
    path = folder / journal.NAME
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), expected the journal of a roll-out") from None
