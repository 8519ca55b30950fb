"""runs.parquet and runs.csv: the lines that docs/reference/results.md shows, and what the columns are."""

from __future__ import annotations

import re
import statistics
from dataclasses import replace

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from helpers.contended import arrow
from helpers.support import PLAN, ROOT, STUDY

from framegauge.cli import main as cli
from framegauge.results import journal as results, spools, tables
from framegauge.results.journal import Journal, Run

TEXT = (ROOT / "docs/reference/results.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)\n```$", TEXT, re.DOTALL | re.MULTILINE)
LINES = [block for block in BLOCKS if "results/pair" in block]  # the others read what only a simulation leaves
READERS = {"duckdb": duckdb, "pandas": pandas, "polars": polars}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """results/pair, with an excluded run whose goodput is far off."""
    place = tmp_path_factory.mktemp("tables")
    (place / "study.yaml").write_text(STUDY)
    assert cli.main(["study", str(place / "study.yaml"), "--out", str(place / "results/pair")]) == 0
    with Journal.resume(place / "results/pair") as journal:
        last = journal.runs[-1]
        metrics = {"goodput": 1.0}
        journal.add(replace(last, number=last.number + 1, metrics=metrics, excluded=["proof: a; b", "c"]), {}, {})
        tables.write_tables(journal)
    return place


def test_there_is_a_line_for_each_reader():
    assert sorted(line.split(".")[0] for line in LINES) == sorted(READERS)
    assert all("\n" not in line for line in LINES)


def by_level(found):
    """Of whatever a reader returns."""
    if isinstance(found, pandas.Series):
        return found.to_dict()
    return dict(found.rows() if isinstance(found, polars.DataFrame) else found.fetchall())


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split(".")[0])
def test_the_lines_of_the_document_say_what_the_journal_says(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = [run for run in results.read("results/pair").runs if not run.excluded]
    truth = {
        level: statistics.median(run.metrics["goodput"] for run in runs if run.level == level) for level in (1500, 9000)
    }
    assert by_level(eval(line, dict(READERS))) == pytest.approx(truth)


def test_every_column_is_in_the_document(folder):
    listed = set(re.findall(r"`([a-z.*]+)`", "".join(re.findall(r"^\| (`[^|]+)\|", TEXT, re.MULTILINE))))
    columns = pyarrow.parquet.read_schema(folder / "results/pair/runs.parquet").names
    assert {name.split(".")[0] + ".*" if "." in name else name for name in columns} <= listed


def test_types_of_the_columns(folder):
    schema = pyarrow.parquet.read_schema(folder / "results/pair/runs.parquet")
    types = {name: schema.field(name).type for name in schema.names}
    texts = pa.list_(pa.string())
    assert {name: types[name] for name in ("number", "level", "arm", "excluded", "degraded", "began", "seconds")} == {
        "number": pa.int64(), "level": pa.int64(), "arm": pa.string(), "excluded": texts, "degraded": texts,
        "began": pa.timestamp("ms", "UTC"), "seconds": pa.float64(),
    }  # fmt: skip
    assert {types[name] for name in types if name.startswith("metrics.")} == {pa.float64()}
    assert pa.types.is_boolean(types["conditions.reverse"])
    assert pa.null() not in types.values()
    # All of a kind stand together, in the order of the journal.
    kinds = [name.split(".")[0] for name in schema.names]
    assert [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]] == [
        name for name in Run.__dataclass_fields__ if name in kinds
    ]


def test_lists_and_times_in_csv(folder):
    table = pyarrow.csv.read_csv(folder / "results/pair/runs.csv")
    parquet = pyarrow.parquet.read_table(folder / "results/pair/runs.parquet")
    assert table.column_names == parquet.column_names
    assert table.column("excluded").to_pylist()[-1] == "proof: a; b; c"
    assert parquet.column("excluded").to_pylist()[-1] == ["proof: a; b", "c"]
    assert table.column("metrics.goodput").to_pylist() == parquet.column("metrics.goodput").to_pylist()


def test_a_journal_without_times_and_with_odd_levels(tmp_path):
    run = Run(1, 0, 0, "9000", "treatment", 9000, 0, "stream", {"x": None}, {"goodput": 1}, [])
    odd = replace(run, number=2, level="h1=9000,h2=1500", metrics={}, conditions={"x": None, "y": 2**70})
    with Journal.create(tmp_path / "out", "", PLAN) as journal:
        journal.add(run, {}, {})
        journal.add(odd, {}, {})
        tables.write_tables(journal)
    table = pyarrow.parquet.read_table(tmp_path / "out/runs.parquet")
    assert table.column("began").to_pylist() == [None, None]
    assert table.column("level").to_pylist() == ["9000", "h1=9000,h2=1500"]
    assert table.column("metrics.goodput").to_pylist() == [1.0, None]
    assert table.column("conditions.y").to_pylist() == [None, str(2**70)]


