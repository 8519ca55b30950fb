"""What flows carried over time, of samples whose rates are known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from framegauge.record import FEW_WINDOW_SECONDS
from framegauge.workloads.few_over_time import over_time

GROUPS = [{"name": "few", "senders": ["h2"], "flows": 1}, {"name": "many", "senders": ["h1"], "flows": 2}]


def run(client: str, begun: float) -> dict[str, Any]:
    return {"client": client, "transfers": f"transfers-{client}-h3", "result": {"started_seconds": begun}}


def sampled(rows: list[tuple[float, int, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(("time_seconds", "round", "flow", "bytes_acked"), columns, strict=True)))


def moved(rows: list[tuple[int, int, float]]) -> pa.Table:
    return pa.table(dict(zip(("round", "flow", "start_seconds"), zip(*rows, strict=True), strict=True)))


def test_rates_are_those_of_the_samples_on_one_clock() -> None:
    """h1 begins at 10 s with flows of 8 and 16 kb/s; h2 0.2 s later with one of 80 kb/s in two rounds."""
    record = {"sharing": {"groups": GROUPS}, "runs": [run("h1", 10.0), run("h2", 10.2)]}
    tables = {
        "transfers-h1-h3": moved([(0, 0, 0.0), (0, 1, 0.0)]),
        "samples-h1-h3": sampled([(0.3, 0, 0, 300), (0.3, 0, 1, 600), (0.6, 0, 0, 600), (0.6, 0, 1, 1200)]),
        "transfers-h2-h3": moved([(0, 0, 0.0), (1, 0, 0.2)]),
        "samples-h2-h3": sampled([(0.2, 0, 0, 2000), (0.4, 1, 0, 2000)]),
    }
    found = over_time(record, tables)
    assert found is not None
    rows = found.to_pylist()
    rates = {(each["sender"], each["flow"]): [] for each in rows}
    for each in rows:
        rates[each["sender"], each["flow"]].append(each["goodput_bits_per_second"])
    assert rates == {
        ("h1", 0): pytest.approx([8000] * 3), ("h1", 1): pytest.approx([16000] * 3),
        ("h2", 0): pytest.approx([0, 80000, 80000]),
    }  # fmt: skip
    assert {each["sender"]: each["group"] for each in rows} == {"h1": "many", "h2": "few"}
    assert [each["begin_seconds"] for each in rows[:3]] == pytest.approx([0.0, 0.2, 0.4])


@given(st.lists(st.integers(0, 10**6), min_size=20, max_size=60))
def test_no_byte_is_lost_or_counted_twice(amounts: list[int]) -> None:
    """Of samples every 20 ms, the windows together hold what was acknowledged by the end of the last window."""
    total, rows = 0, []
    for number, amount in enumerate(amounts, 1):
        total += amount
        rows.append((0.02 * number, 0, 0, total))
    record = {"sharing": {"groups": GROUPS}, "runs": [run("h2", 0.0)]}
    found = over_time(record, {"transfers-h2-h3": moved([(0, 0, 0.0)]), "samples-h2-h3": sampled(rows)})
    assert found is not None
    windows = int(len(amounts) * 0.02 / FEW_WINDOW_SECONDS + 1e-6)
    assert found.num_rows == windows
    carried = sum(found["goodput_bits_per_second"].to_pylist()) * FEW_WINDOW_SECONDS / 8
    assert carried == pytest.approx(sum(amounts[: windows * 10]), abs=1e-3)


def test_without_groups_or_samples_there_is_none() -> None:
    record: dict[str, Any] = {"sharing": {"groups": GROUPS}, "runs": [run("h2", 0.0)]}
    assert over_time({"runs": record["runs"]}, {}) is None
    assert over_time(record, {"transfers-h2-h3": moved([(0, 0, 0.0)])}) is None
    brief = {"transfers-h2-h3": moved([(0, 0, 0.0)]), "samples-h2-h3": sampled([(0.1, 0, 0, 5)])}
    assert over_time(record, brief) is None  # shorter than a window
