"""`framegauge.simulate`: a table of runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import framegauge
from framegauge.errors import InputError

STUDY: dict[str, Any] = {
    "testbed": {"kind": "simulator", "link": {"rate": "100 Mb/s", "buffer": "64 KiB"}},
    "factors": {"mtu": [1500, 9000]},
    "workloads": [{"stream": {"size": "100 kB", "repeat": "0 s"}}],
    "stop": "blocks",
}


@pytest.mark.agent
def test_a_row_for_every_run(tmp_path: Path) -> None:
    found = framegauge.simulate(STUDY, seeds=2, sweep={"testbed.link.rate": ["100 Mb/s", "200 Mb/s"]})
    assert found.height == 2 * 2 * 2
    assert set(found["conditions.bits_per_second"]) == {100_000_000, 200_000_000}
    by_rate: dict[int, list[float]] = {}
    for rate, seconds in found.select("conditions.bits_per_second", "metrics.completion_time").rows():
        by_rate.setdefault(rate, []).append(seconds)
    slow, fast = (sum(times) / len(times) for _, times in sorted(by_rate.items()))
    # 100 kB at 100 Mb/s: 8 ms and some round trips of 0.2 ms; at twice the rate half of the former.
    assert 0.008 < slow < 0.011
    assert 0.004 < fast < 0.006
    (tmp_path / "s.yaml").write_text(
        "{testbed: {kind: simulator}, factors: {mtu: [1500, 9000]}, workloads: [{rr: {duration: 5 ms}}]}"
    )
    assert framegauge.simulate(tmp_path / "s.yaml", seeds=2).height == 4


def test_what_cannot_be_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="found 1 seeds, expected 2 or more"):
        framegauge.simulate(STUDY, seeds=1)
    with pytest.raises(InputError, match="found an unknown key"):
        framegauge.simulate(STUDY, sweep={"testbed.link.bufer": [1]})
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="pip install polars"):
        framegauge.simulate(STUDY)


def test_there_is_nothing_else_to_be_had() -> None:
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        framegauge.simulat
