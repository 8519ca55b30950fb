"""Change tickets: everything of a journal on one page, the same to the byte whenever they are made."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helpers.mutated import mutated
from helpers.pages import as_read
from helpers.rollout_plans import EDIT, PLAN, chained
from hypothesis import given, strategies as st

from framegauge.errors import CorruptResults, FolderNotEmpty, FramegaugeError, InputError
from framegauge.rollout import ticket
from framegauge.rollout.journal import Journal
from framegauge.rollout.ticket_schema import json_schema

HOSTILE = "<script>alert(1)</script>"


def times() -> Iterator[float]:
    second = 1_800_000_000.0
    while True:
        yield second
        second += 1.5


def pair(source: str, destination: str, verdict: str = "carries_target", size: int | None = None) -> dict[str, Any]:
    return {
        "source": source, "destination": destination, "family": 4, "verdict": verdict, "path_mtu_bytes": size,
        "new_mss_bytes": 8960 if verdict == "carries_target" else None,
    }  # fmt: skip


def proof(mtu: int, when: str, *pairs: dict[str, Any]) -> dict[str, Any]:
    faults = [f"{each['source']} to {each['destination']}" for each in pairs if each["verdict"] != "carries_target"]
    verdict = "fault" if faults else "carries_target"
    return {"when": when, "mtu": mtu, "verdict": verdict, "seconds": 0.1, "pairs": list(pairs), "faults": faults,
            "unknown": []}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The journal of an attempt that failed, and of one that was done."""
    clock = times()
    held = {"routes4:eth1": "1500", "routes6:eth1": "1500!"}
    hosts = {
        name: {
            **change, "stages": {"hold": [held], "link": [{"mtu:eth1": "9000"}], "release": [{"routes4:eth1": "0", "routes6:eth1": "0"}]},
        }
        for name, change in PLAN["hosts"].items()
    }  # fmt: skip
    asked = {**PLAN["asked"], "lease_seconds": 60.0, "forced": []}
    origin = {name: change["before"] for name, change in hosts.items()}
    finding = {
        "where": "db1/eth1",
        "what": "owner",
        "severity": "warning",
        "found": HOSTILE,
        "expected": "9000",
        "remedy": "edit",
    }
    plan = {**PLAN, "findings": [finding], "changes": [{"host": "db1", **EDIT.as_document()}]}
    good = [pair("db1", "db2"), pair("db2", "db1")]
    with Journal(tmp_path / "storage.rollout", lambda: next(clock)) as journal:
        journal.begin("apply", asked, hosts, origin)
        journal.write("plan", plan=plan)
        journal.write("proof", **proof(1500, "before", *good))
        journal.write("stage", stage="hold", hosts=["db1", "db2"])
        journal.write("proof", **proof(9000, "link", pair("db1", "db2", "black_hole", 1500), pair("db2", "db1")))
        journal.write("failed", why=["db1 to db2 (IPv4): black hole above 1500 bytes, expected 9000 bytes to pass"])
        journal.write("put_back", not_confirmed={}, kept={})
    with Journal(tmp_path / "storage.rollout", lambda: next(clock)) as journal:
        journal.begin("apply", asked, hosts, origin)
        journal.write("plan", plan=plan)
        journal.write("proof", **proof(1500, "before", *good))
        journal.write("gate", wave=1, refused=None)
        journal.write("proof", **proof(9000, "release 2", *good))
        journal.write("finished", closed={}, not_as_asked=[])
    return tmp_path / "storage.rollout"


class Page(html.parser.HTMLParser):
    """Its text, and what it would load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.foreign: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Counts what is not a part of a page that stands alone."""
        if tag in ("script", "img", "link", "iframe") or any(
            name in ("src", "href") or name.startswith("on") for name, _ in attrs
        ):
            self.foreign.append(tag)

    def handle_data(self, data: str) -> None:
        """Keeps the text."""
        self.words.append(data)


def test_a_ticket_tells_who_did_what_when_and_how_it_ended(folder: Path) -> None:
    made = ticket.document([json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()])
    jsonschema.validate(made, json_schema())
    failed, done = made["runs"]
    assert (failed["outcome"], failed["why"]) == (
        "put_back", ["db1 to db2 (IPv4): black hole above 1500 bytes, expected 9000 bytes to pass"],
    )  # fmt: skip
    assert (done["outcome"], done["sentence"], done["why"]) == ("finished", "done, and proved", [])
    assert done["question"] == "Raise the MTU of the databases?"
    assert done["began"] < done["ended"]
    assert [(step["host"], step["kind"]) for step in done["steps"]] == [
        (host, kind) for kind in ("hold", "link", "release") for host in ("db1", "db2")
    ]
    link = next(step for step in done["steps"] if step["kind"] == "link")
    assert link["command"] == ["ip", "link", "set", "dev", "eth1", "mtu", "9000"]
    assert link["undo"] == ["ip", "link", "set", "dev", "eth1", "mtu", "1500"]
    assert link["ip"] == ["ip link set dev eth1 mtu 9000"]
    hold = done["steps"][0]
    assert hold["ip"] == [
        "ip -4 route change ROUTE dev eth1 mtu 1500  # ROUTE: each in `ip -4 route show dev eth1`",
        "ip -6 route change ROUTE dev eth1 mtu lock 1500  # ROUTE: each in `ip -6 route show dev eth1`",
    ]
    assert hold["ip_undo"][0] == (
        "ip -4 route change ROUTE dev eth1  # ROUTE: each in `ip -4 route show dev eth1`, without its mtu"
    )
    before, after = done["proofs"]
    assert (before["mtu"], after["mtu"]) == (1500, 9000)
    assert after["matrices"]["4"]["db1"]["db2"] == {
        "verdict": "carries_target", "path_mtu_bytes": None, "mss_bytes": 8960,
    }  # fmt: skip


