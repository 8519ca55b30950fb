"""Results folders that somebody edited: whatever is in them, a command ends with one of its exit codes and one line."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.damage import damaged
from helpers.sealing import seal
from helpers.support import ROOT, by_length
from hypothesis import HealthCheck, given, settings, strategies as st

from framegauge.cli import main as cli
from framegauge.files import tables
from framegauge.results import spools

STUDY = """\
question: Does it survive?
testbed: {kind: fake, topology: rack, hosts: 5}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - stream: {size: 10 MB, pattern: many-to-one}
  - rr: {}
blocks: 2
"""
OLD = sorted(path for path in (ROOT / "python/tests/documents").glob("results-*") if path.is_dir())
# JSON values that are more often near the truth than random ones.
NEAR: list[Any] = [
    None, True, 0, -1, 1, 2, 1.5, -0.5, 1e300, 10**18, 10**30, float("nan"), float("inf"), "", "x", "1", "\ud800", "a\nb", [],
    {}, [None], {"": None}, [[]], "1500", "mtu", {"h1": 9000}, {"kind": "red"}, {"kind": "x", "y": {}},
]  # fmt: skip


def quiet(*words: str) -> tuple[int, str]:
    """The exit code of a command, and its standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
        try:
            code = cli.main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, errors.getvalue()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder of today with the records of its runs, and those of older versions."""
    place = tmp_path_factory.mktemp("whole")
    (place / "study.yaml").write_text(STUDY)
    assert quiet("study", str(place / "study.yaml"), "--out", str(place / "out"), "--seed", "1")[0] in (0, 3)
    return [place / "out", *OLD]


@st.composite
def near(draw: st.DrawFn, found: Any) -> Any:
    """A JSON value with one value anywhere in it replaced by another, also one from elsewhere in it, or taken away."""
    found = place = json.loads(json.dumps(found))
    while True:
        key = draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
        if isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 9)):
            place = place[key]
            continue
        if draw(st.integers(0, 3)):
            place[key] = draw(st.sampled_from(NEAR))
        else:
            del place[key]
        return found


def _edited(draw: Callable[..., Any], path: Path) -> bytes:
    """The content of a file after an edit that fits its kind."""
    data = path.read_bytes()
    if draw(st.integers(0, 9)) == 0 or path.suffix not in (".json", ".jsonl"):  # bytes cut off, or others
        at = draw(st.integers(0, len(data)))
        return (
            data[:at]
            + draw(st.binary(max_size=4))
            + (data[at + draw(st.integers(0, 4)) :] if draw(st.booleans()) else b"")
        )
    if path.suffix == ".json":
        return json.dumps(draw(near(json.loads(data)) | damaged(json.loads(data)))).encode()
    lines = data.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    match draw(st.integers(0, 5)):
        case 0:
            lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
        case 1:
            del lines[at]
        case 2:
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
        case _:
            lines[at] = json.dumps(draw(near(json.loads(lines[at])) | damaged(json.loads(lines[at])))).encode()
    return b"\n".join(lines) + b"\n" * draw(st.integers(0, 1))


def _plan(**change: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        found = {**json.loads((folder / "results.json").read_text()), **change}
        kept = {key: value for key, value in found.items() if value is not ...}
        (folder / "results.json").write_text(json.dumps(kept))

    return edit


def _run(**change: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        first, *rest = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
        (folder / "runs.jsonl").write_text(json.dumps({**json.loads(first), **change}) + "\n" + "".join(rest))

    return edit


def _twice(folder: Path) -> None:
    text = (folder / "runs.jsonl").read_text()
    (folder / "runs.jsonl").write_text(text + text)


def _record(**change: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "runs/1/record.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_plan(margins=None), "results.json: margins: found null, expected an object"),
        (_plan(margins={"goodput": "1 %"}), 'results.json: margins.goodput: found "1 %", expected a number'),
        (_plan(margins={"speed": 0.1}), 'results.json: margins.speed.[key]: found "speed", expected one of goodput, '),
        (_plan(treatment=...), "results.json: treatment: found nothing, expected this key"),
        (_plan(stop="settled", planned_blocks=...), "results.json: planned_blocks: found nothing, expected the number"),
        (_plan(extended_from=[9]), "results.json: extended_from: found [9, 2], expected each extension to add blocks"),
        (_plan(trial={}), "results.json: trial.asked_bits_per_second: found nothing, expected this key"),
        (_run(metrics=None), "runs.jsonl:1: metrics: found null, expected an object"),
        (_run(metrics={"goodput": "fast"}), 'runs.jsonl:1: metrics.goodput: found "fast", expected a number'),
        (_run(metrics={"goodput": float("nan")}), "runs.jsonl:1: found no JSON, expected one JSON object per line"),
        (_run(block=-1), "runs.jsonl:1: block: found -1, expected greater than or equal to 0"),
        (_run(excluded="no"), 'runs.jsonl:1: excluded: found "no", expected a list'),
        (_run(conditions={"rtt_seconds": "long"}), "expected a condition that a run can have as rtt_seconds"),
        (_run(level=[9000]), "runs.jsonl: run 1: level: found [9000], expected a level of \"mtu\""),
        (_run(readings={"steady": 5}), "runs.jsonl:1: readings.steady: found 5, expected an object"),
        (_run(arm="\ud800"), "runs.jsonl:1: found no JSON"),
        (_twice, "runs.jsonl: run 1: found twice, expected once"),
        (_record(workload=[]), "runs/1/record.json: workload: found [], expected an object"),
        (
            _record(before={"h1": {"mtu": 1500, "nics": [1.5]}}),
            "record.json: before.h1.nics.0: found 1.5, expected an object",
        ),
        (
            _record(measure={"cpus": [{"user_seconds": []}]}),
            "record.json: measure.cpus.0.user_seconds: found [], expected a number",
        ),
        (
            _record(measure={"fabric": {"ports": [{"port": "a>b", "marked_frames": [1]}]}}),
            "record.json: measure.fabric.ports.0.marked_frames: found [1], expected a whole number",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_folder_is_said_in_one_line(
    folders: list[Path], tmp_path: Path, edit: Callable[[Path], None], said: str
) -> None:
    folder = shutil.copytree(folders[0], tmp_path / "edited")
    edit(folder)
    code, line = quiet("report", str(folder))
    assert (code, line.count("\n")) == (2, 1)
    assert line.startswith(f"framegauge: {folder}/")
    assert said in line


@pytest.mark.thorough
@pytest.mark.soak(15)
@settings(max_examples=by_length(12, 6000), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_edited_folder_ends_in_order(folders: list[Path], data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(folders))
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(whole, Path(place) / "edited")
        names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        often = [name for name in ("results.json", "runs.jsonl", "runs/1/record.json") if name in names]
        name = data.draw(st.sampled_from(often) | st.sampled_from(names))
        (folder / name).write_bytes(_edited(data.draw, folder / name))
        commands: list[list[str]] = [
            ["report", str(folder)],
            ["report", str(folder), "--html", str(folder / "x.html"), "--markdown", str(folder / "x.md")],
            ["compare", str(OLD[0]), str(folder)],
            ["compare", str(folder), str(OLD[0])],
            ["plan", "--preset", "demo", "--pilot", str(folder)],
            ["study", "--resume", "--out", str(folder), "--dry-run"],
            ["study", "--resume", "--blocks", "1", "--out", str(folder), "--dry-run"],
        ]
        if name != "study.yaml":  # which may ask for a million blocks
            commands.append(["study", "--resume", "--out", str(folder)])
        words = data.draw(st.sampled_from(commands))
        code, said = quiet(*words)
        assert code in (0, 1, 2, 3), said
        assert "Traceback" not in said
        if code == 2:
            lines = [line for line in said.splitlines() if not line.startswith("written: ")]
            assert len(lines) == 1 or "study.yaml" in said, said


@pytest.mark.parametrize(
    "edit",
    [
        _record(counters_after={"h1": {"nstat": {}}}),
        _record(workload={"runs": [{"client": "h1", "server": "h2"}]}),
        _record(workload={"runs": [{"transfers": "x"}]}),
    ],
)
def test_a_record_that_lacks_something_has_a_page(
    folders: list[Path], tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(folders[0], tmp_path / "edited")
    edit(folder)
    code, said = quiet("report", str(seal(folder)), "--html", str(tmp_path / "x.html"))
    assert code in (0, 3), said


@pytest.mark.parametrize("times", [[0.0, float("nan"), 1.0], [0.0, 1e300, 1.0], [float("-inf"), 0.5, 1.0]])
@pytest.mark.parametrize("flows", [[0, 1, 10**12], [0, -1, 2]])
def test_a_table_of_what_cannot_be_is_none(tmp_path: Path, times: list[float], flows: list[int]) -> None:
    """A chart is as long as its times, and an array as its flows: terabytes."""
    for name, values in (("end_seconds", times), ("flow", flows)):
        others = {"end_seconds": [0.1, 0.2, 0.3], "flow": [0, 1, 2]}
        (tmp_path / "transfers.arrow").write_bytes(tables.written(pa.table(others)))
        assert spools.table(tmp_path / "transfers.arrow") is not None
        (tmp_path / "transfers.arrow").write_bytes(tables.written(pa.table({**others, name: values})))
        assert spools.table(tmp_path / "transfers.arrow") is None


def test_a_run_taken_out_of_the_journal_is_made_again_under_a_number_of_its_own(
    folders: list[Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders[0], tmp_path / "edited")
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join([*lines[:3], *lines[4:]]))
    seal(folder)
    assert quiet("study", "--resume", "--out", str(folder))[0] == 0
    numbers = [json.loads(line)["number"] for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert sorted(numbers) == [1, 2, 3, *range(5, len(lines) + 2)]
