"""Which files keep a new MTU, where whoever changed them may have been killed in between: the journal and the file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from framegauge.rollout import lasting
from framegauge.rollout.owners import Edit

PATH = "/etc/network/interfaces"
OLD = "auto eth1\niface eth1 inet static\n    mtu 1500\n    address 192.0.2.1/24\n"
NEW = OLD.replace("1500", "9000")
EDIT = Edit("ifupdown", PATH, OLD, NEW)


def entry(event: str, host: str = "a", edit: Edit = EDIT) -> dict[str, Any]:
    return {"event": event, "host": host, "path": edit.path} | (edit.as_document() if event == "persisting" else {})


def said(*events: str) -> list[tuple[str, bool]]:
    return [(each.host, each.confirmed) for each in lasting.kept([entry(event) for event in events])]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (["persisting"], [("a", False)]),
        (["persisting", "persisted"], [("a", True)]),
        (["persisting", "persist_failed"], []),
        (["persisting", "persisted", "persist_undone"], []),
        (["persisting", "persist_undone"], []),
        # Undoing it failed: it is still there.
        (["persisting", "persisted", "persist_failed"], [("a", True)]),
        (["persisting", "persisted", "persisting"], [("a", False), ("a", True)]),
    ],
)
def test_what_was_begun_counts_until_it_failed_or_was_taken_back(events: list[str], expected: list[Any]) -> None:
    assert said(*events) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OLD, "gone"),
        (NEW, "kept"),
        (f"auto lo\n\n{NEW}", "kept"),
        (OLD.replace("1500", "4000"), "other"),
        (None, "other"),
    ],
)
def test_the_file_tells_whether_the_change_is_there(text: str | None, expected: str) -> None:
    [each] = lasting.kept([entry("persisting")])
    assert each.state(text)[0] == expected


@pytest.mark.parametrize(("text", "expected"), [(None, "gone"), ("x\n", "kept")])
def test_a_file_that_was_to_be_made_is_there_or_not(text: str | None, expected: str) -> None:
    [each] = lasting.kept([entry("persisting", edit=Edit("cloud-init", PATH, None, "x\n"))])
    assert each.state(text)[0] == expected


class Told:
    """Stands for a journal."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, event: str, **_: object) -> None:
        self.events.append(event)


@pytest.mark.parametrize(
    ("events", "text", "made", "expected"),
    [
        # Cut off after the file was changed: it is taken back.
        (["persisting"], NEW, [OLD], ["persist_undone"]),
        # Cut off before: nothing is to be done, which the journal then says.
        (["persisting"], OLD, [], ["persist_undone"]),
        # Taken back, and cut off before the journal said so: only its owner takes it once more.
        (["persisting", "persisted"], OLD, [OLD], ["persist_undone"]),
        (["persisting"], "else\n", [], []),
    ],
)
def test_whenever_it_was_cut_off_it_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, events: list[str], text: str, made: list[str], expected: list[str]
) -> None:
    journal, edits = Told(), []
    monkeypatch.setattr(lasting, "Journal", lambda _: journal)
    monkeypatch.setattr(lasting, "surveyed", lambda _hosts, _untold: {"a": {"files": {PATH: text}}})
    monkeypatch.setattr(lasting.persist, "apply", lambda _host, edit, _sudo: edits.append(edit.after))
    member = SimpleNamespace(name="a", host=SimpleNamespace(agent=SimpleNamespace()))
    hosts: Any = SimpleNamespace(
        members=[member], missing={}, rollout=SimpleNamespace(path=None), past=SimpleNamespace(entries=[entry(event) for event in events]),
        asked=SimpleNamespace(interfaces={"a": "eth1"}),
    )  # fmt: skip
    failed = lasting.take_back(hosts, "journal", lambda _: None)  # type: ignore[arg-type]
    assert (edits, journal.events, bool(failed)) == (made, expected, not expected)
