"""An MTU of the storage network, that of the second NICs: in a study file, in words, and in what a run has to prove."""

import json

import pytest

from framegauge.errors import StudyError
from framegauge.evidence.changes import paths
from framegauge.evidence.mss import live_mss_failures, mss_failures
from framegauge.experiment.planning import conditions_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import arms, host_mtus, storage_mtu
from framegauge.summary import words

STUDY = """
testbed: {kind: fake, topology: {rack: {nics: 2}}, hosts: 3}
factors: {mtu: {levels: [1500, {default: 1500, storage: 9000}, 9000]}}
workloads: [{stream: {size: 10 MB, nics: 2}}]
blocks: 2
retries: 0
control: false
margins: {goodput: 1 %}
"""
SPLIT = {"default": 1500, "storage": 9000}


def make(**change):
    text = STUDY
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    return study_file.parse(text, "x")


def of_arms(study):
    """The conditions of each arm of the first block."""
    return {slot.arm.name: conditions_of(study, slot) for slot in block_order(study, 0)}


def test_a_level_says_the_mtu_of_hosts_and_that_of_their_second_nics():
    study = make()
    assert study.factors.mtu.levels == [1500, SPLIT, 9000]
    assert [arm.name for arm in arms(study)] == ["baseline", "default=1500,storage=9000", "9000"]
    assert study_file.parse(study_file.dump(study), "again") == study
    found = of_arms(study)
    split = found["default=1500,storage=9000"]
    assert (split.mtu, split.storage_mtu) == ({"h1": 1500, "h2": 1500, "h3": 1500}, 9000)
    assert (split.mtus("h2"), split.mtus("h2", 2)) == ([1500], [9000])
    assert (paths(split, "h1", "h2"), paths(split, "h1", "h2", 2)) == ([1500], [9000])
    assert split.hosts_and_link["hosts"][0] == {"name": "h1", "mtu": 1500, "second_mtu": 9000}
    assert split.first_mtus == [1500, 1500, 1500, 9000]
    # Elsewhere nothing is new, for agents and for the record of a run.
    other = found["9000"]
    assert (other.storage_mtu, other.mtus("h1", 2)) == (None, [9000])
    assert other.hosts_and_link["hosts"][0] == {"name": "h1", "mtu": 9000}
    assert "storage_mtu" not in other.as_json()


def test_the_order_of_keys_makes_no_difference():
    study = make(**{"{default: 1500, storage: 9000}": "{storage: 4000, h3: 9000, h1: 1500, h2: 1500}"})
    level = study.factors.mtu.levels[1]
    assert list(level.items()) == [("h1", 1500), ("h2", 1500), ("h3", 9000), ("storage", 4000)]
    assert words.level(level) == "1500/1500/9000/storage network 4000"


def test_the_level_is_told_in_words():
    assert words.levels({"mtu": SPLIT}) == "MTU 1500/storage network 9000"
    assert words.level({"default": 1500, "h2": 9000, "storage": 4000}) == "1500/h2 9000/storage network 4000"