# By reader: rows, frames that h1>s1 lost, and the queue at the last of them.
DROPS = {
    "pandas": lambda path: tuple(
        pandas.read_parquet(path).pipe(lambda t: (len(t), (t.input_port == "h1>s1").sum(), t.queue_bytes.iloc[-1]))
    ),
    "polars": lambda path: (
        polars.read_parquet(path)
        .select(
            polars.len(), (polars.col("input_port") == "h1>s1").sum().alias("lost"), polars.col("queue_bytes").last()
        )
        .row(0)
    ),
    "duckdb": lambda path: duckdb.sql(
        f"select count(*), count(*) filter (where input_port = 'h1>s1'), arg_max(queue_bytes, time_seconds) from '{path}'"
    ).fetchall()[0],
}


@pytest.mark.parametrize("reader", DROPS)
@pytest.mark.parametrize("name", results.EVIDENCE)
def test_what_the_network_did_is_a_parquet_file_that_others_read(name, reader, tmp_path):
    run = Run(1, 0, 0, "9000", "treatment", 9000, 0, "stream", {}, {"goodput": 1}, [])
    table = pa.table(
        {
            "time_seconds": [0.1, 0.2, 0.3], "input_port": ["h1>s1", "h2>s1", "h1>s1"],
            "queue_bytes": pa.array([2**40, 0, 7], pa.uint64()), "run_length": pa.array([1, 1, 2], pa.uint32()),
        }
    )  # fmt: skip
    with Journal.create(tmp_path / "out", "", PLAN) as journal:
        journal.add(run, {}, {name: arrow({each: table[each] for each in table.column_names}), "samples": b"x"})
    place = tmp_path / "out/runs/1"
    assert sorted(each.name for each in place.iterdir()) == sorted([f"{name}.parquet", "record.json", "samples.arrow"])
    found = pyarrow.parquet.ParquetFile(place / f"{name}.parquet")
    assert found.read() == table
    assert found.metadata.row_group(0).column(0).compression == "ZSTD"
    assert tuple(map(int, DROPS[reader](place / f"{name}.parquet"))) == (3, 2, 7)


def test_a_folder_of_before_is_read_from_its_arrow_files(tmp_path):
    (tmp_path / "drops.arrow").write_bytes(arrow({"port": ["a>b"]}))
    assert spools.table(tmp_path / "drops.parquet").to_pylist() == [{"port": "a>b"}]
    pyarrow.parquet.write_table(pa.table({"port": ["c>d"]}), tmp_path / "drops.parquet")
    assert spools.table(tmp_path / "drops.parquet").to_pylist() == [{"port": "c>d"}]
    whole = (tmp_path / "drops.parquet").read_bytes()
    for torn in (b"", whole[:-1], whole[: len(whole) // 2], b"PAR1" + bytes(100)):
        (tmp_path / "drops.parquet").write_bytes(torn)
        assert spools.table(tmp_path / "drops.parquet") is None
    assert spools.table(tmp_path / "none.parquet") is None


def test_a_spool_that_is_no_arrow_file_is_kept_as_it_came(tmp_path):
    run = Run(1, 0, 0, "9000", "treatment", 9000, 0, "stream", {}, {}, ["error: no Arrow file"])
    with Journal.create(tmp_path / "out", "", PLAN) as journal:
        journal.add(run, {}, {"drops": b"torn"})
    assert (tmp_path / "out/runs/1/drops.arrow").read_bytes() == b"torn"


def test_the_metrics_of_every_run_are_csv(folder, capfdbinary, tmp_path):
    pair = folder / "results/pair"
    runs = results.read(pair).runs
    written = tmp_path / "metrics.csv"
    assert cli.main(["report", str(pair), "--csv", str(written)]) == 0
    capfdbinary.readouterr()
    assert cli.main(["report", str(pair), "--csv", "-"]) == 0
    assert capfdbinary.readouterr().out == written.read_bytes()
    table = pandas.read_csv(written)
    assert list(table["number"]) == [run.number for run in runs]
    assert [round(value, 3) for value in table["metrics.goodput"]] == [round(run.metrics["goodput"], 3) for run in runs]
    assert list(table["level"]) == [run.level for run in runs]
    assert table["excluded"].iloc[-1] == "proof: a; b; c"
    assert {name.split(".")[0] for name in table.columns} == set(tables.METRICS)
    assert not any(name.startswith("readings") for name in table.columns)


def test_csv_and_another_document_do_not_share_standard_output(folder, capsys):
    assert cli.main(["report", str(folder / "results/pair"), "--csv", "-", "--json"]) == 2
    assert "--csv" in capsys.readouterr().err
