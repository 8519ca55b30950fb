"""What sentences call the work of each workload, and whether the last of several transfers leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framegauge.loads import LOADS, waits_for_all
from framegauge.metrics import METRICS, is_own
from framegauge.study.workloads import WORKLOADS
from framegauge.summary import phrases

SENTENCES = Path(__file__).with_name("sentences.txt")


def listed() -> str:
    """Every workload with every metric, better and worse."""
    lines = []
    for workload in LOADS:
        for metric in (name for name in METRICS if not is_own(name)):
            gain = METRICS[metric].higher_is_better
            for better in (True, False):
                ratio = 1.05 if better is gain else 0.95
                lines.append(f"{workload}: {phrases.does(metric, [workload], [ratio], better, False)}")
    return "\n".join(dict.fromkeys(lines)) + "\n"


def test_every_sentence_of_every_workload_is_the_one_that_was_read() -> None:
    """To change one on purpose: write `listed()` to the file, and read the difference."""
    assert listed() == SENTENCES.read_text()


def test_every_workload_of_a_study_has_its_words() -> None:
    assert set(WORKLOADS) == set(LOADS)
    for load in LOADS.values():
        assert set(load.judged) <= set(METRICS)


@pytest.mark.parametrize(
    ("workload", "given", "expected"),
    [
        ("stream", {"pattern": "one-to-one"}, False), ("stream", {}, False), ("stream", {"pattern": "many-to-one"}, True),
        ("stream", {"senders": {"h1": 1, "h2": 3}}, True), ("incast", {}, True), ("shuffle", {}, True),
        ("rr", {"pattern": "many-to-one"}, False), ("own-program", {}, False),
    ],
)  # fmt: skip
def test_who_waits_for_the_last(workload: str, given: dict[str, Any], expected: bool) -> None:
    assert waits_for_all(workload, given) is expected


def test_several_hundred_per_cent_are_a_factor_whether_better_or_worse() -> None:
    assert phrases.does("completion_time", ["stream"], [8.8], False, True, of_the_last=True) == (
        "multiply the time until all bulk transfers have ended by 8.8"
    )
    assert phrases.does("goodput", ["nfs"], [3.0, 6.1], True, False) == "multiplies the goodput of NFS by 3 to 6.1"
    assert phrases.does("goodput", ["nfs"], [135.2, 1045.0], True, False).endswith(" by 140 to 1,000")
    assert phrases.does("goodput", ["nfs"], [2.4, 6.1], True, False) == "raises the goodput of NFS by 140 % to 510 %"
