"""The journal: what was there first is known whatever happened since, and no secret is in it."""

import json
from types import SimpleNamespace

import pytest
from helpers.rollout_plans import chained

from framegauge.errors import CorruptResults, DiskFull, FolderInUse, NewerResults
from framegauge.rollout import lasting
from framegauge.rollout.journal import NAME, Journal, folder_of, read
from framegauge.rollout.owners import Edit

OLD, NEW = {"mtu:e": "1500"}, {"mtu:e": "9000"}
HOSTS = {"a": {"hold": 1500, "before": OLD, "after": NEW}}


def entries(folder, *events, kind="apply", origin=None):
    with Journal(folder, now=lambda: 0.0) as journal:
        journal.begin(kind, {"target_mtu": 9000}, HOSTS, {"a": OLD} if origin is None else origin)
        for event in events:
            journal.write(event)


def test_a_folder_without_a_journal_has_no_past(tmp_path):
    past = read(tmp_path)
    assert (past.outcome, past.origin, past.hold) == ("none", {}, None)
    assert folder_of(tmp_path / "storage.yaml") == tmp_path / "storage.rollout"


@pytest.mark.parametrize(
    ("events", "outcome", "origin", "hold"),
    [
        ((), "open", {"a": OLD}, 1500),
        (("stage", "proof"), "open", {"a": OLD}, 1500),
        (("kept", "finished"), "finished", {"a": OLD}, None),
        (("failed", "put_back"), "put_back", {}, None),
        (("failed", "parked"), "parked", {"a": OLD}, 1500),
        (("undone",), "undone", {}, None),
    ],
)
def test_what_was_there_first_is_known(tmp_path, events, outcome, origin, hold):
    entries(tmp_path, *events)
    past = read(tmp_path)
    assert (past.outcome, past.origin, past.hold) == (outcome, origin, hold)
    assert past.after == {"a": NEW}


def test_a_run_that_was_killed_is_remembered_through_one_that_was_put_back(tmp_path):
    entries(tmp_path)
    entries(tmp_path, "failed", "put_back")
    assert read(tmp_path).origin == {"a": OLD}
    entries(tmp_path, "undone", kind="undo")
    assert read(tmp_path).origin == {}


def test_an_undo_of_some_hosts_leaves_the_others_to_the_next_one(tmp_path):
    both = {"a": OLD, "b": OLD}
    entries(tmp_path, "finished", origin=both)
    entries(tmp_path, "parked", kind="undo", origin=both)
    assert read(tmp_path).origin == both
    entries(tmp_path, "undone_in_part", kind="undo", origin=both)
    past = read(tmp_path)
    assert (past.outcome, past.origin, past.back, past.hold) == ("undone_in_part", {"b": OLD}, {"a": OLD}, 1500)
    # One that is killed, or put back, changes nothing of that.
    entries(tmp_path, kind="undo", origin={"b": OLD})
    entries(tmp_path, "put_back", kind="undo", origin={"b": OLD})
    assert read(tmp_path).origin == {"b": OLD}
    with Journal(tmp_path) as journal:
        journal.begin("undo", {}, {"b": HOSTS["a"]}, {"b": OLD})
        journal.write("undone")
    past = read(tmp_path)
    assert (past.outcome, past.origin, past.back) == ("undone", {}, {"a": OLD, "b": OLD})
    entries(tmp_path)
    assert read(tmp_path).back == {}


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    entries(tmp_path, "stage")
    path = tmp_path / NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at": "1970-01-0')
    assert [entry["event"] for entry in read(tmp_path).entries] == ["begun", "stage"]
    with Journal(tmp_path) as journal:
        journal.write("finished")
    assert read(tmp_path).outcome == "finished"


def test_what_is_no_journal_is_said_with_its_line(tmp_path):
    entries(tmp_path, "stage")
    path = tmp_path / NAME
    path.write_bytes(b"[]\n" + path.read_bytes())
    with pytest.raises(CorruptResults, match=r"journal\.jsonl:1: found no entry"):
        read(tmp_path)


