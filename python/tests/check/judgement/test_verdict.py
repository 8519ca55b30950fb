"""Verdicts: only what arrived makes a pass."""

import pytest
from helpers.check_lab import Lab
from hypothesis import given, strategies as st

from framegauge.check.judgement import verdict
from framegauge.check.judgement.verdict import VERDICTS, of_check, of_pair

FLOWS = st.lists(
    st.fixed_dictionaries({"verdict": st.sampled_from(VERDICTS), "path_mtu_bytes": st.none() | st.integers(68, 9000)})
)


def flow(name, size=None):
    return {"verdict": name, "path_mtu_bytes": size}


@given(FLOWS)
def test_a_pair_passes_only_if_every_flow_did(flows):
    found = of_pair(flows, 9000)
    names = [each["verdict"] for each in flows]
    assert (found["verdict"] == "carries_target") == (bool(names) and set(names) == {"carries_target"})
    assert (found["verdict"] == "unknown") == (not set(names) & set(verdict.BAD) and set(names) != {"carries_target"})
    counts = found["flows"]
    assert counts["bad"] + counts["unknown"] + names.count("carries_target") == counts["probed"] == len(flows)


def test_the_worst_flow_names_the_pair():
    assert of_pair([flow("too_small", 1500), flow("black_hole", 4000), flow("carries_target")], 9000) == {
        "verdict": "black_hole", "path_mtu_bytes": 1500,
        "flows": {"probed": 3, "bad": 2, "unknown": 0, "fragmented": 0,
                  "path_mtus_bytes": {"9000": 1, "4000": 1, "1500": 1}},
    }  # fmt: skip


def test_a_bad_flow_of_unknown_size_leaves_the_size_unknown():
    assert of_pair([flow("black_hole"), flow("carries_target")], 9000)["path_mtu_bytes"] is None


def test_a_flow_never_carries_more_than_was_asked():
    assert of_pair([flow("carries_target", 9216)], 9000)["path_mtu_bytes"] == 9000


@given(st.lists(st.sampled_from(VERDICTS)))
def test_the_check_passes_only_if_every_pair_did(names):
    found = of_check([{"verdict": name} for name in names])
    assert (found == "carries_target") == (bool(names) and set(names) == {"carries_target"})
    assert (found == "fault") == bool(set(names) & set(verdict.BAD))
    assert verdict.exit_code(found) == {"carries_target": 0, "fault": 1, "could_not_tell": 2}[found]


def test_a_host_that_could_not_take_part_leaves_it_open():
    lab = Lab((2,))
    assert of_check(list(lab.pairs.values()), [{"error": "gone"}]) == "could_not_tell"


@pytest.mark.parametrize(
    ("name", "route", "path", "expected"),
    [
        ("carries_target", 9000, 9000, None), ("carries_target", 9216, 9000, None), ("carries_target", 1500, 9000, "below"),
        ("black_hole", 9000, 1500, "above"), ("black_hole", 1400, 1500, "below"), ("unknown", None, None, None),
    ],
)  # fmt: skip
def test_route_mtu(name, route, path, expected):
    pair = {"verdict": name, "route_mtu_bytes": route, "path_mtu_bytes": path}
    assert verdict.route_mtu_disagreement(pair) == expected
