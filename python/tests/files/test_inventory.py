"""Which hosts there are: files of ours, what ansible-inventory says, and what is wrong with either."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from helpers.support import by_length
from hypothesis import given, settings, strategies as st

from framegauge.cli import main as cli
from framegauge.decide import question
from framegauge.decide.places import Own
from framegauge.errors import FramegaugeError, InputError, StudyError
from framegauge.experiment.planning import conditions_of
from framegauge.files import inventory
from framegauge.files.machines import Machine
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.testbeds import listed

OURS = """\
hosts:
  - alpha
  - {name: beta, ssh: admin@10.0.0.2, interface: eth1, read_only: true, options: [-p, "2222"]}
options: [-J, jump]
"""


def test_a_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(OURS)
    assert inventory.load(tmp_path / "hosts.yaml") == [
        Machine(name="alpha", options=["-J", "jump"]),
        Machine(
            name="beta", ssh="admin@10.0.0.2", interface="eth1", read_only=True, options=["-J", "jump", "-p", "2222"]
        ),
    ]
    assert [each.destination for each in inventory.load(tmp_path / "hosts.yaml")] == ["alpha", "admin@10.0.0.2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts: [a, a]\n", "hosts.1: found \"a\", expected each host once"),
        ("hosts: ['-oProxyCommand=x']\n", "expected the name of a host, without spaces, control characters or a leading -"),
        ("hosts: [a b]\n", "expected the name of a host, without spaces, control characters or a leading -"),
        ("hosts: []\n", "hosts: "),
        ("hosts: [a]\nuser: x\n", "user: found an unknown key"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_one_of_ours(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(text)
    with pytest.raises(StudyError) as caught:
        inventory.load(path)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_and_ansible_that_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="found no such file, expected an inventory"):
        inventory.load(tmp_path / "none")
    (tmp_path / "hosts.ini").write_text("[web]\nweb[1:3].example.org\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="apt-get install ansible-core"):
        inventory.load(tmp_path / "hosts.ini")


# As `ansible-inventory --list` prints it (ansible-inventory(1)).
LISTED = {
    "_meta": {
        "hostvars": {
            "web1": {
                "ansible_host": "10.0.0.1", "ansible_port": 2222, "ansible_user": "admin",
                "framegauge_interface": "eth1", "framegauge_read_only": "true", "framegauge_ports": "40000-40099",
            },
            "db1": {
                "ansible_ssh_private_key_file": "/keys/db", "ansible_ssh_common_args": "-o ProxyCommand='ssh -W %h:%p j'",
            },
        }
    },
    "all": {"children": ["ungrouped", "web", "storage"]},
    "web": {"hosts": ["web1"]},
    "storage": {"hosts": ["db1", "web1"]},
}  # fmt: skip


def says(folder: Path, document: object, code: int = 0) -> None:
    """A program of that name that says so: the format is Ansible's, the program here only carries it."""
    program = folder / "ansible-inventory"
    program.write_text(
        f"#!/bin/sh\n/bin/cat <<'END'\n{document if isinstance(document, str) else json.dumps(document)}\nEND\nexit {code}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_what_ansible_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(tmp_path, LISTED)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    place = tmp_path / "hosts.ini"
    place.write_text("[web]\nweb1\n")
    everything = inventory.load(place)
    assert [each.name for each in everything] == ["web1", "db1"]
    assert everything[0] == Machine(
        name="web1", ssh="10.0.0.1", options=["-o", "Port=2222", "-o", "User=admin"],
        interface="eth1", read_only=True, ports="40000-40099",
    )  # fmt: skip
    assert everything[1].options == ["-o", "ProxyCommand=ssh -W %h:%p j", "-o", "IdentityFile=/keys/db"]
    assert [each.name for each in inventory.load(place, "web")] == ["web1"]
    with pytest.raises(InputError, match="found no hosts in group cache, expected one of the groups all, storage, web"):
        inventory.load(place, "cache")
    wrong = json.loads(json.dumps(LISTED).replace("40000-40099", "9-1"))
    says(tmp_path, wrong)
    with pytest.raises(InputError, match='web1: framegauge_ports: found "9-1", expected ports such as 40000-40099'):
        inventory.load(place)
    says(tmp_path, json.loads(json.dumps(LISTED).replace('"true"', '"perhaps"')))
    with pytest.raises(InputError, match="web1: framegauge_read_only: found 'perhaps': "):
        inventory.load(place)
    says(tmp_path, "ERROR! it broke", code=4)
    with pytest.raises(InputError, match="ansible-inventory: exit code 4"):
        inventory.load(place)


INI = """\
[web]
web[1:2] ansible_user=admin framegauge_ports=40000-40009

[storage]
db1 ansible_host=10.0.0.3 ansible_port=2222 framegauge_read_only=true framegauge_interface=eth1

[all:vars]
ansible_ssh_common_args='-o ProxyJump=jump'
"""
YAML = """all:
  vars: {ansible_ssh_common_args: "-o ProxyJump=jump"}
  children:
    web:
      hosts: {"web[1:2]": {ansible_user: admin, framegauge_ports: 40000-40009}}
    storage:
      hosts:
        db1: {ansible_host: 10.0.0.3, ansible_port: 2222, framegauge_read_only: true, framegauge_interface: eth1}
"""


@pytest.mark.needs("ansible-inventory")
@pytest.mark.parametrize(("name", "text"), [("hosts.ini", INI), ("hosts.yml", YAML)])
def test_what_ansible_itself_lists(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    jump = ["-o", "ProxyJump=jump"]
    web = {"options": [*jump, "-o", "User=admin"], "ports": "40000-40009"}
    db = Machine(
        name="db1", ssh="10.0.0.3", options=[*jump, "-o", "Port=2222"], interface="eth1", read_only=True
    )  # fmt: skip
    found = {each.name: each for each in inventory.load(tmp_path / name)}
    assert found == {"web1": Machine(name="web1", **web), "web2": Machine(name="web2", **web), "db1": db}  # type: ignore[arg-type]
    assert inventory.load(tmp_path / name, "storage") == [db]


def program(path: Path, mark: Path) -> Path:
    """An inventory that is a program, and leaves a mark where it ran."""
    path.write_text(f"#!/bin/sh\ntouch {mark}\necho '{json.dumps({'all': {'hosts': ['h1', 'h2']}})}'\n")
    path.chmod(0o755)
    return path


def study_of(name: str, folder: Path) -> str:
    (folder / "study.yaml").write_text(STUDY.format(where=f"inventory: {name}", factors="", workload="stream"))
    return str(folder / "study.yaml")


@pytest.mark.needs("ansible-inventory")
@pytest.mark.agent
def test_a_program_is_run_only_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "ran"
    place = program(tmp_path / "dynamic", mark)
    study = study_of(place.name, tmp_path)
    refused = f"framegauge: {place}: found an inventory that is a program, expected a text, or --run-inventory to run this one\n"
    for words in (["plan", study], ["study", study, "--dry-run"]):
        assert cli.main(words) == 2
        assert capsys.readouterr().err == refused
    assert not mark.exists()
    for words in (["plan", study, "--run-inventory"], ["study", study, "--dry-run", "--run-inventory"]):
        assert cli.main(words) == 0
        assert capsys.readouterr().err == f"framegauge: {place}: running this inventory for its hosts\n"
        assert mark.exists()
        mark.unlink()


@pytest.mark.parametrize("name", ["folder", "folder/dynamic", "plugin.yaml"])
def test_a_folder_with_a_program_and_a_plugin_are_programs(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    program(tmp_path / "folder/dynamic", tmp_path / "ran")
    (tmp_path / "plugin.yaml").write_text("plugin: constructed\n")
    with pytest.raises(InputError, match="found an inventory that is a program"):
        inventory.load(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_a_text_that_may_be_executed_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("hosts: [a, b]\n")
    path.chmod(0o755)
    assert [each.name for each in inventory.load(path)] == ["a", "b"]


@pytest.mark.needs("ansible-inventory")
@pytest.mark.parametrize("text", [INI, YAML])
def test_ansibles_text_that_may_be_executed_is_a_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    path.chmod(0o755)
    assert [each.name for each in inventory.load(path)] == ["web1", "web2", "db1"]


def test_ports_are_those_of_all_unless_a_host_has_its_own(tmp_path: Path) -> None:
    place = tmp_path / "hosts.yaml"
    place.write_text("hosts: [a, {name: b, ports: '50000'}]\nports: 40000-40099\n")
    assert [each.ports for each in inventory.load(place)] == ["40000-40099", "50000"]
    for wrong in ("0-10", "10-9", "1-65536", "a-b", "1-2-3", "''"):
        place.write_text(f"hosts: [a, {{name: b, ports: {wrong!r}}}]\n".replace('"', ""))
        with pytest.raises(InputError, match="expected ports such as 40000-40099"):
            inventory.load(place)


@pytest.mark.thorough
@pytest.mark.soak(4)
@settings(max_examples=by_length(20, 300))
@given(st.text(max_size=200))
def test_no_text_does_anything_but_load_or_fail_as_an_error_of_ours(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts.yaml"
        path.write_bytes(b"hosts: " + text.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(FramegaugeError):
            inventory.load(path)


STUDY = """\
testbed: {{kind: ssh, {where}}}
factors: {{mtu: {{levels: [1500, 9000], baseline: 1500}}{factors}}}
workloads: [{{{workload}: {{duration: 1 s}}}}]
"""


@pytest.mark.parametrize(
    ("where", "factors", "workload", "said"),
    [
        ("machines: [a]", "", "stream", "testbed.machines: found 1, expected two hosts or more"),
        ("machines: [a, a]", "", "stream", "expected each host once"),
        ("machines: [a, b], inventory: x", "", "stream", "expected either machines, or the name of an inventory file"),
        (
            "machines: [a, b], hosts: 3",
            "",
            "stream",
            "expected no such key with kind: ssh, whose hosts are its machines",
        ),
        ("machines: [a, b]", ", rtt: 1 ms", "stream", "expected 0 on testbed ssh: it cannot delay"),
        ("machines: [a, b]", ", moderation: 10 us", "stream", "moderation is left unchanged there"),
        ("machines: [a, b]", ", qdisc: Fq", "stream", "factors.qdisc"),
        (
            "machines: [a, b]",
            "",
            "iperf3",
            "expected stream, rr, mixed, incast, datagrams, quic or command on testbed ssh",
        ),
    ],
)
def test_what_a_study_of_own_hosts_cannot_be(where: str, factors: str, workload: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_file.parse(STUDY.format(where=where, factors=factors, workload=workload), "study.yaml")
    assert said in str(caught.value)


def test_a_study_of_own_hosts_leaves_alone_what_it_does_not_name() -> None:
    text = STUDY.format(where="machines: [a, b]", factors="", workload="stream")
    study = study_file.parse(text, "study.yaml")
    assert study.testbed.host_names == ["a", "b"]
    assert study.factors.levels("offloads") == study.factors.levels("congestion_control") == [None]
    assert study.testbed.link.rate is None
    assert not study.meters.wire
    assert study_file.parse(study_file.dump(study), "again") == study


@pytest.mark.parametrize(
    ("factors", "tso", "lro", "qdisc"),
    [
        ("", None, None, None),
        (", offloads: on", True, None, None),
        (", offloads: off", False, False, None),
        (", offloads: on, lro: on", True, True, None),
        (", lro: off, qdisc: fq", None, False, "fq"),
    ],
)
def test_large_receive_is_asked_for_only_by_name(
    factors: str, tso: bool | None, lro: bool | None, qdisc: str | None
) -> None:
    """Off is off, but on is on without it: few NICs have it."""
    text = STUDY.format(where="machines: [a, b]", factors=factors, workload="stream")
    study = study_file.parse(text, "study.yaml")
    asked = conditions_of(study, block_order(study, 0)[0])
    assert (asked.tso, asked.lro, asked.qdisc) == (tso, lro, qdisc)


def test_a_wrong_key_of_a_host_is_one_line_with_the_keys_that_there_are(tmp_path: Path) -> None:
    """Not also that text would do as well; and a key that no other is like has all of them beside it."""
    path = tmp_path / "hosts.yaml"
    path.write_text("hosts:\n  - {name: a, netns: blue}\n  - {name: b, interfce: eth1}\n")
    with pytest.raises(StudyError) as refused:
        inventory.load(path)
    assert str(refused.value).splitlines() == [
        f"{path}:2: hosts.0.netns: found an unknown key, expected one of agent, interface, name, options, ports, "
        "read_only, ssh",
        f'{path}:3: hosts.1.interfce: found an unknown key, expected "interface"',
    ]
    path.write_text("hosts: [5]\n")
    with pytest.raises(StudyError, match=r"hosts\.0: found 5, expected"):
        inventory.load(path)


def test_an_inventory_without_hosts_names_no_group_that_is_none_either(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x: found no hosts in group all, expected an inventory with hosts"):
        inventory._machines({"_meta": {}, "all": {"children": ["ungrouped"]}, "ungrouped": {}}, "x", "all")


def test_names_in_an_inventory_mean_what_they_mean_on_a_command_line() -> None:
    """A namespace of this machine is none that ssh could know, unless its destination says so."""
    assert listed.placed(Machine(name="local")) == "local"
    assert listed.placed(Machine(name="netns:blue", interface="eth0")) == "netns:blue"
    for machine in (Machine(name="alpha"), Machine(name="netns:blue", ssh="blue.example")):
        assert listed.placed(machine) == listed.of_machine(machine)
    mine = [Machine(name="netns:blue"), Machine(name="netns:red")]
    assert question.asked([], mine, False, None, 9000, None).study is None
    assert "netns:blue is not reached over ssh" in str(Own([], mine, True).unchangeable())