def test_the_page_has_it_all_stands_alone_and_runs_nothing(folder: Path) -> None:
    page = ticket.bundle(ticket.read(folder))["ticket.html"].decode()
    read = Page(page)
    assert read.foreign == []
    text = as_read(" ".join(read.words))
    for words in (
        "MTU 9000 on db1, db2: done, and proved", "Raise the MTU of the databases?", HOSTILE,
        "ip link set dev eth1 mtu 9000", "✗ black hole above 1500", "✓ passes, MSS 8960", "+mtu: 9000",
        "# then: netplan apply", "gate before wave 2: go on", "failed; everything was put back",
    ):  # fmt: skip
        assert words in text
    assert "ip -6 route change ROUTE dev eth1 mtu lock 1500" in text
    assert "framegauge-agent change" not in text
    assert not re.search(r"\d\dT\d\d:", text)  # times are as people read them, and on one line
    assert re.search(r'<time datetime="[^"]+">\d{4}-\d\d-\d\d [\d:.]+ UTC</time>', page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", ["netns:db1", "../../db1"])
def test_a_host_that_ansible_cannot_name_has_a_ticket_without_playbooks(name: str, folder: Path) -> None:
    """A namespace is a host of a roll-out as any other; and no name leads out of the folder of the ticket."""
    lines = ticket.read(folder).replace(b"db1", name.encode()).splitlines()
    files = ticket.bundle(chained(lines))
    assert files["ansible/none.txt"].decode().startswith(f"No playbooks: host {name!r}: Ansible would read this as a")
    assert not [each for each in files if each.endswith(".yml")]
    assert f"changes/{re.sub('[^a-z0-9.]', '_', name)}_etc_netplan_01.yaml.diff" in files
    assert name in files["ticket.html"].decode()


def test_a_ticket_is_made_again_to_the_byte_and_a_change_of_it_is_told(folder: Path, tmp_path: Path) -> None:
    names = ticket.write(folder, tmp_path / "out")
    assert set(names) == {
        "journal.jsonl", "ticket.json", "ticket.html", "ansible/rollout.yml", "ansible/undo.yml",
        "changes/db1_etc_netplan_01.yaml.diff", "changes/db1_etc_netplan_01.yaml.undo.diff", "SHA256SUMS",
    }  # fmt: skip
    assert ticket.differences(tmp_path / "out") == []
    sums = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    assert subprocess.run(sums, cwd=tmp_path / "out", check=False).returncode == 0
    assert yaml.safe_load((tmp_path / "out/ansible/rollout.yml").read_text())[0]["hosts"] == "db1,db2"
    with pytest.raises(FolderNotEmpty, match="expected a new folder"):
        ticket.write(folder, tmp_path / "out")
    place = tmp_path / "out/ticket.html"
    place.write_text(place.read_text().replace("done, and proved", "failed"))
    (tmp_path / "out/ansible/undo.yml").unlink()
    told = ticket.differences(tmp_path / "out")
    assert [re.split(": ", line)[0] for line in told] == ["ticket.html", "ansible/undo.yml"]
    journal = tmp_path / "out/journal.jsonl"
    journal.write_text(journal.read_text().replace("carries_target", "black_hole"))
    with pytest.raises(CorruptResults, match=r"journal\.jsonl:3: seal: found another line than was sealed"):
        ticket.differences(tmp_path / "out")
    journal.write_bytes(chained(journal.read_bytes().splitlines()))
    assert "ticket.json: found other content than what the journal gives" in ticket.differences(tmp_path / "out")


def test_a_roll_out_that_is_under_way_or_none_is_told(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "journal.jsonl").read_bytes().split(b"\n")
    cut = b"\n".join(lines[:4]) + b'\n{"at": "2027-01-'
    made = json.loads(ticket.bundle(cut)["ticket.json"])
    assert (made["runs"][0]["outcome"], made["runs"][0]["ended"]) == ("open", None)
    with pytest.raises(InputError, match="found no roll-out in the journal"):
        ticket.bundle(b"")
    with pytest.raises(InputError, match="cannot be read"):
        ticket.read(tmp_path)


JOURNAL = Path(__file__).parent / "recorded/journal.jsonl"


@given(mutated([JOURNAL.read_text()]), st.booleans())
def test_a_damaged_journal_is_one_line_or_a_ticket(text: str, by_hand: bool) -> None:
    said, data = "found", text.encode("utf-8", "replace")
    try:
        Page(ticket.bundle(chained(data.split(b"\n")) if by_hand else data)["ticket.html"].decode())
    except FramegaugeError as error:
        said = str(error)
    assert "found" in said
    assert "\n" not in said
