"""Whatever was changed in a results folder after it was written is said, with its file and line."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.support import STUDY, by_length

from framegauge.cli import main as cli
from framegauge.results import journal as results
from framegauge.results.journal import Journal

Edit = Callable[[Path], None]
CHANGED_ON_PURPOSE = "(changed on purpose? framegauge report DIR --reseal)\n"


def said(*words: object) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed."""
    out, err = io.BytesIO(), io.StringIO()
    text = io.TextIOWrapper(out, "utf-8")
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(map(str, words)))
        except SystemExit as ended:
            code = int(ended.code or 0)
        text.flush()
    return code, out.getvalue().decode(), err.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    many = STUDY.replace("{kind: fake}", "{kind: fake, topology: rack, hosts: 5}").replace("blocks: 6", "blocks: 2")
    (place / "study.yaml").write_text(many.replace("{size: 10 MB}", "{size: 10 MB, pattern: many-to-one}"))
    assert said("study", place / "study.yaml", "--out", place / "out", "--seed", "1")[0] in (0, 3)
    return place / "out"


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "edited")


def _digit(name: str, before: str, after: str) -> Edit:
    """One change in the text of a file."""

    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1))

    return edit


def _lines(change: Callable[[list[str]], list[str]]) -> Edit:
    def edit(folder: Path) -> None:
        lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
        (folder / "runs.jsonl").write_text("".join(change(lines)))

    return edit


def _goodput(lines: list[str]) -> list[str]:
    """The third run has another goodput."""
    found = json.loads(lines[2])
    found["metrics"]["goodput"] *= 1.01
    return [*lines[:2], json.dumps(found) + "\n", *lines[3:]]


def _record(folder: Path) -> None:
    path = folder / "runs/2/record.json"
    found = json.loads(path.read_text())
    found["workload"]["bytes"] += 1
    path.write_text(json.dumps(found))


def _table(folder: Path) -> None:
    path = min((folder / "runs/1").glob("transfers*.arrow"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


EDITS: list[tuple[Edit, str]] = [
    (_digit("results.json", '"goodput": 0.01', '"goodput": 0.02'), "results.json: seal: found other content, "),
    (_digit("study.yaml", "10 MB", "20 MB"), "study.yaml: found other content, expected what was sealed "),
    (_digit("environment.json", '"python": "C', '"python": "D'), "environment.json: seal: found other content, "),
    (_digit("summary.json", '"verdict": "', '"verdict": "un'), "summary.json: seal: found other content, "),
    (_record, "runs/2/record.json: found other content, expected what its run "),
    (_table, ".arrow: found other content, expected what its run left "),
    (_lines(_goodput), "runs.jsonl:3: seal: found another line than was sealed here, "),
    (_lines(lambda lines: [*lines[:1], *lines[2:]]), "runs.jsonl:2: seal: found another line than was sealed here, "),
    (_lines(lambda lines: [lines[1], lines[0], *lines[2:]]), "runs.jsonl:1: seal: found another line "),
    (_lines(lambda lines: lines[:-1]), "runs.jsonl: found 5 runs, expected the 6 of which summary.json was made "),
    (
        _lines(lambda lines: [*lines[:-1], lines[-1].partition(', "seal"')[0] + "}\n"]),
        "runs.jsonl:6: found no seal, expected one as in the line before ",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "line"), EDITS)
def test_a_change_is_said_in_one_line_with_its_place(folder: Path, edit: Edit, line: str) -> None:
    edit(folder)
    code, _, err = said("report", folder, "--html", folder / "x.html")
    assert (code, err.count("\n")) == (2, 1)
    assert line in err
    assert err.endswith(CHANGED_ON_PURPOSE)


@pytest.mark.parametrize("words", [["compare", "{whole}", "{folder}"], ["study", "--resume", "--out", "{folder}"]])
def test_whoever_reads_runs_notices_it(whole: Path, folder: Path, words: list[str]) -> None:
    _lines(_goodput)(folder)
    code, out, err = said(*(word.format(whole=whole, folder=folder) for word in words))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "runs.jsonl:3: seal: found another line" in err


def test_a_document_that_is_only_formatted_anew_is_the_same(folder: Path) -> None:
    path = folder / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=4, sort_keys=True))
    assert said("report", folder)[0] in (0, 3)


def test_a_run_without_its_files_has_its_verdict(folder: Path) -> None:
    shutil.rmtree(folder / "runs")
    assert said("report", folder)[0] in (0, 3)


