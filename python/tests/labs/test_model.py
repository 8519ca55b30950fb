"""Lab files: what is wrong with one is said in one line, what follows from one holds, and the truth of each is checked."""

from __future__ import annotations

import ipaddress
import itertools
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from helpers.lab_model import expected
from helpers.schemas import conforms
from helpers.support import ROOT
from hypothesis import given, strategies as st

from framegauge.cli import main as cli
from framegauge.errors import MissingRequirement, StudyError
from framegauge.labs import file as lab_file
from framegauge.labs.commands import links, recipe, reminders
from framegauge.labs.model import FAMILIES, Network, segments
from framegauge.labs.plan import Plan, plan
from framegauge.testbeds import lab as bed

EXAMPLES = sorted((ROOT / "examples/faults").glob("*.yaml"))
LAB = """\
about: A test.
network:
  mtu: 9000
  nodes: {a: host, s1: switch, r1: router, b: host}
  links:
    - {ends: [a, s1]}
    - {ends: [s1, r1], mtu: {s1: 1500}, receives: 1500}
    - {ends: [r1, b], mtu: 4000, loss: 1 %}
truth:
  - {source: a, destination: b, verdict: black_hole, path_mtu_bytes: 1500}
check: {target_mtu: 9000}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid_and_its_truth_follows_from_its_network(path: Path) -> None:
    lab = lab_file.load(path)
    conforms(yaml.safe_load(path.read_text()), lab_file.json_schema())
    made, target = plan(lab.network), lab.check.target_mtu
    pairs = itertools.permutations(lab.network.hosts(), 2)
    assert {(each.source, each.destination, each.family) for each in lab.truth} == {
        (*pair, family) for pair in pairs for family in FAMILIES
    }
    for each in lab.truth:
        found = (each.verdict, each.path_mtu_bytes, each.configured_mtu, each.bad_share)
        assert found == expected(made, each.source, each.destination, each.family, target), each


def test_the_example_in_the_document_is_right() -> None:
    text = (ROOT / "docs/how-to/fault-lab.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    lab = lab_file.parse(text, "fault-lab.md")
    made = plan(lab.network)
    assert len(lab.truth) == 4
    for each in lab.truth:
        found = (each.verdict, each.path_mtu_bytes, each.configured_mtu, each.bad_share)
        assert found == expected(made, each.source, each.destination, each.family, lab.check.target_mtu)
    assert [(each.host, each.address, each.mtu) for each in reminders(made)] == [
        ("h2", "10.78.1.1", 1500),
        ("h2", "fd78:0:0:1::1", 1500),
    ]


def test_there_is_an_example_of_every_fault() -> None:
    assert len(EXAMPLES) >= 17
    text = "".join(path.read_text() for path in EXAMPLES)
    for key in ("blocks", "clamps_mss", "routes", "remembers", "receives", "loss", "overlays", "switch", "bad_share"):
        assert key in text, key


def test_the_schema_is_valid_and_refuses_unknown_keys() -> None:
    schema = lab_file.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        conforms(yaml.safe_load(LAB) | {"netwrok": {}}, schema)


BAD = {
    "unknown key": ("loss:", "los:", 'lab.yaml:8: network.links.2.los: found an unknown key, expected "loss"'),
    "unknown kind": ("s1: switch", "s1: swich", "lab.yaml:4: network.nodes.s1: found \"swich\", expected 'host', 'router' or 'switch'"),
    "unknown end": ("[r1, b]", "[r1, c]", 'lab.yaml:8: network.links.2.ends.1: found "c", expected one of the nodes a, s1, r1, b'),
    "one end": ("[r1, b]", "[r1]", "lab.yaml:8: network.links.2.ends: found"),
    "end twice": ("[r1, b]", "[b, b]", 'lab.yaml:8: network.links.2.ends.1: found "b", expected each end once'),
    "no link": ("b: host", "b: host, c: host", 'lab.yaml:4: network.nodes.c: found "c", expected a link that ends at this node'),
    "no host": ("{a: host, s1: switch, r1: router, b: host}", "{a: router, s1: switch, r1: router, b: router}", "lab.yaml:4: network.nodes: found"),
    "named any": ("a: host", "any: host", 'lab.yaml:4: network.nodes.any: found "any", expected another name'),
    "a strange name": ("a: host", "A: host", "lab.yaml:4: network.nodes.A"),
    "MTU of a third": ("{s1: 1500}", "{a: 1500}", 'lab.yaml:7: network.links.1.mtu: found "a", expected one of its ends s1, r1'),
    "MTU too small": ("mtu: 4000", "mtu: 1000", "lab.yaml:8: network.links.2.mtu: found 1000, expected at least 1280 (RFC 8200), or family: 4"),
    "MTU of nobody": ("mtu: 4000", "mtu: 9k", 'lab.yaml:8: network.links.2.mtu: found "9k", expected an MTU in bytes between 68 and 65535'),
    "a host that takes in": ("loss: 1 %", "receives: {b: 1500}", "lab.yaml:8: network.links.2.receives: found {'b': 1500}, expected this key only for a router"),
    "bare loss": ("1 %", "0.01", "lab.yaml:8: network.links.2.loss: found 0.01, expected a share such as 1 % (unit: %)"),
    "round": ("- {ends: [r1, b]", "- {ends: [s1, a]}\n    - {ends: [r1, b]", 'lab.yaml:8: network.links.2.ends: found "s1, a", expected ends that are not on one segment'),
    "two families on a switch": ("{ends: [a, s1]}", "{ends: [a, s1], family: 4}", "lab.yaml:7: network.links.1: found None, expected the same family"),
    "blocks at a host": ("a: host", "a: {blocks: [too_big]}", 'lab.yaml:4: network.nodes.a.blocks: found "host", expected no such key unless kind: router'),
    "unknown block": ("r1: router", "r1: {kind: router, blocks: [ping]}", "lab.yaml:4: network.nodes.r1.blocks.0: found \"ping\", expected 'too_big' or 'expired'"),
    "remembers a neighbour": ("b: host", "b: host, c: {remembers: [{to: a, mtu: 1500}]}", "lab.yaml:4: network.nodes.c: found"),
    "routes to nobody": ("a: host", "a: {routes: [{to: r1, mtu: 1500}]}", 'lab.yaml:4: network.nodes.a.routes.0.to: found "r1", expected one of the hosts b'),
    "overlay of a router": ("truth:", "  overlays: [{ends: [a, r1], mtu: 1450}]\ntruth:", 'lab.yaml:9: network.overlays.0.ends.1: found "r1", expected a host: one of a, b'),
    "truth of nobody": ("source: a", "source: r1", 'lab.yaml:10: truth.0.source: found "r1", expected any, or one of the hosts a, b'),
    "truth above the target": ("path_mtu_bytes: 1500", "path_mtu_bytes: 9000", "lab.yaml:10: truth.0.path_mtu_bytes: found 9000, expected less than 9000: black_hole"),
    "truth below the target": ("black_hole", "carries_target", "lab.yaml:10: truth.0.path_mtu_bytes: found 1500, expected check.target_mtu 9000: carries_target"),
    "no way": ("loss: 1 %", "family: 4", 'lab.yaml:10: truth.0: found "black_hole over IPv6 from a to b", expected unreachable where there is no path'),
    "no YAML": ("{target_mtu: 9000}", "{target_mtu: 9000", "lab.yaml:"),
    "no target": ("check: {target_mtu: 9000}", "", "lab.yaml:1: check: found nothing, expected this key"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_where_what_and_what_was_expected(name: str) -> None:
    old, new, message = BAD[name]
    assert old in LAB
    with pytest.raises(StudyError) as error:
        lab_file.parse(LAB.replace(old, new, 1), "lab.yaml")
    assert error.value.problems[0].startswith(message), error.value.problems
    assert all("\n" not in line for line in error.value.problems)


def test_remembering_needs_somebody_who_has_told() -> None:
    text = LAB.replace("b: host", "b: host, c: {remembers: [{to: a, mtu: 1500}]}").replace(
        "truth:", "    - {ends: [c, s1]}\ntruth:"
    )
    with pytest.raises(
        StudyError, match=r'lab.yaml:4: network.nodes.c.remembers: found "a", expected a host beyond a router'
    ):
        lab_file.parse(text, "lab.yaml")


@given(st.text(max_size=60))
def test_any_text_is_a_lab_or_a_study_error(text: str) -> None:
    try:
        lab_file.parse(text, "x")
    except StudyError as error:
        assert all(line.startswith("x:") for line in error.problems)  # noqa: PT017


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Any network that the description can say: a tree of nodes, and links beside it between routers."""
    kinds = draw(st.lists(st.sampled_from(["host", "router", "switch"]), min_size=1, max_size=9))
    names = ["n0", *(f"n{number}" for number in range(1, len(kinds) + 1))]
    nodes: dict[str, Any] = dict(zip(names, ["host", *kinds], strict=True))
    found = [
        {"ends": [names[draw(st.integers(0, number - 1))], names[number]], "mtu": draw(st.integers(1280, 65535))}
        for number in range(1, len(names))
    ]
    routers = [name for name, kind in nodes.items() if kind == "router"]
    if len(routers) > 1:
        for _ in range(draw(st.integers(0, 4))):
            ends = draw(st.lists(st.sampled_from(routers), min_size=2, max_size=2, unique=True))
            found.append({"ends": ends, "family": draw(st.sampled_from([4, 6, None]))})
    return {"nodes": nodes, "links": found}


