"""Text that leaves for another interpreter is data to it, whatever is in it: the real interpreter says so.

Playbooks are in rollout/test_ansible.py, pages in report/test_page.py, terminals in cli/test_printable.py.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.check_lab import Lab
from prometheus_client.parser import text_string_to_metric_families

from framegauge.agents import ssh
from framegauge.agents.ssh import Binary, Remote
from framegauge.cli import notify
from framegauge.errors import InputError, StudyError
from framegauge.report.check import prometheus
from framegauge.rollout import switches
from framegauge.rollout.engine import Released
from framegauge.rollout.file import load
from framegauge.rollout.gate import gate
from framegauge.rollout.switches import hook

MARK = "was-run"
# Names of hosts, interfaces and labels, paths and answers: each would make a file where it is evaluated.
EVIL = [
    f"$(touch {MARK})", f"`touch {MARK}`", f"';touch {MARK};'", f'";touch {MARK};"', f"a|touch {MARK}", f"a\ntouch {MARK}",
    "{{ lookup('pipe', 'touch " + MARK + "') }}", "{% raw %}", "\x1b]0;x\x07", '"} 1\nforged{x="', "\\", "*", "~root",
]  # fmt: skip


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\0")[:-1]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("text", EVIL)
def test_a_notified_shell_gets_answers_and_paths_as_they_are(text: str, tmp_path: Path) -> None:
    command = 'printf "%s\\0" "$FRAMEGAUGE_ANSWER" "$FRAMEGAUGE_RESULTS" > told'
    notify._run(command, Path(text), "yes", text)
    answer, results = _lines(tmp_path / "told")
    assert answer.isprintable()
    assert results == str(tmp_path / text)
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize("text", EVIL)
def test_a_gate_and_a_program_for_switches_get_names_as_they_are(text: str, tmp_path: Path) -> None:
    command = 'printf "%s\\0" "$FRAMEGAUGE_SWITCHED" "$FRAMEGAUGE_HELD" > told'
    assert gate(command, lambda: None, Released((text, "b"), 0.0, ("c",))) is None
    assert _lines(tmp_path / "told") == [f"{text},b", "c"]
    program = tmp_path / "switch.sh"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$FRAMEGAUGE_HOSTS" > told\n')
    program.chmod(0o755)
    hook.run(str(program), "prepare", 9000, 1500, {text: text})
    assert _lines(tmp_path / "told") == [f"{text}/{text}"]
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize("name", ["a,b", "a/b"])
def test_a_name_that_is_two_in_a_list_is_no_host_of_a_roll_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(f"hosts: ['{name}', c]\ninterface: eth1\nmtu: 9000\n")
    with pytest.raises(StudyError, match="expected a name without any of , /"):
        load(tmp_path / "r.yaml")


@pytest.mark.needs("ssh")
@pytest.mark.parametrize("text", EVIL)
def test_ssh_takes_a_host_as_a_host(text: str, tmp_path: Path) -> None:
    """With -G it says what it would do, and for whom."""
    program, *words = ssh.command(Remote("h", text), ["host"], Binary(tmp_path, "0" * 32, 1))
    asked = subprocess.run([program, "-G", *words], capture_output=True, text=True, check=False)
    assert asked.returncode != 0 or "proxycommand" not in asked.stdout
    assert not (tmp_path / MARK).exists()
    with pytest.raises(InputError, match="expected the name of a host for ssh"):
        ssh.command(Remote("h", f"-oProxyCommand={text}"), ["host"], Binary(tmp_path, "0" * 32, 1))


@pytest.mark.needs("promtool")
def test_labels_of_prometheus_are_labels() -> None:
    document = Lab((2,)).document()
    [pair, *_] = document["pairs"]
    document["pairs"] = [{**pair, "source": one, "destination": f"{one}2"} for one in EVIL]
    made = prometheus.text(document, 0.0)
    checked = subprocess.run(["promtool", "check", "metrics"], input=made, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr
    families = {each.name: each.samples for each in text_string_to_metric_families(made)}
    assert [each.labels["source"] for each in families["framegauge_path_carries_target"]] == EVIL
    assert not any(name.startswith("forged") for name in families)


@pytest.mark.parametrize("text", [each for each in EVIL if each != "*"])
def test_nothing_but_a_port_is_typed_on_a_switch(text: str) -> None:
    for platform in switches.PLATFORMS:
        with pytest.raises(InputError, match="expected the name of a port"):
            switches.text(platform, [text], 9000, 1500, 10, 0)
