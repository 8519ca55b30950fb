"""Rules of a preflight on recorded interfaces, where this machine's kernel has none such; the others are in labs
(tests/rack/hosts/test_preflight.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.mutated import mutated
from helpers.own_hosts import Network
from hypothesis import given

from framegauge.cli.main import main
from framegauge.errors import BadAnswer, InputError
from framegauge.rollout import preflight, standing
from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.preflight import run, survey
from framegauge.rollout.preflight.links import Links
from framegauge.rollout.preflight.schema import json_schema
from framegauge.testbeds.base import Host

RECORDED = (Path(__file__).parent / "recorded/links-machine.json").read_text()
LINKS: list[Json] = json.loads(RECORDED)


def asked(interface: str, mtu: int = 9000, **more: Any) -> Asked:
    return Asked((("a",),), {"a": interface}, mtu, **more)


def facts(links: Iterable[Json] = LINKS, told: dict[str, Json] | None = None, **more: Any) -> Json:
    """As a host tells them; `told`: what `check.facts` has of an interface beside the usual."""
    interfaces = [
        {
            "name": each["ifname"], "index": each["ifindex"], "mtu": each["mtu"], "up": True, "driver": None,
            "maximum_mtu": each.get("max_mtu") or None, "kind": (each.get("linkinfo") or {}).get("info_kind"),
            "parent": None, "overhead_bytes": None, "addresses": [], **(told or {}).get(each["ifname"], {}),
        }
        for each in links
    ]  # fmt: skip
    check = {"interfaces": interfaces, "sysctls": {}, "path_mtu_cache": [], "mss_clamps": {"rules": [], "error": None}}
    return {
        "check": {**check, **more.pop("check", {})}, "links": list(links), "routes": [], "routes6": [], "ovs": None,
        "session": "", "programs": [], "files": {}, "unreadable": [], **more,
    }  # fmt: skip


def found(interface: str, given: Json, mtu: int = 9000, **more: Any) -> list[Finding]:
    """Without the note that nobody owns the MTU."""
    listed = preflight.findings({"a": given}, asked(interface, mtu, **more))
    return [each for each in listed if each.what != "owner"]


def kinds(listed: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(each.severity, each.what) for each in listed]


def up(*names: str) -> list[Json]:
    """The recorded interfaces, these of them up."""
    return [{**each, "flags": [*each["flags"], "UP"]} if each["ifname"] in names else each for each in LINKS]


def test_a_vlan_on_a_bond_needs_the_bond_first_and_the_bond_s_ports_none() -> None:
    [note] = found("bond0.100", facts())
    assert (note.severity, note.what, note.found) == ("note", "parent", "bond0 below it with 1500")
    assert kinds(found("bond0", facts())) == [("note", "overlay")]  # its vxlan keeps its MTU
    [refused] = found("d0", facts())
    assert (refused.what, refused.remedy) == ("port", "name bond0 as interface: it hands its MTU to its ports")
    low = [{**each, "mtu": 9000} if each["ifname"] in ("bond0", "d1") else each for each in LINKS]
    assert ("warning", "port") in kinds(found("bond0", facts(low), 9000))


def test_a_port_of_a_bond_that_takes_less_refuses_it() -> None:
    small = [{**each, "max_mtu": 4082} if each["ifname"] == "d1" else each for each in LINKS]
    [refused, _] = found("bond0", facts(small))
    assert (refused.severity, refused.what, refused.found) == (
        "refused", "port", "its port d1 with a maximum MTU of 4082",
    )  # fmt: skip
    assert kinds(
        found("bond0.100", facts([{**e, "max_mtu": 4082} if e["ifname"] == "bond0" else e for e in LINKS]))
    ) == [("refused", "parent")]


def test_a_macvlan_of_a_container_stands_on_a_device_that_cannot_be_read() -> None:
    own = {**LINKS[-1], "ifname": "net1", "ifindex": 98, "mtu": 1500, "link": None, "link_netnsid": 0, "flags": ["UP"],
           "linkinfo": {"info_kind": "macvlan"}}  # fmt: skip
    [warning] = [each for each in found("net1", facts([*LINKS, own])) if each.what == "parent"]
    assert (warning.severity, "another network namespace" in warning.found) == ("warning", True)
    assert not [each for each in found("net1", facts([*LINKS, {**own, "mtu": 9000}]), 1500) if each.what == "parent"]


def test_what_leads_out_of_a_bridge_is_raised_with_it() -> None:
    """In the recorded machine d2.200 is a port of br0, and d2 carries it."""
    parents = found("br0", facts(up("br0")))
    assert [(each.severity, each.what, each.found) for each in parents] == [
        ("note", "parent", "d2.200 below it with 1500"), ("note", "parent", "d2 below it with 1500"),
    ]  # fmt: skip
    assert "hold the routes of br0 before: a bridge follows its ports at once" in parents[0].remedy
    small = [{**each, "max_mtu": 4082} if each["ifname"] == "d2" else each for each in up("br0")]
    assert ("refused", "parent") in kinds(found("br0", facts(small)))
    inside = [{**each, "master": "br0", "linkinfo": {"info_kind": "tun"}} if each["ifname"] == "d3" else each
              for each in up("br0")]  # fmt: skip
    assert ("warning", "bridge") in kinds(found("br0", facts(inside)))


def test_a_port_of_the_bond_below_a_vlan_that_takes_less_refuses_it() -> None:
    small = [{**each, "max_mtu": 4082} if each["ifname"] == "d1" else each for each in LINKS]
    refused, _ = found("bond0.100", facts(small))
    assert (refused.severity, refused.what, refused.found) == (
        "refused", "port", "the port of bond0 below it, d1 with a maximum MTU of 4082",
    )  # fmt: skip
    assert kinds(found("bond0.100", facts(small), 4082)) == [("note", "parent")]


@pytest.mark.parametrize(("mtu", "expected"), [(1500, 1), (9000, 0), (9216, 0)])
def test_who_sets_less_for_the_bond_below_a_vlan_is_told(mtu: int, expected: int) -> None:
    text = (
        f"network:\n  bonds: {{bond0: {{mtu: {mtu}}}}}\n  vlans: {{bond0.100: {{id: 100, link: bond0, mtu: 9000}}}}\n"
    )
    listed = preflight.findings({"a": facts(files={"/etc/netplan/01.yaml": text})}, asked("bond0.100"))
    owners = [each for each in listed if each.what == "owner"]
    assert [each.severity for each in owners] == ["warning"] * expected
    assert all("netplan, which sets 1500 for bond0 below it" in each.found for each in owners)


def kept(files: dict[str, str], interface: str = "bond0.100", mtu: int = 9000) -> dict[str, str | None]:
    """The files that have a change last, as they are to be, in their order."""
    [edits] = preflight.edits({"a": facts(files=files)}, asked(interface, mtu)).values()
    return {each.path: each.after for each in edits}


INTERFACES = """\
auto bond0.100
iface bond0.100 inet static
    address 10.1.0.1/24
    mtu 1500
