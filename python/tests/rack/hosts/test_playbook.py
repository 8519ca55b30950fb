"""The tasks of an exported playbook on real hosts, in its order: every stage as it says, and back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from helpers.rollout_plans import PLAN
from helpers.sshd import run

from framegauge.rollout import ansible

NAMES = ("db1", "db2", "db3")


class Hosts:
    """Namespaces on a bridge, in one of its own, that carries 9000; IPv4 and IPv6, each with a default route."""

    def __init__(self, tag: str) -> None:
        self.switch, self.namespaces = f"fgb{tag}sw", {name: f"fgb{tag}{name}" for name in NAMES}

    def ip(self, name: str, *words: str) -> str:
        return run("ip", "-n", self.namespaces[name], *words)

    def routes(self, name: str) -> list[str]:
        """Without what counts down."""
        both = self.ip(name, "-4", "route") + self.ip(name, "-6", "route", "show", "dev", "eth1")
        return sorted(re.sub(r" expires \d+sec", "", line).strip() for line in both.splitlines())

    def held(self, name: str) -> set[str]:
        """The destinations of routes with an MTU."""
        return {line.split()[0] for line in self.routes(name) if " mtu lock 1500" in line}

    def mtu(self, name: str) -> int:
        return int(json.loads(self.ip(name, "-j", "link", "show", "eth1"))[0]["mtu"])

    def play(self, play: dict[str, Any]) -> list[str]:
        """Runs a play's shell tasks on its hosts, as Ansible would but all at once; the hosts that failed."""
        asked = [
            (name, task)
            for task in play["tasks"]
            if "ansible.builtin.shell" in task  # not the look whether the file is as it was made
            for name in play["hosts"].split(",")
            if task.get("when") != f"inventory_hostname != {name!r}"
        ]
        with ThreadPoolExecutor(len(asked)) as pool:
            return [line for line in pool.map(lambda each: self.task(play["vars"], *each), asked) if line is not None]

    def task(self, given: dict[str, Any], name: str, task: dict[str, Any]) -> str | None:
        """One task on one host; a line if it failed."""
        environment = dict(os.environ)
        for key, text in task["environment"].items():
            whole = re.sub(r"\{\{ (\w+)\[inventory_hostname\] \}\}", lambda found: str(given[found[1]][name]), text)
            environment[key] = whole.replace("{{ held }}", str(given["held"]))
        command = ["ip", "netns", "exec", self.namespaces[name], "sh", "-c", task["ansible.builtin.shell"]["cmd"]]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"{name}: {task['name']}: {done.stderr or done.stdout}"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts(secrets.token_hex(2))
    with contextlib.ExitStack() as undo:
        for namespace in (made.switch, *made.namespaces.values()):
            run("ip", "netns", "add", namespace)
            undo.callback(run, "ip", "netns", "del", namespace)
        run("ip", "-n", made.switch, "link", "add", "br0", "mtu", "9000", "type", "bridge", "mcast_snooping", "0")
        run("ip", "-n", made.switch, "link", "set", "br0", "up")
        for number, (name, namespace) in enumerate(made.namespaces.items(), 1):
            run("ip", "-n", made.switch, "link", "add", name, "mtu", "9000", "type", "veth", "peer", "name", "eth1",
                "netns", namespace)  # fmt: skip
            run("ip", "-n", made.switch, "link", "set", name, "master", "br0", "up")
            made.ip(name, "addr", "add", f"192.0.2.{number}/24", "dev", "eth1")
            made.ip(name, "addr", "add", f"2001:db8::{number}/64", "dev", "eth1", "nodad")
            made.ip(name, "link", "set", "eth1", "mtu", "1500", "up")
            made.ip(name, "route", "add", "default", "via", "192.0.2.254")
            made.ip(name, "route", "add", "198.51.100.0/24", "via", "192.0.2.254", "mtu", "1400")
        yield made


def plan() -> dict[str, Any]:
    change = PLAN["hosts"]["db1"]
    return {
        **PLAN,
        "asked": {**PLAN["asked"], "waves": [["db1"], ["db2", "db3"]]},
        "hosts": dict.fromkeys(NAMES, change),
        "addresses": {name: [f"192.0.2.{n}", f"2001:db8::{n}"] for n, name in enumerate(NAMES, 1)},
        "changes": [],
    }


def test_every_stage_is_as_it_says_and_undo_puts_it_back(hosts: Hosts) -> None:
    before = {name: hosts.routes(name) for name in NAMES}
    made = {name: yaml.safe_load(text) for name, text in ansible.playbooks(plan(), "0.1.0").items()}
    hold, link, prove, first, again, second, last = made["rollout.yml"]
    assert hosts.play(hold) == []
    for name in NAMES:
        assert hosts.held(name) == {"default", "192.0.2.0/24", "2001:db8::/64"}
        assert any("198.51.100.0/24" in line and line.endswith("mtu 1400") for line in hosts.routes(name))
    assert hosts.play(link) == []
    assert {hosts.mtu(name) for name in NAMES} == {9000}
    assert hosts.play(prove) == []
    assert {name: len(hosts.held(name)) for name in NAMES} == dict.fromkeys(NAMES, 3)  # as before the probes
    assert hosts.play(first) == []
    assert [len(hosts.held(name)) for name in NAMES] == [1, 3, 3]  # the default route stays held
    assert hosts.play(again) == hosts.play(second) == hosts.play(last) == []
    assert [hosts.held(name) for name in NAMES] == [{"default"}] * 3
    for play in made["undo.yml"]:
        assert hosts.play(play) == []
    assert {name: hosts.routes(name) for name in NAMES} == before
    assert {hosts.mtu(name) for name in NAMES} == {1500}


def test_a_switch_port_that_stays_at_1500_is_found_before_a_route_is_released(hosts: Hosts) -> None:
    made = yaml.safe_load(ansible.playbooks(plan(), "0.1.0")["rollout.yml"])
    assert hosts.play(made[0]) == hosts.play(made[1]) == []
    run("ip", "-n", hosts.switch, "link", "set", "db2", "mtu", "1500")
    failed = hosts.play(made[2])
    assert {line.split(":")[0] for line in failed if "to db2" in line} == {"db1", "db3"}
    assert all("db2" in line.partition(" (")[0] for line in failed)
    assert {len(hosts.held(name)) for name in NAMES} == {3}
