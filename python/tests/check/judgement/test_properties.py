"""Whatever the schema allows: the blame ends, explains every fault, and says nothing that the document does not hold."""

from __future__ import annotations

import jsonschema
import pytest
from helpers.check_documents import documents
from helpers.check_lab import Lab
from helpers.support import by_length
from hypothesis import given, settings, strategies as st

from framegauge.check.judgement import schema
from framegauge.check.judgement.blame import blame
from framegauge.check.judgement.findings import CATALOGUE

VALID = jsonschema.Draft202012Validator(schema.json_schema())
FAULTS = {"too_small", "black_hole", "unreachable"}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(schema.json_schema())


@pytest.mark.soak(3)
@settings(max_examples=by_length(40, 1000))
@given(documents())
def test_blame_takes_any_document(document):
    VALID.validate(document)
    document["findings"] = blame(document)
    VALID.validate(document)
    assert document["findings"] == blame(document)
    known = {(pair["source"], pair["destination"], pair["family"]): pair for pair in document["pairs"]}
    names = {host["name"] for host in document["hosts"]} | {end for key in known for end in key[:2]}
    explained = set()
    for found in document["findings"]:
        assert found["evidence"]
        assert found["fix"]
        assert set(found["hosts"]) <= names
        assert {tuple(pair) for pair in found["pairs"]} <= set(known)
        if CATALOGUE[found["kind"]].is_fault:
            explained |= {tuple(pair) for pair in found["pairs"]}
    # Every fault has a finding, and no finding of a fault is about a pair that has none.
    assert {key for key, pair in known.items() if pair["verdict"] in FAULTS} == explained


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from([(4,), (6,), (4, 6)]), st.integers(1, 64))
def test_no_fault_no_finding(subnets, families, flows):
    lab = Lab(subnets, families, flows)
    if len(lab.hosts) > 1:
        assert lab.blame() == []


@given(st.integers(4, 9), st.data())
def test_bad_hosts_of_a_flat_mesh_are_named_exactly(count, data):
    lab = Lab((count,))
    names = sorted(lab.hosts)
    bad = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=count - 3, unique=True))
    way = data.draw(st.sampled_from(["sending", "receiving"]))
    lab.fault(lab.some(lambda a, b: (a if way == "sending" else b) in bad))
    assert sorted(found["where"] for found in lab.faults()) == sorted(f"host {name}, {way}" for name in bad)


@given(st.integers(2, 6), st.data())
def test_unknown_pairs_never_name_a_culprit(count, data):
    lab = Lab((count,))
    keys = data.draw(st.lists(st.sampled_from(sorted(lab.pairs)), min_size=1, unique=True))
    lab.fault(keys, None, "unknown")
    assert [found["kind"] for found in lab.blame()] == ["could_not_tell"]
    assert lab.document()["verdict"] == "could_not_tell"