auto bond0
iface bond0 inet manual
    bond-slaves d1 d2
"""


def test_an_owner_keeps_the_mtu_of_what_the_interface_stands_on_too() -> None:
    path = "/etc/network/interfaces"
    changed = kept({path: INTERFACES})
    assert changed == {
        path: INTERFACES.replace("mtu 1500", "mtu 9000").replace("    bond-slaves", "    mtu 9000\n    bond-slaves")
    }
    assert kept({path: changed[path] or ""}) == {}
    yaml = "network:\n  bonds:\n    bond0:\n      mtu: {}\n  vlans:\n    bond0.100: {{id: 100, link: bond0, mtu: {}}}\n"
    assert kept({"/etc/netplan/01.yaml": yaml.format(1500, 1500)}) == {"/etc/netplan/01.yaml": yaml.format(9000, 9000)}
    assert kept({"/etc/netplan/01.yaml": yaml.format(9216, 1500)}) == {"/etc/netplan/01.yaml": yaml.format(9216, 9000)}
    assert kept({"/etc/netplan/01.yaml": yaml.format(9216, 9000)}, mtu=1500) == {
        "/etc/netplan/01.yaml": yaml.format(9216, 1500)
    }


def test_what_is_below_is_changed_first_where_each_has_a_file_of_its_own() -> None:
    files = {f"/etc/systemd/network/{number}.network": f"[Match]\nName={name}\n[Link]\n"
             for number, name in ((10, "bond0.100"), (20, "bond0"))}  # fmt: skip
    changed = kept(files)
    assert list(changed) == ["/etc/systemd/network/20.network", "/etc/systemd/network/10.network"]
    assert all("MTUBytes=9000" in (text or "") for text in changed.values())


def test_a_port_that_leads_out_of_a_bridge_is_kept_too() -> None:
    files = {
        f"/etc/systemd/network/{name}.network": f"[Match]\nName={name}\n[Link]\n" for name in ("br0", "d2", "d2.200")
    }
    assert list(kept(files, "br0")) == [f"/etc/systemd/network/{name}.network" for name in ("d2", "d2.200", "br0")]


def test_nobody_who_keeps_the_mtu_below_is_told() -> None:
    files = {"/etc/systemd/network/10.network": "[Match]\nName=bond0.100\n[Link]\nMTUBytes=9000\n"}
    listed = preflight.findings({"a": facts(files=files)}, asked("bond0.100"))
    [warning] = [each for each in listed if each.what == "owner"]
    assert (warning.severity, warning.found) == ("warning", "nobody who sets an MTU for bond0 below it")
    assert "stays at 1500 else" in warning.remedy


@pytest.mark.parametrize(("target", "expected"), [(9000, 1), (1450, 1), (1400, 0)])
def test_who_sets_less_below_is_told_where_the_interface_has_no_owner(target: int, expected: int) -> None:
    files = {"/etc/systemd/network/20.network": "[Match]\nName=bond0\n[Link]\nMTUBytes=1400\n"}
    listed = preflight.findings({"a": facts(files=files)}, asked("bond0.100", target))
    warnings = [each.found for each in listed if (each.what, each.severity) == ("owner", "warning")]
    assert len(warnings) == expected
    assert all("which sets 1400 for bond0 below it" in each for each in warnings)


def test_a_vlan_is_lowered_with_what_it_stands_on() -> None:
    given = [{**each, "mtu": 9000} if each["ifname"].startswith(("bond0", "d0", "d1")) else each for each in LINKS]
    [lowered] = found("bond0", facts(given), 1500)
    assert (lowered.severity, lowered.what, lowered.found) == ("refused", "child", "bond0.100 on it with 9000")
    assert kinds(found("bond0", facts(given), 1500, forced=frozenset({"child"}))) == [("warning", "child")]


def test_a_tunnel_on_a_vlan_that_is_lowered_with_its_bond_must_still_fit() -> None:
    given = [{**each, "mtu": 9000} if each["ifname"].startswith("bond0") else each for each in up("vx0")]
    told = {"vx0": {"parent": "bond0.100", "overhead_bytes": 50}}
    for inner, expected in ((8950, [("refused", "child"), ("refused", "overlay")]), (1450, [("refused", "child")])):
        links = [{**each, "mtu": inner} if each["ifname"] == "vx0" else each for each in given]
        assert kinds(each for each in found("bond0", facts(links, told), 1500) if each.what != "port") == expected


ROUTES = [
    {"dst": "default", "gateway": "10.0.0.1", "dev": "eth0", "metrics": [{"mtu": 1400}]},
    {"dst": "192.0.2.0/24", "gateway": "10.1.0.254", "dev": "bond0", "metrics": [{"mtu": 1500}]},
    {"dst": "192.0.2.0/28", "gateway": "10.1.0.254", "dev": "bond0", "metric": 20, "metrics": [{"mtu": 1600}]},
    {"dst": "192.0.2.0/28", "gateway": "10.1.0.253", "dev": "bond0", "metric": 30, "metrics": [{"mtu": 1700}]},
]


@pytest.mark.parametrize(
    ("count", "mtu", "said"),
    [
        (1, 1351, "the route default to its far end 192.0.2.9 with mtu 1400"), (1, 1350, None),
        (2, 8950, "the route 192.0.2.0/24 to its far end 192.0.2.9 with mtu 1500"), (2, 1450, None),
        (4, 8950, "the route 192.0.2.0/28 to its far end 192.0.2.9 with mtu 1600"), (4, 1550, None), (0, 8950, None),
    ],
)  # fmt: skip
def test_a_route_to_a_tunnel_s_far_end_that_keeps_less_is_told(count: int, mtu: int, said: str | None) -> None:
    """The narrowest route counts, and of two such the one with the smaller metric."""
    links = [{**each, "mtu": 9000} if each["ifname"].startswith("bond0") else each for each in up("vx0")]
    given = facts(links, {"vx0": {"parent": "bond0", "overhead_bytes": 50}}, routes=ROUTES[:count])
    listed = [each for each in found("vx0", given, mtu) if each.what == "overlay"]
    assert [(each.severity, each.found) for each in listed] == ([] if said is None else [("refused", said)])
    assert all(each.remedy.startswith("release that route where the whole way carries") for each in listed)


@pytest.mark.parametrize(("inner", "kinds"), [(8950, ["overlay"]), (1450, [])])
def test_a_tunnel_that_was_raised_since_must_be_lowered_before(inner: int, kinds: list[str]) -> None:
    links = [{**each, "mtu": {"bond0": 9000, "vx0": inner}.get(each["ifname"], each["mtu"])} for each in LINKS]
    known = {"a": facts(links, {"vx0": {"parent": "bond0", "overhead_bytes": 50}})}
    asked = Asked((("a",),), {"a": "bond0"}, 9000, old_mtu=1500)
    origin = {"a": {"mtu:bond0": "1500", "routes4:bond0": "0"}}
    assert [each.what for each in standing.refused(known, asked, origin)] == kinds
    forced = Asked((("a",),), {"a": "bond0"}, 9000, forced=frozenset({"overlay"}))
    assert standing.refused(known, forced, origin) == []


@pytest.mark.parametrize(("name", "severity"), [("bond0", "warning"), ("bond0.100", "refused"), ("eth0", None)])
def test_a_session_over_what_is_raised_with_it_is_told(name: str, severity: str | None) -> None:
    """On the bond itself, untagged: a NIC that restarts cuts it off, but what is sent there stays small."""
    address = {"address": "192.0.2.1", "prefix_length": 24, "family": 4}
    given = facts(told={name: {"addresses": [address]}}, session="192.0.2.9 50000 192.0.2.1 22")
    listed = [each for each in found("bond0.100", given) if each.what == "management"]
    assert [each.severity for each in listed] == ([] if severity is None else [severity])
    raised = [{**each, "mtu": 9000} if each["ifname"] == "bond0" else each for each in LINKS]
    told = {name: {"addresses": [address]}}
    after = found("bond0.100", facts(raised, told, session="192.0.2.9 50000 192.0.2.1 22"))
    assert ("warning", "management") not in kinds(after)


@pytest.mark.parametrize(
    ("name", "overhead", "fits"), [("gnv0", 50, 8950), ("gre0t", 38, 8962), ("vx0", 50, 8950), ("wg0", None, 8920)]
)
def test_tunnels_fit_with_their_overhead(name: str, overhead: int | None, fits: int) -> None:
    given = [{**each, "mtu": 9000} if each["ifname"] == "eth0" else each for each in up(name)]
    told = {name: {"parent": "eth0", "overhead_bytes": overhead}}
    assert [each.what for each in found(name, facts(given, told), fits) if each.severity == "refused"] == []
    [refused] = [each for each in found(name, facts(given, told), fits + 1) if each.severity == "refused"]
    assert refused.what == "overlay"
    assert refused.found.startswith("eth0 below this ")
    assert refused.expected == "9001 or more"
    wide = [{**each, "mtu": fits} if each["ifname"] == name else each for each in given]
    assert ("refused", "overlay") in kinds(found("eth0", facts(wide, told), 8999))


def test_open_vswitch_sets_the_mtu_back_unless_it_is_asked() -> None:
    ports = [{**each, "master": "ovs-system"} if each["ifname"] == "d3" else each for each in LINKS]
    table = {"headings": ["name", "mtu", "mtu_request"], "data": [["d3", 1500, ["set", []]]]}
    rows = survey._ovs(table)
    [warning] = found("d3", facts(ports, ovs=rows))
    assert (warning.severity, warning.what, warning.found) == (
        "warning", "ovs", "a port of Open vSwitch with mtu_request unset",
    )  # fmt: skip
    assert warning.remedy == (
        "ovs-vsctl set interface d3 mtu_request=9000 (undo: ovs-vsctl clear interface d3 mtu_request)"
    )
    table["data"] = [["d3", 9000, 9000]]
    assert found("d3", facts(ports, ovs=survey._ovs(table))) == []


def test_a_driver_s_program_and_limit() -> None:
    program = {"mode": 1, "prog": {"id": 7, "name": "filter"}}
    given = [{**each, "xdp": program} if each["ifname"] == "eth0" else each for each in LINKS]
    for driver, severity in (("virtio_net", "refused"), ("mlx5_core", "warning")):
        [finding] = found("eth0", facts(given, {"eth0": {"driver": driver}}))
        assert (finding.severity, finding.what) == (severity, "xdp")
        forced = found("eth0", facts(given, {"eth0": {"driver": driver}}), forced=frozenset({"xdp"}))
        assert kinds(forced) == [("warning", "xdp")]
    assert found("eth0", facts(given, {"eth0": {"driver": "virtio_net"}}), 3502) == []
    assert found("eth0", facts(given, {"eth0": {"driver": "virtio_net"}}), 1400) == []


def test_ceph_s_heartbeats_and_the_lease() -> None:
    osd = facts(programs=["ceph-osd"])
    [warning] = found("eth0", osd)
    assert (warning.what, warning.expected) == ("heartbeats", "a lease shorter than 20 s")
    assert found("eth0", osd, lease_seconds=15.0) == []
    conf = {"/etc/ceph/ceph.conf": "[osd]\nosd heartbeat grace = 90 ; slow\nosd_heartbeat_min_size=0\n"}
    assert found("eth0", facts(programs=["ceph-osd"], files=conf)) == []
    longer = {"/etc/ceph/ceph.conf": "[osd]\nosd heartbeat grace = 90\n"}
    assert found("eth0", facts(programs=["ceph-osd"], files=longer)) == []
    assert kinds(found("eth0", facts(programs=["ceph-osd"], files=longer), lease_seconds=90.0)) == [
        ("warning", "heartbeats")
    ]


def test_a_clamp_of_netfilter() -> None:
    rules = [{"family": "inet", "table": "filter", "chain": "forward", "to": "size", "mss_bytes": 1400}]
    assert kinds(found("eth0", facts(check={"mss_clamps": {"rules": rules, "error": None}}))) == [
        ("warning", "mss_clamp")
    ]
    rules[0] |= {"to": "route_mtu", "mss_bytes": None}
    assert found("eth0", facts(check={"mss_clamps": {"rules": rules, "error": None}})) == []


def test_pods_with_more_than_the_new_mtu_refuse_it() -> None:
    files = {"/etc/cni/net.d/10-calico.conflist": '{"plugins": [{"type": "calico", "mtu": 8950}]}'}
    assert kinds(found("eth0", facts(files=files), 1500)) == [("refused", "pods")]
    assert kinds(found("eth0", facts(files=files))) == [("note", "pods")]


@pytest.mark.parametrize("mtu", ["", ', "mtu": 0'])
def test_pods_that_find_their_mtu_get_no_number_and_never_more_than_their_overlay_leaves(mtu: str) -> None:
    files = {"/etc/cni/net.d/10-calico.conflist": f'{{"plugins": [{{"type": "calico"{mtu}}}]}}'}
    links = [*LINKS, {**LINKS[-1], "ifname": "vxlan.calico", "ifindex": 99, "mtu": 1450, "link": None,
                      "linkinfo": {"info_kind": "vxlan", "info_data": {"link": "eth0"}}}]  # fmt: skip
    [pods] = [each for each in found("eth0", facts(links, files=files)) if each.what == "pods"]
    assert pods.expected == "9000 less the 50 that an overlay takes"
    assert (pods.remedy.count("restart calico-node"), "calicoNetwork" in pods.remedy) == (1, False)


def test_files_that_may_not_be_read_are_told_and_no_owner_is_made_up() -> None:
    listed = preflight.findings({"a": facts(unreadable=["/etc/netplan/50.yaml"])}, asked("eth0"))
    assert [(each.severity, each.what, each.found) for each in listed] == [
        ("note", "unread", "no permission to read /etc/netplan/50.yaml")
    ]


def test_the_gravest_comes_first_and_the_document_is_as_its_schema_says() -> None:
    text = "network: {ethernets: {d0: {mtu: 1400}}}\n"
    given = {"a": facts(files={"/etc/netplan/01.yaml": text})}
    document = run.document(
        replace(asked("d0"), waves=(("a", "b"),), interfaces={"a": "d0", "b": "?"}), given, {"b": "b: lost"}
    )
    jsonschema.validate(document, json_schema())
    assert [(each["where"], each["severity"]) for each in document["findings"]] == [
        ("a/d0", "refused"), ("a/d0", "warning"), ("b", "refused"),
    ]  # fmt: skip
    assert (document["verdict"], run.exit_code(document["verdict"])) == ("could_not_tell", 2)
    assert {finding["what"] for finding in document["findings"]} <= set(run.KINDS)
    assert [change["host"] for change in document["changes"]] == ["a"]


def test_a_finding_that_is_a_sentence_expects_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "read", lambda *_: ({"a": facts()}, {}))
    assert main(["rollout", "preflight", "a%eth0", "--mtu", "9000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  note a/eth0: owner: no config file sets this MTU" in lines
    assert not [line for line in lines if line.rstrip().endswith("expected")]


def test_the_interface_is_asked_for_where_there_are_several() -> None:
    addresses = [{"address": "192.0.2.1", "prefix_length": 24, "family": 4}]
    one = facts(told={"eth0": {"addresses": addresses}})
    assert run.chosen({"a": None}, {"a": one}, 9000, "all", 60.0, frozenset()).interfaces == {"a": "eth0"}
    two = facts(told={"eth0": {"addresses": addresses}, "d3": {"addresses": addresses}})
    with pytest.raises(InputError, match="a: found eth0, d3, expected --interface NAME, or a%NAME"):
        run.chosen({"a": None}, {"a": two}, 9000, "all", 60.0, frozenset())
    with pytest.raises(InputError, match="found host db1 twice"):
        run.named(["db1", "db1%eth0"], [])


PRINTED = (
    "@@ 0 session\n\n@@ 4 json routes\n[{}]\n@@ 6 file /etc/a b\nx\ny\nz\n\n@@ 0 unreadable /etc/c\n\n@@ 0 end\n\n"
)


def test_what_the_script_prints_is_taken_apart_by_its_lengths() -> None:
    parsed = survey.parsed(PRINTED.encode(), "a")
    assert (parsed["routes"], parsed["files"], parsed["unreadable"]) == ([{}], {"/etc/a b": "x\ny\nz\n"}, ["/etc/c"])
    other = survey.parsed(b"@@ 2 file /etc/latin\n\xe9\n\n@@ 0 end\n\n", "a")
    assert (other["files"], other["unreadable"]) == ({}, ["/etc/latin"])


def test_a_host_that_prints_something_else_is_one_line_and_others_go_on() -> None:
    def spoil(method: str, _run: int, message: Json) -> bytes | str | None:
        return "gone" if method == "process.wait" else json.dumps(message).encode()

    network = Network(("a", "b"), "b", spoil)
    network.begin()
    errors: dict[str, str] = {}
    hosts = [Host(name, "", network.open(name)) for name in network.names]
    assert survey.read(hosts, errors) == {}
    assert errors["a"] == "a: found b'rate: 940.5', expected a part of what the preflight reads"
    assert errors["b"].startswith("process.wait: b: the agent was lost")


@given(mutated([PRINTED]))
def test_anything_else_is_no_answer(text: str) -> None:
    said = "a: found "
    try:
        survey.parsed(text.encode("utf-8", "replace"), "a")
    except BadAnswer as error:
        said = str(error)
    assert said.startswith("a: found ")


@given(mutated([RECORDED]))
def test_interfaces_of_any_kind_are_read_or_left_out(text: str) -> None:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return
    links = Links.of(listed)
    for name in links.names():
        assert name in links.stack(name)
        assert all(each.name != "" for each in links.below(name))
        preflight.findings({"a": {**facts([]), "links": listed}}, asked(name))


def with_rdma(interface: str, active: int | None, mtu: int) -> Json:
    """A port of RDMA on an interface, as an agent reads it from a sysfs that was made up."""
    levels = [{"path_mtu": size, "mtu": size + 96} for size in (1024, 2048, 4096)]
    port = {
        "device": "mlx5_0", "port": 1, "link_layer": "Ethernet", "state": "4: ACTIVE", "interface": interface, "mtu": mtu,
        "active_mtu": active, "error": None if active else "ibv_devinfo is not installed", "levels": levels,
    }  # fmt: skip
    return facts([{"ifname": interface, "ifindex": 2, "mtu": mtu, "flags": ["UP"]}], check={"rdma": [port]})


def test_what_becomes_of_rdma_is_told() -> None:
    [raised] = [each for each in found("eth2", with_rdma("eth2", 1024, 1500)) if each.what == "rdma"]
    assert (raised.severity, raised.expected) == ("note", "4192 or more for 4096")
    assert "4096 fits from 4192 on" in raised.found
    [lowered] = [each for each in found("eth2", with_rdma("eth2", 4096, 9000), 1500) if each.what == "rdma"]
    assert (lowered.severity, lowered.remedy) == (
        "warning",
        "stop what uses RDMA there first: its packets will be giants",
    )
    assert not [each for each in found("eth2", with_rdma("eth3", 1024, 1500)) if each.what == "rdma"]
    assert not [each for each in found("eth2", with_rdma("eth2", 4096, 4200)) if each.what == "rdma"]