def test_a_file_that_no_run_left_is_not_read(folder: Path) -> None:
    """An attempt that was killed before its line may have left it."""
    before = said("report", folder, "--json")
    other = min((folder / "runs/1").glob("samples*.arrow"), default=folder / "runs/1/record.json")
    (folder / "runs/1/samples-h8-h9.arrow").write_bytes(other.read_bytes())
    assert said("report", folder, "--html", folder / "x.html")[0] in (0, 3)
    assert said("report", folder, "--json") == before


def test_what_was_changed_on_purpose_is_sealed_and_every_report_says_so(folder: Path) -> None:
    for edit, _ in (EDITS[0], EDITS[4], EDITS[6]):
        edit(folder)
    code, _, err = said("report", folder, "--reseal")
    assert (code, err) == (
        0, f"sealed: {folder}; changed: results.json, runs.jsonl:3, runs/2/record.json\n",
    )  # fmt: skip
    code, out, _ = said("report", folder, "--json")
    assert code in (0, 3)
    caveat = json.loads(out)["caveats"][-1]
    assert caveat.startswith("sealed again on 20")
    assert caveat.endswith("after a change of results.json, runs.jsonl:3, runs/2/record.json")
    assert "sealed again on" in said("report", folder)[1].replace("\n", " ")
    # It goes on from there, and still says so.
    with Journal.resume(folder) as journal:
        journal.amend(journal.runs[0])
        journal.extend(results.read(folder).plan)
    assert json.loads(said("report", folder, "--json")[1])["caveats"][-1] == caveat
    assert said("report", folder, "--reseal")[2] == f"sealed: {folder}; changed: nothing\n"


def test_an_older_folder_is_read_said_to_be_unsealed_and_can_be_sealed(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for each in lines:
        del each["seal"], each["files"]
    (folder / "runs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    for name in ("results.json", "environment.json", "summary.json"):
        found: dict[str, Any] = json.loads((folder / name).read_text())
        (folder / name).write_text(
            json.dumps({key: each for key, each in found.items() if key not in ("seal", "files")})
        )
    unsealed = "not sealed, as results of older versions: a change of them after they were written goes unnoticed"
    assert json.loads(said("report", folder, "--json")[1])["caveats"].count(unsealed) == 1
    assert said("compare", folder, folder)[1].replace("\n", " ").count("not sealed, as") <= 2
    # A run that is added has a seal, which is that of all before it, too.
    with Journal.resume(folder) as journal:
        journal.add(journal.runs[0].__class__(**{**lines[0], "number": 7, "block": 9}), {}, {})
    _digit("runs.jsonl", '"attempt": 0', '"attempt": 1')(folder)
    assert "runs.jsonl:7: seal: found another line" in said("report", folder)[2]
    assert said("report", folder, "--reseal")[0] == 0
    assert unsealed not in json.loads(said("report", folder, "--json")[1])["caveats"]


def test_a_study_file_of_another_rate_is_replaced_with_its_plan(tmp_path: Path) -> None:
    plan = {"question": "?", "scope": "invented", "treatment": "mtu", "margins": {"goodput": 0.01}}
    with Journal.create(tmp_path / "out", STUDY, plan) as journal:
        journal.replan(STUDY + "# slower\n", plan)
    assert results.read(tmp_path / "out").is_sealed
    (tmp_path / "out/study.yaml").write_text(STUDY)
    code, _, err = said("report", tmp_path / "out")
    assert code == 2
    assert "study.yaml: found other content" in err


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Cut, or with some bits or bytes changed."""
    spoilt = bytearray(data)
    match rng.randrange(3):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            spoilt[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case _:
            at = rng.randrange(max(1, len(data) - 8))
            spoilt[at : at + 8] = rng.choice([b"\xff" * 8, bytes(8), rng.randbytes(8)])
    return bytes(spoilt)


def _read_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in (".lock", "report.html", "runs.csv", "runs.parquet"):
            yield path


@pytest.mark.soak(10)
def test_no_damage_changes_what_is_judged_unnoticed(folder: Path) -> None:
    rng = random.Random(5)
    honest = said("report", folder, "--json")[:2]
    files = list(_read_files(folder))
    for _ in range(by_length(25, 600)):
        path = rng.choice(files)
        kept = path.read_bytes()
        path.write_bytes(_damaged(kept, rng))
        code, out, err = said("report", folder, "--json")
        assert err.count("\n") <= 1, err
        assert code == 2 or (code, out) == honest, path
        path.write_bytes(kept)
