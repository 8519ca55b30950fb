import json
import os
import subprocess
import sys
from dataclasses import asdict, replace

import pyarrow.parquet
import pytest
from helpers.support import PLAN, STUDY
from hypothesis import given, strategies as st

from framegauge.errors import CorruptResults, DiskFull, FolderInUse, FolderNotEmpty, InputError, NewerResults
from framegauge.results import journal as results, lock as claim, tables, writing
from framegauge.results.journal import Journal, Run, parse_journal

RUN = Run(1, 0, 0, "baseline", "baseline", 1500, 0, "stream", {"size_bytes": 1}, {"goodput": 1e9}, [])


def line(run):
    return json.dumps(asdict(run)).encode() + b"\n"


@given(st.lists(st.text(max_size=10), max_size=5), st.data())
def test_a_journal_cut_anywhere_loses_only_its_last_line(texts, data):
    runs = [replace(RUN, number=number, excluded=[text]) for number, text in enumerate(texts, 1)]
    whole = b"".join(map(line, runs))
    cut = data.draw(st.integers(0, len(whole)))
    found, good = parse_journal(whole[:cut], "j")
    assert [run.number for run in found] == [run.number for run in runs[: len(found)]]
    assert good <= cut
    # Every line whose newline, or whole object, was written is there.
    assert len(found) >= whole[:cut].count(b"\n")
    assert parse_journal(whole[:good], "j")[0] == found


@given(st.binary(max_size=200))
def test_any_bytes_are_a_journal_or_an_error_of_ours(data):
    try:
        parse_journal(data, "j")
    except (CorruptResults, NewerResults) as error:
        assert str(error).startswith("j:")  # noqa: PT017


def test_a_broken_line_in_the_middle_is_named():
    with pytest.raises(CorruptResults, match="j:2: found no JSON"):
        parse_journal(line(RUN) + b"{half\n" + line(RUN), "j")


def test_keys_that_a_newer_framegauge_of_this_schema_added_are_left_out():
    newer = line(RUN)[:-2] + b', "colour": "blue"}\n'
    found, good = parse_journal(line(RUN) + newer, "j")
    assert [line(run) for run in found] == [line(RUN)] * 2
    assert good == len(line(RUN) + newer)


def test_runs_survive_and_tables_are_derived(tmp_path):
    with Journal.create(tmp_path / "out", STUDY, PLAN) as journal:
        journal.add(RUN, {"a": 1}, {"samples": b"bulk"})
        journal.add(replace(RUN, number=2, arm="t", level={"h1": 9000, "h2": 1500}, excluded=["proof: x"]), {}, {})
        tables.write_tables(journal)
    saved = results.read(tmp_path / "out")
    assert [run.number for run in saved.runs] == [1, 2]
    assert not saved.torn
    assert (tmp_path / "out/runs/1/samples.arrow").read_bytes() == b"bulk"
    table = pyarrow.parquet.read_table(tmp_path / "out/runs.parquet")
    assert table.column("metrics.goodput").to_pylist() == [1e9, 1e9]
    assert len((tmp_path / "out/runs.csv").read_text().splitlines()) == 3


def test_a_torn_line_is_cut_off_on_resume(tmp_path):
    with Journal.create(tmp_path, STUDY, PLAN) as journal:
        journal.add(RUN, {}, {})
    with (tmp_path / "runs.jsonl").open("ab") as file:
        file.write(line(RUN)[:-10])
    with Journal.resume(tmp_path) as journal:
        assert len(journal.runs) == 1
        journal.add(replace(RUN, number=2), {}, {})
    assert [run.number for run in results.read(tmp_path).runs] == [1, 2]