@given(networks())
def test_addresses_are_ones_own_and_routes_arrive_without_going_round(data: dict[str, Any]) -> None:
    network = Network.model_validate(data)
    made = plan(network)
    every = [each for interfaces in made.interfaces.values() for each in interfaces]
    addresses = [address for each in every for address in each.addresses.values()]
    assert len(addresses) == len(set(addresses))
    assert len({each.index for each in every}) == len(every)
    for node, interfaces in made.interfaces.items():
        assert len({each.name for each in interfaces}) == len(interfaces)
        assert all(len(each.name) <= 15 for each in interfaces)
        assert (network.nodes[node].kind != "switch") == any(each.addresses for each in interfaces)
        recipe(made, node)
    assert sorted(number for members in segments(network) for number in members) == list(range(len(network.links)))
    assert len(links(made, dict.fromkeys(network.nodes, 1))) == len(network.links)
    assert list(reminders(made)) == []
    for segment, families in made.families.items():
        for node, family in itertools.product(network.nodes, families):
            _arrives(made, node, segment, family, len(network.nodes))


def _arrives(made: Plan, node: str, segment: int, family: int, left: int) -> None:
    """Every next hop is a router on a segment of the node, and nearer."""
    for hop in made.hops(node, segment, family):
        assert left > 0
        assert made.network.nodes[hop.router].kind == "router"
        own = next(each for each in made.interfaces[node] if each.name == hop.interface)
        assert (
            ipaddress.ip_address(hop.address)
            in ipaddress.ip_interface(f"{own.addresses[family]}/{24 if family == 4 else 64}").network
        )
        there = any(each.segment == segment for each in made.interfaces[hop.router])
        assert there or made.hops(hop.router, segment, family)
        _arrives(made, hop.router, segment, family, left - 1)


