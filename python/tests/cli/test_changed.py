"""Documents of ours with any damage: each reader ends with one line, or with what was written; never with something else.

Results folders are in results/test_seals.py and test_damaged.py; files of other tools in compare/test_formats.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.check_lab import Lab
from helpers.rollout_plans import PLAN
from helpers.support import by_length

from framegauge.check import saved as check_file
from framegauge.decide.folder import Folder
from framegauge.errors import InputError
from framegauge.rack import keeper, state as rack_state
from framegauge.rollout import ansible, journal
from framegauge.watch import samples
from framegauge.watch.samples import Sample, Writer

TIMES = by_length(40, 600)
HUGE = 10**400
# JSON values in the place of others.
OTHERS: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    10**18,
    HUGE,
    "",
    "x",
    "\ud800",
    "a\nb",
    [],
    {},
    [None],
    {"": []},
    [[[]]],
]
DECIDED = {
    "asked": {
        "schema": 1, "hosts": ["a", "b"], "machines": [], "rack": False, "testbed": None, "target_mtu": 9000, "study": None,
    },
    "facts": {
        "schema": 1, "present_mtu": 1500, "families": [4],
        "hosts": [{"name": "a", "error": None, "interfaces": [{"name": "eth0", "mtu": 1500, "maximum_mtu": 9000}]}],
    },
    "estimate": {
        "schema": 1,
        "total": [
            {
                "mtu": 9000, "answer": "do not", "packets": {"before_per_second": 3.5}, "goodput": {"at_most": 0.1},
                "cpu": {"at_most": None},
            },
        ],
        "hosts": [{"host": "a", "nagle": [{"mtu": 9000, "sockets": []}]}],
    },
    "study": {"schema": 1, "hosts": ["a", "b"]},
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A file, and what its reader makes of it: parts, of which damage may lose some and must not change any."""

    path: Path
    read: Callable[[], list[str]]
    is_sealed: bool


def _journal(folder: Path) -> Iterator[Document]:
    sizes = {
        name: {"mtu:eth1": str(mtu), "routes4:eth1": "0", "routes6:eth1": "0"}
        for name, mtu in (("old", 1500), ("new", 9000))
    }
    hosts = {
        "a": {
            "wave": 0,
            "interface": "eth1",
            "mtu": 9000,
            "hold": 1500,
            "before": sizes["old"],
            "after": sizes["new"],
            "stages": {},
        }
    }
    with journal.Journal(folder) as writer:
        writer.begin("apply", {"target_mtu": 9000}, hosts, {"a": sizes["old"]})
        writer.write("plan", plan={"addresses": {"a": ["10.0.0.1"]}})
        writer.write("stage", stage="hold")
        writer.write("finished")
    path = folder / journal.NAME

    def read() -> list[str]:
        return [json.dumps(each) for each in journal.read(folder).entries]

    yield Document(path, read, is_sealed=True)


def _samples(folder: Path) -> Iterator[Document]:
    with Writer(folder) as writer:
        writer.write([Sample(7201.0 + each, "a", "x", {"TcpOutSegs": 5.0 + each}, {"eth0": 2}) for each in range(4)])
        writer.write([Sample(7206.0, "a", gap="lost")])
    yield Document(
        folder / "19700101T02.jsonl", lambda: list(map(repr, samples.read(folder, 7000.0, 8000.0))), is_sealed=True
    )


def _decided(folder: Path) -> Iterator[Document]:
    folder.mkdir()
    place = Folder(folder)
    for name, document in (*DECIDED.items(), ("check-present", Lab().document())):
        place.keep(name, document)

        def read(name: str = name, keys: tuple[str, ...] = tuple(document)) -> list[str]:
            found = place.load(name) or {}  # keys that nobody knows are kept, and mean nothing
            return [json.dumps({key: found[key] for key in keys if key in found})]

        yield Document(folder / f"{name}.json", read, is_sealed=True)


def _kept_rack(folder: Path) -> Iterator[Document]:
    """Processes that are named in it are signalled with our rights."""
    folder.mkdir()
    path = folder / "framegauge-rack.json"
    about = {
        "state": "up",
        "reason": None,
        "keeper": {"pid": 1, "start_ticks": 7},
        "hosts": [{"name": "h1", "nics": []}],
    }
    keeper.replace(str(path), {"schema": rack_state.SCHEMA, "boot_id": "x", "testbed": "rack", **about})
    yield Document(path, lambda: [json.dumps(rack_state.read(path))], is_sealed=True)


def _given(folder: Path) -> Iterator[Document]:
    """What a user hands over: any change is theirs."""
    folder.mkdir()
    (folder / "check.json").write_text(json.dumps(Lab().document()))
    yield Document(folder / "check.json", lambda: [repr(check_file.read(folder / "check.json"))], is_sealed=False)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    yield Document(
        folder / "plan.json",
        lambda: list(ansible.playbooks(ansible.read(folder / "plan.json"), "1").values()),
        is_sealed=False,
    )


def _edited(data: bytes, rng: random.Random) -> bytes:
    """One value of a line of JSON, or of a document, replaced or taken away."""
    lines = data.splitlines(keepends=True) if b"}\n{" in data else [data]
    at = rng.randrange(len(lines))
    place = found = json.loads(lines[at])
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
            place = place[key]
            continue
        if rng.random() < 0.7:
            place[key] = rng.choice(OTHERS)
        else:
            del place[key]
        break
    lines[at] = json.dumps(found).encode() + (b"\n" if lines[at].endswith(b"\n") else b"")
    return b"".join(lines)


def _damaged(data: bytes, rng: random.Random) -> bytes:
    spoilt, kind = bytearray(data), rng.randrange(4)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    if kind == 1:
        for _ in range(rng.choice((1, 1, 3))):
            spoilt[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(spoilt)
    if kind == 2:
        at = rng.randrange(max(1, len(data) - 8))
        spoilt[at : at + 8] = rng.choice((b"\xff" * 8, bytes(8), rng.randbytes(8)))
        return bytes(spoilt)
    return _edited(data, rng)


@pytest.mark.soak(5)
@pytest.mark.parametrize("made", [_journal, _samples, _decided, _kept_rack, _given])
def test_damage_is_one_line_or_changes_nothing(made: Callable[[Path], Iterator[Document]], tmp_path: Path) -> None:
    rng = random.Random(53)
    for document in made(tmp_path / "it"):
        whole, honest = document.path.read_bytes(), document.read()
        for number in range(TIMES):
            data = _damaged(whole, rng)
            document.path.write_bytes(data)
            try:
                parts = document.read()
            except InputError as error:
                assert str(error).isprintable(), f"{document.path.name} {number}: {error}"  # noqa: PT017
                continue
            if document.is_sealed:
                assert set(parts) <= set(honest), f"{document.path.name} {number}: {data!r}"
        document.path.write_bytes(whole)