def test_results_of_a_newer_version_are_refused(tmp_path):
    Journal.create(tmp_path, STUDY, PLAN).close()
    plan = json.loads((tmp_path / "results.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(plan | {"schema": 2}))
    for attempt in (results.read, Journal.resume):
        with pytest.raises(
            NewerResults, match=r"found results of schema 2, expected at most 1: .*newer framegauge"
        ) as error:
            attempt(tmp_path)
        assert error.value.exit_code == 2


def test_a_newer_line_is_refused(tmp_path):
    with pytest.raises(NewerResults, match="j:1"):
        parse_journal(line(replace(RUN, schema=9)), "j")


def test_an_output_folder_in_use_is_named_with_its_holder(tmp_path):
    # A real second process, since a lock of this one would also be this one's.
    script = (
        "import sys; from framegauge.results.journal import Journal; "
        f"j = Journal.create({str(tmp_path / 'out')!r}, '', {PLAN!r}); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        for attempt in (lambda: Journal.create(tmp_path / "out", "", PLAN), lambda: Journal.resume(tmp_path / "out")):
            with pytest.raises(FolderInUse, match=f"the output folder is in use by process {holder.pid}") as error:
                attempt()
            assert error.value.exit_code == 2
        holder.stdin.close()
    Journal.resume(tmp_path / "out").close()


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(FolderNotEmpty, match=r"found note\.txt, expected an empty folder"):
        Journal.create(tmp_path, STUDY, PLAN)
    with pytest.raises(InputError, match=r"found no results\.json"):
        Journal.resume(tmp_path)
    with pytest.raises(InputError, match="expected a writable folder"):
        Journal.create(tmp_path / "note.txt", STUDY, PLAN)


def test_a_study_without_a_run_leaves_nothing_but_the_folders_that_were_there(tmp_path):
    for folder, left in (("a/b/c", []), ("mine/out", ["mine"]), ("mine", ["mine"])):
        if left:
            (tmp_path / "mine").mkdir(exist_ok=True)
        with Journal.create(tmp_path / folder, STUDY, PLAN) as journal:
            journal.environment({"agent": {}})
            (journal.folder / "runs/1").mkdir(parents=True)
            journal.discard()
        assert [each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*")] == left


def test_a_study_with_a_run_is_never_forgotten(tmp_path):
    with Journal.create(tmp_path / "out", STUDY, PLAN) as journal:
        journal.add(RUN, {}, {})
        journal.discard()
    assert len(results.read(tmp_path / "out").runs) == 1


def test_a_study_that_is_resumed_before_its_first_run_is_never_forgotten(tmp_path):
    """As one that was killed early is, and then refused because the machine is too busy for it."""
    Journal.create(tmp_path / "out", STUDY, PLAN).close()
    with Journal.resume(tmp_path / "out") as journal:
        journal.discard()
    with Journal.resume(tmp_path / "out") as journal:
        assert journal.runs == []


def test_a_folder_of_something_else_stays_as_it_is(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(FolderNotEmpty):
        Journal.create(tmp_path, STUDY, PLAN)
    assert [each.name for each in tmp_path.iterdir()] == ["note.txt"]
    for folder in (tmp_path / "note.txt", tmp_path / "note.txt/in/it"):
        with pytest.raises(InputError, match="expected a writable folder"):
            Journal.create(folder, STUDY, PLAN)
    assert [each.name for each in tmp_path.iterdir()] == ["note.txt"]


def test_a_lock_whose_file_was_taken_away_keeps_nobody_out_and_is_taken_again(tmp_path, monkeypatch):
    # Between the lock and the look at it, the one who had it forgets the folder: the first file locked is gone.
    taken, real = [], claim.fcntl.flock

    def flock(handle, how):
        real(handle, how)
        if not taken:
            (tmp_path / ".lock").unlink()
        taken.append(handle)

    monkeypatch.setattr(claim.fcntl, "flock", flock)
    with Journal.create(tmp_path, STUDY, PLAN):
        assert len(taken) == 2
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


FULL = """
import json, resource, sys
from pathlib import Path
from dataclasses import replace
from framegauge.results.journal import Journal, Run
from framegauge.errors import DiskFull
run = Run(1, 0, 0, "baseline", "baseline", 1500, 0, "stream", {}, {"goodput": 1e9}, [])
journal = Journal.create(Path(sys.argv[1]), "", json.loads(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for number in range(1, 100):
        journal.add(replace(run, number=number), {}, {})
        print(number, flush=True)
except DiskFull as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def test_a_full_disk_gives_one_line_and_keeps_finished_runs(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "out"), json.dumps(PLAN)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == DiskFull.exit_code
    finished = [int(number) for number in found.stdout.split()]
    assert finished
    assert found.stderr.count("\n") == 1
    assert "cannot be written" in found.stderr
    assert "with --resume; finished runs are kept" in found.stderr
    saved = results.read(tmp_path / "out")
    assert [run.number for run in saved.runs] == finished
    assert not saved.torn


def test_a_disk_that_is_full_before_the_first_run_leaves_nothing_to_resume(tmp_path):
    program = FULL.replace("(1000, 1000)", "(0, 0)")
    command = [sys.executable, "-c", program, str(tmp_path / "out"), json.dumps(PLAN)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (DiskFull.exit_code, "")
    assert found.stderr.endswith("; free some space and run again\n")


def test_a_full_device_is_a_full_disk(tmp_path):
    Journal.create(tmp_path, STUDY, PLAN).close()
    saved = results.read(tmp_path)
    (tmp_path / "runs.jsonl").unlink()
    (tmp_path / "runs.jsonl").symlink_to("/dev/full")
    journal = Journal(claim.Claim(tmp_path, writing.disk, writing.FULL), saved)
    with pytest.raises((DiskFull, OSError)):
        journal.add(RUN, {}, {})
    assert journal.runs == []


def test_the_folder_above_results_names_those_within(tmp_path):
    """That of a decision, whose study is beneath, or results/ with several."""
    with pytest.raises(InputError, match=r"expected the folder of a study$"):
        results.read(tmp_path)
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text("{}")
    with pytest.raises(InputError, match=rf"expected the folder of a study, such as {tmp_path}/a, {tmp_path}/b$"):
        results.read(tmp_path)
