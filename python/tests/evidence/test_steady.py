"""The steady part of a run: a start-up is left out at any duration, and is never taken for bulk goodput."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from framegauge.evidence import conservation, steady

RTT = 200e-6


def part_of(times, amounts, **columns):
    """The steady part of a run with one flow that was sampled so."""
    table = pa.table({"flow": np.zeros(len(times), int), "time_seconds": times, "bytes_acked": amounts, **columns})
    run = {"reverse": False, "transfers": "transfers", "result": {"started_seconds": 0.0}}
    return steady.of_streams({"transfer_bytes": None, "runs": [run]}, {"samples": table})


def amounts_of(rate, starts, times):
    """Nothing at first, then as many bytes per second as the rate has."""
    return np.maximum(0.0, times - starts) * rate / 8


@given(st.floats(1e-3, 10.0), st.floats(0.0, 0.4), st.integers(100, 3000))
def test_a_start_up_is_left_out_at_any_duration(seconds, share, samples):
    times = np.linspace(seconds / samples, seconds, samples)
    part = part_of(times, amounts_of(1e10, share * seconds, times))
    assert part.bits_per_second == pytest.approx(1e10, rel=0.02)
    assert part.begin_seconds >= (share - 6 / samples) * seconds
    assert steady.bulk({"goodput": 1.0}, part, RTT) == ({"goodput": part.bits_per_second}, {})


@pytest.mark.parametrize("seconds", [1e-3, 10e-3, 39e-3])
def test_a_rate_that_still_rises_is_no_bulk_figure(seconds):
    times = np.linspace(seconds / 400, seconds, 400)
    part = part_of(times, 1e4 * 2 ** (8 * times / seconds))
    kept, lacking = steady.bulk({"goodput": 1.0, "smallest_goodput": 1.0, "fairness": 1.0}, part, RTT)
    assert kept == {"fairness": 1.0}
    assert set(lacking) == {"goodput", "smallest_goodput"}
    assert lacking["goodput"].startswith("too short for a bulk figure: the rate still rose within ")
    assert lacking["goodput"].endswith(f"try a duration of {4000 * seconds:.3g} ms or more")


def test_a_long_run_with_a_stall_in_its_first_half_is_one():
    times = np.linspace(0.001, 1.0, 1000)
    # Sending stops for a timeout each time.
    amounts = np.cumsum(np.where((times % 0.5 < 0.2), 0.0, 1e9 / 8 * 0.001))
    metrics, lacking = steady.bulk({}, part_of(times, amounts), RTT)
    assert lacking == {}
    assert metrics["goodput"] > 0


@given(st.floats(0.01, 0.5), st.integers(1, 40), st.sampled_from([536, 1448, 8948]))
def test_what_waits_behind_holes_has_arrived(share, holes, size):
    """A link that is always full, and acknowledgements that stop at a hole for a part of the time."""
    times = np.linspace(0.001, 1.0, 1000)
    arrived = np.floor(times * 1e9 / 8 / size)
    period = 1.0 / holes
    acknowledged = np.floor(np.where(times % period < share * period, times - times % period, times) * 1e9 / 8 / size)
    behind = (arrived - acknowledged).astype(np.uint32)
    part = part_of(times, acknowledged * size, sacked_segments=behind, mss_bytes=np.full(len(times), size, np.uint32))
    assert part.bits_per_second == pytest.approx(1e9, rel=0.003)


@pytest.mark.parametrize(
    ("rate", "known", "line"),
    [
        (94.1e6, True, None),
        (98.9e6, True, "goodput of the steady part: at most the 94.14 Mb/s of the links, found 98.9 Mb/s"),
        (98.9e6, False, None),
    ],
)
def test_more_than_the_links_carry_is_what_came_too_late_before(rate, known, line):
    """As much as two receivers' links carry in all, but in less than half of the time that the run took."""
    ceilings = {name: {"goodput_bits_per_second": 47.07e6} for name in ("h1", "h2", "h3")}
    if not known:
        ceilings["h3"]["goodput_bits_per_second"] = None
    record = {
        "workload": {"senders": ["h1"], "received_bytes": {"h2": 1, "h3": 1}},
        "rack": {"ceilings": ceilings}, "measure": {"fabric": {}},
    }  # fmt: skip
    conditions = SimpleNamespace(changes=(), bits_per_second=50_000_000)
    part = steady.Steady(0.5, 0.9, 1.0, rate, 1.0)
    assert list(conservation.caught_up(conditions, record, part)) == ([] if line is None else [line])


def test_without_enough_samples_nothing_is_trimmed():
    times = np.linspace(0.01, 0.1, 10)
    assert part_of(times, times * 1e9) is None
    assert steady.bulk({"goodput": 5.0}, None, RTT) == ({"goodput": 5.0}, {})