def rewritten(folder, change, write=chained):
    """The journal with other entries."""
    path = folder / NAME
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(found)
    path.write_bytes(write(json.dumps(entry).encode() for entry in found))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda begun: begun.pop("origin"), "1: origin: found nothing, expected a value"),
        (lambda begun: begun.update(hosts=None), "1: hosts: found null, expected a valid dictionary"),
        (lambda begun: begun.update(schema="1"), '1: schema: found "1", expected a valid integer'),
        (
            lambda begun: begun.update(origin={"a": {"mtu:e": "1280; id"}}),
            '1: origin.a.mtu:e: found "1280; id", expected',
        ),
        (lambda begun: begun.update(origin={"a": {"mtu:e": 1280}}), "1: origin.a.mtu:e: found 1280, expected"),
        (lambda begun: begun.update(origin={"a": {"mtu:e/../x": "1"}}), "1: origin.a.mtu:e/../x: found"),
        (
            lambda begun: begun["hosts"]["a"].update(hold="1500"),
            '1: hosts.a.hold: found "1500", expected a valid integer',
        ),
        (lambda begun: begun.update(origin={"a": {"mtu:e": "1500 10.0.0.0/8=0"}}), "1: origin.a: found {"),
        (lambda begun: begun.update(kind="\x1b[2J"), "1: kind: found"),
    ],
)
def test_an_entry_that_cannot_be_is_said_with_its_key(tmp_path, change, said):
    entries(tmp_path, "finished")
    rewritten(tmp_path, lambda found: change(found[0]))
    with pytest.raises(CorruptResults) as error:
        read(tmp_path)
    assert f"{NAME}:{said}" in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found[1].update(event="kept"),
        lambda found: found[-1].update(event="undone"),
        lambda found: found[-1].pop("seal"),
        lambda found: found.pop(1),
        lambda found: found.insert(1, dict(found[1])),
        lambda found: found.insert(2, {"at": "", "event": "persisted", "host": "a", "path": "/x"}),
        lambda found: found.reverse(),
    ],
)
def test_a_line_that_was_changed_lost_or_added_is_noticed(tmp_path, change):
    entries(tmp_path, "stage", "kept", "finished")
    rewritten(tmp_path, change, lambda lines: b"".join(line + b"\n" for line in lines))
    with pytest.raises(
        CorruptResults, match=r"another one than the line before|another line than was sealed|found no seal"
    ):
        read(tmp_path)
    with pytest.raises(CorruptResults):
        Journal(tmp_path)


def test_a_newer_one_is_refused(tmp_path):
    entries(tmp_path)
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes().replace(b'"schema": 1', b'"schema": 2'))
    with pytest.raises(NewerResults):
        read(tmp_path)


def test_one_writer_at_a_time(tmp_path):
    with Journal(tmp_path), pytest.raises(FolderInUse, match="another roll-out"):
        Journal(tmp_path)
    Journal(tmp_path).close()
    with Journal(tmp_path, now=lambda: 0.0) as first:
        first.begin("apply", {"target_mtu": 9000}, HOSTS, {"a": OLD})
        whose = r"with this journal \(apply, begun 1970-01-01T00:00:00\.000\+00:00 by \S+ on .+\): wait for it$"
        with pytest.raises(FolderInUse, match=whose):
            Journal(tmp_path)


def test_an_entry_says_who_and_when(tmp_path):
    entries(tmp_path)
    first = json.loads((tmp_path / NAME).read_text().splitlines()[0])
    assert first["at"] == "1970-01-01T00:00:00.000+00:00"
    assert first["by"].keys() == {"user", "machine"}


def test_a_file_that_the_journal_has_no_room_for_is_taken_back(monkeypatch):
    made = []
    monkeypatch.setattr(lasting.persist, "apply", lambda _host, edit, _sudo: made.append(edit))

    def full(*_, **__):
        raise DiskFull("journal.jsonl: cannot be written (No space left on device)")

    hosts = SimpleNamespace(members=[SimpleNamespace(name="a", host=SimpleNamespace(agent=None))])
    edit = Edit("ifupdown", "/etc/network/interfaces", "mtu 1500\n", "mtu 9000\n")
    with pytest.raises(DiskFull):
        list(lasting._made(hosts, "a", edit, SimpleNamespace(write=full), "persisted"))
    assert [each.after for each in made] == ["mtu 9000\n", "mtu 1500\n"]
