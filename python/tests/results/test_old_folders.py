"""Folders of older versions stay readable: documents/results-<n>, as each was written when it was new.

results-1: runs do not say when they began, nor the plan whether the study could stop; summary.json without margins.
results-2: with both.
"""

from __future__ import annotations

import json

import jsonschema
import pytest
from helpers.support import ROOT

from framegauge.cli import main as cli
from framegauge.results import journal as results
from framegauge.study import file as study_file
from framegauge.summary.document import RULES
from framegauge.summary.schema import comparison_schema, summary_schema

DOCUMENTS = ROOT / "python/tests/documents"
FOLDERS = sorted(path for path in DOCUMENTS.glob("results-*") if path.is_dir())


# Wording that has changed since: the same warnings, in today's words.
REWORDED = (
    ("only 2 blocks: the interval leans on", "only 2 blocks: the interval relies on"),
    (
        "alone it would be no practical difference: among 4 comparisons that may be chance",
        "inside the margin on its own, but not after correcting for 4 comparisons",
    ),
    (
        "alone it would be better: among 4 comparisons that may be chance",
        "better on its own, but not after correcting for 4 comparisons",
    ),
)


def reworded(lines):
    """Without the number of blocks that would settle it, which is an assurance today."""
    for then, now in REWORDED:
        lines = [line.replace(then, now) for line in lines]
    return ["undecided" if line.startswith("undecided: ") else line for line in lines]


def valid(schema, document):
    jsonschema.Draft202012Validator(schema).validate(document)


def test_there_are_some():
    assert [path.name for path in FOLDERS] == ["results-1", "results-2"]
    older, newer = (results.read(path) for path in FOLDERS)
    assert {run.began for run in older.runs} == {""}
    assert all(run.began.endswith("+00:00") for run in newer.runs)
    assert "stop" in newer.plan
    assert not {"stop", "planned_blocks"} & older.plan.keys()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_it_is_read_and_reported(folder, capsys):
    assert len(results.read(folder).runs) == 12
    study_file.load(folder / "study.yaml")
    then = json.loads((folder / "summary.json").read_text())
    valid(summary_schema(), then)
    assert cli.main(["report", str(folder), "--json"]) == 0
    now = json.loads(capsys.readouterr().out)
    valid(summary_schema(), now)
    for each in then["verdicts"]:
        each["warnings"] = reworded(each["warnings"])
    # The verdicts are those that it had; what is new may have been added. Controls are judged as they were, treatments
    # against the control's runs, too.
    assert (now["rules"]["version"], now["rules"]["before"]) == (RULES, 1)
    for each, old in zip(now["verdicts"], then["verdicts"], strict=True):
        if old["baseline"]["mtu"] == old["treatment"]["mtu"]:
            judged = (old.get("judged") or {}).keys()
            found = {**each, "judged": {key: each["judged"][key] for key in judged}}
            found["warnings"] = reworded(each["warnings"])
            assert {key: found[key] for key in old} == old
        else:
            assert old["verdict"] in (each["verdict"], "undecided")  # more runs decide more
            assert each["conditions"] == old["conditions"]
            assert each["ratio"] == pytest.approx(old["ratio"], rel=0.01)
            assert each["runs"] == 1.5 * old["runs"]
    assert cli.main(["report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "scope: invented; faithful" in said
    assert f"Judged by rules of version {RULES}; this folder was judged before by version 1" in said


@pytest.mark.parametrize("base", FOLDERS, ids=lambda path: path.name)
@pytest.mark.parametrize("new", FOLDERS, ids=lambda path: path.name)
def test_it_is_compared_with_any_other(base, new, capsys):
    if base == new:
        assert cli.main(["compare", str(base), str(new)]) == 2
        assert "measured apart" in capsys.readouterr().err
        return
    assert cli.main(["compare", str(base), str(new), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    valid(comparison_schema(), document)
    assert len(document["verdicts"]) == 16
    assert document["not_compared"] == []


def test_a_window_needs_to_know_when_runs_began(capsys):
    older, newer = map(str, FOLDERS)
    assert cli.main(["compare", f"{older}@10:00..10:20", newer]) == 2
    assert "found no start time of run" in capsys.readouterr().err
