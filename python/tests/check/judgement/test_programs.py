"""Programs that may drop packets by their length are told beside a loss that nothing else of their host explains."""

from __future__ import annotations

import jsonschema
import pytest
from helpers.check_lab import Lab

from framegauge.check.judgement import schema

LOOK = {
    "xdp": "bpftool net show dev eth0",
    "tc_ingress": "tc -s filter show dev eth0 ingress",
    "tc_egress": "tc -s filter show dev eth0 egress",
}


def at_c(host: str, kind: str, mtu: int = 9000) -> tuple[bool, list[str]]:
    """Where all that c takes in is lost above 1500: whether a program is told, and the commands."""
    lab = Lab((3,))
    lab.fault(lab.some(lambda _, to: to == "c"))
    lab.device("c")["mtu"] = mtu
    lab.device(host)["programs"] = [kind]
    document = lab.document()
    jsonschema.Draft202012Validator(schema.json_schema()).validate(document)
    [found] = [each for each in document["findings"] if each["hosts"] == ["c"]]
    return "it may drop by length" in found["summary"], [each["run"] for each in found["commands"]]


@pytest.mark.parametrize("kind", ["xdp", "tc_ingress"])
def test_a_program_on_what_is_lost_is_told_with_how_to_see_it(kind: str):
    is_told, runs = at_c("c", kind)
    assert is_told
    assert runs[0] == LOOK[kind]


@pytest.mark.parametrize(("host", "kind"), [("c", "tc_egress"), ("a", "xdp"), ("a", "tc_ingress")])
def test_a_program_on_other_packets_or_at_another_host_is_not(host: str, kind: str):
    is_told, runs = at_c(host, kind)
    assert not is_told
    assert not set(LOOK.values()) & set(runs)


def test_an_mtu_that_explains_the_loss_needs_no_program():
    assert not at_c("c", "xdp", mtu=1500)[0]


def test_a_program_on_what_a_sender_sends_is_told():
    lab = Lab((2,)).fault([("a", "b", 4)])
    lab.device("a")["programs"] = ["tc_egress"]
    [found] = lab.faults()
    assert found["commands"][0] == {"run": LOOK["tc_egress"], "on": "host a", "purpose": "see a filter of tc"}
