"""The MTU that ifupdown2 gives to a stanza without one: by its policies, or by its default."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.mutated import mutated
from hypothesis import given
from rollout.test_preflight import asked, facts

from framegauge.rollout import preflight
from framegauge.rollout.owners import Nic, Ownership, ownership
from framegauge.rollout.preflight import survey

PATH, CONFIG = "/etc/network/interfaces", "/etc/network/ifupdown2/ifupdown2.conf"
OWN, SYSTEM = "/etc/network/ifupdown2/policy.d/mtu.json", "/var/lib/ifupdown2/policy.d/address.json"
ETH1 = Nic("eth1", 3, "52:54:00:00:00:01")
STANZA = "auto eth1\niface eth1\n    address 10.1.0.1/24\n"


def policy(**blocks: Any) -> str:
    return json.dumps({"address": blocks}, indent=2)


def found(files: dict[str, str], nic: Nic = ETH1, text: str = STANZA) -> Ownership:
    return ownership({CONFIG: "", PATH: text, **files}, nic, 9000)


def claimed(files: dict[str, str], nic: Nic = ETH1, text: str = STANZA) -> list[tuple[str, int | None]]:
    return [(claim.place, claim.mtu) for claim in found(files, nic, text).claims]


@pytest.mark.parametrize(
    ("files", "place", "mtu"),
    [
        ({OWN: policy(iface_defaults={"eth0": {"mtu": 1}, "eth1": {"mtu": "1500"}})}, f"{OWN}:8", 1500),
        ({OWN: policy(defaults={"mtu": "1500"})}, f"{OWN}:4", 1500),
        ({OWN: policy(defaults={"mtu": 4200}), SYSTEM: policy(defaults={"mtu": "1500"})}, f"{OWN}:4", 4200),
        ({OWN: policy(defaults={"mtu": 4200}), SYSTEM: policy(iface_defaults={"eth1": {"mtu": 1}})}, f"{SYSTEM}:5", 1),
        ({OWN: json.dumps({"ethtool": {"defaults": {"mtu": 4200}}})}, CONFIG, 1500),
        ({}, CONFIG, 1500),
    ],
)
def test_a_stanza_without_an_mtu_has_that_of_the_policies(files: dict[str, str], place: str, mtu: int) -> None:
    owned = found(files)
    assert [(claim.place, claim.mtu) for claim in owned.claims] == [(place, mtu)]
    # The stanza's own comes before all policies.
    [edit] = owned.edits
    assert (edit.path, edit.after) == (PATH, STANZA.replace("eth1\n   ", "eth1\n    mtu 9000\n   "))
    after = ownership({CONFIG: "", PATH: edit.after or "", **files}, ETH1, 9000)
    assert ([claim.mtu for claim in after.claims], after.edits, after.mentions) == ([9000], (), ())


def test_a_policy_means_interfaces_with_a_stanza_and_of_ifupdown2_alone() -> None:
    text = policy(defaults={"mtu": 1500}, iface_defaults={"eth1": {"mtu": 1500}})
    assert ownership({PATH: STANZA.replace("eth1", "eth2"), CONFIG: "", OWN: text}, ETH1, 9000).claims == ()
    whole = "iface eth1 inet manual\n"
    assert [claim.mtu for claim in ownership({PATH: whole, OWN: text}, ETH1, 9000).claims] == [None]


def test_vlans_and_ports_of_a_bond_get_no_default() -> None:
    vlan = Nic("eth1", kind="vlan")
    assert claimed({OWN: policy(defaults={"mtu": 1500})}, vlan) == [(f"{PATH}:2", None)]
    assert claimed({OWN: policy(iface_defaults={"eth1": {"mtu": 1500}})}, vlan) == [(f"{OWN}:5", 1500)]
    for lines in ("iface bond0\n  bond-slaves eth1 eth2\n", "iface bond0\n  bond_slaves eth1\n"):
        assert claimed({}, ETH1, STANZA + lines) == [(f"{PATH}:2", None)]
    assert claimed({}, ETH1, f"{STANZA}    bond-master bond0\n") == [(f"{PATH}:2", None)]
    assert claimed({}, Nic("bond0", kind="bond"), "iface bond0\n  bond-slaves eth1\n") == [(CONFIG, 1500)]


def test_a_limit_below_the_new_mtu_is_told() -> None:
    text = STANZA + "    mtu 1500\n"
    [trouble] = found({OWN: policy(module_globals={"max_mtu": 1500})}, text=text).troubles
    assert trouble == f'{OWN}:4: found "max_mtu": 1500, above which ifupdown2 sets no MTU, expected 9000 or more'
    for most in (9000, "9216", 0):
        assert found({OWN: policy(module_globals={"max_mtu": most})}, text=text).troubles == ()
    assert (
        found({OWN: policy(module_globals={"max_mtu": 9216}), SYSTEM: policy(module_globals={"max_mtu": 1})}).troubles
        == ()
    )


def test_a_hook_that_may_set_it_comes_after_the_default() -> None:
    owned = found({}, text=f"{STANZA}    post-up /usr/local/sbin/set-mtu $IFACE 1500\n")
    assert (owned.claims, owned.edits, len(owned.mentions)) == ((), (), 1)


def test_a_policy_that_nobody_can_read_is_told() -> None:
    [trouble] = found({OWN: '{"address": {"defaults": '}).troubles
    assert trouble == f"{OWN}: found what ifupdown2 leaves out, expected policies as JSON"
    assert found({OWN: policy(defaults={"mtu": "large"})}).troubles[0].startswith(f"{OWN}: found defaults mtu 'large'")
    assert found({OWN: '{"bridge": '}).troubles == ()


def test_it_is_told_instead_of_a_stanza_that_sets_none() -> None:
    listed = preflight.findings({"a": facts(files={CONFIG: "", PATH: "iface bond0\n"})}, asked("bond0"))
    [told] = [each for each in listed if each.what == "owner"]
    assert told.severity == "warning"
    assert told.found.startswith("ifupdown, which sets 1500 (the default of ifupdown2")


def test_the_survey_reads_the_policies(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(policy(defaults={"mtu": 1500}))
    script = survey.SCRIPT.replace("/etc/network/ifupdown2/policy.d/", f"{tmp_path}/")
    assert script != survey.SCRIPT
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert survey.parsed(done.stdout, "a")["files"][str(tmp_path / "own.json")] == policy(defaults={"mtu": 1500})


@given(
    mutated([policy(defaults={"mtu": "1500"}, iface_defaults={"eth1": {"mtu": 9000}}, module_globals={"max_mtu": 9})])
)
def test_whatever_a_policy_has_it_is_read(text: str) -> None:
    assert len(found({OWN: text}).troubles) <= 2
