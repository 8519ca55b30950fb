"""Recordings in CSV files: what is read of them, one line per fault, and nothing but that of any bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from framegauge.errors import StudyError
from framegauge.files.recordings import Recorded, Recording, parse_csv, read, to_csv

HEAD = "client,server,start_seconds,bytes"
FULL = "id,client,server,start_seconds,bytes,reverse_bytes,end_seconds,after"


def parsed(text: str) -> Recording:
    return parse_csv(text.encode(), "f.csv")


def test_columns_come_in_any_order_and_times_count_from_the_first() -> None:
    text = (
        "after,id,bytes,server,client,start_seconds,reverse_bytes,end_seconds\n"
        ",a,1,db,web,10.5,,\n"
        "a,b,0,web,db,10,7,12\n"
        "\n"
        "b a a,c,3,x y,db,11,0,11.5\n"
    )
    assert parsed(text).flows == (
        Recorded("web", "db", 0.5, 1),
        Recorded("db", "web", 0.0, 0, 7, 2.0, (0,)),
        Recorded("db", "x y", 1.0, 3, 0, 1.5, (1, 0)),
    )
    assert parsed(text).names == ["web", "db", "x y"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.csv:1: found no column client, expected client, server, start_seconds, bytes"),
        ("client,server,bytes\n", "f.csv:1: found no column start_seconds, expected"),
        (f"{HEAD},size\n", 'f.csv:1: found column "size", expected client,'),
        (f"{HEAD},bytes\n", "f.csv:1: found column bytes twice, expected once"),
        (f"{HEAD},after\n", "f.csv:1: found column after without id, expected both"),
        (f"{HEAD}\n", "f.csv: found no flows, expected at least one"),
        (f"{HEAD}\na,b,0\n", "f.csv:2: found 3 values, expected 4"),
        (f"{HEAD}\na,b,0,1\na,b,0,-1\n", 'f.csv:3: bytes: found "-1", expected a whole number from 0'),
        (f"{HEAD}\na,b,0,1.5\n", 'bytes: found "1.5", expected a whole number from 0'),
        (f"{HEAD}\na,b,0,{1 << 51}\n", f'bytes: found "{1 << 51}", expected a whole number from 0'),
        (f"{HEAD}\na,b,0,0\n", "bytes: found 0, expected more than 0 in one direction"),
        (f"{HEAD}\na,b,nan,1\n", 'start_seconds: found "nan", expected seconds from 0'),
        (f"{HEAD}\na,b,-1,1\n", 'start_seconds: found "-1", expected seconds from 0'),
        (f"{HEAD}\na,a,0,1\n", 'server: found "a", the client, expected another host'),
        (f"{HEAD}\n,b,0,1\n", "client: found nothing, expected the name of a host"),
        (f"{FULL}\n1,a,b,2,1,0,2,\n", "end_seconds: found 2, expected a time after the start"),
        (f"{FULL}\n1,a,b,0,1,0,,1\n", 'f.csv:2: after: found "1", expected the id of a flow above'),
        (f"{FULL}\n1,a,b,0,1,0,,\n1,a,b,0,1,0,,\n", 'f.csv:3: id: found "1" twice, expected another'),
        (
            f"{HEAD},connection\na,b,0,1,x\nb,a,1,1,x\n",
            'f.csv:3: connection: found "x" with other ends, expected "a" and "b" as before',
        ),
        (f'{HEAD}\n"a"b,c,0,1\n', "f.csv:2: found no CSV ("),
    ],
)
def test_what_is_wrong_is_one_line(text: str, said: str) -> None:
    with pytest.raises(StudyError) as failed:
        parsed(text)
    assert len(failed.value.problems) == 1
    assert said in failed.value.problems[0]


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"found no readable file .*, expected a CSV file of flows"):
        read(tmp_path / "none.csv")
    with pytest.raises(StudyError, match=r"found no readable file .*, expected a CSV file of flows"):
        read(tmp_path)
    (tmp_path / "f.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="found invalid UTF-8 at byte 0, expected CSV"):
        read(tmp_path / "f.csv")


_BYTES = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"{FULL}\n{text}".encode("utf-8", "replace"))


@given(_BYTES)
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    try:
        found = parse_csv(data, "f.csv")
    except StudyError as error:
        (line,) = error.problems
        assert line.startswith("f.csv")
        assert "expected" in line
        assert "\n" not in line
    else:
        assert found.flows


# What a reader gives: names without white space around them, in one line.
_ENDS = st.text(max_size=8).map(lambda text: "".join(text.split())).filter(bool)
_SECONDS = st.floats(0, 1e9)


@st.composite
def _recordings(draw: st.DrawFn) -> Recording:
    flows: list[Recorded] = []
    known: dict[str, tuple[str, str]] = {}
    for place in range(draw(st.integers(1, 6))):
        ends = draw(st.tuples(_ENDS, _ENDS).filter(lambda ends: ends[0] != ends[1]))
        name = draw(st.just("") | _ENDS)
        client, server = known.setdefault(name, ends) if name else ends
        start = draw(_SECONDS) if place else 0.0
        took = draw(st.none() | _SECONDS)
        end = None if took is None or start + took <= start else start + took
        sizes = draw(st.tuples(st.integers(0, 1 << 50), st.integers(0, 1 << 50)).filter(any))
        after = draw(st.lists(st.integers(0, place - 1), unique=True)) if place else []
        flows.append(Recorded(client, server, start, *sizes, end, tuple(after), name))
    return Recording(tuple(flows))


@given(_recordings())
def test_writing_and_reading_a_recording_is_the_identity(recording: Recording) -> None:
    assert parsed(to_csv(recording.flows)) == recording
    assert parsed(to_csv(recording.flows)).sha256 == recording.sha256


@given(_recordings())
def test_what_any_file_says_is_written_as_it_was_read(recording: Recording) -> None:
    later = [replace(flow, start_seconds=flow.start_seconds + 7.3, end_seconds=None) for flow in recording.flows]
    found = parsed(to_csv(later))
    assert parsed(to_csv(found.flows)) == found


def test_a_recording_without_connections_keeps_its_digest() -> None:
    found = parsed(f"{HEAD}\na,b,1,1000\nb,a,2,2000\n")
    assert found.sha256 == "45769a80523fc983dac6caa171c0ad55d7167a9d0ba252f9d0c068c20a2d3935"
    assert parsed(f"{HEAD},connection\na,b,1,1000,\nb,a,2,2000,x\n").sha256 != found.sha256


_NAMES = st.sampled_from(["a", "b", "c"])
_FLOWS = st.lists(
    st.tuples(_NAMES, _NAMES, st.integers(0, 10**6), st.integers(0, 2**40), st.integers(0, 2**40)), min_size=1
).map(lambda rows: [row for row in rows if row[0] != row[1] and row[3] + row[4]])


@given(_FLOWS.filter(bool))
def test_what_is_written_is_read_again(rows: list[tuple[str, str, int, int, int]]) -> None:
    text = "".join(f"{one},{other},{start},{sent},{back}\n" for one, other, start, sent, back in rows)
    found = parsed(f"{HEAD},reverse_bytes\n{text}").flows
    first = min(row[2] for row in rows)
    assert [
        (each.client, each.server, each.start_seconds + first, each.bytes, each.reverse_bytes) for each in found
    ] == [tuple(row) for row in rows]