@given(networks())
def test_whatever_a_network_is_its_file_is_read_or_refused_in_lines(data: dict[str, Any]) -> None:
    text = yaml.safe_dump({"about": "x", "network": data, "check": {"target_mtu": 9000}})
    try:
        assert lab_file.parse(text, "x").network == Network.model_validate(data)
    except StudyError as error:
        assert all(line.startswith("x:") for line in error.problems)  # noqa: PT017


def test_a_program_that_is_not_there_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(lab_file.parse(LAB, "lab.yaml").network)
    recipes = {name: recipe(made, name) for name in made.network.nodes}
    monkeypatch.setattr(bed.shutil, "which", lambda name, path: None if name == "nft" else name)
    with pytest.raises(MissingRequirement) as error:
        bed._demand_programs(recipes)
    assert str(error.value) == (
        "missing nft (needed for packets that are dropped or rewritten): found no such program; apt-get install nftables"
    )
    bed._demand_programs({"a": recipes["a"]})  # nothing of a needs it


def test_a_study_and_a_lab_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    assert lab_file.is_lab(path)
    assert not lab_file.is_lab(ROOT / "examples/pair.yaml")
    path.write_text(LAB.replace("loss", "los"))
    assert cli.main(["rack", "up", str(path)]) == 2
    assert capsys.readouterr().err == (
        f'framegauge: {path}:8: network.links.2.los: found an unknown key, expected "loss"\n'
    )
