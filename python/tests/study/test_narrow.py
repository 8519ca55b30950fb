"""Links and routers below a level of the study are said before anything runs, with what becomes of larger packets."""

import json

import pytest
from helpers.support import ROOT

from framegauge.cli.main import main
from framegauge.study import file as study_file
from framegauge.study.narrow import lines, narrow

DUMBBELL = """
testbed:
  kind: simulator
  topology: dumbbell
  hosts: 4
  links: [{from: left, to: right, mtu: 1500}]
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 100 kB}}]
blocks: 2
"""
ROUTED = """
testbed:
  kind: simulator
  topology:
    custom:
      switches: [a, b, c]
      routers: [{name: r1, mtu: 4000}, {name: r2, mtu: 1500}]
      links: [[h1, a], [a, r1], [r1, b], [b, r2], [r2, c], [c, h2]]
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 100 kB}}]
blocks: 2
"""


def told(text, *changes):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return [
        (each.level, list(each.links), each.router, each.mtu, each.packet_bytes, each.fate)
        for each in narrow(study_file.parse(text, "x"))
    ]


def test_a_switch_drops_what_is_larger_and_tells_nobody():
    assert told(DUMBBELL) == [(9000, ["left>right"], None, 1500, 9000, "dropped")]
    (line,) = lines(study_file.parse(DUMBBELL, "x"))
    assert line == (
        "warning: MTU 9000 is above the 1500 of link left>right: packets of 9000 bytes that come there are dropped (giant) "
        "and nobody is told, so transfers of full packets do not get through it"
    )
    assert told(DUMBBELL, ("mtu: 1500}", "mtu: 9000}")) == []


def test_a_link_of_a_host_counts_for_packets_of_that_host_only():
    of_h4 = ("{from: left, to: right, mtu: 1500}", "{from: right, to: h4, mtu: 1500}")
    assert told(DUMBBELL, of_h4) == [(9000, ["right>h4"], None, 1500, 9000, "dropped")]
    levels = "[1500, {h4: 1500, default: 9000}]"
    assert told(DUMBBELL, of_h4, ("[1500, 9000]", levels)) == []
    # Between two of the others they are 9000 bytes, and only the link between the switches can bear them or not.
    assert [each[1] for each in told(DUMBBELL, ("[1500, 9000]", levels))] == [["left>right"]]
    one = "[1500, {h1: 9000, default: 1500}]"
    assert told(DUMBBELL, ("[1500, 9000]", one)) == []


def test_an_mtu_at_which_routes_are_held_keeps_packets_small():
    rack = ("kind: simulator", "kind: rack")
    levels = "[1500, {h1: 9000, default: 9000, routes: 1500}]"
    assert told(DUMBBELL, rack, ("[1500, 9000]", levels)) == []


def test_links_that_follow_their_hosts_are_not_below_them():
    assert told(DUMBBELL, ("{from: left, to: right, mtu: 1500}", '{from: "*", to: "h*", mtu: host}')) == []


def test_a_router_tells_the_sender_and_what_it_drops_does_not_reach_what_is_behind():
    found = told(ROUTED)
    assert [each[2:] for each in found] == [("r1", 4000, 9000, "too big"), ("r2", 1500, 9000, "too big")]
    filtered = told(ROUTED, ("mtu: 4000}", "mtu: 4000, icmp: filtered}"))
    assert [(each[2], each[5]) for each in filtered] == [("r1", "filtered"), ("r2", "too big")]
    # Of what h1 sends, r1 lets 4000 bytes into the middle, and of what h2 sends, r2 lets 1500.
    for mtu, expected in ((4000, []), (3000, [(9000, ["b>r2.1"], None, 3000, 4000, "dropped")])):
        middle = ("factors:", f"  links: [{{from: b, to: r2, mtu: {mtu}}}]\nfactors:")
        assert [each for each in told(ROUTED, middle) if each[2] is None] == expected


def test_with_probing_transfers_get_through_a_black_hole():
    (line,) = lines(study_file.parse(DUMBBELL.replace("9000]", "9000], mtu_probing: 1"), "x"))
    assert line.endswith("so only mtu_probing gets transfers through it")


def test_plan_says_so_in_the_terminal_and_as_json(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(DUMBBELL)
    main(["plan", str(tmp_path / "s.yaml")])
    assert "warning: MTU 9000 is above the 1500 of link left>right" in capsys.readouterr().out
    main(["plan", str(tmp_path / "s.yaml"), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["warnings"]
    assert (found["links"], found["mtu"], found["level"], found["fate"]) == (["left>right"], 1500, 9000, "dropped")


@pytest.mark.agent
def test_simulate_says_so_before_it_begins_and_in_its_results(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(DUMBBELL.replace("hosts: 4", "hosts: 2"))
    main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--json"])
    captured = capsys.readouterr()
    assert "warning: MTU 9000 is above the 1500 of link left>right" in captured.err
    (found,) = json.loads(captured.out)["narrow_links"]
    assert (found["fate"], found["packet_bytes"]) == ("dropped", 9000)
    (verdict,) = {each["verdict"] for each in json.loads(captured.out)["verdicts"]}
    assert verdict == "does not work"


def test_examples_whose_links_all_fit_have_no_warning():
    for name in ("simulate", "pair", "simulate-incast"):
        assert lines(study_file.load(ROOT / f"examples/{name}.yaml")) == []
