"""A fraction of the cells: any two factors still meet in all combinations, equally often."""

import itertools
from collections import Counter

import pytest
from helpers.support import STUDY

from framegauge.errors import StudyError
from framegauge.study import file as study_file
from framegauge.study.model import cells

FACTORS = """factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
  rtt: [0.2 ms, 1.2 ms]
  offloads: [off, on]
  congestion_control: [cubic, reno]
"""


def text(fraction, factors=FACTORS, size="[1 MB, 10 MB]"):
    before = "factors:\n  mtu: {levels: [1500, 9000], baseline: 1500}\n"
    return STUDY.replace(before, factors).replace("10 MB", size) + f"fraction: {fraction}\n"


def test_half_of_four_factors_keeps_all_pairs_and_all_triples():
    whole = cells(study_file.parse(text(1), "s"))
    half = cells(study_file.parse(text(2), "s"))
    assert (len(whole), len(half)) == (16, 8)
    rows = [(*(cell.factors[name] for name in ("rtt", "offloads", "congestion_control")), cell.parameters["size_bytes"])
            for cell in half]  # fmt: skip
    assert set(rows) <= {(*(c.factors[n] for n in ("rtt", "offloads", "congestion_control")), c.parameters["size_bytes"])
                         for c in whole}  # fmt: skip
    for count in (1, 2, 3):
        for places in itertools.combinations(range(4), count):
            met = Counter(tuple(row[place] for place in places) for row in rows)
            assert len(met) == 2**count
            assert set(met.values()) == {8 // 2**count}
    assert [cell.index for cell in half] == list(range(8))


def test_a_third_of_three_levels():
    factors = FACTORS.replace("[0.2 ms, 1.2 ms]", "[0 s, 1 ms, 2 ms]").replace("  offloads: [off, on]\n", "").replace(
        "[cubic, reno]", "[cubic, reno, bbr]")  # fmt: skip
    third = cells(study_file.parse(text(3, factors, "[1 MB, 2 MB, 3 MB]"), "s"))
    assert len(third) == 9
    met = Counter((cell.factors["rtt"], cell.parameters["size_bytes"]) for cell in third)
    assert set(met.values()) == {1}
    assert len(met) == 9


@pytest.mark.parametrize("size", ["10 MB", "[1 MB, 2 MB, 3 MB]"])
def test_what_cannot_be_halved_is_one_line(size):
    factors = FACTORS.replace("  offloads: [off, on]\n", "")
    with pytest.raises(StudyError, match=r"fraction: found .2 with .*expected 1, or at least three varied"):
        study_file.parse(text(2, factors, size), "s")
