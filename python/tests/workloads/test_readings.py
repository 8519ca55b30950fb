"""Numbers in the output of programs: as they print them, and nothing that could be meant differently."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from framegauge.errors import ProgramFailure
from framegauge.workloads.readings import Reading, of_clients, value

WHERE = "output on h1"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("took ([0-9.]+) s", "took 1.25 s\n", 1.25),
        ("[0-9]+$", "answers: 42\n", 42),
        ("rate: (.*)/s", "rate: 1,234,567.5/s", 1234567.5),
        ("x=(.*)$", "a\nx= -1.5e-3 \nb", -0.0015),
        ('"GET","([0-9.]+)"', '"test","rps"\n"GET","64516.13"\n', 64516.13),
    ],
)
def test_a_number_is_found_by_its_pattern(pattern: str, text: str, expected: float) -> None:
    assert value("m", Reading(output=pattern), text, WHERE) == expected


@pytest.mark.parametrize(
    ("path", "document", "expected"),
    [
        ("end.rate", {"end": {"rate": 5}}, 5),
        ("runs[0].p99", {"runs": [{"p99": 0.25}]}, 0.25),
        ("max(runs[].p99)", {"runs": [{"p99": 1}, {"p99": 3}]}, 3),
        ("rate", {"rate": "1,000.5"}, 1000.5),
    ],
)
def test_a_number_is_found_by_its_path(path: str, document: object, expected: float) -> None:
    assert value("m", Reading(json=path), json.dumps(document), WHERE) == expected


@pytest.mark.parametrize(
    ("reading", "text", "expected"),
    [
        (Reading(output="a([0-9])"), "", "found nothing that matches 'a([0-9])', expected one; it printed nothing"),
        (Reading(output="a([0-9])"), "b1\n\nb2\n", "expected one; its last lines: b1 | b2"),
        (Reading(output="a([0-9])"), "a1 a2", "found 2 matches of 'a([0-9])' ('1', '2'), expected one"),
        (Reading(output="a(.)"), "ax", "'a(.)' found 'x', expected a number"),
        (Reading(output="a(1)?"), "a", "'a(1)?' found 'None', expected a number"),
        (Reading(output="a(.*)"), "a1 2", "'a(.*)' found '1 2', expected a number"),
        (Reading(output="a(.*)"), "a1,5", "found '1,5', expected a number"),
        (Reading(json="x"), "no json", "found no JSON ("),
        (Reading(json="x"), '{"y": 1}', "found nothing at 'x', expected a number; its last lines: {"),
        (Reading(json="x"), '{"x": true}', "found true at 'x', expected a number"),
        (Reading(json="x"), '{"x": [1]}', "found [1] at 'x', expected a number"),
        (Reading(json="x"), '{"x": 1e999}', "found inf, expected a number"),
        (Reading(json="length(x)"), '{"x": 1}', "'length(x)' fails (In function length(), "),
    ],
)
def test_what_is_no_number_is_told_with_the_last_lines(reading: Reading, text: str, expected: str) -> None:
    with pytest.raises(ProgramFailure) as error:
        value("gets", reading, text, WHERE)
    assert str(error.value).startswith("metric gets: output on h1: ")
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_values_of_clients_are_put_together_in_the_base_unit() -> None:
    values = [1.0, 3.0]
    for how, expected in (("sum", 4e-3), ("mean", 2e-3), ("max", 3e-3), ("min", 1e-3)):
        assert of_clients(Reading(factor=1e-3, over_clients=how), values) == pytest.approx(expected)


def one_line(reading: Reading, text: str) -> bool:
    """Whether it is a number, or an error of one line."""
    try:
        value("m", reading, text, WHERE)
    except ProgramFailure as error:
        return len(str(error).splitlines()) == 1
    return True


@given(st.text(), st.sampled_from([Reading(output="([0-9]+)"), Reading(json="a.b")]))
def test_any_output_is_a_number_or_one_line(text: str, reading: Reading) -> None:
    assert one_line(reading, text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_as_python_prints_them(number: float) -> None:
    assert value("m", Reading(output="^v=(.*)$"), f"v={number!r}\n", WHERE) == number
    assert value("m", Reading(json="v"), json.dumps({"v": number}), WHERE) == number
