"""Bonds in study files: what they are, and what they leave no room for."""

from __future__ import annotations

import pytest

from framegauge.errors import InputError
from framegauge.study import file as study_file
from framegauge.study.model import Study

TEXT = """question: Do they?
testbed: {kind: simulator, topology: TOPOLOGY}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 10 MB}}]
"""
BOND = "{rack: {nics: 2, bond: layer3+4}}, hosts: 4"


def parse(topology: str = BOND, **replaced: str) -> Study:
    text = TEXT.replace("TOPOLOGY", topology)
    for old, new in replaced.items():
        text = text.replace({"kind": "kind: simulator", "size": "size: 10 MB", "mtu": "[1500, 9000]"}[old], new)
    return study_file.parse(text, "study.yaml")


@pytest.mark.parametrize("bond", ["layer2", "layer2+3", "layer3+4"])
@pytest.mark.parametrize(("shape", "hosts"), [("pair", ""), ("rack", ", hosts: 4")])
def test_a_bond_is_one_nic_with_one_address(bond: str, shape: str, hosts: str) -> None:
    bed = parse(f"{{{shape}: {{nics: 3, bond: {bond}}}}}{hosts}").testbed
    assert bed.nics_of_hosts == 1
    assert bed.topology.bond == bond
    assert bed.topology.as_json() == {"kind": "rack", "nics": 3, "bond": bond}
    assert bed.topology.text() == f"{shape} (nics 3, bond {bond})"
    # As it is saved with results, and read again.
    assert bed.topology.model_dump() == {shape: {"nics": 3, "bond": bond}}


def test_without_a_bond_nothing_is_said_of_one() -> None:
    for topology, saved in (
        ("rack", "rack"),
        ("{rack: {nics: 1}}", "rack"),
        ("{rack: {nics: 2}}", {"rack": {"nics": 2}}),
    ):
        bed = parse(topology).testbed
        assert bed.topology.bond is None
        assert bed.topology.model_dump() == saved
        assert "bond" not in bed.topology.as_json()


WHOSE = "bond: layer3+4, which makes the NICs of a host one, with one address"
REFUSED = [
    (
        "{rack: {nics: 1, bond: layer3+4}}", {},
        'study.yaml:2: testbed.topology.rack.bond: found "layer3+4", expected no such key unless nics: 2 or more: they are the members of the bond',
    ),
    (
        "{pair: {bond: layer3+4}}", {},
        'study.yaml:2: testbed.topology.pair.bond: found "layer3+4", expected no such key unless nics: 2 or more: they are the members of the bond',
    ),
    (
        "{rack: {nics: 2, bond: layer4}}", {},
        'study.yaml:2: testbed.topology.rack.bond: found "layer4", expected \'layer2\', \'layer2+3\' or \'layer3+4\'',
    ),
    (
        BOND, {"kind": "kind: fake"},
        'study.yaml:2: testbed.topology.rack.bond: found "layer3+4", expected no such key with kind: fake: only hosts of kind: simulator have bonds',
    ),
    (
        BOND, {"mtu": "[1500, {default: 1500, storage: 9000}]"},
        f"study.yaml:3: factors.mtu.1.storage: found 9000, expected no such key with {WHOSE}",
    ),
    (
        BOND, {"size": "size: 10 MB, nics: 2"},
        f"study.yaml:4: workloads.0.stream.nics: found [2], expected no such key with {WHOSE}: flows lie on its members by hash",
    ),
    (
        BOND, {"size": "duration: 5 s}}]\nchanges: [{at: 1 s, hosts: all, network: storage, mtu: 9000}]\n#"},
        f'study.yaml:5: changes.0.network: found "storage", expected no such key with {WHOSE}',
    ),
    (
        BOND, {"size": "duration: 5 s}}]\nchanges: [{at: 1 s, from: switch, to: h1.2, up: false}]\n#"},
        'study.yaml:5: changes.0.up: found "false", expected no such key for a NIC with bond: layer3+4: a member that is down is not left out of its bond',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "replaced", "line"), REFUSED)
def test_what_a_bond_leaves_no_room_for_is_refused_in_one_line(
    topology: str, replaced: dict[str, str], line: str
) -> None:
    with pytest.raises(InputError) as raised:
        parse(topology, **replaced)
    assert str(raised.value) == line


def test_ceph_has_no_storage_network_of_its_own() -> None:
    text = (
        TEXT.replace("TOPOLOGY", BOND)
        .replace("simulator", "rack")
        .replace("stream: {size: 10 MB}", "ceph: {storage_network: true}")
    )
    with pytest.raises(InputError, match="bond: layer3\\+4"):
        study_file.parse(text, "study.yaml")
