"""What a check does without a network: addresses, plans, arguments."""

from __future__ import annotations

import pytest
from helpers.support import ROOT

from framegauge.check import open as check_open
from framegauge.check.addresses import Address, Ends, Route, candidates, choose
from framegauge.cli import main as cli

A = [Address("10.1.0.1", 24, 4, "eth0"), Address("10.9.0.1", 24, 4, "vxlan0")]
B = [Address("10.9.0.2", 24, 4, "vxlan0"), Address("10.1.0.2", 24, 4, "eth0")]


TO_B = {"10.1.0.2": Route("10.1.0.1", "eth0", 9000), "10.9.0.2": Route("10.9.0.1", "vxlan0", 8950)}
TO_A = {"10.1.0.1": Route("10.1.0.2", "eth0", 9000), "10.9.0.1": Route("10.9.0.2", "vxlan0", 8950)}


def test_ends_are_addresses_that_route_to_each_other():
    assert choose(A[:1], B, TO_B, TO_A) == Ends("10.1.0.1", "10.1.0.2", "eth0")
    assert choose(A[1:], B, TO_B, TO_A) == Ends("10.9.0.1", "10.9.0.2", "vxlan0")


def test_an_address_from_which_the_far_end_would_not_answer_comes_second():
    back = TO_A | {"10.9.0.1": Route("10.1.0.2", "eth0", 9000)}
    assert choose(A, B, TO_B, back) == Ends("10.1.0.1", "10.1.0.2", "eth0")


def test_without_a_route_the_reason_is_kept():
    none = {each.address: Route(None, error="Network is unreachable") for each in B}
    found = choose(A, B, none, {})
    assert found is not None
    assert found.error == "Network is unreachable"
    assert choose([], B, TO_B, TO_A) is None
    assert choose(A, [], {}, {}) is None


def test_one_interface_may_be_meant():
    facts = {
        "interfaces": [
            {"name": name, "up": True, "addresses": [{"address": address, "prefix_length": 24, "family": 4}]}
            for name, address in (("eth0", "10.1.0.1"), ("vxlan0", "10.9.0.1"))
        ]
    }
    assert candidates(facts, 4) == A
    assert candidates(facts, 4, "vxlan0") == A[1:]
    assert candidates(facts, 6) == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("local", "check: found 1 host, expected two or more, --hosts FILE, --testbed FILE"),
        ("local local", "check: found local local, expected each host once"),
        ("local nonsense:x", "nonsense:x: found no host of this kind, expected local, netns:NAME"),
        ("local netns:", "netns:: found no host of this kind"),
        (
            "local netns:no-such",
            "netns:no-such: found no such network namespace, expected one that `ip netns` lists",
        ),
        ("local netns:a%", 'check: found "netns:a%", expected HOST or HOST%INTERFACE'),
        ("local netns:a --mtu 500", '--mtu: found "500", expected 576 to 65535 bytes'),
        ("local netns:a --flows 0", '--flows: found "0", expected a number from 1 to 1024'),
        ("local netns:a --rate fast", '--rate: found "fast", expected'),
        ("local netns:a --html /no/such/x.html", "--html: found no folder /no/such, expected one"),
        ("local netns:a --every soon", '--every: found "soon", expected a time such as'),
        ("--testbed no.yaml", "no.yaml: found no readable file"),
        (
            "--testbed {examples}/ssh-pair.yaml",
            '{examples}/ssh-pair.yaml: testbed.kind: found "ssh", expected rack or veth',
        ),
        ("--one-ended nobody.invalid", "--one-ended: found nobody.invalid ("),
        ("--one-ended fe80::1%lo", "--one-ended: found fe80::1%lo, expected an address that is not local to a link"),
        ("--one-ended 10.0.0.1 --flows 8", '--flows: found "8" with --one-ended, expected none: echoes have no ports'),
        ("--one-ended 10.0.0.1 --tcp-port ssh", '--tcp-port: found "ssh", expected a number from 1 to 65535, or none'),
        ("local netns:a --tcp-port 22", '--tcp-port: found "22" without --one-ended, expected both'),
        ("local local --one-ended 10.0.0.1", "check: found local local, expected each host once"),
        ("--testbed no.yaml --one-ended b", "no.yaml: found no readable file"),
    ],
)
def test_bad_input_is_one_line(words: str, line: str, capsys: pytest.CaptureFixture[str], fake_agent, monkeypatch):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", str(fake_agent))
    examples = str(ROOT / "examples")
    assert cli.main(["check", *words.replace("{examples}", examples).split()]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"framegauge: {line.replace('{examples}', examples)}")
    assert errors.count("\n") == 1


def test_a_check_that_could_not_be_made_names_no_fault(capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", "/bin/false")
    assert cli.main(["check", "local", "netns:blue"]) == 2
    assert capsys.readouterr().err.startswith("framegauge: hello: the agent was lost")


def test_an_address_of_ipv4_in_the_form_of_ipv6_is_one_of_ipv4(fake_agent, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FRAMEGAUGE_AGENT", str(fake_agent))
    with check_open.opened(["local"], None, lambda _: None, one_ended=["::ffff:192.0.2.7", "2001:db8::7"]) as (
        _,
        targets,
    ):
        assert [target.addresses for target in targets] == [{4: "192.0.2.7"}, {6: "2001:db8::7"}]
