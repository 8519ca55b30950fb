"""One link with many names: what traces of both directions say of the two ends of a link."""

from __future__ import annotations

import copy
import gzip
import json
from random import Random

import pytest
from helpers.check_lab import Lab
from helpers.schemas import conforms
from helpers.support import ROOT, by_length

from framegauge.check.judgement import blame, schema
from framegauge.check.judgement.document import Mesh, Pair
from framegauge.check.judgement.findings import CATALOGUE
from framegauge.check.judgement.hops import Node, Segment
from framegauge.check.judgement.links import Links

RECORDED = sorted((ROOT / "python/tests/documents").glob("leaf-spine-bad-uplink*.json.gz"))
LEAF, SPINE = "10.9.0.1", "10.9.0.2"  # the two ends of a link
NEAR, FAR = "10.1.0.254", "10.2.0.254"  # as the hosts of either side know their routers


def faults(document: dict) -> list[dict]:
    return [each for each in blame.blame(document) if CATALOGUE[each["kind"]].is_fault]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_bad_uplink_is_one_finding_however_many_hosts_are_behind_it(path):
    # Checks of examples/faults/leaf-spine-bad-uplink.yaml, whose routers answered seldom; good pairs are left out.
    document = json.loads(gzip.decompress(path.read_bytes()))
    conforms(document, schema.json_schema())
    (found,) = faults(document)
    assert found["kind"] == "member_too_small"
    assert found["where"] == (
        "between router 10.78.18.253 and router 10.78.18.254, both directions; "
        "between router fd78:0:0:12::fd and router fd78:0:0:12::fe, both directions"
    )
    bad = {(each["source"], each["destination"], each["family"]) for each in document["pairs"] if each["flows"]["bad"]}
    assert {tuple(pair) for pair in found["pairs"]} == bad
    assert len(bad) == 256


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_silence_alone_names_no_link(path):
    """Routers that have spent their answers on small packets: the loss may be behind any of them."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    for hop in (hop for pair in document["pairs"] for trace in pair["traces"] if trace["bad"] for hop in trace["hops"]):
        if hop["large"]["outcome"] == "expired":
            hop["large"] = {"outcome": "silent", "address": None, "mtu_bytes": None}
    (found,) = faults(document)
    assert "one of the parallel paths" in found["where"]
    assert "between router" not in found["where"]
    assert len(found["pairs"]) == 256


@pytest.mark.thorough
@pytest.mark.soak(2)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
@pytest.mark.parametrize("lost", [0.02, 0.1, 0.2])
def test_it_stays_one_finding_where_more_answers_are_lost(path, lost):
    """On a busy machine routers answer late, or not at all: pairs with few answers are no other fault."""
    recorded = json.loads(gzip.decompress(path.read_bytes()))
    for seed in range(by_length(4, 40)):
        random, document = Random(seed), copy.deepcopy(recorded)
        for hop in (hop for pair in document["pairs"] for trace in pair["traces"] for hop in trace["hops"]):
            for size in ("small", "large"):
                if hop[size]["outcome"] == "expired" and random.random() < lost:
                    hop[size] = {"outcome": "silent", "address": None, "mtu_bytes": None}
        (found,) = faults(document)
        assert "between router 10.78.18.253 and router 10.78.18.254, both directions" in found["where"]
        assert len(found["pairs"]) == 256


def traced(there: list[str | None], back: list[str | None]) -> Mesh:
    """Host a in one subnet, b in another; large packets come as far as the first hop, and back to the end."""

    def hops(names: list[str | None], arrives: int) -> list[tuple[str | None, str]]:
        return [(name, "expired" if index < arrives else "silent") for index, name in enumerate(names)]

    lab = Lab((1, 1)).fault([("a", "b", 4)], hops=[*hops(there, 1), ("", "silent")])
    lab.fault([("b", "a", 4)], hops=[*hops(back, len(back)), ("", "delivered")])
    return Mesh.read(lab.document())


def known(mesh: Mesh, near: str, far: str) -> Segment:
    return Links(mesh).named(Segment(Node(False, near), Node(False, far)))


def pair(mesh: Mesh) -> Pair:
    return mesh.by_key["a", "b", 4]


def test_the_near_end_of_a_link_is_beside_the_far_one_on_the_way_back():
    mesh = traced([NEAR, SPINE], [SPINE.replace(".2", ".6"), LEAF])
    assert known(mesh, NEAR, SPINE) == Segment(Node(False, LEAF), Node(False, SPINE))
    assert Links(mesh).is_known(Segment(Node(False, LEAF), Node(False, SPINE)))


@pytest.mark.parametrize(
    ("there", "back", "why"),
    [
        ([NEAR, SPINE], [LEAF, FAR], "not where the way back leaves the link"),
        ([NEAR, SPINE], [SPINE, NEAR], "a router that has one name from both sides"),
        ([NEAR, "10.9.0.4"], [FAR, "10.9.0.3"], "beside by number, in no common subnet"),
        ([NEAR, "x"], [FAR, "10.9.0.1"], "no address"),
    ],
)
def test_addresses_that_are_no_two_ends_of_a_link_stay_what_they_are(there, back, why):
    assert known(traced(there, back), *there) == Segment(Node(False, there[0]), Node(False, there[1])), why


def test_a_hop_that_kept_silent_once_is_known_by_the_link_behind_it():
    lab = Lab((1, 1, 1))
    lab.fault([("a", "b", 4)], hops=[(NEAR, "expired"), (SPINE, "silent"), ("", "silent")])
    lab.fault([("b", "a", 4)], hops=[(FAR, "expired"), (LEAF, "expired"), ("", "delivered")])
    lab.fault([("a", "c", 4)], hops=[(None, "silent"), (SPINE, "silent"), ("", "silent")])
    mesh = Mesh.read(lab.document())
    links = Links(mesh)
    trace = links.completed(mesh).by_key["a", "c", 4].traces[0]
    assert [hop.address for hop in trace.hops[:2]] == [NEAR, SPINE]
    assert trace.hops[0].large == "silent"
    assert links.may_lose(mesh.by_key["a", "b", 4], trace, Segment(Node(False, LEAF), Node(False, SPINE)))


def test_a_trace_loses_nothing_on_a_link_that_it_has_passed_or_never_meets():
    mesh = traced([NEAR, SPINE], [FAR, LEAF])
    links, link = Links(mesh), Segment(Node(False, LEAF), Node(False, SPINE))
    assert links.may_lose(pair(mesh), pair(mesh).traces[0], link)
    back = mesh.by_key["b", "a", 4]
    assert not links.may_lose(back, back.traces[0], link)
    assert not links.may_lose(pair(mesh), pair(mesh).traces[0], Segment(Node(False, NEAR), Node(False, SPINE)))
