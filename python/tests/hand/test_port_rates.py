"""What ports did between two looks, with figures worked out by hand, and the table that fits wherever it is shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from framegauge.rack import port_rates

COUNTS = (
    "received_frames",
    "received_bytes",
    "sent_frames",
    "sent_bytes",
    "dropped_frames",
    "dropped_bytes",
    "giant_frames",
    "marked_frames",
    "lost_frames",
    "lost_bytes",
    "queued_frames",
    "queued_bytes",
    "peak_queue_bytes",
)


def port(name: str, **counts: float) -> dict[str, Any]:
    return {"port": name, **dict.fromkeys(COUNTS, 0), "busy_seconds": 0.0, "occupied_seconds": 0.0, **counts}


def look(time_seconds: float, *ports: dict[str, Any]) -> dict[str, Any]:
    return {"time_seconds": time_seconds, "ports": list(ports)}


# 1 Gb/s for two seconds: 100,000 frames of 1518 bytes are 1538 on the wire each, 12.304 us; so it was busy for
# 1.2304 of the 2 s, 61.52 %; 100,000 x 1518 x 8 / 2 = 607.2 Mb/s left. 30 of 1,030 were dropped in 2 s: 15 a second.
BEFORE = look(
    10.0,
    port("h1>switch"),
    port("switch>h1", sent_frames=7, sent_bytes=7 * 1518, dropped_frames=1000, busy_seconds=7 * 12.304e-6),
    port("switch>h2", dropped_frames=5),
)
AFTER = look(
    12.0,
    port("h1>switch", peak_queue_bytes=64, received_frames=1, sent_frames=1, sent_bytes=64, busy_seconds=0.672e-6),
    port(
        "switch>h1",
        sent_frames=100_007,
        sent_bytes=100_007 * 1518,
        busy_seconds=100_007 * 12.304e-6,
        dropped_frames=1030,
        queued_bytes=3036,
        peak_queue_bytes=65_274,
    ),
    port("switch>h2", dropped_frames=5),
)


def test_rates_are_what_counters_grew_by() -> None:
    found = port_rates.between(BEFORE, AFTER)
    assert (found["time_seconds"], found["elapsed_seconds"]) == (12.0, 2.0)
    first, second, third = found["ports"]
    assert [first["port"], second["port"], third["port"]] == ["switch>h1", "h1>switch", "switch>h2"]
    assert first["bits_per_second"] == pytest.approx(607.2e6)
    assert first["busy_share"] == pytest.approx(0.6152)
    assert first["dropped_frames_per_second"] == 15
    assert first["dropped_frames"] == 1030
    assert [each["idle"] for each in found["ports"]] == [False, False, True]


def test_the_table() -> None:
    assert port_rates.table(port_rates.between(BEFORE, AFTER)) == [
        "up 12.0 s, rates over 2.00 s",
        "port        Mb/s  busy    queue     peak  drops/s  drops",
        "switch>h1  607.2   62%  3.04 kB  65.3 kB       15   1030",
        "h1>switch    0.0    0%      0 B     64 B        0      0",
        "1 port idle",
    ]


def test_marks_and_losses_are_shown_where_there_are_any() -> None:
    before = look(0.0, port("a>b"), port("b>a"))
    after = look(4.0, port("a>b", sent_frames=9, marked_frames=2, lost_frames=3), port("b>a"))
    title, line = port_rates.table(port_rates.between(before, after))[1:3]
    assert title.split() == ["port", "Mb/s", "busy", "queue", "peak", "drops/s", "drops", "marks/s", "marks", "lost"]
    assert line.split() == ["a>b", "0.0", "0%", "0", "B", "0", "B", "0", "0", "0.5", "2", "3"]


@pytest.mark.parametrize(
    "happened",
    [{key: 1} for key in ("received_frames", "sent_frames", "dropped_frames", "marked_frames", "lost_frames")]
    + [{"queued_bytes": 1}, {"peak_queue_bytes": 1}],
    ids=str,
)
def test_a_port_with_anything_to_tell_is_not_idle(happened: dict[str, int]) -> None:
    found = port_rates.between(look(0.0, port("a>b"), port("b>a")), look(1.0, port("a>b", **happened), port("b>a")))
    assert [(each["port"], each["idle"]) for each in found["ports"] if not each["idle"]] == [("a>b", False)]


def test_two_looks_at_the_same_moment_have_no_rates() -> None:
    found = port_rates.between(BEFORE, {**AFTER, "time_seconds": 10.0})
    assert {each["bits_per_second"] for each in found["ports"]} == {0.0}


def fleet(number: int, idle: int) -> dict[str, Any]:
    """So many busy ports with long names, the later the busier, and so many idle ones."""
    busy = [
        port(f"aggregation{each}-1>edge{each}-1", sent_frames=each + 1, sent_bytes=10**7 * each, marked_frames=each)
        for each in range(number)
    ]
    quiet = [port(f"h{each}>switch") for each in range(idle)]
    before = look(0.0, *(port(each["port"]) for each in [*busy, *quiet]))
    return port_rates.between(before, look(1.0, *busy, *quiet))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 200), st.integers(1, 60))
def test_it_fits_and_counts_every_port(number: int, idle: int, columns: int, lines: int) -> None:
    shown = port_rates.table(fleet(number, idle), columns, lines)
    assert 1 <= len(shown) <= lines
    assert max(map(len, shown)) <= columns
    if columns >= 40 and lines >= 4:
        rows = [line for line in shown if line.startswith("aggregation")]
        counted = [int(word) for word in shown[-1].replace(",", "").split() if word.isdigit()] if number + idle else []
        told = sum(counted) if shown[-1].endswith(("idle", "more ports", "more port")) else 0
        assert len(rows) + told == number + idle
        assert len(rows) == min(number, lines - 3)


def test_a_narrow_terminal_has_what_matters_most() -> None:
    found = port_rates.between(BEFORE, AFTER)
    titles = {columns: port_rates.table(found, columns)[1].split() for columns in (56, 55, 40, 30, 20)}
    assert titles == {
        56: ["port", "Mb/s", "busy", "queue", "peak", "drops/s", "drops"],
        55: ["port", "Mb/s", "busy", "queue", "peak", "drops"],  # 9 less
        40: ["port", "Mb/s", "busy", "peak", "drops"],  # 56 - 9 - 9 = 38
        30: ["port", "Mb/s", "drops"],  # 38 - 6 - 9 = 23
        20: ["port", "Mb/s"],
    }
