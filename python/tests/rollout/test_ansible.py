"""Playbooks of a plan: what they hold, and that Ansible takes them. Their scripts run in tests/rack/hosts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from helpers.rollout_plans import PLAN

from framegauge.errors import InputError
from framegauge.rollout import ansible


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
    [task] = made["rollout.yml"][3]["tasks"]
    assert task["ansible.builtin.shell"]["cmd"] == ansible.RELEASE_NEAR


def test_packets_are_proved_at_full_size_in_both_ip_versions() -> None:
    play = yaml.safe_load(ansible.playbooks(PLAN, "0.1.0")["rollout.yml"])[2]
    sizes = {task["environment"]["to"]: int(task["environment"]["s"]) for task in play["tasks"]}
    assert sizes == {"192.0.2.1": 8972, "2001:db8::1": 8952, "192.0.2.2": 8972}
    assert {task["when"] for task in play["tasks"]} == {"inventory_hostname != 'db1'", "inventory_hostname != 'db2'"}


def test_what_looks_like_a_template_is_none() -> None:
    changes = [{**PLAN["changes"][0], "diff": "+# {{ lookup('pipe', 'id') }}\n"}]
    text = ansible.playbooks({**PLAN, "changes": changes}, "0.1.0")["rollout.yml"]
    [task, _] = yaml.safe_load(text)[-1]["tasks"]
    assert task["ansible.builtin.command"]["stdin"].startswith("{% raw %}")
    with pytest.raises(InputError, match="found a plan without hosts"):
        ansible.playbooks({**PLAN, "hosts": {}}, "0.1.0")


@pytest.mark.needs("ansible-playbook")
def test_ansible_takes_them(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("db1\ndb2\n")
    for name, text in ansible.playbooks(PLAN, "0.1.0").items():
        (tmp_path / name).write_text(text)
    words = ["ansible-playbook", "-i", tmp_path / "hosts.ini", "--syntax-check", "rollout.yml", "undo.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "playbook: rollout.yml" in done.stdout
