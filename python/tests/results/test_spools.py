"""Tables of a run: only the columns in question, and the same whether text is read as a dictionary or not."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from hypothesis import given, strategies as st

from framegauge.results import spools
from framegauge.summary import drop_runs

PORTS = st.sampled_from(["sw0:h1", "sw0:h2", "sw1:up"])
ROWS = st.lists(st.tuples(PORTS, PORTS, st.sampled_from(["dropped", "marked"]), st.sampled_from(["full", "loss"])))


def written(folder: Path, columns: Mapping[str, Sequence[object]]) -> Path:
    path = folder / "drops.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def test_only_the_wanted_columns_that_there_are_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, {"port": ["a", "b"], "run_length": [1, 2], "flow": [7, 8]})
    found = spools.table(path, {"port", "run_length", "missing"}, ("port", "absent"))
    assert found is not None
    assert found.to_pydict() == {"port": ["a", "b"], "run_length": [1, 2]}
    assert pa.types.is_dictionary(found.schema.field("port").type)
    whole = spools.table(path)
    assert whole is not None
    assert whole.column_names == ["port", "run_length", "flow"]
    assert whole.schema.field("port").type == pa.string()


def test_a_torn_file_is_no_table(tmp_path: Path) -> None:
    path = written(tmp_path, {"port": ["a"], "run_length": [1]})
    path.write_bytes(path.read_bytes()[:-5])
    assert spools.table(path, {"port"}, ("port",)) is None
    path.unlink()
    assert spools.table(path, {"port"}) is None


@given(ROWS)
def test_runs_of_drops_are_those_of_each_port_and_input_port(rows: list[tuple[str, str, str, str]]) -> None:
    """Each drop extends the one run of its two ports by one; marks and losses on a link extend none."""
    lengths: dict[tuple[str, str], int] = {}
    numbers = []
    for port, came_by, action, reason in rows:
        counts = action == "dropped" and reason != "loss"
        lengths[port, came_by] = lengths.get((port, came_by), 0) + counts
        numbers.append(lengths[port, came_by])
    with tempfile.TemporaryDirectory() as folder:
        names = ("port", "input_port", "action", "reason")
        columns: dict[str, Sequence[object]] = {
            name: [row[place] for row in rows] for place, name in enumerate(names)
        }  # fmt: skip
        path = written(Path(folder), {**columns, "run_length": numbers})
        found = drop_runs.read(path, {})
    assert {(each.port, each.input_port): list(each.lengths) for each in found} == {
        key: [length] for key, length in lengths.items() if length
    }
    assert [(each.port, each.input_port) for each in found] == sorted(key for key, length in lengths.items() if length)
