"""A roll-out's file: what is accepted, and one line for each problem."""

import pytest

from framegauge.errors import StudyError
from framegauge.rollout import file as rollout_file

HOSTS = "hosts: [a, b, c]\ninterface: eth1\nmtu: 9000\n"


def load(folder, text):
    (folder / "r.yaml").write_text(text)
    return rollout_file.load(folder / "r.yaml")


def test_by_default_one_host_goes_first_and_only_subnets_are_meant(tmp_path):
    found = load(tmp_path, HOSTS)
    assert found.asked.waves == (("a",), ("b", "c"))
    assert dict(found.asked.interfaces) == {"a": "eth1", "b": "eth1", "c": "eth1"}
    assert (found.asked.scope, found.asked.families, found.asked.lease_seconds) == ("subnets", (4, 6), 60.0)
    assert found.file.probes == 3


def test_waves_and_interfaces_are_as_asked(tmp_path):
    text = "hosts: [{name: a, interface: bond0.7}, b, c]\nwaves: [c, [b, a]]\nscope: all\n" + HOSTS.split("\n", 1)[1]
    found = load(tmp_path, text)
    assert found.asked.waves == (("c",), ("b", "a"))
    assert found.asked.interfaces["a"] == "bond0.7"
    assert [machine.name for machine in found.machines] == ["c", "b", "a"]


def test_hosts_of_an_inventory_keep_their_options_for_ssh(tmp_path):
    (tmp_path / "hosts.yaml").write_text("hosts: [a, b]\noptions: [-o, Port=2222]\n")
    found = load(tmp_path, "inventory: hosts.yaml\nwaves: [b, a]\ninterface: eth1\nmtu: 9000\n")
    assert found.asked.waves == (("b",), ("a",))
    assert found.machines[0].options == ["-o", "Port=2222"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mtu: 9000\ninterface: e\n", 'found "neither", expected either hosts, or inventory'),
        (HOSTS + "inventory: x\n", 'found "both", expected either hosts, or inventory'),
        (HOSTS + "waves: [[a, b]]\n", 'waves: found "no wave with c", expected every host in one wave'),
        (HOSTS + "waves: [[a, b], [c, a]]\n", 'found "a", expected each host in one wave'),
        (HOSTS + "waves: [[a, b, c], [d]]\n", 'found "d", expected a host or a group'),
        (HOSTS + "waves: [[a, b, c], []]\n", 'found "no hosts", expected'),
        ("hosts: [a]\ninterface: e\nmtu: 9000\n", "expected two hosts or more"),
        ("hosts: [a, b]\nmtu: 9000\n", 'found "no interface for a", expected interface: here'),
        ("hosts: [a, {name: b, read_only: true}]\ninterface: e\nmtu: 9000\n", "b, a read_only host"),
        (HOSTS.replace("9000", "1279"), "mtu: found 1279, expected an MTU in bytes between 1280 and 65535"),
        (HOSTS + "lease: 1 s\n", 'lease: found "1 s", expected between 5 s and 3600 s'),
        (HOSTS + "scope: some\n", "scope: found \"some\", expected 'subnets' or 'all'"),
        (HOSTS + "probe: 3\n", 'found an unknown key, expected "probes"'),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, text, problem):
    with pytest.raises(StudyError) as caught:
        load(tmp_path, text)
    assert problem in str(caught.value)


def test_editors_know_its_keys():
    assert set(rollout_file.json_schema()["properties"]) >= {"waves", "interface", "mtu", "scope", "lease", "probes"}
