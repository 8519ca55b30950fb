"""Playbooks of a plan: what they hold, and that Ansible takes them. Their scripts run in tests/rack/hosts."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from helpers.rollout_plans import PLAN
from helpers.support import by_length

from framegauge.errors import InputError
from framegauge.rollout import ansible

LOOK = "Look whether this file is as it was made"


class _Data(str):
    """A text with the tag `!unsafe`."""

    __slots__ = ()


class _Marked(yaml.SafeLoader):
    """Keeps which texts have the tag."""


class _Written(yaml.SafeDumper):
    """Writes them with it again."""


_Marked.add_constructor("!unsafe", lambda loader, node: _Data(str(node.value)))
_Written.add_representer(_Data, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def test_the_order_is_that_of_a_rollout_and_of_its_undo() -> None:
    made = {name: yaml.safe_load(text) for name, text in ansible.playbooks(PLAN, "0.1.0").items()}
    assert [play["name"] for play in made["rollout.yml"]] == [
        "Hold every route at the smaller MTU",
        "Change every interface, while routes are held",
        "Prove full-size packets from every host to all others",
        "Release the routes of wave 1",
        "Prove again from the hosts up to wave 1",
        "Release the routes of wave 2",
        "Prove again from the hosts up to wave 2",
        "Keep the MTU of db1, by its owners",
    ]
    undo = [play["name"] for play in made["undo.yml"]]
    assert undo[0] == "Take back what keeps the MTU of db1, by its owners"
    assert undo[1:4] == [play["name"] for play in made["rollout.yml"]][:3]
    assert made["rollout.yml"][1]["vars"]["mtus"] == {"db1": 9000, "db2": 9000}
    assert made["undo.yml"][2]["vars"]["mtus"] == {"db1": 1500, "db2": 1500}
    assert {play["vars"]["held"] for play in made["rollout.yml"][:2]} == {1500}
    assert all(play["any_errors_fatal"] for plays in made.values() for play in plays)
    assert {play["tasks"][0]["name"] for plays in made.values() for play in plays} == {LOOK}
    [_, task] = made["rollout.yml"][3]["tasks"]
    assert task["ansible.builtin.shell"]["cmd"] == ansible.RELEASE_NEAR


def test_packets_are_proved_at_full_size_in_both_ip_versions() -> None:
    play = yaml.safe_load(ansible.playbooks(PLAN, "0.1.0")["rollout.yml"])[2]
    sizes = {task["environment"]["to"]: int(task["environment"]["s"]) for task in play["tasks"][1:]}
    assert sizes == {"192.0.2.1": 8972, "2001:db8::1": 8952, "192.0.2.2": 8972}
    assert {task["when"] for task in play["tasks"][1:]} == {
        "inventory_hostname != 'db1'",
        "inventory_hostname != 'db2'",
    }


def test_a_plan_without_hosts_is_refused() -> None:
    with pytest.raises(InputError, match="found a plan without hosts"):
        ansible.playbooks({**PLAN, "hosts": {}}, "0.1.0")


@pytest.mark.parametrize(
    "name", ["all:!db1", "db[1:9]", "~db", "x' or true or '", "{{ lookup('pipe', 'id') }}", "-x", ""]
)
def test_a_name_that_ansible_would_read_as_more_is_refused(name: str) -> None:
    hosts = {name: PLAN["hosts"]["db1"]}
    with pytest.raises(InputError, match=r"Ansible would read this as a pattern"):
        ansible.playbooks({**PLAN, "hosts": hosts}, "0.1.0")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"host 'db2': found '-f 192.0.2.2', expected an IP address"):
        ansible.playbooks({**PLAN, "addresses": {"db2": ["-f 192.0.2.2"]}}, "0.1.0")


@pytest.mark.needs("ansible-playbook")
@pytest.mark.needs("patch")
@pytest.mark.parametrize("before", ["", "{% endraw %}", "{% raw %}", "#jinja2: variable_start_string: '[['\n[[ 1 ]]"])
def test_what_a_host_wrote_runs_nowhere(tmp_path: Path, before: str) -> None:
    """Text of a file, its path, and a command that names it come from a host that may be somebody else's by now."""
    trace = tmp_path / "trace"
    lookup = f"{before}{{{{ lookup('pipe', 'touch {trace}') }}}}{{# #}}"
    lines = lookup.splitlines()
    path = tmp_path / f"{lookup.splitlines()[-1].replace('/', '_')}.cfg"
    path.write_text("".join(f"# {line}\n" for line in lines) + "mtu 1500\n")
    diff = f"--- a\n+++ a\n@@ -{len(lines) + 1} +{len(lines) + 1} @@\n-mtu 1500\n+mtu 9000\n"
    diff = f"{lookup}\n{diff}"
    change = {
        **PLAN["changes"][0],
        "path": str(path),
        "diff": diff,
        "whole": True,
        "reload": [["test", "-e", str(path)]],
    }
    whole = yaml.load(ansible.playbooks({**PLAN, "changes": [change]}, "0.1.0")["rollout.yml"], _Marked)
    (tmp_path / "files.yml").write_text(yaml.dump(whole[-1:], Dumper=_Written))
    words = ["ansible-playbook", "-i", "db1,", "-c", "local", "-e", "ansible_become=false", "files.yml"]
    before = path.read_text()
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0, "one play alone is not the file that was made"
    assert path.read_text() == before
    words += ["-e", "edited=true"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_text().splitlines() == [*(f"# {line}" for line in lines), "mtu 9000"]
    assert not trace.exists()


@pytest.mark.needs("ansible-playbook")
def test_ansible_takes_them(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("db1\ndb2\n")
    for name, text in ansible.playbooks(PLAN, "0.1.0").items():
        (tmp_path / name).write_text(text)
    words = ["ansible-playbook", "-i", tmp_path / "hosts.ini", "--syntax-check", "rollout.yml", "undo.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "playbook: rollout.yml" in done.stdout


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Cut off, at a line's end or anywhere; a bit turned; a line lost, or twice; a number, a word or nothing for another."""
    lines, kind = data.splitlines(keepends=True), draw.randrange(6)
    place = draw.randrange(len(lines))
    if kind == 0:
        return b"".join(lines[:place])
    if kind == 1:
        return data[: draw.randrange(len(data))]
    if kind == 2:
        bit = draw.randrange(8 * len(data))
        return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
    if kind == 3:
        return b"".join(lines[:place] + lines[place + 1 :])
    if kind == 4:
        return b"".join([*lines[:place], lines[place], *lines[place:]])
    other = draw.choice((b"null", b"1" + b"0" * 400, b"-1", b"[]", b"{}", b"true", b"x", b"'", b"\xff"))
    words = list(re.finditer(rb"[\w.]+", data))
    word = draw.choice(words)
    return data[: word.start()] + other + data[word.end() :]


@pytest.mark.soak(1)
@pytest.mark.needs("ansible-playbook")
def test_no_damage_of_a_playbook_is_unnoticed(tmp_path: Path) -> None:
    """By what each of its plays begins with, as Ansible itself evaluates it."""
    files, draw = [], random.Random(53)
    for name, text in ansible.playbooks(PLAN, "0.1.0").items():
        whole = text.encode()
        files.append(tmp_path / f"{name}-whole")
        files[-1].write_bytes(whole)
        for number in range(by_length(30, 600)):
            spoilt = damaged(whole, draw)
            if spoilt != whole:
                files.append(tmp_path / f"{name}-{number}")
                files[-1].write_bytes(spoilt)
    look = {"that": [ansible.is_whole("item")], "quiet": True}
    tasks = [
        {"ansible.builtin.assert": look, "loop": list(map(str, files)), "ignore_errors": True, "register": "seen"},
        {"ansible.builtin.copy": {
            "dest": str(tmp_path / "seen.json"),
            "content": "{{ seen.results | selectattr('failed', 'false') | map(attribute='item') | list | to_json }}",
        }},
    ]  # fmt: skip
    (tmp_path / "look.yml").write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    words = ["ansible-playbook", "-i", "localhost,", "-c", "local", "look.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "seen.json").read_text()) == [
        str(each) for each in files if each.suffix == ".yml-whole"
    ]