SINGLE = {"{rack: {nics: 2}}": "rack", "size: 10 MB, nics: 2": "size: 10 MB"}
BAD = {
    "one NIC": (SINGLE, "no such key unless hosts have a second NIC (topology: {rack: {nics: 2}} gives each two)"),
    "veth": ({**SINGLE, "kind: fake": "kind: veth"}, "no such key unless hosts have a second NIC"),
    "simulator": (
        {**SINGLE, "kind: fake": "kind: simulator"}, "no such key on testbed simulator, which simulates one NIC per host",
    ),
    "above the port": ({"storage: 9000": "storage: 9300"}, "at most link.port_mtu 9216: the switch drops larger frames"),
    "IPv6": ({"storage: 9000": "storage: 900", "kind: fake": "kind: fake, family: 6"}, "at least 1280 with family: 6"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_mtu_of_a_storage_network_that_cannot_be_is_one_line(name):
    change, expected = BAD[name]
    with pytest.raises(StudyError) as caught:
        make(**change)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("x:3: factors.mtu.levels.1.storage: found 9")
    assert f", expected {expected}" in line


def test_all_hosts_need_an_mtu_besides_that_of_the_storage_network():
    with pytest.raises(StudyError, match="expected an MTU for each of h1 to h3, or a default"):
        make(**{"{default: 1500, storage: 9000}": "{storage: 9000}"})


HELD = {
    "kind: fake, topology: {rack: {nics: 2}}": "kind: rack, topology: rack", ", nics: 2}": "}",
    "{default: 1500, storage: 9000}": "{h1: 9000, default: 1500, routes: 1500}",
}  # fmt: skip


def test_a_level_may_hold_the_routes_of_all_hosts():
    study = make(**HELD)
    level = study.factors.mtu.levels[1]
    assert [arm.name for arm in arms(study)][1] == "default=1500,h1=9000,routes=1500"
    assert words.level(level) == "1500/h1 9000/routes 1500"
    assert study_file.parse(study_file.dump(study), "again") == study
    found = of_arms(study)
    held = found["default=1500,h1=9000,routes=1500"]
    assert (held.mtus("h1"), held.sent_mtus("h1"), held.route_mtu) == ([9000], [1500], 1500)
    assert held.as_json()["route_mtu"] == 1500
    assert (found["9000"].route_mtu, found["9000"].sent_mtus("h1")) == (None, [9000])
    assert "route_mtu" not in found["9000"].as_json()


def test_held_routes_bound_every_path():
    change = {**HELD, "{default: 1500, storage: 9000}": "{default: 9000, routes: 4000}"}
    held = of_arms(make(**change))["default=9000,routes=4000"]
    assert paths(held, "h1", "h2") == [4000]


@pytest.mark.parametrize(("mss", "fails"), [(1460, False), (8960, True)])
def test_held_routes_are_what_connections_announce_and_use(mss, fails):
    """Of hosts at 9000 whose routes are held at 1500: 1460 in SYNs, 1448 with timestamps."""
    change = {**HELD, "{default: 1500, storage: 9000}": "{default: 9000, routes: 1500}"}
    conditions = of_arms(make(**change))["default=9000,routes=1500"]
    addresses = {"h1": "10.0.0.1", "h2": "10.0.0.2"}
    syns = [
        {"source": f"{addresses[host]}:7000", "mss_bytes": mss, "ack": host == "h2", "direction": way}
        for host, way in (("h1", "out"), ("h2", "in"))
    ]
    record = {
        "rack": {
            "hosts": [{"name": name, "address": each} for name, each in addresses.items()],
            "ceilings": {name: {"mtu": 9000} for name in addresses},
        },
        "wire": {"h1": {"lost": 0, "syns": syns}},
        "workload": {
            "senders": ["h1"], "receivers": ["h2"],
            "live": [{"host": "h1", "other": "h2", "program": "x", "mss_bytes": mss - 12}],
        },
    }  # fmt: skip
    assert bool(list(mss_failures(conditions, record))) is fails
    assert bool(list(live_mss_failures(conditions, record))) is fails


BAD_ROUTES = {
    "above an interface": ({"routes: 1500": "routes: 1501"}, "576 to 1500, the smallest MTU of this level"),
    "too small": ({"routes: 1500": "routes: 500"}, "576 to 1500, the smallest MTU of this level"),
    "IPv6": (
        {"kind: rack, topology": "kind: rack, family: 6, topology", "routes: 1500": "routes: 1279"},
        "1280 to 1500, the smallest MTU of this level",
    ),
    "veth": ({"kind: rack": "kind: veth"}, "no such key on testbed veth: routes are held on a rack only"),
    "changes": ({"blocks: 2": "blocks: 2\nchanges: [{at: 1 s, hosts: all, mtu: 9000}]"}, "no such key with changes"),
    "overlay": ({"factors: {": "factors: {overlay: vxlan, "}, "no such key with overlay vxlan"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ROUTES)
def test_routes_that_cannot_be_held_so_are_one_line(name):
    change, expected = BAD_ROUTES[name]
    text = STUDY
    for old, new in {**HELD, **change}.items():
        text = text.replace(old, new)
    with pytest.raises(StudyError) as caught:
        study_file.parse(text, "x")
    (line,) = [each for each in str(caught.value).splitlines() if ".routes: " in each]
    assert line.startswith("x:3: factors.mtu.levels.1.routes: found 1") or "found 500" in line
    assert f", expected {expected}" in line


CEPH = {
    "kind: fake": "kind: rack", "hosts: 3": "hosts: 5", "stream: {size: 10 MB, nics: 2}": "ceph: {KEYS}", "goodput": "iops",
}  # fmt: skip


def test_a_cluster_that_does_not_use_the_storage_network_is_refused():
    make(**CEPH, KEYS="storage_network: true")
    with pytest.raises(StudyError) as caught:
        make(**CEPH, KEYS="")
    (line,) = str(caught.value).splitlines()
    assert line == (
        "x:4: workloads.0.ceph: found False, expected storage_network: true, because a level of factors.mtu has an MTU of "
        "the storage network"
    )


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("offloads", ["off", "on"])
@pytest.mark.parametrize("stream", ["size: 10 MB, nics: 2", "duration: 1 s, nics: 2, reverse: true"])
def test_honest_runs_prove_both_networks(stream, offloads, family, execute, tmp_path):
    study = make(
        **{
            "size: 10 MB, nics: 2": stream,
            "kind: fake": f"kind: fake, family: {family}",
            "factors: {": f"factors: {{offloads: {offloads}, moderation: 200 us, ",
        }
    )
    _, runs = execute(study)
    assert [run.excluded for run in runs] == [[]] * 6
    headers = 40 if family == 4 else 60
    ceilings = {str(run.level): run.readings["ceiling_bits_per_second"] for run in runs}
    assert ceilings[str(SPLIT)] == pytest.approx((ceilings["1500"] + ceilings["9000"]) / 2)
    for run in runs:
        record = json.loads((tmp_path / "out" / "runs" / str(run.number) / "record.json").read_text())
        second = {host["nics"][1]["address"] for host in record["rack"]["hosts"]}
        syns = [syn for wire in record["wire"].values() for syn in wire["syns"]]
        for on_storage in (False, True):
            found = {
                syn["mss_bytes"] + headers
                for syn in syns
                if (syn["source"].rpartition(":")[0].strip("[]") in second) is on_storage
            }
            expected = run.level if isinstance(run.level, int) else run.level["storage" if on_storage else "default"]
            assert found == {expected}


def test_the_mtu_of_a_network_without_connections_is_not_proved(execute):
    _, runs = execute(make(**{", nics: 2}": "}"}))
    assert [run.excluded for run in runs] == [[]] * 6
    line = "MTU of the storage network: it was read, but this workload has no connections there to measure it by"
    assert {line in run.degraded for run in runs if isinstance(run.level, int)} == {False}
    assert {any(line in each for each in run.degraded) for run in runs if not isinstance(run.level, int)} == {True}


def test_ports_that_follow_hosts_follow_their_second_nics_too():
    study = make(**{"hosts: 3": "hosts: 2, links: [{from: switch, to: '*', mtu: host}]"})
    split = of_arms(study)["default=1500,storage=9000"]
    mtus = {each["to"]: each["mtu"] for each in split.network["links"]}
    assert mtus == {"h1.1": 1500, "h1.2": 9000, "h2.1": 1500, "h2.2": 9000}


def test_a_host_may_be_called_like_the_storage_network():
    level = {"default": 1500, "storage": 9000}
    assert (storage_mtu(level, ["h1", "h2"]), storage_mtu(level, ["client", "storage"])) == (9000, None)
    assert host_mtus(level, ["client", "storage"]) == {"client": 1500, "storage": 9000}
    assert storage_mtu(9000, ["h1"]) is None
