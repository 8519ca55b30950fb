"""Small captures of staged trouble, kept by `python -m bench.diagnosis.keep`: what was provoked is found, no more."""

from __future__ import annotations

import json

import pytest
from helpers.support import ROOT

from framegauge.diagnose import run as diagnosis

pytestmark = pytest.mark.agent
KEPT = ROOT / "python/tests/recorded/diagnosis"
TRUTHS = json.loads((KEPT / "truths.json").read_bytes())


@pytest.mark.parametrize("name", sorted(TRUTHS))
def test_what_was_provoked_is_found_at_each_tap_and_no_more(name: str) -> None:
    document = diagnosis.diagnose([KEPT / name])
    for capture in document["captures"]:
        truth = TRUTHS[name][capture["interface"]]
        found = {each["kind"] for each in document["findings"] if each["capture"] == capture["capture"]}
        assert set(truth["provoked"]) <= found, capture["interface"]
        assert sorted(found) == truth["found"], capture["interface"]
